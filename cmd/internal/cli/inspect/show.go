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
	"unwire/captures/safetext"
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
const protoUsage = ".proto definitions, from which unwire takes field names; with the word none, unwire prints only field numbers (default: the first that exists of UNWIRE_PROTO, the definitions in the capture, unwire.yaml, and the built-in definitions)"

// showLong is the prose of the help of 'unwire show'.
const showLong = `show prints one exchange (a request with its answer): the headers, and then the
frames in the order of their time. A frame is one message. ↑ marks headers and frames
that the client sent, ↓ those that the server sent. show prints the names of fields if
.proto definitions describe the method, and otherwise infers the types of fields. If a
field could have several types, show prints the probability of the most probable type.

On a terminal, show prints one line for several similar frames that follow each other,
and joins a text that the server sent in pieces. With --full, or if stdout is not a
terminal, show prints every header and every field. On a terminal, show displays long
output with the pager in UNWIRE_PAGER or PAGER, or with less.

--format protojson prints frames in the JSON format of protobuf, and --format prototext
in its text format. Both formats need .proto definitions of the message types. 'unwire
encode' converts this output back to bytes. The two formats cannot contain fields that
the definitions lack; show lists these fields on stderr.

If HTTP/2 is not available, some clients replace a bidirectional stream by several
calls: one call receives all messages of the server, and each further call sends one
message of the client (RunSSE and BidiAppend in the built-in definitions). If you show
the first of these calls, show prints the messages of all of them as one stream. show
marks messages that are missing, repeated or out of order. With --parts or --follow,
show prints each call separately.

With --as 1.2:string, show reads field 1.2 as a string instead of inferring its type.
show stores this choice in the capture, so that all commands use it for messages of the
same method and direction. With --once, show does not store the choice. --as 1.2:auto
deletes the stored choice for field 1.2.`

// showCommand returns the command 'unwire show'.
func showCommand(a *app.App) *cobra.Command {
	var f showFlags
	cmd := &cobra.Command{
		Use:   "show F.uwc ID",
		Short: "Show one exchange: its headers and decoded messages",
		Long:  showLong,
		Example: `  # Show exchange 2
  unwire show F.uwc 2
  # Show only the fifth message of the server
  unwire show F.uwc#2/down/4
  # Show every header and every field
  unwire show --full F.uwc 2
  # Print a message in the JSON format of protobuf
  unwire show --format protojson F.uwc#2/up/0
  # Print the decoded fields of each message, for a script
  unwire show --json F.uwc 2 | jq -r .tree
  # Print messages while the exchange is being recorded
  unwire show --follow F.uwc 2
  # Also show the bytes of each field
  unwire show --hex F.uwc#2/up/0
  # Print a curl command that sends the same request
  unwire show --copy curl F.uwc 2`,
		Args: app.ArgsBetween(1, "F.uwc", "ID"),
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
	cmd.Flags().BoolVar(&f.full, "full", false, "print every header and every field, and with --hex every byte (default if stdout is not a terminal; --full=false prints one line for several similar messages)")
	cmd.Flags().BoolVar(&f.noPager, "no-pager", false, "print long output directly, without a pager such as less")
	cmd.Flags().StringVar(&f.format, "format", "text", "output format: text, protojson or prototext")
	cmd.Flags().BoolVar(&f.json, "json", false, "print one JSON object for each message")
	cmd.Flags().BoolVar(&f.hex, "hex", false, "also print the bytes of each field, in hex; show truncates long values")
	options.Alias(cmd.Flags(), "all", "full")
	cmd.Flags().BoolVar(&f.follow, "follow", false, "print each message when it is recorded, until the exchange ends; without an ID, print the messages of all exchanges")
	cmd.Flags().BoolVar(&f.timeline, "timeline", false, "print messages ordered by time, with one line for several similar messages; for an exchange that 'unwire serve' recorded, also print the messages that serve exchanged with its upstream server for this exchange")
	cmd.Flags().StringArrayVar(&f.as, "as", nil, "PATH:TYPE, such as 1.2:string, reads the field PATH as this type (down:1.2:string: only in messages of the server). For connections without HTTP, --as instead selects how to divide the bytes into messages: "+app.SplittingNames)
	cmd.Flags().BoolVar(&f.once, "once", false, "use the type in --as PATH:TYPE only for this output, and do not store it in the capture")
	cmd.Flags().BoolVar(&f.choices, "choices", false, "list the types that you chose for fields with --as (the capture stores them)")
	cmd.Flags().StringVar(&f.explain, "explain", "", "explain how unwire inferred the type of this field, such as 1.2, or down:1.2 for messages of the server")
	cmd.Flags().BoolVar(&f.parts, "parts", false, "if the client split one stream over several calls: show only this call, not the whole stream")
	cmd.Flags().StringVar(&f.proto, "proto", "", protoUsage)
	cmd.Flags().StringVar(&f.copy, "copy", "", "print a command that sends the same request with curl, grpcurl or buf, or a Go program that sends it (go); the command reads secrets from environment variables")
	return cmd
}

// showFlags are the values of the flags of 'unwire show'.
type showFlags struct {
	// proto names the definitions.
	proto string

	// json prints JSON Lines.
	json bool

	// hex prints a hex dump next to the fields.
	hex bool

	// as are the values of --as: types of single fields, such as 1.2:string, or the framing of a
	// connection without HTTP.
	as []string

	// once does not store the types of --as.
	once bool

	// choices lists the stored types.
	choices bool

	// explain is the path of the field whose inferred type is to be explained; "" for none.
	explain string

	// parts shows one call of a split stream alone.
	parts bool

	// follow prints frames while they are recorded.
	follow bool

	// timeline shows related exchanges on one time axis.
	timeline bool

	// format is the output format: "text", "protojson" or "prototext".
	format string

	// copy is the tool whose command line is printed; "" for none.
	copy string

	// full prints every header and field.
	full bool

	// noPager does not use a pager.
	noPager bool

	// edits are the changes that rewriting rules made to the exchange while it was recorded; nil for none.
	// It is not a flag.
	edits *query.Edits

	// folded prints a run of similar frames as one line.
	folded bool
}

// runShow executes `unwire show` with its arguments and flags.
func runShow(ctx context.Context, a *app.App, args []string, f showFlags) error {
	addr, err := app.AddressArgs(args, f.follow || f.choices)
	if err != nil {
		return err
	}
	switch {
	case f.copy != "":
		return showCopy(ctx, a, addr, f)
	case f.choices:
		if addr.Exchange != 0 || len(f.as) > 0 || f.hex || f.follow || f.explain != "" {
			return app.Usagef("--choices needs the name of a capture, and can be combined only with --json")
		}
		return listReadings(ctx, a, addr.File, f.json)
	case f.explain != "" && (f.hex || f.follow):
		return app.Usagef("--explain cannot be used with --hex or --follow")
	case f.follow:
		if addr.Frame >= 0 {
			return app.Usagef("--follow requires a capture or an exchange, not a frame")
		}
		if f.hex && f.json {
			return app.Usagef("--hex and --json cannot be used together")
		}
		return followShow(ctx, a, addr, f)
	case f.timeline:
		return showTimeline(ctx, a, addr, f)
	}
	addr.Part = addr.Part || f.parts
	return show(ctx, a, addr, f)
}

// show prints the exchange or frame at an address.
func show(ctx context.Context, a *app.App, addr query.Address, o showFlags) error {
	if o.hex && o.json {
		return app.Usagef("--hex and --json cannot be used together")
	}
	splitting, chosen, err := parseShowAs(o)
	if err != nil {
		return err
	}
	defs, err := a.LoadDefinitions(ctx, o.proto, addr.File)
	if err != nil {
		return err
	}
	capture, err := a.OpenCapture(addr.File)
	if err != nil {
		return err
	}
	defer capture.Close()
	capture.Splitting = splitting

	// A damaged exchange is shown as far as it can be read, and the error is returned at the end.
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

	// Notes are read before the frames are printed, because they are printed with the frame or field
	// that they concern.
	notes, err := capture.NotesOf(ctx, at)
	if err != nil {
		return err
	}

	// Choices of types change how all frames are decoded, so they come before any output.
	v := capture.Views(ctx, at, defs)
	if err := choose(ctx, a, capture, ex, v, chosen, frames, o.once); err != nil {
		return err
	}
	if o.explain != "" {
		return explainFrames(a, ex, frames, v, o)
	}

	// Rules work on single calls, so that a joined stream has no edits.
	if at.Joined == nil {
		if o.edits, err = capture.EditsOf(ctx, ex); err != nil {
			return err
		}
	}
	if err := printShown(ctx, a, capture, at, frames, v, notes, addr, o); err != nil {
		return err
	}
	a.SayUndefined(defs, ex.Service)
	return undecoded(a, ex, readErr)
}

// printShown prints frames of the exchange at as text, as JSON, or by their definitions, as the flags
// select.
func printShown(ctx context.Context, a *app.App, capture *query.Capture, at conversation.Resolved, frames []decode.Frame, v *query.Views, notes *query.Notes, addr query.Address, o showFlags) error {
	switch {
	case o.format != formatText:
		return printByDefinitions(a, at, frames, v, o, addr)
	case o.json:
		return printFrames(a, at, frames, v, notes, o.edits)
	}
	return paged(ctx, a, o.noPager, func(ctx context.Context) error {
		return writeFrames(ctx, a, capture, at, frames, v, notes, addr.Frame < 0, o)
	})
}

// printFrames prints frames as JSON Lines, with the user's notes on them, and the bytes that rewriting
// rules forwarded instead.
func printFrames(a *app.App, at conversation.Resolved, frames []decode.Frame, v *query.Views, notes *query.Notes, edits *query.Edits) error {
	w := bufio.NewWriter(a.Out)
	lines := contract.NewEncoder(w)
	for i := range frames {
		f := &frames[i]
		line := contract.NewFrame(at, f, v.Of(at.Call, f.Dir), v.FieldsOf)
		line.Notes = notes.Of(f)
		line.AddEdit(f, edits.Of(f))
		if err := lines.Encode(line); err != nil {
			return err
		}
	}
	for _, e := range edits.Added() {
		if e.Event = "added"; len(frames) == len(at.Frames) {
			if err := lines.Encode(e); err != nil {
				return err
			}
		}
	}
	return w.Flush()
}

// writeFrames prints frames as text, with the user's notes on them. If head is set, the exchange's
// request line, status and headers are printed first.
func writeFrames(ctx context.Context, a *app.App, capture *query.Capture, at conversation.Resolved, frames []decode.Frame, v *query.Views, notes *query.Notes, head bool, o showFlags) error {
	w := bufio.NewWriter(a.Out)
	if head {
		relations, err := capture.Relations(ctx, at.ID)
		if err != nil {
			return err
		}
		render.ExchangeHead(a.Out, w, at, relations, notes.Whole(), o.folded && !o.hex)
		render.ForwardedHeads(a.Out, w, o.edits.Heads())
	}
	if o.folded && head && !o.hex && o.edits == nil {
		render.FoldedFrames(a.Out, w, at, frames, v, notes.Of)
		return w.Flush()
	}
	options := o.frameOptions()
	options.Sender = !head
	for i := range frames {
		// The pager may have ended.
		if err := ctx.Err(); err != nil {
			return err
		}
		options.Notes, options.Edited = notes.Of(&frames[i]), o.edits.Of(&frames[i])
		render.Frame(a.Out, w, at, &frames[i], v, options)
	}
	if head {
		render.Added(a.Out, w, at, o.edits.Added(), v)
	}
	return w.Flush()
}

// paged calls write, and sends its output through a pager if stdout is a terminal, the output is longer
// than the screen, and never is false.
func paged(ctx context.Context, a *app.App, never bool, write func(context.Context) error) error {
	command := term.PagerCommand(os.LookupEnv)
	if never {
		command = ""
	}
	direct := a.Out
	defer func() { a.Out = direct }()
	err := direct.Page(ctx, command, a.Signals.ChildRuns, func(ctx context.Context, out *term.Output) error {
		a.Out = out
		return write(ctx)
	})
	if errors.Is(err, term.ErrStopped) {
		return app.Fail(app.ExitInterrupted, nil, "")
	}
	return err
}

// frameOptions returns the options for printing a frame that the flags set.
func (o showFlags) frameOptions() render.FrameOptions {
	return render.FrameOptions{Hex: o.hex, All: o.full}
}

// parseShowAs parses the values of --as: the framing of a connection without HTTP ("" for none), and the
// types of single fields.
func parseShowAs(o showFlags) (decode.Splitting, []query.Choice, error) {
	whole, list, err := parseChosenAll(o.as)
	if whole != "" && !slices.Contains(decode.Splittings(), whole) {
		return "", nil, app.Usagef("--as must be PATH:TYPE, such as 1.2:string, or the framing of a connection without HTTP (%s), not %q", strings.Join(decode.Splittings(), ", "), whole)
	}
	if err == nil && o.once && len(list) == 0 {
		err = app.Usagef("--once requires --as")
	}
	return decode.Splitting(whole), list, err
}

// explainFrames executes --explain: it prints the evidence for the inferred type of a field, for each
// direction in which a frame has it.
func explainFrames(a *app.App, ex *decode.Exchange, frames []decode.Frame, v *query.Views, o showFlags) error {
	where, err := parseChosen(o.explain + ":" + kind.Auto)
	if err != nil {
		return app.Usagef("--explain must be a path, such as 1.2 or down:1.2, not %q", o.explain)
	}
	done := [2]bool{}
	found := false
	for i := range frames {
		f := &frames[i]
		if f.Tree == nil || done[f.Dir&1] || where.HasDir && where.Dir != f.Dir {
			continue
		}
		// The evidence is pooled over the method, so one frame of each direction is enough.
		list := query.Explain(f.Tree, v.Of(ex.Call, f.Dir), where.Path, v.Messages(f.Dir))
		if len(list) == 0 {
			continue
		}
		done[f.Dir&1], found = true, true // pooled: the same for all frames
		for k := range list {
			list[k].Dir = f.Dir.String()
		}
		of := fmt.Sprintf("%s frame %d of %s", f.Dir.Sender(), f.Seq, decode.MethodOf(&ex.Exchange, ex.Call))
		if err := printExplanations(a, a.Out, list, of, o.json); err != nil {
			return err
		}
	}
	if !found {
		return app.Fail(app.ExitUsage, fmt.Errorf("--explain %s: no message of the exchange has this field", o.explain),
			"a path is field numbers joined by dots, such as 1.2 or 1.2[0].5")
	}
	return nil
}

// undecoded returns the error about the parts of an exchange that could not be decoded, after the rest
// was printed. It only prints a remark, and returns nil, if the data is incomplete for a known reason:
// the call was aborted, the client left after the server had ended the stream, or a storage limit
// truncated the body.
func undecoded(a *app.App, ex *decode.Exchange, readErr error) error {
	if readErr != nil || ex.Err == nil {
		return readErr
	}
	over := ex.Outcome != captures.Complete || ex.Truncated()
	// said by its end, or lost without one
	over = over || ex.Protocol == decode.ConnectStream && ex.Status != 0
	for i := range ex.Frames {
		over = over || !ex.Frames[i].Up() && ex.Frames[i].End != nil
	}
	for i := range ex.Frames {
		f := &ex.Frames[i]
		expected := f.Partial && over && (f.Up() || ex.Outcome != captures.Complete || ex.Truncated())
		if f.Err != nil && !expected {
			return ex.Err
		}
	}
	if !over || !errors.Is(ex.Err, io.ErrUnexpectedEOF) {
		return ex.Err
	}
	a.Say("unwire: %v", ex.Err)
	return nil
}

// frameAt returns the frame that an address names.
func frameAt(ex *decode.Exchange, addr query.Address) (*decode.Frame, error) {
	if addr.Frame < 0 {
		return nil, app.Fail(app.ExitUsage, fmt.Errorf("%s: the address names an exchange, but no frame of it", addr), fmt.Sprintf("name a frame, such as %s/down/0", addr))
	}
	f, err := query.FrameAt(ex, addr)
	if err == nil {
		return f, nil
	}
	return nil, noFrame(err, addr)
}

// noFrame adds a hint to the error that an exchange does not have the addressed frame.
func noFrame(err error, addr query.Address) error {
	return app.Fail(app.ExitInput, err, fmt.Sprintf("'unwire show %s %d' lists the frames, which are numbered from 0", safetext.ShellFile(addr.File), addr.Exchange))
}
