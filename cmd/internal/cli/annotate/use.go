package annotate

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"unwire/captures"
	"unwire/cmd/internal/app"
	"unwire/cmd/internal/contract"
	"unwire/cmd/internal/query"
	"unwire/cmd/internal/term"
	"unwire/schema"
)

type useFlags struct {
	list, remove, json bool
}

func useCommand(a *app.App) *cobra.Command {
	var f useFlags
	cmd := &cobra.Command{
		Use:   "use DEFINITIONS… F.uwc",
		Short: "Keep definitions in a capture, for every command that decodes it",
		Long: `use copies definitions into the capture. Commands that decode the capture then use
them instead of the built-in ones, unless --proto or --schema names others. The
definitions that the capture kept before are replaced. It also works while the
capture is being recorded.

DEFINITIONS are folders of .proto files, .proto files, descriptor sets, or shipped
code that 'unwire schema extract' can read.`,
		Example: `  unwire use proto/ F.uwc
  unwire use shop.binpb F.uwc
  unwire use --list F.uwc
  unwire use --remove F.uwc`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			return runUse(cmd.Context(), a, f, args)
		},
	}
	cmd.Flags().BoolVar(&f.list, "list", false, "list the definitions that the capture keeps")
	cmd.Flags().BoolVar(&f.remove, "remove", false, "remove definitions: those that are named, or all of the capture")
	cmd.Flags().BoolVar(&f.json, "json", false, "with --list, print a JSON object for each")
	return cmd
}

func runUse(ctx context.Context, a *app.App, f useFlags, args []string) error {
	usage := "usage: unwire use DEFINITIONS… F.uwc"
	if len(args) == 0 {
		return app.Fail(app.ExitUsage, errors.New("unwire use: missing argument F.uwc"), usage)
	}
	file, names := args[len(args)-1], args[:len(args)-1]
	switch {
	case f.list && (f.remove || len(names) > 0):
		return app.Usagef("--list goes with a capture alone")
	case f.json && !f.list:
		return app.Usagef("--json goes with --list")
	case f.list:
		return listDefinitions(ctx, a, file, f.json)
	case f.remove:
		return removeDefinitions(ctx, a, file, names)
	case len(names) == 0:
		return app.Fail(app.ExitUsage, errors.New("unwire use: which definitions?"), usage)
	}
	var all []captures.Definition
	for _, name := range names {
		list, err := readDefinitions(ctx, a, name)
		if err != nil {
			return err
		}
		all = append(all, list...)
	}
	var kept *schema.Schema
	err := change(ctx, a, file, func(c *query.Capture) (err error) {
		if err := replaceDefinitions(ctx, c, all); err != nil {
			return err
		}
		kept, err = c.KeptDefinitions(ctx)
		return err
	})
	if err != nil {
		return err
	}
	messages := 0
	for range kept.Messages() {
		messages++
	}
	a.Say("unwire: %s keeps %s with %s", term.Clean(file), app.Counted(len(kept.Files), "file"), app.Counted(messages, "message"))
	return nil
}

// readDefinitions reads what a user named: a folder as its texts, anything else as a
// descriptor set. They have to compile.
func readDefinitions(ctx context.Context, a *app.App, name string) ([]captures.Definition, error) {
	s, err := a.LoadSource(ctx, name)
	if err != nil {
		return nil, err
	}
	if info, err := os.Stat(name); err == nil && info.IsDir() {
		if texts, err := schema.ReadTexts(os.DirFS(name)); err == nil && len(texts) == len(s.Files) {
			var list []captures.Definition
			for path, text := range texts {
				if text != "" {
					list = append(list, captures.Definition{Kind: captures.ProtoFile, Name: path, Data: []byte(text), Active: true})
				}
			}
			return list, nil
		}
	}
	data, err := s.DescriptorSet()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return []captures.Definition{{Kind: captures.DescriptorSet, Name: setName(name), Data: data, Active: true}}, nil
}

// setName is the name of a descriptor set of a file.
func setName(file string) string {
	base := filepath.Base(filepath.Clean(file))
	return strings.Map(func(r rune) rune {
		if r < ' ' || strings.ContainsRune(`/\`, r) {
			return '_'
		}
		return r
	}, strings.ToValidUTF8(base, "_"))
}

// replaceDefinitions stores definitions, and takes back all others. New ones come first, so
// that whoever reads meanwhile finds some.
func replaceDefinitions(ctx context.Context, c *query.Capture, list []captures.Definition) error {
	before, err := c.Definitions(ctx)
	if err != nil {
		return err
	}
	type key struct {
		kind captures.DefinitionKind
		name string
	}
	now := map[key]bool{}
	for _, d := range list {
		k := key{d.Kind, d.Name}
		if now[k] {
			return app.Usagef("two of the definitions are named %s", d.Name)
		}
		now[k] = true
	}
	for _, d := range list {
		if err := c.PutDefinition(ctx, d); err != nil {
			return err
		}
	}
	for _, d := range before {
		if !d.Active || now[key{d.Kind, d.Name}] {
			continue
		}
		if err := c.PutDefinition(ctx, captures.Definition{Kind: d.Kind, Name: d.Name}); err != nil {
			return err
		}
	}
	return nil
}

// removeDefinitions takes back the definitions of names, or all.
func removeDefinitions(ctx context.Context, a *app.App, file string, names []string) error {
	return change(ctx, a, file, func(c *query.Capture) error {
		list, err := c.Definitions(ctx)
		if err != nil {
			return err
		}
		list = slices.DeleteFunc(list, func(d captures.Definition) bool {
			return !d.Active || len(names) > 0 && !slices.Contains(names, d.Name)
		})
		for _, name := range names {
			if !slices.ContainsFunc(list, func(d captures.Definition) bool { return d.Name == name }) {
				return app.Fail(app.ExitInput, fmt.Errorf("%s keeps no definitions named %q", file, name), "'unwire use --list "+file+"' lists them")
			}
		}
		for _, d := range list {
			if err := c.PutDefinition(ctx, captures.Definition{Kind: d.Kind, Name: d.Name}); err != nil {
				return err
			}
		}
		if len(list) == 0 {
			a.Say("unwire: %s keeps no definitions", term.Clean(file))
		}
		return nil
	})
}

// listDefinitions prints what a capture keeps.
func listDefinitions(ctx context.Context, a *app.App, file string, asJSON bool) error {
	return withCapture(a, file, func(c *query.Capture) error {
		list, err := c.Definitions(ctx)
		if err != nil {
			return err
		}
		var rows [][]string
		for i := range list {
			d := &list[i]
			if !d.Active {
				continue
			}
			if asJSON {
				if err := a.Print(contract.NewKeptDefinition(d)); err != nil {
					return err
				}
				continue
			}
			rows = append(rows, []string{term.Clean(string(d.Kind)), term.Clean(d.Name), strconv.Itoa(len(d.Data))})
		}
		if asJSON {
			return nil
		}
		return a.Out.Table(term.Table{Rows: rows, Columns: []term.Column{
			{Name: "KIND"},
			{Name: "NAME", Shorten: term.Middle, Min: 20},
			{Name: "BYTES", Right: true},
		}})
	})
}
