package schemacmd

import (
	"context"
	"errors"
	"strings"

	"github.com/spf13/cobra"

	"unwire/cmd/internal/app"
	"unwire/cmd/internal/contract"
	"unwire/cmd/internal/render/schematext"
	"unwire/schema/compare"
	"unwire/schema/interrupt"
)

func findCommand(a *app.App) *cobra.Command {
	var f definitionFlags
	var top int
	cmd := &cobra.Command{
		Use:   "find WORD…",
		Short: "Search types, fields, enum values, methods and comments",
		Long: `find lists what has all the words, the best first: in its name, as a word or a
part of one, but for one typing error, in its comment, or in the name of what
holds it. Case does not count; find mcp tool finds McpToolCall and mcp_tools.
The exit status is 1 where nothing is found.`,
		Example: "  unwire schema find thinking delta\n  unwire schema find --top 5 --json usage",
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return app.Fail(app.ExitUsage, errors.New("unwire schema find: missing argument WORD"), "usage: "+cmd.UseLine())
			}
			if top < 1 {
				return app.Usagef("--top must be at least 1")
			}
			return runFind(cmd.Context(), a, f, strings.Join(args, " "), top)
		},
	}
	f.addTo(cmd, "a JSON object a hit")
	cmd.Flags().IntVar(&top, "top", 30, "how many to list")
	return cmd
}

func runFind(ctx context.Context, a *app.App, f definitionFlags, query string, top int) error {
	s, err := f.load(ctx, a)
	if err != nil {
		return err
	}
	hits, err := interrupt.Run(ctx, func() ([]compare.Hit, error) { return compare.Find(s, query, top), nil })
	if err != nil {
		return err
	}
	if len(hits) == 0 {
		a.Say("nothing has %q", query)
		return app.Fail(app.ExitFinding, nil, "")
	}
	if !f.json {
		return schematext.Hits(a.Out, hits)
	}
	for _, h := range hits {
		if err := a.Print(&contract.DefinitionHit{Hit: h}); err != nil {
			return err
		}
	}
	return nil
}
