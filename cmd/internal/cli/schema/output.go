package schemacmd

import (
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"unwire/cmd/internal/app"
	"unwire/cmd/internal/contract"
	"unwire/schema/infer"
)

// writeResult calls write with a new file, or with stdout if name is "" or "-".
func writeResult(a *app.App, name string, mode os.FileMode, write func(io.Writer) error) error {
	if name == "" || name == "-" {
		return write(a.Out)
	}
	return app.WholeFile(name, mode, write)
}

// checkDefinitionsOutput returns a usage error if out, the value of -o, can be neither the name of a
// .proto file nor that of a folder.
func checkDefinitionsOutput(out string) error {
	ext := filepath.Ext(out)
	if out == "" || out == "-" || ext == "" || ext == ".proto" || ext == "." || ext == ".." || app.NamesFolder(out) {
		return nil
	}
	return app.Fail(app.ExitUsage, fmt.Errorf("-o %s is neither a .proto file nor a folder", out),
		fmt.Sprintf("use -o %s.proto for one file, or -o %s/ for a folder with one file per package", strings.TrimSuffix(out, ext), out))
}

// writeFolder writes files into a folder, and prints the path of each. texts maps paths below the folder
// to contents.
func writeFolder(a *app.App, dir string, texts map[string]string) error {
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		file := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o777); err != nil {
			return err
		}
		if err := app.WholeFile(file, app.ForAll, func(w io.Writer) error { _, err := io.WriteString(w, texts[name]); return err }); err != nil {
			return err
		}
		a.Say("wrote %s", file)
	}
	return nil
}

// printInferred prints the inferred files as JSON: with their texts or, if out is a file or folder,
// with the paths that they were written to.
func printInferred(a *app.App, in *infer.Inferred, out string) error {
	for _, line := range contract.NewInferredFiles(in) {
		switch {
		case out == "":
		case strings.HasSuffix(out, ".proto"):
			line.Text, line.Output = "", out
		default:
			line.Text, line.Output = "", filepath.Join(out, filepath.FromSlash(line.File))
		}
		if err := a.Print(line); err != nil {
			return err
		}
	}
	return nil
}
