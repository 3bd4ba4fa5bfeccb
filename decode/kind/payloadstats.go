package kind

import (
	"bytes"
	"cmp"
	"math"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"

	"unwire/decode/value"
)

// Payloads is what was seen of a field's length-delimited payloads, a cost and
// a veto for each hypothesis. A veto is final, and the numbers that it makes
// pointless are zeroed, so that the order of samples does not show.
type Payloads struct {
	N     int64 `json:"n"`
	Empty int64 `json:"empty,omitempty"`

	// Length prefixes longer than need be.
	Overlong int64 `json:"overlong,omitempty"`

	Bytes    int64 `json:"bytes"`
	Shortest int64 `json:"shortest"`
	Longest  int64 `json:"longest"`
	Skipped  int64 `json:"skipped,omitempty"` // that Values has not

	costSums

	// Threshold is the least level of messages whose payloads are in the sums.
	Threshold int `json:"floor,omitempty"`

	// Levels is what is in them of greater levels, ascending.
	Levels []levelSums `json:"tiers,omitempty"`

	NotWide    bool `json:"not_wide,omitempty"` // not words of 16 bits
	NotMessage bool `json:"not_message,omitempty"`
	NotMap     bool `json:"not_map,omitempty"`  // not entries with distinct keys
	NotText    bool `json:"not_text,omitempty"` // some payload is not UTF-8
	NotVarints bool `json:"not_varints,omitempty"`
	NotFixed32 bool `json:"not_fixed32,omitempty"`
	NotFixed64 bool `json:"not_fixed64,omitempty"`

	// Neighbouring map keys in order.
	Ascending int64 `json:"ascending,omitempty"`

	Descending int64 `json:"descending,omitempty"` // and not

	// Ones and Anys are the bits that all payloads have, and those that any has, while all
	// have one size, of at most maskLen bytes; else they are empty.
	Ones []byte `json:"ones,omitempty"`
	Anys []byte `json:"anys,omitempty"`

	// All payloads begin so; at most PrefixLen bytes; unset while N is 0.
	Prefix []byte `json:"prefix,omitempty"`

	Values *sketch     `json:"values,omitempty"`
	Forms  value.Forms `json:"forms,omitzero"`
}

const (
	PrefixLen = 24
	// costBytes is how much of a payload is judged by its content; the rest is
	// only checked for validity, and taken to cost as much a byte.
	costBytes = 512
)

func newPayloads() *Payloads {
	return &Payloads{Shortest: math.MaxInt64, Values: &sketch{}}
}

// addPayload enters a payload of a message of a level; message says that it parses as one and
// is not empty. It is scored as if it were weight payloads, or only looked at for what
// refutes a hypothesis: with weight 0, and where the level is below the threshold.
func (l *Payloads) addPayload(p []byte, message bool, weight int64, level int) {
	if l.N == 0 {
		l.Prefix = bytes.Clone(p[:min(len(p), PrefixLen)])
		l.addMask(p, p, true)
	}
	if weight > 0 {
		l.Values.addBytes(p, weight)
	} else {
		l.Skipped++
	}
	file := l.see(p)
	switch {
	case len(p) == 0:
		l.Empty++
	case weight == 0:
		l.check(p, message)
	default:
		known := l.refute(p, message, level >= l.Threshold)
		if level < l.Threshold {
			return
		}
		l.score(&l.costSums, p, known, file, weight)
		if level > l.Threshold {
			t := l.level(level)
			t.Payloads++
			l.score(&t.costSums, p, known, file, weight)
			l.adaptThreshold()
		}
	}
}

// refute finds what a payload refutes, and reports whether it is surely text or a
// message, which is only found out where it may refute something or all says so.
func (l *Payloads) refute(p []byte, message, all bool) (known bool) {
	if (!l.NotText || len(p) >= proseLen) && !utf8.Valid(p) {
		l.notText()
	} else if len(p) >= proseLen && (all || !l.NotWide || !l.NotVarints || !l.NotFixed32) {
		cost, _ := costText(p)
		known = cost <= proseCost*int64(min(len(p), costBytes))
	}
	if known = known || message && len(p) >= messageLen; known {
		l.notWide()
		l.notVarints()
		l.notFixed()
		return true
	}
	l.checkNumbers(p)
	return false
}

// checkNumbers looks for what refutes that a payload is numbers of some size.
func (l *Payloads) checkNumbers(p []byte) {
	if len(p)%2 != 0 {
		l.notWide()
	}
	if len(p)%8 != 0 {
		l.notFixed64()
	}
	if len(p)%4 != 0 {
		l.notFixed()
	}
	l.stretch(p)
}

// see counts a payload, and its form, and reports whether it is a file.
func (l *Payloads) see(p []byte) (file bool) {
	l.N++
	n := int64(len(p))
	l.Bytes += n
	l.Shortest, l.Longest = min(l.Shortest, n), max(l.Longest, n)
	if len(l.Prefix) > 0 {
		l.addPrefix(p, false)
	}
	if len(l.Ones) > 0 {
		l.addMask(p, p, false)
	}
	return n > 0 && l.Forms.Count(p)
}

// check is refute for one of many payloads in a message, without a look at the text.
func (l *Payloads) check(p []byte, message bool) {
	if message && len(p) >= messageLen {
		l.notWide()
		l.notVarints()
		l.notFixed()
	} else {
		l.checkNumbers(p)
	}
	if !l.NotText && !utf8.Valid(p) {
		l.notText()
	}
}

// scale is how many times the costs are those of all payloads, about one. Thin is for
// how many bytes each one stands: as few bytes, all alike in that, tell as much.
func (l *Payloads) scale() (scale, thin float64) {
	if l.Scored == 0 {
		return 1, 1
	}
	return float64(l.Bytes) / float64(l.Scored), float64(l.Uneven) / float64(l.Scored)
}

// inAll is the cost of all payloads where that of those that were scored is so much.
func (l *Payloads) inAll(cost int64) int64 {
	scale, _ := l.scale()
	return int64(float64(cost) * scale)
}

// messageLen is the size from which what parses as a message is no list of
// numbers: one list of a few thousand does at ten bytes, and ever fewer do.
const messageLen = 64

// Nobody's numbers look like that much text: so many bytes or more, at no more
// than so much each.
const (
	proseLen  = 32
	proseCost = 3400
)

func (l *Payloads) notWide() {
	if !l.NotWide {
		l.NotWide = true
		l.eachSums((*costSums).noWords)
	}
}

func (l *Payloads) notVarints() {
	if !l.NotVarints {
		l.NotVarints = true
		l.eachSums((*costSums).noVarints)
	}
}

func (l *Payloads) notFixed() {
	if !l.NotFixed32 {
		l.NotFixed32 = true
		l.eachSums((*costSums).noFixed32)
		l.notFixed64()
	}
}

func (l *Payloads) notFixed64() {
	if !l.NotFixed64 {
		l.NotFixed64 = true
		l.eachSums((*costSums).noFixed64)
	}
}

// addPrefix shortens the common prefix to what p shares with it; first says that p is all there is.
func (l *Payloads) addPrefix(p []byte, first bool) {
	if first {
		l.Prefix = bytes.Clone(p[:min(len(p), PrefixLen)])
		return
	}
	i := 0
	for i < len(l.Prefix) && i < len(p) && l.Prefix[i] == p[i] {
		i++
	}
	l.Prefix = l.Prefix[:i]
}

func (l *Payloads) notMap() {
	l.NotMap = true
	l.Ascending, l.Descending = 0, 0
}

func (l *Payloads) notText() {
	if !l.NotText {
		l.NotText = true
		l.eachSums((*costSums).noText)
	}
}

// whole extends the cost of a payload's head to all of its size bytes.
func whole(cost int64, size int) int64 {
	if size <= costBytes {
		return cost
	}
	return int64(float64(cost) * float64(size) / costBytes)
}

func (l *Payloads) merge(o *Payloads) {
	if o.N == 0 {
		return
	}
	l.addPrefix(o.Prefix, l.N == 0)
	l.addMask(o.Ones, o.Anys, l.N == 0)
	l.N += o.N
	l.Empty += o.Empty
	l.Overlong += o.Overlong
	l.Bytes += o.Bytes
	l.Skipped += o.Skipped
	l.Shortest, l.Longest = min(l.Shortest, o.Shortest), max(l.Longest, o.Longest)
	l.NotMessage = l.NotMessage || o.NotMessage
	if l.NotMap || o.NotMap {
		l.notMap()
	} else {
		l.Ascending += o.Ascending
		l.Descending += o.Descending
	}
	l.mergeSums(o)
	l.Values.merge(o.Values)
	l.Forms.Merge(&o.Forms)
}

// entryKey returns the encoding of a map entry's key: field 1, then field 2, no more.
func entryKey(p []byte) (key []byte, ok bool) {
	number, typ, n := protowire.ConsumeTag(p)
	if n < 0 || number != 1 {
		return nil, false
	}
	size := protowire.ConsumeFieldValue(number, typ, p[n:])
	if size < 0 {
		return nil, false
	}
	key, p = p[n:n+size], p[n+size:]
	number, typ, n = protowire.ConsumeTag(p)
	if n < 0 || number != 2 {
		return nil, false
	}
	return key, protowire.ConsumeFieldValue(number, typ, p[n:]) == len(p)-n
}

// compareKeys orders two encoded keys as a sorting encoder orders text. Text
// keys begin with their length.
func compareKeys(a, b []byte) int {
	x, n := protowire.ConsumeBytes(a)
	y, m := protowire.ConsumeBytes(b)
	if n == len(a) && m == len(b) {
		return bytes.Compare(x, y)
	}
	v, n := protowire.ConsumeVarint(a)
	w, m := protowire.ConsumeVarint(b)
	if n == len(a) && m == len(b) {
		return cmp.Compare(v, w)
	}
	return bytes.Compare(a, b)
}
