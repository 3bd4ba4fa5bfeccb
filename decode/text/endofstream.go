package text

import (
	"fmt"
	"strings"

	"unwire/decode/envelope"
	"unwire/decode/kind"
	"unwire/decode/known"
	"unwire/decode/text/output"
	"unwire/decode/wire"
)

const (
	// maxDetails is the maximum number of an error's details that are printed.
	maxDetails = 16

	// maxDetailLen is the size in bytes above which details are omitted.
	maxDetailLen = 64 << 10
)

// end prints the details of an error in the end-of-stream frame f as comments, because the JSON contains them only
// in base64.
func (p *printer) end(f envelopePiece) {
	if f.flags&envelope.EndStream == 0 {
		return
	}
	end, err := envelope.ParseEnd(f.data)
	if err != nil || end.Error == nil {
		return
	}
	for i := range end.Error.Details {
		d := &end.Error.Details[i]
		if i == maxDetails || len(d.Value) > maxDetailLen {
			return
		}
		p.indent(1)
		fmt.Fprintf(p.w, "# detail %s:\n", printable(d.Type))
		// A detail is printed like any message, with a comment mark before each line.
		w := commentWriter{w: p.w, prefix: strings.Repeat(" ", 2) + "#   "}
		s := &printer{w: output.New(&w), deep: maxInside}
		s.t = *wire.Parse(d.Value, wire.Options{})
		s.r = kind.NewReader(&s.t, nil)
		s.fields(0, known.Message(d.Type), 0)
		s.w.Flush() //nolint:errcheck // p.w keeps the error
	}
}
