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

// findCommand returns the command 'unwire schema find', which searches definitions by words.
func findCommand(a *app.App) *cobra.Command {
	var f definitionFlags
	var top int
	cmd := &cobra.Command{
		Use:   "find WORD…",
		Short: "Search definitions for types, fields, enum values, methods and comments",
		Long: `find searches .proto definitions, and lists the messages, fields, enums, enum
values, services and methods that match every WORD, the best match first. A WORD can
match the name or a part of the name, also with one typing error. A WORD can also match
the comment, or the name of the type that contains the field or value. find does not
distinguish upper and lower case: 'find mcp tool' finds McpToolCall and mcp_tools. The
exit status is 1 if find finds nothing.`,
		Example: `  # Find everything that matches both words
  unwire schema find thinking delta
  # Print the five best matches as JSON
  unwire schema find --top 5 --json usage`,
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
	f.addTo(cmd, "print one JSON object per result")
	cmd.Flags().IntVar(&top, "top", 30, "print at most this many results")
	return cmd
}

// runFind executes 'unwire schema find': it prints at most top elements that match query, the best first.
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
		a.Say("no definition matches %q", query)
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
