package live

import (
	"fmt"

	"unwire/decode"
	"unwire/decode/fieldpath"
	"unwire/decode/jsontree"
	"unwire/decode/wire"
	"unwire/replay/edit"
)

// put puts the live value into a message.
func (b *Binding) put(data []byte, from *parsedMessage) ([]byte, error) {
	if b.token == "" {
		return bind(data, b, from.frame)
	}
	fresh, ok := b.live(from)
	if !ok {
		return data, fmt.Errorf("the frame that corresponds to %s has no %s %s", b.From, b.FromPath, b.Part)
	}
	return bindInside(data, b, fresh)
}

// bind puts one live value into a message. Where an edit has put another value
// than the captured one, that stays.
func bind(data []byte, b *Binding, from *decode.Frame) ([]byte, error) {
	if from.Tree == nil {
		return bindJSON(data, b, from.Data)
	}
	path, err := fieldpath.ParseNumbers(b.Path)
	if err != nil {
		return data, err
	}
	fromPath, err := fieldpath.ParseNumbers(b.FromPath)
	if err != nil {
		return data, err
	}
	t := wire.Parse(data, wire.Options{})
	at := t.Find(path)
	if b.value == zero {
		return bindZero(t, path, from.Tree, fromPath)
	}
	if len(at) != 1 || valueOf(t, at[0]) != b.value {
		return data, nil
	}
	source := from.Tree.Find(fromPath)
	if len(source) == 0 {
		if isNumber(t.Node(at[0]).Type) { // a number that is zero is not sent
			return wire.Splice(t, []wire.Edit{{Op: wire.Delete, Node: at[0]}})
		}
		return data, fmt.Errorf("the frame that corresponds to %s has no %s", b.From, b.FromPath)
	}
	if from.Tree.Node(source[0]).Type != t.Node(at[0]).Type {
		return data, fmt.Errorf("the live %s of %s is of another wire type", b.FromPath, b.From)
	}
	return wire.Splice(t, []wire.Edit{{Op: wire.Set, Node: at[0], Data: from.Tree.Payload(source[0])}})
}

// bindZero puts in a number that was zero in the capture and is not in what the
// live server says.
func bindZero(t *wire.Tree, path fieldpath.Path, from *wire.Tree, fromPath fieldpath.Path) ([]byte, error) {
	source := from.Find(fromPath)
	parent := t.Find(path[:len(path)-1])
	if len(source) == 0 || len(parent) != 1 || len(t.Find(path)) != 0 {
		return t.Data, nil
	}
	n := from.Node(source[0])
	number, _ := path[len(path)-1].Number()
	field := edit.AppendField(nil, number, n.Type, from.Payload(source[0]))
	if first := t.Node(parent[0]).First; first != wire.None {
		return wire.Splice(t, []wire.Edit{{Op: wire.Before, Node: first, Data: field}})
	}
	return wire.Splice(t, []wire.Edit{{Op: wire.Into, Node: parent[0], Data: field}})
}

func isNumber(t wire.Type) bool { return t == wire.Varint || t == wire.I32 || t == wire.I64 }

// valueOf is a node's value as a leaf has it.
func valueOf(t *wire.Tree, i int32) string {
	var l leaf
	if n := t.Node(i); isNumber(n.Type) {
		l.setNumber(fmt.Sprint(t.Uint(i)), t.Uint(i))
	} else {
		l.setText(t.Payload(i))
	}
	return l.value
}

func bindJSON(data []byte, b *Binding, from []byte) ([]byte, error) {
	v, ok := edit.FindJSON(data, b.Path)
	if !ok || valueOfJSON(v) != b.value {
		return data, nil // an edit has changed what the path led to
	}
	source, ok := edit.FindJSON(from, b.FromPath)
	if !ok {
		return data, fmt.Errorf("the frame that corresponds to %s has no %s", b.From, b.FromPath)
	}
	return v.Replace(source.Raw()), nil
}

// valueOfJSON is a JSON value as a leaf has it.
func valueOfJSON(v jsontree.Value) string {
	if k := v.Kind(); k == jsontree.Object || k == jsontree.Array {
		var l leaf
		l.setText(v.Raw())
		return l.value
	}
	return jsonScalar(leaf{}, v).value
}
