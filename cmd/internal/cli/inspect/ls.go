package inspect

import (
	"bufio"
	"cmp"
	"context"

	"github.com/spf13/cobra"

	"unwire/cmd/internal/app"
	"unwire/cmd/internal/contract"
	"unwire/cmd/internal/render"
)

func lsCommand(a *app.App) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:     "ls F.uwc",
		Short:   "List the exchanges of a capture",
		Example: "  unwire ls F.uwc\n  unwire ls --json F.uwc | jq -r 'select(.code!=\"ok\") | .url'",
		Args:    app.ExactArgs("F.uwc"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return ls(cmd.Context(), a, args[0], asJSON)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "a JSON object a line")
	return cmd
}

func ls(ctx context.Context, a *app.App, file string, asJSON bool) error {
	capture, err := a.OpenCapture(file)
	if err != nil {
		return err
	}
	defer capture.Close()
	list, err := capture.List(ctx)
	lines := make([]*contract.Exchange, len(list.Exchanges))
	related, relatedErr := capture.Related(ctx)
	for i := range lines {
		lines[i] = contract.NewExchange(&list.Exchanges[i], related[list.Exchanges[i].ID])
	}
	notesErr := capture.AddNotes(ctx, lines)
	if outErr := printList(a, lines, asJSON); outErr != nil {
		return outErr
	}
	return cmp.Or(err, relatedErr, notesErr)
}

func printList(a *app.App, lines []*contract.Exchange, asJSON bool) error {
	if asJSON {
		w := bufio.NewWriterSize(a.Out, 64<<10)
		e := contract.NewEncoder(w)
		for _, l := range lines {
			if err := e.Encode(l); err != nil {
				return err
			}
		}
		return w.Flush()
	}
	if err := render.Exchanges(a.Out, lines); err != nil {
		return err
	}
	for _, l := range lines {
		if hint := render.PinningHint(l.Error); hint != "" {
			a.Say("unwire: hint: exchange %d: %s", l.ID, hint)
			break
		}
	}
	return nil
}
