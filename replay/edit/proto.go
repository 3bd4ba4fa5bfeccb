package edit

import (
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"

	"google.golang.org/protobuf/reflect/protoreflect"

	"unwire/decode/fieldpath"
	"unwire/decode/wire"
)

// A protoPlace is where a path leads in a message.
type protoPlace struct {
	nodes  []int32 // what it leads to; empty where the field is not there
	parent int32   // the message that holds the fields, or would
	number uint64
	index  int                          // of the last step, or fieldpath.All
	fd     protoreflect.FieldDescriptor // the field, where a schema knows it
	// messages that are missing between parent and the field, and the field itself
	rest []uint64
}

// fieldByName finds a message's field by the name in its .proto or in its JSON.
func fieldByName(md protoreflect.MessageDescriptor, name string) protoreflect.FieldDescriptor {
	if md == nil {
		return nil
	}
	if fd := md.Fields().ByTextName(name); fd != nil {
		return fd
	}
	return md.Fields().ByJSONName(name)
}

// fieldOf resolves a number or a name to a field of a message of type md.
func fieldOf(name string, md protoreflect.MessageDescriptor) (uint64, protoreflect.FieldDescriptor, error) {
	if n, err := strconv.ParseUint(name, 10, 29); err == nil && n > 0 {
		if md == nil {
			return n, nil, nil
		}
		return n, md.Fields().ByNumber(protoreflect.FieldNumber(n)), nil
	}
	if fd := fieldByName(md, name); fd != nil {
		return uint64(fd.Number()), fd, nil
	}
	if md == nil {
		return 0, nil, fmt.Errorf("%q: names need a schema that knows the message; without one give the field's number", name)
	}
	return 0, nil, fmt.Errorf("%s has no field %q", md.FullName(), name)
}

// protoFind follows a path. Where a message on the way is missing, place.rest
// says what would have to be made below place.parent.
func protoFind(t *wire.Tree, p fieldpath.Path, md protoreflect.MessageDescriptor) (protoPlace, error) {
	at := protoPlace{nodes: []int32{0}, parent: wire.None, index: fieldpath.All}
	for i, step := range p {
		number, fd, err := fieldOf(step.Name, md)
		if err != nil {
			return at, err
		}
		at.number, at.fd, at.index, md = number, fd, step.Index, nil
		if fd != nil {
			md = fd.Message()
		}
		if len(at.rest) > 0 {
			at.rest = append(at.rest, number)
			continue
		}
		if len(at.nodes) > 1 {
			return at, fmt.Errorf("%s is there %d times; say which, as in %s[0]", p[:i], len(at.nodes), p[:i])
		}
		at.parent = at.nodes[0]
		if !t.IsMessage(at.parent) {
			return at, fmt.Errorf("%s is no message", p[:i])
		}
		at.nodes = fieldsOf(t, at.parent, number, step.Index)
		if len(at.nodes) == 0 {
			at.rest = []uint64{number}
		}
	}
	return at, nil
}

// fieldsOf are the fields of a message that have a number, or one of them.
func fieldsOf(t *wire.Tree, parent int32, number uint64, index int) (nodes []int32) {
	k := 0
	for c := range t.Children(parent) {
		if n := t.Node(c); n.Number != number || n.Type == wire.Garbage {
			continue
		}
		if index == fieldpath.All || index == k {
			nodes = append(nodes, c)
		}
		k++
	}
	return nodes
}

// applyProto carries an edit out on a message; all bytes stay as they are that
// are not in the edited field or the lengths that enclose it.
func (e *Edit) applyProto(data []byte, md protoreflect.MessageDescriptor) ([]byte, error) {
	if len(e.path) == 0 {
		return e.wholeMessage(md)
	}
	t := wire.Parse(data, wire.Options{})
	at, err := protoFind(t, e.path, md)
	if err != nil {
		return nil, err
	}
	if e.Kind == kindJSON {
		return nil, errors.New("kind json is for JSON bodies")
	}
	switch {
	case e.Op == opAdd || len(at.nodes) == 0 && e.Op == opSet && at.fd != nil:
		e.added = e.Op == opSet
		return e.addProto(t, at)
	case len(at.nodes) == 0:
		return nil, e.missing()
	case e.Op == opDel:
		edits := make([]wire.Edit, len(at.nodes))
		for i, n := range at.nodes {
			edits[i] = wire.Edit{Node: n, Op: wire.Delete}
		}
		return wire.Splice(t, edits)
	case len(at.nodes) > 1:
		return nil, fmt.Errorf("the field is there %d times; say which, as in %s[0]", len(at.nodes), e.path)
	}
	return e.setProto(t, at)
}

// wholeMessage is what an edit with an empty path puts in place of a message.
func (e *Edit) wholeMessage(md protoreflect.MessageDescriptor) ([]byte, error) {
	if e.Op == opRaw {
		return e.rawBytes()
	}
	if e.Kind != "" && e.Kind != kindMessage {
		return nil, fmt.Errorf("a whole message is no %s", e.Kind)
	}
	return encodeWhole(e.Value, md)
}

// setProto replaces the value of the one node that was found.
func (e *Edit) setProto(t *wire.Tree, at protoPlace) ([]byte, error) {
	n := t.Node(at.nodes[0])
	if e.Op == opRetype {
		return e.retype(t, at)
	}
	if e.Op == opRaw {
		value, err := e.rawBytes()
		if err != nil {
			return nil, err
		}
		return wire.Splice(t, []wire.Edit{{Node: at.nodes[0], Op: wire.Set, Data: value}})
	}
	k := e.Kind
	if k == "" && at.fd != nil {
		k = kindOf(at.fd, at.fd.IsList() && n.Type == wire.Len && isPackable(at.fd))
	}
	if k == "" {
		k = guessKind(n.Type, e.Value)
	}
	value, err := encodeValue(k, e.Value, at.fd)
	if err != nil {
		return nil, err
	}
	if k.wireType() == n.Type || n.Type == wire.StartGroup && k == kindMessage {
		return wire.Splice(t, []wire.Edit{{Node: at.nodes[0], Op: wire.Set, Data: value}})
	}
	return wire.Splice(t, []wire.Edit{{Node: at.nodes[0], Op: wire.Replace, Data: AppendField(nil, at.number, k.wireType(), value)}})
}

// addProto puts a field in, with the messages around it that are missing.
func (e *Edit) addProto(t *wire.Tree, at protoPlace) ([]byte, error) {
	k := e.Kind
	if k == "" {
		if at.fd == nil {
			return nil, fmt.Errorf("%s is in no schema; name its kind, as in %s:string=", e.path, e.path)
		}
		k = kindOf(at.fd, at.fd.IsPacked())
	}
	value, err := encodeValue(k, e.Value, at.fd)
	if err != nil {
		return nil, err
	}
	field := AppendField(nil, at.number, k.wireType(), value)
	for i := len(at.rest) - 2; i >= 0; i-- {
		field = AppendField(nil, at.rest[i], wire.Len, field)
	}
	if len(at.rest) > 1 {
		at.number, at.index = at.rest[0], fieldpath.All
	}
	siblings := fieldsOf(t, at.parent, at.number, fieldpath.All)
	switch {
	case at.index != fieldpath.All && at.index > len(siblings):
		return nil, fmt.Errorf("index %d of a field that is there %d times", at.index, len(siblings))
	case at.index != fieldpath.All && at.index < len(siblings):
		return wire.Splice(t, []wire.Edit{{Node: siblings[at.index], Op: wire.Before, Data: field}})
	case len(siblings) > 0:
		return wire.Splice(t, []wire.Edit{{Node: siblings[len(siblings)-1], Op: wire.After, Data: field}})
	}
	return wire.Splice(t, []wire.Edit{{Node: at.parent, Op: wire.Into, Data: field}})
}

func isPackable(fd protoreflect.FieldDescriptor) bool {
	switch fd.Kind() {
	case protoreflect.StringKind, protoreflect.BytesKind, protoreflect.MessageKind, protoreflect.GroupKind:
		return false
	}
	return true
}

// AppendField appends a field: tag, length if it has one, value.
func AppendField(dst []byte, number uint64, t wire.Type, value []byte) []byte {
	dst = wire.AppendVarint(dst, number<<3|uint64(t))
	if t == wire.Len {
		dst = wire.AppendVarint(dst, uint64(len(value)))
	}
	return append(dst, value...)
}

func (e *Edit) rawBytes() ([]byte, error) { return hex.DecodeString(e.Value) }

// missing is the error for a field that is not there.
func (e *Edit) missing() error {
	if e.Op == opSet {
		return fmt.Errorf("%s is not there; --add %s:KIND=VALUE puts it in", e.path, e.path)
	}
	return fmt.Errorf("%s is not there", e.path)
}
