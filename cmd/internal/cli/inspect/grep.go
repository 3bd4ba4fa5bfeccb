package inspect

import (
	"bufio"
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"unwire/captures"
	"unwire/captures/store"
	"unwire/cmd/internal/app"
	"unwire/cmd/internal/term"
	"unwire/decode"
	"unwire/decode/conversation"
	"unwire/decode/fieldpath"
	"unwire/decode/search"
)

type grepFlags struct {
	pattern, hex, number, path, dir, method string
	fixed, fold, headers                    bool
	json, list, count                       bool
}

func grepCommand(a *app.App) *cobra.Command {
	var f grepFlags
	cmd := &cobra.Command{
		Use:   "grep [PATTERN] F.uwc…",
		Short: "Find text, bytes, numbers and field paths inside decoded frames",
		Long: `grep looks into the decoded frames of captures: through compression, hex and
base64 in strings, JSON, and messages within messages. It prints where something
is, a line a match: the frame, the path of the field, its kind, and the match with
what is around it. Text that is split over several frames is found, too, in the
same field of the frames that follow each other; the first of them is named.

PATTERN is a regular expression (RE2), or with -F the text itself. Instead of it,
--hex and --number look for bytes and for a number in any of its forms (varint,
zigzag, fixed, packed, JSON); --path says in which fields, or alone, which fields.

It exits with 0 where something was found and with 1 where nothing was.`,
		Example: `  unwire grep -i 'hello world' F.uwc
  unwire grep --number 42 --dir down F.uwc G.uwc
  unwire grep --hex 0a05 F.uwc#2
  unwire grep --path '1.2.*' F.uwc
  unwire grep -l --headers application/proto F.uwc`,
		Args: cobra.MinimumNArgs(0),
		RunE: func(cmd *cobra.Command, args []string) error {
			return runGrep(cmd.Context(), a, f, args)
		},
	}
	fl := cmd.Flags()
	fl.StringVarP(&f.pattern, "regexp", "e", "", "the pattern, where it could be taken for a flag or a file")
	fl.BoolVarP(&f.fixed, "fixed", "F", false, "the pattern is text, no regular expression")
	fl.BoolVarP(&f.fold, "ignore-case", "i", false, "upper and lower case are the same")
	fl.StringVar(&f.hex, "hex", "", "bytes to look for, in hex")
	fl.StringVar(&f.number, "number", "", "number to look for, in any of its forms")
	fl.StringVar(&f.path, "path", "", "in these fields: numbers joined by dots, * for any one, ** for any more, [n] for one of several")
	fl.BoolVar(&f.headers, "headers", false, "in URLs and headers, too")
	fl.StringVar(&f.dir, "dir", "", "only what the client sent (up) or what it received (down)")
	fl.StringVar(&f.method, "method", "", "only calls of this method: Run, agent.v1.AgentService/Run, with * for any text")
	fl.BoolVar(&f.json, "json", false, "a JSON object a match")
	fl.BoolVarP(&f.list, "list", "l", false, "the exchanges alone")
	fl.BoolVarP(&f.count, "count", "c", false, "how many matches each exchange has")
	return cmd
}

// query reads the flags, and the pattern off the arguments.
func (f *grepFlags) query(args []string) (search.Query, []string, error) {
	var q search.Query
	if err := f.exclusive(); err != nil {
		return q, nil, err
	}
	var err error
	if f.path != "" {
		if q.Path, err = fieldpath.ParsePattern(f.path); err != nil {
			return q, nil, app.Usagef("--path: %w", err)
		}
	}
	switch {
	case f.hex != "":
		if q.Bytes, err = hex.DecodeString(strings.Join(strings.Fields(strings.TrimPrefix(f.hex, "0x")), "")); err != nil || len(q.Bytes) == 0 {
			return q, nil, app.Usagef("--hex wants bytes such as 0a05ff, not %q", f.hex)
		}
	case f.number != "":
		if q.Number, err = search.ParseNumber(f.number); err != nil {
			return q, nil, app.Usagef("--number: %w", err)
		}
	default:
		if q.Text, args, err = f.text(args); err != nil {
			return q, nil, err
		}
	}
	if len(args) == 0 {
		return q, nil, app.Fail(app.ExitUsage, errors.New("unwire grep: missing argument F.uwc"), "usage: unwire grep [PATTERN] F.uwc…")
	}
	return q, args, nil
}

// exclusive refuses flags that exclude each other.
func (f *grepFlags) exclusive() error {
	kinds := 0
	for _, s := range []string{f.hex, f.number, f.pattern} {
		if s != "" {
			kinds++
		}
	}
	if kinds > 1 {
		return app.Usagef("a pattern, --hex and --number exclude each other")
	}
	if f.list && f.count {
		return app.Usagef("-l and -c exclude each other")
	}
	return nil
}

// text is the pattern, off the arguments where no flag has it; nil where only a path
// is looked for.
func (f *grepFlags) text(args []string) (*search.Text, []string, error) {
	pattern := f.pattern
	if pattern == "" && len(args) > 0 && (f.path == "" || !isFile(args[0])) {
		pattern, args = args[0], args[1:]
	}
	switch {
	case pattern == "" && f.path == "":
		return nil, nil, app.Fail(app.ExitUsage, errors.New("what is to be found? a PATTERN, --hex, --number or --path"), "as in: unwire grep hello F.uwc")
	case pattern == "":
		return nil, args, nil
	}
	text, err := search.NewText(pattern, f.fixed, f.fold)
	if err != nil {
		return nil, nil, app.Fail(app.ExitUsage, err, "with -F the pattern is plain text")
	}
	return text, args, nil
}

// isFile reports whether an argument names something that exists.
func isFile(arg string) bool {
	_, err := os.Stat(app.ParseAddress(arg).File)
	return err == nil
}

func runGrep(ctx context.Context, a *app.App, f grepFlags, args []string) error {
	q, files, err := f.query(args)
	if err != nil {
		return err
	}
	if err := app.OneOf("--dir", f.dir, "", "up", "down"); err != nil {
		return err
	}
	if _, err := path.Match(f.method, ""); err != nil {
		return app.Usagef("--method %q: %w", f.method, err)
	}
	g := &grep{App: a, grepFlags: f, q: q, w: bufio.NewWriter(a.Out)}
	var damage error
	for _, name := range files {
		err := g.file(ctx, name)
		if err != nil && !errors.Is(err, captures.ErrDamaged) {
			g.w.Flush() //nolint:errcheck // what went wrong before is told
			return err
		}
		damage = errors.Join(damage, err)
	}
	if err := g.w.Flush(); err != nil || damage != nil {
		return cmp.Or(err, damage)
	}
	if g.total == 0 {
		return app.Fail(app.ExitFinding, nil, "")
	}
	return nil
}

// A grep is one run over captures.
type grep struct {
	*app.App
	grepFlags
	q     search.Query
	w     *bufio.Writer
	total int
}

// file searches a capture or an exchange. In a damaged capture it searches what can be
// read, and then returns the damage as the error.
func (g *grep) file(ctx context.Context, name string) error {
	addr := app.ParseAddress(name)
	store, err := app.OpenCapture(addr.File)
	if err != nil {
		return err
	}
	defer store.Close()
	g.RemarkEmpty(ctx, store)
	all, damage := conversation.FindAll(ctx, store)
	if damage != nil && !errors.Is(damage, captures.ErrDamaged) {
		return damage
	}
	if addr.Exchange != 0 {
		rec, err := store.Exchange(ctx, addr.Exchange)
		if err != nil {
			return err
		}
		return g.exchange(ctx, store, rec, all, addr)
	}
	for rec, err := range store.Exchanges(ctx) {
		if err == nil {
			addr.Exchange = rec.ID
			err = g.exchange(ctx, store, rec, all, addr)
		}
		if err != nil && !errors.Is(err, captures.ErrDamaged) {
			return err
		}
		damage = cmp.Or(damage, err)
	}
	return damage
}

// exchange looks into one exchange while it is read.
func (g *grep) exchange(ctx context.Context, store *store.Store, rec *captures.Exchange, all *conversation.Set, addr app.Address) error {
	if !methodMatches(g.method, decode.Classify(rec)) {
		return nil
	}
	wanted := addr
	// its frames are numbered apart from the conversation's
	addr.Part = all.Head(rec.ID) == rec.ID
	found := 0
	var failed error
	scope := search.Scope{Headers: g.headers && wanted.Frame < 0, Frames: func(f *decode.Frame) bool {
		return (g.dir == "" || f.Dir.String() == g.dir) && (wanted.Frame < 0 || f.Dir == wanted.Dir && f.Seq == wanted.Frame)
	}}
	damage := search.Exchange(ctx, store, rec, g.q, scope, func(m search.Match) bool {
		if g.dir != "" && m.Dir.String() != g.dir {
			return true
		}
		found++
		if g.list {
			return false
		}
		if !g.count {
			failed = g.print(addr, m)
		}
		return failed == nil
	})
	if failed != nil {
		return failed
	}
	g.total += found
	return cmp.Or(g.summary(addr, found), damage)
}

// summary prints an exchange's line, with -l or -c.
func (g *grep) summary(addr app.Address, found int) error {
	addr.Frame, addr.Part = -1, false
	if found == 0 || !g.list && !g.count {
		return nil
	}
	if g.json {
		line := struct {
			V        int    `json:"v"`
			Address  string `json:"address"`
			Exchange int64  `json:"exchange"`
			Count    *int   `json:"count,omitempty"`
		}{1, addr.String(), addr.Exchange, nil}
		if g.count {
			line.Count = &found
		}
		return g.PrintJSON(line)
	}
	if g.count {
		_, err := fmt.Fprintf(g.w, "%s\t%d\n", addr, found)
		return err
	}
	_, err := fmt.Fprintln(g.w, addr)
	return err
}

// methodMatches compares a call with --method.
func methodMatches(pattern string, c decode.Call) bool {
	if pattern == "" {
		return true
	}
	pattern = strings.TrimPrefix(pattern, "/")
	name := c.RPC
	if strings.Contains(pattern, "/") {
		name = c.Service + "/" + c.RPC
	}
	ok, err := path.Match(pattern, name)
	return err == nil && ok && c.RPC != ""
}

// A grepLine is a line of `unwire grep --json`.
type grepLine struct {
	V        int    `json:"v"`
	Address  string `json:"address"`
	Exchange int64  `json:"exchange"`
	Dir      string `json:"dir"`
	Frame    *int   `json:"frame,omitempty"`  // none for a header
	Frames   []int  `json:"frames,omitempty"` // that the match spans
	Path     string `json:"path"`
	Kind     string `json:"kind"`
	Match    string `json:"match"`
	Before   string `json:"before"`
	After    string `json:"after"`
}

func (g *grep) print(addr app.Address, m search.Match) error {
	addr.Dir, addr.Frame = m.Dir, m.Frame
	before, match, after := m.Value[:m.Start], m.Value[m.Start:m.End], m.Value[m.End:]
	if g.json {
		line := grepLine{1, addr.String(), addr.Exchange, m.Dir.String(), nil, m.Frames, m.Path, m.Kind, match, before, after}
		if m.Frame >= 0 {
			line.Frame = &m.Frame
		} else {
			addr.Part = false
			line.Address = addr.String()
		}
		return g.PrintJSON(line)
	}
	place := addr.String()
	if m.Frame < 0 {
		addr.Part = false
		place = addr.String() + "/" + m.Dir.String()
	}
	if n := len(m.Frames); n > 1 {
		place += "…" + strconv.Itoa(m.Frames[n-1])
	}
	sep := "\t"
	if g.Out.TTY {
		sep = "  "
	}
	_, err := fmt.Fprintf(g.w, "%s%s%s%s%s%s%s%s%s\n", place, sep, orDash(term.Clean(m.Path)), sep, m.Kind, sep,
		term.Clean(before), g.Out.Red(term.Clean(match)), term.Clean(after))
	return err
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}
