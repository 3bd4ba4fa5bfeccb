package field

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"

	"unwire/decode/wire"
)

// A rewrapFunc encodes the edited Inner of a field with the encodings that the payload had (gzip,
// base64 and others). If Inner was not edited, it returns payload unchanged.
type rewrapFunc func(f *Field, payload []byte) ([]byte, error)

// AppendFields appends the encoded fields to dst, in order. See Field.Append.
//
// Errors: as Field.Append, prefixed by the indexes that lead to the field.
func AppendFields(dst []byte, fields []*Field, rewrap rewrapFunc) ([]byte, error) {
	for i, f := range fields {
		if f == nil {
			return dst, fmt.Errorf("fields[%d] must not be null", i)
		}
		var err error
		if dst, err = f.Append(dst, rewrap); err != nil {
			return dst, fmt.Errorf("fields[%d]: %w", i, err)
		}
	}
	return dst, nil
}

// wireTypes maps the names of wire types in JSON to the types.
var wireTypes = map[string]wire.Type{"varint": wire.Varint, "i64": wire.I64, "len": wire.Len, "group": wire.StartGroup, "i32": wire.I32}

// Append encodes a field that was read from JSON and appends the bytes to dst. If rewrap is nil, Inner is
// ignored.
//
// Shape: the bytes depend on N, Wire, Kind, Type, Literal, Fields, Open and the Long counts only.
//
// Errors: a member whose value cannot be encoded.
func (f *Field) Append(dst []byte, rewrap rewrapFunc) ([]byte, error) {
	if f.Wire == wire.Garbage.String() {
		b, err := base64Value(f.Literal)
		return append(dst, b...), err
	}

	// The tag: field number and wire type.
	typ, ok := wireTypes[f.Wire]
	if !ok {
		return dst, fmt.Errorf("the member wire must be varint, i64, len, group, i32 or garbage, not %.20q", f.Wire)
	}
	if f.N >= 1<<61 {
		return dst, fmt.Errorf("the member n must be from 0 to 2^61-1, not %d", f.N)
	}
	// The counts of LongTag and its siblings restore overlong varints, so that unedited JSON yields identical
	// bytes.
	dst, err := AppendLong(dst, f.N<<3|uint64(typ), f.LongTag)
	if err != nil {
		return dst, fmt.Errorf("long_tag: %w", err)
	}

	switch typ {
	case wire.Varint, wire.I32, wire.I64:
		return appendScalar(dst, f.Type, typ, f.Literal, f.LongValue)
	case wire.StartGroup:
		if dst, err = AppendFields(dst, f.Fields, rewrap); err != nil || f.Open {
			return dst, err
		}
		if dst, err = AppendLong(dst, f.N<<3|uint64(wire.EndGroup), f.LongEnd); err != nil {
			return dst, fmt.Errorf("long_end: %w", err)
		}
		return dst, nil
	}

	// The remaining type is Len: the payload comes first, because its length precedes it.
	payload, err := f.payload(rewrap)
	if err == nil && rewrap != nil {
		payload, err = rewrap(f, payload)
	}
	if err != nil {
		return dst, err
	}
	if dst, err = AppendLong(dst, uint64(len(payload)), f.LongLen); err != nil {
		return dst, fmt.Errorf("long_len: %w", err)
	}
	return append(dst, payload...), nil
}

// payload encodes the value of a length-delimited field, without its length.
func (f *Field) payload(rewrap rewrapFunc) ([]byte, error) {
	switch wire.Kind(f.Kind) {
	case wire.KindMessage:
		return AppendFields(nil, f.Fields, rewrap)
	case wire.KindString:
		var s string
		if err := json.Unmarshal(f.Literal, &s); err != nil {
			return nil, fmt.Errorf("value: %w", err)
		}
		return []byte(s), nil
	case wire.KindBytes:
		return base64Value(f.Literal)
	case wire.KindPacked:
		return packedBytes(strings.TrimPrefix(f.Type, "packed "), f.Literal)
	}
	return nil, fmt.Errorf("the member kind must be message, string, bytes or packed, not %.20q", f.Kind)
}

// packedBytes encodes a JSON array as a packed repeated field with the given element type.
func packedBytes(element string, value json.RawMessage) (out []byte, err error) {
	var list []json.RawMessage
	if err := json.Unmarshal(value, &list); err != nil {
		return nil, fmt.Errorf("value: %w", err)
	}
	typ := wire.Varint
	switch element {
	case "fixed32", "sfixed32", "float":
		typ = wire.I32
	case "fixed64", "sfixed64", "double":
		typ = wire.I64
	}
	for i, v := range list {
		if out, err = appendScalar(out, element, typ, v, 0); err != nil {
			return out, fmt.Errorf("value[%d]: %w", i, err)
		}
	}
	return out, nil
}

// base64Value decodes a JSON string that contains base64.
func base64Value(v json.RawMessage) ([]byte, error) {
	var s string
	if err := json.Unmarshal(v, &s); err != nil {
		return nil, fmt.Errorf("value: %w", err)
	}
	b, err := base64.StdEncoding.DecodeString(s)
	if err != nil {
		return nil, fmt.Errorf("value: %w", err)
	}
	return b, nil
}

// AppendLong appends v as a varint that is extra bytes longer than necessary.
//
// Limits: extra is at least 0, and the varint has at most 10 bytes.
func AppendLong(dst []byte, v uint64, extra int) ([]byte, error) {
	width := wire.SizeVarint(v) + extra
	if extra < 0 || width > 10 {
		return dst, fmt.Errorf("a varint cannot have %d extra bytes: it has 1 to 10 bytes", extra)
	}
	return wire.AppendVarintWidth(dst, v, width), nil
}

// appendScalar appends the JSON number, bool or string in value as wire type typ. name is the protobuf type,
// which decides between unsigned, signed, zigzag and floating point. A varint is long bytes longer than
// necessary.
func appendScalar(dst []byte, name string, typ wire.Type, value json.RawMessage, long int) ([]byte, error) {
	s := string(value)
	if strings.HasPrefix(s, `"`) {
		// JSON has no numbers for NaN and the infinities, so they are strings.
		if err := json.Unmarshal(value, &s); err != nil {
			return dst, fmt.Errorf("value: %w", err)
		}
	}
	bits, err := scalarBits(name, typ, s)
	if err != nil {
		return dst, fmt.Errorf("the value must be a number that fits %[2]s, not %.40[1]s", s, typ)
	}
	switch typ {
	case wire.I32:
		return binary.LittleEndian.AppendUint32(dst, uint32(bits)), nil
	case wire.I64:
		return binary.LittleEndian.AppendUint64(dst, bits), nil
	}
	if dst, err = AppendLong(dst, bits, long); err != nil {
		return dst, fmt.Errorf("long_value: %w", err)
	}
	return dst, nil
}

// floatBits parses s and returns the bits of a float of width bits. s is a number, "NaN", "Infinity", or the bits
// in hex after 0x. nan are the bits to use for "NaN".
func floatBits(s string, width int, nan uint64) (uint64, error) {
	if strings.EqualFold(s, "nan") {
		return nan, nil
	}
	if digits, ok := strings.CutPrefix(s, "0x"); ok && !strings.ContainsAny(s, ".pP") {
		return strconv.ParseUint(digits, 16, width)
	}
	f, err := strconv.ParseFloat(s, width)
	if width == 32 {
		return uint64(math.Float32bits(float32(f))), err
	}
	return math.Float64bits(f), err
}

// scalarBits parses the text s as a value of protobuf type name and returns its bits as encoded in wire type typ.
func scalarBits(name string, typ wire.Type, s string) (uint64, error) {
	switch {
	case s == "true":
		return 1, nil
	case s == "false":
		return 0, nil
	case name == "float" && typ == wire.I32:
		return floatBits(s, 32, nan32)
	case name == "double" && typ == wire.I64:
		return floatBits(s, 64, nan64)
	}

	// Integers: an I32 value must fit 32 bits, signed or unsigned.
	size := 64
	if typ == wire.I32 {
		size = 32
	}
	// sint32 and sint64 use zigzag encoding: https://protobuf.dev/programming-guides/encoding/#signed-ints
	if !strings.HasPrefix(s, "-") {
		v, err := strconv.ParseUint(s, 10, size)
		if err == nil && (name == "sint32" || name == "sint64") {
			return v << 1, nil
		}
		return v, err
	}
	v, err := strconv.ParseInt(s, 10, size)
	if name == "sint32" || name == "sint64" {
		return uint64(v)<<1 ^ uint64(v>>63), err
	}
	return uint64(v), err
}
