package schema

import (
	"context"
	"os"
	"strings"

	"github.com/bufbuild/protocompile/parser"
	"github.com/bufbuild/protocompile/reporter"
	"google.golang.org/protobuf/types/descriptorpb"
)

// An OmittedFile is a file that was left out, since what it declares is declared by
// another file of the tree, or since it imports such a file.
type OmittedFile struct {
	File   string
	Symbol string // that both declare, "" where an import is left out
	Other  string // that declares it, or that is imported
}

// loadDistinct is loadTree for a tree in which files declare the same: of those
// the first in path order counts. It returns nil where that is not what is wrong.
func loadDistinct(ctx context.Context, dir string) *Schema {
	sources, names, err := readSources(ctx, os.DirFS(dir))
	if err != nil {
		return nil
	}
	kept, omitted := distinct(ctx, sources, names)
	if len(omitted) == 0 || len(kept) == 0 {
		return nil
	}
	s, err := compileWithText(ctx, sources, kept)
	if err != nil {
		return nil
	}
	s.Omitted = omitted
	return s
}

// distinct takes the files that declare what another does out of names, with
// those that import them.
func distinct(ctx context.Context, sources map[string]string, names []string) (kept []string, omitted []OmittedFile) {
	declared := map[string]string{} // by symbol
	out := map[string]bool{}
	imports := map[string][]string{}
	for _, name := range names {
		if ctx.Err() != nil {
			return names, nil
		}
		tree, err := parser.Parse(name, strings.NewReader(sources[name]), reporter.NewHandler(nil))
		if err != nil {
			return names, nil
		}
		result, err := parser.ResultFromAST(tree, false, reporter.NewHandler(nil))
		if err != nil {
			return names, nil
		}
		f := result.FileDescriptorProto()
		imports[name] = f.Dependency
		symbols := symbolsOf(f)
		for _, symbol := range symbols {
			if other := declared[symbol]; other != "" {
				omitted, out[name] = append(omitted, OmittedFile{name, symbol, other}), true
				break
			}
		}
		for _, symbol := range symbols {
			if !out[name] {
				declared[symbol] = name
			}
		}
	}
	for changed := true; changed; {
		changed = false
		for _, name := range names {
			for _, other := range imports[name] {
				if out[other] && !out[name] {
					omitted, out[name], changed = append(omitted, OmittedFile{File: name, Other: other}), true, true
				}
			}
		}
	}
	for _, name := range names {
		if !out[name] {
			kept = append(kept, name)
		}
	}
	return kept, omitted
}

// symbolsOf are the full names that a file declares in its package's scope.
func symbolsOf(f *descriptorpb.FileDescriptorProto) []string {
	var list []string
	enter := func(name string) {
		if f.GetPackage() != "" {
			name = f.GetPackage() + "." + name
		}
		list = append(list, name)
	}
	for _, d := range f.MessageType {
		enter(d.GetName())
	}
	for _, d := range f.EnumType {
		enter(d.GetName())
		for _, v := range d.Value {
			enter(v.GetName())
		}
	}
	for _, d := range f.Service {
		enter(d.GetName())
	}
	for _, d := range f.Extension {
		enter(d.GetName())
	}
	return list
}
