// Package protostruct encodes Go structs as protobuf messages. The field numbers are in struct tags, next to those of
// encoding/json, so that one type has both forms.
//
//	type point struct {
//		X int64  `json:"x" pb:"1"`
//		Y int64  `json:"y" pb:"2,sint"`
//		H uint64 `json:"h" pb:"3,fixed"`
//	}
//	data, err := protostruct.Append(nil, &p)
//	err = protostruct.Unmarshal(data, &p, protostruct.Limits{})
//
// Package infer writes evidence in this form; schema/infer/evidence.proto is its schema. Code that is generated from a
// .proto file would need a second set of types and a conversion of every member.
//
// Numbers are varints; ",sint" selects zigzag encoding and ",fixed" eight bytes. Members without a tag are left out,
// except embedded structs, whose members are those of the enclosing message. Zero values are left out, as in proto3,
// but a pointer to a zero value is an empty message. Lists of numbers are packed, and an array is a list without its
// trailing zeros. Maps are sorted by key. So equal values give equal bytes.
package protostruct

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"
)

// Append appends the protobuf encoding of the struct that v points to.
//
// Errors: a type that has no form in protobuf, or a tag that is no field number.
func Append(b []byte, v any) ([]byte, error) {
	c := newCodec()
	p := reflect.ValueOf(v)
	if p.Kind() != reflect.Pointer || p.IsNil() || p.Elem().Kind() != reflect.Struct {
		return b, fmt.Errorf("protostruct: %T is no pointer to a struct", v)
	}
	if _, err := c.plan(p.Type().Elem()); err != nil {
		return b, err
	}
	return c.appendMessage(b, p.Elem()), nil
}

// An encoding is how numbers of a struct member are encoded: as varint, zigzag varint or eight fixed bytes.
type encoding uint8

const (
	varint encoding = iota
	zigzag
	fixed
)

// A member is a field of a Go struct with the number of its protobuf field.
type member struct {
	// name is the name of the Go field.
	name string
	// number is the protobuf field number.
	number protowire.Number
	// as is the encoding of the field if it is a number.
	as encoding
	// index is the path of indices to the Go field, through embedded structs (as in reflect).
	index []int
	// typ is the Go type of the field.
	typ reflect.Type
}

// A plan has the protobuf fields of one Go struct type.
type plan struct {
	// members are the fields in ascending order of their numbers.
	members []member
	// byNumber maps each field number to its index in members plus one; 0 is no field.
	byNumber []int
}

// A codec is the state of one call of Append or Unmarshal.
type codec struct {
	// plans caches how struct types are encoded.
	plans map[reflect.Type]*plan
	// left is how many bytes of memory Unmarshal may still allocate.
	left int64
}

// newCodec returns a codec without limits on memory.
func newCodec() *codec { return &codec{plans: map[reflect.Type]*plan{}} }

// maxNumber is the maximum field number, because numbers index a table.
const maxNumber = 255

// plan returns the plan of a struct type. It fails if the type, or a type used in it, has no form in protobuf.
func (c *codec) plan(t reflect.Type) (*plan, error) {
	if p := c.plans[t]; p != nil {
		return p, nil
	}
	p := &plan{byNumber: make([]int, maxNumber+1)}
	c.plans[t] = p // before its members: types may be recursive
	if err := c.addMembers(p, t, nil); err != nil {
		return nil, err
	}
	slices.SortFunc(p.members, func(a, b member) int { return cmp.Compare(a.number, b.number) })
	for i := range p.members {
		m := &p.members[i]
		if p.byNumber[m.number] != 0 {
			return nil, fmt.Errorf("protostruct: %s: field number %d is used twice", t, m.number)
		}
		p.byNumber[m.number] = i + 1
		if err := c.check(m.typ); err != nil {
			return nil, fmt.Errorf("protostruct: %s.%s: %w", t, m.name, err)
		}
	}
	return p, nil
}

// addMembers adds the fields of the Go struct t and of the structs embedded in it. index is the path to t.
func (c *codec) addMembers(p *plan, t reflect.Type, index []int) error {
	for i := range t.NumField() {
		f := t.Field(i)
		at := append(append([]int(nil), index...), i)
		tag, tagged := f.Tag.Lookup("pb")
		if !tagged {
			if f.Anonymous && f.Type.Kind() == reflect.Struct {
				if err := c.addMembers(p, f.Type, at); err != nil {
					return err
				}
			}
			continue
		}
		text, how, _ := strings.Cut(tag, ",")
		n, err := strconv.Atoi(text)
		as, known := map[string]encoding{"": varint, "sint": zigzag, "fixed": fixed}[how]
		if err != nil || n < 1 || n > maxNumber || !known {
			return fmt.Errorf("protostruct: %s.%s: invalid tag %q", t, f.Name, tag)
		}
		p.members = append(p.members, member{f.Name, protowire.Number(n), as, at, f.Type})
	}
	return nil
}

// check returns an error for a type that has no form in protobuf.
func (c *codec) check(t reflect.Type) error {
	switch t.Kind() {
	case reflect.Bool, reflect.Int, reflect.Int32, reflect.Int64, reflect.Uint64, reflect.String:
		return nil
	case reflect.Struct:
		_, err := c.plan(t)
		return err
	case reflect.Pointer:
		if k := t.Elem().Kind(); k == reflect.Struct || k == reflect.Array {
			return c.check(t.Elem())
		}
	case reflect.Array:
		if t.Elem().Kind() == reflect.Int64 {
			return nil
		}
	case reflect.Slice:
		switch e := t.Elem(); e.Kind() {
		case reflect.Uint8, reflect.Int32, reflect.Uint64, reflect.String:
			return nil
		case reflect.Struct:
			return c.check(e)
		case reflect.Slice:
			if e.Elem().Kind() == reflect.Uint8 {
				return nil
			}
		}
	case reflect.Map:
		return c.checkMap(t)
	}
	return fmt.Errorf("the type %s has no form in protobuf", t)
}

// checkMap returns an error for a map that has no form in protobuf.
func (c *codec) checkMap(t reflect.Type) error {
	if c.plans[t] != nil {
		return nil
	}
	key := t.Key().Kind()
	if key != reflect.String && key != reflect.Int32 {
		return fmt.Errorf("keys of type %s have no form in protobuf", t.Key())
	}
	c.plans[t] = &plan{} // types may be recursive through maps, too
	return c.check(t.Elem())
}

// appendMessage appends the encoded fields of the struct v to b.
func (c *codec) appendMessage(b []byte, v reflect.Value) []byte {
	p := c.plans[v.Type()]
	for i := range p.members {
		m := &p.members[i]
		b = c.appendField(b, m.number, m.as, v.FieldByIndex(m.index))
	}
	return b
}

// appendField appends a field with the number n, unless its value is zero.
func (c *codec) appendField(b []byte, n protowire.Number, as encoding, v reflect.Value) []byte {
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() {
			return b
		}
		return c.appendValue(b, n, as, v.Elem())
	case reflect.Slice:
		if v.Len() == 0 {
			return b
		}
		switch v.Type().Elem().Kind() {
		case reflect.String, reflect.Struct, reflect.Slice:
			for i := range v.Len() {
				b = c.appendValue(b, n, as, v.Index(i))
			}
			return b
		}
	case reflect.Map:
		return c.appendMap(b, n, as, v)
	default:
		if v.IsZero() {
			return b
		}
	}
	return c.appendValue(b, n, as, v)
}

// appendValue appends a field with the number n and a single value, which may be zero.
func (c *codec) appendValue(b []byte, n protowire.Number, as encoding, v reflect.Value) []byte {
	switch v.Kind() {
	case reflect.Bool, reflect.Int, reflect.Int32, reflect.Int64, reflect.Uint64:
		if as == fixed {
			return protowire.AppendFixed64(protowire.AppendTag(b, n, protowire.Fixed64Type), bitsOf(v))
		}
		return protowire.AppendVarint(protowire.AppendTag(b, n, protowire.VarintType), number(v, as))
	}
	b = protowire.AppendTag(b, n, protowire.BytesType)
	switch v.Kind() {
	case reflect.String:
		return protowire.AppendString(b, v.String())
	case reflect.Pointer:
		v = v.Elem()
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			return protowire.AppendBytes(b, v.Bytes())
		}
	}

	// The length precedes the content, which is moved once its length is known.
	start := len(b)
	if v.Kind() == reflect.Struct {
		b = c.appendMessage(b, v)
	} else {
		b = appendPacked(b, as, v)
	}
	return insertLength(b, start)
}

// insertLength inserts, at offset start, the varint length of all bytes after start.
func insertLength(b []byte, start int) []byte {
	size := len(b) - start
	n := protowire.SizeVarint(uint64(size))
	b = append(b, make([]byte, n)...)
	copy(b[start+n:], b[start:start+size])
	protowire.AppendVarint(b[start:start], uint64(size))
	return b
}

// appendPacked appends the numbers of a slice or array in packed form.
func appendPacked(b []byte, as encoding, v reflect.Value) []byte {
	n := v.Len()
	if v.Kind() == reflect.Array {
		for n > 0 && v.Index(n-1).IsZero() {
			n--
		}
	}
	for i := range n {
		if e := v.Index(i); as == fixed {
			b = protowire.AppendFixed64(b, bitsOf(e))
		} else {
			b = protowire.AppendVarint(b, number(e, as))
		}
	}
	return b
}

// appendMap appends the entries of a map, sorted by key, as fields with the number n.
func (c *codec) appendMap(b []byte, n protowire.Number, as encoding, v reflect.Value) []byte {
	for _, key := range sortedKeys(v) {
		b = protowire.AppendTag(b, n, protowire.BytesType)
		start := len(b)
		b = c.appendField(b, 1, varint, key)
		b = c.appendField(b, 2, as, v.MapIndex(key))
		b = insertLength(b, start)
	}
	return b
}

// compareKeys compares two map keys, for sorting.
func compareKeys(a, b reflect.Value) int {
	if a.Kind() == reflect.String {
		return strings.Compare(a.String(), b.String())
	}
	return cmp.Compare(a.Int(), b.Int())
}

// bitsOf returns the bits of a value of any numeric Go type.
func bitsOf(v reflect.Value) uint64 {
	switch v.Kind() {
	case reflect.Uint64:
		return v.Uint()
	case reflect.Bool:
		return protowire.EncodeBool(v.Bool())
	}
	return uint64(v.Int())
}

// number returns the value that is encoded as a varint for the number v: zigzag-encoded if as says so.
func number(v reflect.Value, as encoding) uint64 {
	if as == zigzag {
		return protowire.EncodeZigZag(v.Int())
	}
	return bitsOf(v)
}
