package infer

import (
	"slices"

	"unwire/decode/kind"
	"unwire/decode/wire"
)

// A trial is the hypothetical result of merging classes, without changing them.
type trial struct {
	// mergedInto is the trial that this one became part of, or nil (union-find, as in class).
	mergedInto *trial
	// root is the root type among the merged classes, or "".
	root string
	// fields are the merged fields by number.
	fields map[int32]trialField
}

// A trialField is a field of a hypothetical merge of classes.
type trialField struct {
	// field is the most frequent of the merged fields, and seen the sum of their counts.
	field *classField
	// seen is the number of messages with the field, in all merged classes.
	seen int64
	// message means that at least one of the merged fields is inferred to be a message.
	message bool
	// childClass is the class of the payloads, if they may be messages.
	childClass *class
}

// trials maps classes to the hypothetical merges of one attempt.
type trials map[*class]*trial

// of returns the trial that c is part of, which is created if needed.
func (ts trials) of(c *class) *trial {
	c = c.find()
	t := ts[c]
	if t == nil {
		t = &trial{root: c.root, fields: make(map[int32]trialField, len(c.fields))}
		for n, f := range c.fields {
			t.fields[n] = trialField{field: f, seen: f.Seen, message: f.isMessage(), childClass: f.childClass}
		}
		ts[c] = t
	}
	for t.mergedInto != nil {
		t = t.mergedInto
	}
	return t
}

// compatible reports whether one type can describe both classes of each pair, and all classes that must merge as
// a consequence: each common field needs the same wire type and a kind that no payload refutes.
//
// If a merge is already in progress (committed), it cannot be undone: then any doubtful reading follows the more
// frequent one. Otherwise this is limited to readings below overrulableP.
//
// merged are the pairs that must merge, the given ones first.
func compatible(committed bool, pairs ...[2]*class) (ts trials, merged [][2]*class, ok bool) {
	ts = trials{}
	for work := slices.Clone(pairs); len(work) > 0; {
		pair := work[len(work)-1]
		x, y := ts.of(pair[0]), ts.of(pair[1])
		work = work[:len(work)-1]
		if x == y {
			continue
		}
		merged = append(merged, [2]*class{pair[0].find(), pair[1].find()})
		if x.root != "" && y.root != "" {
			// Two root types are two types by definition.
			return nil, nil, false
		}
		if x.root == "" {
			x.root = y.root
		}
		y.mergedInto = x
		// The fields of both must agree.
		for n, g := range y.fields {
			f, common := x.fields[n]
			if !common {
				x.fields[n] = g
				continue
			}
			f, ok := joinFields(f, g, committed)
			if !ok {
				return nil, nil, false
			}
			// The classes of a merged field's payloads must be one type, too (congruence closure).
			if f.childClass != nil {
				work = append(work, [2]*class{f.childClass, g.childClass})
			}
			x.fields[n] = f
		}
	}

	return ts, merged, true
}

// includes reports whether the trial merges the pair.
func (ts trials) includes(pair [2]*class) bool {
	x, y := ts[pair[0].find()], ts[pair[1].find()]
	if x == nil || y == nil {
		return pair[0].find() == pair[1].find()
	}
	return ts.of(pair[0]) == ts.of(pair[1])
}

// joinFields returns the field that results from merging two, or false if they contradict each other.
func joinFields(f, g trialField, committed bool) (trialField, bool) {
	x, y := f.field, g.field
	if x.judgement.Odd > 0 || y.judgement.Odd > 0 || x.groupClass != nil || y.groupClass != nil {
		return f, false
	}
	message := f.message || g.message
	if message && (f.childClass == nil || g.childClass == nil) {
		// Few payloads may parse as messages by accident. Then the field is what the others are.
		if x.childClass == nil {
			x, y = y, x
		}
		if !x.isMessage() || y.isMessage() || x.Seen > y.Seen || x.judgement.P >= overrulableMessageP || y.Len == nil || refutes(x.Len, y.judgement) {
			return f, false
		}
		f.field, f.message, f.childClass = y, false, nil
		f.seen += g.seen
		return f, true
	}
	if !message && !sameKind(x, y, committed) {
		return f, false
	}
	if g.seen > f.seen {
		f.field = y
	}
	f.seen += g.seen
	if f.message = message; !message {
		f.childClass = nil
	}
	return f, true
}

// sameKind reports whether two fields that are not messages may be one. If their readings differ, the payloads
// of the rarer field must not refute the reading of the more frequent one, and the rarer reading must be in
// doubt.
func sameKind(x, y *classField, committed bool) bool {
	if x.judgement.Kind == y.judgement.Kind && x.judgement.Element == y.judgement.Element {
		return true
	}
	if y.Seen > x.Seen {
		x, y = y, x
	}
	if x.Len == nil || y.Len == nil || x.Len.N != x.Occurs || y.Len.N != y.Occurs {
		// The wire types are numbers, or payloads and numbers are mixed.
		return false
	}
	return (committed || y.judgement.P < overrulableP) && !refutes(y.Len, x.judgement)
}

// overrulableP is the probability below which a reading may be replaced by the reading of the same field
// elsewhere.
const overrulableP = 0.97

// overrulableMessageP is overrulableP for payloads that parse as messages, which few others do.
const overrulableMessageP = 0.985

// refutes reports whether some payload contradicts the inferred kind v.
func refutes(l *kind.Payloads, v kind.Judgement) bool {
	switch v.Kind {
	case wire.KindString:
		return l.NotText
	case wire.KindMessage:
		return l.NotMessage
	case wire.KindPacked:
		return v.Element == kind.PackedVarint && l.NotVarints || v.Element == kind.PackedFixed32 && l.NotFixed32 || v.Element == kind.PackedFixed64 && l.NotFixed64
	}
	return false
}
