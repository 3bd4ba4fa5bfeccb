package edit

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"

	"unwire/decode/envelope"
	"unwire/decode/fieldpath"
	"unwire/decode/jsontree"
	"unwire/decode/nested"
	"unwire/decode/wire"
)

// maxLayer limits the decompressed size of a value, in bytes.
const maxLayer = 64 << 20

// The layers that a path can go through, by their name in a path: 3!gzip.1, 1!hex!gzip.2,
// 2!json.messages[0].content. The content of json is JSON, that of the others a message. json and
// proto decode nothing; they only state what the value is.
const (
	// The encodings of a value inside a field, which a path can go through: 3!gzip.1 is field 1 of the
	// message that is compressed in field 3; 1!hex!gzip.2 and 2!json.messages[0].content are further
	// examples. The content of json is JSON, that of the others a message. json and proto decode
	// nothing; they only state what the value is.
	layerHex       = "hex"
	layerBase64    = "base64"
	layerBase64URL = "base64url"
	layerGzip      = "gzip"
	layerZstd      = "zstd"
	layerBrotli    = "br"
	layerJSON      = "json"
	layerProto     = "proto"
)

// layers are the names of all layers.
var layers = []string{layerHex, layerBase64, layerBase64URL, layerGzip, layerZstd, layerBrotli, layerJSON, layerProto}

// oneOf joins names for a sentence, with "or" before the last name.
func oneOf(names []string) string {
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " or " + names[last]
}

// CutPath parses the path at the beginning of s, which ends at a colon, an equals sign or the end, and
// returns the rest.
//
// Errors: those of fieldpath.Cut; an unknown layer. They name the offset.
func CutPath(s string) (p fieldpath.Path, rest string, err error) {
	if p, rest, err = fieldpath.Cut(s); err != nil {
		return p, rest, err
	}
	for _, step := range p {
		if step.Layers == "" {
			continue
		}
		for layer := range strings.SplitSeq(step.Layers, "!") {
			if !slices.Contains(layers, layer) {
				return p, rest, fmt.Errorf("at offset %d: %q is not an encoding that unwire can decode: use %s", strings.Index(s, "!"+layer), layer, oneOf(layers))
			}
		}
	}
	return p, rest, nil
}

// isFieldNumber reports whether a step of a path consists of digits.
func isFieldNumber(name string) bool {
	return name != "" && strings.Trim(name, "0123456789") == ""
}

// unwrap decodes or decompresses b, a value that is encoded with the named layer.
func unwrap(layer string, b []byte) ([]byte, error) {
	switch layer {
	case layerHex, layerBase64, layerBase64URL:
		out, err := nested.Unwrap([]nested.Layer{nested.TextLayer(layer, b)}, b)
		return out, errors.Unwrap(err) // the caller names the layer
	case layerJSON:
		if !json.Valid(b) {
			return nil, errors.New("the text is not valid JSON")
		}
		return b, nil
	case layerProto:
		return b, nil
	}
	return envelope.Decompress(layer, b, maxLayer)
}

// wrap encodes or compresses b with the named layer. was is the original encoded value, whose style
// (such as padding) is kept.
func wrap(layer string, b, was []byte) ([]byte, error) {
	switch layer {
	case layerHex, layerBase64, layerBase64URL:
		return nested.Wrap([]nested.Layer{nested.TextLayer(layer, was)}, b)
	case layerJSON, layerProto:
		return b, nil
	}
	return envelope.Compress(layer, b)
}

// Apply applies the edit to data, a protobuf message of type md (nil if unknown) or a JSON text.
// inserted reports whether a set inserted a field that was missing.
func (e Edit) Apply(data []byte, isJSON bool, md protoreflect.MessageDescriptor) (out []byte, inserted bool, err error) {
	if e.ReplacesMessage() {
		out, err = e.rawBytes()
		return out, false, err
	}
	out, err = e.apply(data, isJSON, md)
	return out, e.added, err
}

// ReplacesMessage reports whether the edit replaces a whole message by given bytes, so that the message
// need not be readable.
func (e Edit) ReplacesMessage() bool { return e.Op == opRaw && len(e.path) == 0 }

// DeletesFrame reports whether the edit deletes a whole frame.
func (e Edit) DeletesFrame() bool { return e.Op == opDel && len(e.path) == 0 }

// apply implements Apply for edits inside a message. If a value on the path is encoded, e.g. JSON in a
// string, it is decoded: by the layers that the path names, or else those that are detected
// unambiguously.
func (e *Edit) apply(data []byte, isJSON bool, md protoreflect.MessageDescriptor) ([]byte, error) {
	for i := range e.path {
		if names := e.path[i].Layers; names != "" {
			return e.inside(data, isJSON, md, i, strings.Split(names, "!"))
		}
		if i == len(e.path)-1 {
			break
		}
		outer := &Edit{path: e.path[:i+1]}
		if value, ok := outer.value(data, isJSON, md); ok {
			if found := detect(value, e.path[i+1]); found != nil {
				return e.inside(data, isJSON, md, i, found)
			}
		}
	}
	if isJSON {
		return e.applyJSON(data, md)
	}
	return e.applyProto(data, md)
}

// value returns the string or bytes to which the path leads; ok is false if it leads to a message, to
// another type, or nowhere.
func (e *Edit) value(data []byte, isJSON bool, md protoreflect.MessageDescriptor) ([]byte, bool) {
	if isJSON {
		v, ok := findJSON(data, e.path, md)
		if !ok || v.Kind() != jsontree.String {
			return nil, false
		}
		return []byte(v.Text()), true
	}
	t := wire.Parse(data, wire.Options{})
	at, err := protoFind(t, e.path, md)
	if err != nil || len(at.nodes) != 1 || t.Node(at.nodes[0]).Type != wire.Len {
		return nil, false
	}
	if value := t.Payload(at.nodes[0]); !t.IsMessage(at.nodes[0]) || isGzip(value) {
		return value, true
	}
	return nil, false
}

// isGzip reports whether bytes begin like gzip.
func isGzip(b []byte) bool { return bytes.HasPrefix(b, []byte{0x1f, 0x8b, 8}) }

// detect returns the names of the layers in which b is encoded, outermost first, if the path continues
// inside it with the step next. It returns nil if b is not encoded or this is ambiguous.
func detect(b []byte, next fieldpath.Step) []string {
	switch text := bytes.TrimSpace(b); {
	case isGzip(b):
		inner, err := unwrap(layerGzip, b)
		if err != nil {
			return nil
		}
		return append([]string{layerGzip}, detect(inner, next)...)
	case len(text) > 0 && (text[0] == '{' || text[0] == '[') && json.Valid(b):
		return []string{layerJSON}
	}

	// Text in hex or base64 counts only if a message or gzip is inside.
	if !isFieldNumber(next.Name) {
		return nil
	}
	for _, layer := range []string{layerHex, layerBase64} {
		inner, err := unwrap(layer, b)
		if err != nil || len(inner) < 2 {
			continue
		}
		if isGzip(inner) {
			return append([]string{layer}, detect(inner, next)...)
		}
		if wire.Parse(inner, wire.Options{}).Err() == nil {
			return []string{layer}
		}
	}
	return nil
}

// inside applies an edit to the content of an encoded value, such as JSON in a string field. at is the
// index of the path's step that leads to the value; names are its layers, outermost first.
func (e *Edit) inside(data []byte, isJSON bool, md protoreflect.MessageDescriptor, at int, names []string) ([]byte, error) {
	outer := &Edit{Op: opRaw, Frame: e.Frame, path: slices.Clone(e.path[:at+1])}

	// Random bytes can look like a message, so a field that looks like one is accepted too.
	outer.path[at].Layers = ""
	value, ok := outer.value(data, isJSON, md)
	if !ok {
		value, ok = outer.payload(data, isJSON, md)
	}
	if !ok {
		return nil, fmt.Errorf("the field %s is not a single text or bytes value, so it cannot contain %s", outer.path, strings.Join(names, " in "))
	}

	// Decode the layers from the outside in, apply the edit, and encode them from the inside out.
	stack := [][]byte{value}
	for _, name := range names {
		b, err := unwrap(name, stack[len(stack)-1])
		if err != nil {
			return nil, fmt.Errorf("the field %s does not contain %s: %w", outer.path, name, err)
		}
		stack = append(stack, b)
	}
	inner := *e
	inner.path = e.path[at+1:]
	out, err := inner.innermost(stack[len(stack)-1], names[len(names)-1] == layerJSON)
	e.added = inner.added
	if err != nil {
		return nil, fmt.Errorf("the value inside %s!%s cannot be edited: %w", outer.path, strings.Join(names, "!"), err)
	}
	for i := len(names) - 1; i >= 0; i-- {
		if out, err = wrap(names[i], out, stack[i]); err != nil {
			return nil, err
		}
	}

	// The changed text replaces the outer value in one more edit.
	if isJSON {
		outer.Op, outer.Kind, outer.Value = opSet, kindString, string(out)
		return outer.applyJSON(data, md)
	}
	outer.Value = hex.EncodeToString(out)
	return outer.applyProto(data, md)
}

// payload returns the bytes of the length-delimited protobuf field to which the path leads, even if
// they are a message.
func (e *Edit) payload(data []byte, isJSON bool, md protoreflect.MessageDescriptor) ([]byte, bool) {
	if isJSON {
		return nil, false
	}
	t := wire.Parse(data, wire.Options{})
	at, err := protoFind(t, e.path, md)
	if err != nil || len(at.nodes) != 1 || t.Node(at.nodes[0]).Type != wire.Len {
		return nil, false
	}
	return t.Payload(at.nodes[0]), true
}

// innermost applies an edit to the decoded content of an encoded value. An empty path replaces all of
// it.
func (e *Edit) innermost(data []byte, isJSON bool) ([]byte, error) {
	switch {
	case len(e.path) > 0:
		return e.apply(data, isJSON, nil)
	case e.Op == opRaw:
		return e.rawBytes()
	case e.Op == opSet && isJSON:
		return encodeJSON(kindJSON, e.Value, jsontree.Value{}, nil)
	case e.Op == opSet && e.Kind == kindMessage:
		return encodeWhole(e.Value, nil)
	case e.Op == opSet:
		return parseBytes(e.Value)
	}
	return nil, errors.New("the path of a value is missing after the encoding")
}
