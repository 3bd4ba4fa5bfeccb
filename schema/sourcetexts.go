package schema

import (
	"context"
	"io/fs"
	"maps"
	"slices"
)

// ReadTexts returns the texts of the .proto files in fsys by path.
//
// Limits: those of Load.
// Errors: ErrNoFiles if the tree has no .proto file.
func ReadTexts(fsys fs.FS) (map[string]string, error) {
	texts, _, err := readSources(context.Background(), fsys)
	return texts, err
}

// FromTexts compiles .proto files. texts maps their paths to their contents. An empty map gives an
// empty schema.
func FromTexts(texts map[string]string) (*Schema, error) {
	if len(texts) == 0 {
		return FromFiles(), nil
	}
	return compile(context.Background(), texts, slices.Sorted(maps.Keys(texts)))
}
