package compare

import (
	"slices"
	"strconv"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"
)

// nearness returns a bonus for two types with the same name (1) and with the same parent (0.5).
func nearness(a, b protoreflect.Descriptor) float64 {
	n := 0.0
	if a.Name() == b.Name() {
		n++
	}
	if a.FullName().Parent() == b.FullName().Parent() {
		n += 0.5
	}
	return n
}

// evidence returns how strongly two types are related. It adds up their common features (fields, values),
// weighted by rarity: a feature that no other type has counts 1. Fields that all types have, such as metadata,
// count almost nothing.
func (t *typeMatch) evidence(a, b protoreflect.Descriptor) float64 {
	sum := 0.0
	switch a := a.(type) {
	case protoreflect.MessageDescriptor:
		b, ok := b.(protoreflect.MessageDescriptor)
		for i := range a.Fields().Len() {
			f := a.Fields().Get(i)
			g := b.Fields().ByNumber(f.Number())
			if !ok || g == nil {
				continue
			}
			if g.Name() == f.Name() {
				sum += t.rarity(fieldFeature(f))
			}
			if m, n := valueOf(f).Message(), valueOf(g).Message(); m != nil && n != nil && t.messages[m.FullName()] == n {
				sum += t.rarity(typeFeature(f))
			}
		}

		if ok && a.Fields().Len() > 2 && outline(a) == outline(b) {
			sum += t.rarity(outline(a))
		}
	case protoreflect.EnumDescriptor:
		b, ok := b.(protoreflect.EnumDescriptor)
		if !ok {
			return sum
		}
		numbered := byNumber(b.Values())
		for i := range a.Values().Len() {
			v := a.Values().Get(i)
			// Values often have the enum's name as a prefix, which a renamed enum changes in all of them.
			if w := numbered[v.Number()]; len(w) > 0 && stem(a, v) == stem(b, w[0]) {
				sum += t.rarity(valueFeature(a, v))
			}
		}
	}
	return sum
}

// rarity returns the weight of a feature: 1 if one type has it, 1/n² if n types have it.
func (t *typeMatch) rarity(feature string) float64 {
	n := float64(max(1, t.countByFeature[feature]))
	return 1 / (n * n)
}

// outline returns a text that identifies a message by the numbers, names and types of all its fields.
func outline(m protoreflect.MessageDescriptor) string {
	parts := make([]string, m.Fields().Len())
	for i := range parts {
		f := m.Fields().Get(i)
		parts[i] = fieldFeature(f) + f.Kind().String()
	}
	slices.Sort(parts)
	return "o" + strings.Join(parts, " ")
}

// fieldFeature returns a text that identifies a field by number and name.
func fieldFeature(f protoreflect.FieldDescriptor) string {
	return "f" + digits(f.Number()) + string(f.Name())
}

// typeFeature returns a text that identifies a field by number and message type.
func typeFeature(f protoreflect.FieldDescriptor) string {
	return "t" + digits(f.Number()) + name(valueOf(f).Message())
}

// valueFeature returns a text that identifies an enum value by number and name.
func valueFeature(e protoreflect.EnumDescriptor, v protoreflect.EnumValueDescriptor) string {
	return "v" + strconv.Itoa(int(v.Number())) + stem(e, v)
}

// countFeatures counts how many types of one version have each feature. countByFeature keeps the maximum of
// both versions.
func (t *typeMatch) countFeatures(messages []protoreflect.MessageDescriptor, enums []protoreflect.EnumDescriptor) {
	have := map[string]int{}
	for _, m := range messages {
		have[outline(m)]++
		for i := range m.Fields().Len() {
			f := m.Fields().Get(i)
			have[fieldFeature(f)]++
			if valueOf(f).Message() != nil {
				have[typeFeature(f)]++
			}
		}
	}
	for _, e := range enums {
		for i := range e.Values().Len() {
			have[valueFeature(e, e.Values().Get(i))]++
		}
	}
	for f, n := range have {
		t.countByFeature[f] = max(t.countByFeature[f], n)
	}
}

// threshold returns the minimum likeness at which two types are paired. Small types are similar by chance, so
// they need more (above 1: never); types with the same name need less.
func (t *typeMatch) threshold(a, b protoreflect.Descriptor) float64 {
	size := 0
	switch a := a.(type) {
	case protoreflect.MessageDescriptor:
		size = a.Fields().Len()
	case protoreflect.EnumDescriptor:
		size = a.Values().Len()
	}
	switch {
	case a.Name() == b.Name():
		return minTypeLikeness / 2
	case size <= 1:
		// Likeness is at most 1, so such types are paired by use only.
		return 2
	case size == 2:
		return 0.95
	case size == 3:
		return 0.75
	}
	return minTypeLikeness
}

// features returns the features by which byContent finds similar types: fields or values, and the name.
func features(d protoreflect.Descriptor) []string {
	list := []string{"name " + string(d.Name())}
	switch d := d.(type) {
	case protoreflect.MessageDescriptor:
		for i := range d.Fields().Len() {
			f := d.Fields().Get(i)
			list = append(list, "f"+digits(f.Number())+string(f.Name()), "t"+digits(f.Number())+valueOf(f).Kind().String())
		}
	case protoreflect.EnumDescriptor:
		for i := range d.Values().Len() {
			v := d.Values().Get(i)
			list = append(list, "v"+strconv.Itoa(int(v.Number()))+string(v.Name()))
		}
	}
	return list
}

// likeness returns the similarity of two types from 0 to 1: the share of fields or values that they have in
// common (Dice coefficient).
func (t *typeMatch) likeness(a, b protoreflect.Descriptor) float64 {
	switch a := a.(type) {
	case protoreflect.MessageDescriptor:
		if b, ok := b.(protoreflect.MessageDescriptor); ok {
			return t.messageLikeness(a, b)
		}
	case protoreflect.EnumDescriptor:
		if b, ok := b.(protoreflect.EnumDescriptor); ok {
			t.work += a.Values().Len() + b.Values().Len()
			return enumLikeness(a, b)
		}
	}
	return 0
}

// messageLikeness is likeness for messages. A common field with another number counts less.
func (t *typeMatch) messageLikeness(a, b protoreflect.MessageDescriptor) float64 {
	t.work += a.Fields().Len()
	shared := 0.0
	for i := range a.Fields().Len() {
		f := a.Fields().Get(i)
		if g := b.Fields().ByNumber(f.Number()); g != nil {
			shared += t.fieldLikeness(f, g)
		} else if g := b.Fields().ByName(f.Name()); g != nil {
			shared += 0.6 * t.fieldLikeness(f, g)
		}
	}
	if a.Fields().Len()+b.Fields().Len() == 0 {
		return 0.5
	}
	return 2 * shared / float64(a.Fields().Len()+b.Fields().Len())
}

// fieldLikeness returns the similarity of two fields from 0 to 1, apart from their numbers.
func (t *typeMatch) fieldLikeness(f, g protoreflect.FieldDescriptor) float64 {
	s := 0.0
	if f.Name() == g.Name() {
		s = 0.6
	}
	if f.IsMap() != g.IsMap() {
		return s
	}

	f, g = valueOf(f), valueOf(g)
	switch {
	case f.Message() != nil && g.Message() != nil:
		now := t.messages[f.Message().FullName()]
		switch {
		case now == g.Message() || f.Message().FullName() == g.Message().FullName():
			return s + 0.4
		case now == nil && !t.taken[g.Message().FullName()] || f.Message().Name() == g.Message().Name():
			return s + 0.3
		}
		return s + 0.1
	case f.Enum() != nil && g.Enum() != nil:
		return s + 0.35
	case f.Kind() == g.Kind():
		s += 0.35
	case classOf(f.Kind()) == classOf(g.Kind()):
		s += 0.2
	}

	if f.IsList() == g.IsList() && s >= 0.3 {
		s += 0.05
	}
	return s
}

// enumLikeness is likeness for enums. Values are compared by number.
func enumLikeness(a, b protoreflect.EnumDescriptor) float64 {
	shared := 0.0
	numbered, named := byNumber(b.Values()), byName(b.Values())
	for i := range a.Values().Len() {
		v := a.Values().Get(i)
		if w := numbered[v.Number()]; len(w) == 0 {
			if named[v.Name()] != nil {
				shared += 0.6
			}
		} else if stem(a, v) == stem(b, w[0]) {
			shared++
		} else {
			shared += 0.2
		}
	}
	return 2 * shared / float64(a.Values().Len()+b.Values().Len())
}

// stem returns the name of an enum value without the name of the enum as a prefix, which many style guides
// require.
func stem(e protoreflect.EnumDescriptor, v protoreflect.EnumValueDescriptor) string {
	prefix := 0
	upper := strings.ToUpper(strings.Join(subwords(string(e.Name())), "_")) + "_"
	if strings.HasPrefix(string(v.Name()), upper) {
		prefix = len(upper)
	}
	return string(v.Name())[prefix:]
}
