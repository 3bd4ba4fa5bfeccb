package schemacmd

import (
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"

	"unwire/cmd/internal/app"
	"unwire/cmd/internal/contract"
	"unwire/schema/infer"
)

// writeResult writes a result to a file, or to stdout for "" and "-".
func writeResult(a *app.App, name string, mode os.FileMode, write func(io.Writer) error) error {
	if name == "" || name == "-" {
		return write(a.Out)
	}
	return app.WholeFile(name, mode, write)
}

// checkDefinitionsOutput refuses a name that is neither that of a .proto file nor clearly
// that of a folder.
func checkDefinitionsOutput(out string) error {
	ext := filepath.Ext(out)
	if out == "" || out == "-" || ext == "" || ext == ".proto" || ext == "." || ext == ".." || app.NamesFolder(out) {
		return nil
	}
	return app.Fail(app.ExitUsage, fmt.Errorf("-o %s is neither a .proto file nor a folder", out),
		fmt.Sprintf("-o %s.proto writes one file, -o %s/ a folder with a file for each package", strings.TrimSuffix(out, ext), out))
}

// writeFolder writes files, given by their paths with their text, below a folder, and
// reports each.
func writeFolder(a *app.App, dir string, texts map[string]string) error {
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		file := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o777); err != nil {
			return err
		}
		if err := app.WholeFile(file, app.ForAll, func(w io.Writer) error { _, err := io.WriteString(w, texts[name]); return err }); err != nil {
			return err
		}
		a.Say("%s", file)
	}
	return nil
}

// printInferred prints the files of an inference as JSON, with their texts, or with where
// they were written if out is a file or a folder.
func printInferred(a *app.App, in *infer.Inferred, out string) error {
	for _, name := range slices.Sorted(maps.Keys(in.Files)) {
		line := &contract.InferredFile{File: name}
		for _, file := range in.Schema.Files {
			if file.Path() == name {
				line.Package = string(file.Package())
				line.Messages, line.Enums = countTypes(file)
				line.Services = file.Services().Len()
			}
		}
		switch {
		case out == "":
			line.Text = in.Files[name]
		case strings.HasSuffix(out, ".proto"):
			line.Output = out
		default:
			line.Output = filepath.Join(out, filepath.FromSlash(name))
		}
		if err := a.Print(line); err != nil {
			return err
		}
	}
	return nil
}

// countTypes counts the messages and enums of a file or a message, nested ones too, without
// the entries of maps.
func countTypes(of interface {
	Messages() protoreflect.MessageDescriptors
	Enums() protoreflect.EnumDescriptors
},
) (messages, enums int) {
	enums = of.Enums().Len()
	for i := range of.Messages().Len() {
		m := of.Messages().Get(i)
		if m.IsMapEntry() {
			continue
		}
		inner, innerEnums := countTypes(m)
		messages += 1 + inner
		enums += innerEnums
	}
	return messages, enums
}
