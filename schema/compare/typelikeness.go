package compare

import (
	"slices"
	"strconv"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"
)

// nearness prefers the type of the same name, and the one in the same place.
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

// evidence is how much of what two types share few other types of a version
// have: the fields metadata, spec and status say nothing where all have them.
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
		for i := range a.Values().Len() {
			v := a.Values().Get(i)
			if !ok {
				continue
			}
			if w := b.Values().ByNumber(v.Number()); w != nil && stem(a, v) == stem(b, w) {
				sum += t.rarity(valueFeature(a, v))
			}
		}
	}
	return sum
}

func (t *typeMatch) rarity(feature string) float64 {
	n := float64(max(1, t.having[feature]))
	return 1 / (n * n)
}

// outline is the names, numbers and kinds of all of a message's fields.
func outline(m protoreflect.MessageDescriptor) string {
	parts := make([]string, m.Fields().Len())
	for i := range parts {
		f := m.Fields().Get(i)
		parts[i] = fieldFeature(f) + f.Kind().String()
	}
	slices.Sort(parts)
	return "o" + strings.Join(parts, " ")
}

func fieldFeature(f protoreflect.FieldDescriptor) string {
	return "f" + digits(f.Number()) + string(f.Name())
}

func typeFeature(f protoreflect.FieldDescriptor) string {
	return "t" + digits(f.Number()) + name(valueOf(f).Message())
}

func valueFeature(e protoreflect.EnumDescriptor, v protoreflect.EnumValueDescriptor) string {
	return "v" + strconv.Itoa(int(v.Number())) + stem(e, v)
}

// count counts the features of one version's types.
func (t *typeMatch) count(messages []protoreflect.MessageDescriptor, enums []protoreflect.EnumDescriptor) {
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
		t.having[f] = max(t.having[f], n)
	}
}

// threshold is how alike types have to be to be one. Small types are alike by
// chance, and a name that stayed is evidence.
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
		return mateFloor / 2
	case size <= 1:
		return 2 // by use or not at all
	case size == 2:
		return 0.95
	case size == 3:
		return 0.75
	}
	return mateFloor
}

// features are what a type is found by: its fields or values, and its name.
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

// likeness is from 0 to 1: the share of what two types hold that they share.
func (t *typeMatch) likeness(a, b protoreflect.Descriptor) float64 {
	switch a := a.(type) {
	case protoreflect.MessageDescriptor:
		if b, ok := b.(protoreflect.MessageDescriptor); ok {
			return t.messageLikeness(a, b)
		}
	case protoreflect.EnumDescriptor:
		if b, ok := b.(protoreflect.EnumDescriptor); ok {
			return enumLikeness(a, b)
		}
	}
	return 0
}

func (t *typeMatch) messageLikeness(a, b protoreflect.MessageDescriptor) float64 {
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

// fieldLikeness is how likely two fields are one, numbers aside.
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

func enumLikeness(a, b protoreflect.EnumDescriptor) float64 {
	shared := 0.0
	for i := range a.Values().Len() {
		v := a.Values().Get(i)
		if w := b.Values().ByNumber(v.Number()); w == nil {
			if b.Values().ByName(v.Name()) != nil {
				shared += 0.6
			}
		} else if stem(a, v) == stem(b, w) {
			shared++
		} else {
			shared += 0.2
		}
	}
	return 2 * shared / float64(a.Values().Len()+b.Values().Len())
}

// stem is a value's name without the enum's, which styles put before it.
func stem(e protoreflect.EnumDescriptor, v protoreflect.EnumValueDescriptor) string {
	prefix := 0
	upper := strings.ToUpper(strings.Join(subwords(string(e.Name())), "_")) + "_"
	if strings.HasPrefix(string(v.Name()), upper) {
		prefix = len(upper)
	}
	return string(v.Name())[prefix:]
}
