package schematext

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"unwire/schema/infer"
)

// Inferred writes all inferred .proto files, each after its path if there are several.
func Inferred(w io.Writer, in *infer.Inferred) error {
	for i, path := range slices.Sorted(maps.Keys(in.Files)) {
		if len(in.Files) > 1 {
			fmt.Fprintf(w, "%s// ---- %s\n", strings.Repeat("\n", min(i, 1)), path)
		}
		if _, err := io.WriteString(w, in.Files[path]); err != nil {
			return err
		}
	}
	return nil
}
