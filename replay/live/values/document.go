package values

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"unwire/decode"
	"unwire/decode/envelope"
	"unwire/decode/fieldpath"
	"unwire/decode/jsontree"
	"unwire/decode/wire"
	"unwire/replay/edit"
)

// A Document is a protobuf or JSON message, or another text, whose values can be replaced one by one.
// Values are represented as leaves in the same way for both codecs.
type Document struct {
	// Data is the encoded message.
	Data []byte
	// tree is the parsed protobuf message; nil for JSON and text.
	tree   *wire.Tree
	leaves []Leaf
}

// Open splits a message into its values (leaves).
func Open(data []byte, isProto bool) *Document {
	d := &Document{Data: data}
	f := &decode.Frame{Frame: envelope.Frame{Data: data}}
	if isProto {
		d.tree = wire.Parse(data, wire.Options{})
		f.Tree = d.tree
	}
	d.leaves = Leaves(f, nil)
	return d
}

// At returns the leaf at a path; nil if there is none.
func (d *Document) At(path string) *Leaf {
	return LeafAt(d.leaves, path)
}

// LeafAt returns the leaf at a path in a list; nil if there is none.
func LeafAt(leaves []Leaf, path string) *Leaf {
	for i := range leaves {
		if leaves[i].Path == path {
			return &leaves[i]
		}
	}
	return nil
}

// Set returns the encoded message in which the value of the leaf l is replaced by the value of the leaf
// from.
func (d *Document) Set(l, from *Leaf) ([]byte, error) {
	switch {
	case l.Value == from.Value && l.Object == from.Object:
		// the same value: keep its spelling
		return d.Data, nil
	case d.tree != nil:
		payload, err := payloadOf(from, l.wireType)
		if err != nil {
			return d.Data, err
		}
		return wire.Splice(d.tree, []wire.Edit{{Op: wire.SetValue, Node: l.node, Data: payload}})
	case from.Object:
		return d.put(l, from.Data), nil
	case l.json.Kind() == jsontree.Number && from.Number:
		return d.put(l, []byte(from.Value[1:])), nil
	}
	return d.SetText(l, from.Text())
}

// SetText returns the message with the text or bytes of l replaced.
func (d *Document) SetText(l *Leaf, text string) ([]byte, error) {
	switch {
	case d.tree != nil:
		return wire.Splice(d.tree, []wire.Edit{{Op: wire.SetValue, Node: l.node, Data: []byte(text)}})
	// neither protobuf nor JSON
	case l.json.Kind() == 0:
		return []byte(text), nil
	}
	return d.put(l, jsontree.Quote(text)), nil
}

// put replaces a JSON value, or the name of a member, by raw JSON.
func (d *Document) put(l *Leaf, raw []byte) []byte {
	off, end := l.json.Span()
	if l.key {
		off, end = l.json.NameSpan()
	}
	return slices.Concat(d.Data[:off], raw, d.Data[end:])
}

// Remove returns the message without a number, which then has its default, zero.
func (d *Document) Remove(l *Leaf) ([]byte, error) {
	if d.tree != nil {
		return wire.Splice(d.tree, []wire.Edit{{Op: wire.Delete, Node: l.node}})
	}
	if l.json.Kind() == jsontree.String {
		return d.put(l, []byte(`"0"`)), nil
	}
	return d.put(l, []byte("0")), nil
}

// Insert returns the message with a number inserted at a path. If the path already has a value, or
// its parent is missing, the message is returned unchanged.
func (d *Document) Insert(path string, from *Leaf) ([]byte, error) {
	steps, _, err := fieldpath.Cut(path)
	if err != nil || len(steps) == 0 || d.At(path) != nil {
		return d.Data, err
	}
	above := steps[:len(steps)-1].String()
	last := steps[len(steps)-1]
	if d.tree != nil {
		return d.insertField(above, last, from)
	}

	// In JSON, the parent must be an object.
	root, err := jsontree.Parse(d.Data)
	if err != nil {
		return d.Data, nil //nolint:nilerr // it has no members
	}
	if above != "" {
		l := d.At(above)
		if l == nil {
			return d.Data, nil
		}
		root = l.json
	}
	if root.Kind() != jsontree.Object {
		return d.Data, nil
	}
	raw := []byte(from.Value[1:])
	if from.perhaps {
		raw = jsontree.Quote(from.Value[1:])
	}
	return root.Insert(0, slices.Concat(jsontree.Quote(last.Name), []byte(":"), raw)), nil
}

func (d *Document) insertField(above string, last fieldpath.Step, from *Leaf) ([]byte, error) {
	parent := int32(0)
	if above != "" {
		l := d.At(above)
		if l == nil {
			return d.Data, nil
		}
		parent = l.node
	}
	number, ok := last.Number()
	if !ok {
		return d.Data, nil
	}
	payload, err := payloadOf(from, from.wireType)
	if err != nil {
		return d.Data, err
	}
	field := edit.AppendField(nil, number, from.wireType, payload)
	if child := d.tree.Node(parent).First; child != wire.None {
		return wire.Splice(d.tree, []wire.Edit{{Op: wire.InsertBefore, Node: child, Data: field}})
	}
	return wire.Splice(d.tree, []wire.Edit{{Op: wire.AppendInto, Node: parent, Data: field}})
}

// Text returns the value of a leaf as text or bytes.
func (l *Leaf) Text() string {
	if l.Number {
		return l.Value[1:]
	}
	return string(l.Data)
}

// payloadOf returns a leaf's value as the payload of a field of wire type t.
func payloadOf(l *Leaf, t wire.Type) ([]byte, error) {
	if !isNumber(t) {
		return []byte(l.Text()), nil
	}
	n, err := strconv.ParseUint(l.Text(), 10, 64)
	if err != nil {
		return nil, fmt.Errorf("the live %s is not a number", l.Path)
	}
	switch {
	case t == wire.I64:
		return binary.LittleEndian.AppendUint64(nil, n), nil
	case t == wire.I32 && n>>32 != 0:
		return nil, fmt.Errorf("the live %s does not fit into 32 bits", l.Path)
	case t == wire.I32:
		return binary.LittleEndian.AppendUint32(nil, uint32(n)), nil
	}
	return wire.AppendVarint(nil, n), nil
}

func isNumber(t wire.Type) bool { return t == wire.Varint || t == wire.I32 || t == wire.I64 }

// HasParent reports whether the message that contains a path's last step exists.
func HasParent(leaves []Leaf, path string) bool {
	dot := strings.LastIndexByte(path, '.')
	return dot < 0 || Has(leaves, path[:dot])
}

// Number returns the leaf of a number in digits, or of another text.
func Number(path, text string) Leaf { return jsonText(Leaf{Path: path}, text) }
