package callshape

import (
	"encoding/json"
	"math"
	"strconv"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"

	"unwire/decode/jsontree"
	"unwire/decode/transcript/naming"
)

// maxStructDepth is the maximum nesting of a Struct.
const maxStructDepth = 40

// The fields of google.protobuf.Value.
const (
	valueNull   = 1
	valueNumber = 2
	valueString = 3
	valueBool   = 4
	valueStruct = 5
	valueList   = 6
)

// appendStruct appends a google.protobuf.Struct as a JSON object, with the members in the order in which they were
// sent. ok is false if b is anything else.
func appendStruct(dst, b []byte, depth int) (out []byte, ok bool) {
	if depth > maxStructDepth {
		return dst, false
	}
	dst = append(dst, '{')
	for first := true; len(b) > 0; first = false {
		n, entry, rest, ok := lenField(b)
		if !ok || n != 1 {
			return dst, false
		}
		b = rest
		key, value, isEntry := mapEntry(entry)
		// Names of members are words, unlike the identifiers next to a text.
		if !isEntry || depth == 0 && !naming.IsKind(key) {
			return dst, false
		}
		if !first {
			dst = append(dst, ',')
		}
		dst = append(append(dst, jsontree.Quote(key)...), ':')
		if dst, ok = appendValue(dst, value, depth+1); !ok {
			return dst, false
		}
	}
	return append(dst, '}'), true
}

// lenField parses the length-delimited field at the beginning of b. rest are the bytes after it.
func lenField(b []byte) (n protowire.Number, payload, rest []byte, ok bool) {
	n, typ, size := protowire.ConsumeTag(b)
	if size < 0 || typ != protowire.BytesType {
		return 0, nil, nil, false
	}
	payload, more := protowire.ConsumeBytes(b[size:])
	if more < 0 {
		return 0, nil, nil, false
	}
	return n, payload, b[size+more:], true
}

// mapEntry returns the key and the value of an encoded map entry with a text key.
func mapEntry(b []byte) (key string, value []byte, ok bool) {
	n, k, rest, ok := lenField(b)
	if !ok || n != 1 || !utf8.Valid(k) {
		return "", nil, false
	}
	n, value, rest, ok = lenField(rest)
	return string(k), value, ok && n == 2 && len(rest) == 0
}

// appendValue appends b, an encoded google.protobuf.Value, to dst as JSON. depth is its nesting. It returns false
// if b is not one.
func appendValue(dst, b []byte, depth int) ([]byte, bool) {
	n, typ, size := protowire.ConsumeTag(b)
	if size < 0 || depth > maxStructDepth {
		return dst, false
	}
	b = b[size:]
	var rest int
	switch {
	case n == valueNull && typ == protowire.VarintType:
		_, rest = protowire.ConsumeVarint(b)
		dst = append(dst, "null"...)
	case n == valueBool && typ == protowire.VarintType:
		v, used := protowire.ConsumeVarint(b)
		if v > 1 {
			return dst, false
		}
		dst, rest = strconv.AppendBool(dst, v == 1), used
	case n == valueNumber && typ == protowire.Fixed64Type:
		v, used := protowire.ConsumeFixed64(b)
		number, err := json.Marshal(math.Float64frombits(v))
		if err != nil {
			number = []byte(`"NaN"`)
		}
		dst, rest = append(dst, number...), used
	case n >= valueString && n <= valueList && typ == protowire.BytesType:
		v, used := protowire.ConsumeBytes(b)
		if used < 0 {
			return dst, false
		}
		rest = used
		var ok bool
		if dst, ok = appendInner(dst, n, v, depth); !ok {
			return dst, false
		}
	default:
		return dst, false
	}
	return dst, rest == len(b)
}

// appendInner appends the value v of field n of a google.protobuf.Value as JSON, if it is a string, a Struct or a
// list.
func appendInner(dst []byte, n protowire.Number, v []byte, depth int) ([]byte, bool) {
	switch n {
	case valueString:
		return append(dst, jsontree.Quote(string(v))...), utf8.Valid(v)
	case valueStruct:
		return appendStruct(dst, v, depth+1)
	case valueList:
		dst = append(dst, '[')
		for first := true; len(v) > 0; first = false {
			n, element, rest, ok := lenField(v)
			if !ok || n != 1 {
				return dst, false
			}
			if !first {
				dst = append(dst, ',')
			}
			if dst, ok = appendValue(dst, element, depth+1); !ok {
				return dst, false
			}
			v = rest
		}
		return append(dst, ']'), true
	}
	return dst, false
}
