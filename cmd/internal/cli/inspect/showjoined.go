package inspect

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"unwire/cmd/internal/app"
	"unwire/cmd/internal/term"
	"unwire/decode"
	"unwire/decode/conversation"
)

// printJoined says what a conversation was put together from.
func printJoined(a *app.App, w io.Writer, c *conversation.Conversation) {
	fmt.Fprintf(w, "%s\n\n", a.Out.Dim(fmt.Sprintf("joined by request id %s: the server's half from %s, the client's from %s; --parts shows the call alone",
		term.Clean(c.RequestID), idSpan(c.Heads), idSpan(c.Appends))))
}

// idSpan names exchanges shortly.
func idSpan(ids []int64) string {
	const most = 6
	var parts []string
	for i, id := range ids {
		if i == most {
			parts = append(parts, fmt.Sprintf("… (%d)", len(ids)))
			break
		}
		parts = append(parts, "#"+strconv.FormatInt(id, 10))
	}
	return strings.Join(parts, " ")
}

// anomaliesOf are what is remarked on a frame of a conversation, in words.
func anomaliesOf(c *conversation.Conversation, f *decode.Frame) (before, after []string) {
	for _, an := range c.AnomaliesAt(f) {
		if an.Kind == conversation.Gap {
			before = append(before, an.String())
		} else {
			after = append(after, an.String())
		}
	}
	return before, after
}
