package democmd

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"

	"unwire/cmd/internal/app"
	"unwire/cmd/internal/contract"
	"unwire/cmd/internal/query"
	"unwire/cmd/internal/render"
	"unwire/cmd/internal/render/replaytext"
	"unwire/cmd/internal/render/schematext"
	"unwire/cmd/internal/term"
	"unwire/decode"
	"unwire/decode/diff"
	"unwire/decode/transcript"
	"unwire/proto"
	"unwire/replay"
	"unwire/replay/credential"
	"unwire/replay/edit"
	"unwire/replay/outbound"
	"unwire/schema"
	"unwire/schema/infer"
	"unwire/schema/infer/agreement"
)

// The demo replays the agent's stream with an edit: this field of the first frame gets another prompt.
const (
	demoEditPath   = "run_request.action.user_message_action.user_message.text"
	demoEditPrompt = "Say hello."
)

// demoWidth is the width of the demo's report, in columns, if stdout is not a terminal.
const demoWidth = 118

// A demoReport prints what the demo found, in one section for each step: recorded, decoded, extracted,
// inferred, checked, replayed.
type demoReport struct {
	// app is the running program, whose standard output gets the report.
	app *app.App

	// file is the path of the recorded capture.
	file string

	// server is the stand-in to which the edited request is sent.
	server *demoServer

	// store is the opened capture.
	store *query.Capture

	// defs are the built-in definitions, with which the inferred ones are compared.
	defs *schema.Schema

	// stream is the recorded bidirectional stream that the sections are about.
	stream *decode.Exchange
}

// print prints all sections. clients are the names of the clients that were recorded, and note says why
// another client was not; "" for none.
func (r *demoReport) print(ctx context.Context, clients []string, note string) error {
	var err error
	if r.store, err = r.app.OpenCapture(r.file); err != nil {
		return err
	}
	defer r.store.Close()
	if r.defs, err = r.app.BuiltIn(ctx); err != nil {
		return err
	}
	r.app.Out.Sayf("unwire demo runs real clients, a recording proxy and a local server that imitates an API.\n" +
		"All of them run on this machine. unwire did not contact the live API.\n")
	for _, section := range []func(context.Context) error{
		func(ctx context.Context) error { return r.recorded(ctx, clients, note) },
		r.decoded, r.extracted, r.inferred, r.checked, r.replayed,
	} {
		if err := section(ctx); err != nil {
			return err
		}
	}
	r.next()
	return nil
}

// title prints the heading of a section.
func (r *demoReport) title(name, format string, args ...any) {
	line := r.app.Out.Wrap(name + "  " + fmt.Sprintf(format, args...) + "\n")
	fmt.Fprint(r.app.Out, "\n"+strings.Replace(line, name, r.app.Out.Bold(name), 1))
}

// width returns the width of the report in columns: that of the terminal, but at most 160.
func (r *demoReport) width() int {
	if w := r.app.Out.Width; w > 40 {
		return min(w, 160)
	}
	return demoWidth
}

// line prints s as one line, truncated to the width of the report.
func (r *demoReport) line(w io.Writer, s string) {
	fmt.Fprintf(w, "  %s\n", render.CutLine(term.Clean(s), r.width()-2))
}

// paragraph prints s, indented, and wrapped to the width of the terminal.
func (r *demoReport) paragraph(s string) {
	var text strings.Builder
	r.app.Out.Paragraph(&text, "  ", "", s)
	fmt.Fprint(r.app.Out, text.String())
}

// recorded prints the list of recorded exchanges, and sets stream.
func (r *demoReport) recorded(ctx context.Context, clients []string, note string) error {
	text := fmt.Sprintf("the calls of the client %s, in the capture %s", strings.Join(clients, " and the client "), r.file)
	if note != "" {
		text += ". " + note
	}
	r.title("1 RECORDED", "%s", text)
	list, err := r.store.List(ctx)
	if err != nil {
		return err
	}

	// The exchange is converted as for ls --json, so that both show the same values.
	rows := make([][]string, len(list.Exchanges))
	for i := range list.Exchanges {
		l := contract.NewExchange(&list.Exchanges[i], nil)
		rows[i] = []string{
			fmt.Sprintf("#%d", l.ID), render.CallName(l), string(l.Protocol), l.Codec, "HTTP/" + l.HTTP, render.Ending(l),
			fmt.Sprintf("%d sent, %d received", l.FramesUp, l.FramesDown), app.ByteSize(l.BytesUp + l.BytesDown),
		}
	}
	err = r.table(true, []term.Column{
		{Name: "ID"},
		{Name: "CALL", Shorten: term.Name, Min: 24},
		{Name: "PROTOCOL", Drop: 1},
		{Name: "CODEC", Drop: 3},
		{Name: "HTTP", Drop: 4},
		{Name: "CODE"},
		{Name: "FRAMES"},
		{Name: "BYTES", Drop: 2},
	}, rows)
	if err != nil {
		return err
	}

	// The later steps of the demo need a bidirectional stream.
	for _, l := range list.Exchanges {
		if r.stream == nil && l.Protocol == decode.ConnectStream && l.FramesUp > 1 {
			if r.stream, err = decode.Decode(ctx, r.store, l.ID, decode.Options{}); err != nil {
				return err
			}
		}
	}
	if r.stream == nil {
		return fmt.Errorf("%s contains no bidirectional stream", r.file)
	}
	return nil
}

// table prints aligned rows, with a header if header is set, even if stdout is not a terminal.
func (r *demoReport) table(header bool, columns []term.Column, rows [][]string) error {
	out := *r.app.Out
	out.TTY, out.Width = true, r.width()
	return out.Table(term.Table{Columns: columns, Rows: rows, Indent: "  ", NoHeader: !header})
}

// mostGroups is the largest number of groups of similar frames that the demo lists; lastGroups of them
// are from the end of the stream.
const (
	mostGroups = 30
	lastGroups = 8
)

// decoded prints the frames of the stream; consecutive frames of the same kind share one line.
func (r *demoReport) decoded(context.Context) error {
	up := 0
	for i := range r.stream.Frames {
		if r.stream.Frames[i].Up() {
			up++
		}
	}
	r.title("2 DECODED", "call #%d, %s/%s: one stream with %s to the server and %d to the client", r.stream.ID, r.stream.Service, r.stream.RPC, app.Counted(up, "frame"), len(r.stream.Frames)-up)
	r.line(r.app.Out, "FRAMES       TIME  CONTENT")
	groups := render.FrameGroups(r.stream, r.defs)
	for i, g := range groups {
		if skipped := len(groups) - mostGroups; skipped > 0 && i >= mostGroups-lastGroups && i < len(groups)-lastGroups {
			if i == mostGroups-lastGroups {
				r.line(r.app.Out, "… "+app.Counted(skipped, "more group")+" of similar frames")
			}
			continue
		}
		r.line(r.app.Out, fmt.Sprintf("%s %-6s %6.1f ms  %s", g.Arrow, g.Span(), g.Milliseconds, g.Summary))
	}
	return nil
}

// mostAnswer is the largest number of lines that the demo prints of the extracted answer.
const mostAnswer = 3

// extracted prints the model's answer that was found in the stream without a schema, and for each role
// the best candidate with the reasons for its score.
func (r *demoReport) extracted(context.Context) error {
	tr := transcript.Extract(r.stream, transcript.Options{})
	r.title("3 EXTRACTED", "the answer of the chat, which unwire found without a schema. Below it: for each role, the text with the best score")
	for i, l := range wrap(term.CleanText(tr.Answer), r.width()-4) {
		if i == mostAnswer {
			r.line(r.app.Out, "  …")
			break
		}
		r.line(r.app.Out, "  "+l)
	}
	seen := map[transcript.Role]bool{}
	for _, c := range tr.Candidates {
		if seen[c.Role] || c.Role == transcript.ID || c.Role == transcript.Metadata {
			continue
		}
		seen[c.Role] = true
		r.line(r.app.Out, fmt.Sprintf("%s, score %.2f, %s: %s", c.Role, c.Score, render.Source(c.Dir, c.Path, c.Frames), render.Reasons(c.Reasons, 3)))
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

// inferred prints, side by side, the definitions inferred from the traffic alone and the built-in ones.
func (r *demoReport) inferred(ctx context.Context) error {
	ev := infer.NewEvidence()
	err := r.app.EachExchange(ctx, r.file, func(ex *decode.Exchange, _ bool) error { return ev.AddExchange(ex) })
	if err != nil {
		return err
	}
	in, err := infer.Infer(ev, infer.Options{Profile: proto.Profile()})
	if err != nil {
		return err
	}

	// Only methods that both sides define can be compared.
	var pairs []agreement.Pair
	for svc := range in.Schema.Services() {
		for i := range svc.Methods().Len() {
			m := svc.Methods().Get(i)
			if ref := r.defs.Method(string(svc.FullName()), string(m.Name())); ref != nil {
				pairs = append(pairs, agreement.Pair{Inferred: m.Input(), Reference: ref.Input()}, agreement.Pair{Inferred: m.Output(), Reference: ref.Output()})
			}
		}
	}
	result := agreement.Of(pairs...)
	r.title("4 INFERRED", "field types. Left: what unwire inferred from the traffic alone; right: the definitions in proto/. %s", result)
	err = r.table(false, []term.Column{
		{Name: "PATH"},
		{Name: "INFERRED", Shorten: term.End, Min: 20},
		{Name: "COMPARISON"},
		{Name: "DEFINITION", Shorten: term.End, Min: 20},
	}, fieldPairs(in.Schema, r.defs, r.stream.Call))
	r.disagreements(result)
	return err
}

// mostDiffering is the largest number of differing fields that the demo lists.
const mostDiffering = 3

// disagreements prints the fields whose inferred type contradicts the built-in definitions.
func (r *demoReport) disagreements(a *agreement.Result) {
	n := 0
	met := map[string]bool{}
	for _, d := range a.Disagreements {
		if d.Compatible || met[d.Reference] {
			continue
		}
		met[d.Reference] = true
		if n++; n <= mostDiffering {
			text := fmt.Sprintf("differs: %s was inferred as %s, but is %s in proto/", d.Reference, d.Inferred, d.Expected)
			if d.Expected == "" {
				text = fmt.Sprintf("differs: %s was inferred with a field %d (%s), which it does not have in proto/", d.Reference, d.Number, d.Inferred)
			}
			r.paragraph(text)
		}
	}
	if n > mostDiffering {
		r.line(r.app.Out, fmt.Sprintf("… and %d more that differ", n-mostDiffering))
	}
}

// checked prints how far the built-in definitions cover the recorded traffic.
func (r *demoReport) checked(ctx context.Context) error {
	c, err := r.app.OpenCapture(r.file)
	if err != nil {
		return err
	}
	defer c.Close()
	coverage := query.NewCoverage(r.defs, proto.Profile())
	if err := coverage.Add(ctx, c, query.ParseAddress(r.file), r.app.Remark); err != nil {
		return err
	}
	r.title("5 CHECKED", "whether the definitions in proto/ describe the recorded traffic")
	for _, l := range strings.SplitAfter(schematext.CheckSummary(coverage.Report()), "; ") {
		r.line(r.app.Out, strings.TrimSuffix(strings.TrimSpace(l), ";"))
	}
	return nil
}

// replayed sends the stream to the stand-in twice, unedited and with another prompt, and prints how the
// answers differ from the recorded ones.
func (r *demoReport) replayed(ctx context.Context) error {
	to, err := r.server.target()
	if err != nil {
		return err
	}
	roots, err := app.UpstreamRoots(r.server.server.CAFile)
	if err != nil {
		return err
	}
	otherPrompt, err := edit.Parse("set", demoEditPath+"="+demoEditPrompt)
	if err != nil {
		return err
	}

	// The credentials are those of the demo's own server, not of the user's environment.
	credentials, err := credential.Resolver{Getenv: func(name string) string {
		if name == credential.EnvToken {
			return r.server.token
		}
		return ""
	}}.Load("")
	if err != nil {
		return err
	}
	r.title("6 REPLAYED", "the recorded request, once unedited, and once edited with --set %s=%q", demoEditPath, demoEditPrompt)

	// The unedited replay shows that the answers agree; the edited one, how they differ.
	for _, edits := range [][]edit.Edit{nil, {otherPrompt}} {
		changes := replay.Changes{To: to, Edits: edits}
		options := replay.Options{Schema: r.defs, Policy: outbound.Policy{Roots: roots}, Credentials: credentials, OmitSecrets: true}
		plan, err := r.store.Plan(ctx, r.stream.ID, changes, options, false)
		if err != nil {
			return err
		}
		result, err := r.app.Send(ctx, plan, "")
		if err != nil {
			return err
		}
		name := "edited: "
		if edits == nil {
			name = "unedited: "
		}
		r.paragraph(name + replaytext.Comparison(result))
		if edits != nil {
			r.changes(result.Diff)
		}
	}
	return nil
}

// orNone formats a value of a difference; nil, for a missing value, becomes a dash.
func orNone(v any) string {
	if v == nil {
		return "–"
	}
	return render.ValueText(v)
}

// changes prints the first five differences between the recorded and the new answer, without volatile
// ones such as times.
func (r *demoReport) changes(changes []diff.Change) {
	const most = 5
	sides := render.DiffOptions{A: "recording", B: "replay"}
	shown, ignored := 0, 0
	// The old and the new value share what the other columns leave of the line.
	value := min(28, (r.width()-len("  ")-17-len("  ")-34-len("  ")-len(" > "))/2)
	for _, c := range changes {
		if c.Ignored != "" {
			ignored++
			continue
		}
		if shown++; shown <= most {
			r.line(r.app.Out, fmt.Sprintf("%-17s  %-34s  %s → %s", sides.OpText(c.Op), render.Place(c.Path), render.CutLine(orNone(c.Old), value), render.CutLine(orNone(c.New), value)))
		}
	}
	if shown > most {
		r.line(r.app.Out, fmt.Sprintf("… and %s. unwire ignored %s in IDs and times", app.Counted(shown-most, "more difference"), app.Counted(ignored, "difference")))
	}
}

// next prints commands to try next.
func (r *demoReport) next() {
	fmt.Fprintf(r.app.Out, "\n%s  The capture is in %s. Try these commands:\n", r.app.Out.Bold("NEXT"), r.file)
	for _, c := range []string{
		fmt.Sprintf("show %s %d", r.file, r.stream.ID),
		fmt.Sprintf("schema infer -o inferred/ %s", r.file),
		fmt.Sprintf("replay %s %d --dry-run", r.file, r.stream.ID),
	} {
		fmt.Fprintf(r.app.Out, "  %s %s\n", os.Args[0], c)
	}
}
