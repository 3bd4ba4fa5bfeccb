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

// A Layer is one encoding around data, such as gzip or base64, including details of its style. With it,
// edited data is encoded again as before, and unedited data to the same bytes.
type Layer string

const (
	// layerHex and layerHexUpper are hexadecimal digits in lower and upper case.
	layerHex      Layer = "hex"
	layerHexUpper Layer = "HEX"

	// The four layers of base64 differ in alphabet and padding.
	layerBase64        Layer = "base64"
	layerBase64Bare    Layer = "base64 unpadded"
	layerBase64URL     Layer = "base64url"
	layerBase64URLBare Layer = "base64url unpadded"

	// layerGzip and layerZstd are compressions.
	layerGzip Layer = "gzip"
	layerZstd Layer = "zstd"

	// JSONCompact is JSON without white space: {"a":1,"b":[2]}. All JSON layers are innermost, and the data
	// inside them is compact JSON.
	JSONCompact Layer = "JSON" // {"a":1,"b":[2]}

	// layerJSONSpaced has a space behind commas and colons: {"a": 1, "b": [2]}.
	layerJSONSpaced Layer = "JSON with spaces"

	// layerJSONLines has one line per member, indented by two spaces.
	layerJSONLines Layer = "JSON on lines"

	// layerJSONLines4 is the same, indented by four spaces.
	layerJSONLines4 Layer = "JSON on wider lines"
)

// IsJSON reports whether the layer is a style of formatting JSON.
func (l Layer) IsJSON() bool {
	switch l {
	case JSONCompact, layerJSONSpaced, layerJSONLines, layerJSONLines4:
		return true
	}
	return false
}

// Known reports whether l is a layer that Wrap and Unwrap support.
func (l Layer) Known() bool {
	return l == layerHex || l == layerHexUpper || l == layerGzip || l == layerZstd || l.IsJSON() || l.encoding() != nil
}

// encoding returns the layer's variant of base64, or nil for other layers.
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

// errNoLayer is the error for an unknown layer.
var errNoLayer = errors.New("the encoding must be hex, HEX, base64, base64url (unpadded), gzip, zstd or JSON")

// Wrap encodes data in layers, of which the first is the outermost.
//
// Errors: an unknown layer, or data that is not JSON for a layer of JSON.
func Wrap(layers []Layer, data []byte) ([]byte, error) {
	// The innermost layer is applied first.
	for i := len(layers) - 1; i >= 0; i-- {
		var err error
		if data, err = layers[i].wrap(data); err != nil {
			return nil, fmt.Errorf("%s: %w", layers[i], err)
		}
	}
	return data, nil
}

// wrap encodes data with this layer.
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

	// The binary layers are done, so only JSON is left.
	if !l.IsJSON() {
		return nil, errNoLayer
	}

	// Compact JSON is the basis of every style.
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

// spaced adds a space after each comma and colon of compact JSON.
func spaced(data []byte) []byte {
	out := make([]byte, 0, len(data)+len(data)/8)
	quoted := false
	for i := 0; i < len(data); i++ {
		out = append(out, data[i])
		// Commas and colons within strings stay unchanged.
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

// Unwrap removes layers from a payload, the first one (the outermost) first.
//
// Limits: decompression stops at MaxInflated bytes.
//
// Errors: a payload that is not entirely in the given layer.
func Unwrap(layers []Layer, payload []byte) ([]byte, error) {
	for _, l := range layers {
		var err error
		if payload, err = l.unwrap(payload); err != nil {
			return nil, fmt.Errorf("%s: %w", l, err)
		}
	}
	return payload, nil
}

// unwrap decodes payload, removing this layer.
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

// Layers returns the layers with which Wrap converts c.Data back to payload, in which c was found. Envelopes
// without encoding have none. Text layers restore the payload exactly. Compressed bytes may differ from the
// original, but decompress to the same data.
//
// Errors: ok is false if the payload cannot be restored, such as JSON with irregular white space.
func (c Content) Layers(payload []byte) (layers []Layer, ok bool) {
	text, packed, _ := strings.Cut(c.Encoding, "+")
	if text == "gzip" || text == "zstd" {
		text, packed = "", text
	}
	inner := payload
	// An encoding is a text layer, a compression, or both joined by "+".
	if text != "" {
		l := TextLayer(text, payload)
		layers = append(layers, l)
		var err error
		if inner, err = l.unwrap(payload); err != nil {
			return nil, false
		}
		// Without this check, an edit would also change the parts of the payload that were not edited.
		if again, err := l.wrap(inner); err != nil || !bytes.Equal(again, payload) {
			return nil, false
		}
	}

	// A compression has no styles, so its name is the layer.
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

// TextLayer returns the layer that describes how payload is encoded; encoding is "hex" or "base64". If the
// payload's length is a multiple of four, it does not show whether padding is used: TextLayer then assumes padding
// for base64, but none for base64url.
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

// jsonLayer returns the layer for the formatting style of a JSON document. ok is false if its white space follows
// none of the styles.
func jsonLayer(doc []byte) (Layer, bool) {
	for _, l := range [...]Layer{JSONCompact, layerJSONSpaced, layerJSONLines, layerJSONLines4} {
		if again, err := l.wrap(doc); err == nil && bytes.Equal(again, doc) {
			return l, true
		}
	}
	return "", false
}
