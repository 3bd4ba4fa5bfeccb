// Package term is where output meets a terminal: tables, colour, width, and
// the escaping that keeps captured bytes from driving the terminal.
//
// A Table says for each Column how important it is and how its cells are shortened;
// on a terminal it fits the width, elsewhere it is tab-separated. The package knows
// nothing of what is printed. Commands and package render write through an Output.
// Long text goes through a pager (Page).
package term

import (
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	xterm "golang.org/x/term"
)

// An Output is a stream that people or programs read.
type Output struct {
	io.Writer
	TTY   bool // a terminal: tables are drawn; off it they are TSV
	Color bool

	// Width and Height are those of the terminal in cells; 0 where there is none.
	Width, Height int
}

// New looks at w and the user's wish: color is "auto", "always" or "never".
// NO_COLOR and TERM=dumb turn "auto" off, as no-color.org asks.
func New(w io.Writer, color string) *Output {
	o := &Output{Writer: w}
	if f, ok := w.(*os.File); ok && xterm.IsTerminal(int(f.Fd())) {
		o.TTY = true
		if width, height, err := xterm.GetSize(int(f.Fd())); err == nil {
			o.Width, o.Height = width, height
		}
		if columns, err := strconv.Atoi(os.Getenv("COLUMNS")); err == nil && columns > 0 {
			o.Width = columns
		}
	}
	switch color {
	case "always":
		o.Color = true
	case "auto":
		o.Color = o.TTY && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
	}
	return o
}

// Bold, Dim and the colours return s marked up where colour is on.
func (o *Output) Bold(s string) string    { return o.sgr("1", s) }
func (o *Output) Dim(s string) string     { return o.sgr("2", s) }
func (o *Output) Red(s string) string     { return o.sgr("31", s) }
func (o *Output) Yellow(s string) string  { return o.sgr("33", s) }
func (o *Output) Magenta(s string) string { return o.sgr("35", s) }
func (o *Output) Cyan(s string) string    { return o.sgr("36", s) }
func (o *Output) Green(s string) string   { return o.sgr("32", s) }

func (o *Output) sgr(code, s string) string {
	if !o.Color || s == "" {
		return s
	}
	return "\x1b[" + code + "m" + s + "\x1b[0m"
}

// Clean makes foreign text fit for one line of a terminal: control characters,
// bidirectional overrides and broken UTF-8 are written as escapes.
func Clean(s string) string {
	if !strings.ContainsFunc(s, unsafeRune) && utf8.ValidString(s) {
		return s
	}
	return escape(s, "")
}

// CleanText is Clean for text that may span lines: newlines and tabs stay.
func CleanText(s string) string { return escape(s, "\n\t") }

func escape(s, keep string) string {
	var b strings.Builder
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && n == 1:
			fmt.Fprintf(&b, `\x%02x`, s[i])
		case strings.ContainsRune(keep, r):
			b.WriteRune(r)
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\r':
			b.WriteString(`\r`)
		case r == '\t':
			b.WriteString(`\t`)
		case unsafeRune(r) && r < 0x80:
			fmt.Fprintf(&b, `\x%02x`, r)
		case unsafeRune(r):
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			b.WriteRune(r)
		}
		i += n
	}
	return b.String()
}

func unsafeRune(r rune) bool {
	return unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) || r == '\u2028' || r == '\u2029'
}

// Cut shortens s to at most n columns' worth of runes and says how much is missing.
func Cut(s string, n int) string {
	if utf8.RuneCountInString(s) <= n {
		return s
	}
	runes := []rune(s)
	return fmt.Sprintf("%s… (%d characters)", string(runes[:n]), len(runes))
}
