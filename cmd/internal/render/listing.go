package render

import (
	"fmt"
	"slices"
	"strconv"

	"unwire/cmd/internal/app"
	"unwire/cmd/internal/contract"
	"unwire/cmd/internal/term"
)

// notVerified is said of a server's certificate (capture --upstream-insecure).
const notVerified = "not verified"

// Exchanges writes a table of exchanges.
func Exchanges(out *term.Output, lines []*contract.Exchange) error {
	head := []string{"ID", "CALL", "PROTOCOL", "CODEC", "HTTP", "STATUS", "CODE", "FRAMES↑", "FRAMES↓", "BYTES↑", "BYTES↓", "TIME"}
	joined := slices.ContainsFunc(lines, func(l *contract.Exchange) bool { return l.Joined != 0 })
	if joined {
		head = append(head, "JOINED")
	}
	unverified := slices.ContainsFunc(lines, func(l *contract.Exchange) bool { return l.Unverified })
	if unverified {
		head = append(head, "CERTIFICATE")
	}
	rows := make([][]string, len(lines))
	for i, l := range lines {
		rows[i] = []string{
			strconv.FormatInt(l.ID, 10), CallName(l), string(l.Protocol), l.Codec, "HTTP/" + l.HTTP,
			strconv.Itoa(l.Status), Ending(l), strconv.Itoa(l.FramesUp), strconv.Itoa(l.FramesDown),
			app.ByteSize(l.BytesUp), app.ByteSize(l.BytesDown), fmt.Sprintf("%.1f ms", l.DurationMS),
		}
		if joined {
			rows[i] = append(rows[i], joinedText(l))
		}
		if unverified {
			rows[i] = append(rows[i], map[bool]string{true: notVerified}[l.Unverified])
		}
	}
	return out.Table(head, rows)
}

// CallName names the call of an exchange: the RPC, or method and URL.
func CallName(l *contract.Exchange) string {
	if l.Service != "" {
		return l.Service + "/" + l.RPC
	}
	return l.Method + " " + l.URL
}

// Ending is the code of an exchange, or how it ended where it did not end cleanly.
func Ending(l *contract.Exchange) string {
	switch {
	case l.Complete:
		return l.Code
	case l.Outcome == "":
		return "(in flight)"
	case PinningHint(l.Error) != "":
		return "(certificate refused)"
	}
	return "(" + l.Outcome + ")"
}

// joinedText says of a head how many calls are joined to it, and of those to which.
func joinedText(l *contract.Exchange) string {
	switch l.Joined {
	case 0:
		return ""
	case l.ID:
		return app.Counted(len(l.Parts), "call")
	}
	return fmt.Sprintf("to #%d", l.Joined)
}
