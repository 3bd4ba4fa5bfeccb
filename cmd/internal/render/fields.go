package render

import (
	"bufio"
	"encoding/hex"
	"fmt"
	"io"
	"iter"
	"math/bits"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"unwire/cmd/internal/app"
	"unwire/cmd/internal/contract"
	"unwire/cmd/internal/term"
	"unwire/decode"
	"unwire/decode/field"
	"unwire/decode/kind"
	"unwire/decode/wire"
)

const (
	// maxText is the length in characters to which texts are truncated, and the number of bytes or
	// elements for other values.
	maxText = 160

	// surely is the probability from which on an inferred type is printed without its probability.
	surely = 0.95
)

// Fields prints decoded fields without colours, one on each line, after indent: offset, number and name,
// type, value and, if the type is ambiguous, its probability and the runner-up. Control characters are
// escaped.
//
// Shape: `0004 1 text: string "Hi"`, nested fields indented.
func Fields(w io.Writer, fields iter.Seq[*field.Field], indent string) error {
	p := fieldPrinter{w: bufio.NewWriter(w), out: &term.Output{}}
	p.fields(fields, indent, 0)
	return p.w.Flush()
}

// shownFields prints decoded fields, one on each line after indent, with colours. notes are printed below the fields
// at their offsets. On a terminal, it also prints text and messages that bytes contain. A w that has a buffer is not
// flushed, since there may be many short messages.
func shownFields(out *term.Output, w io.Writer, fields iter.Seq[*field.Field], indent string, notes map[int][]*contract.PlaceNote) error {
	p := fieldPrinter{w: bufio.NewWriter(w), out: out, notes: notes}
	p.fields(fields, indent, 0)
	if p.w == w {
		return nil
	}
	return p.w.Flush()
}

// A fieldPrinter prints decoded fields, one per line. A message may have a million of them, for which fmt would take
// seconds.
type fieldPrinter struct {
	// w buffers the output.
	w *bufio.Writer

	// out has the colours and the width of the output.
	out *term.Output

	// notes are the notes on fields, by the offset of the field.
	notes map[int][]*contract.PlaceNote

	// buf is reused memory for a number.
	buf []byte

	// doubted is the field with the last remark on the certainty of its type, and doubt that remark. The elements of a
	// repeated field have the same.
	doubted field.Field
	doubt   string
}

// fields prints the fields of a message that is nested depth levels deep.
func (p *fieldPrinter) fields(fields iter.Seq[*field.Field], indent string, depth int) {
	for f := range fields {
		shown := f
		if f.Cut != nil {
			shown = f.Cut
		}
		p.w.WriteString(indent)
		p.buf = appendHexOffset(p.buf[:0], f.Off, 4)
		p.dim(p.buf)
		p.w.WriteString("  ")
		for range depth {
			p.w.WriteString("  ")
		}
		p.head(shown)
		p.value(shown)
		if !isCertain(shown) {
			p.w.WriteString("  ")
			p.w.WriteString(p.certainty(shown))
		}
		p.w.WriteString(likeness(shown))
		if f.Cut != nil {
			p.w.WriteString("  (truncated)")
		}
		if f.Error != "" {
			p.w.WriteString("  ")
			if text := term.Clean(f.Error); p.out.Color {
				p.w.WriteString(p.out.Red("! " + text))
			} else {
				p.w.WriteString("! ")
				p.w.WriteString(text)
			}
		}
		p.w.WriteString("\n")
		if notes := p.notes[f.Off]; len(notes) > 0 {
			Notes(p.out, p.w, notes, indent+strings.Repeat("  ", depth+4))
		}
		if len(shown.Fields) > 0 {
			p.fields(slices.Values(shown.Fields), indent, depth+1)
		}
		if p.out.TTY {
			p.contents(shown, indent, depth+1)
		}
	}
}

// dim prints b in a dim colour.
func (p *fieldPrinter) dim(b []byte) {
	if p.out.Color {
		b = []byte(p.out.Dim(string(b)))
	}
	p.w.Write(b)
}

// head prints the number and the name of a field.
func (p *fieldPrinter) head(f *field.Field) {
	if f.Wire == wire.Garbage.String() {
		p.w.WriteString(p.out.Red("garbage"))
		p.w.WriteByte(' ')
		return
	}
	p.buf = strconv.AppendUint(p.buf[:0], f.N, 10)
	p.w.Write(p.buf)
	if f.Name != "" {
		p.w.WriteByte(' ')
		p.w.WriteString(p.out.Cyan(f.Name))
	}
	p.w.WriteString(": ")
}

// value prints the type and the value of a field.
func (p *fieldPrinter) value(f *field.Field) {
	if !p.out.Color && p.plainNumber(f) {
		return
	}
	typ, value := typeAndValue(f, maxText)
	if c, ok := f.Value.([]byte); ok && p.out.TTY && contentsOf(c).what != "" {
		value = contentsOf(c).what // it stands below
	}
	switch f.Value.(type) {
	case nil:
		p.w.WriteString(p.out.Dim(typ + value))
		return
	case string:
		value = p.out.Green(value)
	case []byte:
		value = p.out.Magenta(value)
	default:
		value = p.out.Yellow(value)
	}
	p.w.WriteString(p.out.Dim(typ))
	p.w.WriteByte(' ')
	p.w.WriteString(value)
}

// plainNumber prints the type and the value of an integer without a name, or the size of a message, without colours. It
// reports whether the field is one of these, which are the most frequent ones.
func (p *fieldPrinter) plainNumber(f *field.Field) bool {
	switch v := f.Value.(type) {
	case int64:
		if f.Symbol != "" {
			return false
		}
		p.buf = strconv.AppendInt(append(append(p.buf[:0], f.Type...), ' '), v, 10)
	case nil:
		size := f.Off + f.Len - f.Val
		p.buf = append(strconv.AppendInt(append(append(p.buf[:0], f.Type...), ", "...), int64(size), 10), " byte"...)
		if size != 1 {
			p.buf = append(p.buf, 's')
		}
	default:
		return false
	}
	p.w.Write(p.buf)
	return true
}

// certainty returns the remark on the certainty of a field's type, in red unless the user chose the type.
func (p *fieldPrinter) certainty(f *field.Field) string {
	d := &p.doubted
	if p.doubt != "" && d.Chosen == f.Chosen && d.P == f.P && slices.Equal(d.Alternatives, f.Alternatives) {
		return p.doubt
	}
	d.Chosen, d.P, d.Alternatives = f.Chosen, f.P, f.Alternatives
	colour := p.out.Red
	if f.Chosen {
		colour = p.out.Dim
	}
	p.doubt = colour(certainty(f))
	return p.doubt
}

// contents prints the JSON, text or message that a bytes field contains, if any.
func (p *fieldPrinter) contents(f *field.Field, indent string, depth int) {
	data, ok := f.Value.([]byte)
	if !ok || depth > maxContents {
		return
	}
	c := contentsOf(data)
	margin := indent + "      " + strings.Repeat("  ", depth)
	for i, line := range c.lines {
		if i == mostContents {
			fmt.Fprintf(p.w, "%s%s\n", margin, p.out.Dim("… "+app.Counted(len(c.lines)-i, "more line")))
			break
		}
		width := 2 * maxText
		if p.out.Width > 0 {
			width = max(p.out.Width-len(margin), minContents)
		}
		fmt.Fprintf(p.w, "%s%s\n", margin, p.out.Green(CutLine(term.Clean(line), width)))
	}
	if c.message != nil {
		p.fields(decode.View{}.Each(c.message), indent, depth)
	}
}

// isCertain reports whether a field's type was inferred and is certain.
func isCertain(f *field.Field) bool { return !f.Chosen && f.P >= surely }

// certainty returns a remark with the probability of a field's inferred type and the runner-up; "" if the
// type is certain.
func certainty(f *field.Field) string {
	switch {
	case f.Chosen:
		return "(chosen)"
	case isCertain(f):
		return ""
	}
	// A message may have a million of these texts, for which fmt would take seconds.
	var buf [80]byte
	s := strconv.AppendFloat(append(buf[:0], "(probability "...), f.P, 'f', 2, 64)
	if len(f.Alternatives) > 0 {
		other := &f.Alternatives[0]
		s = append(append(append(s, ", otherwise "...), other.Type...), ' ')
		s = strconv.AppendFloat(s, other.P, 'f', 2, 64)
	}
	return string(append(s, ')'))
}

// appendHexOffset appends an offset in hex with at least width digits.
func appendHexOffset(b []byte, off, width int) []byte {
	digits := max((bits.Len(uint(off))+3)/4, 1)
	for range width - digits {
		b = append(b, '0')
	}
	return strconv.AppendUint(b, uint64(off), 16)
}

// likeness returns a remark on what a field's value looks like, such as a UUID or a time; "" if nothing.
func likeness(f *field.Field) string {
	word := f.Shape
	if (kind.Remark{Shape: f.Shape, P: f.ShapeP}).Doubtful() {
		word = fmt.Sprintf("perhaps %s (%.2f)", word, f.ShapeP)
	}
	if f.Name != "" { // its declaration says more
		word = ""
	}
	switch f.Form {
	case "uuid", "jwt", "pem":
		word = f.Form
	case "hex", "base64":
		if f.Note != "" {
			return "  = " + term.Clean(f.Note+" in "+f.Form)
		}
	case "number", "date":
		if f.Note != "" {
			word = f.Form
		}
	}
	if f.Note != "" && f.Form != "data-url" {
		if word != "" {
			word += ": "
		}
		word += f.Note
	}
	if word != "" {
		return "  = " + term.Clean(word)
	}
	return ""
}

// summary formats a field's type and value on one line. A text is truncated to limit characters, any
// other value to limit bytes or elements; a negative limit means no truncation.
func summary(f *field.Field, limit int) string {
	typ, value := typeAndValue(f, limit)
	if f.Value == nil {
		return typ + value
	}
	return typ + " " + value
}

// typeAndValue returns the type and the value of a field as text; limit has the same meaning as for
// summary.
func typeAndValue(f *field.Field, limit int) (typ, value string) {
	switch v := f.Value.(type) {
	case string:
		return f.Type, quote(v, limit)
	case []byte:
		return fmt.Sprintf("%s[%d]", f.Type, len(v)), hexCut(v, limit)
	case []uint64:
		return listText(f.Type, v, limit)
	case []int64:
		return listText(f.Type, v, limit)
	case []bool:
		return listText(f.Type, v, limit)
	case []float32:
		return listText(f.Type, v, limit)
	case []float64:
		return listText(f.Type, v, limit)
	case []any:
		return listText(f.Type, v, limit)
	case nil:
		return f.Type, ", " + app.Counted(f.Off+f.Len-f.Val, "byte")
	default:
		if f.Symbol != "" {
			return f.Type, f.Symbol + " (" + numberText(v) + ")"
		}
		return f.Type, numberText(v)
	}
}

// numberText formats a number or a bool. A message may have a million of them.
func numberText(v any) string {
	switch v := v.(type) {
	case int64:
		return strconv.FormatInt(v, 10)
	case uint64:
		return strconv.FormatUint(v, 10)
	case bool:
		return strconv.FormatBool(v)
	}
	return fmt.Sprint(v)
}

// quote returns a text as a Go string literal, truncated to limit characters; a negative limit means no
// truncation.
func quote(s string, limit int) string {
	if limit < 0 || len(s) <= limit {
		return strconv.Quote(s)
	}
	cut := 0
	for range limit {
		_, n := utf8.DecodeRuneInString(s[cut:])
		cut += n
	}
	if cut == len(s) {
		return strconv.Quote(s)
	}
	return fmt.Sprintf("%s… (%d bytes)", strconv.Quote(s[:cut]), len(s))
}

// hexCut returns bytes in hex, truncated to limit bytes.
func hexCut(b []byte, limit int) string {
	if limit < 0 || len(b) <= limit {
		return hex.EncodeToString(b)
	}
	return hex.EncodeToString(b[:limit]) + "…"
}

// listText formats a list: its type with the number of elements, and up to limit elements.
func listText[T any](typ string, vs []T, limit int) (sized, list string) {
	return fmt.Sprintf("%s[%d]", typ, len(vs)), listCut(vs, limit)
}

// listCut formats up to limit elements of a list, separated by spaces.
func listCut[T any](vs []T, limit int) string {
	shown := vs
	if limit >= 0 && len(vs) > limit {
		shown = vs[:limit]
	}
	parts := make([]string, len(shown))
	for i, v := range shown {
		parts[i] = fmt.Sprint(v)
	}
	s := strings.Join(parts, " ")
	if len(shown) < len(vs) {
		s += " …"
	}
	return s
}
