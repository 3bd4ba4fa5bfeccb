package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"

	"unwire/captures"
	"unwire/cmd/internal/term"
	"unwire/decode"
	"unwire/decode/diff"
	"unwire/decode/score"
	"unwire/replay"
	"unwire/schema"
)

// The demo's edit: another prompt in the first frame of the agent's stream.
const (
	demoEditPath   = "run_request.action.user_message_action.user_message.text"
	demoEditPrompt = "Say hello."
)

// demoWidth is the width of the demo's report where no terminal tells it.
const demoWidth = 118

// A demoReport prints what the demo found, a section for each step of the loop.
type demoReport struct {
	app    *app
	file   string
	server *demoServer

	store  *captures.Store
	defs   *schema.Schema
	stream *decode.Exchange // the agent's stream
}

func (r *demoReport) print(ctx context.Context, clients []string) error {
	var err error
	if r.store, err = openCapture(r.file); err != nil {
		return err
	}
	defer r.store.Close()
	if r.defs, err = loadDefinitions(""); err != nil {
		return err
	}
	fmt.Fprintf(r.app.out, "unwire demo: real clients, a recording proxy and a stand-in of the API, all on this machine.\n"+
		"The live API was never asked: what the stand-in says was reconstructed.\n")
	for _, section := range []func(context.Context) error{
		func(ctx context.Context) error { return r.recorded(ctx, clients) },
		r.decoded, r.extracted, r.inferred, r.checked, r.replayed,
	} {
		if err := section(ctx); err != nil {
			return err
		}
	}
	r.next()
	return nil
}

func (r *demoReport) title(name, format string, args ...any) {
	fmt.Fprintf(r.app.out, "\n%s  %s\n", r.app.out.Bold(name), fmt.Sprintf(format, args...))
}

func (r *demoReport) width() int {
	if w := r.app.out.Width; w > 40 {
		return min(w, 160)
	}
	return demoWidth
}

// line prints a line that is cut to the screen's width.
func (r *demoReport) line(w io.Writer, s string) {
	fmt.Fprintf(w, "  %s\n", cutLine(term.Clean(s), r.width()-2))
}

func cutLine(s string, width int) string {
	runes := []rune(s)
	if len(runes) <= width {
		return s
	}
	return string(runes[:width-1]) + "…"
}

// recorded lists the exchanges.
func (r *demoReport) recorded(ctx context.Context, clients []string) error {
	r.title("1 RECORDED", "%s, with %s", r.file, strings.Join(clients, ", "))
	lines, err := listExchanges(ctx, r.store)
	if err != nil {
		return err
	}
	for _, l := range lines {
		r.line(r.app.out, fmt.Sprintf("#%d  %-40s %-14s %-5s HTTP/%s  %s %d↑ %d↓ frames  %s  %.0f ms",
			l.ID, l.what(), l.Protocol, l.Codec, l.HTTP, pad(l.verdict(), 18), l.FramesUp, l.FramesDown, pad(byteSize(l.BytesUp+l.BytesDown)+" bytes", 11), l.DurationMS))
		if r.stream == nil && l.Protocol == decode.ConnectStream && l.FramesUp > 1 {
			if r.stream, err = decode.Decode(ctx, r.store, l.ID, decode.Options{}); err != nil {
				return err
			}
		}
	}
	if r.stream == nil {
		return fmt.Errorf("%s holds no bidirectional stream", r.file)
	}
	return nil
}

func pad(s string, n int) string { return s + strings.Repeat(" ", max(0, n-len([]rune(s)))) }

// decoded lists the stream's frames, runs of the same kind on one line.
func (r *demoReport) decoded(context.Context) error {
	up := 0
	for i := range r.stream.Frames {
		if r.stream.Frames[i].Up() {
			up++
		}
	}
	r.title("2 DECODED", "#%d %s/%s: %d frames up, %d down, on one stream", r.stream.ID, r.stream.Service, r.stream.RPC, up, len(r.stream.Frames)-up)
	for _, g := range r.groups() {
		span := strconv.Itoa(g.first)
		if g.last > g.first {
			span = fmt.Sprintf("%d–%d", g.first, g.last)
		}
		what := g.path
		if g.text != "" {
			what += " " + strconv.Quote(g.text)
		}
		r.line(r.app.out, fmt.Sprintf("%s %-6s %6.1f ms  %s", g.arrow, span, g.ms, what))
	}
	return nil
}

// A frameGroup is a run of frames of one direction that say the same thing on.
type frameGroup struct {
	arrow       string
	first, last int
	ms          float64
	path, text  string
}

func (r *demoReport) groups() []frameGroup {
	var out []frameGroup
	for i := range r.stream.Frames {
		f := &r.stream.Frames[i]
		g := frameGroup{arrow: arrow(f.Dir), first: f.Seq, last: f.Seq, ms: millis(f.T)}
		if f.End != nil {
			g.path = strings.Join(endLines(f.End), "; ")
		} else if f.Tree != nil {
			g.path, g.text = gist(decode.TreeJSON(f.Tree, frameType(r.defs, r.stream.Call, f.Dir)))
		}
		if n := len(out); n > 0 && out[n-1].arrow == g.arrow && out[n-1].path == g.path && g.text != "" {
			out[n-1].last, out[n-1].text = g.last, out[n-1].text+g.text
			continue
		}
		out = append(out, g)
	}
	return out
}

// gist is what a message is about: the path to where it branches, the names
// that are there, and its text if it holds but one.
func gist(fields []decode.Field) (path, text string) {
	var steps []string
	for len(fields) == 1 {
		f := fields[0]
		steps = append(steps, fieldName(&f))
		if s, ok := f.Value.(string); ok && f.Kind == "string" {
			return strings.Join(steps, "."), s
		}
		if f.Fields == nil {
			break
		}
		fields = f.Fields
	}
	path = strings.Join(steps, ".")
	if len(fields) > 1 {
		names := make([]string, len(fields))
		for i := range fields {
			names[i] = fieldGist(&fields[i])
		}
		path += " {" + strings.Join(names, ", ") + "}"
	}
	return path, ""
}

func fieldName(f *decode.Field) string {
	if f.Name != "" {
		return f.Name
	}
	return strconv.FormatUint(f.N, 10)
}

// fieldGist is a field's name, with its value where that is short.
func fieldGist(f *decode.Field) string {
	switch v := f.Value.(type) {
	case string:
		if f.Kind == "string" && v != "" {
			return fieldName(f) + ": " + strconv.Quote(term.Cut(v, 40))
		}
	case nil, []byte:
	default:
		return fmt.Sprintf("%s: %v", fieldName(f), v)
	}
	return fieldName(f)
}

// extracted prints the answer and why it is taken for one.
func (r *demoReport) extracted(context.Context) error {
	tr := score.Extract(r.stream, score.Options{})
	r.title("3 EXTRACTED", "the answer, without any schema")
	for _, l := range wrap(term.CleanText(tr.Answer), r.width()-4) {
		r.line(r.app.out, "  "+l)
	}
	seen := map[score.Role]bool{}
	for _, c := range tr.Candidates {
		if seen[c.Role] || c.Role == score.ID || c.Role == score.Metadata {
			continue
		}
		seen[c.Role] = true
		r.line(r.app.out, fmt.Sprintf("%-11s %.2f at %s %s: %s", c.Role, c.Score, dirArrow(c.Dir), c.Path, reasonLine(c.Reasons, 3)))
	}
	return nil
}

// wrap breaks text into lines of at most width characters.
func wrap(s string, width int) []string {
	var lines []string
	line := ""
	for _, word := range strings.Fields(s) {
		if line != "" && len([]rune(line))+1+len([]rune(word)) > width {
			lines = append(lines, line)
			line = ""
		}
		if line != "" {
			line += " "
		}
		line += word
	}
	if line == "" {
		return lines
	}
	return append(lines, line)
}

// inferred puts what the traffic alone gives beside the reconstruction.
func (r *demoReport) inferred(ctx context.Context) error {
	ev := schema.NewEvidence()
	err := eachExchange(ctx, r.file, ev.AddExchange)
	if err != nil {
		return err
	}
	in, err := schema.Infer(ev, schema.Options{})
	if err != nil {
		return err
	}
	var pairs []schema.Pair
	for svc := range in.Schema.Services() {
		for i := range svc.Methods().Len() {
			m := svc.Methods().Get(i)
			if ref := r.defs.Method(string(svc.FullName()), string(m.Name())); ref != nil {
				pairs = append(pairs, schema.Pair{Inferred: m.Input(), Reference: ref.Input()}, schema.Pair{Inferred: m.Output(), Reference: ref.Output()})
			}
		}
	}
	agreement := schema.Agree(pairs...)
	r.title("4 INFERRED", "from the traffic alone, beside proto/: %s", agreement)
	method := in.Schema.Method(r.stream.Service, r.stream.RPC)
	if method == nil {
		return fmt.Errorf("%s/%s was not inferred", r.stream.Service, r.stream.RPC)
	}
	ref := r.defs.Method(r.stream.Service, r.stream.RPC)
	left := fieldLines(method.Output())
	right := fieldLines(ref.Output())
	for _, number := range left.numbers {
		r.line(r.app.out, fmt.Sprintf("%-50s %s", left.text[number], right.text[number]))
	}
	for i, d := range agreement.Disagreements {
		if d.Compatible {
			continue
		}
		if i > 8 {
			break
		}
		r.line(r.app.out, fmt.Sprintf("differs: %s: %s inferred, %s in proto/", d.Reference, d.Inferred, d.Expected))
	}
	return nil
}

// checked prints the coverage of the built-in definitions.
func (r *demoReport) checked(ctx context.Context) error {
	report, err := checkCaptures(ctx, r.defs, []string{r.file})
	if err != nil {
		return err
	}
	r.title("5 CHECKED", "the traffic against proto/")
	r.line(r.app.out, reportSummary(report))
	return nil
}

// replayed sends the stream again with another prompt.
func (r *demoReport) replayed(ctx context.Context) error {
	to, err := r.server.target()
	if err != nil {
		return err
	}
	roots, err := upstreamRoots(r.server.server.CAFile())
	if err != nil {
		return err
	}
	edit, err := replay.ParseEdit("set", demoEditPath+"="+demoEditPrompt)
	if err != nil {
		return err
	}
	credentials, err := replay.LoadCredentials("", func(name string) string {
		if name == replay.EnvToken {
			return r.server.token
		}
		return ""
	})
	if err != nil {
		return err
	}
	r.title("6 REPLAYED", "with --set %s=%q", demoEditPath, demoEditPrompt)
	for _, edits := range [][]replay.Edit{nil, {edit}} {
		plan, err := replay.NewPlan(ctx, r.store, r.stream.ID, replay.Options{
			To: to, Edits: edits, Schema: r.defs, Roots: roots, Credentials: credentials, OmitSecrets: true,
		})
		if err != nil {
			return err
		}
		result, err := r.app.send(ctx, plan, "")
		if err != nil {
			return err
		}
		name := "edited    "
		if edits == nil {
			name = "unedited  "
		}
		r.line(r.app.out, name+verdictLine(result))
		if edits != nil {
			r.changes(result.Diff)
		}
	}
	return nil
}

// changes prints the first differences that count.
func (r *demoReport) changes(changes []diff.Change) {
	const most = 6
	shown, ignored := 0, 0
	for _, c := range changes {
		if c.Ignored != "" {
			ignored++
			continue
		}
		if shown++; shown <= most {
			r.line(r.app.out, fmt.Sprintf("%-8s %-18s %s → %s", c.Op, c.Path, cutLine(valueText(c.Old), 36), cutLine(valueText(c.New), 36)))
		}
	}
	if shown > most {
		r.line(r.app.out, fmt.Sprintf("… and %d more; %d ignored as volatile", shown-most, ignored))
	}
}

func (r *demoReport) next() {
	fmt.Fprintf(r.app.out, "\n%s  %s stays here; try\n", r.app.out.Bold("NEXT"), r.file)
	for _, c := range []string{
		fmt.Sprintf("show %s %d", r.file, r.stream.ID),
		fmt.Sprintf("schema infer -o inferred/ %s", r.file),
		fmt.Sprintf("replay %s %d --dry-run", r.file, r.stream.ID),
	} {
		fmt.Fprintf(r.app.out, "  %s %s\n", os.Args[0], c)
	}
}

// declarations are the fields of a message, as text by number.
type declarations struct {
	numbers []protoreflect.FieldNumber
	text    map[protoreflect.FieldNumber]string
}

func fieldLines(md protoreflect.MessageDescriptor) declarations {
	d := declarations{text: map[protoreflect.FieldNumber]string{}}
	for i := range md.Fields().Len() {
		fd := md.Fields().Get(i)
		typ := fd.Kind().String()
		if fd.Message() != nil {
			typ = string(fd.Message().Name())
		} else if fd.Enum() != nil {
			typ = string(fd.Enum().Name())
		}
		if fd.IsList() {
			typ = "repeated " + typ
		}
		d.numbers = append(d.numbers, fd.Number())
		d.text[fd.Number()] = fmt.Sprintf("%s %s = %d", typ, fd.Name(), fd.Number())
	}
	return d
}
