package compare

import (
	"fmt"

	"google.golang.org/protobuf/reflect/protoreflect"

	"unwire/schema/infer"
)

// maxCompatDepth is the nesting depth to which two message types are compared if one replaces the other.
const maxCompatDepth = 6

// compat decides what a change of a field's type or label breaks.
//
// Source: https://protobuf.dev/programming-guides/proto3/#updating
type compat struct {
	// types maps the types of the old version to those of the new one.
	types *typeMatch
	// done caches the results for pairs of messages. It also ends the recursion for recursive types.
	done map[[2]protoreflect.FullName]Break
}

// A wireClass is a class of field types whose values have the same encoding.
type wireClass uint8

const (
	// varints are int32, uint32, int64, uint64, bool and enums, which are encoded as plain varints.
	varints wireClass = iota
	// zigzags are sint32 and sint64, which are encoded as zigzag varints.
	zigzags
	// fixed32s are fixed32 and sfixed32.
	fixed32s
	// fixed64s are fixed64 and sfixed64.
	fixed64s
	// floats is the class of the type float.
	floats
	// doubles is the class of the type double.
	doubles
	// texts is the class of the type string.
	texts
	// blobs is the class of the type bytes.
	blobs
	// messages are length-delimited messages.
	messages
	// groups are messages with an end tag.
	groups
)

// classOf returns the class of encoding of a field type.
func classOf(k protoreflect.Kind) wireClass {
	switch k {
	case protoreflect.Sint32Kind, protoreflect.Sint64Kind:
		return zigzags
	case protoreflect.Fixed32Kind, protoreflect.Sfixed32Kind:
		return fixed32s
	case protoreflect.Fixed64Kind, protoreflect.Sfixed64Kind:
		return fixed64s
	case protoreflect.FloatKind:
		return floats
	case protoreflect.DoubleKind:
		return doubles
	case protoreflect.StringKind:
		return texts
	case protoreflect.BytesKind:
		return blobs
	case protoreflect.MessageKind:
		return messages
	case protoreflect.GroupKind:
		return groups
	}
	return varints
}

// jsonForm returns the JSON type of values, such as "number", for an explanation.
func jsonForm(k protoreflect.Kind) string {
	switch k {
	case protoreflect.Int64Kind, protoreflect.Uint64Kind, protoreflect.Sint64Kind, protoreflect.Fixed64Kind, protoreflect.Sfixed64Kind:
		return "number in a string"
	case protoreflect.FloatKind, protoreflect.DoubleKind:
		return "float"
	case protoreflect.BoolKind, protoreflect.StringKind, protoreflect.BytesKind, protoreflect.EnumKind, protoreflect.MessageKind:
		return k.String()
	case protoreflect.GroupKind:
		return protoreflect.MessageKind.String()
	}
	return "number"
}

// field compares the types (not the labels) of two versions of a field. same is true if they are equal, or
// differ only in the name of a renamed type. Otherwise worst is the incompatibility and note explains it.
func (c *compat) field(a, b protoreflect.FieldDescriptor) (worst Break, note string, same bool) {
	if a.IsMap() != b.IsMap() {
		// An entry of a map is encoded as a message with a key and a value, so a list of such messages is
		// compatible.
		m, other := a, b
		if b.IsMap() {
			m, other = b, a
		}
		if other.IsList() && other.Message() != nil && c.isEntry(m, other) {
			// The change of the label covers it.
			return BreaksNothing, "", true
		}
		return BreaksWire, "an entry of a map is a message of a key and a value", false
	}
	if a.IsMap() {
		kb, kn, ks := c.field(a.MapKey(), b.MapKey())
		vb, vn, vs := c.field(a.MapValue(), b.MapValue())
		if kn == "" {
			kn = vn
		}
		return worse(kb, vb), kn, ks && vs
	}

	switch {
	case a.Message() != nil && b.Message() != nil:
		if c.types.isSameMessage(a.Message(), b.Message()) {
			if (a.Kind() == protoreflect.GroupKind) != (b.Kind() == protoreflect.GroupKind) {
				return BreaksWire, "groups have end tags instead of lengths", false
			}
			return BreaksNothing, "", true
		}
		if a.Kind() != b.Kind() {
			return BreaksWire, "groups have end tags instead of lengths", false
		}
		worst, note = c.message(a.Message(), b.Message())
		return worst, note, false
	case a.Enum() != nil && b.Enum() != nil:
		if c.types.isSameEnum(a.Enum(), b.Enum()) {
			return BreaksNothing, "", true
		}
		worst, note = enumBreak(a.Enum(), b.Enum())
		return worst, note, false
	case a.Kind() == b.Kind():
		return BreaksNothing, "", true
	}
	worst, note = c.kinds(a.Kind(), b.Kind())
	return worst, note, false
}

// kinds returns what a change of a field's type from a to b breaks, with an explanation.
func (c *compat) kinds(a, b protoreflect.Kind) (Break, string) {
	ca, cb := classOf(a), classOf(b)
	lens := func(x, y wireClass) bool { return ca == x && cb == y || ca == y && cb == x }

	switch {
	case lens(texts, blobs):
		return BreaksJSON, "same wire format if the bytes are UTF-8; in JSON, bytes are in base64, but a string is not"
	case lens(blobs, messages):
		return BreaksJSON, "same wire format if the bytes are an encoded message"
	case ca != cb:
		if wireNumber(ca) == wireNumber(cb) {
			return BreaksWire, "same wire type, but decoded to other values"
		}
		return BreaksWire, "the wire type differs"
	}

	// The encoding is the same. What differs is the range of values, the JSON form and the type in source
	// code.
	worst, note := BreaksSource, "same wire format"
	if widthOf(a) != widthOf(b) {
		narrow := a
		if widthOf(b) < widthOf(a) {
			narrow = b
		}
		note = fmt.Sprintf("same wire format; a program with the type %s truncates larger values", narrow)
	}
	if jsonForm(a) != jsonForm(b) {
		worst = BreaksJSON
		note += fmt.Sprintf("; in JSON, the value was a %s, and is now a %s", jsonForm(a), jsonForm(b))
	}
	return worst, note
}

// widthOf returns the width of an integer type in bits.
func widthOf(k protoreflect.Kind) int {
	switch k {
	case protoreflect.BoolKind:
		return 1
	case protoreflect.Int64Kind, protoreflect.Uint64Kind, protoreflect.Sint64Kind, protoreflect.Fixed64Kind, protoreflect.Sfixed64Kind:
		return 64
	}
	return 32
}

// wireNumber returns the wire type, as a number, of a class of encoding.
func wireNumber(c wireClass) int {
	switch c {
	case varints, zigzags:
		return 0
	case fixed64s, doubles:
		return 1
	case fixed32s, floats:
		return 5
	case groups:
		return 3
	}
	return 2
}

// message returns what breaks if a field's type changes from message a to b, with an explanation.
func (c *compat) message(a, b protoreflect.MessageDescriptor) (Break, string) {
	worst := c.messages(a, b, 0)
	switch worst {
	case BreaksWire:
		return worst, "their fields contradict each other"
	case BreaksJSON:
		return worst, "compatible on the wire"
	}
	return BreaksSource, "compatible on the wire and in JSON"
}

// messages returns what breaks if a field's type changes from message a to b, by comparing their fields by
// number.
func (c *compat) messages(a, b protoreflect.MessageDescriptor, depth int) Break {
	if a.FullName() == b.FullName() || depth > maxCompatDepth {
		return BreaksNothing
	}
	key := [2]protoreflect.FullName{a.FullName(), b.FullName()}
	if known, ok := c.done[key]; ok {
		return known
	}

	// A recursive type is no worse than its other fields.
	c.done[key] = BreaksSource

	worst, shared := BreaksSource, 0
	for i := range a.Fields().Len() {
		f := a.Fields().Get(i)
		now := b.Fields().ByNumber(f.Number())
		if now == nil {
			continue
		}
		shared++
		if f.JSONName() != now.JSONName() {
			worst = worse(worst, BreaksJSON)
		}
		if labelWord(f) != labelWord(now) {
			l, _ := c.label(f, now)
			worst = worse(worst, l)
		}
		if !f.IsMap() && !now.IsMap() && f.Message() != nil && now.Message() != nil && f.Kind() == now.Kind() {
			worst = worse(worst, c.messages(f.Message(), now.Message(), depth+1))
			continue
		}
		w, _, _ := c.field(f, now)
		worst = worse(worst, w)
	}
	if shared == 0 && a.Fields().Len() > 0 && b.Fields().Len() > 0 {
		// Nothing is misread, but the reader gets no data either.
		worst = worse(worst, BreaksJSON)
	}
	c.done[key] = worst
	return worst
}

// enumBreak returns what breaks if a field's type changes from enum a to b, with an explanation.
func enumBreak(a, b protoreflect.EnumDescriptor) (Break, string) {
	numbered := byNumber(b.Values())
	for i := range a.Values().Len() {
		v := a.Values().Get(i)
		if now := numbered[v.Number()]; len(now) == 0 || now[0].Name() != v.Name() {
			return BreaksJSON, "same wire format; different names in JSON"
		}
	}
	return BreaksSource, "same values"
}

// isEntry reports whether the elements of the repeated field list have the same encoding as the entries of the
// map m.
func (c *compat) isEntry(m, list protoreflect.FieldDescriptor) bool {
	fields := list.Message().Fields()
	if fields.Len() != 2 || fields.ByNumber(1) == nil || fields.ByNumber(2) == nil {
		return false
	}

	// Either of the two fields may be of the old version.
	same := func(a, b protoreflect.FieldDescriptor) bool {
		if a.Message() != nil && b.Message() != nil {
			return c.types.isSameMessage(a.Message(), b.Message()) || c.types.isSameMessage(b.Message(), a.Message())
		}
		return a.Kind() == b.Kind() && !b.IsList()
	}
	return same(m.MapKey(), fields.ByNumber(1)) && same(m.MapValue(), fields.ByNumber(2))
}

// label returns what a change of the label, such as from singular to repeated, breaks, with an explanation.
func (c *compat) label(a, b protoreflect.FieldDescriptor) (Break, string) {
	was, is := labelWord(a), labelWord(b)
	switch {
	case was == "required" || is == "required":
		return BreaksWire, "required: parsers reject messages without it"
	case was == infer.Map || is == infer.Map:
		if c.mapOfEntries(a, b) {
			return BreaksJSON, "same wire format: a map is a list of entries"
		}
		return BreaksWire, "an entry of a map is a message of a key and a value"
	case infer.IsMany(was) != infer.IsMany(is):
		list := a
		if b.IsList() {
			list = b
		}

		// A packed list is length-delimited and a parser for a single number skips it. An unpacked list looks
		// like several single values, the last of which wins.
		if isPackable(list) {
			if list.IsPacked() {
				return BreaksWire, "packed: a parser that expects a single number ignores the list"
			}
			return BreaksJSON, "unpacked: a parser that expects a single value keeps the last element"
		}
		return BreaksJSON, "same wire format; a parser that expects a single value keeps the last element"
	case a.Message() != nil && b.Message() != nil:
		return BreaksNothing, "no effect: message fields always have presence"
	}
	return BreaksSource, "parsers can, or can no longer, distinguish an absent field from its default value"
}

// mapOfEntries reports whether one field is a map and the other a repeated message field with the same
// encoding.
func (c *compat) mapOfEntries(a, b protoreflect.FieldDescriptor) bool {
	if a.IsMap() {
		a, b = b, a
	}
	return a.IsList() && a.Message() != nil && c.isEntry(b, a)
}
