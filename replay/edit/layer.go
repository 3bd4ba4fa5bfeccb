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

// maxLayer bounds in bytes what a compressed layer may grow to.
const maxLayer = 64 << 20

// The codings that a path can go through, as it names them: 3!gzip.1,
// 1!hex!gzip.2, 2!json.messages[0].content. What is inside json is JSON, what
// is inside the others a message. json and proto decode nothing: they say what
// is there.
const (
	layerHex       = "hex"
	layerBase64    = "base64"
	layerBase64URL = "base64url"
	layerGzip      = "gzip"
	layerZstd      = "zstd"
	layerBrotli    = "br"
	layerJSON      = "json"
	layerProto     = "proto"
)

// layers are all codings.
var layers = []string{layerHex, layerBase64, layerBase64URL, layerGzip, layerZstd, layerBrotli, layerJSON, layerProto}

// CutPath reads the path at the beginning of s, up to a colon, an equals sign or
// the end, and returns what follows it.
//
// Errors: those of fieldpath.Cut; a layer that is none of ours. They name the offset.
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
				return p, rest, fmt.Errorf("at %d: %q is no layer: %s", strings.Index(s, "!"+layer), layer, strings.Join(layers, " "))
			}
		}
	}
	return p, rest, nil
}

func isFieldNumber(name string) bool {
	return name != "" && strings.Trim(name, "0123456789") == ""
}

// unwrap takes one layer off.
func unwrap(layer string, b []byte) ([]byte, error) {
	switch layer {
	case layerHex, layerBase64, layerBase64URL:
		out, err := nested.Unwrap([]nested.Layer{nested.TextLayer(layer, b)}, b)
		return out, errors.Unwrap(err) // the caller names the layer
	case layerJSON:
		if !json.Valid(b) {
			return nil, errors.New("it is not valid JSON")
		}
		return b, nil
	case layerProto:
		return b, nil
	}
	return envelope.Decompress(layer, b, maxLayer)
}

// wrap puts one layer on, in the form that was has.
func wrap(layer string, b, was []byte) ([]byte, error) {
	switch layer {
	case layerHex, layerBase64, layerBase64URL:
		return nested.Wrap([]nested.Layer{nested.TextLayer(layer, was)}, b)
	case layerJSON, layerProto:
		return b, nil
	}
	return envelope.Compress(layer, b)
}

// Apply returns data, a message of type md or a JSON text, with the edit carried
// out. inserted reports that a set put in a field that was missing.
func (e Edit) Apply(data []byte, isJSON bool, md protoreflect.MessageDescriptor) (out []byte, inserted bool, err error) {
	if e.ReplacesMessage() {
		out, err = e.rawBytes()
		return out, false, err
	}
	out, err = e.apply(data, isJSON, md)
	return out, e.added, err
}

// ReplacesMessage reports whether the edit puts bytes in place of a whole
// message, whatever that was.
func (e Edit) ReplacesMessage() bool { return e.Op == opRaw && len(e.path) == 0 }

// DeletesFrame reports whether the edit takes out a frame.
func (e Edit) DeletesFrame() bool { return e.Op == opDel && len(e.path) == 0 }

// apply carries an edit out on a message or a JSON text, going into the layers
// that its path names, or that are there without doubt.
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

// value is the one text or bytes that a path leads to, if it is neither a
// message nor an object.
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

func isGzip(b []byte) bool { return bytes.HasPrefix(b, []byte{0x1f, 0x8b, 8}) }

// detect finds the layers of a value of which a path goes on with next; nil
// where there are none, or some doubt.
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

// inside carries an edit out inside the layers of what step at leads to.
func (e *Edit) inside(data []byte, isJSON bool, md protoreflect.MessageDescriptor, at int, names []string) ([]byte, error) {
	outer := &Edit{Op: opRaw, Frame: e.Frame, path: slices.Clone(e.path[:at+1])}
	outer.path[at].Layers = ""
	value, ok := outer.value(data, isJSON, md)
	if !ok {
		value, ok = outer.payload(data, isJSON, md)
	}
	if !ok {
		return nil, fmt.Errorf("%s is not one text or bytes that could be %s", outer.path, strings.Join(names, " in "))
	}
	stack := [][]byte{value}
	for _, name := range names {
		b, err := unwrap(name, stack[len(stack)-1])
		if err != nil {
			return nil, fmt.Errorf("%s is no %s: %w", outer.path, name, err)
		}
		stack = append(stack, b)
	}
	inner := *e
	inner.path = e.path[at+1:]
	out, err := inner.innermost(stack[len(stack)-1], names[len(names)-1] == layerJSON)
	e.added = inner.added
	if err != nil {
		return nil, fmt.Errorf("inside %s!%s: %w", outer.path, strings.Join(names, "!"), err)
	}
	for i := len(names) - 1; i >= 0; i-- {
		if out, err = wrap(names[i], out, stack[i]); err != nil {
			return nil, err
		}
	}
	if isJSON {
		outer.Op, outer.Kind, outer.Value = opSet, kindString, string(out)
		return outer.applyJSON(data, md)
	}
	outer.Value = hex.EncodeToString(out)
	return outer.applyProto(data, md)
}

// payload is the value of a field that the path leads to, whatever it holds.
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

// innermost carries an edit out on what the last layer holds. An empty path is
// all of it.
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
	return nil, errors.New("a path is missing after the layer")
}
