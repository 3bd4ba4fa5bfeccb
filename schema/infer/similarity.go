package infer

import "unwire/decode/kind"

// Weights, in nats, of the evidence for and against two classes (candidate message types) being one type.
const (
	// ownScore is the minimum evidence for merging a message with one that encloses it, i.e. for a recursive
	// type.
	ownScore = 1.2
	// sameValues is the evidence for merging if both classes look like timestamps, or both like Any, and
	// against it if only one does.
	sameValues = 2.0
	// otherKind is the evidence against merging from a field with two kinds of values. It is reduced by
	// otherKindInDoubt if one of the kinds is uncertain and was inferred from at most fewSeen messages.
	otherKind, otherKindInDoubt = 3.0, 2.0
	fewSeen                     = 6
	// highNumber is the field number from which on a single common field is enough for a recursive type.
	highNumber = 5
	// sameFieldType is the evidence for merging from a message field whose payloads are of the same class in
	// both.
	sameFieldType = 1.0
	// sameElements is the additional evidence if that field is a list and neither class has another field: a type
	// for lists of messages is mostly declared once.
	sameElements = 0.9
	// fieldsOfOneMessage is the evidence for merging the types of two fields that occurred together in a
	// message, and against merging those of two fields that never did.
	fieldsOfOneMessage = 0.6
	// fieldsOfPair is the additional evidence for merging the types of two fields if their message has no other
	// fields, as in a type for ranges.
	fieldsOfPair = 1.0
	// absenceInOneof scales the evidence against merging from absent fields if all fields seem to be members of one
	// oneof: each message has only one of them, so that few messages cannot have all.
	absenceInOneof = 0.3
)

// contained reports whether at least three quarters of the fields of c are fields of o, too, and these are at
// least two or include a high number.
func contained(c, o *class) bool {
	shared, high := 0, false
	for _, n := range c.numbers {
		if o.fields[n] != nil {
			shared++
			high = high || n >= highNumber
		}
	}
	return (shared >= 2 || high) && 4*shared >= 3*len(c.numbers)
}

// similarity returns the evidence, in nats, that two classes are one type. Fields with the same number and kind
// are evidence for it, more so if the number is high, because high numbers rarely coincide. Fields that are
// frequent in one class and absent in the other are evidence against it, less so for the members of a oneof.
func similarity(a, b *class) float64 {
	// The fields of the smaller class come first, since the others are often not needed.
	if len(a.numbers) > len(b.numbers) {
		a, b = b, a
	}
	score, shared := valueLikeness(a, b), 0
	score += kinshipEvidence(a, b)
	absence := 1.0
	if len(b.numbers) > 2 && isExclusive(a) && isExclusive(b) {
		absence = absenceInOneof
	}

	entries := a.hasEntryFields() && b.hasEntryFields()
	for _, n := range a.numbers {
		x, y := a.fields[n], b.fields[n]
		if y == nil {
			score -= absence * absenceEvidence(x, a.samples, b.samples)
			continue
		}
		shared++
		if x.judgement.Kind != y.judgement.Kind && !(x.childClass != nil && y.childClass != nil) {
			score -= otherKind * min(x.judgement.P, y.judgement.P)
			if min(x.judgement.P, y.judgement.P) < overrulableMessageP && min(x.Seen, y.Seen) <= fewSeen {
				score += otherKindInDoubt
			}
			continue
		}
		score += numberEvidence(n) + fieldLikeness(x, y, entries) + fieldTypeEvidence(x, y, len(b.numbers) == 1)
	}

	if most := score - absence*minAbsence*float64(len(b.numbers)-shared); most < ownScore {
		// Messages can have very many fields: stop if the fields of b cannot change the result.
		return most
	}
	for _, n := range b.numbers {
		if a.fields[n] == nil {
			score -= absence * absenceEvidence(b.fields[n], b.samples, a.samples)
		}
	}
	return score
}

// hasEntryFields reports whether the class has the fields of a map's entry, a key and a value, and no others.
func (c *class) hasEntryFields() bool {
	return len(c.numbers) == 2 && c.fields[1] != nil && c.fields[2] != nil
}

// fieldTypeEvidence returns the evidence, in nats, for merging two classes from the type of a message field that both
// have. only is set if neither has another field.
func fieldTypeEvidence(x, y *classField, only bool) float64 {
	switch {
	case x.childClass == nil || y.childClass == nil || !x.isMessage() || !y.isMessage() || x.childClass.find() != y.childClass.find():
		return 0
	case only && x.Most > 1 && y.Most > 1:
		return sameFieldType + sameElements
	}
	return sameFieldType
}

// valueLikeness returns the evidence, in nats, for or against merging from whether both classes look like
// timestamps, or like Any.
func valueLikeness(a, b *class) float64 {
	switch {
	case fitsTimestamp(a) && fitsTimestamp(b) || isAny(a) && isAny(b):
		return sameValues
	case fitsTimestamp(a) != fitsTimestamp(b) || isAny(a) != isAny(b):
		return -sameValues
	}
	return 0
}

// kinshipEvidence returns the evidence, in nats, for or against merging the types of two fields of one message.
// Fields that occur together are often of one type; fields that exclude each other are of different types.
func kinshipEvidence(a, b *class) float64 {
	if a.parentClass == nil || b.parentClass == nil || a.parentClass.find() != b.parentClass.find() || a.parentField == b.parentField {
		return 0
	}
	above := a.parentClass.find()
	x, y := above.fields[a.parentField], above.fields[b.parentField]
	switch {
	case a.parentField >= kind.LowNumbers || b.parentField >= kind.LowNumbers || x == nil || y == nil:
		return 0
	case x.Before.Has(b.parentField) || y.Before.Has(a.parentField):
		if isPair(above) {
			return fieldsOfOneMessage + fieldsOfPair
		}
		return fieldsOfOneMessage
	case x.Seen > 2 && y.Seen > 2:
		return -fieldsOfOneMessage
	}
	return 0
}

// isExclusive reports whether no message of class c has more than one field, as if all fields were members of one
// oneof.
func isExclusive(c *class) bool {
	seen := int64(0)
	for _, n := range c.numbers {
		f := c.fields[n]
		if seen += f.Seen; f.Most > 1 || f.Before.HasAbove(0) {
			return false
		}
	}
	return seen <= c.samples
}

// isPair reports whether class c has two fields only, both of which are messages that occur at most once, as in a
// type for ranges.
func isPair(c *class) bool {
	if len(c.numbers) != 2 {
		return false
	}
	for _, f := range c.fields {
		if f.Most > 1 || !f.isMessage() {
			return false
		}
	}
	return true
}
