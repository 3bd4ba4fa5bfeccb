package kind

import (
	"encoding/binary"
	"math/bits"
	"slices"

	"google.golang.org/protobuf/encoding/protowire"
)

// Of the payloads of a field that many messages have, only a sample is scored: a few
// thousand tell what they cost as well as all do. All of them are counted, and looked
// at for what refutes a hypothesis.
//
// The sample is a coordinated one with an adaptive threshold: it depends on what was
// seen, not on when, so evidence that is merged in any order is the same. Every message
// has a level, by the leading zeros of a hash of its bytes: three of four have the
// lowest. Of a field the messages from a threshold on are scored: the greatest level
// from which on there are enough. More messages can only raise it. So each level above
// the threshold has sums of its own, and when the threshold rises those below it are
// forgotten, with the same result as if they had never been scored.
//
// Source: Gibbons, "Distinct Sampling for Highly-Accurate Answers to Distinct Values
// Queries and Event Reports", VLDB 2001.

const (
	// Payloads of a field; on average a few times that are scored.
	enoughScored = 512

	bitsOfLevel = 2
	maxLevel    = 64 / bitsOfLevel
	levelBytes  = 4 << 10 // of a message that its level is by, and its end
)

// A levelSums is what was scored of the payloads in messages of one level.
type levelSums struct {
	Level    int   `json:"rank"`
	Payloads int64 `json:"n"`
	costSums
}

// samplingLevel is the level of a message: 0 of three in four.
func samplingLevel(data []byte) int {
	const odd = 0x9e3779b97f4a7c15
	h := uint64(len(data)) * odd
	head := data[:min(len(data), levelBytes)]
	for ; len(head) >= 8; head = head[8:] {
		h = bits.RotateLeft64(h^binary.LittleEndian.Uint64(head), 29) * odd
	}
	h = mix(mix(h^word(head)) ^ word(data[max(0, len(data)-8):]))
	return bits.LeadingZeros64(h) / bitsOfLevel
}

// level returns the sums of a level above the threshold.
func (l *Payloads) level(level int) *levelSums {
	i, found := slices.BinarySearchFunc(l.Levels, level, func(t levelSums, level int) int { return t.Level - level })
	if !found {
		l.Levels = slices.Insert(l.Levels, i, levelSums{Level: level})
	}
	return &l.Levels[i]
}

// adaptThreshold raises the threshold as far as enough payloads are left.
func (l *Payloads) adaptThreshold() {
	left := int64(0)
	for i := len(l.Levels) - 1; i >= 0; i-- {
		if left += l.Levels[i].Payloads; left >= enoughScored {
			l.raiseThreshold(l.Levels[i].Level)
			return
		}
	}
}

// raiseThreshold forgets what was scored below a level.
func (l *Payloads) raiseThreshold(threshold int) {
	if threshold <= l.Threshold {
		return
	}
	all := l.Elements
	l.costSums = l.from(threshold)
	if all != nil {
		if l.Elements == nil {
			l.Elements = newElements()
		}
		l.Elements.span(all)
	}
	l.Threshold = threshold
	l.Levels = slices.DeleteFunc(l.Levels, func(t levelSums) bool { return t.Level <= threshold })
	if len(l.Levels) == 0 {
		l.Levels = nil
	}
}

// from sums up what was scored from a level on, which is not below the threshold.
func (l *Payloads) from(threshold int) (s costSums) {
	if threshold == l.Threshold {
		s.addSums(&l.costSums)
		return s
	}
	for i := range l.Levels {
		if l.Levels[i].Level >= threshold {
			s.addSums(&l.Levels[i].costSums)
		}
	}
	return s
}

// mergeSums merges what was scored, and what is refuted.
func (l *Payloads) mergeSums(o *Payloads) {
	l.NotWide = l.NotWide || o.NotWide
	l.NotText = l.NotText || o.NotText
	l.NotVarints = l.NotVarints || o.NotVarints
	l.NotFixed32 = l.NotFixed32 || o.NotFixed32
	l.NotFixed64 = l.NotFixed64 || o.NotFixed64
	l.raiseThreshold(o.Threshold)
	s := o.from(l.Threshold)
	if o.Elements != nil {
		if s.Elements == nil {
			s.Elements = newElements()
		}
		s.Elements.span(o.Elements)
	}
	l.costSums.addSums(&s)
	for i := range o.Levels {
		if from := &o.Levels[i]; from.Level > l.Threshold {
			t := l.level(from.Level)
			t.Payloads += from.Payloads
			t.costSums.addSums(&from.costSums)
		}
	}
	l.eachSums(l.dropRefuted)
	l.adaptThreshold()
}

// dropRefuted takes what is refuted out of sums.
func (l *Payloads) dropRefuted(s *costSums) {
	if l.NotWide {
		s.noWords()
	}
	if l.NotText {
		s.noText()
	}
	if l.NotVarints {
		s.noVarints()
	}
	if l.NotFixed32 {
		s.noFixed32()
	}
	if l.NotFixed64 {
		s.noFixed64()
	}
}

// eachSums has f look at all sums.
func (l *Payloads) eachSums(f func(*costSums)) {
	f(&l.costSums)
	for i := range l.Levels {
		f(&l.Levels[i].costSums)
	}
}

// span widens the range of values by that of others, without counting them.
func (s *Varints) span(o *Varints) {
	s.Max, s.Min, s.Lowest = max(s.Max, o.Max), min(s.Min, o.Min), min(s.Lowest, o.Lowest)
}

// stretch widens the range of the packed varints in all payloads by those in p, or
// finds that p is none.
func (l *Payloads) stretch(p []byte) {
	if l.NotVarints || l.Elements.spans(p) {
		return
	}
	if p[len(p)-1] >= 0x80 {
		l.notVarints()
		return
	}
	e := l.Elements
	if e == nil {
		e = newElements()
	}
	for len(p) > 0 {
		v, n := uint64(p[0]), 1
		if v >= 0x80 {
			if v, n = protowire.ConsumeVarint(p); n <= 0 || p[n-1] == 0 {
				l.notVarints()
				return
			}
		}
		if int64(v) < 0 {
			e.Lowest = min(e.Lowest, int64(v))
		} else {
			e.Max, e.Min = max(e.Max, v), min(e.Min, v)
		}
		p = p[n:]
	}
	l.Elements = e
}

// elements are the packed varints, of which one is negative if any is that was not scored.
func (l *Payloads) elements() *Varints {
	e := *l.Elements
	if e.Lowest < 0 && e.Negative == 0 {
		e.N++
		e.Negative++
		e.Bits[bits.Len64(uint64(-e.Lowest))]++
	}
	return &e
}

// levelsValid reports that what is kept by level is above the threshold, and not yet
// enough to raise it.
func (l *Payloads) levelsValid() bool {
	if l.Threshold < 0 || l.Threshold > maxLevel || len(l.Levels) > maxLevel {
		return false
	}
	last, n := l.Threshold, int64(0)
	for i := range l.Levels {
		t := &l.Levels[i]
		if t.Level <= last || t.Level > maxLevel || t.Payloads < 1 || t.Payloads >= enoughScored || !t.costSums.valid() || !l.summed(&t.costSums) {
			return false
		}
		last, n = t.Level, n+t.Payloads
	}
	return n < enoughScored
}
