package render

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"unwire/captures"
	"unwire/cmd/internal/contract"
	"unwire/cmd/internal/term"
	"unwire/decode"
	"unwire/decode/transcript"
)

const (
	maxShownTurn   = 4000 // runes of what was said
	maxShownResult = 600  // of a tool's result or a prompt of the system
)

// Transcript writes who said what in an exchange, and the top candidates.
func Transcript(out *term.Output, w io.Writer, ex *decode.Exchange, tr *contract.Transcript, top int) {
	fmt.Fprintf(w, "%s\n", out.Bold(fmt.Sprintf("#%d %s", ex.ID, term.Clean(ex.CallName()))))
	for _, t := range tr.Turns {
		turn(out, w, tr.Tools, t)
	}
	if tr.Usage != nil {
		usage(out, w, tr.Usage)
	}
	switch {
	case tr.Error != nil:
		if tr.Answer == "" {
			fmt.Fprintf(w, "  no answer; it ended %s\n", endedText(tr.Error.Code, tr.Error.Message))
		} else {
			fmt.Fprintf(w, "%s  %s\n", out.Red("Error"), failureText(tr.Error.Code, tr.Error.Message))
		}
		for _, d := range tr.Error.Details {
			fmt.Fprintf(w, "  %s %s\n", term.Clean(d.Type), term.Clean(d.Text))
		}
	case tr.Answer == "":
		fmt.Fprintln(w, "  no answer found")
	}
	if len(tr.Candidates) > 0 {
		fmt.Fprintf(w, "%s\n", out.Bold("Candidates"))
	}
	for i, c := range tr.Candidates {
		if i == top {
			fmt.Fprintf(w, "  … %d more (--top)\n", len(tr.Candidates)-top)
			break
		}
		fmt.Fprintf(w, "  %2d. %-11s %.2f  %s %s  %s  %s\n", c.Rank, c.Role, c.Score, DirArrow(c.Dir), term.Clean(c.Path),
			frameSpan(c.Frames), term.Cut(strconv.Quote(term.Clean(c.Text)), 60))
		fmt.Fprintf(w, "      %s\n", out.Dim(Reasons(c.Reasons, 4)))
	}
	fmt.Fprintln(w)
}

// failureText is an error's code with its message, where there are both.
func failureText(code, message string) string {
	code, message = term.Clean(code), term.Clean(message)
	switch {
	case code == "" && message == "":
		return "an error without a message"
	case code == "":
		return message
	case message == "":
		return code
	}
	return code + ": " + message
}

// endedText says what error an exchange ended with.
func endedText(code, message string) string {
	if code == "" && message != "" {
		return "with an error: " + failureText(code, message)
	}
	return "in " + failureText(code, message)
}

// turnName is the heading of a turn.
func turnName(r transcript.Role) string {
	switch r {
	case transcript.User:
		return "You"
	case transcript.Thinking:
		return "Thinking"
	case transcript.Assistant:
		return "Answer"
	}
	return string(r)
}

func turn(out *term.Output, w io.Writer, tools []transcript.Tool, t transcript.Turn) {
	place := out.Dim(fmt.Sprintf("%s %s  %s", DirArrow(t.Dir), term.Clean(t.Path), frameSpan(t.Frames)))
	if t.Tool == 0 {
		fmt.Fprintf(w, "%s  %s\n%s\n", out.Bold(turnName(t.Role)), place, indent(shorten(t.Text, maxShownTurn), "  "))
		return
	}
	tool := tools[t.Tool-1]
	if len(tool.Frames) == 0 {
		fmt.Fprintf(w, "%s  %s\n", out.Bold("Tool result, of no call that was seen"), out.Dim(DirArrow(tool.ResultDir)+" "+term.Clean(tool.ResultPath)))
	} else {
		name := ""
		if tool.Name != "" {
			name = " " + term.Clean(tool.Name)
		}
		fmt.Fprintf(w, "%s%s  %s\n%s\n", out.Bold("Tool call"), name, place, indent(shorten(tool.Arguments, maxShownResult), "  "))
	}
	if tool.Result != "" {
		how := ""
		if tool.Paired == "order" {
			how = " (by order)"
		}
		fmt.Fprintf(w, "  %s\n%s\n", out.Dim(fmt.Sprintf("→ result%s  %s %s  %s", how, DirArrow(tool.ResultDir), term.Clean(tool.ResultPath), frameSpan(tool.ResultFrames))),
			indent(shorten(tool.Result, maxShownResult), "    "))
	}
}

func usage(out *term.Output, w io.Writer, u *transcript.Usage) {
	var parts []string
	for _, n := range []struct {
		name  string
		value *int64
	}{{"input", u.Input}, {"output", u.Output}, {"cached", u.Cached}, {"reasoning", u.Reasoning}, {"total", u.Total}} {
		if n.value != nil {
			parts = append(parts, fmt.Sprintf("%s %d", n.name, *n.value))
		}
	}
	note := ""
	if !u.Named {
		note = "; concluded from place and size"
	}
	fmt.Fprintf(w, "%s  %s  %s\n", out.Bold("Usage"), strings.Join(parts, " · "), out.Dim(fmt.Sprintf("↓ %s  frame %d%s", term.Clean(u.Path), u.Frame, note)))
}

// shorten cuts a text to its first runes and says how much is missing.
func shorten(s string, n int) string {
	r := []rune(term.CleanText(s[:min(len(s), 4*n)]))
	if len(s) <= 4*n && len(r) <= n {
		return string(r)
	}
	return fmt.Sprintf("%s… (%d bytes)", string(r[:min(len(r), n)]), len(s))
}

// frameSpan names frames shortly: "frame 3", "frames 3…17 (9)".
func frameSpan(frames []int) string {
	switch len(frames) {
	case 0:
		return "no frame"
	case 1:
		return fmt.Sprintf("frame %d", frames[0])
	}
	return fmt.Sprintf("frames %d…%d (%d)", frames[0], frames[len(frames)-1], len(frames))
}

// Reasons lists the top reasons, which are the weightiest, on one line.
func Reasons(reasons []transcript.Reason, top int) string {
	parts := make([]string, 0, top)
	for i, r := range reasons {
		if i == top {
			parts = append(parts, "…")
			break
		}
		parts = append(parts, fmt.Sprintf("%s %+.1f", r.Feature, r.Weight))
	}
	return strings.Join(parts, ", ")
}

func indent(s, by string) string {
	return by + strings.ReplaceAll(strings.TrimRight(s, "\n"), "\n", "\n"+by)
}

// DirArrow is the arrow of a direction that is named "up" or "down".
func DirArrow(dir string) string {
	if dir == captures.Up.String() {
		return Arrow(captures.Up)
	}
	return Arrow(captures.Down)
}
