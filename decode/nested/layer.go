package nested

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"unwire/decode/envelope"
)

// A Layer is one way in which data is written, with the style that it takes to
// write it so again.
type Layer string

const (
	layerHex           Layer = "hex"
	layerHexUpper      Layer = "HEX"
	layerBase64        Layer = "base64"
	layerBase64Bare    Layer = "base64 unpadded"
	layerBase64URL     Layer = "base64url"
	layerBase64URLBare Layer = "base64url unpadded"
	layerGzip          Layer = "gzip"
	layerZstd          Layer = "zstd"

	// JSON is the innermost layer of a document: what is in it is the document
	// without white space.
	JSONCompact     Layer = "JSON"             // {"a":1,"b":[2]}
	layerJSONSpaced Layer = "JSON with spaces" // {"a": 1, "b": [2]}

	// A line a member, indented by two spaces.
	layerJSONLines Layer = "JSON on lines"

	layerJSONLines4 Layer = "JSON on wider lines" // by four
)

// IsJSON reports a layer of JSON.
func (l Layer) IsJSON() bool {
	switch l {
	case JSONCompact, layerJSONSpaced, layerJSONLines, layerJSONLines4:
		return true
	}
	return false
}

// Known reports a layer that Wrap knows.
func (l Layer) Known() bool {
	return l == layerHex || l == layerHexUpper || l == layerGzip || l == layerZstd || l.IsJSON() || l.encoding() != nil
}

// encoding is that of a layer of base64, else nil.
func (l Layer) encoding() *base64.Encoding {
	switch l {
	case layerBase64:
		return base64.StdEncoding
	case layerBase64Bare:
		return base64.RawStdEncoding
	case layerBase64URL:
		return base64.URLEncoding
	case layerBase64URLBare:
		return base64.RawURLEncoding
	}
	return nil
}

var errNoLayer = errors.New("want hex, HEX, base64, base64url (unpadded), gzip, zstd or JSON")

// Wrap writes data in layers, of which the first is the outermost.
//
// Errors: for a layer that does not exist, and for data that is no JSON.
func Wrap(layers []Layer, data []byte) ([]byte, error) {
	for i := len(layers) - 1; i >= 0; i-- {
		var err error
		if data, err = layers[i].wrap(data); err != nil {
			return nil, fmt.Errorf("nested: %s: %w", layers[i], err)
		}
	}
	return data, nil
}

func (l Layer) wrap(data []byte) ([]byte, error) {
	switch l {
	case layerHex:
		return hex.AppendEncode(nil, data), nil
	case layerHexUpper:
		return bytes.ToUpper(hex.AppendEncode(nil, data)), nil
	case layerGzip, layerZstd:
		return envelope.Compress(string(l), data)
	}
	if enc := l.encoding(); enc != nil {
		return enc.AppendEncode(nil, data), nil
	}
	if !l.IsJSON() {
		return nil, errNoLayer
	}
	var out bytes.Buffer
	if err := json.Compact(&out, data); err != nil {
		return nil, err
	}
	switch l {
	case layerJSONSpaced:
		return spaced(out.Bytes()), nil
	case layerJSONLines, layerJSONLines4:
		indent := "  "
		if l == layerJSONLines4 {
			indent = "    "
		}
		var lines bytes.Buffer
		if err := json.Indent(&lines, out.Bytes(), "", indent); err != nil {
			return nil, err
		}
		return lines.Bytes(), nil
	}
	return out.Bytes(), nil
}

// spaced puts a space behind the commas and colons of a compact document.
func spaced(data []byte) []byte {
	out := make([]byte, 0, len(data)+len(data)/8)
	quoted := false
	for i := 0; i < len(data); i++ {
		out = append(out, data[i])
		switch c := data[i]; {
		case quoted && c == '\\':
			i++
			out = append(out, data[i])
		case c == '"':
			quoted = !quoted
		case !quoted && (c == ',' || c == ':'):
			out = append(out, ' ')
		}
	}
	return out
}

// Unwrap takes layers off a payload, the first one first.
//
// Limits: at most MaxInflated bytes are inflated. Errors: where a layer does not
// hold to the end.
func Unwrap(layers []Layer, payload []byte) ([]byte, error) {
	for _, l := range layers {
		var err error
		if payload, err = l.unwrap(payload); err != nil {
			return nil, fmt.Errorf("nested: %s: %w", l, err)
		}
	}
	return payload, nil
}

func (l Layer) unwrap(payload []byte) ([]byte, error) {
	switch l {
	case layerHex, layerHexUpper:
		return hex.AppendDecode(nil, payload)
	case layerGzip, layerZstd:
		return envelope.Decompress(string(l), payload, MaxInflated)
	}
	if enc := l.encoding(); enc != nil {
		return enc.Strict().AppendDecode(nil, payload)
	}
	if !l.IsJSON() {
		return nil, errNoLayer
	}
	var out bytes.Buffer
	err := json.Compact(&out, payload)
	return out.Bytes(), err
}

// Layers are those that Wrap makes payload of, in which c was found, from c.Data;
// envelopes that stand there as they are have none. A text comes back to the byte;
// compressed bytes may be others, which inflate to the same.
//
// Errors: ok is false where the payload could not be made again: JSON whose white
// space has no rule.
func (c Content) Layers(payload []byte) (layers []Layer, ok bool) {
	text, packed, _ := strings.Cut(c.Encoding, "+")
	if text == "gzip" || text == "zstd" {
		text, packed = "", text
	}
	inner := payload
	if text != "" {
		l := TextLayer(text, payload)
		layers = append(layers, l)
		var err error
		if inner, err = l.unwrap(payload); err != nil {
			return nil, false
		}
		if again, err := l.wrap(inner); err != nil || !bytes.Equal(again, payload) {
			return nil, false
		}
	}
	if packed != "" {
		layers = append(layers, Layer(packed))
	}
	if c.Form == JSON {
		l, ok := jsonLayer(c.Data)
		if !ok {
			return nil, false
		}
		layers = append(layers, l)
	}
	return layers, true
}

// TextLayer is the layer that could have written payload as hex, base64 or
// base64url. What shows neither padding nor its lack is taken to have it, but
// for base64url.
func TextLayer(encoding string, payload []byte) Layer {
	if encoding == "hex" {
		if bytes.ContainsAny(payload, "ABCDEF") {
			return layerHexUpper
		}
		return layerHex
	}
	padded := bytes.HasSuffix(payload, []byte("="))
	switch url := encoding == "base64url" || bytes.ContainsAny(payload, "-_"); {
	case url && padded:
		return layerBase64URL
	case url:
		return layerBase64URLBare
	case padded || len(payload)%4 == 0:
		return layerBase64
	}
	return layerBase64Bare
}

// jsonLayer is the style of a document, if it is a regular one.
func jsonLayer(doc []byte) (Layer, bool) {
	for _, l := range [...]Layer{JSONCompact, layerJSONSpaced, layerJSONLines, layerJSONLines4} {
		if again, err := l.wrap(doc); err == nil && bytes.Equal(again, doc) {
			return l, true
		}
	}
	return "", false
}
