package schemacmd

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/reflect/protoreflect"

	"unwire/cmd/internal/app"
	"unwire/proto"
	"unwire/schema"
	"unwire/schema/compare"
)

// definitionFlags are the flags of the commands that list and search definitions.
type definitionFlags struct {
	proto string
	json  bool
}

func (f *definitionFlags) addTo(cmd *cobra.Command, json string) {
	cmd.Flags().StringVar(&f.proto, "proto", "", "folder of .proto files, .proto file, descriptor set, or capture that keeps definitions (default: the built-in ones)")
	cmd.Flags().BoolVar(&f.json, "json", false, json)
}

// load loads the definitions with their comments; by default those that the first of
// captures keeps, or the built-in ones.
func (f *definitionFlags) load(ctx context.Context, captures ...string) (*schema.Schema, error) {
	switch f.proto {
	case "":
		if s, err := app.KeptDefinitions(ctx, captures...); s != nil || err != nil {
			return s, err
		}
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
func (f *definitionFlags) complete(files bool) func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
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

// lookup returns the element that a name on the command line means.
func lookup(s *schema.Schema, name string) (protoreflect.Descriptor, error) {
	d, err := compare.Lookup(s, name)
	if e, ok := errors.AsType[*compare.LookupError](err); ok {
		return nil, app.Fail(app.ExitInput, err, lookupHint(e))
	}
	return d, err
}

func lookupHint(e *compare.LookupError) string {
	const most = 5
	switch {
	case len(e.Found) > most:
		return fmt.Sprintf("give the full name: %s and %d more", strings.Join(e.Found[:most], ", "), len(e.Found)-most)
	case len(e.Found) > 0:
		return "give the full name: " + strings.Join(e.Found, ", ")
	case len(e.Similar) > 0:
		return "is it " + strings.Join(e.Similar, ", ") + "?"
	}
	return "'unwire schema ls' lists what there is"
}
