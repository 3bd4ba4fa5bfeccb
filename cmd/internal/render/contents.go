package render

import (
	"bytes"
	"encoding/json"
	"strings"

	"unwire/decode"
	"unwire/decode/jsontree"
	"unwire/decode/kind"
	"unwire/decode/wire"
)

// Limits for printing what bytes fields contain.
const (
	// maxContents is the depth of nested fields up to which the content of bytes is printed.
	maxContents = 12

	// mostContents is the largest number of lines printed for the content of a field.
	mostContents = 40

	// minContents is the least width in columns of such a line.
	minContents = 20

	// leastContents is the size in bytes below which bytes may be text or a message by chance, and are not
	// examined.
	leastContents = 4
)

// contents describes structured data that was found inside a bytes field.
type contents struct {
	// what is the kind of data: "JSON", "text" or "protobuf"; "" if the bytes are none of these.
	what string

	// lines are the lines of JSON or text.
	lines []string

	// message is the parsed protobuf message.
	message *wire.Tree
}

// contentsOf finds out whether bytes contain JSON, text or a protobuf message.
func contentsOf(data []byte) contents {
	if len(data) < leastContents {
		return contents{}
	}
	if decode.IsText(data) {
		if v, err := jsontree.Parse(data); err == nil && (v.Kind() == jsontree.Object || v.Kind() == jsontree.Array) {
			var indented bytes.Buffer
			if json.Indent(&indented, bytes.TrimSpace(data), "", "  ") == nil {
				return contents{what: "JSON", lines: strings.Split(indented.String(), "\n")}
			}
		}
		return contents{what: "text", lines: strings.Split(strings.TrimSuffix(string(data), "\n"), "\n")}
	}
	t := wire.Parse(data, wire.Options{})
	if t.Err() != nil {
		return contents{}
	}
	if is, _, _ := kind.NewReader(t, nil).Best(0); is != wire.KindMessage {
		return contents{}
	}
	return contents{what: "protobuf", message: t}
}
