package inspect

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"unwire/cmd/internal/app"
	"unwire/cmd/internal/contract"
	"unwire/cmd/internal/query"
	"unwire/cmd/internal/render"
	"unwire/decode/conversation"
	"unwire/decode/transcript"
)

func extractWeightsCommand(a *app.App) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "weights [FILE]",
		Short: "Show the weights that extract scores by, or what a weights file changes",
		Long: `weights prints what each feature adds to the log odds of each role. With FILE it
prints the rows that differ from the built-in weights, as OLD>NEW.`,
		Example: "  unwire extract weights\n  unwire extract weights --json > weights.json\n  unwire extract weights weights.json",
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

func extractFitCommand(a *app.App) *cobra.Command {
	var out, start string
	var asJSON bool
	var hold float64
	cmd := &cobra.Command{
		Use:   "fit LABELS",
		Short: "Fit weights to a labels file",
		Long: `fit makes weights from the labels that 'unwire extract --label' collected: a
multinomial logistic regression that is held to the weights it starts from, so
that what the labels do not speak of stays as it is. It says how many labels the
weights got right before, how many after, and how many in cross-validation,
which is what to expect of other captures like these.`,
		Example: "  unwire extract fit labels.jsonl -o weights.json\n  unwire extract fit --start weights.json labels.jsonl -o better.json",
		Args:    app.ExactArgs("LABELS"),
		RunE: func(_ *cobra.Command, args []string) error {
			data, err := a.ReadInput(args[0])
			if err != nil {
				return err
			}
			labels, err := transcript.ParseLabels(data)
			if err != nil {
				return app.Fail(app.ExitInput, fmt.Errorf("%s: %w", app.InputName(args[0]), err), "a labels file is made by 'unwire extract --label'")
			}
			o := transcript.FitOptions{Hold: hold}
			if o.Start, err = loadWeights(a, start); err != nil {
				return err
			}
			w, report, err := transcript.Fit(labels, o)
			if err != nil {
				return app.Fail(app.ExitInput, err, "label more candidates: 'unwire extract F.uwc ID --label PATH=ROLE'")
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
	cmd.Flags().StringVarP(&out, "out", "o", "-", "weights file to write")
	cmd.Flags().StringVar(&start, "start", "", "weights file to start from (default: the built-in weights)")
	cmd.Flags().Float64Var(&hold, "hold", 3, "how strongly weights are held to those of the start, in labels")
	cmd.Flags().BoolVar(&asJSON, "json", false, "the report on stderr as JSON")
	return cmd
}

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

// A labelling is what --label says.
type labelling struct {
	addr query.Address
	dir  string // "" for either
	path string
	role transcript.Role
}

// parseLabel reads [F.uwc#ID=][up/|down/]PATH=ROLE, or a colon before the role.
func parseLabel(s string, args []string) (labelling, error) {
	bad := func(why string) (labelling, error) {
		return labelling{}, app.Fail(app.ExitUsage, fmt.Errorf("--label %q: %s", s, why), "as in --label 1.1.1=assistant, --label up/2.1=user, or --label 'F.uwc#2=1.1.1=assistant'")
	}
	cut := max(strings.LastIndexByte(s, '='), strings.LastIndexByte(s, ':'))
	if cut < 0 {
		return bad("no role")
	}
	l := labelling{path: s[:cut]}
	var err error
	if l.role, err = transcript.ParseRole(s[cut+1:]); err != nil {
		return bad(err.Error())
	}
	if len(args) == 0 {
		file, path, ok := strings.Cut(l.path, "=")
		if !ok {
			return bad("no exchange")
		}
		l.addr, l.path = query.ParseAddress(file), path
	} else if l.addr, err = app.AddressArgs(args, false); err != nil {
		return l, err
	}
	if l.addr.Exchange == 0 {
		return bad("which exchange?")
	}
	for _, dir := range [...]string{"up", "down"} {
		if path, ok := strings.CutPrefix(l.path, dir+"/"); ok {
			l.dir, l.path = dir, path
		}
	}
	return l, nil
}

// label adds labels to the labels file: all of them or, where one is wrong, none.
func (e *extraction) label(ctx context.Context, args []string) error {
	var lines bytes.Buffer
	enc := json.NewEncoder(&lines)
	enc.SetEscapeHTML(false)
	count := 0
	for _, s := range e.extractFlags.label {
		l, err := parseLabel(s, args)
		if err != nil {
			return err
		}
		tr, err := e.transcriptAt(ctx, l.addr)
		if err != nil {
			return err
		}
		found := 0
		for i := range tr.Candidates {
			c := &tr.Candidates[i]
			if c.Path != l.path || l.dir != "" && c.Dir != l.dir {
				continue
			}
			found++
			if err := enc.Encode(c.Label(labelSource(l.addr), l.role)); err != nil {
				return err
			}
		}
		if found == 0 {
			return app.Fail(app.ExitInput, fmt.Errorf("%s: no candidate at %q", l.addr, l.path), fmt.Sprintf("'unwire extract --top 99 %s %d' lists them", l.addr.File, l.addr.Exchange))
		}
		count += found
	}
	if err := appendFile(e.labels, lines.Bytes()); err != nil {
		return err
	}
	e.Say("unwire: %d labels added to %s", count, e.labels)
	return nil
}

func labelSource(addr query.Address) string {
	return fmt.Sprintf("%s#%d", filepath.Base(addr.File), addr.Exchange)
}

func (e *extraction) transcriptAt(ctx context.Context, addr query.Address) (*transcript.Transcript, error) {
	store, err := app.OpenCapture(addr.File)
	if err != nil {
		return nil, err
	}
	defer store.Close()
	addr.Part = addr.Part || e.parts
	ex, err := conversation.Resolve(ctx, store, addr.Exchange, addr.Part)
	if err != nil {
		return nil, err
	}
	return transcript.Extract(ex.Exchange, e.options), nil
}
