package server

import (
	"fmt"
	"io"
	"strings"

	"unwire/replay/gateway/chat"
	"unwire/replay/gateway/front"
	"unwire/replay/gateway/messages"
	"unwire/replay/gateway/responses"
)

// WriteParameters writes a Markdown table of how each parameter of the three APIs is treated, for the
// documentation.
func WriteParameters(w io.Writer) error {
	var b strings.Builder
	b.WriteString(`# How each request parameter is treated

Honoured parameters reach the upstream. Emulated ones are carried out by unwire. Ignored ones have no effect, and the
response's ` + "`" + front.NoteHeader + "`" + ` header names them, as it does with parameters that are not listed here. Refused ones fail the
request with status 400. A value that asks for nothing special always passes.

` + "`unwire serve --print-parameters`" + ` prints this page.
`)
	// One table for each API, in the order of the documentation.
	for _, api := range []struct {
		name   string
		params front.Params
	}{
		{"POST /v1/chat/completions", chat.Params},
		{"POST /v1/responses", responses.Params},
		{"POST /v1/messages", messages.Params},
	} {
		fmt.Fprintf(&b, "\n## %s\n\n| parameter | | values that always pass | |\n|---|---|---|---|\n", api.name)
		for _, p := range api.params {
			allowed := ""
			if len(p.Allowed) > 0 {
				allowed = "`" + strings.Join(p.Allowed, "`, `") + "`"
			}
			fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", p.Name, p.Treatment, allowed, strings.ReplaceAll(p.Note, "|", "\\|"))
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}
