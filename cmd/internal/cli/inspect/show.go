package inspect

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"unwire/captures"
	"unwire/cmd/internal/app"
	"unwire/cmd/internal/contract"
	"unwire/cmd/internal/options"
	"unwire/cmd/internal/query"
	"unwire/cmd/internal/render"
	"unwire/cmd/internal/term"
	"unwire/decode"
	"unwire/decode/conversation"
	"unwire/decode/kind"
)

// protoUsage is the help of --proto.
const protoUsage = "folder of .proto files, .proto file or descriptor set for names (default: what UNWIRE_PROTO names, the capture keeps or unwire.yaml names, or the built-in ones; none: no names)"

func showCommand(a *app.App) *cobra.Command {
	var f showFlags
	cmd := &cobra.Command{
		Use:   "show F.uwc ID",
		Short: "Show one exchange: headers, then every frame decoded and annotated",
		Long: `show prints an exchange's headers and its frames in the order in which they
passed: ↑ client to server, ↓ server to client. Fields have names where the
definitions know the method; a reading that is not certain has its probability.

On a terminal, frames that follow each other and are about the same are one line;
text that was sent in pieces is joined. --full shows every header and every field,
which is the default if the output is no terminal. Output longer than the screen goes through a pager:
UNWIRE_PAGER, PAGER, or less.

--format protojson or prototext prints frames by their definitions, for other
protobuf tools; 'unwire encode' reads it back. Fields that the definitions lack
are left out, and reported.

Where a bidirectional stream was carried in several calls (RunSSE and its
BidiAppend calls), the exchange that asked for the server's half shows all of it
as the one stream that it is, with what was missing, repeated or out of order
(but not with --follow, which shows each call as it comes).`,
		Example: "  unwire show F.uwc 2\n  unwire show F.uwc#2/down/4\n  unwire show --full F.uwc 2\n  unwire show --format protojson F.uwc#2/up/0\n  unwire show --json F.uwc 2 | jq -r .tree\n  unwire show --follow F.uwc 2\n  unwire show --hex F.uwc#2/up/0",
		Args:    app.ArgsBetween(1, "F.uwc", "ID"),
		RunE: func(cmd *cobra.Command, args []string) error {
			f.folded = a.Out.TTY
			if cmd.Flags().Changed("full") {
				f.folded = !f.full
			}
			if err := f.checkFormat(); err != nil {
				return err
			}
			return runShow(cmd.Context(), a, args, f)
		},
	}
	cmd.Flags().BoolVar(&f.full, "full", false, "print every header and every field, also on a terminal, and with --hex every byte (--full=false: a line per run of frames, also off a terminal)")
	cmd.Flags().BoolVar(&f.noPager, "no-pager", false, "print to the terminal, however long it is")
	cmd.Flags().StringVar(&f.format, "format", "text", "text, protojson or prototext")
	cmd.Flags().BoolVar(&f.json, "json", false, "a JSON object a frame")
	cmd.Flags().BoolVar(&f.hex, "hex", false, "the bytes beside the fields; values are cut")
	options.Alias(cmd.Flags(), "all", "full")
	cmd.Flags().BoolVar(&f.follow, "follow", false, "while it is recorded, until it has ended; without an ID, all that comes")
	cmd.Flags().BoolVar(&f.timeline, "timeline", false, "a line for each run of frames, of the exchange and of those that it is joined to by 'unwire serve', in the order of time")
	cmd.Flags().StringArrayVar(&f.as, "as", nil, "read a field so: 1.2:string, or down:1.2:string; remembered in the capture for the method, until 1.2:auto; or split a connection without HTTP into messages: delimited, delimited32be, delimited32le, frames")
	cmd.Flags().BoolVar(&f.once, "once", false, "with --as: for this once, not remembered")
	cmd.Flags().BoolVar(&f.choices, "choices", false, "list what --as has had remembered in the capture")
	cmd.Flags().StringVar(&f.explain, "explain", "", "why the field at this path is read as it is: 1.2, or down:1.2")
	cmd.Flags().BoolVar(&f.parts, "parts", false, "the call alone, where several calls are one stream")
	cmd.Flags().StringVar(&f.dir, "proto", "", protoUsage)
	return cmd
}

type showFlags struct {
	dir           string
	json, hex     bool
	as            []string // choices
	once, choices bool
	explain       string

	parts, follow, timeline bool

	format        string
	full, noPager bool

	// folded has runs of frames on one line each.
	folded bool
}

// runShow does what the flags ask for.
func runShow(ctx context.Context, a *app.App, args []string, f showFlags) error {
	addr, err := app.AddressArgs(args, f.follow || f.choices)
	if err != nil {
		return err
	}
	switch {
	case f.choices:
		if addr.Exchange != 0 || len(f.as) > 0 || f.hex || f.follow || f.explain != "" {
			return app.Usagef("--choices goes with a capture, and with --json")
		}
		return listReadings(ctx, a, addr.File, f.json)
	case f.explain != "" && (f.hex || f.follow):
		return app.Usagef("--explain goes neither with --hex nor with --follow")
	case f.follow:
		if addr.Frame >= 0 || f.hex && f.json {
			return app.Usagef("--follow goes with a capture or an exchange of it; --hex is not for --json")
		}
		return followShow(ctx, a, addr, f)
	case f.timeline:
		return showTimeline(ctx, a, addr, f)
	}
	addr.Part = addr.Part || f.parts
	return show(ctx, a, addr, f)
}

func show(ctx context.Context, a *app.App, addr query.Address, o showFlags) error {
	if o.hex && o.json {
		return app.Usagef("--hex is for people, not --json")
	}
	splitting, chosen, err := parseShowAs(o)
	if err != nil {
		return err
	}
	defs, err := a.LoadDefinitions(ctx, o.dir, addr.File)
	if err != nil {
		return err
	}
	capture, err := a.OpenCapture(addr.File)
	if err != nil {
		return err
	}
	defer capture.Close()
	capture.Splitting = splitting
	at, readErr := capture.Resolve(ctx, addr.Exchange, addr.Part)
	ex := at.Exchange
	if ex == nil {
		return readErr
	}
	if err := app.CheckSplitting(ex, splitting); err != nil {
		return err
	}

	frames := ex.Frames
	if addr.Frame >= 0 {
		f, err := frameAt(ex, addr)
		if err != nil {
			return err
		}
		frames = []decode.Frame{*f}
	}
	notes, err := capture.NotesOf(ctx, at)
	if err != nil {
		return err
	}
	v := capture.Views(ctx, at, defs)
	if err := choose(ctx, a, capture, ex, v, chosen, frames, o.once); err != nil {
		return err
	}
	if o.explain != "" {
		return explainFrames(a, ex, frames, v, o)
	}
	if err := printShown(ctx, a, capture, at, frames, v, notes, addr, o); err != nil {
		return err
	}
	a.SayUndefined(defs, ex.Service)
	return undecoded(a, ex, readErr)
}

// printShown prints frames in the form that the flags name.
func printShown(ctx context.Context, a *app.App, capture *query.Capture, at conversation.Resolved, frames []decode.Frame, v *query.Views, notes *query.Notes, addr query.Address, o showFlags) error {
	switch {
	case o.format != formatText:
		return printByDefinitions(a, at, frames, v, o, addr)
	case o.json:
		return printFrames(a, at, frames, v, notes)
	}
	return paged(ctx, a, o.noPager, func(ctx context.Context) error {
		return writeFrames(ctx, a, capture, at, frames, v, notes, addr.Frame < 0, o)
	})
}

// printFrames prints frames of an exchange as JSON, with the notes about them.
func printFrames(a *app.App, at conversation.Resolved, frames []decode.Frame, v *query.Views, notes *query.Notes) error {
	for i := range frames {
		f := &frames[i]
		line := contract.NewFrame(at, f, v.Of(at.Call, f.Dir), v.FieldsOf)
		line.Notes = notes.Of(f)
		if err := a.Print(line); err != nil {
			return err
		}
	}
	return nil
}

// writeFrames writes frames of an exchange for people with the notes about them, behind its
// head if that is wanted.
func writeFrames(ctx context.Context, a *app.App, capture *query.Capture, at conversation.Resolved, frames []decode.Frame, v *query.Views, notes *query.Notes, head bool, o showFlags) error {
	w := bufio.NewWriter(a.Out)
	if head {
		relations, err := capture.Relations(ctx, at.ID)
		if err != nil {
			return err
		}
		render.ExchangeHead(a.Out, w, at, relations, notes.Whole(), o.folded && !o.hex)
	}
	if o.folded && head && !o.hex {
		render.FoldedFrames(a.Out, w, at, frames, v, notes.Of)
		return w.Flush()
	}
	options := o.frameOptions()
	for i := range frames {
		// The pager may have ended.
		if err := ctx.Err(); err != nil {
			return err
		}
		options.Notes = notes.Of(&frames[i])
		render.Frame(a.Out, w, at, &frames[i], v, options)
	}
	return w.Flush()
}

// paged has write print to a pager, if stdout is a terminal and what it prints is longer
// than the screen.
func paged(ctx context.Context, a *app.App, never bool, write func(context.Context) error) error {
	command := term.PagerCommand(os.LookupEnv)
	if never {
		command = ""
	}
	direct := a.Out
	defer func() { a.Out = direct }()
	return direct.Page(ctx, command, a.Signals.ChildRuns, func(ctx context.Context, out *term.Output) error {
		a.Out = out
		return write(ctx)
	})
}

func (o showFlags) frameOptions() render.FrameOptions {
	return render.FrameOptions{Hex: o.hex, All: o.full}
}

// parseShowAs reads --as, where bytes as a whole are what the protocol says, unless that
// is none of HTTP.
func parseShowAs(o showFlags) (decode.Splitting, []query.Choice, error) {
	whole, list, err := parseChosenAll(o.as)
	if whole != "" && !slices.Contains(decode.Splittings(), whole) {
		return "", nil, app.Usagef("--as is a field and its type here, as in 1.2:string, or how a connection without HTTP divides into messages (%s), not %q", strings.Join(decode.Splittings(), ", "), whole)
	}
	if err == nil && o.once && len(list) == 0 {
		err = app.Usagef("--once goes with --as")
	}
	return decode.Splitting(whole), list, err
}

// explainFrames says why a field of frames is read as it is.
func explainFrames(a *app.App, ex *decode.Exchange, frames []decode.Frame, v *query.Views, o showFlags) error {
	where, err := parseChosen(o.explain + ":" + kind.Auto)
	if err != nil {
		return app.Usagef("--explain wants a path, as 1.2 or down:1.2, not %q", o.explain)
	}
	done := [2]bool{}
	found := false
	for i := range frames {
		f := &frames[i]
		if f.Tree == nil || done[f.Dir&1] || where.HasDir && where.Dir != f.Dir {
			continue
		}
		list := query.Explain(f.Tree, v.Of(ex.Call, f.Dir), where.Path, v.Messages(f.Dir))
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

// frameAt is the frame of an exchange that an address names.
func frameAt(ex *decode.Exchange, addr query.Address) (*decode.Frame, error) {
	if addr.Frame < 0 {
		return nil, app.Fail(app.ExitUsage, fmt.Errorf("%s: which frame?", addr), fmt.Sprintf("name it as %s/down/0", addr))
	}
	f, err := query.FrameAt(ex, addr)
	if err == nil {
		return f, nil
	}
	return nil, noFrame(err, addr)
}

// noFrame adds to the error of an address without a frame where the frames are listed.
func noFrame(err error, addr query.Address) error {
	return app.Fail(app.ExitInput, err, fmt.Sprintf("'unwire show %s %d' lists them; they are numbered from 0", addr.File, addr.Exchange))
}
