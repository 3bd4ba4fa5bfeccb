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

// A Document is a protobuf message, a JSON message or another text, divided into values (leaves) that
// can be replaced one by one. The leaves have the same form for both codecs.
type Document struct {
	// Data is the encoded message.
	Data []byte
	// tree is the parsed protobuf message; nil for JSON and text.
	tree *wire.Tree

	// leaves are the values, in the order of the message.
	leaves []Leaf
}

// Open divides a message into its values (leaves). isProto means that data is protobuf.
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

// At returns the value at a path; nil if there is none.
func (d *Document) At(path string) *Leaf {
	return LeafAt(d.leaves, path)
}

// LeafAt returns the value at a path among leaves; nil if there is none.
func LeafAt(leaves []Leaf, path string) *Leaf {
	for i := range leaves {
		if leaves[i].Path == path {
			return &leaves[i]
		}
	}
	return nil
}

// Set returns the encoded message in which the value l is replaced by the value from.
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

// SetText returns the encoded message in which the text or bytes l are replaced by text.
func (d *Document) SetText(l *Leaf, text string) ([]byte, error) {
	switch {
	case d.tree != nil:
		return wire.Splice(d.tree, []wire.Edit{{Op: wire.SetValue, Node: l.node, Data: []byte(text)}})
	case l.json.Kind() == 0:
		return d.put(l, []byte(text)), nil
	}
	return d.put(l, jsontree.Quote(text)), nil
}

// put returns the JSON message in which the value l, or the name of the member if l is one, is replaced
// by raw JSON.
func (d *Document) put(l *Leaf, raw []byte) []byte {
	if l.json.Kind() == 0 {
		// In a message that is neither protobuf nor JSON, the value is the whole message.
		return raw
	}
	off, end := l.json.Span()
	if l.key {
		off, end = l.json.NameSpan()
	}
	return slices.Concat(d.Data[:off], raw, d.Data[end:])
}

// Remove returns the encoded message without the number l, which then has its default, zero.
func (d *Document) Remove(l *Leaf) ([]byte, error) {
	if d.tree != nil {
		return wire.Splice(d.tree, []wire.Edit{{Op: wire.Delete, Node: l.node}})
	}
	if l.json.Kind() == jsontree.String {
		return d.put(l, []byte(`"0"`)), nil
	}
	return d.put(l, []byte("0")), nil
}

// Insert returns the encoded message with the number from inserted at a path. If the path already has a
// value, or its parent is missing, the message is returned unchanged.
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

// insertField is Insert for protobuf. above is the path of the parent, "" for the message itself; last
// is the last step of the path.
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

// Text returns the value as text: a number in digits, otherwise its bytes.
func (l *Leaf) Text() string {
	if l.Number {
		return l.Value[1:]
	}
	return string(l.Data)
}

// payloadOf returns the value l encoded for a field of wire type t, without tag and length.
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

// isNumber reports whether fields of a wire type are numbers.
func isNumber(t wire.Type) bool { return t == wire.Varint || t == wire.I32 || t == wire.I64 }

// Parent returns the path of the message that contains the value at a path; nested is false if that is the whole
// message.
func Parent(path string) (parent string, nested bool) {
	dot := strings.LastIndexByte(path, '.')
	if dot < 0 {
		return "", false
	}
	return path[:dot], true
}

// Number returns a leaf at path whose value is the number in text or, if it is not a number, text
// itself.
func Number(path, text string) Leaf { return jsonText(Leaf{Path: path}, text) }
