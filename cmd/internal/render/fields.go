package render

import (
	"bufio"
	"encoding/hex"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"

	"unwire/cmd/internal/contract"
	"unwire/cmd/internal/term"
	"unwire/decode/field"
	"unwire/decode/kind"
	"unwire/decode/wire"
)

const (
	// Characters of a text, bytes of other values, before they are cut.
	maxText = 160

	// Readings as likely as this are given without their probability.
	surely = 0.95
)

// Fields writes fields for people, a line a field, with indent in front of every line:
// offset, number and name, kind, value, and the probability and the next best reading
// where it is not beyond doubt. Nothing in it can control a terminal.
//
// Shape: `0004      1 text: string "Hi"`, nested fields indented.
func Fields(w io.Writer, fields []*field.Field, indent string) error {
	b := bufio.NewWriter(w)
	writeFields(b, fields, indent, 0, nil)
	return b.Flush()
}

// notedFields is Fields with the notes about fields, by their offsets, below each.
func notedFields(out *term.Output, w io.Writer, fields []*field.Field, indent string, notes map[int][]*contract.PlaceNote) error {
	if len(notes) == 0 {
		return Fields(w, fields, indent)
	}
	b := bufio.NewWriter(w)
	writeFields(b, fields, indent, 0, func(f *field.Field, indent string) { Notes(out, b, notes[f.Off], indent) })
	return b.Flush()
}

// writeFields writes fields of a depth, and calls below, if it is set, after the line of each.
func writeFields(w *bufio.Writer, fields []*field.Field, indent string, depth int, below func(f *field.Field, indent string)) {
	for _, f := range fields {
		fmt.Fprintf(w, "%s%04x  %s", indent, f.Off, strings.Repeat("  ", depth))
		shown := f
		if f.Cut != nil {
			shown = f.Cut
		}
		if shown.Wire == wire.Garbage.String() {
			w.WriteString("garbage ")
		} else {
			w.WriteString(strconv.FormatUint(shown.N, 10))
			if shown.Name != "" {
				w.WriteString(" " + shown.Name)
			}
			w.WriteString(": ")
		}
		w.WriteString(summary(shown, maxText))
		w.WriteString(about(shown))
		if f.Cut != nil {
			w.WriteString("  (cut off)")
		}
		if f.Error != "" {
			w.WriteString("  ! " + plain(f.Error))
		}
		w.WriteString("\n")
		if below != nil {
			below(f, indent+strings.Repeat("  ", depth+4))
		}
		writeFields(w, shown.Fields, indent, depth+1, below)
	}
}

// about is how sure a field's reading is, and what its value looks like.
func about(f *field.Field) string {
	var s string
	switch {
	case f.Chosen:
		s = "  (chosen)"
	case f.P < surely:
		s = fmt.Sprintf("  (p %.2f", f.P)
		if len(f.Alternatives) > 0 {
			s += fmt.Sprintf(", else %s %.2f", f.Alternatives[0].Type, f.Alternatives[0].P)
		}
		s += ")"
	}
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
	case "hex", "base64", "number", "date":
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
		s += "  = " + plain(word)
	}
	return s
}

// summary is a field's type and value on one line. A text is cut to limit characters,
// any other value to limit bytes or elements; a negative limit is none.
func summary(f *field.Field, limit int) string {
	switch v := f.Value.(type) {
	case string:
		return f.Type + " " + quote(v, limit)
	case []byte:
		return fmt.Sprintf("%s[%d] %s", f.Type, len(v), hexCut(v, limit))
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
		return fmt.Sprintf("%s, %d bytes", f.Type, f.Off+f.Len-f.Val)
	default:
		if f.Symbol != "" {
			return fmt.Sprintf("%s %s (%v)", f.Type, f.Symbol, v)
		}
		return fmt.Sprintf("%s %v", f.Type, v)
	}
}

// quote writes text as a Go string, cut to limit characters.
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

func hexCut(b []byte, limit int) string {
	if limit < 0 || len(b) <= limit {
		return hex.EncodeToString(b)
	}
	return hex.EncodeToString(b[:limit]) + "…"
}

func listText[T any](typ string, vs []T, limit int) string {
	return fmt.Sprintf("%s[%d] %s", typ, len(vs), listCut(vs, limit))
}

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

// plain keeps what errors quote from the wire from controlling a terminal.
func plain(s string) string {
	q := strconv.Quote(s)
	return strings.ReplaceAll(q[1:len(q)-1], `\"`, `"`)
}
