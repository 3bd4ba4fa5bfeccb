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

Honoured parameters are passed to the upstream server. unwire itself carries out emulated parameters. Ignored parameters
have no effect, and the response's ` + "`" + front.NoteHeader + "`" + ` header names them, as it names parameters that are not listed here.
A request with a refused parameter fails with status 400. The column "values that are always accepted" lists values that ask for the default behaviour, and so have no effect.

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
		fmt.Fprintf(&b, "\n## %s\n\n| parameter | treatment | values that are always accepted | remark |\n|---|---|---|---|\n", api.name)
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
