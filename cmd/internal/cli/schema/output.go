package schemacmd

import (
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"unwire/cmd/internal/app"
)

// writeResult writes a result to a file, or to stdout for "" and "-".
func writeResult(a *app.App, name string, mode os.FileMode, write func(io.Writer) error) error {
	if name == "" || name == "-" {
		return write(a.Out)
	}
	return app.WholeFile(name, mode, write)
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
