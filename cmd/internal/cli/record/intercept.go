package record

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"unwire/cmd/internal/app"
	"unwire/cmd/internal/contract"
	"unwire/cmd/internal/editor"
	"unwire/cmd/internal/render"
	"unwire/decode/text"
	"unwire/mitm/intercept"
	"unwire/replay/edit"
)

const interceptLong = `With --intercept or with a rule that has the action hold, 'unwire capture' holds back the
messages (frames) that match, instead of forwarding them. Without ID, intercept lists the
held messages. With ID, intercept shows this message. With one of the following flags,
intercept decides what capture does with the message:

--release forwards the message unchanged. --drop discards the message. --edit opens the
message in your editor ($VISUAL or $EDITOR), and forwards the edited message. --set,
--add, --del and --retype change fields of the message, as in 'unwire replay', and forward
the message. --data forwards other data instead of the message.

ID is the number of a message, or the word "first" for the message that capture has held
for the longest time. If you make no decision about a message, capture forwards it
unchanged after the time in capture's flag --hold-time, or when capture ends.`

const interceptExamples = `  # List the held messages
  unwire intercept cli.uwc
  # Wait up to a minute until capture holds a message
  unwire intercept cli.uwc --wait 1m
  # Forward message 3 unchanged
  unwire intercept cli.uwc 3 --release
  # Edit the message that was held for the longest time, and forward it
  EDITOR=vi unwire intercept cli.uwc first --edit
  # Change field 1.7 of message 3, and forward the message
  unwire intercept cli.uwc 3 --set 1.7=hello
  # Forward all held messages unchanged
  unwire intercept cli.uwc --release-all`

// interceptFlags are the values of the flags of 'unwire intercept'.
type interceptFlags struct {
	// json prints JSON.
	json bool

	// release forwards a held frame unchanged.
	release bool

	// drop does not forward a held frame.
	drop bool

	// edit opens a held frame in an editor and forwards the result.
	edit bool

	// releaseAll forwards all held frames.
	releaseAll bool

	// wait is how long to wait for a frame if none is held.
	wait time.Duration

	// edits are the values of --set, --add, --del and --retype.
	edits []edit.Edit

	// data replaces the message: text, or @FILE.
	data string
}

// interceptCommand returns the command 'unwire intercept', which decides about frames that a recording
// holds back.
func interceptCommand(a *app.App) *cobra.Command {
	var f interceptFlags
	cmd := &cobra.Command{
		Use:     "intercept F.uwc [ID]",
		Short:   "List, edit and release messages that 'unwire capture' holds back",
		Long:    interceptLong,
		Example: interceptExamples,
		Args:    app.ArgsBetween(1, "F.uwc", "ID"),
		RunE:    func(cmd *cobra.Command, args []string) error { return runIntercept(cmd.Context(), a, f, args) },
	}
	flags := cmd.Flags()
	flags.BoolVar(&f.json, "json", false, "print the result as JSON, one object per line")
	flags.DurationVar(&f.wait, "wait", 0, "if capture holds back no message, wait up to this time until it holds one back")
	flags.BoolVar(&f.release, "release", false, "forward the held message unchanged")
	flags.BoolVar(&f.drop, "drop", false, "discard the held message: capture does not forward it")
	flags.BoolVar(&f.edit, "edit", false, "open the held message in $VISUAL or $EDITOR, and forward the edited message")
	for _, op := range []struct{ name, what string }{
		{"set", "set a field of the held message (PATH=VALUE)"},
		{"add", "add a field to the held message (PATH:KIND=VALUE)"},
		{"del", "delete a field of the held message (PATH)"},
		{"retype", "change the type of a field of the held message (PATH:KIND)"},
		{"set-raw", "replace the bytes of a field of the held message (PATH=HEX)"},
	} {
		flags.Var(&editFlag{&f.edits, op.name}, op.name, op.what+", and forward the message; 'unwire replay --help' explains edits")
	}
	flags.StringVar(&f.data, "data", "", "forward this text instead of the held message; @FILE forwards the bytes of the file FILE")
	flags.BoolVar(&f.releaseAll, "release-all", false, "forward all held messages unchanged")
	return cmd
}

// An editFlag is a flag whose values are appended to a list as edits of one kind.
type editFlag struct {
	// edits is the list that the flag appends to.
	edits *[]edit.Edit

	// op is the kind of the edits, such as "set".
	op string
}

// String returns "": the flag has no default value.
func (e *editFlag) String() string { return "" }

// Type returns the name of the value in help.
func (e *editFlag) Type() string { return "EDIT" }

// Set parses one value of the flag, and appends it to the list.
func (e *editFlag) Set(text string) error {
	parsed, err := edit.Parse(e.op, text)
	if err == nil && parsed.Frame != edit.FirstFrame {
		err = errors.New("the ID already selects the frame: remove the frame number (@N) from the edit")
	}
	if err != nil {
		return err
	}
	*e.edits = append(*e.edits, parsed)
	return nil
}

// decides returns how many of the flags that decide about a single frame are set. At most one may be set.
func (f *interceptFlags) decides() (n int) {
	for _, set := range []bool{f.release, f.drop, f.edit, len(f.edits) > 0, f.data != ""} {
		if set {
			n++
		}
	}
	return n
}

// runIntercept executes 'unwire intercept': it lists held frames, shows one, or sends a decision to the
// recorder.
func runIntercept(ctx context.Context, a *app.App, f interceptFlags, args []string) error {
	switch n := f.decides(); {
	case n > 1:
		return app.Usagef("give only one decision: --release, --drop, --edit, --data, or edits such as --set")
	case n > 0 && len(args) < 2:
		return app.Usagef("the ID of the frame is missing: give the number of a held frame, or the word first")
	case f.releaseAll && (n > 0 || len(args) > 1):
		return app.Usagef("--release-all releases all frames: leave out the ID and other decisions")
	}

	// The recorder holds the frames; this process only sends it decisions through a socket.
	c, err := intercept.Dial(args[0])
	if errors.Is(err, intercept.ErrNoRecorder) {
		return app.Fail(app.ExitInput, err, "start 'unwire capture -o "+args[0]+" --intercept FILTER' first")
	}
	if err != nil {
		return err
	}
	if f.releaseAll {
		n, err := c.ReleaseAll(ctx)
		if err != nil {
			return err
		}
		return sayDecided(a, f, &contract.Decided{Event: "decided", Action: "release-all", Frames: n})
	}

	// Without a decision, or with an ID that is held already, this returns at once; with --wait it
	// waits for a first frame.
	frames, err := c.Held(ctx, 0, f.wait)
	if err != nil {
		return err
	}
	if len(args) < 2 {
		return listHeld(a, f, frames)
	}
	held, err := findHeld(frames, args[1])
	if err != nil {
		return err
	}
	if f.decides() == 0 {
		return showHeld(a, f, held)
	}

	// The decision is built before the frame is decided: an edit can fail, and the frame then stays
	// held.
	d, err := f.decision(a, held)
	if err != nil {
		return err
	}
	if err := c.Decide(ctx, held.ID, d); err != nil {
		return err
	}
	return sayDecided(a, f, &contract.Decided{Event: "decided", Action: d.Action, ID: held.ID})
}

// sayDecided prints which decision was made.
func sayDecided(a *app.App, f interceptFlags, d *contract.Decided) error {
	if f.json {
		return a.Print(d)
	}
	if d.Action == "release-all" {
		a.Say("released %s", app.Counted(d.Frames, "frame"))
	} else {
		a.Say("frame %d: %s", d.ID, decidedText(d.Action))
	}
	return nil
}

// decidedText says what capture does with a frame after a decision.
func decidedText(action string) string {
	switch action {
	case "release":
		return "forwarded unchanged"
	case "drop":
		return "discarded"
	case "replace":
		return "changed and forwarded"
	}
	return action
}

// holder says why capture holds a frame: because of the named rule, or of the flag --intercept.
func holder(rule string) string {
	if rule == "intercept" {
		return "capture because of --intercept"
	}
	return "capture because of the rule " + rule
}

// findHeld returns the held frame with an ID or, if id is "first", the one that has waited longest.
func findHeld(frames []intercept.Frame, id string) (intercept.Frame, error) {
	if id == "first" {
		if len(frames) == 0 {
			return intercept.Frame{}, app.Fail(app.ExitInput, errors.New("'unwire capture --intercept' holds no frame at the moment"), "use --wait to wait for a frame")
		}
		return frames[0], nil
	}
	n, err := strconv.ParseInt(id, 10, 64)
	if err != nil {
		return intercept.Frame{}, app.Usagef("%q is not the ID of a held frame: give the number of a held frame, or the word first", id)
	}
	for _, f := range frames {
		if f.ID == n {
			return f, nil
		}
	}
	return intercept.Frame{}, app.Fail(app.ExitInput, fmt.Errorf("%w: %d", intercept.ErrNotHeld, n), "'unwire intercept F.uwc' lists the held frames")
}

// listHeld prints one line for each frame that the recorder holds back.
func listHeld(a *app.App, f interceptFlags, frames []intercept.Frame) error {
	for _, h := range frames {
		if f.json {
			if err := a.Print(&contract.HeldFrame{Frame: h}); err != nil {
				return err
			}
			continue
		}
		name := h.Method
		if name == "" {
			name = h.URL
		}
		left := time.Until(h.Until).Round(time.Second)
		if _, err := fmt.Fprintf(a.Out, "%4d  exchange %d, %s frame %d  %s  %s  held by %s; capture forwards the frame unchanged in %s\n", h.ID, h.Exchange, render.Sender(h.Dir), h.Number, name, app.Counted(len(h.Data), "byte"), holder(h.Rule), left); err != nil {
			return err
		}
	}
	if len(frames) == 0 && !f.json {
		a.Say("'unwire capture --intercept' holds no frame at the moment")
	}
	return nil
}

// showHeld prints the decoded message of a held frame.
func showHeld(a *app.App, f interceptFlags, h intercept.Frame) error {
	if f.json {
		return a.Print(&contract.HeldFrame{Frame: h})
	}
	t, err := messageText(h)
	if err == nil {
		_, err = a.Out.Write(t)
	}
	return err
}

// messageText returns the message of a held frame as text that a user can edit: JSON, or the text form of
// 'unwire decode'.
func messageText(h intercept.Frame) ([]byte, error) {
	if h.JSON {
		var v json.RawMessage
		if json.Unmarshal(h.Data, &v) == nil {
			if t, err := json.MarshalIndent(v, "", "  "); err == nil {
				return append(t, '\n'), nil
			}
		}
		return h.Data, nil
	}
	doc, err := text.Decode(h.Data, text.Options{In: "raw", As: "message"})
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	err = doc.Text(&out)
	return out.Bytes(), err
}

// decision returns the decision that the flags make about the held frame h.
func (f *interceptFlags) decision(a *app.App, h intercept.Frame) (d intercept.Decision, err error) {
	data := h.Data
	switch {
	case f.release:
		return intercept.Decision{Action: "release"}, nil
	case f.drop:
		return intercept.Decision{Action: "drop"}, nil
	case f.data != "":
		if data = []byte(f.data); f.data[0] == '@' {
			if data, err = os.ReadFile(f.data[1:]); err != nil {
				return d, err
			}
		}
	case f.edit:
		if data, err = editHeld(a, h); err != nil {
			return d, err
		}
	default:
		for _, e := range f.edits {
			if data, _, err = e.Apply(data, h.JSON, nil); err != nil {
				return d, err
			}
		}
	}
	return intercept.Decision{Action: "replace", Messages: [][]byte{data}}, nil
}

// editHeld opens the message of a held frame in the user's editor, and returns the bytes of the edited
// message.
func editHeld(a *app.App, h intercept.Frame) ([]byte, error) {
	before, err := messageText(h)
	if err != nil {
		return nil, err
	}
	name := fmt.Sprintf("held-%d.txt", h.ID)
	if h.JSON {
		name = fmt.Sprintf("held-%d.json", h.ID)
	}
	after, err := editor.Edit(a.Signals.ChildRuns, name, before)
	if err != nil {
		return nil, err
	}
	if h.JSON {
		if string(after) == string(before) {
			return h.Data, nil
		}
		// A typing error must not reach the other side. The frame stays held.
		if json.Valid(before) && !json.Valid(after) {
			return nil, app.Fail(app.ExitUsage, errors.New("the edited message is not valid JSON, so the frame is still held"),
				"edit it again, or forward other bytes with --data @FILE")
		}
		// What came without white space is forwarded without.
		var compact bytes.Buffer
		if json.Compact(&compact, h.Data) == nil && bytes.Equal(compact.Bytes(), h.Data) {
			compact.Reset()
			if json.Compact(&compact, after) == nil {
				return compact.Bytes(), nil
			}
		}
		return after, nil
	}
	return text.Parse(after)
}
