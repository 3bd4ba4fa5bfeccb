package redact

import (
	"encoding/binary"
	"maps"
	"slices"

	"unwire/captures/profile"
	"unwire/captures/redact/internal/keyshape"
	"unwire/captures/redact/internal/match"
	"unwire/captures/redact/internal/spelling"
	"unwire/captures/redact/internal/syntax"
)

// A literal is a spelling of a learned secret.
type literal struct{ spelt, secret string }

// A ruleset is everything that is looked for at each byte. It never changes;
// what is learned makes a new one.
type ruleset struct {
	// literals are the spellings of what was learned last, older those of what was learned
	// before that, so that learning a secret copies few of them.
	literals, older map[[3]byte][]literal

	// recent counts the secrets whose spellings are in literals.
	recent int

	shapes map[[3]byte][]keyshape.Shape

	// base are the rules that nothing was learned for.
	base *ruleset

	// A byte at which nothing of the above can begin is passed in less than a
	// nanosecond, by a look at every second pair of bytes, which says where something may
	// begin that they belong to, and there at a hash of three bytes.
	pairs  [1 << 16]uint8
	filter [1 << 12]uint64

	// tails has hashes of the fourth to seventh bytes of literals: the filter alone lets
	// through too many once hundreds of secrets are known.
	tails [1 << 11]uint64
	one   [256]bool

	// At the bytes of sign something may begin, whatever follows.
	sign [256]bool
	two  [1 << 10]uint64
}

// newRuleset returns the rules that nothing was learned for.
func newRuleset(keys []profile.Key) *ruleset {
	f := &ruleset{literals: make(map[[3]byte][]literal), shapes: make(map[[3]byte][]keyshape.Shape)}
	for _, s := range keyshape.All(keys) {
		k := f.admit(s.Prefix)
		f.shapes[k] = append(f.shapes[k], s)
	}
	for _, start := range syntax.Starts() {
		f.admit(start)
	}
	for i := range len(syntax.Signs) {
		f.sign[syntax.Signs[i]], f.one[syntax.Signs[i]] = true, true
	}
	syntax.Pairs(
		func(sign, other byte) { f.pairs[pairOf(other, sign)] |= beginsAfter },
		func(sign, other byte) { f.pairs[pairOf(sign, other)] |= beginsHere },
	)
	base := *f
	f.base = &base
	return f
}

// with returns a ruleset that looks for more secrets too.
func (f *ruleset) with(secrets ...string) *ruleset {
	c := *f
	if c.recent+len(secrets) > maxRecent {
		c.older, c.literals, c.recent = merge(f.older, f.literals), make(map[[3]byte][]literal), 0
	} else {
		c.literals = maps.Clone(f.literals)
	}
	c.recent += len(secrets)
	for _, secret := range secrets {
		seen := make(map[string]bool)
		spellings := spelling.Of(secret)
		if len(secret) >= leastTail {
			spellings = append(spellings, secret[leastHead-1:]) // see split
		}
		for _, spelt := range spellings {
			if len(spelt) >= minLearned && !seen[spelt] {
				seen[spelt] = true
				k := c.admit(spelt)
				h := hash4(spelt[3:7])
				c.tails[h>>6] |= 1 << (h & 63)
				c.literals[k] = append(slices.Clip(c.literals[k]), literal{spelt, secret})
			}
		}
	}
	return &c
}

// maxRecent is how many secrets are learned before their spellings join the older ones.
const maxRecent = 32

func merge(older, recent map[[3]byte][]literal) map[[3]byte][]literal {
	all := make(map[[3]byte][]literal, len(older)+len(recent))
	maps.Copy(all, older)
	for k, list := range recent {
		all[k] = slices.Concat(all[k], list)
	}
	return all
}

// admit lets the first three bytes of s through the filter.
func (f *ruleset) admit(s string) [3]byte {
	h := hash3(s[0], s[1], s[2])
	f.filter[h>>6] |= 1 << (h & 63)
	two := uint16(s[0])<<8 | uint16(s[1])
	f.two[two>>6] |= 1 << (two & 63)
	f.one[s[0]] = true
	f.pairs[pairOf(s[0], s[1])] |= beginsHere
	f.pairs[pairOf(s[1], s[2])] |= beginsBefore
	return [3]byte{s[0], s[1], s[2]}
}

// Where something may begin that two bytes belong to: at the first of them, at the byte before
// it, or at the second, which is a sign.
const (
	beginsHere uint8 = 1 << iota
	beginsBefore
	beginsAfter
)

// mayHold reports whether a literal may begin as rest does, which admits has let through.
func (f *ruleset) mayHold(rest []byte) bool {
	if len(rest) < 7 {
		return true
	}
	h := hash4(rest[3:7])
	return f.tails[h>>6]&(1<<(h&63)) != 0
}

func hash4[T string | []byte](b T) uint32 {
	return (uint32(b[0]) | uint32(b[1])<<8 | uint32(b[2])<<16 | uint32(b[3])<<24) * 0x9e3779b1 >> 15
}

// pairOf is the place of two bytes that follow each other in ruleset.pairs.
func pairOf(a, b byte) uint16 { return uint16(a) | uint16(b)<<8 }

// hasPair reports whether one of the four pairs of eight bytes is of something that
// begins with it, or with the byte before it.
func (f *ruleset) hasPair(b *[8]byte) bool {
	v := binary.LittleEndian.Uint64(b[:])
	return f.pairs[uint16(v)]|f.pairs[uint16(v>>16)]|f.pairs[uint16(v>>32)]|f.pairs[uint16(v>>48)] != 0
}

// hasPairs is hasPair of 16 bytes. It is what most bytes of a large body cost.
func (f *ruleset) hasPairs(b *[16]byte) bool {
	v, w := binary.LittleEndian.Uint64(b[:]), binary.LittleEndian.Uint64(b[8:])
	return f.pairs[uint16(v)]|f.pairs[uint16(v>>16)]|f.pairs[uint16(v>>32)]|f.pairs[uint16(v>>48)]|
		f.pairs[uint16(w)]|f.pairs[uint16(w>>16)]|f.pairs[uint16(w>>32)]|f.pairs[uint16(w>>48)] != 0
}

// admits reports whether something may begin with these bytes.
func (f *ruleset) admits(a, b, c byte) bool {
	h := hash3(a, b, c)
	return f.filter[h>>6]&(1<<(h&63)) != 0
}

func hash3(a, b, c byte) uint32 {
	return (uint32(a) | uint32(b)<<8 | uint32(c)<<16) * 0x9e3779b1 >> 14
}

// next returns the first position from i on where something may begin; with
// fewer than three bytes left it decides by those.
func (f *ruleset) next(b []byte, i int) int {
	from := i // where something may begin at the earliest
	for ; i+10 <= len(b); i += 8 {
		for i+18 <= len(b) && !f.hasPairs((*[16]byte)(b[i:])) {
			i += 16
		}
		if i+10 > len(b) {
			break
		}
		if !f.hasPair((*[8]byte)(b[i:])) {
			continue
		}
		if at := f.firstOf(b, i, from); at >= 0 {
			return at
		}
	}
	i = max(from, i-1)
	for ; i+2 < len(b); i++ {
		if f.sign[b[i]] || f.admits(b[i], b[i+1], b[i+2]) {
			return i
		}
	}
	if i+2 == len(b) {
		two := uint16(b[i])<<8 | uint16(b[i+1])
		if f.two[two>>6]&(1<<(two&63)) != 0 || f.sign[b[i]] {
			return i
		}
		i++
	}
	if i < len(b) && !f.one[b[i]] {
		i++
	}
	return i
}

// firstOf returns the first position from on at which something may begin, of those that the
// four pairs from i on belong to; -1 if there is none.
func (f *ruleset) firstOf(b []byte, i, from int) int {
	for pair := i; pair < i+8; pair += 2 {
		begins := f.pairs[pairOf(b[pair], b[pair+1])]
		switch {
		case begins&beginsBefore != 0 && pair > from && f.beginsAt(b, pair-1):
			return pair - 1
		case begins&beginsHere != 0 && f.beginsAt(b, pair):
			return pair
		case begins&beginsAfter != 0 && f.pairs[pairOf(b[pair+1], b[pair+2])]&beginsHere != 0:
			return pair + 1
		}
	}
	return -1
}

// beginsAt reports whether something may begin at position i.
func (f *ruleset) beginsAt(b []byte, i int) bool {
	if f.sign[b[i]] && f.pairs[pairOf(b[i], b[i+1])]&beginsHere != 0 && (i == 0 || f.pairs[pairOf(b[i-1], b[i])]&beginsAfter != 0) {
		return true
	}
	return f.admits(b[i], b[i+1], b[i+2])
}

// at compares the literal with the bytes at position i.
func (l literal) at(rest []byte, i int, final, flush bool) (match.Match, match.State) {
	n := min(len(rest), len(l.spelt))
	if string(rest[:n]) != l.spelt[:n] {
		return match.Match{}, match.Nothing
	}
	switch {
	case n == len(l.spelt):
		return match.Match{Start: i, End: i + n, Secret: l.secret, Rule: match.Seen}, match.Found
	case flush && n >= 8:
		return match.Match{Start: i, End: i + n, Secret: l.secret, Mask: &match.Mask{Literal: l.spelt[n:]}, Rule: match.Seen}, match.Found
	case final:
		return match.Match{}, match.Nothing
	}
	return match.Match{}, match.Undecided
}
