package kind

import (
	"encoding/binary"
	"math/bits"
	"slices"

	"google.golang.org/protobuf/encoding/protowire"
)

// Of the payloads of a field that many messages have only some are scored: a few
// thousand tell what they cost as well as all do. All of them are counted, and looked
// at for what refutes a hypothesis.
//
// Which are scored may depend on what was seen, not on when: every message has a rank
// by a hash of its bytes, three of four the lowest, and of a field the messages from
// some rank on are scored, its floor: the greatest from which on there are enough. More
// messages can only raise it. So each rank above the floor has sums of its own, and
// when the floor rises those below it are forgotten, with the same result as if they
// had never been scored.

const (
	// Payloads of a field; on average a few times that are scored.
	enoughScored = 512

	bitsOfRank = 2
	maxRank    = 64 / bitsOfRank
	rankBytes  = 4 << 10 // of a message that its rank is by, and its end
)

// A tier is what was scored of the payloads in messages of one rank.
type tier struct {
	Rank     int   `json:"rank"`
	Payloads int64 `json:"n"`
	sums
}

// rankOf is the rank of a message: 0 of three in four.
func rankOf(data []byte) int {
	const odd = 0x9e3779b97f4a7c15
	h := uint64(len(data)) * odd
	head := data[:min(len(data), rankBytes)]
	for ; len(head) >= 8; head = head[8:] {
		h = bits.RotateLeft64(h^binary.LittleEndian.Uint64(head), 29) * odd
	}
	h = mix(mix(h^word(head)) ^ word(data[max(0, len(data)-8):]))
	return bits.LeadingZeros64(h) / bitsOfRank
}

// tier returns the sums of a rank above the floor.
func (l *Payloads) tier(rank int) *tier {
	i, found := slices.BinarySearchFunc(l.Tiers, rank, func(t tier, rank int) int { return t.Rank - rank })
	if !found {
		l.Tiers = slices.Insert(l.Tiers, i, tier{Rank: rank})
	}
	return &l.Tiers[i]
}

// rise raises the floor as far as enough payloads are left.
func (l *Payloads) rise() {
	left := int64(0)
	for i := len(l.Tiers) - 1; i >= 0; i-- {
		if left += l.Tiers[i].Payloads; left >= enoughScored {
			l.raise(l.Tiers[i].Rank)
			return
		}
	}
}

// raise forgets what was scored below a rank.
func (l *Payloads) raise(floor int) {
	if floor <= l.Floor {
		return
	}
	all := l.Elements
	l.sums = l.from(floor)
	if all != nil {
		if l.Elements == nil {
			l.Elements = newElements()
		}
		l.Elements.span(all)
	}
	l.Floor = floor
	l.Tiers = slices.DeleteFunc(l.Tiers, func(t tier) bool { return t.Rank <= floor })
	if len(l.Tiers) == 0 {
		l.Tiers = nil
	}
}

// from sums up what was scored from a rank on, which is not below the floor.
func (l *Payloads) from(floor int) (s sums) {
	if floor == l.Floor {
		s.add(&l.sums)
		return s
	}
	for i := range l.Tiers {
		if l.Tiers[i].Rank >= floor {
			s.add(&l.Tiers[i].sums)
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
	l.raise(o.Floor)
	s := o.from(l.Floor)
	if o.Elements != nil {
		if s.Elements == nil {
			s.Elements = newElements()
		}
		s.Elements.span(o.Elements)
	}
	l.sums.add(&s)
	for i := range o.Tiers {
		if from := &o.Tiers[i]; from.Rank > l.Floor {
			t := l.tier(from.Rank)
			t.Payloads += from.Payloads
			t.sums.add(&from.sums)
		}
	}
	l.eachSums(l.forget)
	l.rise()
}

// forget takes what is refuted out of sums.
func (l *Payloads) forget(s *sums) {
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
func (l *Payloads) eachSums(f func(*sums)) {
	f(&l.sums)
	for i := range l.Tiers {
		f(&l.Tiers[i].sums)
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

// tiersValid: what is kept by rank is above the floor, and not yet enough to raise it.
func (l *Payloads) tiersValid() bool {
	if l.Floor < 0 || l.Floor > maxRank || len(l.Tiers) > maxRank {
		return false
	}
	last, n := l.Floor, int64(0)
	for i := range l.Tiers {
		t := &l.Tiers[i]
		if t.Rank <= last || t.Rank > maxRank || t.Payloads < 1 || t.Payloads >= enoughScored || !t.sums.valid() || !l.summed(&t.sums) {
			return false
		}
		last, n = t.Rank, n+t.Payloads
	}
	return n < enoughScored
}
