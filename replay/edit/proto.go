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

// A protoPlace is the position in a protobuf message to which a path leads.
type protoPlace struct {
	// nodes are the existing fields at the position, as nodes of the parsed message; empty if the field
	// is missing.
	nodes []int32
	// parent is the node of the message that contains the fields or, if messages on the path are
	// missing, of the innermost one that exists.
	parent int32

	// number is the field number of the path's last step.
	number uint64
	// index is the list index of the path's last step; fieldpath.All if it has none.
	index int
	// fd is the definition of the field; nil if unknown.
	fd protoreflect.FieldDescriptor

	// rest are the field numbers that are missing below parent, ending with that of the field itself;
	// nil if the field exists.
	rest []uint64
}

// fieldByName finds a message's field by its name in the .proto file or in JSON; nil if md is nil or
// lacks it.
func fieldByName(md protoreflect.MessageDescriptor, name string) protoreflect.FieldDescriptor {
	if md == nil {
		return nil
	}
	if fd := md.Fields().ByTextName(name); fd != nil {
		return fd
	}
	return md.Fields().ByJSONName(name)
}

// fieldOf returns number and definition of the field of message type md that name, a number or a name,
// denotes. The definition is nil if it is unknown; a name then is an error.
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
		return 0, nil, fmt.Errorf("the field name %q needs definitions of the message; without definitions, give the field's number", name)
	}
	return 0, nil, fmt.Errorf("the message %s has no field %q: use a name from its definition, or the field number", md.FullName(), name)
}

// protoFind returns the position to which a path leads in the message t of type md (nil if unknown).
// Messages on the path may be missing.
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

		// A parent is missing, so everything below it is missing too.
		if len(at.rest) > 0 {
			at.rest = append(at.rest, number)
			continue
		}
		if len(at.nodes) > 1 {
			return at, fmt.Errorf("the field %s occurs %d times; select one of them, as in %s[0]", p[:i], len(at.nodes), p[:i])
		}
		at.parent = at.nodes[0]
		if !t.IsMessage(at.parent) {
			return at, fmt.Errorf("the field %s is not a message", p[:i])
		}
		at.nodes = fieldsOf(t, at.parent, number, step.Index)
		if len(at.nodes) == 0 {
			at.rest = []uint64{number}
		}
	}
	return at, nil
}

// fieldsOf returns the fields with a number in the message at node parent: all of them, or only the one
// at index.
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

// applyProto applies the edit to a protobuf message. All bytes outside the edited field stay unchanged,
// except for the lengths of the enclosing messages.
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
		return nil, errors.New("the type json can be used only for JSON bodies")
	}

	// add, and set of a missing field that is defined, insert; the others need existing fields.
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
		return nil, fmt.Errorf("the field occurs %d times; select one of them, as in %s[0]", len(at.nodes), e.path)
	}
	return e.setProto(t, at)
}

// wholeMessage returns the new message of an edit with an empty path, which replaces the whole message.
func (e *Edit) wholeMessage(md protoreflect.MessageDescriptor) ([]byte, error) {
	if e.Op == opRaw {
		return e.rawBytes()
	}
	if e.Kind != "" && e.Kind != kindMessage {
		return nil, fmt.Errorf("a whole message cannot have the type %s", e.Kind)
	}
	return encodeWhole(e.Value, md)
}

// setProto replaces the value of the only field that the path selects.
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
		return wire.Splice(t, []wire.Edit{{Node: at.nodes[0], Op: wire.SetValue, Data: value}})
	}

	// The kind comes from the edit, from the definition, or from the wire type and the text.
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

	// Another wire type needs a new tag.
	if k.wireType() == n.Type || n.Type == wire.StartGroup && k == kindMessage {
		return wire.Splice(t, []wire.Edit{{Node: at.nodes[0], Op: wire.SetValue, Data: value}})
	}
	return wire.Splice(t, []wire.Edit{{Node: at.nodes[0], Op: wire.Replace, Data: AppendField(nil, at.number, k.wireType(), value)}})
}

// addProto inserts a field, together with the messages on the path to it that are missing.
func (e *Edit) addProto(t *wire.Tree, at protoPlace) ([]byte, error) {
	k := e.Kind
	if k == "" {
		if at.fd == nil {
			return nil, fmt.Errorf("the definitions lack the field %s; name its type, as in %s:string=", e.path, e.path)
		}
		k = kindOf(at.fd, at.fd.IsPacked())
	}
	value, err := encodeValue(k, e.Value, at.fd)
	if err != nil {
		return nil, err
	}

	// Build the field from the inside out, and insert it at its place among its siblings.
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
		return nil, fmt.Errorf("the index %d is too large: the field occurs %d times", at.index, len(siblings))
	case at.index != fieldpath.All && at.index < len(siblings):
		return wire.Splice(t, []wire.Edit{{Node: siblings[at.index], Op: wire.InsertBefore, Data: field}})
	case len(siblings) > 0:
		return wire.Splice(t, []wire.Edit{{Node: siblings[len(siblings)-1], Op: wire.InsertAfter, Data: field}})
	}
	return wire.Splice(t, []wire.Edit{{Node: at.parent, Op: wire.AppendInto, Data: field}})
}

// isPackable reports whether a repeated field's type allows the packed encoding.
func isPackable(fd protoreflect.FieldDescriptor) bool {
	switch fd.Kind() {
	case protoreflect.StringKind, protoreflect.BytesKind, protoreflect.MessageKind, protoreflect.GroupKind:
		return false
	}
	return true
}

// AppendField appends an encoded field to dst: the tag, the length if the wire type has one, and the
// value.
func AppendField(dst []byte, number uint64, t wire.Type, value []byte) []byte {
	dst = wire.AppendVarint(dst, number<<3|uint64(t))
	if t == wire.Len {
		dst = wire.AppendVarint(dst, uint64(len(value)))
	}
	return append(dst, value...)
}

// rawBytes returns the bytes of the hexadecimal Value.
func (e *Edit) rawBytes() ([]byte, error) { return hex.DecodeString(e.Value) }

// missing returns the error for a field that does not exist.
func (e *Edit) missing() error {
	if e.Op == opSet {
		return fmt.Errorf("the message has no field %s; --add %s:KIND=VALUE inserts it", e.path, e.path)
	}
	return fmt.Errorf("the message has no field %s", e.path)
}
