package event

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"

	"unwire/captures"
	"unwire/decode"
	"unwire/decode/jsontree"
	"unwire/decode/transcript/naming"
	"unwire/decode/transcript/shape"
)

// A FrameType is a function that returns the type of the messages that a call sends in one direction, or nil if it is
// not known.
type FrameType = func(call decode.Call, dir captures.Direction) protoreflect.MessageDescriptor

// Named returns ex with those protobuf frames as JSON whose type is known, so that their members have names. If there
// are none, it returns nil.
func Named(ex *decode.Exchange, typeOf FrameType) *decode.Exchange {
	if typeOf == nil {
		return nil
	}
	var out *decode.Exchange
	for _, dir := range []captures.Direction{captures.Up, captures.Down} {
		md := typeOf(ex.Call, dir)
		if md == nil {
			continue
		}
		for i := range ex.Frames {
			f := &ex.Frames[i]
			if f.Dir != dir || f.Tree == nil || f.End != nil {
				continue
			}
			m := dynamicpb.NewMessage(md)
			if (proto.UnmarshalOptions{AllowPartial: true}).Unmarshal(f.Data, m) != nil {
				continue
			}
			if out == nil {
				copied := *ex
				copied.Frames = slices.Clone(ex.Frames)
				out = &copied
			}
			f = &out.Frames[i]
			f.Data, f.Tree, f.Inner = appendMessage(nil, m, 0), nil, nil
		}
	}
	return out
}

// appendMessage appends a message as a JSON object, with the members in the order of the definition. depth is its
// nesting. Unlike protojson it writes bytes that are text as text, names of enum values without the prefix that they
// share, and 64-bit integers as numbers.
func appendMessage(dst []byte, m protoreflect.Message, depth int) []byte {
	dst = append(dst, '{')
	fields := m.Descriptor().Fields()
	first := true
	for i := range fields.Len() {
		fd := fields.Get(i)
		if !m.Has(fd) || depth > maxDepth {
			continue
		}
		if !first {
			dst = append(dst, ',')
		}
		first = false
		dst = append(append(dst, jsontree.Quote(fd.TextName())...), ':')
		dst = appendField(dst, fd, m.Get(fd), depth+1)
	}
	return append(dst, '}')
}

// appendField appends the value of a field: a list, a map, or one value.
func appendField(dst []byte, fd protoreflect.FieldDescriptor, v protoreflect.Value, depth int) []byte {
	switch {
	case fd.IsList():
		dst = append(dst, '[')
		for i := range v.List().Len() {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = appendOne(dst, fd, v.List().Get(i), depth)
		}
		return append(dst, ']')
	case fd.IsMap():
		var keys []protoreflect.MapKey
		for k := range v.Map().Range {
			keys = append(keys, k)
		}
		slices.SortFunc(keys, func(a, b protoreflect.MapKey) int { return cmp.Compare(a.String(), b.String()) })
		dst = append(dst, '{')
		for i, k := range keys {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = append(append(dst, jsontree.Quote(k.String())...), ':')
			dst = appendOne(dst, fd.MapValue(), v.Map().Get(k), depth)
		}
		return append(dst, '}')
	}
	return appendOne(dst, fd, v, depth)
}

// appendOne appends one value of a field.
func appendOne(dst []byte, fd protoreflect.FieldDescriptor, v protoreflect.Value, depth int) []byte {
	switch fd.Kind() {
	case protoreflect.MessageKind, protoreflect.GroupKind:
		if fd.Message().ParentFile().Package() != "google.protobuf" {
			return appendMessage(dst, v.Message(), depth)
		}
		// Struct, Timestamp and others have a form of their own in JSON.
		if b, err := protojson.Marshal(v.Message().Interface()); err == nil {
			return append(dst, b...)
		}
		return append(dst, "null"...)
	case protoreflect.EnumKind:
		return append(dst, jsontree.Quote(symbol(fd.Enum(), v.Enum()))...)
	case protoreflect.StringKind:
		return append(dst, jsontree.Quote(strings.ToValidUTF8(v.String(), "\uFFFD"))...)
	case protoreflect.BytesKind:
		return append(dst, jsontree.Quote(textOf(v.Bytes()))...)
	}
	b, err := json.Marshal(v.Interface())
	if err != nil {
		return append(dst, "null"...)
	}
	return append(dst, b...)
}

// symbol returns the name of an enum's value in lower case and without the name of the enum, or its number.
func symbol(ed protoreflect.EnumDescriptor, n protoreflect.EnumNumber) string {
	vd := ed.Values().ByNumber(n)
	if vd == nil {
		return strconv.Itoa(int(n))
	}
	name := strings.ToLower(string(vd.Name()))
	enum := naming.Fold(string(ed.Name()))
	// The prefix of ROLE_USER is the name of the enum Role.
	for at := range name {
		if name[at] == '_' && naming.Fold(name[:at]) == enum {
			return name[at+1:]
		}
	}
	return name
}

// textOf returns bytes as text: themselves, without lengths before them, or their base64.
func textOf(b []byte) string {
	if utf8.Valid(b) {
		return string(b)
	}
	if text := shape.Prefixed(b); text != nil {
		return string(text)
	}
	return base64.StdEncoding.EncodeToString(b)
}
