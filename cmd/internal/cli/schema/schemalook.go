package schemacmd

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/reflect/protoreflect"

	"unwire/cmd/internal/app"
	"unwire/cmd/internal/term"
	"unwire/proto"
	"unwire/schema"
	"unwire/schema/compare"
	"unwire/schema/interrupt"
)

// lookFlags are what the commands that look around in definitions share.
type lookFlags struct {
	proto string
	json  bool
}

func (f *lookFlags) addTo(cmd *cobra.Command, json string) {
	cmd.Flags().StringVar(&f.proto, "proto", "", "folder of .proto files, .proto file or descriptor set (default: the built-in definitions)")
	cmd.Flags().BoolVar(&f.json, "json", false, json)
}

// load loads the definitions with their comments.
func (f *lookFlags) load(ctx context.Context) (*schema.Schema, error) {
	switch f.proto {
	case "":
		s, err := schema.Load(ctx, proto.Files)
		if err != nil {
			return nil, fmt.Errorf("the built-in definitions: %w", err)
		}
		return s, nil
	case app.NoDefinitions:
		return nil, app.Usagef("--proto none leaves nothing to look at")
	}
	return app.LoadSource(ctx, f.proto)
}

// complete offers the names of what the definitions hold: types and services,
// and with files their paths.
func (f *lookFlags) complete(files bool) func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return func(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
		s, err := f.load(cmd.Context())
		if err != nil || len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		var names []string
		for _, l := range compare.Contents(s) {
			if l.Kind != compare.MethodElement && strings.HasPrefix(l.Element, prefix) {
				names = append(names, l.Element+"\t"+string(l.Kind))
			}
		}
		if files {
			for _, file := range s.Files {
				if strings.HasPrefix(file.Path(), prefix) {
					names = append(names, file.Path()+"\tfile")
				}
			}
		}
		return names, cobra.ShellCompDirectiveNoFileComp
	}
}

func schemaPrintCommand(a *app.App) *cobra.Command {
	var f lookFlags
	var deps bool
	cmd := &cobra.Command{
		Use:   "print TYPE|FILE",
		Short: "The .proto text of a type, a service or a file",
		Long: `print writes the text of one definition as its source has it, comments and all;
of a descriptor set, as a .proto file would have it. TYPE is a full name, or a
simple one that only one type has. With --deps, what it refers to follows.`,
		Example: "  unwire schema print agent.v1.AgentRunRequest\n  unwire schema print --deps TextDeltaUpdate\n  unwire schema print agent/v1/agent.proto",
		Args:    app.ExactArgs("TYPE|FILE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return schemaPrint(cmd.Context(), a, f, args[0], deps)
		},
		ValidArgsFunction: f.complete(true),
	}
	f.addTo(cmd, "a JSON object a definition, with its text")
	cmd.Flags().BoolVar(&deps, "deps", false, "also the types that it refers to, directly or not")
	return cmd
}

// A definitionLine is a line of `unwire schema print --json`.
type definitionLine struct {
	V       int    `json:"v"`
	Element string `json:"element"`
	File    string `json:"file"`
	Text    string `json:"text"`
}

func schemaPrint(ctx context.Context, a *app.App, f lookFlags, what string, deps bool) error {
	s, err := f.load(ctx)
	if err != nil {
		return err
	}
	d, err := lookup(s, what)
	if err != nil {
		return err
	}
	list := []protoreflect.Descriptor{d}
	if deps {
		list = append(list, s.Needs(d)...)
	}
	for i, d := range list {
		text, err := interrupt.Run(ctx, func() (string, error) { return s.Text(d) })
		if err != nil {
			return err
		}
		if f.json {
			element := string(d.FullName())
			if file, ok := d.(protoreflect.FileDescriptor); ok {
				element = file.Path()
			}
			if err := a.PrintJSON(definitionLine{1, element, d.ParentFile().Path(), text}); err != nil {
				return err
			}
			continue
		}
		if i > 0 {
			text = "\n// " + string(d.FullName()) + "\n" + text
		}
		if _, err := a.Out.Write([]byte(term.CleanText(text))); err != nil {
			return err
		}
	}
	return nil
}

// lookup returns what a full name, or a simple name that only one thing has, names.
func lookup(s *schema.Schema, what string) (protoreflect.Descriptor, error) {
	if d := s.Descriptor(what); d != nil {
		return d, nil
	}
	var found []string
	for _, l := range compare.Contents(s) {
		if l.Element == what || strings.HasSuffix(l.Element, "."+what) {
			found = append(found, l.Element)
		}
	}
	switch len(found) {
	case 1:
		return s.Descriptor(found[0]), nil
	case 0:
		hint := "'unwire schema ls' lists what there is"
		if hits := compare.Find(s, what, 3); len(hits) > 0 {
			names := make([]string, len(hits))
			for i, h := range hits {
				names[i] = h.Element
			}
			hint = "is it " + strings.Join(names, ", ") + "?"
		}
		return nil, app.Fail(app.ExitInput, fmt.Errorf("the definitions have no %q", what), hint)
	}
	const most = 5
	more := ""
	if len(found) > most {
		more = fmt.Sprintf(" and %d more", len(found)-most)
	}
	return nil, app.Fail(app.ExitInput, fmt.Errorf("%d definitions are called %s", len(found), what), "give the full name: "+strings.Join(found[:min(most, len(found))], ", ")+more)
}

func schemaLsCommand(a *app.App) *cobra.Command {
	var f lookFlags
	var kind string
	cmd := &cobra.Command{
		Use:   "ls [PREFIX]",
		Short: "List services, methods, messages and enums",
		Long: `ls lists what definitions hold: of each service, method, message and enum its
name, how many methods, fields or values it has, and its file. PREFIX, a package
or a type, leaves out what does not begin with it.`,
		Example: "  unwire schema ls\n  unwire schema ls agent.v1 --kind method\n  unwire schema ls --proto old.binpb --json",
		Args:    app.ArgsBetween(0, "PREFIX"),
		RunE: func(cmd *cobra.Command, args []string) error {
			prefix := ""
			if len(args) > 0 {
				prefix = args[0]
			}
			return schemaLs(cmd.Context(), a, f, prefix, kind)
		},
		ValidArgsFunction: f.complete(false),
	}
	f.addTo(cmd, "a JSON object a definition")
	cmd.Flags().StringVar(&kind, "kind", "", "only these: service, method, message or enum")
	return cmd
}

// A listingLine is a line of `unwire schema ls --json`.
type listingLine struct {
	V int `json:"v"`
	compare.Listing
}

func schemaLs(ctx context.Context, a *app.App, f lookFlags, prefix, kind string) error {
	switch compare.ElementKind(kind) {
	case "", compare.ServiceElement, compare.MethodElement, compare.MessageElement, compare.EnumElement:
	default:
		return app.Usagef("--kind is service, method, message or enum, not %q", kind)
	}
	s, err := f.load(ctx)
	if err != nil {
		return err
	}
	var rows [][]string
	for _, l := range compare.Contents(s) {
		if kind != "" && l.Kind != compare.ElementKind(kind) || !strings.HasPrefix(l.Element, prefix) {
			continue
		}
		if f.json {
			if err := a.PrintJSON(listingLine{1, l}); err != nil {
				return err
			}
			continue
		}
		size := l.Type
		if size == "" {
			size = strconv.Itoa(l.Size)
		}
		rows = append(rows, []string{string(l.Kind), l.Element, size, l.File})
	}
	if f.json {
		return nil
	}
	return a.Out.Table([]string{"KIND", "NAME", "HOLDS", "FILE"}, rows)
}

func schemaFindCommand(a *app.App) *cobra.Command {
	var f lookFlags
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
			return schemaFind(cmd.Context(), a, f, strings.Join(args, " "), top)
		},
	}
	f.addTo(cmd, "a JSON object a hit")
	cmd.Flags().IntVar(&top, "top", 30, "how many to list")
	return cmd
}

// A hitLine is a line of `unwire schema find --json`.
type hitLine struct {
	V int `json:"v"`
	compare.Hit
}

func schemaFind(ctx context.Context, a *app.App, f lookFlags, query string, top int) error {
	s, err := f.load(ctx)
	if err != nil {
		return err
	}
	hits, err := interrupt.Run(ctx, func() ([]compare.Hit, error) { return compare.Find(s, query, top), nil })
	if err != nil {
		return err
	}
	var rows [][]string
	for _, h := range hits {
		if f.json {
			if err := a.PrintJSON(hitLine{1, h}); err != nil {
				return err
			}
			continue
		}
		rows = append(rows, []string{string(h.Kind), h.Element, h.Type, h.Comment, h.File})
	}
	if len(hits) == 0 {
		a.Say("nothing has %q", query)
		return app.Fail(app.ExitFinding, nil, "")
	}
	if f.json {
		return nil
	}
	return a.Out.Table([]string{"KIND", "NAME", "TYPE", "COMMENT", "FILE"}, rows)
}

func schemaRefsCommand(a *app.App) *cobra.Command {
	var f lookFlags
	var number int32
	cmd := &cobra.Command{
		Use:   "refs [TYPE]",
		Short: "Who uses a type, or where a field number occurs",
		Long: `refs lists the fields and methods that use a message or an enum. With --number N
it lists the fields of that number, of all messages, with their types; with both,
the fields of that number that are of the type.`,
		Example: "  unwire schema refs agent.v1.TextDeltaUpdate\n  unwire schema refs --number 13",
		Args:    app.ArgsBetween(0, "TYPE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 && number == 0 {
				return app.Fail(app.ExitUsage, errors.New("unwire schema refs: missing argument TYPE, or --number"), "usage: "+cmd.UseLine())
			}
			what := ""
			if len(args) > 0 {
				what = args[0]
			}
			return schemaRefs(cmd.Context(), a, f, what, number)
		},
		ValidArgsFunction: f.complete(false),
	}
	f.addTo(cmd, "a JSON object a use")
	cmd.Flags().Int32Var(&number, "number", 0, "fields with this number")
	return cmd
}

// A refLine is a line of `unwire schema refs --json`.
type refLine struct {
	V int `json:"v"`
	compare.Ref
}

func schemaRefs(ctx context.Context, a *app.App, f lookFlags, what string, number int32) error {
	s, err := f.load(ctx)
	if err != nil {
		return err
	}
	var refs []compare.Ref
	if what == "" {
		refs = compare.RefsOfNumber(s, number)
	} else {
		name := strings.TrimPrefix(what, ".")
		if !strings.HasPrefix(name, "google.protobuf.") {
			// which are used without being own
			d, err := lookup(s, what)
			if err != nil {
				return err
			}
			name = string(d.FullName())
		}
		refs = compare.Refs(s, name)
	}
	var rows [][]string
	found := 0
	for _, r := range refs {
		if number != 0 && r.Number != number {
			continue
		}
		found++
		if f.json {
			if err := a.PrintJSON(refLine{1, r}); err != nil {
				return err
			}
			continue
		}
		n := ""
		if r.Number != 0 {
			n = strconv.Itoa(int(r.Number))
		}
		rows = append(rows, []string{string(r.Kind), r.Element, n, r.Label, r.Type, r.Use, r.File})
	}
	if f.json || found == 0 {
		if found == 0 {
			a.Say("no uses")
		}
		return nil
	}
	return a.Out.Table([]string{"KIND", "NAME", "NUMBER", "LABEL", "TYPE", "USE", "FILE"}, rows)
}
