package inspect

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"unwire/captures"
	"unwire/cmd/internal/app"
	"unwire/cmd/internal/render"
	"unwire/cmd/internal/term"
	"unwire/decode"
	"unwire/decode/conversation"
	"unwire/decode/envelope"
	"unwire/decode/field"
	"unwire/decode/kind"
	"unwire/decode/wire"
)

func showCommand(a *app.App) *cobra.Command {
	var f showFlags
	var parts, follow bool
	cmd := &cobra.Command{
		Use:   "show F.uwc ID",
		Short: "Show one exchange: headers, then every frame decoded and annotated",
		Long: `show prints an exchange's headers and its frames in the order in which they
passed: ↑ client to server, ↓ server to client. Fields have names where the
definitions know the method; a reading that is not certain has its probability.

Where a bidirectional stream was carried in several calls (RunSSE and its
BidiAppend calls), the exchange that asked for the server's half shows all of it
as the one stream that it is, with what was missing, repeated or out of order
(but not with --follow, which shows each call as it comes).`,
		Example: "  unwire show F.uwc 2\n  unwire show F.uwc#2/down/4\n  unwire show --json F.uwc 2 | jq -r .tree\n  unwire show --follow F.uwc 2\n  unwire show --hex F.uwc#2/up/0",
		Args:    app.ArgsBetween(1, "F.uwc", "ID"),
		RunE: func(cmd *cobra.Command, args []string) error {
			addr, err := app.AddressArgs(args, follow || f.choices)
			if err != nil {
				return err
			}
			if f.choices {
				if addr.Exchange != 0 || len(f.as) > 0 || f.hex || follow || f.explain != "" {
					return app.Usagef("--choices goes with a capture, and with --json")
				}
				return listReadings(cmd.Context(), a, addr.File, f.json)
			}
			if f.explain != "" && (f.hex || follow) {
				return app.Usagef("--explain goes neither with --hex nor with --follow")
			}
			if follow {
				if addr.Frame >= 0 || f.all && !f.hex || f.hex && f.json {
					return app.Usagef("--follow goes with a capture or an exchange of it; --hex is not for --json, and --all goes with it")
				}
				return followShow(cmd.Context(), a, addr, f)
			}
			addr.Part = addr.Part || parts
			return show(cmd.Context(), a, addr, f)
		},
	}
	cmd.Flags().BoolVar(&f.json, "json", false, "a JSON object a frame")
	cmd.Flags().BoolVar(&f.hex, "hex", false, "the bytes beside the fields; values are cut")
	cmd.Flags().BoolVar(&f.all, "all", false, "with --hex: every byte of every value")
	cmd.Flags().BoolVar(&follow, "follow", false, "while it is recorded, until it has ended; without an ID, all that comes")
	cmd.Flags().StringArrayVar(&f.as, "as", nil, "read a field so: 1.2:string, or down/1.2:string; remembered in the capture for the method, until 1.2:auto")
	cmd.Flags().BoolVar(&f.once, "once", false, "with --as: for this once, not remembered")
	cmd.Flags().BoolVar(&f.choices, "choices", false, "list what --as has had remembered in the capture")
	cmd.Flags().StringVar(&f.explain, "explain", "", "why the field at this path is read as it is: 1.2, or down/1.2")
	cmd.Flags().BoolVar(&parts, "parts", false, "the call alone, where several calls are one stream")
	cmd.Flags().StringVar(&f.dir, "proto", "", "folder of .proto files for names (default: the built-in ones; none: no names)")
	return cmd
}

type showFlags struct {
	dir            string
	json, hex, all bool
	as             []string // choices
	once, choices  bool
	explain        string
}

func show(ctx context.Context, a *app.App, addr app.Address, o showFlags) error {
	if o.hex && o.json || o.all && !o.hex {
		return app.Usagef("--hex is for people, not --json, and --all goes with it")
	}
	chosen, err := parseShowAs(o)
	if err != nil {
		return err
	}
	defs, err := app.LoadDefinitions(ctx, o.dir)
	if err != nil {
		return err
	}
	store, err := app.OpenCapture(addr.File)
	if err != nil {
		return err
	}
	defer store.Close()
	at, readErr := conversation.Resolve(ctx, store, addr.Exchange, addr.Part)
	ex := at.Exchange
	if ex == nil {
		return readErr
	}
	frames := ex.Frames
	if addr.Frame >= 0 {
		f, err := frameAt(ex, addr)
		if err != nil {
			return err
		}
		frames = []decode.Frame{*f}
	}
	v := viewsOf(ctx, store, ex, defs)
	if err := choose(ctx, a, store, ex, v, chosen, frames, o.once); err != nil {
		return err
	}
	if o.explain != "" {
		return explainFrames(a, ex, frames, v, o)
	}
	if o.json {
		for i := range frames {
			if err := a.PrintJSON(newFrameLine(at, &frames[i], v)); err != nil {
				return err
			}
		}
		return undecoded(a, ex, readErr)
	}
	w := bufio.NewWriter(a.Out)
	if addr.Frame < 0 {
		printHead(a, w, at)
	}
	for i := range frames {
		printRemarked(a, w, at, &frames[i], v, o)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	return undecoded(a, ex, readErr)
}

// parseShowAs reads --as, where bytes as a whole are what the protocol says.
func parseShowAs(o showFlags) ([]chosenReading, error) {
	whole, list, err := parseChosenAll(o.as)
	if whole != "" {
		return nil, app.Usagef("--as is a field and its type here, as in 1.2:string, not %q", whole)
	}
	if err == nil && o.once && len(list) == 0 {
		err = app.Usagef("--once goes with --as")
	}
	return list, err
}

// explainFrames says why a field of frames is read as it is.
func explainFrames(a *app.App, ex *decode.Exchange, frames []decode.Frame, v *views, o showFlags) error {
	where, err := parseChosen(o.explain + ":" + kind.Auto)
	if err != nil {
		return app.Usagef("--explain wants a path, as 1.2 or down/1.2, not %q", o.explain)
	}
	done := [2]bool{}
	found := false
	for i := range frames {
		f := &frames[i]
		if f.Tree == nil || done[f.Dir&1] || where.given && where.dir != f.Dir {
			continue
		}
		list := explain(f.Tree, v.of(ex.Call, f.Dir), where.Path, v.pool.Frames[f.Dir&1])
		if len(list) == 0 {
			continue
		}
		done[f.Dir&1], found = true, true // pooled: the same for all frames
		for k := range list {
			list[k].Dir = f.Dir.String()
		}
		of := fmt.Sprintf("%s/%d, %s", f.Dir, f.Seq, decode.MethodOf(&ex.Exchange, ex.Call))
		if err := printExplanations(a, a.Out, list, of, o.json); err != nil {
			return err
		}
	}
	if !found {
		return app.Fail(app.ExitUsage, fmt.Errorf("--explain %s: no message here has this field", o.explain),
			"paths are field numbers joined by dots, as in 1.2 or 1.2[0].5")
	}
	return nil
}

// undecoded is the error for what could not be decoded, after the rest was
// shown. What was cut off because the call ended is only remarked on: the last
// frame of a call that broke off, and that of a client whose server had said
// that it was done; and so is what was not to be stored.
func undecoded(a *app.App, ex *decode.Exchange, readErr error) error {
	if readErr != nil || ex.Err == nil {
		return readErr
	}
	over := ex.Outcome != captures.Complete || ex.Shortened()
	// said by its end, or lost without one
	over = over || ex.Protocol == decode.ConnectStream && ex.Status != 0
	for i := range ex.Frames {
		over = over || !ex.Frames[i].Up() && ex.Frames[i].End != nil
	}
	for i := range ex.Frames {
		f := &ex.Frames[i]
		expected := f.Partial && over && (f.Up() || ex.Outcome != captures.Complete || ex.Shortened())
		if f.Err != nil && !expected {
			return ex.Err
		}
	}
	if !over || !errors.Is(ex.Err, io.ErrUnexpectedEOF) {
		return ex.Err
	}
	a.Say("unwire: %s", term.CleanText(ex.Err.Error()))
	return nil
}

func frameAt(ex *decode.Exchange, addr app.Address) (*decode.Frame, error) {
	if addr.Frame < 0 {
		return nil, app.Fail(app.ExitUsage, fmt.Errorf("%s: which frame?", addr), fmt.Sprintf("name it as %s/down/0", addr))
	}
	if f := ex.Frame(addr.Dir, addr.Frame); f != nil {
		return f, nil
	}
	n := 0
	for i := range ex.Frames {
		if ex.Frames[i].Dir == addr.Dir {
			n++
		}
	}
	return nil, app.Fail(app.ExitInput, fmt.Errorf("%s: no such frame: %d %s", addr, n, addr.Dir),
		fmt.Sprintf("'unwire show %s %d' lists them; they are numbered from 0", addr.File, addr.Exchange))
}

// A frameLine is a line of `unwire show --json`.
type frameLine struct {
	decode.Line
	// the message's, from the definitions
	Type string `json:"type,omitempty"`
	// of a conversation in pieces: the one that carried it
	Exchange int64 `json:"exchange,omitempty"`
	// and the number that it had there
	Number *int64 `json:"append_seqno,omitempty"`
	// and what was not as in a stream
	Anomalies []string `json:"anomalies,omitempty"`

	Status *statusLine `json:"status,omitempty"` // the error that ends the call
}

// A statusLine is an error with its details decoded.
type statusLine struct {
	Code    string         `json:"code"`
	Message string         `json:"message"`
	Details []statusDetail `json:"details"`
}

type statusDetail struct {
	envelope.Detail
	Tree []*field.Field `json:"tree"`
}

func newStatusLine(e *envelope.Error, v *views) *statusLine {
	s := &statusLine{e.Code, e.Message, []statusDetail{}}
	for _, d := range e.Details {
		s.Details = append(s.Details, statusDetail{d, v.fieldsOf(wire.Parse(d.Value, wire.Options{}), d.Type)})
	}
	return s
}

func newFrameLine(ex conversation.Resolved, f *decode.Frame, v *views) frameLine {
	by := v.of(ex.Call, f.Dir)
	md := by.Type
	l := frameLine{Line: by.Line(f)}
	if ex.Joined != nil {
		o := ex.Joined.OriginOf(f)
		if l.Exchange = o.Exchange; o.Number >= 0 {
			l.Number = &o.Number
		}
		before, after := anomaliesOf(ex.Joined, f)
		l.Anomalies = append(before, after...)
	}
	if md != nil && f.Tree != nil {
		l.Type = string(md.FullName())
	}
	if f.End != nil && f.End.Error != nil {
		l.Status = newStatusLine(f.End.Error, v)
	}
	return l
}

// printHead prints what is known of the exchange besides its frames.
func printHead(a *app.App, w io.Writer, ex conversation.Resolved) {
	fmt.Fprintf(w, "%s\n", a.Out.Bold(term.Clean(ex.Method+" "+ex.URL)))
	fmt.Fprintf(w, "exchange %d · %s", ex.ID, ex.Protocol)
	if ex.Codec != "" {
		fmt.Fprintf(w, " (%s)", term.Clean(ex.Codec))
	}
	fmt.Fprintf(w, " · HTTP/%s · status %d", term.Clean(ex.HTTP), ex.Status)
	if ex.Code != "" {
		fmt.Fprintf(w, " · %s", term.Clean(ex.Code))
	}
	fmt.Fprintf(w, " · %s · %s\n", outcomeWord(ex.Outcome), ex.Duration.Round(10*time.Microsecond))
	fmt.Fprintf(w, "%s · %s → %s", ex.Started.Format("2006-01-02 15:04:05.000 -07:00"), term.Clean(ex.Client), term.Clean(ex.Server))
	if ex.TLS.Version != "" {
		fmt.Fprintf(w, " · TLS %s %s", term.Clean(ex.TLS.Version), term.Clean(ex.TLS.Cipher))
	}
	if ex.TLS.Unverified {
		fmt.Fprintf(w, " · certificate %s", notVerified)
	}
	fmt.Fprintln(w)
	if ex.Error != "" {
		fmt.Fprintf(w, "%s %s\n", a.Out.Red("error:"), term.Clean(ex.Error))
	}
	if isRefusedCertificate(ex.Error) {
		fmt.Fprintf(w, "hint: %s\n", pinningHint)
	}
	if ex.Message != "" {
		fmt.Fprintf(w, "message: %s\n", term.Clean(ex.Message))
	}
	for _, section := range []struct {
		arrow string
		name  string
		lines captures.Headers
	}{
		{"↑", "", ex.RequestHeaders},
		{"↑", "trailer ", ex.RequestTrailers},
		{"↓", "", ex.ResponseHeaders},
		{"↓", "trailer ", ex.ResponseTrailers},
	} {
		printHeaders(a, w, section.arrow, section.name, section.lines)
	}
	fmt.Fprintln(w)
	switch {
	case ex.Joined != nil:
		printJoined(a, w, ex.Joined)
	case ex.Head != 0:
		fmt.Fprintf(w, "%s\n\n", a.Out.Dim(fmt.Sprintf("a piece of the conversation that goes by exchange %d", ex.Head)))
	}
}

func printHeaders(a *app.App, w io.Writer, arrow, name string, lines captures.Headers) {
	for _, h := range lines {
		fmt.Fprintf(w, "%s %s\n", arrow, a.Out.Dim(name+term.Clean(h.Name)+": "+term.Clean(h.Value)))
	}
}

// printRemarked prints a frame with what is remarked on it.
func printRemarked(a *app.App, w io.Writer, ex conversation.Resolved, f *decode.Frame, v *views, o showFlags) {
	var before, after []string
	if ex.Joined != nil {
		before, after = anomaliesOf(ex.Joined, f)
	}
	for _, s := range before {
		fmt.Fprintf(w, "%s %s\n", render.Arrow(f.Dir), a.Out.Red(s))
	}
	printFrame(a, w, ex.Exchange, f, v, o)
	for _, s := range after {
		fmt.Fprintf(w, "    %s\n", a.Out.Red(s))
	}
}

func outcomeWord(o captures.Outcome) string {
	if o == captures.InFlight {
		return "in flight"
	}
	return string(o)
}

// printFrame prints one frame's line and what is in it.
func printFrame(a *app.App, w io.Writer, ex *decode.Exchange, f *decode.Frame, v *views, o showFlags) {
	by := v.of(ex.Call, f.Dir)
	md := by.Type
	head := fmt.Sprintf("%s %d", render.Arrow(f.Dir), f.Seq)
	about := []string{fmt.Sprintf("%.1f ms", app.Millis(f.T)), app.Counted(len(f.Raw), "byte")}
	if f.Encoding != "" {
		about = append(about, fmt.Sprintf("%s, %d inflated", f.Encoding, len(f.Data)))
	}
	if flags := f.Flags &^ envelope.Compressed; f.Framed && flags != 0 {
		about = append(about, flags.String())
	}
	if f.Event != "" {
		about = append(about, "event "+term.Clean(f.Event))
	}
	if f.Partial {
		about = append(about, "cut off")
	}
	if md != nil && f.Tree != nil && f.End == nil {
		about = append(about, string(md.FullName()))
	}
	fmt.Fprintf(w, "%s  %s\n", a.Out.Bold(head), a.Out.Dim(strings.Join(about, " · ")))
	if f.Err != nil {
		fmt.Fprintf(w, "    %s %s\n", a.Out.Red("error:"), term.Clean(f.Err.Error()))
	}
	switch {
	case o.hex:
		_ = render.HexFrame(a, w, f, by, o.all)
	case f.Tree != nil:
		_ = render.Fields(w, by.Fields(f.Tree), "    ")
		for _, in := range f.Inner {
			printInner(a, w, f, &in)
		}
	case len(f.Data) > 0 && f.End == nil:
		fmt.Fprintf(w, "    %s\n", term.Cut(term.Clean(string(f.Data)), 2000))
	}
	if f.End != nil {
		printEnd(w, f.End, v)
	}
}

// printInner prints a message that travels inside a field of the frame.
func printInner(a *app.App, w io.Writer, f *decode.Frame, in *decode.Inner) {
	fmt.Fprintf(w, "    %s\n", a.Out.Dim(fmt.Sprintf("in %s, as %s, %s:", f.Tree.PathOf(in.Node), in.Encoding, app.Counted(len(in.Data), "byte"))))
	if in.Tree == nil {
		fmt.Fprintf(w, "      %s\n", term.Cut(term.Clean(string(in.Data)), 400))
		return
	}
	_ = render.Fields(w, decode.View{}.Fields(in.Tree), "      ")
}

// printEnd prints what an end of stream or a unary error says, its details decoded.
func printEnd(w io.Writer, end *envelope.End, v *views) {
	lines := render.EndLines(end)
	fmt.Fprintf(w, "    %s\n", term.Clean(lines[0]))
	if end.Error == nil {
		return
	}
	for i := range end.Error.Details {
		d := &end.Error.Details[i]
		fmt.Fprintf(w, "    %s\n", term.Clean(lines[1+i]))
		t := wire.Parse(d.Value, wire.Options{})
		if len(d.Value) > 0 && t.Err() == nil {
			_ = render.Fields(w, v.fieldsOf(t, d.Type), "      ")
		}
	}
}
