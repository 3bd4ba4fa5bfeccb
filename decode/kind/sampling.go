package kind

import (
	"encoding/binary"
	"math/bits"
	"slices"

	"google.golang.org/protobuf/encoding/protowire"

	"unwire/decode/kind/stablehash"
)

// If many messages have a field, only a sample of its payloads is scored, because a few thousand payloads show
// the costs as well as all do. All payloads are counted and may refute hypotheses.
//
// The sample is a coordinated one with an adaptive threshold. It depends on which messages exist, and not on
// their order, so evidence can be merged in any order. Every message has a level, which is derived from the
// leading zeros of a hash of its bytes: three of four messages have level 0. For each field, the messages from a
// threshold on are scored: the highest level from which on there are still enough messages. Further messages can
// only raise the threshold. So each level above the threshold has sums of its own. When the threshold rises, the
// sums below it are dropped, as if these messages had never been scored.
//
// Source: Gibbons, "Distinct Sampling for Highly-Accurate Answers to Distinct Values Queries and Event Reports",
// VLDB 2001.

const (
	// enoughScored is the minimum number of payloads that remain scored when the threshold is raised. On average, a
	// few times as many are scored.
	enoughScored = 512

	// bitsOfLevel is the number of hash bits per level, and maxLevel the highest level.
	bitsOfLevel = 2
	maxLevel    = 64 / bitsOfLevel

	// levelBytes is the number of bytes at the beginning of a message that determine its level, together with its
	// last bytes and its size.
	levelBytes = 4 << 10
)

// A levelSums holds the cost sums of payloads in messages of one sampling level. The level is a hash of the message, and
// only messages from a threshold level on are scored.
type levelSums struct {
	// Level is the sampling level of the messages.
	Level int `json:"rank" pb:"1"`

	// Payloads is the number of payloads whose cost was computed.
	Payloads int64 `json:"n" pb:"2"`

	// costSums has the summed costs of these payloads under each hypothesis about their type.
	costSums
}

// samplingLevel returns the level of a message for coordinated sampling, from a hash of its content: each level has
// a quarter of the messages that reach the one below, and three of four messages have level 0. Payloads in messages
// below a threshold level are not scored.
func samplingLevel(data []byte) int {
	const odd = 0x9e3779b97f4a7c15
	h := uint64(len(data)) * odd
	head := data[:min(len(data), levelBytes)]
	for ; len(head) >= 8; head = head[8:] {
		h = bits.RotateLeft64(h^binary.LittleEndian.Uint64(head), 29) * odd
	}
	h = stablehash.Mix(stablehash.Mix(h^stablehash.Word(head)) ^ stablehash.Word(data[max(0, len(data)-8):]))
	return bits.LeadingZeros64(h) / bitsOfLevel
}

// level returns the sums of a level above the threshold, and adds them if they are missing.
func (l *Payloads) level(level int) *levelSums {
	i, found := slices.BinarySearchFunc(l.Levels, level, func(t levelSums, level int) int { return t.Level - level })
	if !found {
		l.Levels = slices.Insert(l.Levels, i, levelSums{Level: level})
	}
	return &l.Levels[i]
}

// adaptThreshold raises the sampling threshold as long as at least enoughScored payloads remain.
func (l *Payloads) adaptThreshold() {
	left := int64(0)
	for i := len(l.Levels) - 1; i >= 0; i-- {
		if left += l.Levels[i].Payloads; left >= enoughScored {
			l.raiseThreshold(l.Levels[i].Level)
			return
		}
	}
}

// raiseThreshold sets the sampling threshold and drops the sums of all messages whose level is below it.
func (l *Payloads) raiseThreshold(threshold int) {
	if threshold <= l.Threshold {
		return
	}
	all := l.Elements
	l.costSums = l.sumsFrom(threshold)
	// The range of the numbers covers all payloads, so it remains.
	if all != nil {
		if l.Elements == nil {
			l.Elements = newElements()
		}
		l.Elements.widenRange(all)
	}
	l.Threshold = threshold
	l.Levels = slices.DeleteFunc(l.Levels, func(t levelSums) bool { return t.Level <= threshold })
	if len(l.Levels) == 0 {
		l.Levels = nil
	}
}

// sumsFrom returns the sums of all messages with level threshold or higher. threshold must not be below the current
// one.
func (l *Payloads) sumsFrom(threshold int) (s costSums) {
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

// mergeSums merges the refutations and the sums of o.
func (l *Payloads) mergeSums(o *Payloads) {
	l.NotWide = l.NotWide || o.NotWide
	l.NotText = l.NotText || o.NotText
	l.NotVarints = l.NotVarints || o.NotVarints
	l.NotFixed32 = l.NotFixed32 || o.NotFixed32
	l.NotFixed64 = l.NotFixed64 || o.NotFixed64

	// Both sides need the same threshold before their sums can be added.
	l.raiseThreshold(o.Threshold)
	// Only the sums from the common threshold on are comparable.
	s := o.sumsFrom(l.Threshold)
	if o.Elements != nil {
		if s.Elements == nil {
			s.Elements = newElements()
		}
		s.Elements.widenRange(o.Elements)
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

// dropRefuted clears the sums of refuted hypotheses.
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

// eachSums calls f with the cost sums of each sampling level.
func (l *Payloads) eachSums(f func(*costSums)) {
	f(&l.costSums)
	for i := range l.Levels {
		f(&l.Levels[i].costSums)
	}
}

// widenRange extends Min, Max and Lowest by those of o, without counting values.
func (s *Varints) widenRange(o *Varints) {
	s.Max, s.Min, s.Lowest = max(s.Max, o.Max), min(s.Min, o.Min), min(s.Lowest, o.Lowest)
}

// widenRange extends the range of the packed varints by those in payload p. If p does not consist of varints, it
// refutes that hypothesis.
func (l *Payloads) widenRange(p []byte) {
	if l.NotVarints || l.Elements.inRange(p) {
		return
	}
	if p[len(p)-1] >= 0x80 {
		l.notVarints()
		return
	}

	// Extend the range by each number. An overlong varint refutes the hypothesis.
	e := l.Elements
	if e == nil {
		e = l.recycler.newElements()
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

// elements returns the statistics of the packed varints. If only payloads that were not scored have negative
// elements, one of these is counted.
func (l *Payloads) elements() *Varints {
	e := *l.Elements
	if e.Lowest < 0 && e.Negative == 0 {
		e.N++
		e.Negative++
		e.Bits[bits.Len64(uint64(-e.Lowest))]++
	}
	return &e
}

// levelsValid reports whether all sampling levels are at or above the threshold, and few enough that
// the threshold need not be raised.
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

// A stratifiedSampler selects which of a field's payloads in one root message are scored: all of the first ones,
// and ever fewer of the following ones, which represent the others.
//
// Each doubling of the number of payloads is a stratum, of which an equal number is scored, at random positions
// in runs of equal length. The first payloads have most of the information: the hundredth payload of a message
// rarely changes a judgement. All payloads may refute hypotheses. Payloads are counted within one message, so
// that the order of messages does not matter.
//
// Limits: the first 32, then 16 per doubling.
type stratifiedSampler struct {
	// sample is the number of the root message that is being sampled.
	sample int64

	// count is the number of the field's payloads in that message so far.
	count int64

	// next is the index of the next payload that is scored.
	next int64
}

const (
	// scoredFirst is the number of first payloads of a field in a message that are all scored, i.e. whose costs are
	// computed.
	scoredFirst = 32

	// scoredThen is the number of payloads that are scored in each further doubling of the count.
	scoredThen = 16
)

// weight returns the number of payloads that the next payload represents in the sample; 0 if it is not scored.
// sample is the number of the root message.
func (s *stratifiedSampler) weight(sample int64) int64 {
	if s.sample != sample {
		*s = stratifiedSampler{sample: sample}
	}
	// Count every payload, but select only the planned one.
	k := s.count
	s.count++
	if k != s.next {
		return 0
	}
	w := stride(k)
	// The next run begins here. One payload of it is scored.
	s.next = k&^(w-1) + w
	s.next += int64(stablehash.Mix(uint64(s.next))) & (stride(s.next) - 1)
	return w
}

// stride returns the number of payloads that a scored payload represents if it is the k-th of its message, from 0.
func stride(k int64) int64 {
	if k < scoredFirst {
		return 1
	}
	return 1 << (bits.Len64(uint64(k)) - bits.Len64(scoredThen))
}
