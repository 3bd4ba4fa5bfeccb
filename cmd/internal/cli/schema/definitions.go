package schemacmd

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/reflect/protoreflect"

	"unwire/cmd/internal/app"
	"unwire/cmd/internal/reflected"
	"unwire/cmd/internal/term"
	"unwire/proto"
	"unwire/schema"
	"unwire/schema/compare"
)

// definitionFlags are the values of the flags of the commands that list, print and search definitions.
type definitionFlags struct {
	// proto names the definitions.
	proto string

	// json prints JSON.
	json bool
}

// addTo adds the flags to a command; json is the help text of --json.
func (f *definitionFlags) addTo(cmd *cobra.Command, json string) {
	cmd.Flags().StringVar(&f.proto, "proto", "", "the definitions: a folder of .proto files, a .proto file, a descriptor set, a capture that contains definitions, or reflect:URL, which asks the server at URL by server reflection (default: the first that exists of UNWIRE_PROTO, unwire.yaml, and the built-in definitions)")
	cmd.Flags().BoolVar(&f.json, "json", false, json)
}

// load loads the definitions that the flag or the environment names, with their comments, or else the
// built-in ones. If it uses the built-in ones by default, it prints a remark.
func (f *definitionFlags) load(ctx context.Context, a *app.App) (*schema.Schema, error) {
	s, builtIn, err := f.find(ctx, a)
	if builtIn && !a.NamesProfile() {
		a.Say("unwire: using the built-in definitions (profile %s); --proto selects others", proto.Profile().Name)
	}
	return s, err
}

// find loads the definitions that the flags select, without printing a remark about them. builtIn means that they are
// the built-in ones.
func (f *definitionFlags) find(ctx context.Context, a *app.App) (s *schema.Schema, builtIn bool, err error) {
	return a.LookDefinitions(ctx, f.proto)
}

// complete returns a shell completion for the names of messages, enums and services in the definitions
// and, if files is true, for the paths of their files.
func (f *definitionFlags) complete(a *app.App, files bool) func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return func(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
		s, _, err := f.find(cmd.Context(), a)
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

// isElement returns an error if a name on the command line is a source of definitions instead of an element.
func isElement(name string) error {
	if !reflected.Names(name) {
		return nil
	}
	return app.Fail(app.ExitUsage, fmt.Errorf("%s is a source of definitions, and not the name of a type or a file", term.Clean(name)),
		"name the source with --proto, as in '--proto "+term.Clean(name)+" TYPE'; 'unwire schema ls --proto "+term.Clean(name)+"' lists the types")
}

// lookup returns the descriptor of the element that a name on the command line refers to; parts of the
// name may be left out.
func lookup(s *schema.Schema, name string) (protoreflect.Descriptor, error) {
	d, err := compare.Lookup(s, name)
	if e, ok := errors.AsType[*compare.LookupError](err); ok {
		return nil, app.Fail(app.ExitInput, err, lookupHint(e))
	}
	return d, err
}

// lookupHint returns a hint for a name that is ambiguous or unknown: the full or similar names.
func lookupHint(e *compare.LookupError) string {
	const most = 5
	switch {
	case len(e.Found) > most:
		return fmt.Sprintf("give the full name: %s and %d more", strings.Join(e.Found[:most], ", "), len(e.Found)-most)
	case len(e.Found) > 0:
		return "give the full name: " + strings.Join(e.Found, ", ")
	case len(e.Similar) > 0:
		return "did you mean " + strings.Join(e.Similar, ", ") + "?"
	}
	return "'unwire schema ls' lists all names"
}
