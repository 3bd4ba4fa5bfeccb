package inspect

import (
	"bufio"
	"context"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"unwire/cmd/internal/app"
	"unwire/cmd/internal/contract"
	"unwire/cmd/internal/query"
	"unwire/cmd/internal/render"
	"unwire/decode"
	"unwire/decode/conversation"
	"unwire/decode/transcript"
	"unwire/schema"
)

type extractFlags struct {
	json, all, parts, follow bool
	top                      int
	weights, labels, proto   string
	label                    []string
}

// An extraction is a run of `unwire extract`.
type extraction struct {
	*app.App
	extractFlags
	options transcript.Options
	defs    *schema.Schema // of error details; nil for none
}

func extractCommand(a *app.App) *cobra.Command {
	var f extractFlags
	cmd := &cobra.Command{
		Use:   "extract F.uwc [ID]",
		Short: "Find the conversation of an exchange: prompt, thinking, tool calls, answer, and why",
		Long: `extract joins the text of each field path over the frames of an exchange and
ranks what it finds: the answer, the thinking, the user's prompt, tool calls with
their results, IDs, metadata. It needs no schema; each score comes with its reasons.

It prints who said what, in order, then the tokens that the exchange says it took and
the error that it ended in, then the ranked candidates.

Where it is wrong, say so with --label: the candidate's path and its true role are
added to a labels file, from which 'unwire extract fit' makes a weights file that
--weights takes. 'unwire extract weights' shows the weights.

A capture whose name is that of a subcommand is named ./fit.`,
		Example: `  unwire extract F.uwc 2
  unwire extract --json F.uwc | jq -r .answer
  unwire extract --follow F.uwc
  unwire extract F.uwc 2 --label 1.1.1=assistant --label up/2.1=user
  unwire extract fit labels.jsonl -o weights.json && unwire extract --weights weights.json F.uwc`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(f.label) > 0 && len(args) == 0 {
				return nil // each label names its exchange
			}
			return app.ArgsBetween(1, "F.uwc", "ID")(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			return runExtract(cmd.Context(), a, args, f)
		},
	}
	cmd.Flags().BoolVar(&f.json, "json", false, "a JSON object an exchange")
	cmd.Flags().BoolVar(&f.follow, "follow", false, "print the answer while it is recorded; ends with the exchange, or, without an ID, when interrupted")
	cmd.Flags().BoolVar(&f.parts, "parts", false, "each call alone, where several calls are one conversation")
	cmd.Flags().BoolVar(&f.all, "all", false, "also exchanges in which nothing was found")
	cmd.Flags().IntVar(&f.top, "top", 8, "candidates to list an exchange (JSON has all of them)")
	cmd.Flags().StringVar(&f.weights, "weights", "", "weights file (default: the built-in weights)")
	cmd.Flags().StringArrayVar(&f.label, "label", nil, "[F.uwc#ID=][up/|down/]PATH=ROLE: the candidate at PATH is ROLE; added to --labels")
	cmd.Flags().StringVar(&f.labels, "labels", "labels.jsonl", "the file that --label adds to")
	cmd.Flags().StringVar(&f.proto, "proto", "", "folder of .proto files for the details of errors (default: the built-in ones; none: no names)")
	cmd.AddCommand(extractFitCommand(a), extractWeightsCommand(a))
	return cmd
}

func runExtract(ctx context.Context, a *app.App, args []string, f extractFlags) error {
	if f.top < 1 {
		return app.Usagef("--top must be at least 1")
	}
	if f.follow && len(f.label) > 0 {
		return app.Usagef("--follow and --label do not go together: label when the exchange has ended")
	}
	e := &extraction{App: a, extractFlags: f}
	var err error
	if e.options.Weights, err = loadWeights(a, f.weights); err != nil {
		return err
	}
	if len(f.label) > 0 {
		return e.label(ctx, args)
	}
	if e.defs, err = app.LoadDefinitions(ctx, f.proto); err != nil {
		return err
	}
	addr, err := app.AddressArgs(args, true)
	if err != nil {
		return err
	}
	if f.follow {
		return e.following(ctx, addr)
	}
	return e.extract(ctx, addr)
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
		return nil, app.Fail(app.ExitInput, fmt.Errorf("%s: %w", app.InputName(name), err), "'unwire extract weights --json' prints a file that is right")
	}
	return w, nil
}

func (e *extraction) extract(ctx context.Context, addr query.Address) error {
	store, err := app.OpenCapture(addr.File)
	if err != nil {
		return err
	}
	defer store.Close()
	if addr.Exchange != 0 {
		e.all = true
		addr.Part = addr.Part || e.parts
		ex, readErr := conversation.Resolve(ctx, store, addr.Exchange, addr.Part)
		if ex.Exchange == nil {
			return readErr
		}
		if err := e.one(ex.Exchange); err != nil {
			return err
		}
		return undecoded(e.App, ex.Exchange, readErr)
	}
	e.RemarkEmpty(ctx, store)
	return conversation.EachWhole(ctx, store, e.parts, func(ex *decode.Exchange) error {
		if err := e.one(ex); err != nil {
			return err
		}
		e.Remark(ex)
		return nil
	})
}

func (e *extraction) one(ex *decode.Exchange) error {
	tr := transcript.Extract(ex, e.options)
	if e.json {
		return e.Print(contract.NewTranscript(ex.ID, tr, e.defs))
	}
	if len(tr.Candidates) == 0 && tr.Error == nil && !e.all {
		return nil
	}
	w := bufio.NewWriter(e.Out)
	render.Transcript(e.Out, w, ex, contract.NewTranscript(ex.ID, tr, e.defs), e.top)
	return w.Flush()
}

// appendFile adds data to the end of a file, which it makes if there is none.
func appendFile(name string, data []byte) error {
	f, err := os.OpenFile(name, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	if _, err := f.Write(data); err != nil {
		f.Close()
		return fmt.Errorf("write %s: %w", name, err)
	}
	return f.Close()
}
