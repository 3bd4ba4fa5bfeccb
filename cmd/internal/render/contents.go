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

const (
	// maxContents is how deep fields are below which contents of bytes are shown.
	maxContents = 12

	// mostContents is how many lines of text in bytes are shown.
	mostContents = 40

	// minContents is the width that a line of text in bytes has at least.
	minContents = 20

	// leastContents is how many bytes chance does not make a text or a message of.
	leastContents = 4
)

// contents describes structured data that was found inside a bytes field.
type contents struct {
	// what is the kind of data: "JSON", "text" or "protobuf"; "" if the bytes are none of these.
	what string

	lines   []string   // of JSON and text
	message *wire.Tree // of protobuf
}

// contentsOf looks into bytes: a definition that calls them bytes does not say what they
// contain.
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
	if t.Err() != nil || kind.NewReader(t, nil).Readings(0)[0].Kind != wire.KindMessage {
		return contents{}
	}
	return contents{what: "protobuf", message: t}
}
