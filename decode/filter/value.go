package filter

import (
	"encoding/hex"
	"math"
	"slices"
	"strconv"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/reflect/protoreflect"

	"unwire/decode/jsontree"
	"unwire/decode/search"
	"unwire/decode/wire"
)

// matchesPath reports whether frame f has a field at the term's path with a matching value. Without a value in the
// term, any value matches.
func (t *term) matchesPath(f *Frame) (found bool) {
	search.Values(f.Frame, t.path, f.Type, func(v search.Value) bool {
		switch {
		case t.patterns == nil && t.numbers == nil:
			found = true
		case t.numbers != nil:
			found = slices.ContainsFunc(textsOf(v), func(text string) bool {
				n, ok := parseNumber(text)
				return ok && t.holds(n)
			})
		default:
			found = slices.ContainsFunc(textsOf(v), t.matchesText)
		}
		return !found
	})
	return found
}

// matchesText reports whether one of the term's patterns matches text, which may be empty.
func (t *term) matchesText(text string) bool {
	return slices.ContainsFunc(t.patterns, func(p pattern) bool { return p.matches(text) })
}

// textsOf returns the texts with which a pattern is compared: one for each interpretation of the value that its
// bytes and its declaration allow, such as text and hex.
func textsOf(v search.Value) []string {
	if v.Tree == nil {
		return textsOfJSON(v.JSON)
	}
	if typ := v.Tree.Node(v.Node).Type; typ != wire.Len && typ != wire.StartGroup {
		return scalarTexts(v.Declared, typ, v.Tree.Uint(v.Node))
	}

	// Length-delimited values: packed lists, texts and bytes.
	data := v.Tree.Payload(v.Node)
	if fd := v.Declared; fd != nil && fd.IsList() {
		if typ, ok := elementType(fd.Kind()); ok {
			return packedTexts(fd, typ, data)
		}
	}
	if utf8.Valid(data) && (v.Declared == nil || v.Declared.Kind() != protoreflect.MessageKind) {
		return []string{string(data), hex.EncodeToString(data)}
	}
	return []string{hex.EncodeToString(data)}
}

// textsOfJSON returns the text of a JSON scalar. Objects and arrays have none.
func textsOfJSON(v jsontree.Value) []string {
	switch v.Kind() {
	case jsontree.Object, jsontree.Array:
		return nil
	}
	return []string{v.Text()}
}

// elementType returns the wire type of elements of a packed list. packed is false if the type cannot be packed.
func elementType(k protoreflect.Kind) (typ wire.Type, packed bool) {
	switch k {
	case protoreflect.StringKind, protoreflect.BytesKind, protoreflect.MessageKind, protoreflect.GroupKind:
		return 0, false
	case protoreflect.Fixed32Kind, protoreflect.Sfixed32Kind, protoreflect.FloatKind:
		return wire.I32, true
	case protoreflect.Fixed64Kind, protoreflect.Sfixed64Kind, protoreflect.DoubleKind:
		return wire.I64, true
	}
	return wire.Varint, true
}

// packedTexts returns the texts of the elements of the packed list data. fd declares their type, which has wire
// type typ.
func packedTexts(fd protoreflect.FieldDescriptor, typ wire.Type, data []byte) (texts []string) {
	for len(data) > 0 {
		var u uint64
		n := 0
		switch typ {
		case wire.I32:
			var v uint32
			v, n = protowire.ConsumeFixed32(data)
			u = uint64(v)
		case wire.I64:
			u, n = protowire.ConsumeFixed64(data)
		default:
			u, n = protowire.ConsumeVarint(data)
		}
		if n <= 0 {
			return texts
		}
		texts = append(texts, scalarTexts(fd, typ, u)...)
		data = data[n:]
	}
	return texts
}

// scalarTexts returns the texts of a number with wire type typ and bits u: the one by its declaration fd or, if fd
// is nil, one for each possible protobuf type.
func scalarTexts(fd protoreflect.FieldDescriptor, typ wire.Type, u uint64) []string {
	if fd != nil {
		if texts := declaredTexts(fd, typ, u); texts != nil {
			return texts
		}
	}

	// Without a declaration, every type of this wire type is possible.
	texts := []string{strconv.FormatUint(u, 10)}
	switch {
	case typ == wire.I32:
		if int32(u) < 0 {
			texts = append(texts, strconv.FormatInt(int64(int32(u)), 10))
		}
		return append(texts, floatText(float64(math.Float32frombits(uint32(u))), 32))
	case typ == wire.I64:
		if int64(u) < 0 {
			texts = append(texts, strconv.FormatInt(int64(u), 10))
		}
		return append(texts, floatText(math.Float64frombits(u), 64))
	case int64(u) < 0:
		texts = append(texts, strconv.FormatInt(int64(u), 10))
	case u < 2:
		texts = append(texts, strconv.FormatBool(u == 1))
	}
	return texts
}

// declaredTexts returns the texts of the number u by its declaration fd, or nil if the wire type typ contradicts
// the declaration.
func declaredTexts(fd protoreflect.FieldDescriptor, typ wire.Type, u uint64) []string {
	if want, ok := elementType(fd.Kind()); !ok || want != typ {
		return nil
	}

	// The declaration leaves one text, or two for an enum.
	signed := func(n int64) []string { return []string{strconv.FormatInt(n, 10)} }
	switch fd.Kind() {
	case protoreflect.BoolKind:
		return []string{strconv.FormatBool(u != 0)}
	case protoreflect.EnumKind:
		texts := signed(int64(int32(u)))
		if v := fd.Enum().Values().ByNumber(protoreflect.EnumNumber(int32(u))); v != nil {
			texts = append(texts, string(v.Name()))
		}
		return texts
	case protoreflect.Int32Kind, protoreflect.Sfixed32Kind:
		return signed(int64(int32(u)))
	case protoreflect.Int64Kind, protoreflect.Sfixed64Kind:
		return signed(int64(u))
	case protoreflect.Sint32Kind, protoreflect.Sint64Kind:
		return signed(protowire.DecodeZigZag(u))
	case protoreflect.FloatKind:
		return []string{floatText(float64(math.Float32frombits(uint32(u))), 32)}
	case protoreflect.DoubleKind:
		return []string{floatText(math.Float64frombits(u), 64)}
	case protoreflect.Uint32Kind:
		u = uint64(uint32(u))
	}
	return []string{strconv.FormatUint(u, 10)}
}

// floatText formats a floating-point number without exponent. bits is its width.
func floatText(f float64, bits int) string { return strconv.FormatFloat(f, 'f', -1, bits) }
