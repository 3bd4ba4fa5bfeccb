package render

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"unwire/captures"
	"unwire/cmd/internal/app"
	"unwire/cmd/internal/contract"
	"unwire/cmd/internal/term"
	"unwire/decode"
	"unwire/decode/transcript"
)

// Lengths to which texts are truncated, in characters.
const (
	// maxShownTurn is for the text of a turn.
	maxShownTurn = 4000

	// maxShownResult is for arguments and results of tool calls.
	maxShownResult = 600
)

// maxListedFrames is how many frame numbers are listed one by one.
const maxListedFrames = 4

// Transcript prints the conversation that was found in an exchange, and then the top candidates: the
// texts that were considered, with their scores and roles.
func Transcript(out *term.Output, w io.Writer, ex *decode.Exchange, tr *contract.Transcript, top int) {
	fmt.Fprintf(w, "%s\n", out.Bold(fmt.Sprintf("Exchange %d: %s", ex.ID, term.Clean(ex.CallName()))))
	if tr.Continues != 0 {
		fmt.Fprintf(w, "%s\n", out.Dim(fmt.Sprintf("This exchange continues the conversation of exchange %d, whose messages are not repeated here.", tr.Continues)))
	}
	for _, t := range tr.Turns {
		if !t.Earlier {
			turn(out, w, tr.Tools, t)
		}
	}
	if tr.Usage != nil {
		usage(out, w, tr.Usage)
	}

	// An error explains a missing answer, so it takes precedence.
	switch {
	case tr.Error != nil:
		if tr.Answer == "" {
			fmt.Fprintf(w, "  no answer; the exchange ended %s\n", endedText(tr.Error.Code, tr.Error.Message))
		} else {
			fmt.Fprintf(w, "%s  %s\n", out.Red("Error"), failureText(tr.Error.Code, tr.Error.Message))
		}
		for _, d := range tr.Error.Details {
			fmt.Fprintf(w, "  %s %s\n", term.Clean(d.Type), term.Clean(d.Text))
		}
	case !tr.Found():
		fmt.Fprintln(w, "  unwire found no conversation in this exchange")
	case tr.Answer == "":
		fmt.Fprintln(w, "  unwire found no answer in this exchange")
	}

	// The candidates are all texts that were considered, with the reasons for their roles.
	if len(tr.Candidates) > 0 {
		fmt.Fprintf(w, "%s\n", out.Bold("Candidates: the texts of the exchange, best score first"))
	}
	if top > 0 && len(tr.Candidates) > 0 {
		fmt.Fprint(w, out.Wrap("  "+out.Dim("The score, from 0 to 1, says how certain the role is. Each reason gives points for the role (+) or against it (-): many points mean a high score.")+"\n"))
	}
	for i, c := range tr.Candidates {
		if i == top {
			fmt.Fprintf(w, "  … and %s (--top prints more)\n", app.Counted(len(tr.Candidates)-top, "more candidate"))
			break
		}
		fmt.Fprint(w, out.Wrap(fmt.Sprintf("  %2d. role %s, score %.2f, %s: %s\n", c.Rank, c.Role, c.Score, Source(c.Dir, c.Path, c.Frames),
			term.Cut(`"`+term.Clean(c.Text)+`"`, 60))))
		fmt.Fprintln(w, out.Dim(strings.TrimSuffix(out.Wrap("      points for this role: "+Reasons(c.Reasons, 4)+"\n"), "\n")))
	}
	fmt.Fprintln(w)
}

// failureText joins the code and message of an error; either may be "".
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

// endedText returns a phrase for the error with which an exchange ended, to follow "ended".
func endedText(code, message string) string {
	if code == "" && message != "" {
		return "with an error: " + failureText(code, message)
	}
	if code != "" {
		return "with the code " + failureText(code, message)
	}
	return "with " + failureText(code, message)
}

// turnName returns the heading for a turn of a role, such as "Answer" for the assistant.
func turnName(r transcript.Role) string {
	switch r {
	case transcript.User:
		return "Prompt"
	case transcript.Thinking:
		return "Thinking"
	case transcript.Assistant:
		return "Answer"
	}
	return string(r)
}

// turn prints one turn of a conversation: a text, or a tool call with its result.
func turn(out *term.Output, w io.Writer, tools []transcript.Tool, t transcript.Turn) {
	place := out.Dim("(" + Source(t.Dir, t.Path, t.Frames) + ")")
	if t.Tool == 0 {
		fmt.Fprintf(w, "%s  %s\n%s", out.Bold(turnName(t.Role)), place, out.Wrap(indent(shorten(t.Text, maxShownTurn), "  ")+"\n"))
		return
	}
	tool := tools[t.Tool-1]
	if len(tool.Frames) == 0 {
		fmt.Fprintf(w, "%s  %s\n", out.Bold("Tool result without a tool call"), out.Dim("("+Source(tool.ResultDir, tool.ResultPath, tool.ResultFrames)+")"))
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
			how = " (assigned to this call by the order of the results)"
		}
		if tool.ResultExchange != 0 {
			how += fmt.Sprintf(" in exchange %d", tool.ResultExchange)
		}
		fmt.Fprintf(w, "  %s\n%s\n", out.Dim(fmt.Sprintf("result%s  (%s)", how, Source(tool.ResultDir, tool.ResultPath, tool.ResultFrames))),
			indent(shorten(tool.Result, maxShownResult), "    "))
	}
}

// usage prints how many tokens an exchange used.
func usage(out *term.Output, w io.Writer, u *transcript.Usage) {
	var parts []string
	for _, n := range []struct {
		name  string
		value *int64
	}{{"input", u.Input}, {"output", u.Output}, {"cached", u.Cached}, {"reasoning", u.Reasoning}, {"total", u.Total}} {
		if n.value != nil {
			parts = append(parts, fmt.Sprintf("%d %s", *n.value, n.name))
		}
	}
	note := ""
	if !u.Named {
		note = "\n  The traffic does not name these numbers: unwire recognized them by their position and size."
	}
	place := out.Dim("(" + Source(captures.Down.String(), u.Path, []int{u.Frame}) + ")" + note)
	fmt.Fprint(w, out.Wrap(fmt.Sprintf("%s  %s  %s\n", out.Bold("Tokens used:"), strings.Join(parts, ", "), place)))
}

// shorten truncates a text to n characters, and then appends its size in bytes.
func shorten(s string, n int) string {
	r := []rune(term.CleanText(s[:min(len(s), 4*n)]))
	if len(s) <= 4*n && len(r) <= n {
		return string(r)
	}
	return fmt.Sprintf("%s… (%d bytes)", string(r[:min(len(r), n)]), len(s))
}

// frameSpan names the frames with the given numbers in short: "frame 3", "frames 1, 3 and 5" or "frames 3 to 17 (9 of them)".
func frameSpan(frames []int) string {
	switch len(frames) {
	case 0:
		return "no frame"
	case 1:
		return fmt.Sprintf("frame %d", frames[0])
	}
	first, last := frames[0], frames[len(frames)-1]
	if len(frames) == last-first+1 {
		return fmt.Sprintf("frames %d to %d", first, last)
	}
	if len(frames) <= maxListedFrames {
		return fmt.Sprintf("frames %s and %d", joinedNumbers(frames[:len(frames)-1]), last)
	}
	return fmt.Sprintf("frames %d to %d (%d of them)", first, last, len(frames))
}

// joinedNumbers joins numbers with commas.
func joinedNumbers(list []int) string {
	texts := make([]string, len(list))
	for i, n := range list {
		texts[i] = strconv.Itoa(n)
	}
	return strings.Join(texts, ", ")
}

// Reasons formats the first top reasons for a score on one line, each with its weight.
func Reasons(reasons []transcript.Reason, top int) string {
	parts := make([]string, 0, top)
	for i, r := range reasons {
		if i == top {
			parts = append(parts, "…")
			break
		}
		parts = append(parts, fmt.Sprintf("%s %+.1f", featureText(r.Feature), r.Weight))
	}
	return strings.Join(parts, "; ")
}

// indent puts by before each line of a text.
func indent(s, by string) string {
	return by + strings.ReplaceAll(strings.TrimRight(s, "\n"), "\n", "\n"+by)
}

// Source says where a text comes from: who sent it, the path of its field, and its frames.
func Source(dir, path string, frames []int) string {
	parts := []string{"sent by the " + Sender(dir), "field " + term.Clean(path), frameSpan(frames)}
	if path == "" {
		parts = slices.Delete(parts, 1, 2)
	}
	return strings.Join(parts, ", ")
}
