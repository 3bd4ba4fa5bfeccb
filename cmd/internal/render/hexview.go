package render

import (
	"fmt"
	"io"
	"strconv"

	"unwire/cmd/internal/app"
	"unwire/cmd/internal/term"
	"unwire/decode"
	"unwire/decode/envelope"
	"unwire/decode/text"
	"unwire/decode/wire"
)

// stdoutHex returns the options of a hex dump with the colours of an output; all prints values in full.
func stdoutHex(out *term.Output, all bool) hexOptions {
	return hexOptions{All: all, Paint: func(p bytePart, s string) string {
		switch p {
		case partHead:
			return out.Cyan(s)
		case partLength:
			return out.Dim(s)
		case partText:
			return out.Green(s)
		case partNumber:
			return out.Yellow(s)
		case partBytes:
			return out.Magenta(s)
		case partBad:
			return out.Red(s)
		}
		return s
	}}
}

// HexDocument prints the messages of a document as a hex dump with their fields. by determines types and
// names; all prints values in full.
func HexDocument(out *term.Output, w io.Writer, doc *text.Document, by decode.View, all bool) error {
	o := stdoutHex(out, all)
	o.Inside = true
	v := newHexView(w, o)
	if s := doc.Source(); s != "" {
		v.line(out.Dim("decoded from " + s + "; offsets count decoded bytes"))
	}
	var tree wire.Tree
	err := doc.Parts(func(p text.Part) error {
		// The envelope's prefix or the delimiter's length comes first.
		switch {
		case len(p.Head) > 1:
			v.rows(p.Off, []byteRun{{part: partHead, data: p.Head[:1]}, {part: partLength, data: p.Head[1:]}}, p.Title)
		case len(p.Head) == 1:
			v.rows(p.Off, []byteRun{{part: partLength, data: p.Head}}, p.Title)
		case p.Title != "":
			v.line(p.Title)
		}

		// A compressed part is printed twice: as stored, and decompressed with offsets from 0.
		base, body := p.DataOff, v
		if base < 0 {
			v.rows(p.Off+len(p.Head), []byteRun{{part: partBytes, data: p.Raw}}, "compressed")
			inner := o
			inner.Indent = "  "
			if err := v.flush(); err != nil {
				return err
			}
			base, body = 0, newHexView(w, inner)
			body.line(out.Dim("decompressed (offsets start at 0):"))
		}
		switch {
		case len(p.Data) == 0:
		case p.Kind == "message":
			tree.Reset(p.Data, wire.Options{})
			body.tree(&tree, by, base)
		case p.Kind == "text":
			body.rows(base, []byteRun{{part: partText, data: p.Data}}, out.Green(strconv.Quote(shortText(p.Data, all))))
		default:
			body.rows(base, []byteRun{{part: partBytes, data: p.Data}}, fmt.Sprintf("bytes[%d]", len(p.Data)))
		}
		return body.flush()
	})
	if err != nil {
		return err
	}
	return v.flush()
}

// shortText returns data as text, truncated to 60 characters unless all is set.
func shortText(data []byte, all bool) string {
	if all {
		return string(data)
	}
	return term.Cut(string(data), 60)
}

// hexFrame prints the message of a frame as a hex dump with its fields, followed by the messages that are
// encoded inside values.
func hexFrame(out *term.Output, w io.Writer, f *decode.Frame, by decode.View, all bool) error {
	o := stdoutHex(out, all)
	o.Indent = "    "
	v := newHexView(w, o)
	switch {
	case f.Tree == nil:
		if len(f.Data) > 0 {
			v.rows(0, []byteRun{{part: partText, data: f.Data}}, out.Green(strconv.Quote(shortText(f.Data, all))))
		}
		return v.flush()
	default:
		v.tree(f.Tree, by, 0)
	}
	if err := v.flush(); err != nil {
		return err
	}
	o.Indent = "      "

	// Payloads in other encodings follow, each with its own offsets.
	for _, in := range f.Inner {
		v := newHexView(w, o)
		v.line(out.Dim(fmt.Sprintf("in field %s, encoded as %s, %s:", f.Tree.PathOf(in.Node), in.Encoding, app.Counted(len(in.Data), "byte"))))
		if in.Tree != nil {
			v.tree(in.Tree, decode.View{}, 0)
		} else {
			v.rows(0, []byteRun{{part: partBytes, data: in.Data}}, fmt.Sprintf("bytes[%d]", len(in.Data)))
		}
		if err := v.flush(); err != nil {
			return err
		}
	}
	return nil
}

// hexOfBytes prints a hex dump of bytes that are neither text nor a message.
func hexOfBytes(out *term.Output, w io.Writer, data []byte, all bool) {
	o := stdoutHex(out, all)
	o.Indent = "    "
	v := newHexView(w, o)
	v.rows(0, []byteRun{{part: partBytes, data: data}}, fmt.Sprintf("bytes[%d]", len(data)))
	_ = v.flush()
}

// endLines returns the status at the end of a stream or of a failed unary call, and one line for each
// error detail.
func endLines(end *envelope.End) []string {
	if end.Error == nil {
		return []string{"end of stream: ok"}
	}
	lines := []string{fmt.Sprintf("error %s: %s", end.Error.Code, end.Error.Message)}
	for _, d := range end.Error.Details {
		line := fmt.Sprintf("detail %s, %s", d.Type, app.Counted(len(d.Value), "byte"))
		if len(d.Debug) > 0 {
			line += " " + string(d.Debug)
		}
		lines = append(lines, line)
	}
	return lines
}
