package inspect

import (
	"bufio"
	"io"

	"unwire/cmd/internal/app"
	"unwire/cmd/internal/contract"
	"unwire/cmd/internal/render"
)

// printExplanations prints explanations of inferred field types as text or as JSON Lines. of names what
// has the fields, such as a file.
func printExplanations(a *app.App, to io.Writer, list []contract.Explanation, of string, asJSON bool) error {
	w := bufio.NewWriter(to)
	lines := contract.NewEncoder(w)
	for i := range list {
		if !asJSON {
			render.Explanation(a.Out, w, &list[i], of)
		} else if err := lines.Encode(&list[i]); err != nil {
			return err
		}
	}
	return w.Flush()
}
