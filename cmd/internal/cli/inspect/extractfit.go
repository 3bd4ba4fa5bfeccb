package inspect

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"unwire/cmd/internal/app"
	"unwire/cmd/internal/contract"
	"unwire/cmd/internal/options"
	"unwire/cmd/internal/render"
	"unwire/decode/transcript"
)

// extractFitCommand returns the command 'unwire chat fit', which fits weights to labels.
func extractFitCommand(a *app.App) *cobra.Command {
	var out, start string
	var asJSON bool
	var hold float64
	cmd := &cobra.Command{
		Use:   "fit LABELS",
		Short: "Improve how 'unwire chat' assigns roles to texts, from your corrections",
		Long: `'unwire chat' estimates the role of a text, such as answer or thinking, by a
weighted sum of the text's features. If a role is wrong, 'unwire chat --label' stores the
true role in a labels file. fit computes new weights from this file by multinomial
logistic regression. The weights begin with the built-in weights, or with those of
--start, and change only where the labels give a reason. For example, the weights of a
feature do not change if no text in the labels file has this feature. fit prints how
many percent of the labelled texts get the right role with the old and with the new
weights. fit also prints the result of a cross-validation, which is the accuracy that
you can expect for similar captures.`,
		Example: `  # Compute weights from your corrections
  unwire chat fit labels.jsonl -o weights.json
  # Improve weights that you computed earlier
  unwire chat fit --start weights.json labels.jsonl -o better.json`,
		Args: app.ExactArgs("LABELS"),
		RunE: func(_ *cobra.Command, args []string) error {
			data, err := a.ReadInput(args[0])
			if err != nil {
				return err
			}
			labels, err := transcript.ParseLabels(data)
			if err != nil {
				return app.Fail(app.ExitInput, fmt.Errorf("%s: %w", app.InputName(args[0]), err), "'unwire chat --label' writes labels files")
			}
			o := transcript.FitOptions{Hold: hold}
			if o.Start, err = a.LoadWeights(start); err != nil {
				return err
			}
			w, report, err := transcript.Fit(labels, o)
			if err != nil {
				return app.Fail(app.ExitInput, err, "label more texts: 'unwire chat F.uwc ID --label PATH=ROLE'")
			}
			if err := writeWeights(a, w, out); err != nil {
				return err
			}
			if asJSON {
				return contract.NewEncoder(a.Err).Encode(&contract.WeightsFit{FitReport: report})
			}
			a.Say("%s", render.WeightsFit(report))
			return nil
		},
	}
	cmd.Flags().StringVarP(&out, "output", "o", "-", "file to which fit writes the new weights (default: stdout)")
	options.Alias(cmd.Flags(), "out", "output")
	cmd.Flags().StringVar(&start, "start", "", "file with the weights from which fit starts (default: the built-in weights)")
	cmd.Flags().Float64Var(&hold, "hold", 3, "how strongly fit keeps the weights with which it starts: they count as much as N labelled texts")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the accuracy of the old and the new weights on stderr, as JSON")
	return cmd
}

// writeWeights writes a weights file.
func writeWeights(a *app.App, w *transcript.Weights, out string) error {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetIndent("", " ")
	if err := e.Encode(w); err != nil {
		return err
	}
	if out == "-" || out == "" {
		_, err := a.Out.Write(b.Bytes())
		return err
	}
	return app.WholeFile(out, app.ForOwner, func(w io.Writer) error { _, err := b.WriteTo(w); return err })
}
