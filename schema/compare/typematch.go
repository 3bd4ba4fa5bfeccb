package compare

import (
	"cmp"
	"slices"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"

	"unwire/schema"
)

const (
	// types less alike are different types
	mateFloor = 0.55

	// the same, where one took the other's place in a field or method
	usedThreshold = 0.25

	// fields or values that only the two have
	evidenceFloor = 0.9

	// types that share a feature, above which it says little and is passed over
	maxSharing = 400

	// names of fields of one number and different names: less alike, the number was given away
	fieldThreshold = 0.5
)

// A typeMatch says which type of the new version each type of the old one is.
type typeMatch struct {
	// by the old name
	messages    map[protoreflect.FullName]protoreflect.MessageDescriptor
	enums       map[protoreflect.FullName]protoreflect.EnumDescriptor
	oldMessages []protoreflect.MessageDescriptor
	newMessages []protoreflect.MessageDescriptor
	oldEnums    []protoreflect.EnumDescriptor
	newEnums    []protoreflect.EnumDescriptor

	// how many types of a version have a feature
	having map[string]int

	// types of the new version that are some old one
	taken       map[protoreflect.FullName]bool
	oldServices []protoreflect.ServiceDescriptor
	services    map[protoreflect.FullName]protoreflect.ServiceDescriptor
}

// isNew reports whether a type of the new version is no old one.
func (t *typeMatch) isNew(d protoreflect.Descriptor) bool {
	switch d.(type) {
	case protoreflect.MessageDescriptor, protoreflect.EnumDescriptor:
		return !t.taken[d.FullName()]
	}
	return false
}

// matchTypes pairs types by name, then by the place where they are used, then by
// what they hold.
func matchTypes(before, after *schema.Schema) *typeMatch {
	t := &typeMatch{
		messages: map[protoreflect.FullName]protoreflect.MessageDescriptor{},
		enums:    map[protoreflect.FullName]protoreflect.EnumDescriptor{},
		services: map[protoreflect.FullName]protoreflect.ServiceDescriptor{},
		taken:    map[protoreflect.FullName]bool{},
		having:   map[string]int{},
	}
	t.oldMessages, t.newMessages = slices.Collect(before.Messages()), slices.Collect(after.Messages())
	t.oldEnums, t.newEnums = slices.Collect(before.Enums()), slices.Collect(after.Enums())
	t.count(t.oldMessages, t.oldEnums)
	t.count(t.newMessages, t.newEnums)
	for _, m := range t.oldMessages {
		if now := after.Message(name(m)); now != nil && !now.IsMapEntry() {
			t.pairMessages(m, now)
		}
	}
	enums := map[protoreflect.FullName]protoreflect.EnumDescriptor{}
	for _, e := range t.newEnums {
		enums[e.FullName()] = e
	}
	for _, e := range t.oldEnums {
		if now := enums[e.FullName()]; now != nil {
			t.pairEnums(e, now)
		}
	}
	t.matchServices(before, after)
	for t.byUse() || t.byParent() || t.byContent() {
	}
	return t
}

func (t *typeMatch) pairMessages(a, b protoreflect.MessageDescriptor) {
	t.messages[a.FullName()] = b
	t.taken[b.FullName()] = true
}

func (t *typeMatch) pairEnums(a, b protoreflect.EnumDescriptor) {
	t.enums[a.FullName()] = b
	t.taken[b.FullName()] = true
}

// isSameMessage reports whether b is what a became. Types that are not the
// schema's own, such as the well-known ones, go by their names.
func (t *typeMatch) isSameMessage(a, b protoreflect.MessageDescriptor) bool {
	if now := t.messages[a.FullName()]; now != nil {
		return now == b
	}
	return a.FullName() == b.FullName()
}

func (t *typeMatch) isSameEnum(a, b protoreflect.EnumDescriptor) bool {
	if now := t.enums[a.FullName()]; now != nil {
		return now == b
	}
	return a.FullName() == b.FullName()
}

// A mating is a pair of types that may be one, and how alike they are.
type mating struct {
	a, b protoreflect.Descriptor
	sum  float64
}

// pairBest pairs the most alike first, each type once.
func (t *typeMatch) pairBest(list []mating) bool {
	slices.SortStableFunc(list, func(x, y mating) int {
		return cmp.Or(cmp.Compare(y.sum, x.sum), strings.Compare(name(x.a), name(y.a)), strings.Compare(name(x.b), name(y.b)))
	})
	paired := false
	for _, m := range list {
		switch a := m.a.(type) {
		case protoreflect.MessageDescriptor:
			if t.messages[a.FullName()] == nil && !t.taken[m.b.FullName()] {
				t.pairMessages(a, m.b.(protoreflect.MessageDescriptor))
				paired = true
			}
		case protoreflect.EnumDescriptor:
			if t.enums[a.FullName()] == nil && !t.taken[m.b.FullName()] {
				t.pairEnums(a, m.b.(protoreflect.EnumDescriptor))
				paired = true
			}
		}
	}
	return paired
}

// byUse pairs types that stand in the same field of paired messages, or in the
// same place of a method.
func (t *typeMatch) byUse() bool {
	votes := map[[2]protoreflect.Descriptor]int{}
	vote := func(a, b protoreflect.Descriptor) { votes[[2]protoreflect.Descriptor{a, b}]++ }
	for _, m := range t.oldMessages {
		now := t.messages[m.FullName()]
		if now == nil {
			continue
		}
		for i := range m.Fields().Len() {
			f := m.Fields().Get(i)
			g := now.Fields().ByNumber(f.Number())
			if g == nil || g.Name() != f.Name() {
				if h := now.Fields().ByName(f.Name()); h != nil {
					g = h
				}
			}
			if g == nil {
				continue
			}
			f, g = valueOf(f), valueOf(g)
			if f.Message() != nil && g.Message() != nil && t.isFree(f.Message(), g.Message()) {
				vote(f.Message(), g.Message())
			}
			if f.Enum() != nil && g.Enum() != nil && t.isFree(f.Enum(), g.Enum()) {
				vote(f.Enum(), g.Enum())
			}
		}
	}
	t.eachMethod(func(m, now protoreflect.MethodDescriptor) {
		if t.isFree(m.Input(), now.Input()) {
			vote(m.Input(), now.Input())
		}
		if t.isFree(m.Output(), now.Output()) {
			vote(m.Output(), now.Output())
		}
	})
	var list []mating
	for pair, n := range votes {
		if s := t.likeness(pair[0], pair[1]); s >= usedThreshold {
			list = append(list, mating{pair[0], pair[1], s + float64(n)})
		}
	}
	return t.pairBest(list)
}

// valueOf is the field itself, or of a map the value.
func valueOf(f protoreflect.FieldDescriptor) protoreflect.FieldDescriptor {
	if f.IsMap() {
		return f.MapValue()
	}
	return f
}

// isFree reports whether two types are of the schemas themselves, and not paired.
func (t *typeMatch) isFree(a, b protoreflect.Descriptor) bool {
	if t.taken[b.FullName()] || a.FullName() == b.FullName() {
		return false
	}
	switch a := a.(type) {
	case protoreflect.MessageDescriptor:
		return t.messages[a.FullName()] == nil && t.known(a, b)
	case protoreflect.EnumDescriptor:
		return t.enums[a.FullName()] == nil && t.known(a, b)
	}
	return false
}

func (t *typeMatch) known(a, b protoreflect.Descriptor) bool {
	return !a.IsPlaceholder() && !b.IsPlaceholder() && !schema.IsWellKnown(a.ParentFile().Path()) && !schema.IsWellKnown(b.ParentFile().Path())
}

// byParent pairs types of one simple name in messages that were renamed.
func (t *typeMatch) byParent() bool {
	var list []mating
	for _, m := range t.oldMessages {
		now := t.messages[m.FullName()]
		if now == nil {
			continue
		}
		for i := range m.Messages().Len() {
			inner := m.Messages().Get(i)
			if other := now.Messages().ByName(inner.Name()); other != nil && !inner.IsMapEntry() && !other.IsMapEntry() && t.isFree(inner, other) {
				list = append(list, mating{inner, other, 1})
			}
		}
		for i := range m.Enums().Len() {
			inner := m.Enums().Get(i)
			if other := now.Enums().ByName(inner.Name()); other != nil && t.isFree(inner, other) {
				list = append(list, mating{inner, other, 1})
			}
		}
	}
	return t.pairBest(list)
}

// byContent pairs types that hold the same.
func (t *typeMatch) byContent() bool {
	having := map[string][]protoreflect.Descriptor{}
	for _, m := range t.newMessages {
		if !t.taken[m.FullName()] {
			for _, f := range features(m) {
				having[f] = append(having[f], m)
			}
		}
	}
	for _, e := range t.newEnums {
		if !t.taken[e.FullName()] {
			for _, f := range features(e) {
				having[f] = append(having[f], e)
			}
		}
	}
	var list []mating
	look := func(d protoreflect.Descriptor) {
		seen := map[protoreflect.FullName]bool{}
		for _, f := range features(d) {
			if len(having[f]) > maxSharing {
				continue
			}
			for _, other := range having[f] {
				if seen[other.FullName()] {
					continue
				}
				seen[other.FullName()] = true
				if s := t.likeness(d, other); s >= t.threshold(d, other) {
					if e := t.evidence(d, other); e >= evidenceFloor || d.Name() == other.Name() && e >= evidenceFloor/4 {
						list = append(list, mating{d, other, s + min(e, 1) + nearness(d, other)})
					}
				}
			}
		}
	}
	for _, m := range t.oldMessages {
		if t.messages[m.FullName()] == nil {
			look(m)
		}
	}
	for _, e := range t.oldEnums {
		if t.enums[e.FullName()] == nil {
			look(e)
		}
	}
	return t.pairBest(list)
}
