package align

import (
	"encoding/base64"
	"math"
	"strconv"
	"strings"

	"unwire/decode/wire"
)

// An enumName is an enum value that was seen: its name in JSON and its number in protobuf.
type enumName struct {
	// name is the name of the enum value in JSON.
	name string
	// number is the number of the enum value in protobuf.
	number int32
}

// isIdentifier reports whether s has the form of an identifier, so that it can be the name of an enum value.
func isIdentifier(s string) bool {
	for i, c := range []byte(s) {
		letter := c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
		if !letter && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return s != ""
}

// isInt32 reports whether a varint is the sign-extended encoding of an int32 or an enum value.
func isInt32(u uint64) bool { return int64(u) == int64(int32(u)) }

// zigzag decodes a zigzag-encoded number (sint32, sint64).
func zigzag(u uint64) int64 { return int64(u>>1) ^ -int64(u&1) }

// varintTypes returns the types for which the varint u has the JSON form v.
func varintTypes(u uint64, v *value) (t types) {
	// The kind of the JSON value limits the possible types.
	switch v.kind {
	case boolean:
		if v.truth == (u == 1) && u <= 1 {
			t = tBool
		}
	case number:
		// Canonical JSON has numbers of 32 bits without quotes, and those of 64 bits in quotes.
		x, ok := integer(v.text)
		if t = bigTypes(u, v.text, tInt64, tUint64) | bigTypes(uint64(zigzag(u)), v.text, tSint64, 0); t != 0 || !ok {
			return t
		}

		if isInt32(u) && int64(u) == x {
			t |= tInt32 | tEnum
		}
		if u <= math.MaxUint32 && int64(u) == x {
			t |= tUint32
		}
		if u <= math.MaxUint32 && zigzag(u) == x {
			t |= tSint32
		}
	case text:
		// In JSON, integers of 64 bits and the names of enum values are strings.
		t = wideTypes(u, v.text, tInt64, tUint64)
		if strconv.FormatInt(zigzag(u), 10) == v.text {
			t |= tSint64
		}
		if isInt32(u) && isIdentifier(v.text) {
			t |= tEnum
		}
	case null:
		// The enum google.protobuf.NullValue is null in JSON.
		if u == 0 {
			t = tEnum
		}
	}
	return t
}

// wideTypes returns the 64-bit types, out of signed and unsigned, for which u has the JSON form s. The JSON
// mapping of protobuf writes such numbers as strings.
func wideTypes(u uint64, s string, signed, unsigned types) (t types) {
	if strconv.FormatInt(int64(u), 10) == s {
		t |= signed
	}
	if strconv.FormatUint(u, 10) == s {
		t |= unsigned
	}
	return t
}

// bigTypes is wideTypes for JSON that was not written by a protobuf library and has 64-bit numbers unquoted. It
// accepts only numbers that need more than 32 bits, because an unquoted small number indicates a 32-bit type.
func bigTypes(u uint64, s string, signed, unsigned types) types {
	if int64(u) >= math.MinInt32 && int64(u) <= math.MaxUint32 {
		return 0
	}
	return wideTypes(u, s, signed, unsigned)
}

// integer parses a JSON number whose value is an integer, in any notation such as 1e3. ok is false if it is not
// an integer.
func integer(s string) (int64, bool) {
	if x, err := strconv.ParseInt(s, 10, 64); err == nil {
		return x, true
	}
	f, err := strconv.ParseFloat(s, 64)
	return int64(f), err == nil && f == math.Trunc(f) && math.Abs(f) < 1<<53
}

// fixed32Types returns the types for which a 4-byte value has the JSON form v.
func fixed32Types(u uint32, v *value) (t types) {
	if x, ok := integer(v.text); ok && v.kind == number {
		if x == int64(u) {
			t |= tFixed32
		}
		if x == int64(int32(u)) {
			t |= tSfixed32
		}
	}
	if f, ok := float(v, 32); ok && sameFloat(float64(math.Float32frombits(u)), f) {
		t |= tFloat
	}
	return t
}

// fixed64Types returns the types for which an 8-byte value has the JSON form v.
func fixed64Types(u uint64, v *value) (t types) {
	switch v.kind {
	case text:
		t = wideTypes(u, v.text, tSfixed64, tFixed64)
	case number:
		t = bigTypes(u, v.text, tSfixed64, tFixed64)
	}
	if f, ok := float(v, 64); ok && sameFloat(math.Float64frombits(u), f) {
		t |= tDouble
	}
	return t
}

// sameFloat reports whether two numbers are equal or both NaN.
func sameFloat(a, b float64) bool { return a == b || math.IsNaN(a) && math.IsNaN(b) }

// float parses the JSON form of a floating-point number, including "NaN" and "Infinity". bits is 32 or 64.
func float(v *value, bits int) (float64, bool) {
	switch {
	case v.kind == number:
		f, err := strconv.ParseFloat(v.text, bits)
		return f, err == nil
	case v.kind != text:
		return 0, false
	case v.text == "NaN":
		return math.NaN(), true
	case v.text == "Infinity":
		return math.Inf(1), true
	case v.text == "-Infinity":
		return math.Inf(-1), true
	}
	// JSON that was not written by a protobuf library may have a quoted number.
	f, err := strconv.ParseFloat(v.text, bits)
	return f, err == nil && isDecimal(v.text)
}

// isDecimal reports whether s consists only of characters that occur in decimal numbers.
func isDecimal(s string) bool { return strings.Trim(s, "+-.eE0123456789") == "" }

// textTypes returns the types, string or bytes, for which the payload data has the JSON string s.
func textTypes(data []byte, s string) (t types) {
	if string(data) == s {
		t |= tString
	}
	if isBase64(data, s) {
		t |= tBytes
	}
	return t
}

// isBase64 reports whether s is the base64 encoding of data in one of the two alphabets, with or without
// padding.
func isBase64(data []byte, s string) bool {
	s = strings.TrimRight(s, "=")
	if base64.RawStdEncoding.EncodedLen(len(data)) != len(s) {
		return false
	}
	s = strings.NewReplacer("-", "+", "_", "/").Replace(s)
	return base64.RawStdEncoding.EncodeToString(data) == s
}

// packedTypes returns the element types for which the packed payload data has exactly the JSON elements elems.
func packedTypes(data []byte, elems []*value) types {
	t := everyType
	rest := data
	for _, e := range elems {
		// Each element narrows the types down.
		u, n := wire.ConsumeVarint(rest)
		if n <= 0 {
			t = 0
			break
		}
		rest, t = rest[n:], t&varintTypes(u, e)
	}
	if len(rest) > 0 {
		t = 0
	}
	return t | packedFixed(data, elems, 4) | packedFixed(data, elems, 8)
}

// packedFixed is packedTypes for elements of a fixed size: 4 or 8 bytes.
func packedFixed(data []byte, elems []*value, size int) types {
	if len(data) != size*len(elems) {
		return 0
	}
	t := everyType
	for i, e := range elems {
		u := wire.Fixed(data[i*size : (i+1)*size])
		if size == 4 {
			t &= fixed32Types(uint32(u), e)
		} else {
			t &= fixed64Types(u, e)
		}
	}
	return t
}
