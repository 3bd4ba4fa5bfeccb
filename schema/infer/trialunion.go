package infer

import (
	"slices"

	"unwire/decode/kind"
	"unwire/decode/wire"
)

// A trial is the hypothetical result of merging classes (candidate message types). The classes themselves are
// not changed.
type trial struct {
	// mergedInto is the trial into which this one was merged, or nil (union-find, as in class).
	mergedInto *trial
	// root is the name of the root type (type of whole messages) among the merged classes, or "".
	root string
	// fields are the merged fields by number.
	fields map[int32]trialField
}

// A trialField is a field of a hypothetical merge of classes.
type trialField struct {
	// field is the most frequent of the merged fields.
	field *classField
	// seen is the number of messages with the field, in all merged classes.
	seen int64
	// message is set if at least one of the merged fields is inferred to be a message.
	message bool
	// childClass is the class of the payloads, if they may be messages.
	childClass *class
}

// trials maps classes to the hypothetical merges of which they are part.
type trials map[*class]*trial

// of returns the trial of which c is part. It is created if needed.
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

// compatible tries to merge both classes of each pair, and all classes that must be merged as a consequence. ok
// reports whether one type can describe them: each common field needs the same wire type, and a kind that no
// payload refutes.
//
// If committed is set, a merge is in progress and cannot be undone: of two kinds inferred for a field, that of
// the rarer field is then replaced however probable it is. Otherwise it is replaced only if its probability is
// below overrulableP.
//
// merged are the pairs of classes that must be merged, the given ones first.
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

// includes reports whether the hypothetical merges put the two classes of a pair together.
func (ts trials) includes(pair [2]*class) bool {
	x, y := ts[pair[0].find()], ts[pair[1].find()]
	if x == nil || y == nil {
		return pair[0].find() == pair[1].find()
	}
	return ts.of(pair[0]) == ts.of(pair[1])
}

// joinFields returns the field that results from merging two fields. ok is false if they contradict each other.
// committed is as in compatible.
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

// sameKind reports whether two fields that are not messages may be the same field. If different kinds were
// inferred, the payloads of the rarer field must not refute the kind of the more frequent one, and the kind of
// the rarer one must be uncertain, unless committed is set.
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

// overrulableP is the probability below which the inferred kind of a field may be replaced by that of the same
// field in another class.
const overrulableP = 0.97

// overrulableMessageP is overrulableP for payloads that can be parsed as messages, which other payloads rarely
// can.
const overrulableMessageP = 0.985

// refutes reports whether some payload cannot be of the kind v.
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
