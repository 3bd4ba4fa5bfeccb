package schema

import (
	"context"
	"os"
	"strings"

	"github.com/bufbuild/protocompile/parser"
	"github.com/bufbuild/protocompile/reporter"
	"google.golang.org/protobuf/types/descriptorpb"
)

// An OmittedFile is a .proto file that was left out of a schema because another file declares the same name, or
// because it imports a file that was left out.
type OmittedFile struct {
	// File is the path of the file, relative to the import root.
	File string
	// Symbol is the full name that both files declare. It is empty if File was left out because of an import.
	Symbol string
	// Other is the path of the file that declares Symbol too, or of the import that was left out.
	Other string
}

// loadWithoutDuplicates loads a folder in which several files declare the same names: the first file in path
// order is kept. It returns nil if the folder has no such files, so that the caller reports the original error.
func loadWithoutDuplicates(ctx context.Context, dir string) *Schema {
	sources, names, err := readSources(ctx, os.DirFS(dir))
	if err != nil {
		return nil
	}
	kept, omitted := omitDuplicates(ctx, sources, names)
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

// omitDuplicates splits names into files to keep and files to omit. A file is omitted if it declares a symbol of
// an earlier file, or if it imports an omitted file. If a file cannot be parsed, all names are kept and the
// compiler reports the error.
func omitDuplicates(ctx context.Context, sources map[string]string, names []string) (kept []string, omitted []OmittedFile) {
	// The file that declares each symbol.
	declared := map[string]string{}
	out := map[string]bool{}
	imports := map[string][]string{}

	// The parser alone suffices here: linking would fail at the first duplicate.
	for _, name := range names {
		if ctx.Err() != nil {
			return names, nil
		}
		if checkNesting(name, sources[name]) != nil {
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

		// An omitted file declares nothing, so that a third file is compared with the file that is kept.
		for _, symbol := range symbols {
			if !out[name] {
				declared[symbol] = name
			}
		}
	}

	// Importers of omitted files cannot be linked. Repeat until no file is added, because importers have
	// importers.
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

// symbolsOf returns the full names that f declares at its top level, including enum values, which protobuf puts
// in the scope that encloses the enum.
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
