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
	"unwire/captures/safetext"
	"unwire/cmd/internal/app"
	"unwire/cmd/internal/contract"
	"unwire/cmd/internal/query"
	"unwire/cmd/internal/term"
	"unwire/schema"
)

// useFlags are the values of the flags of 'unwire use'.
type useFlags struct {
	// list prints the stored definitions.
	list bool

	// remove removes the stored definitions.
	remove bool

	// json prints the stored definitions as JSON Lines.
	json bool
}

// useCommand returns the command 'unwire use', which stores protobuf definitions in a capture.
func useCommand(a *app.App) *cobra.Command {
	var f useFlags
	cmd := &cobra.Command{
		Use:   "use [DEFINITIONS…] F.uwc",
		Short: "Store .proto definitions in a capture, for all commands that decode it",
		Long: `use copies .proto definitions into the capture F.uwc (a file with recorded
traffic). These definitions replace the definitions that the capture contained before.
Commands that decode the capture, such as 'unwire show', then take field names and types
from these definitions. If you set --proto or UNWIRE_PROTO, the commands use the
definitions named there instead. You can also store definitions while the capture is
being recorded. Without DEFINITIONS, use lists the definitions that the capture
contains.

DEFINITIONS can be folders of .proto files, single .proto files, descriptor sets, or
captures that contain definitions. With reflect:URL, use asks the server at URL, on this
machine, for its definitions (gRPC server reflection). DEFINITIONS can also be the code
of a client, such as a JavaScript bundle or an executable, in which 'unwire schema
extract' finds definitions.`,
		Example: `  # Store a folder of .proto files
  unwire use proto/ F.uwc
  # Store the definitions that a running server returns by reflection
  unwire use reflect:http://127.0.0.1:8080 F.uwc
  # List the stored definitions
  unwire use F.uwc
  # Remove all stored definitions
  unwire use --remove F.uwc`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			err := runUse(cmd.Context(), a, f, args)
			if errors.Is(err, captures.ErrNotCapture) {
				return app.Fail(app.ExitInput, err, "the capture comes last: unwire use DEFINITIONS… F.uwc")
			}
			return err
		},
	}
	cmd.Flags().BoolVar(&f.list, "list", false, "list the definitions that the capture contains (the default without DEFINITIONS)")
	cmd.Flags().BoolVar(&f.remove, "remove", false, "remove the definitions with the names DEFINITIONS from the capture (--list prints the names); without DEFINITIONS, remove all definitions")
	cmd.Flags().BoolVar(&f.json, "json", false, "print one JSON object for each definition in the capture")
	return cmd
}

// runUse executes 'unwire use': it stores, lists or removes the definitions of a capture.
func runUse(ctx context.Context, a *app.App, f useFlags, args []string) error {
	usage := "usage: unwire use [DEFINITIONS…] F.uwc"

	// The capture comes last, as in mv, because there may be several definitions.
	if len(args) == 0 {
		return app.Fail(app.ExitUsage, errors.New("unwire use: missing argument F.uwc"), usage)
	}
	file, names := args[len(args)-1], args[:len(args)-1]
	switch {
	case f.list && (f.remove || len(names) > 0):
		return app.Usagef("with --list, give only the name of a capture")
	case f.json && (f.remove || len(names) > 0):
		return app.Usagef("with --json, give only the name of a capture")
	case f.remove:
		return removeDefinitions(ctx, a, file, names)
	case len(names) == 0:
		return listDefinitions(ctx, a, file, f.json)
	}

	// All definitions are read before the capture is changed.
	var all []captures.Definition
	for _, name := range names {
		list, err := readDefinitions(ctx, a, name)
		if err != nil {
			return err
		}
		all = append(all, list...)
	}

	// What was stored is loaded again, to report which of the capture's methods it covers.
	var kept *schema.Schema
	var covered, others []string
	err := change(ctx, a, file, func(c *query.Capture) (err error) {
		if err := replaceDefinitions(ctx, c, all); err != nil {
			return err
		}
		if kept, err = c.KeptDefinitions(ctx); err == nil {
			covered, others = methodsCovered(ctx, c, kept)
		}
		return err
	})
	if err != nil {
		return err
	}

	// Count what was stored and not what was named: a file may define nothing.
	messages, services := 0, 0
	for range kept.Messages() {
		messages++
	}
	for range kept.Services() {
		services++
	}
	a.Say("unwire: stored definitions in %s: %s with %s and %s", term.Clean(file), app.Counted(len(kept.Files), "file"), app.Counted(messages, "message"), app.Counted(services, "service"))
	sayCovered(a, covered, others)
	return nil
}

// methodsCovered returns the RPC methods that were called in a capture, sorted, in two lists: those that
// s defines, and the others.
func methodsCovered(ctx context.Context, c *query.Capture, s *schema.Schema) (covered, others []string) {
	for service, rpc := range c.Methods(ctx) {
		name := service + "/" + rpc
		switch {
		case service == "":
		case s.Method(service, rpc) != nil:
			covered = append(covered, name)
		default:
			others = append(others, name)
		}
	}
	slices.Sort(covered)
	slices.Sort(others)
	return covered, others
}

// mostMethods is the largest number of methods that a message lists.
const mostMethods = 5

// sayCovered prints which of the methods called in a capture are covered by its definitions, and which
// are not.
func sayCovered(a *app.App, covered, others []string) {
	list := func(names []string) string {
		more := ""
		if n := len(names) - mostMethods; n > 0 {
			names, more = names[:mostMethods], fmt.Sprintf(" and %d more", n)
		}
		return term.Clean(strings.Join(names, ", ")) + more
	}
	all := len(covered) + len(others)
	switch {
	case all == 0:
		a.Say("unwire: the capture contains no calls yet")
	case all == 1 && len(covered) == 0:
		a.Say("unwire: warning: the definitions do not cover the only method in the capture: %s", list(others))
	case all == 1:
		a.Say("unwire: the definitions cover the only method in the capture: %s", list(covered))
	case len(covered) == 0:
		a.Say("unwire: warning: the definitions cover none of the %s in the capture: %s", app.Counted(all, "method"), list(others))
	case len(others) == 0:
		a.Say("unwire: the definitions cover all %s in the capture: %s", app.Counted(all, "method"), list(covered))
	default:
		a.Say("unwire: the definitions cover %d of the %s in the capture: %s", len(covered), app.Counted(all, "method"), list(covered))
		a.Say("unwire: methods without a definition: %s", list(others))
	}
}

// readDefinitions loads definitions, which must compile, and returns them in the form in which a capture
// stores them: a folder as the texts of its .proto files, anything else as one descriptor set.
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

// setName returns the name under which a capture stores the descriptor set read from file: its base name,
// without control characters and slashes.
func setName(file string) string {
	base := filepath.Base(filepath.Clean(file))
	return strings.Map(func(r rune) rune {
		if r < ' ' || strings.ContainsRune(`/\`, r) {
			return '_'
		}
		return r
	}, strings.ToValidUTF8(base, "_"))
}

// replaceDefinitions stores definitions in a capture, and removes all older ones. It adds before it
// removes, so that a concurrent reader always finds definitions.
func replaceDefinitions(ctx context.Context, c *query.Capture, list []captures.Definition) error {
	before, err := c.Definitions(ctx)
	if err != nil {
		return err
	}

	// A name may occur once, because the names are import paths.
	type key struct {
		kind captures.DefinitionKind
		name string
	}
	now := map[key]bool{}
	for _, d := range list {
		k := key{d.Kind, d.Name}
		if now[k] {
			return app.Usagef("two definitions have the same name, %s", d.Name)
		}
		now[k] = true
	}
	for _, d := range list {
		if err := c.PutDefinition(ctx, d); err != nil {
			return err
		}
	}

	// Definitions that are not in the new set are deactivated, not deleted: the file is
	// append-only.
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

// removeDefinitions removes the definitions with the given names from a capture; no names remove all.
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
				return app.Fail(app.ExitInput, fmt.Errorf("the capture %s contains no definitions named %q", file, name), "'unwire use --list "+file+"' lists them")
			}
		}
		for _, d := range list {
			if err := c.PutDefinition(ctx, captures.Definition{Kind: d.Kind, Name: d.Name}); err != nil {
				return err
			}
		}
		if len(list) == 0 {
			a.Say("unwire: %s contains no definitions", term.Clean(file))
		}
		return nil
	})
}

// listDefinitions prints the definitions stored in a capture.
func listDefinitions(ctx context.Context, a *app.App, file string, asJSON bool) error {
	return withCapture(a, file, func(c *query.Capture) error {
		list, err := c.Definitions(ctx)
		if err != nil {
			return err
		}

		// Definitions that were replaced are still stored, but not listed.
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
		switch {
		case asJSON:
			return nil
		case len(rows) == 0:
			a.Say("unwire: %s contains no definitions; 'unwire use DEFINITIONS %s' stores definitions in it", file, safetext.ShellFile(file))
			return nil
		}
		return a.Out.Table(term.Table{Rows: rows, Columns: []term.Column{
			{Name: "KIND"},
			{Name: "NAME", Shorten: term.Middle, Min: 20},
			{Name: "BYTES", Right: true},
		}})
	})
}
