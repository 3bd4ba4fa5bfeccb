package protostruct

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"
)

// Limits limits the memory and nesting depth of Unmarshal, for bytes from untrusted sources. The zero value
// stands for the defaults.
type Limits struct {
	// Depth is the maximum nesting depth of messages. Default: 256.
	Depth int
	// Memory is the maximum size of the result in bytes, estimated. A small message can have a large result,
	// because each of its structs has all members. Default: 1 GiB.
	Memory int64
}

// Unmarshal decodes a message into the struct that v points to, which should be zero.
//
// Unlike other protobuf decoders, it rejects fields that the struct lacks: a newer program wrote them, and the
// rest may mean something else without them.
//
// Errors: malformed or unknown fields, and Limits. The error has the path of field numbers and the offset in the
// innermost message.
func Unmarshal(data []byte, v any, l Limits) error {
	c := newCodec()
	p := reflect.ValueOf(v)
	if p.Kind() != reflect.Pointer || p.IsNil() || p.Elem().Kind() != reflect.Struct {
		return fmt.Errorf("protostruct: %T is no pointer to a struct", v)
	}
	if _, err := c.plan(p.Type().Elem()); err != nil {
		return err
	}
	if c.left = l.Memory; c.left == 0 {
		c.left = 1 << 30
	}
	depth := l.Depth
	if depth == 0 {
		depth = 256
	}
	return c.readMessage(data, p.Elem(), depth)
}

// A fieldError is a decoding error with the place where it occurred. Enclosing messages prepend their field
// numbers.
type fieldError struct {
	// path are the field numbers from the outermost message inwards.
	path []protowire.Number
	// off is the byte offset within the innermost message.
	off int
	// err is the cause.
	err error
}

// Error returns the cause with path and offset.
func (e *fieldError) Error() string {
	text := "field "
	for i, n := range e.path {
		if i > 0 {
			text += "."
		}
		text += fmt.Sprint(n)
	}
	return fmt.Sprintf("%s at 0x%x: %v", text, e.off, e.err)
}

// Unwrap returns the cause.
func (e *fieldError) Unwrap() error { return e.err }

// inField wraps err in a fieldError for field n at offset off, or prepends n if it is one already.
func inField(n protowire.Number, off int, err error) error {
	if inner, ok := errors.AsType[*fieldError](err); ok {
		inner.path = slices.Insert(inner.path, 0, n)
		return inner
	}
	return &fieldError{[]protowire.Number{n}, off, err}
}

// Causes of decoding errors, as texts for the user.
var (
	errUnknown  = errors.New("the field is unknown, because a newer program wrote it")
	errWireType = errors.New("the field has an unexpected wire type")
	errDepth    = errors.New("messages are nested too deeply")
	errMemory   = errors.New("the message needs too much memory")
	errTwice    = errors.New("the field occurs twice")
	errRange    = errors.New("the number is out of range")
	errKeyTwice = errors.New("a key of the map occurs twice")
	errUTF8     = errors.New("the text is not valid UTF-8")
	errLength   = errors.New("the list has an unexpected length")
)

// readMessage decodes the fields of a message into the struct v. depth is the nesting so far.
func (c *codec) readMessage(data []byte, v reflect.Value, depth int) error {
	if depth == 0 {
		return errDepth
	}
	p := c.plans[v.Type()]
	var seen [maxNumber + 1]bool
	for off := 0; off < len(data); {
		n, typ, size := protowire.ConsumeTag(data[off:])
		if size < 0 {
			return fmt.Errorf("the message is malformed at 0x%x: %w", off, protowire.ParseError(size))
		}
		if n > maxNumber || p.byNumber[n] == 0 {
			return inField(n, off, errUnknown)
		}
		m := &p.members[p.byNumber[n]-1]
		if seen[n] && !repeats(m.typ) {
			return inField(n, off, errTwice)
		}
		seen[n] = true
		used, err := c.readField(data[off+size:], typ, m.as, v.FieldByIndex(m.index), depth)
		if err != nil {
			return inField(n, off, err)
		}
		off += size + used
	}
	return nil
}

// repeats reports whether the elements of a list of the type t are separate fields, i.e. are not packed.
func repeats(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Map:
		return true
	case reflect.Slice:
		k := t.Elem().Kind()
		return k == reflect.String || k == reflect.Struct || k == reflect.Slice
	}
	return false
}

// readField decodes one field value into v and returns its size in bytes.
func (c *codec) readField(data []byte, typ protowire.Type, as encoding, v reflect.Value, depth int) (int, error) {
	switch v.Kind() {
	case reflect.Bool, reflect.Int, reflect.Int32, reflect.Int64, reflect.Uint64:
		return readNumber(data, typ, as, v)
	}
	if typ != protowire.BytesType {
		return 0, errWireType
	}
	p, size := protowire.ConsumeBytes(data)
	if size < 0 {
		return 0, protowire.ParseError(size)
	}
	return size, c.readContent(p, as, v, depth)
}

// readContent decodes p, the content of a length-delimited field, into v.
func (c *codec) readContent(p []byte, as encoding, v reflect.Value, depth int) error {
	switch v.Kind() {
	case reflect.String:
		if !utf8.Valid(p) {
			return errUTF8
		}
		if err := c.allocate(len(p)); err != nil {
			return err
		}
		v.SetString(string(p))
	case reflect.Struct:
		return c.readMessage(p, v, depth-1)
	case reflect.Array:
		return readArray(p, as, v)
	case reflect.Pointer:
		if err := c.allocate(int(v.Type().Elem().Size())); err != nil {
			return err
		}
		v.Set(reflect.New(v.Type().Elem()))
		return c.readContent(p, as, v.Elem(), depth)
	case reflect.Map:
		return c.readEntry(p, as, v, depth)
	case reflect.Slice:
		return c.readList(p, as, v, depth)
	}
	return nil
}

// allocate counts n bytes of memory. It fails beyond Limits.Memory.
func (c *codec) allocate(n int) error {
	if c.left -= int64(n); c.left < 0 {
		return errMemory
	}
	return nil
}

// readNumber decodes a number into v, and returns its encoded size in bytes.
func readNumber(data []byte, typ protowire.Type, as encoding, v reflect.Value) (int, error) {
	var u uint64
	var size int
	if as == fixed {
		if typ != protowire.Fixed64Type {
			return 0, errWireType
		}
		u, size = protowire.ConsumeFixed64(data)
	} else {
		if typ != protowire.VarintType {
			return 0, errWireType
		}
		u, size = protowire.ConsumeVarint(data)
	}
	if size < 0 {
		return 0, protowire.ParseError(size)
	}
	return size, setNumber(v, as, u)
}

// setNumber sets v, of any numeric type, to the decoded number u. It fails if u is out of range.
func setNumber(v reflect.Value, as encoding, u uint64) error {
	n := int64(u)
	if as == zigzag {
		n = protowire.DecodeZigZag(u)
	}
	switch v.Kind() {
	case reflect.Bool:
		if u > 1 {
			return errRange
		}
		v.SetBool(u == 1)
	case reflect.Uint64:
		v.SetUint(u)
	case reflect.Int32:
		if n < math.MinInt32 || n > math.MaxInt32 {
			return errRange
		}
		v.SetInt(n)
	default:
		v.SetInt(n)
	}
	return nil
}

// eachNumber calls do with the index and value of each number of a packed list.
func eachNumber(p []byte, as encoding, do func(i int, u uint64) error) error {
	for i := 0; len(p) > 0; i++ {
		var u uint64
		var size int
		if as == fixed {
			u, size = protowire.ConsumeFixed64(p)
		} else {
			u, size = protowire.ConsumeVarint(p)
		}
		if size < 0 {
			return protowire.ParseError(size)
		}
		if err := do(i, u); err != nil {
			return err
		}
		p = p[size:]
	}
	return nil
}

// readArray decodes a packed list into the array v. The list may be shorter, because trailing zeros are not
// stored.
func readArray(p []byte, as encoding, v reflect.Value) error {
	last := uint64(1)
	err := eachNumber(p, as, func(i int, u uint64) error {
		if i >= v.Len() {
			return errLength
		}
		last = u
		return setNumber(v.Index(i), as, u)
	})
	if err == nil && last == 0 {
		return errLength
	}
	return err
}

// readList decodes p into the slice v: a packed list, bytes, or one further element.
func (c *codec) readList(p []byte, as encoding, v reflect.Value, depth int) error {
	elem := v.Type().Elem()
	switch elem.Kind() {
	case reflect.Uint8:
		if err := c.allocate(len(p)); err != nil {
			return err
		}
		v.SetBytes(append([]byte{}, p...))
		return nil
	case reflect.String, reflect.Struct, reflect.Slice:
		// Lists grow by doubling, so that they need up to twice the size of their elements.
		if err := c.allocate(2 * int(elem.Size())); err != nil {
			return err
		}
		if v.Len() == v.Cap() {
			v.Grow(1)
		}
		v.SetLen(v.Len() + 1)
		last := v.Index(v.Len() - 1)
		last.SetZero()
		return c.readContent(p, as, last, depth)
	}
	return eachNumber(p, as, func(_ int, u uint64) error {
		if err := c.allocate(2 * int(elem.Size())); err != nil {
			return err
		}
		if v.Len() == v.Cap() {
			v.Grow(1)
		}
		v.SetLen(v.Len() + 1)
		return setNumber(v.Index(v.Len()-1), as, u)
	})
}

// mapEntrySize is the estimated memory for an entry of a Go map, in bytes, in addition to key and value.
const mapEntrySize = 48

// readEntry decodes one entry and adds it to the map v.
func (c *codec) readEntry(p []byte, as encoding, v reflect.Value, depth int) error {
	t := v.Type()
	if v.IsNil() {
		v.Set(reflect.MakeMap(t))
	}

	// An attacker could declare many empty entries, so each one counts towards the memory limit.
	if err := c.allocate(mapEntrySize + int(t.Key().Size()) + int(t.Elem().Size())); err != nil {
		return err
	}
	key, value := reflect.New(t.Key()).Elem(), reflect.New(t.Elem()).Elem()
	next := protowire.Number(1)
	for len(p) > 0 {
		n, typ, size := protowire.ConsumeTag(p)
		if size < 0 {
			return protowire.ParseError(size)
		}

		// The encoder writes key and value once, in this order; anything else is another format.
		if n < next || n > 2 {
			return inField(n, 0, errUnknown)
		}
		next = n + 1
		into, how := key, varint
		if n == 2 {
			into, how = value, as
		}
		used, err := c.readField(p[size:], typ, how, into, depth)
		if err != nil {
			return inField(n, 0, err)
		}
		p = p[size+used:]
	}

	// A map that repeats a key is ambiguous.
	if v.MapIndex(key).IsValid() {
		return errKeyTwice
	}
	if value.Kind() == reflect.Pointer && value.IsNil() {
		value.Set(reflect.New(t.Elem().Elem()))
	}
	v.SetMapIndex(key, value)
	return nil
}

// sortedKeys returns the keys of a map in ascending order.
func sortedKeys(v reflect.Value) []reflect.Value {
	keys := v.MapKeys()
	slices.SortFunc(keys, compareKeys)
	return keys
}
