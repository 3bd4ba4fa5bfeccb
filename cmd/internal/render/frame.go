package render

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"unwire/captures"
	"unwire/cmd/internal/app"
	"unwire/cmd/internal/contract"
	"unwire/cmd/internal/query"
	"unwire/cmd/internal/term"
	"unwire/decode"
	"unwire/decode/conversation"
	"unwire/decode/envelope"
	"unwire/decode/wire"
)

// FrameOptions choose how a frame is printed.
type FrameOptions struct {
	// Hex prints a hex dump next to the fields.
	Hex bool

	// All prints every byte of every value, with Hex.
	All bool

	// Sender names the sender of the frame, because no legend explains the arrow.
	Sender bool

	// Notes are the notes on the frame and its fields.
	Notes []*contract.PlaceNote

	// Edited is the data that was forwarded instead of the frame; nil if the frame was forwarded
	// unchanged.
	Edited *contract.Edited
}

// Frame prints one frame with its fields, and irregularities such as a gap in sequence numbers.
func Frame(out *term.Output, w io.Writer, at conversation.Resolved, f *decode.Frame, v *query.Views, o FrameOptions) {
	var before, after []string
	if at.Joined != nil {
		before, after = contract.Anomalies(at.Joined, f)
	}
	for _, s := range before {
		fmt.Fprintf(w, "%s %s\n", Arrow(f.Dir), out.Red(s))
	}

	view := v.Of(at.Call, f.Dir)
	name := fmt.Sprintf("%s frame %d", Arrow(f.Dir), f.Seq)
	if o.Sender {
		name += " from the " + f.Dir.Sender()
	}
	fmt.Fprint(w, out.Wrap(fmt.Sprintf("%s  %s\n", out.Bold(name), out.Dim(frameFacts(f, view)))))
	if f.Err != nil {
		fmt.Fprintf(w, "    %s %s\n", out.Red("error:"), term.Clean(app.PlainText(f.Err)))
	}

	// In a hex dump fields have no lines of their own, so that all notes are printed above it.
	byOffset, notes := fieldNotes(f, o.Notes)
	if o.Hex {
		notes = o.Notes
	}
	Notes(out, w, notes, "    ")

	// The payload: a close frame, raw bytes, a hex dump, decoded fields, or text.
	binary := at.Transport != captures.HTTP && f.Tree == nil && len(f.Data) > 0 && !decode.IsText(f.Data)
	switch {
	case f.Close != nil:
		fmt.Fprintf(w, "    %s\n", term.Clean(f.Close.String()))
	case binary:
		hexOfBytes(out, w, f.Data, o.All)
	case o.Hex:
		_ = hexFrame(out, w, f, view, o.All)
	case f.Tree != nil:
		_ = shownFields(out, w, view.Each(f.Tree), "    ", byOffset)
		for _, in := range f.Inner {
			innerMessage(out, w, f, &in)
		}
	case len(f.Data) > 0 && f.End == nil:
		fmt.Fprintf(w, "    %s\n", term.CleanStart(f.Data, 2000))
	}
	if f.End != nil {
		endOfStream(w, f.End, v)
	}

	if o.Edited != nil {
		forwarded(out, w, at, f.Dir, o.Edited, v)
	}
	for _, s := range after {
		fmt.Fprintf(w, "    %s\n", out.Red(s))
	}
}

// frameFacts returns the first line of a frame: time, size, compression, flags and message type.
func frameFacts(f *decode.Frame, view decode.View) string {
	facts := []string{fmt.Sprintf("after %.1f ms", app.Millis(f.T)), app.Counted(len(f.Raw), "byte")}
	if f.Opcode != 0 {
		facts = append(facts, decode.OpcodeName(f.Opcode))
	}
	if f.Opcode&captures.OpCompressed != 0 {
		facts = append(facts, "compressed on the wire")
	}
	if f.Encoding != "" {
		facts = append(facts, fmt.Sprintf("%s-compressed, %s decompressed", f.Encoding, app.Counted(len(f.Data), "byte")))
	}
	if flags := f.Flags &^ envelope.Compressed; f.Framed && flags != 0 {
		facts = append(facts, flags.String())
	}
	if f.Event != "" {
		facts = append(facts, "event "+term.Clean(f.Event))
	}
	if f.Partial {
		facts = append(facts, "truncated")
	}
	if view.Type != nil && f.Tree != nil && f.End == nil {
		facts = append(facts, string(view.Type.FullName()))
	}
	return strings.Join(facts, " · ")
}

// innerMessage prints a message that is encoded inside a field of a frame.
func innerMessage(out *term.Output, w io.Writer, f *decode.Frame, in *decode.Inner) {
	fmt.Fprintf(w, "    %s\n", out.Dim(fmt.Sprintf("in %s, as %s, %s:", f.Tree.PathOf(in.Node), in.Encoding, app.Counted(len(in.Data), "byte"))))
	if in.Tree == nil {
		fmt.Fprintf(w, "      %s\n", term.CleanStart(in.Data, 400))
		return
	}
	_ = Fields(w, decode.View{}.Each(in.Tree), "      ")
}

// endOfStream prints the status at the end of a stream, or of a failed unary call, with the error details
// decoded.
func endOfStream(w io.Writer, end *envelope.End, v *query.Views) {
	lines := endLines(end)
	fmt.Fprintf(w, "    %s\n", term.Clean(lines[0]))
	if end.Error == nil {
		return
	}
	for i := range end.Error.Details {
		d := &end.Error.Details[i]
		fmt.Fprintf(w, "    %s\n", term.Clean(lines[1+i]))
		t := wire.Parse(d.Value, wire.Options{})
		if len(d.Value) > 0 && t.Err() == nil {
			_ = Fields(w, slices.Values(v.FieldsOf(t, d.Type)), "      ")
		}
	}
}
