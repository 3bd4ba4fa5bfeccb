package inspect

import (
	"github.com/spf13/cobra"

	"unwire/cmd/internal/app"
	"unwire/cmd/internal/contract"
	"unwire/cmd/internal/render"
	"unwire/decode/transcript"
)

// extractWeightsCommand returns the command 'unwire chat weights', which prints the weights of the
// features.
func extractWeightsCommand(a *app.App) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "weights [FILE]",
		Short: "Print the weights by which 'unwire chat' assigns roles, or compare a file with them",
		Long: `'unwire chat' estimates the role of a text, such as answer or thinking, by the
text's features. weights prints a table of the built-in weights: how much each feature
adds to the log odds of each role (a higher value makes the role more probable). With
FILE, weights prints only the rows that differ from the built-in weights, as
BUILT-IN → NEW.`,
		Example: `  # Print how much each feature counts for each role
  unwire chat weights
  # Write the built-in weights to a file
  unwire chat weights --json > weights.json
  # Print the differences between a file and the built-in weights
  unwire chat weights weights.json`,
		Args: app.ArgsBetween(0, "FILE"),
		RunE: func(_ *cobra.Command, args []string) error {
			built := transcript.DefaultWeights()
			w := built
			if len(args) == 1 {
				var err error
				if w, err = a.LoadWeights(args[0]); err != nil {
					return err
				}
			}
			if asJSON {
				return a.Print(&contract.Weights{Weights: w})
			}
			return render.Weights(a.Out, w, built, len(args) == 1)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the weights as JSON, in the format of the file that 'unwire chat fit' writes")
	return cmd
}
