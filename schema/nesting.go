package schema

import (
	"bytes"
	"fmt"
	"io"
	"strings"
)

// Limits of a .proto file, which may be hostile.
const (
	// maxProtoNesting is the maximum nesting of messages, options and lists. protoc allows 32 nested messages.
	// The parser needs 1 kB of memory for each open bracket.
	maxProtoNesting = 100

	// maxProtoImports is the maximum number of imports, because the compiler searches all of them for each one.
	maxProtoImports = 4096
)

// checkNesting returns an error if the text of a .proto file called name is nested too deeply, or has too many
// imports.
func checkNesting(name, text string) error {
	depth, imports := 0, 0
	for i := 0; i < len(text); {
		switch text[i] {
		case 'i':
			if depth == 0 && strings.HasPrefix(text[i:], "import") {
				imports++
			}
			if imports > maxProtoImports {
				return fmt.Errorf("%s:%d: the file has more than %d imports", name, strings.Count(text[:i], "\n")+1, maxProtoImports)
			}
		case '{', '[', '(':
			if depth++; depth > maxProtoNesting {
				return fmt.Errorf("%s:%d: brackets are nested more than %d levels deep", name, strings.Count(text[:i], "\n")+1, maxProtoNesting)
			}
		case '}', ']', ')':
			depth = max(depth-1, 0)
		}
		i += tokenSize(text[i:])
	}
	return nil
}

// flat wraps open, a function that opens .proto files, so that it fails for files that checkNesting rejects.
func flat(open func(string) (io.ReadCloser, error)) func(string) (io.ReadCloser, error) {
	return func(name string) (io.ReadCloser, error) {
		f, err := open(name)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		text, err := io.ReadAll(io.LimitReader(f, maxProtoFileBytes+1))
		if err != nil {
			return nil, err
		}
		if err := checkNesting(name, string(text)); err != nil {
			return nil, err
		}
		return io.NopCloser(bytes.NewReader(text)), nil
	}
}
