package infer

import (
	"slices"

	"unwire/decode/kind"
	"unwire/decode/wire"
)

// A trial is what a class would be if it were joined with others.
type trial struct {
	into   *trial
	root   string
	fields map[int32]trialField
}

type trialField struct {
	field   *classField // the one that was seen most, of those joined
	seen    int64
	message bool // for one of them
	kid     *class
}

// trials are the classes of one attempt to join.
type trials map[*class]*trial

func (ts trials) of(c *class) *trial {
	c = c.find()
	t := ts[c]
	if t == nil {
		t = &trial{root: c.root, fields: make(map[int32]trialField, len(c.fields))}
		for n, f := range c.fields {
			t.fields[n] = trialField{field: f, seen: f.Seen, message: f.likely(), kid: f.kid}
		}
		ts[c] = t
	}
	for t.into != nil {
		t = t.into
	}
	return t
}

// compatible reports whether one type can describe the classes of each pair, and
// whatever becomes one through joining them: for every field, the same wire
// type and a kind that nobody's payloads refute.
//
// Within limits a field whose kind is in doubt follows the other's; where a
// join is under way that cannot be undone, doubt is reason enough for any.
func compatible(underWay bool, pairs ...[2]*class) (trials, bool) {
	ts := trials{}
	for work := slices.Clone(pairs); len(work) > 0; {
		x, y := ts.of(work[len(work)-1][0]), ts.of(work[len(work)-1][1])
		work = work[:len(work)-1]
		if x == y {
			continue
		}
		if x.root != "" && y.root != "" {
			return nil, false // two roots keep two names
		}
		if x.root == "" {
			x.root = y.root
		}
		y.into = x
		for n, g := range y.fields {
			f, common := x.fields[n]
			if !common {
				x.fields[n] = g
				continue
			}
			f, ok := joinFields(f, g, underWay)
			if !ok {
				return nil, false
			}
			if f.kid != nil {
				work = append(work, [2]*class{f.kid, g.kid})
			}
			x.fields[n] = f
		}
	}
	return ts, true
}

// includes reports whether the pair is one in the trial.
func (ts trials) includes(pair [2]*class) bool {
	x, y := ts[pair[0].find()], ts[pair[1].find()]
	if x == nil || y == nil {
		return pair[0].find() == pair[1].find()
	}
	return ts.of(pair[0]) == ts.of(pair[1])
}

// joinFields reports whether two fields can be one, and what that one is.
func joinFields(f, g trialField, underWay bool) (trialField, bool) {
	x, y := f.field, g.field
	if x.judgement.Odd > 0 || y.judgement.Odd > 0 || x.group != nil || y.group != nil {
		return f, false
	}
	message := f.message || g.message
	if message && (f.kid == nil || g.kid == nil) {
		return f, false
	}
	if !message && !sameKind(x, y, underWay) {
		return f, false
	}
	if g.seen > f.seen {
		f.field = y
	}
	f.seen += g.seen
	if f.message = message; !message {
		f.kid = nil
	}
	return f, true
}

// sameKind reports whether two fields without messages may be one. Where the
// readings differ, the one seen more often must not be refuted by the other's
// payloads, and the other must be in doubt.
func sameKind(x, y *classField, underWay bool) bool {
	if x.judgement.Kind == y.judgement.Kind && x.judgement.Element == y.judgement.Element {
		return true
	}
	if y.Seen > x.Seen {
		x, y = y, x
	}
	if x.Len == nil || y.Len == nil || x.Len.N != x.Occurs || y.Len.N != y.Occurs {
		return false // numbers, or numbers among payloads
	}
	return (underWay || y.judgement.P < weakP) && !refutes(y.Len, x.judgement)
}

// weakP is the probability below which a reading may be overruled by that of
// the same field elsewhere.
const weakP = 0.97

// refutes reports whether some payload cannot be of the kind.
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
