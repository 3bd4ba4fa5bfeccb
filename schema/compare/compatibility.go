package compare

import (
	"fmt"

	"google.golang.org/protobuf/reflect/protoreflect"

	"unwire/schema/infer"
)

// maxCompatDepth is how deep messages that replace one another are compared.
const maxCompatDepth = 6

// compat says what a change of type or label breaks.
//
// Source: https://protobuf.dev/programming-guides/proto3/#updating
type compat struct {
	types *typeMatch
	done  map[[2]protoreflect.FullName]Break
}

// A wireClass is a set of types whose values are written and read alike.
type wireClass uint8

const (
	varints wireClass = iota // plain: int32, uint32, int64, uint64, bool, enum
	zigzags
	fixed32s
	fixed64s
	floats
	doubles
	texts
	blobs
	messages
	groups
)

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

// jsonForm is how JSON writes values of a kind.
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

// field compares the types of two versions of a field, labels aside. same says
// that there is no difference but that types were renamed.
func (c *compat) field(a, b protoreflect.FieldDescriptor) (worst Break, note string, same bool) {
	if a.IsMap() != b.IsMap() {
		m, other := a, b
		if b.IsMap() {
			m, other = b, a
		}
		if other.IsList() && other.Message() != nil && c.isEntry(m, other) {
			return BreaksNothing, "", true // the label tells it
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

// kinds says what another type of scalar breaks.
func (c *compat) kinds(a, b protoreflect.Kind) (Break, string) {
	ca, cb := classOf(a), classOf(b)
	lens := func(x, y wireClass) bool { return ca == x && cb == y || ca == y && cb == x }
	switch {
	case lens(texts, blobs):
		return BreaksJSON, "the same on the wire where the bytes are UTF-8; base64 in JSON"
	case lens(blobs, messages):
		return BreaksJSON, "the same on the wire where the bytes are an encoded message"
	case ca != cb:
		if wireNumber(ca) == wireNumber(cb) {
			return BreaksWire, "the same wire type, other values"
		}
		return BreaksWire, "another wire type"
	}
	worst, note := BreaksSource, "the same on the wire"
	if widthOf(a) != widthOf(b) {
		note = "the same on the wire, cut to what the narrower type holds"
	}
	if jsonForm(a) != jsonForm(b) {
		worst = BreaksJSON
		note += fmt.Sprintf("; in JSON a %s was a %s", jsonForm(b), jsonForm(a))
	}
	return worst, note
}

func widthOf(k protoreflect.Kind) int {
	switch k {
	case protoreflect.BoolKind:
		return 1
	case protoreflect.Int64Kind, protoreflect.Uint64Kind, protoreflect.Sint64Kind, protoreflect.Fixed64Kind, protoreflect.Sfixed64Kind:
		return 64
	}
	return 32
}

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

// message says what it breaks that one message takes another's place.
func (c *compat) message(a, b protoreflect.MessageDescriptor) (Break, string) {
	worst := c.messages(a, b, 0)
	switch worst {
	case BreaksWire:
		return worst, "their fields contradict each other"
	case BreaksJSON:
		return worst, "alike on the wire"
	}
	return BreaksSource, "alike on the wire and in JSON"
}

func (c *compat) messages(a, b protoreflect.MessageDescriptor, depth int) Break {
	if a.FullName() == b.FullName() || depth > maxCompatDepth {
		return BreaksNothing
	}
	key := [2]protoreflect.FullName{a.FullName(), b.FullName()}
	if known, ok := c.done[key]; ok {
		return known
	}
	c.done[key] = BreaksSource // of a type that holds itself
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
		// nothing is misread, and nothing is understood
		worst = worse(worst, BreaksJSON)
	}
	c.done[key] = worst
	return worst
}

// enumBreak says what it breaks that one enum takes another's place.
func enumBreak(a, b protoreflect.EnumDescriptor) (Break, string) {
	for i := range a.Values().Len() {
		v := a.Values().Get(i)
		if now := b.Values().ByNumber(v.Number()); now == nil || now.Name() != v.Name() {
			return BreaksJSON, "the same on the wire; other names in JSON"
		}
	}
	return BreaksSource, "the same values"
}

// isEntry reports whether the elements of list are what the entries of m are.
func (c *compat) isEntry(m, list protoreflect.FieldDescriptor) bool {
	fields := list.Message().Fields()
	if fields.Len() != 2 || fields.ByNumber(1) == nil || fields.ByNumber(2) == nil {
		return false
	}
	same := func(a, b protoreflect.FieldDescriptor) bool {
		if a.Message() != nil && b.Message() != nil {
			return c.types.isSameMessage(a.Message(), b.Message()) || c.types.isSameMessage(b.Message(), a.Message())
		}
		return a.Kind() == b.Kind() && !b.IsList()
	}
	return same(m.MapKey(), fields.ByNumber(1)) && same(m.MapValue(), fields.ByNumber(2))
}

// label says what another label breaks.
func (c *compat) label(a, b protoreflect.FieldDescriptor) (Break, string) {
	was, is := labelWord(a), labelWord(b)
	switch {
	case was == "required" || is == "required":
		return BreaksWire, "required: what lacks it is refused"
	case was == infer.Map || is == infer.Map:
		if c.mapOfEntries(a, b) {
			return BreaksJSON, "the same on the wire: a map is a list of entries"
		}
		return BreaksWire, "an entry of a map is a message of a key and a value"
	case infer.IsMany(was) != infer.IsMany(is):
		list := a
		if b.IsList() {
			list = b
		}
		if isPackable(list) {
			if list.IsPacked() {
				return BreaksWire, "the list is packed: who expects one number does not read it"
			}
			return BreaksJSON, "unpacked: the last element counts for who expects one"
		}
		return BreaksJSON, "the same on the wire: the last element counts for who expects one"
	case a.Message() != nil && b.Message() != nil:
		return BreaksNothing, "messages have presence anyway"
	}
	return BreaksSource, "presence is told from the default, or no more"
}

func (c *compat) mapOfEntries(a, b protoreflect.FieldDescriptor) bool {
	if a.IsMap() {
		a, b = b, a
	}
	return a.IsList() && a.Message() != nil && c.isEntry(b, a)
}
