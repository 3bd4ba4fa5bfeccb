package schema

import (
	"context"
	"io/fs"
	"maps"
	"slices"
)

// ReadTexts reads the .proto files of a tree by their paths.
//
// Limits: those of Load.
// Errors: a tree without a .proto file is one.
func ReadTexts(fsys fs.FS) (map[string]string, error) {
	texts, _, err := readSources(context.Background(), fsys)
	return texts, err
}

// FromTexts compiles .proto files given by their paths, as Load does those of
// a tree. No files are an empty schema.
func FromTexts(texts map[string]string) (*Schema, error) {
	if len(texts) == 0 {
		return FromFiles(), nil
	}
	return compile(context.Background(), texts, slices.Sorted(maps.Keys(texts)))
}
