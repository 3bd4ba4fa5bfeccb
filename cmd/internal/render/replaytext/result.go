package replaytext

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"unwire/cmd/internal/app"
	"unwire/cmd/internal/term"
	"unwire/replay"
	"unwire/replay/outbound"
)

// Result prints the outcome of a replay, without the differences between the answers.
func Result(out *term.Output, r *replay.Result) {
	out.Sayf("%s\n", out.Bold(Comparison(r)))
	for _, d := range r.Details {
		out.Sayf("error detail %s %s\n", term.Clean(d.Type), term.Cut(term.Clean(oneLine(d.Text)), 400))
	}
	for _, c := range r.Concluded {
		out.Sayf("note: %s\n", term.Clean(c))
	}
	if len(r.Refreshed) > 0 {
		out.Sayf("unwire replaced outdated IDs and times by new ones in: %s\n", term.Clean(strings.Join(r.Refreshed, ", ")))
	}
}

// Comparison returns the outcome of a replay in one line. It distinguishes what the server reported from
// local errors.
func Comparison(r *replay.Result) string {
	s := string(r.Comparison)
	switch r.Comparison {
	case replay.Same:
		s = "same answer as recorded"
	case replay.Differs:
		s = "differs from the recorded answer"
	}
	switch {
	case r.Comparison == replay.Refused:
		// The message begins with the verdict; see outbound.ErrRefused.
		reason := strings.TrimPrefix(r.Message, outbound.ErrRefused.Error()+": ")
		return outbound.ErrRefused.Error() + ": " + term.Clean(reason)
	case r.Comparison == replay.NotSent:
		return "not sent: " + term.Clean(r.Message)
	case r.Reason == outbound.NoAnswer:
		return "no answer: " + term.Clean(r.Message)
	case r.Message == "" && r.Code == "":
	case r.Origin == replay.FromServer:
		s += ": the server answered " + codeAndMessage(r)
	default:
		s += ": local error " + codeAndMessage(r)
	}
	if r.Status != 0 {
		s += fmt.Sprintf(" (HTTP %d; %s sent, %d received)", r.Status, app.Counted(r.Sent, "frame"), r.Received)
	}
	return s
}

// codeAndMessage returns the code of a result and, after a colon, its message.
func codeAndMessage(r *replay.Result) string {
	if r.Code == "" || r.Message == "" {
		return term.Clean(r.Code + r.Message)
	}
	return term.Clean(r.Code + ": " + r.Message)
}

// oneLine removes insignificant white space if text is JSON, and returns other text unchanged.
func oneLine(text string) string {
	var b bytes.Buffer
	if json.Compact(&b, []byte(text)) != nil {
		return text
	}
	return b.String()
}
