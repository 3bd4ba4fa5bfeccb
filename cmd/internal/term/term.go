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
	"unicode/utf8"

	xterm "golang.org/x/term"

	"unwire/captures/safetext"
)

// An Output is an output stream, with what is known about the terminal behind it.
type Output struct {
	// Writer is the stream to which is written.
	io.Writer

	// TTY means that the stream is a terminal, on which tables are drawn; otherwise they are printed as
	// tab-separated values.
	TTY bool

	// Color means that escape sequences for colours are written.
	Color bool

	// Width is the number of columns of the terminal; 0 if the output is not a terminal.
	Width int

	// Height is the number of lines of the terminal; 0 if the output is not a terminal.
	Height int

	// Notice, if set, is called with all data before it is written.
	Notice func([]byte)
}

// Write writes data to the stream.
func (o *Output) Write(b []byte) (int, error) {
	if o.Notice != nil {
		o.Notice(b)
	}
	return o.Writer.Write(b)
}

// New returns the Output for w, which is examined for a terminal. color is "auto", "always" or "never".
// NO_COLOR and TERM=dumb turn colours off for "auto"; see no-color.org.
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

// Columns returns the terminal's current width, or the value of COLUMNS if that is set; 0 if the output
// is no terminal.
func (o *Output) Columns() int {
	if f, ok := o.Writer.(*os.File); ok && o.TTY && os.Getenv("COLUMNS") == "" {
		if width, _, err := xterm.GetSize(int(f.Fd())); err == nil {
			return width
		}
	}
	return o.Width
}

// Bold returns s in bold, or unchanged if the output has no colours.
func (o *Output) Bold(s string) string { return o.sgr("1", s) }

// Dim returns s in a dim colour, or unchanged if the output has no colours.
func (o *Output) Dim(s string) string { return o.sgr("2", s) }

// Red returns s in red, or unchanged if the output has no colours.
func (o *Output) Red(s string) string { return o.sgr("31", s) }

// Yellow returns s in yellow, or unchanged if the output has no colours.
func (o *Output) Yellow(s string) string { return o.sgr("33", s) }

// Magenta returns s in magenta, or unchanged if the output has no colours.
func (o *Output) Magenta(s string) string { return o.sgr("35", s) }

// Cyan returns s in cyan, or unchanged if the output has no colours.
func (o *Output) Cyan(s string) string { return o.sgr("36", s) }

// Green returns s in green, or unchanged if the output has no colours.
func (o *Output) Green(s string) string { return o.sgr("32", s) }

// sgr returns s between the ANSI escape sequence with a code (Select Graphic Rendition) and the reset
// sequence, or unchanged if the output has no colours.
func (o *Output) sgr(code, s string) string {
	if !o.Color || s == "" {
		return s
	}
	return "\x1b[" + code + "m" + s + "\x1b[0m"
}

// Clean escapes control characters in foreign text, including line ends, so that it is safe on one line
// of a terminal; see safetext.Line.
func Clean(s string) string { return safetext.Line(s) }

// CleanText escapes control characters in foreign text, but keeps newlines and tabs, so that it is safe to print on
// several lines of a terminal.
func CleanText(s string) string { return safetext.Lines(s) }

// CleanStart returns the first n characters of foreign text with control characters and line ends escaped, so that
// it is safe on one line of a terminal. A longer text is followed by its total number of characters. Only the
// beginning of the text is escaped, so a large text costs no more than counting its characters.
func CleanStart(text []byte, n int) string {
	// Each character of the result comes from at most utf8.UTFMax bytes.
	if len(text) <= n*utf8.UTFMax {
		return Cut(Clean(string(text)), n)
	}
	runes := []rune(Clean(string(text[:n*utf8.UTFMax])))
	return fmt.Sprintf("%s… (%d characters)", string(runes[:min(n, len(runes))]), utf8.RuneCount(text))
}

// Cut truncates s to n characters, and then appends the number of characters that s has.
func Cut(s string, n int) string {
	if utf8.RuneCountInString(s) <= n {
		return s
	}
	runes := []rune(s)
	return fmt.Sprintf("%s… (%d characters)", string(runes[:n]), len(runes))
}
