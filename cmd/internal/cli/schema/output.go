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
