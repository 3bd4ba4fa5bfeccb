package edit

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"

	"unwire/decode/suggest"
	"unwire/decode/text"
	"unwire/decode/wire"
)

// encodeValue encodes an edit's text as the bytes of a protobuf value of kind k, without tag and
// length. fd is the field's definition, or nil.
//
// Shape: numbers are in Go's notation (0x and _ are allowed). Bytes and messages may have the prefix
// hex: or base64:, and are literal text otherwise. A message may also be in the text format that decode
// prints, or, if it is defined, in JSON. The numbers of a packed list are separated by commas.
func encodeValue(k valueKind, value string, fd protoreflect.FieldDescriptor) ([]byte, error) {
	if element, packed := strings.CutPrefix(string(k), packedPrefix); packed {
		var out []byte
		for i, part := range splitList(value) {
			v, err := encodeValue(valueKind(element), strings.TrimSpace(part), fd)
			if err != nil {
				return nil, fmt.Errorf("element %d of the list is invalid: %w", i, err)
			}
			out = append(out, v...)
		}
		return out, nil
	}

	// All other kinds are single values.
	switch k {
	case kindString:
		if !utf8.ValidString(value) {
			return nil, errors.New("a string must be valid UTF-8; to write other bytes, use hexadecimal with the prefix hex:, such as hex:00ff")
		}
		return []byte(value), nil
	case kindBytes, kindJSON:
		return parseBytes(value)
	case kindMessage:
		return encodeMessage(value, fd)
	case kindEnum:
		return encodeEnum(value, fd)
	case kindBool:
		b, err := strconv.ParseBool(value)
		if err != nil {
			return nil, fmt.Errorf("the value %q is not a bool: use true or false", excerpt(value))
		}
		return []byte{byte(boolNumber(b))}, nil
	}
	return encodeNumber(k, value)
}

// splitList splits the elements of a packed list at commas.
func splitList(value string) []string {
	if strings.TrimSpace(value) == "" {
		return nil
	}
	return strings.Split(value, ",")
}

// boolNumber returns 1 for true and 0 for false.
func boolNumber(b bool) uint64 {
	if b {
		return 1
	}
	return 0
}

// parseBytes returns the bytes that a text stands for: hexadecimal after hex:, base64 after base64:,
// otherwise the text itself.
func parseBytes(value string) ([]byte, error) {
	if digits, ok := strings.CutPrefix(value, "hex:"); ok {
		b, err := hex.DecodeString(strings.ReplaceAll(digits, " ", ""))
		if err != nil {
			return nil, fmt.Errorf("the value after hex: is malformed: %w", err)
		}
		return b, nil
	}
	if digits, ok := strings.CutPrefix(value, "base64:"); ok {
		plain := strings.NewReplacer("-", "+", "_", "/", "=", "").Replace(digits)
		b, err := base64.RawStdEncoding.DecodeString(plain)
		if err != nil {
			return nil, fmt.Errorf("the value after base64: is malformed: %w", err)
		}
		return b, nil
	}
	return []byte(value), nil
}

// encodeMessage encodes the text of a message field: JSON if the field is defined, or one of the forms
// of messageBytes.
func encodeMessage(value string, fd protoreflect.FieldDescriptor) ([]byte, error) {
	if fd == nil {
		return encodeWhole(value, nil)
	}
	return encodeWhole(value, fd.Message())
}

// encodeWhole is like encodeMessage for a message of type md; nil if unknown.
func encodeWhole(value string, md protoreflect.MessageDescriptor) ([]byte, error) {
	if strings.HasPrefix(strings.TrimSpace(value), "{") {
		if md == nil {
			return nil, errors.New("a message in JSON needs definitions; without definitions, give the bytes, as hex:00ff or in base64")
		}
		m := dynamicpb.NewMessage(md)
		if err := protojson.Unmarshal([]byte(value), m); err != nil {
			return nil, suggest.EnumInJSON(err, m.Descriptor())
		}
		return proto.MarshalOptions{Deterministic: true}.Marshal(m)
	}
	b, err := messageBytes(value)
	if err != nil {
		return nil, err
	}
	if err := wire.Parse(b, wire.Options{}).Err(); err != nil {
		return nil, fmt.Errorf("the bytes are not a protobuf message (--set-raw sends them anyway): %w", err)
	}
	return b, nil
}

// messageBytes parses a message given in hex, in base64 or in the text format that decode prints.
func messageBytes(s string) ([]byte, error) {
	if strings.HasPrefix(s, "hex:") || strings.HasPrefix(s, "base64:") {
		return parseBytes(s)
	}
	b, err := text.Parse([]byte(s))
	if err != nil {
		return nil, fmt.Errorf("a message must be given as hex:, as base64:, as the text that 'unwire decode' writes or, with definitions, as JSON: %w", err)
	}
	return b, nil
}

// encodeEnum encodes an enum value, given as a number or, if fd is known, by its name.
func encodeEnum(value string, fd protoreflect.FieldDescriptor) ([]byte, error) {
	if n, err := strconv.ParseInt(value, 0, 32); err == nil {
		return wire.AppendVarint(nil, uint64(n)), nil
	}
	if fd == nil || fd.Enum() == nil {
		return nil, fmt.Errorf("the name %q of an enum value needs definitions; give the number instead", excerpt(value))
	}
	v := fd.Enum().Values().ByName(protoreflect.Name(value))
	if v == nil {
		return nil, fmt.Errorf("the enum %s has no value %q%s", fd.Enum().FullName(), excerpt(value), suggest.EnumValue(fd.Enum(), value))
	}
	return wire.AppendVarint(nil, uint64(v.Number())), nil
}

// encodeNumber encodes a number or bool as a value of kind k.
func encodeNumber(k valueKind, value string) ([]byte, error) {
	bits := 64

	// The size comes from the name of the kind; varint has 64 bits.
	if strings.HasSuffix(string(k), "32") || k == "float" {
		bits = 32
	}
	var v uint64
	switch k {
	case "float", "double":
		f, err := strconv.ParseFloat(value, bits)
		if err != nil {
			return nil, numberError(k, err)
		}
		if v = math.Float64bits(f); bits == 32 {
			v = uint64(math.Float32bits(float32(f)))
		}
	case "varint":
		u, err := parseEither(value)
		if err != nil {
			return nil, numberError(k, err)
		}
		v = u
	case "uint32", "uint64", "fixed32", "fixed64":
		u, err := strconv.ParseUint(value, 0, bits)
		if err != nil {
			return nil, numberError(k, err)
		}
		v = u
	default:
		i, err := strconv.ParseInt(value, 0, bits)
		if err != nil {
			return nil, numberError(k, err)
		}
		// ZigZag encoding: small negative numbers stay short.
		if v = uint64(i); strings.HasPrefix(string(k), "sint") {
			v = uint64(i)<<1 ^ uint64(i>>63)
		}
	}

	// The wire type decides between fixed bytes and a varint.
	switch k.wireType() {
	case wire.I32:
		return binary.LittleEndian.AppendUint32(nil, uint32(v)), nil
	case wire.I64:
		return binary.LittleEndian.AppendUint64(nil, v), nil
	}
	return wire.AppendVarint(nil, v), nil
}

// parseEither parses a 64-bit integer, signed or unsigned, and returns its bits.
func parseEither(value string) (uint64, error) {
	if u, err := strconv.ParseUint(value, 0, 64); err == nil {
		return u, nil
	}
	if b, err := strconv.ParseBool(value); err == nil {
		return boolNumber(b), nil
	}
	i, err := strconv.ParseInt(value, 0, 64)
	return uint64(i), err
}

// numberError returns the error for a number that is not valid for kind k.
func numberError(k valueKind, err error) error {
	if n, ok := errors.AsType[*strconv.NumError](err); ok {
		if errors.Is(n.Err, strconv.ErrRange) {
			return fmt.Errorf("the value %s is out of the range of %s", n.Num, k)
		}
		return fmt.Errorf("the value %q is not a valid %s", excerpt(n.Num), k)
	}
	return err
}

// guessKind returns the kind to use for a field without a definition, by its wire type and the new
// value's text.
func guessKind(t wire.Type, value string) valueKind {
	switch t {
	case wire.Varint:
		return "varint"
	case wire.I64, wire.I32:
		floating := strings.ContainsAny(value, ".eEnN") && !strings.HasPrefix(value, "0x")
		signed := strings.HasPrefix(value, "-")
		names := map[wire.Type][3]valueKind{wire.I64: {"fixed64", "sfixed64", "double"}, wire.I32: {"fixed32", "sfixed32", "float"}}[t]
		switch {
		case floating:
			return names[2]
		case signed:
			return names[1]
		}
		return names[0]
	}
	return kindBytes
}
