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
	"sync"

	"github.com/spf13/cobra"

	"unwire/captures"
	"unwire/captures/safetext"
	"unwire/cmd/internal/app"
	"unwire/cmd/internal/contract"
	"unwire/cmd/internal/options"
	"unwire/cmd/internal/query"
	"unwire/cmd/internal/render"
	"unwire/cmd/internal/term"
	"unwire/decode/fieldpath"
	"unwire/decode/search"
	"unwire/schema"
)

// grepFlags are the values of the flags of 'unwire grep'.
type grepFlags struct {
	// pattern is the pattern of -e; "" if it is an argument.
	pattern string

	// hex are the bytes to find, in hex (--bytes); "" for none.
	hex string

	// number is the number to find; "" for none.
	number string

	// path restricts the search to fields with this path; "" for all.
	path string

	// dir restricts the search to one direction, up or down; "" for both.
	dir string

	// method restricts the search to calls of this method; "" for all.
	method string

	// as is the framing of connections without HTTP; "" to detect it.
	as string

	// filter selects exchanges; "" for all.
	filter string

	// proto names definitions; "" for the default.
	proto string

	// fixed means that the pattern is literal text (-F).
	fixed bool

	// fold ignores case (-i).
	fold bool

	// headers also searches URLs and headers.
	headers bool

	// json prints JSON Lines.
	json bool

	// list prints only the exchanges with matches (-l).
	list bool

	// count prints the number of matches in each exchange (-c).
	count bool
}

const grepExamples = `  # Find a text in upper or lower case
  unwire grep -i 'hello world' F.uwc
  # Find the number 42 in messages of the server
  unwire grep --number 42 --dir down F.uwc G.uwc
  # Find the bytes 0a 05 in exchange 2
  unwire grep --bytes 0a05 F.uwc#2
  # List the values of all fields inside field 1.2
  unwire grep --path '1.2.*' F.uwc
  # List the values of all fields inside field 1, in failed calls of Run
  unwire grep --filter 'method:Run code:!ok' --path '1.*' F.uwc
  # List the exchanges with a text in their URL, headers or messages
  unwire grep -l --headers application/proto F.uwc`

// grepCommand returns the command 'unwire grep'.
func grepCommand(a *app.App) *cobra.Command {
	var f grepFlags
	cmd := &cobra.Command{
		Use:   "grep [PATTERN] F.uwc…",
		Short: "Find text, bytes, numbers and field paths inside decoded messages",
		Long: `grep decodes the messages (frames) in captures (files with recorded traffic), and
searches the values of their fields, also in nested messages. grep also searches
compressed data, JSON, and hex or base64 in strings. For each match, grep prints one
line: the address of the frame, the path and the type of the field, and the match with
the text around it. If a stream sends a text in pieces, grep also finds matches that
begin in one frame and end in another, and prints the frame with the beginning. grep
also searches the notes that you wrote with 'unwire note'.

PATTERN is a regular expression in RE2 syntax; with -F, grep searches for the text
PATTERN itself. To search for bytes, use --bytes instead of PATTERN. To search for a
number, use --number: grep finds the number in all encodings (varint, zigzag, fixed,
packed, JSON). With --path, grep searches only the fields at this path. If you give
--path without PATTERN, grep lists all values of these fields.

With --filter, grep searches only the exchanges and frames that match the filter;
'unwire ls --help' explains filters. For example, with --filter 'host:api.* dir:down
code:!ok', grep searches only the server's messages in failed calls to hosts such as
api.example.com.

The exit status is 0 if grep found a match, and 1 otherwise.`,
		Example: grepExamples,
		Args:    cobra.MinimumNArgs(0),
		RunE: func(cmd *cobra.Command, args []string) error {
			return runGrep(cmd.Context(), a, f, args)
		},
	}
	fl := cmd.Flags()
	fl.StringVarP(&f.pattern, "regexp", "e", "", "the pattern to search for, as a flag: useful if the pattern begins with - or is also the name of a file")
	fl.BoolVarP(&f.fixed, "fixed", "F", false, "search for the text PATTERN itself, not for a regular expression")
	fl.BoolVarP(&f.fold, "ignore-case", "i", false, "do not distinguish upper and lower case")
	fl.StringVar(&f.hex, "bytes", "", "find these bytes, in hex")
	options.Alias(fl, "hex", "bytes")
	fl.StringVar(&f.number, "number", "", "find this number, in all encodings: varint, zigzag, fixed, packed, JSON")
	fl.StringVar(&f.path, "path", "", "search only fields with this path, such as 1.2: field numbers joined by dots; * stands for one field, ** for any number of nested fields, and [0] for the first element of a repeated field")
	app.SplittingFlag(fl, &f.as)
	fl.BoolVar(&f.headers, "headers", false, "also search the URLs and the headers of exchanges")
	fl.StringVar(&f.dir, "dir", "", "search only messages from the client (up) or only messages from the server (down)")
	fl.StringVar(&f.method, "method", "", "search only calls of this method, such as Run or pkg.Service/Run; * matches any text")
	filterFlag(a, cmd, &f.filter)
	fl.StringVar(&f.proto, "proto", "", protoUsage)
	fl.BoolVar(&f.json, "json", false, "print one JSON object per match")
	fl.BoolVarP(&f.list, "exchanges", "l", false, "print only the addresses of the exchanges that contain a match, such as F.uwc#7")
	options.Alias(fl, "list", "exchanges")
	fl.BoolVarP(&f.count, "count", "c", false, "print only the number of matches in each exchange")
	return cmd
}

// query returns the search that the flags and arguments describe, and the remaining arguments: the
// captures to search.
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

	// The pattern is bytes, a number or text; exclusive has ruled out combinations.
	switch {
	case f.hex != "":
		if q.Bytes, err = hex.DecodeString(strings.Join(strings.Fields(strings.TrimPrefix(f.hex, "0x")), "")); err != nil || len(q.Bytes) == 0 {
			return q, nil, app.Usagef("--bytes must be hex bytes such as 0a05ff, not %q", f.hex)
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

// exclusive returns an error if flags are combined that exclude each other.
func (f *grepFlags) exclusive() error {
	kinds := 0
	for _, s := range []string{f.hex, f.number, f.pattern} {
		if s != "" {
			kinds++
		}
	}
	if kinds > 1 {
		return app.Usagef("only one of PATTERN, --bytes and --number can be used")
	}
	if f.list && f.count {
		return app.Usagef("-l and -c cannot be used together")
	}
	return nil
}

// text returns the text pattern, from -e or else the first argument, and the remaining arguments. The
// pattern is nil if only --path is searched for.
func (f *grepFlags) text(args []string) (*search.Text, []string, error) {
	pattern := f.pattern
	if pattern == "" && len(args) > 0 && (f.path == "" || !isFile(args[0])) {
		pattern, args = args[0], args[1:]
	}
	switch {
	case pattern == "" && f.path == "":
		return nil, nil, app.Fail(app.ExitUsage, errors.New("nothing to search for: give PATTERN, --bytes, --number or --path"), "example: unwire grep hello F.uwc")
	case pattern == "":
		return nil, args, nil
	}
	text, err := search.NewText(pattern, f.fixed, f.fold)
	if err != nil {
		return nil, nil, app.Fail(app.ExitUsage, err, "use -F to search for literal text")
	}
	return text, args, nil
}

// isFile reports whether an argument is the path of an existing file, or the address of something in one.
func isFile(arg string) bool {
	_, err := os.Stat(query.ParseAddress(arg).File)
	return err == nil
}

// runGrep executes 'unwire grep'. The exit status is 1 if there is no match.
func runGrep(ctx context.Context, a *app.App, f grepFlags, args []string) error {
	q, files, err := f.query(args)
	if err != nil {
		return err
	}
	if len(args) == 2 && len(files) == 1 && isFile(args[0]) && !isFile(files[0]) {
		return app.Fail(app.ExitUsage, fmt.Errorf("%s: no such file or directory", term.Clean(files[0])), "the pattern precedes the captures: unwire grep PATTERN "+safetext.ShellFile(args[0]))
	}
	if err := app.OneOf("--dir", f.dir, "", "up", "down"); err != nil {
		return err
	}

	// An invalid glob would match nothing, which looks like a search without results.
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

	// A damaged capture is searched as far as it can be read, and reported at the end.
	var damage error
	for _, name := range files {
		err := g.file(ctx, name)
		if err != nil && !errors.Is(err, captures.ErrDamaged) {
			g.w.Flush() //nolint:errcheck // what went wrong before is told
			return err
		}
		damage = errors.Join(damage, err)
	}

	// Write the matches before the error about a damaged capture, so that stderr ends with the error.
	if err := g.w.Flush(); err != nil || damage != nil {
		return cmp.Or(err, damage)
	}
	if g.total == 0 {
		return app.Fail(app.ExitFinding, nil, "")
	}
	return nil
}

// A grep is the state of one run of `unwire grep` over captures.
type grep struct {
	// App gives access to the output streams and the settings of the program.
	*app.App
	// grepFlags are the values of the command's flags.
	grepFlags

	// what is the search, with the callbacks that print matches.
	what query.Search

	// w buffers standard output.
	w *bufio.Writer

	// explained is set when the legend of the matches has been printed.
	explained bool

	// total is the number of matches so far.
	total int
}

// file searches the capture or exchange that name names. A damaged capture is searched as far as it can
// be read, and the damage is returned as the error.
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
		if g.what.Definitions, err = filterDefinitions(ctx, g.App, g.what.Filter, g.proto, addr.File); err != nil {
			return err
		}
	}
	if !g.list && !g.count { // they are loaded with the first match
		g.what.Names = sync.OnceValues(func() (*schema.Schema, error) { return g.LoadDefinitions(ctx, g.proto, addr.File) })
	}
	g.RemarkEmpty(ctx, capture)
	return capture.Search(ctx, addr, g.what)
}

// match prints one match, unless only exchanges are listed or counted. It returns false if the rest of
// the exchange does not need to be searched.
func (g *grep) match(m *contract.Match) (more bool, err error) {
	switch {
	case g.list:
		return false, nil
	case g.count:
		return true, nil
	case g.json:
		return true, g.Print(m)
	}
	if g.Out.TTY && !g.explained {
		g.explained = true
		fmt.Fprint(g.w, g.Out.Wrap(g.Out.Dim(render.MatchLegend)+"\n"))
	}
	return true, render.Match(g.Out, g.w, m)
}

// searched is called after an exchange has been searched. With -l or -c, it prints the exchange if it has
// matches; found is their number.
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
