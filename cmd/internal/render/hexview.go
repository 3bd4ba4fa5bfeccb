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

// hexOptions are those of a view on stdout.
func hexOptions(out *term.Output, all bool) decode.HexOptions {
	return decode.HexOptions{All: all, Paint: func(p decode.Part, s string) string {
		switch p {
		case decode.PartHead:
			return out.Cyan(s)
		case decode.PartLength:
			return out.Dim(s)
		case decode.PartText:
			return out.Green(s)
		case decode.PartNumber:
			return out.Yellow(s)
		case decode.PartBytes:
			return out.Magenta(s)
		case decode.PartBad:
			return out.Red(s)
		}
		return s
	}}
}

// HexDocument writes a document's bytes in one column and its fields in the next.
func HexDocument(out *term.Output, w io.Writer, doc *text.Document, by decode.View, all bool) error {
	o := hexOptions(out, all)
	o.Inside = true
	v := decode.NewHexView(w, o)
	if s := doc.Source(); s != "" {
		v.Line(out.Dim("in " + s + "; offsets are those of the bytes"))
	}
	var tree wire.Tree
	err := doc.Parts(func(p text.Part) error {
		switch {
		case len(p.Head) > 1:
			v.Rows(p.Off, []decode.Run{{Part: decode.PartHead, Data: p.Head[:1]}, {Part: decode.PartLength, Data: p.Head[1:]}}, p.Title)
		case len(p.Head) == 1:
			v.Rows(p.Off, []decode.Run{{Part: decode.PartLength, Data: p.Head}}, p.Title)
		case p.Title != "":
			v.Line(p.Title)
		}
		base, body := p.DataOff, v
		if base < 0 {
			v.Rows(p.Off+len(p.Head), []decode.Run{{Part: decode.PartBytes, Data: p.Raw}}, "compressed")
			inner := o
			inner.Indent = "  "
			if err := v.Flush(); err != nil {
				return err
			}
			base, body = 0, decode.NewHexView(w, inner)
			body.Line(out.Dim("decompressed, with offsets of its own:"))
		}
		switch {
		case len(p.Data) == 0:
		case p.Kind == "message":
			tree.Reset(p.Data, wire.Options{})
			body.Tree(&tree, by, base)
		case p.Kind == "text":
			body.Rows(base, []decode.Run{{Part: decode.PartText, Data: p.Data}}, out.Green(strconv.Quote(shortText(p.Data, all))))
		default:
			body.Rows(base, []decode.Run{{Part: decode.PartBytes, Data: p.Data}}, fmt.Sprintf("bytes[%d]", len(p.Data)))
		}
		return body.Flush()
	})
	if err != nil {
		return err
	}
	return v.Flush()
}

func shortText(data []byte, all bool) string {
	if all {
		return string(data)
	}
	return term.Cut(string(data), 60)
}

// hexFrame writes a frame's bytes in one column and its fields in the next, then what
// the fields contain.
func hexFrame(out *term.Output, w io.Writer, f *decode.Frame, by decode.View, all bool) error {
	o := hexOptions(out, all)
	o.Indent = "    "
	v := decode.NewHexView(w, o)
	switch {
	case f.Tree == nil:
		if len(f.Data) > 0 {
			v.Rows(0, []decode.Run{{Part: decode.PartText, Data: f.Data}}, out.Green(strconv.Quote(shortText(f.Data, all))))
		}
		return v.Flush()
	default:
		v.Tree(f.Tree, by, 0)
	}
	if err := v.Flush(); err != nil {
		return err
	}
	o.Indent = "      "
	for _, in := range f.Inner {
		v := decode.NewHexView(w, o)
		v.Line(out.Dim(fmt.Sprintf("in %s, as %s, %d bytes:", f.Tree.PathOf(in.Node), in.Encoding, len(in.Data))))
		if in.Tree != nil {
			v.Tree(in.Tree, decode.View{}, 0)
		} else {
			v.Rows(0, []decode.Run{{Part: decode.PartBytes, Data: in.Data}}, fmt.Sprintf("bytes[%d]", len(in.Data)))
		}
		if err := v.Flush(); err != nil {
			return err
		}
	}
	return nil
}

// endLines says in words what an end of stream or a unary error says.
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
