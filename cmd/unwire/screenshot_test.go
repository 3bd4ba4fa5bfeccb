//go:build unix

package main

import (
	"fmt"
	"html"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"unwire/cmd/internal/term"
)

// screenshots are the pictures of the README, each with the commands that it shows.
var screenshots = []struct {
	name     string
	commands []string
}{
	{"look", []string{"unwire ls shop.uwc", "unwire show --no-pager shop.uwc 2"}},
}

const screenshotWidth = 100 // columns

// TestScreenshots draws what commands print on a real terminal, and compares the pictures
// with those of docs/screens: what the README shows is what unwire prints now.
// make screenshots draws them anew.
func TestScreenshots(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := &secretRun{t: t, bin: unwireCommand(t), work: dir, config: dir, ran: map[string]bool{}, unredacted: true}
	shop, err := filepath.Abs("testdata/screens/shop.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	s.ok(0, "import", shop, "-o", "shop.uwc")
	x := newTerminal(t, dir, screenshotWidth, 40)
	for _, shot := range screenshots {
		var lines []string
		for i, command := range shot.commands {
			if i > 0 {
				lines = append(lines, "")
			}
			lines = append(lines, "\x1b[1m$ "+command+"\x1b[0m")
			lines = append(lines, x.coloured(command)...)
		}
		got := drawn(strings.Join(shot.commands, "; "), lines)
		path := filepath.Join("docs", "screens", shot.name+".svg")
		if *update {
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
			continue
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatalf("%v: make screenshots draws it", err)
		}
		if got != string(want) {
			t.Errorf("%s is not what unwire prints now: make screenshots draws it anew; now it is\n%s", path, strings.Join(lines, "\n"))
		}
	}
}

// coloured runs a command and returns what it shows, with the escapes of colours.
func (x *terminal) coloured(command string) []string {
	x.t.Helper()
	pane, status := x.start(command)
	x.await(pane, "end of "+command, func() bool { _, err := os.Stat(status); return err == nil })
	text := strings.TrimRight(x.tmux("capture-pane", "-e", "-p", "-S", "-", "-E", "-", "-t", pane), "\n ")
	x.tmux("kill-window", "-t", pane)
	return strings.Split(text, "\n")
}

// The picture of a screen: sizes in pixels, and colours.
const (
	cellWidth   = 8.4
	lineHeight  = 19
	fontSize    = 14
	margin      = 14
	background  = "#1e1e2e"
	foreground  = "#cdd6f4"
	dimmed      = "#7f849c"
	firstColour = 30
)

// colours are those of SGR 30 to 37; 90 to 97 are drawn alike.
var colours = [8]string{"#585b70", "#f38ba8", "#a6e3a1", "#f9e2af", "#89b4fa", "#f5c2e7", "#94e2d5", "#bac2de"}

// A pen is how text is drawn.
type pen struct {
	colour    string
	bold, dim bool
}

// set changes the pen as the parameters of an SGR escape say.
func (p *pen) set(parameters string) {
	for part := range strings.SplitSeq(parameters, ";") {
		n, err := strconv.Atoi(part)
		switch {
		case err != nil || n == 0:
			*p = pen{}
		case n == 1:
			p.bold = true
		case n == 2:
			p.dim = true
		case n == 22:
			p.bold, p.dim = false, false
		case n == 39:
			p.colour = ""
		case n >= firstColour && n < firstColour+8:
			p.colour = colours[n-firstColour]
		case n >= firstColour+60 && n < firstColour+68:
			p.colour = colours[n-firstColour-60]
		}
	}
}

// style returns the attributes of text that the pen draws.
func (p pen) style() string {
	out := ""
	switch {
	case p.colour != "":
		out = ` fill="` + p.colour + `"`
	case p.dim:
		out = ` fill="` + dimmed + `"`
	}
	if p.bold {
		out += ` font-weight="bold"`
	}
	return out
}

// drawn returns lines of a terminal, with escapes of colours, as SVG. Each piece of text
// begins in the column of the terminal, whatever font is there.
func drawn(title string, lines []string) string {
	columns := screenshotWidth
	width, height := float64(columns)*cellWidth+2*margin, len(lines)*lineHeight+2*margin
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%.0f" height="%d" viewBox="0 0 %[1]f %[2]d" role="img">`+"\n", width, height)
	fmt.Fprintf(&b, "<title>%s</title>\n", html.EscapeString(title))
	fmt.Fprintf(&b, `<rect width="100%%" height="100%%" rx="6" fill="%s"/>`+"\n", background)
	fmt.Fprintf(&b, `<g font-family="ui-monospace,SFMono-Regular,Menlo,Consolas,monospace" font-size="%d" fill="%s" xml:space="preserve">`+"\n", fontSize, foreground)
	for row, line := range lines {
		at := 0
		var p pen
		for _, part := range splitEscapes(line) {
			if parameters, ok := strings.CutPrefix(part, "\x1b["); ok {
				p.set(strings.TrimSuffix(parameters, "m"))
				continue
			}
			cells := term.Cells(part)
			if text := strings.TrimRight(part, " "); text != "" {
				lead := len(text) - len(strings.TrimLeft(text, " "))
				n := term.Cells(text) - lead
				fmt.Fprintf(&b, `<text x="%.1f" y="%d" textLength="%.1f"%s>%s</text>`+"\n", margin+float64(at+lead)*cellWidth, margin+(row+1)*lineHeight-5, float64(n)*cellWidth, p.style(), html.EscapeString(text[lead:]))
			}
			at += cells
		}
	}
	b.WriteString("</g>\n</svg>\n")
	return b.String()
}

// splitEscapes returns the pieces of a line: text, and escapes that change the colour.
func splitEscapes(line string) []string {
	var parts []string
	for line != "" {
		at := strings.Index(line, "\x1b[")
		if at < 0 {
			return append(parts, line)
		}
		end := strings.IndexByte(line[at:], 'm')
		if end < 0 {
			return append(parts, line[:at])
		}
		if at > 0 {
			parts = append(parts, line[:at])
		}
		parts = append(parts, line[at:at+end+1])
		line = line[at+end+1:]
	}
	return parts
}

func TestSplitEscapes(t *testing.T) {
	t.Parallel()
	got := splitEscapes("a\x1b[1;31mb\x1b[0m c")
	if want := []string{"a", "\x1b[1;31m", "b", "\x1b[0m", " c"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	p := pen{}
	p.set("1;31")
	if got := p.style(); got != ` fill="#f38ba8" font-weight="bold"` {
		t.Error(got)
	}
	if p.set(""); p.style() != "" {
		t.Error(p.style())
	}
}
