package compare

import (
	"cmp"
	"slices"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"

	"unwire/schema"
)

// Thresholds for pairing types and fields.
const (
	// minTypeLikeness is the likeness, from 0 to 1, below which an old and a new type are not paired.
	minTypeLikeness = 0.55

	// minUsedLikeness is the likeness below which two types are not paired although one replaced the other as
	// the type of a field or method.
	minUsedLikeness = 0.25

	// minEvidence is the minimum of typeMatch.evidence for pairing: about one field or value that no other type
	// has.
	minEvidence = 0.9

	// maxSharing is the number of types above which a feature that they share is ignored by byContent.
	maxSharing = 400

	// maxWork limits the comparisons of fields, values and methods that pair types, so that hostile definitions
	// cannot take quadratic time. Types that are not paired by then count as removed and added.
	maxWork = 10_000_000

	// minFieldLikeness is the likeness of names below which two fields with the same number are different
	// fields, i.e. the number was reused.
	minFieldLikeness = 0.5
)

// A typeMatch finds, for the types of the old version, their counterparts in the new version.
type typeMatch struct {
	// messages maps the full name of an old message to its new counterpart.
	messages map[protoreflect.FullName]protoreflect.MessageDescriptor
	// enums maps the full name of an old enum to its new counterpart.
	enums map[protoreflect.FullName]protoreflect.EnumDescriptor
	// oldMessages are the messages of the old version.
	oldMessages []protoreflect.MessageDescriptor
	// newMessages are the messages of the new version.
	newMessages []protoreflect.MessageDescriptor
	// oldEnums are the enums of the old version.
	oldEnums []protoreflect.EnumDescriptor
	// newEnums are the enums of the new version.
	newEnums []protoreflect.EnumDescriptor

	// countByFeature is the number of types that have a feature. See countFeatures.
	countByFeature map[string]int

	// taken has the names of the types in the new version that are already paired.
	taken map[protoreflect.FullName]bool
	// oldServices are the services of the old version.
	oldServices []protoreflect.ServiceDescriptor
	// services maps the full name of an old service to its new counterpart.
	services map[protoreflect.FullName]protoreflect.ServiceDescriptor

	// work counts comparisons; see maxWork.
	work int
}

// isNew reports whether d is a message or enum of the new version that is not yet paired.
func (t *typeMatch) isNew(d protoreflect.Descriptor) bool {
	switch d.(type) {
	case protoreflect.MessageDescriptor, protoreflect.EnumDescriptor:
		return !t.taken[d.FullName()]
	}
	return false
}

// matchTypes pairs the types of two versions by name, then by the fields and methods that use them, and then by
// content.
func matchTypes(before, after *schema.Schema) *typeMatch {
	t := &typeMatch{
		messages:       map[protoreflect.FullName]protoreflect.MessageDescriptor{},
		enums:          map[protoreflect.FullName]protoreflect.EnumDescriptor{},
		services:       map[protoreflect.FullName]protoreflect.ServiceDescriptor{},
		taken:          map[protoreflect.FullName]bool{},
		countByFeature: map[string]int{},
	}

	t.oldMessages, t.newMessages = slices.Collect(before.Messages()), slices.Collect(after.Messages())
	t.oldEnums, t.newEnums = slices.Collect(before.Enums()), slices.Collect(after.Enums())
	t.countFeatures(t.oldMessages, t.oldEnums)
	t.countFeatures(t.newMessages, t.newEnums)

	// Types with the same name.
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

	// Each pair can reveal others, so repeat until nothing is found. Weaker evidence is used only when stronger
	// evidence finds nothing.
	for t.work <= maxWork && (t.byUse() || t.byParent() || t.byContent()) {
	}
	return t
}

// pairMessages records that message b is the new version of a.
func (t *typeMatch) pairMessages(a, b protoreflect.MessageDescriptor) {
	t.messages[a.FullName()] = b
	t.taken[b.FullName()] = true
}

// pairEnums records that enum b is the new version of a.
func (t *typeMatch) pairEnums(a, b protoreflect.EnumDescriptor) {
	t.enums[a.FullName()] = b
	t.taken[b.FullName()] = true
}

// newName returns the name of the new version of message m. Types that belong to neither version, such as the
// well-known types, keep their names.
func (t *typeMatch) newName(m protoreflect.MessageDescriptor) protoreflect.FullName {
	if now := t.messages[m.FullName()]; now != nil {
		return now.FullName()
	}
	return m.FullName()
}

// isSameMessage reports whether b is the new version of message a.
func (t *typeMatch) isSameMessage(a, b protoreflect.MessageDescriptor) bool {
	return t.newName(a) == b.FullName()
}

// isSameEnum reports whether b is the new version of enum a.
func (t *typeMatch) isSameEnum(a, b protoreflect.EnumDescriptor) bool {
	if now := t.enums[a.FullName()]; now != nil {
		return now == b
	}
	return a.FullName() == b.FullName()
}

// A candidatePair is a possible pair of an old and a new type, with a score.
type candidatePair struct {
	// a is a type of the old version, and b its possible counterpart in the new version.
	a, b protoreflect.Descriptor
	// score is the evidence that both are the same type; only the order matters.
	score float64
}

// pairBest records the pairs with the highest scores first, each type at most once. It reports whether it
// recorded any.
func (t *typeMatch) pairBest(list []candidatePair) bool {
	slices.SortStableFunc(list, func(x, y candidatePair) int {
		return cmp.Or(cmp.Compare(y.score, x.score), strings.Compare(name(x.a), name(y.a)), strings.Compare(name(x.b), name(y.b)))
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

// byUse pairs types that are used by the same field of paired messages, or by the same method. It reports
// whether it found any.
func (t *typeMatch) byUse() bool {
	t.work += len(t.oldMessages)
	votes := map[[2]protoreflect.Descriptor]int{}
	vote := func(a, b protoreflect.Descriptor) { votes[[2]protoreflect.Descriptor{a, b}]++ }
	for _, m := range t.oldMessages {
		now := t.messages[m.FullName()]
		if now == nil {
			continue
		}
		t.work += m.Fields().Len()
		for i := range m.Fields().Len() {
			f := m.Fields().Get(i)
			g := now.Fields().ByNumber(f.Number())
			// The field may have been renumbered.
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

	var list []candidatePair
	for pair, n := range votes {
		if s := t.likeness(pair[0], pair[1]); s >= minUsedLikeness {
			list = append(list, candidatePair{pair[0], pair[1], s + float64(n)})
		}
	}
	return t.pairBest(list)
}

// valueOf returns f; for a map, the field of the map's values.
func valueOf(f protoreflect.FieldDescriptor) protoreflect.FieldDescriptor {
	if f.IsMap() {
		return f.MapValue()
	}
	return f
}

// isFree reports whether two types are declared by the compared versions and not yet paired.
func (t *typeMatch) isFree(a, b protoreflect.Descriptor) bool {
	if t.taken[b.FullName()] || a.FullName() == b.FullName() {
		return false
	}
	switch a := a.(type) {
	case protoreflect.MessageDescriptor:
		return t.messages[a.FullName()] == nil && t.own(a, b)
	case protoreflect.EnumDescriptor:
		return t.enums[a.FullName()] == nil && t.own(a, b)
	}
	return false
}

// own reports whether both types are declared by the compared versions, not by an imported library.
func (t *typeMatch) own(a, b protoreflect.Descriptor) bool {
	return !a.IsPlaceholder() && !b.IsPlaceholder() && !schema.IsWellKnown(a.ParentFile().Path()) && !schema.IsWellKnown(b.ParentFile().Path())
}

// byParent pairs types with the same simple name inside the two versions of a renamed message. It reports
// whether it found any.
func (t *typeMatch) byParent() bool {
	t.work += len(t.oldMessages)
	var list []candidatePair
	for _, m := range t.oldMessages {
		now := t.messages[m.FullName()]
		if now == nil {
			continue
		}
		t.work += m.Messages().Len() + m.Enums().Len()
		for i := range m.Messages().Len() {
			inner := m.Messages().Get(i)
			if other := now.Messages().ByName(inner.Name()); other != nil && !inner.IsMapEntry() && !other.IsMapEntry() && t.isFree(inner, other) {
				list = append(list, candidatePair{inner, other, 1})
			}
		}
		for i := range m.Enums().Len() {
			inner := m.Enums().Get(i)
			if other := now.Enums().ByName(inner.Name()); other != nil && t.isFree(inner, other) {
				list = append(list, candidatePair{inner, other, 1})
			}
		}
	}
	return t.pairBest(list)
}

// byContent pairs types with similar content. An inverted index of features finds the candidates. It reports
// whether it found any.
func (t *typeMatch) byContent() bool {
	t.work += len(t.oldMessages) + len(t.oldEnums)

	// The unpaired types of the new version by feature.
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

	var list []candidatePair
	look := func(d protoreflect.Descriptor) {
		if t.work > maxWork {
			return
		}
		seen := map[protoreflect.FullName]bool{}
		for _, f := range features(d) {
			// So common a feature would make this quadratic, and is no evidence.
			if len(having[f]) > maxSharing {
				continue
			}
			for _, other := range having[f] {
				if seen[other.FullName()] {
					continue
				}
				seen[other.FullName()] = true
				if s := t.likeness(d, other); s >= t.threshold(d, other) {
					if e := t.evidence(d, other); e >= minEvidence || d.Name() == other.Name() && e >= minEvidence/4 {
						list = append(list, candidatePair{d, other, s + min(e, 1) + nearness(d, other)})
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
