package inspect

import (
	"fmt"

	"github.com/spf13/cobra"

	"unwire/cmd/internal/app"
	"unwire/cmd/internal/contract"
	"unwire/cmd/internal/render"
	"unwire/decode/transcript"
)

func extractWeightsCommand(a *app.App) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "weights [FILE]",
		Short: "Show the weights that extract scores by, or what a weights file changes",
		Long: `weights prints what each feature adds to the log odds of each role. With FILE it
prints the rows that differ from the built-in weights, as OLD>NEW.`,
		Example: "  unwire chat weights\n  unwire chat weights --json > weights.json\n  unwire chat weights weights.json",
		Args:    app.ArgsBetween(0, "FILE"),
		RunE: func(_ *cobra.Command, args []string) error {
			built := transcript.DefaultWeights()
			w := built
			if len(args) == 1 {
				var err error
				if w, err = loadWeights(a, args[0]); err != nil {
					return err
				}
			}
			if asJSON {
				return a.Print(&contract.Weights{Weights: w})
			}
			return render.Weights(a.Out, w, built, len(args) == 1)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "as a weights file")
	return cmd
}

// loadWeights reads a weights file; "" is the built-in weights.
func loadWeights(a *app.App, name string) (*transcript.Weights, error) {
	if name == "" {
		return transcript.DefaultWeights(), nil
	}
	data, err := a.ReadInput(name)
	if err != nil {
		return nil, err
	}
	w, err := transcript.ParseWeights(data)
	if err != nil {
		return nil, app.Fail(app.ExitInput, fmt.Errorf("%s: %w", app.InputName(name), err), "'unwire chat weights --json' prints a file that is right")
	}
	return w, nil
}
