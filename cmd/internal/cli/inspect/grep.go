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
	"strings"

	"github.com/spf13/cobra"

	"unwire/captures"
	"unwire/cmd/internal/app"
	"unwire/cmd/internal/contract"
	"unwire/cmd/internal/query"
	"unwire/cmd/internal/render"
	"unwire/decode/fieldpath"
	"unwire/decode/search"
	"unwire/proto"
)

type grepFlags struct {
	pattern, hex, number, path, dir, method string
	as, filter                              string
	fixed, fold, headers                    bool
	json, list, count                       bool
}

func grepCommand(a *app.App) *cobra.Command {
	var f grepFlags
	split := proto.Profile().Split
	cmd := &cobra.Command{
		Use:   "grep [PATTERN] F.uwc…",
		Short: "Find text, bytes, numbers and field paths inside decoded frames",
		Long: `grep looks into the decoded frames of captures: through compression, hex and
base64 in strings, JSON, and messages within messages. It prints where something
is, a line a match: the frame, the path of the field, its kind, and the match with
what is around it. Text that is split over several frames is found, too, in the
same field of the frames that follow each other; the first of them is named.
A pattern is looked for in notes ('unwire note'), too.

PATTERN is a regular expression (RE2), or with -F the text itself. Instead of it,
--hex and --number look for bytes and for a number in any of its forms (varint,
zigzag, fixed, packed, JSON); --path says in which fields, or alone, which fields.

--filter searches only what it selects, in the language that 'unwire ls --help' explains:
--filter 'host:api.* dir:down code:!ok' is frames from such servers in failed calls.

It exits with 0 where something was found and with 1 where nothing was.`,
		Example: `  unwire grep -i 'hello world' F.uwc
  unwire grep --number 42 --dir down F.uwc G.uwc
  unwire grep --hex 0a05 F.uwc#2
  unwire grep --path '1.2.*' F.uwc
  unwire grep --filter 'method:Run code:!ok' --path '1.*' F.uwc
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
	app.SplittingFlag(fl, &f.as)
	fl.BoolVar(&f.headers, "headers", false, "in URLs and headers, too")
	fl.StringVar(&f.dir, "dir", "", "only what the client sent (up) or what it received (down)")
	fl.StringVar(&f.method, "method", "", "only calls of this method: "+split.RPC+", "+split.Service+"/"+split.RPC+", with * for any text")
	filterFlag(a, cmd, &f.filter)
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
	_, err := os.Stat(query.ParseAddress(arg).File)
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
	g := &grep{App: a, grepFlags: f, w: bufio.NewWriter(a.Out)}
	g.what = query.Search{Query: q, Headers: f.headers, Dir: f.dir, Method: f.method, Match: g.match, Searched: g.searched}
	if f.filter != "" {
		if g.what.Filter, err = parseFilter(f.filter); err != nil {
			return err
		}
	}
	ctx, meter := a.ShowProgress(ctx, "searching", files...)
	defer meter.Stop()
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
	what  query.Search
	w     *bufio.Writer
	total int
}

// file searches a capture or an exchange. In a damaged capture it searches what can be
// read, and then returns the damage as the error.
func (g *grep) file(ctx context.Context, name string) error {
	addr := query.ParseAddress(name)
	capture, err := g.OpenCapture(addr.File)
	if err != nil {
		return err
	}
	defer capture.Close()
	if capture.Splitting, err = app.ParseSplitting(g.as); err != nil {
		return err
	}
	if g.what.Filter != nil {
		if g.what.Definitions, err = filterDefinitions(ctx, g.App, g.what.Filter, addr.File); err != nil {
			return err
		}
	}
	g.RemarkEmpty(ctx, capture)
	return capture.Search(ctx, addr, g.what)
}

// match prints a match, unless exchanges are listed or counted.
func (g *grep) match(m *contract.Match) (more bool, err error) {
	switch {
	case g.list:
		return false, nil
	case g.count:
		return true, nil
	case g.json:
		return true, g.Print(m)
	}
	return true, render.Match(g.Out, g.w, m)
}

// searched prints an exchange's line, with -l or -c.
func (g *grep) searched(addr query.Address, found int) error {
	g.total += found
	if found == 0 || !g.list && !g.count {
		return nil
	}
	if g.json {
		line := &contract.MatchedExchange{Address: addr.String(), Exchange: addr.Exchange}
		if g.count {
			line.Count = &found
		}
		return g.Print(line)
	}
	if g.count {
		_, err := fmt.Fprintf(g.w, "%s\t%d\n", addr, found)
		return err
	}
	_, err := fmt.Fprintln(g.w, addr)
	return err
}
