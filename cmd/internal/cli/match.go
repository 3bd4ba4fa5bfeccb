package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/reflect/protoreflect"

	"unwire/captures"
	"unwire/decode"
	"unwire/decode/kind"
	"unwire/decode/wire"
	"unwire/schema"
	"unwire/schema/match"
)

type matchFlags struct {
	proto string
	raw   bool
	json  bool
	top   int
	path  string
	dir   string
}

// maxTargets bounds the places that are matched at once, matchSamples the
// messages that are kept of each, and maxHeldBytes what all of them take.
const (
	maxTargets   = 1000
	matchSamples = 500
	maxDeepening = 8
	maxHeldBytes = 256 << 20
	nodeBytes    = 80 // of a tree's node, roughly
)

func (a *app) matchCommand() *cobra.Command {
	var f matchFlags
	cmd := &cobra.Command{
		Use:   "match F.uwc[#ID[/up/N]] [PATH]",
		Short: "Say which known messages fit an anonymous frame or field, and which cannot",
		Long: `match compares messages with all types of definitions, and ranks those that they
may be of by how few bits it takes to describe them so. A type that they cannot
be of is named with the reason; types that nothing tells apart are ties.

PATH is a field, such as 1.2, whose payloads are the messages. Without it, what
the definitions leave open is matched: the messages of unknown methods, and the
unknown fields that hold messages; where none fits, what is inside them. All
messages of one place, of all frames of the capture, exchange or frame that is
named, are taken together. With --raw the
arguments are files of one serialized message each, all of one type.

The exit status is 1 where no known type fits any place.`,
		Example: `  unwire schema match F.uwc
  unwire schema match F.uwc#2/up/0 1.1.2
  unwire schema match --proto googleapis/ --raw message.bin --json`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return fail(exitUsage, errors.New("unwire schema match: missing argument F.uwc"), "usage: "+cmd.UseLine())
			}
			if f.top < 1 {
				return usagef("--top must be at least 1")
			}
			if f.dir != "" && f.dir != captures.Up.String() && f.dir != captures.Down.String() {
				return usagef("--dir is up or down, not %q", f.dir)
			}
			return a.match(cmd.Context(), f, args)
		},
	}
	cmd.Flags().StringVar(&f.proto, "proto", "", "folder of .proto files, .proto file or descriptor set (default: the built-in definitions)")
	cmd.Flags().BoolVar(&f.raw, "raw", false, "inputs are files of one serialized message each")
	cmd.Flags().BoolVar(&f.json, "json", false, "a JSON object a place")
	cmd.Flags().IntVar(&f.top, "top", 10, "how many candidates to list, beside the ties of the first")
	cmd.Flags().StringVar(&f.dir, "dir", "", "only frames of this direction: up or down")
	cmd.Flags().StringVar(&f.path, "path", "", "PATH, as a flag")
	return cmd
}

// A target is a place whose messages are of one type.
type target struct {
	name    string // F.uwc#2/up, F.uwc/agent.v1.AgentService/Run/up
	within  string // the known message that has it; "" for a frame
	path    string
	samples []match.Sample
	frames  []string
	seen    int
}

// targets collects messages by place, in the order in which they are met.
type targets struct {
	list []*target
	at   map[[2]string]*target
	full bool
	held int
	last *wire.Tree
}

func (ts *targets) add(name, within, path, frame string, s match.Sample) {
	key := [2]string{name, path}
	if within != "" {
		key[0] = within
	}
	t := ts.at[key]
	if t == nil {
		if len(ts.list) == maxTargets {
			ts.full = true
			return
		}
		t = &target{name: name, within: within, path: path}
		ts.at[key] = t
		ts.list = append(ts.list, t)
	}
	t.seen++
	if len(t.samples) < matchSamples && (ts.held < maxHeldBytes || len(t.samples) == 0) {
		t.samples = append(t.samples, s)
		if s.Tree != ts.last {
			ts.last = s.Tree
			ts.held += len(s.Tree.Data) + len(s.Tree.Nodes)*nodeBytes
		}
	}
	if len(t.frames) < 3 && !slices.Contains(t.frames, frame) {
		t.frames = append(t.frames, frame)
	}
}

var looksLikePath = regexp.MustCompile(`^[0-9]+(\[[0-9]+\])?(\.[0-9]+(\[[0-9]+\])?)*$`)

func (a *app) match(ctx context.Context, f matchFlags, args []string) error {
	if n := len(args); n > 1 && f.path == "" && looksLikePath.MatchString(args[n-1]) {
		f.path, args = args[n-1], args[:n-1]
	}
	path, err := wire.ParsePath(f.path)
	if err != nil {
		return fail(exitUsage, err, "a path is field numbers with dots between them, such as 1.2")
	}
	if len(args) > 1 && !f.raw {
		return usagef("unexpected argument %q: one capture, exchange or frame, and a path such as 1.2", args[1])
	}
	defs, err := needDefinitions(f.proto, "match")
	if err != nil {
		return err
	}
	ts := &targets{at: map[[2]string]*target{}}
	if f.raw {
		err = a.rawTargets(ts, path, args)
	} else {
		err = captureTargets(ctx, ts, defs, args[0], path, f.dir)
	}
	if err != nil {
		return err
	}
	if len(ts.list) == 0 {
		if f.path != "" {
			a.say("no message at %s", f.path)
			return fail(exitFinding, nil, "")
		}
		a.say("nothing to match: the definitions know every message")
		return nil
	}
	if ts.full {
		a.say("unwire: only the first %d places are matched", maxTargets)
	}
	return a.printMatches(f, defs, ts)
}

// rawTargets reads files of one message each, all of one place.
func (a *app) rawTargets(ts *targets, path wire.Path, inputs []string) error {
	names, err := a.expandLists(inputs)
	if err != nil {
		return err
	}
	for _, name := range names {
		data, err := a.readInput(name)
		if err != nil {
			return err
		}
		addFound(ts, "", path, inputName(name), wire.Parse(data, wire.Options{}))
	}
	return nil
}

// addFound adds what a path finds in a tree.
func addFound(ts *targets, name string, path wire.Path, frame string, t *wire.Tree) {
	if len(path) == 0 {
		ts.add(name, "", "", frame, match.Sample{Tree: t})
		return
	}
	for _, n := range t.Find(path) {
		if t.IsMessage(n) {
			ts.add(name, "", path.String(), frame, match.Sample{Tree: t, Node: n})
		}
	}
}

// captureTargets collects what a path names, or what definitions leave open.
func captureTargets(ctx context.Context, ts *targets, defs *schema.Schema, name string, path wire.Path, dir string) error {
	addr := parseAddress(name)
	whole := addr
	whole.Frame = -1
	return eachExchange(ctx, whole.String(), func(ex *decode.Exchange, piece bool) error {
		if piece {
			decode.DropJoined(ex)
		}
		for i := range ex.Frames {
			fr := &ex.Frames[i]
			if addr.Frame >= 0 && (fr.Dir != addr.Dir || fr.Seq != addr.Frame) || fr.End != nil || fr.Tree == nil || ex.Codec == "json" || dir != "" && fr.Dir.String() != dir {
				continue
			}
			at := address{addr.File, ex.ID, piece, fr.Dir, fr.Seq}.String()
			place := fmt.Sprintf("%s/%s:%s", ex.Service, ex.RPC, fr.Dir)
			if len(path) > 0 || addr.Frame >= 0 {
				addFound(ts, place, path, at, fr.Tree)
			}
			if len(path) > 0 {
				continue
			}
			if md := defs.FrameType(ex.Call, fr.Dir); md != nil {
				open := openFields{targets: ts, defs: defs, frame: at, tree: fr.Tree}
				open.message(0, md)
			} else if addr.Frame < 0 && ex.Service != "" {
				addFound(ts, place, nil, at, fr.Tree)
			}
		}
		return nil
	})
}

// openFields finds the fields of a tree that its type has not and that hold messages.
type openFields struct {
	targets *targets
	defs    *schema.Schema
	frame   string
	tree    *wire.Tree
	reader  *kind.Reader
}

func (o *openFields) message(at int32, md protoreflect.MessageDescriptor) {
	for c := range o.tree.Children(at) {
		n := o.tree.Node(c)
		if n.Type != wire.Len && n.Type != wire.StartGroup || n.First == wire.None {
			continue
		}
		fd := md.Fields().ByNumber(protoreflect.FieldNumber(min(n.Number, 1<<29)))
		switch {
		case fd == nil && o.holdsMessage(c):
			o.targets.add("", string(md.FullName()), strconv.FormatUint(n.Number, 10), o.frame, match.Sample{Tree: o.tree, Node: c})
		case fd != nil && fd.Message() != nil:
			o.message(c, fd.Message())
		}
	}
}

// holdsMessage reports whether node c is rather a message than text.
func (o *openFields) holdsMessage(c int32) bool {
	if o.tree.Node(c).First == wire.None {
		return false
	}
	if o.reader == nil {
		o.reader = kind.NewReader(o.tree, nil)
	}
	best, _, _ := o.reader.Best(c)
	return best == wire.KindMessage || best == wire.KindGroup
}

// A matchLine is a line of `unwire schema match --json`.
type matchLine struct {
	V       int      `json:"v"`
	Target  string   `json:"target"`  // the message that has the field, or the method with its direction; "" with --raw
	Path    string   `json:"path"`    // below it; "" for all of a frame
	Message string   `json:"message"` // the best candidate's, if there is a match
	Frames  []string `json:"frames"`  // the first of them
	*match.Result
}

func (a *app) printMatches(f matchFlags, defs *schema.Schema, ts *targets) error {
	m := match.New(defs, match.Options{Top: f.top})
	fits := false
	for i := 0; i < len(ts.list); i++ { // it grows by what is below
		t := ts.list[i]
		r := m.Match(t.samples)
		r.Samples = t.seen
		if f.path == "" {
			ts.deepen(defs, t, r)
		}
		fits = fits || r.Verdict != match.NoMatch
		if f.json {
			if err := a.printJSON(matchLine{1, cmp.Or(t.within, t.name), t.path, string(r.FullName()), t.frames, r}); err != nil {
				return err
			}
			continue
		}
		if i > 0 {
			fmt.Fprintln(a.out)
		}
		if err := a.printMatch(t, r, f.top); err != nil {
			return err
		}
	}
	if !fits {
		return fail(exitFinding, nil, "")
	}
	return nil
}

// deepen adds the places that a result leaves open: of a match, the unknown
// fields; where there is none, the messages inside.
func (ts *targets) deepen(defs *schema.Schema, t *target, r *match.Result) {
	md := defs.Message(string(r.FullName()))
	if md == nil && (r.Verdict != match.NoMatch || strings.Count(t.path, ".") >= maxDeepening) {
		return
	}
	for _, s := range t.samples {
		open := openFields{targets: ts, defs: defs, frame: cmp.Or(t.frames...), tree: s.Tree}
		if md != nil {
			open.message(s.Node, md)
			continue
		}
		for c := range s.Tree.Children(s.Node) {
			if n := s.Tree.Node(c); open.holdsMessage(c) {
				path := strings.TrimPrefix(t.path+"."+strconv.FormatUint(n.Number, 10), ".")
				ts.add(t.name, t.within, path, open.frame, match.Sample{Tree: s.Tree, Node: c})
			}
		}
	}
}

func (a *app) printMatch(t *target, r *match.Result, top int) error {
	a.say("%s: %s, %s of %s: %s", cmp.Or(strings.TrimSuffix(cmp.Or(t.within, t.name)+" "+t.path, " "), "messages"),
		counted(r.Samples, "message"), counted(r.Distinct, "distinct one"), counted(r.Bytes, "byte"), verdictWords(r))
	var rows [][]string
	for i, c := range r.Candidates {
		if i == top {
			rows = append(rows, []string{strconv.Itoa(c.Rank), fmt.Sprintf("… and %d more", len(r.Candidates)-i), "", "", "", ""})
			break
		}
		rows = append(rows, []string{
			strconv.Itoa(c.Rank), c.Message, fmt.Sprintf("%.3f", c.P), fmt.Sprintf("%.0f", c.Bits), percent(c.Bytes, r.Bytes), listed("unknown ", c.Unknown),
		})
	}
	for _, c := range r.Vetoed {
		rows = append(rows, []string{"-", c.Message, "0", fmt.Sprintf("%.0f", c.Bits), percent(c.Bytes, r.Bytes), listed("cannot be: ", c.Vetoes)})
	}
	return a.out.Table([]string{"RANK", "MESSAGE", "P", "BITS", "EXPLAINED", "REMARK"}, rows)
}

func listed(what string, list []string) string {
	if len(list) == 0 {
		return ""
	}
	return what + strings.Join(list, "; ")
}

func verdictWords(r *match.Result) string {
	switch r.Verdict {
	case match.Matched:
		return "it is " + string(r.FullName())
	case match.Tied:
		return counted(r.Candidates[0].Ties+1, "type") + " that these messages do not tell apart"
	case match.NoMatch:
		return "no known type"
	}
	return fmt.Sprintf("undecided, %s possible", counted(r.Possible, "type"))
}
