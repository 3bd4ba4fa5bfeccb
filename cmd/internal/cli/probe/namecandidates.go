package probecmd

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"unwire/cmd/internal/app"
	schemacmd "unwire/cmd/internal/cli/schema"
	"unwire/cmd/internal/reflected"
	"unwire/decode"
	"unwire/replay/probe"
	"unwire/replay/probe/names"
	"unwire/schema"
	updatesource "unwire/schema/update/source"
)

// maxNamesFile is the largest file with a list of names, in bytes.
const maxNamesFile = 16 << 20

// probeNames collects candidates for field names from the sources in --names, and candidates for enum
// values and Any types from those in --values.
func probeNames(ctx context.Context, a *app.App, o *probe.Options, f *probeFlags) error {
	if len(f.values) > 0 && len(f.names) == 0 {
		return app.Usagef("--values requires --names: probe finds enums by the names of their fields")
	}
	for _, source := range f.names {
		s, words, err := namesOf(ctx, a, source, f)
		if err != nil {
			return err
		}
		if o.Names = append(o.Names, words...); words == nil {
			fields, _, _ := names.Candidates(s)
			o.Names = append(o.Names, fields...)
		}
	}
	for _, source := range f.values {
		s, words, err := namesOf(ctx, a, source, f)
		if err != nil {
			return err
		}
		if o.Values = append(o.Values, words...); s != nil {
			_, values, types := names.Candidates(s)
			o.Values, o.Types = append(o.Values, values...), append(o.Types, types...)
		}
	}
	return nil
}

// namesOf reads one source of candidate names, as --names describes it. It returns either definitions,
// whose names are the candidates, or a list of words.
func namesOf(ctx context.Context, a *app.App, source string, f *probeFlags) (*schema.Schema, []string, error) {
	// Names from remembered definitions fit the traffic better than the built-in ones.
	if source == "builtin" {
		s, err := a.Remembered(ctx, f.proto, f.like)
		if s == nil && err == nil && f.proto != app.NoDefinitions {
			s, err = a.BuiltIn(ctx)
		}
		return s, nil, err
	}
	if reflected.Names(source) {
		s, err := a.LoadSource(ctx, source)
		return s, nil, err
	}

	// The content of the source decides: a capture, definitions or code, or a list of words.
	if source != "-" {
		info, err := os.Stat(source)
		if err != nil {
			return nil, nil, err
		}
		head, err := app.FirstBytes(source)
		if err != nil {
			return nil, nil, err
		}
		switch {
		case bytes.HasPrefix(head, []byte("SQLite format 3")):
			names, err := namesOfCapture(ctx, a, source)
			return nil, names, err
		case info.IsDir() || bytes.IndexByte(head, 0) >= 0 || isCode(source):
			src, err := schemacmd.UpdateSource(ctx, a, &updatesource.Loader{Partial: true}, source)
			if err != nil {
				return nil, nil, err
			}
			return src.Schema, nil, nil
		}
	}
	words, err := wordsOf(a, source)
	return nil, words, err
}

// isCode reports whether a file's extension is one of definitions or of a client's code.
func isCode(name string) bool {
	switch strings.ToLower(filepath.Ext(name)) {
	case ".proto", ".js", ".mjs", ".cjs", ".ts", ".binpb", ".pb", ".zip", ".tgz", ".gz", ".asar", ".vsix":
		return true
	}
	return false
}

// wordsOf reads a list of names from a file: one on each line; lines that begin with # are comments.
func wordsOf(a *app.App, file string) ([]string, error) {
	data, err := a.ReadInput(file)
	if err != nil {
		return nil, err
	}
	if len(data) > maxNamesFile {
		return nil, fmt.Errorf("the file %s has more than %d bytes", app.InputName(file), maxNamesFile)
	}
	names := []string{}
	lines := bufio.NewScanner(bytes.NewReader(data))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if line := strings.TrimSpace(lines.Text()); line != "" && line[0] != '#' {
			names = append(names, line)
		}
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("%s: %w", app.InputName(file), err)
	}
	return names, nil
}

// namesOfCapture returns the keys of all JSON objects in the frames of a capture, sorted.
func namesOfCapture(ctx context.Context, a *app.App, file string) ([]string, error) {
	var keys names.Keys
	err := a.EachExchange(ctx, file, func(ex *decode.Exchange, _ bool) error {
		for i := range ex.Frames {
			keys.AddJSON(ex.Frames[i].Data)
		}
		return nil
	})
	return keys.Sorted(), err
}
