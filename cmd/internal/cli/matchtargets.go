package cli

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"

	"unwire/decode"
	"unwire/decode/fieldpath"
	"unwire/decode/kind"
	"unwire/decode/wire"
	"unwire/schema"
	"unwire/schema/match"
)

// maxTargets bounds the places that are matched at once, matchSamples the
// messages that are kept of each, and maxHeldBytes what all of them take.
const (
	maxTargets   = 1000
	matchSamples = 500
	maxDeepening = 8
	maxHeldBytes = 256 << 20
	nodeBytes    = 80 // of a tree's node, roughly
)

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

	trees, other int64 // frames that were looked at, and those that are no protobuf
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

// rawTargets reads files of one message each, all of one place.
func (a *app) rawTargets(ts *targets, path fieldpath.Path, inputs []string) error {
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
func addFound(ts *targets, name string, path fieldpath.Path, frame string, t *wire.Tree) {
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
func captureTargets(ctx context.Context, ts *targets, defs *schema.Schema, name string, path fieldpath.Path, dir string) error {
	addr := parseAddress(name)
	whole := addr
	whole.Frame = -1
	return eachExchange(ctx, whole.String(), func(ex *decode.Exchange, piece bool) error {
		if piece {
			decode.DropJoined(ex)
		}
		for i := range ex.Frames {
			fr := &ex.Frames[i]
			if addr.Frame >= 0 && (fr.Dir != addr.Dir || fr.Seq != addr.Frame) || fr.End != nil || dir != "" && fr.Dir.String() != dir {
				continue
			}
			if fr.Tree == nil || ex.Codec == "json" {
				ts.other++
				continue
			}
			ts.trees++
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
