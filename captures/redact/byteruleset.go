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
	"unwire/captures/redact/internal/textrun"
)

// A literal is one spelling (such as base64 or hex) of a learned secret, i.e. of a value that is known to be
// secret.
type literal struct {
	// spelt is one spelling of the secret, such as its base64 or hex form, as it occurs in data.
	spelt string
	// secret is the secret itself.
	secret string
}

// A ruleset is what a scanner searches for at every byte: spellings of learned secrets, prefixes of API keys
// ("key shapes"), and the signs, such as ':' or '=', that precede a value (see package syntax). It is
// immutable; learning a secret creates a new one. Most fields are filters that quickly exclude positions; they
// may accept too many but never too few.
type ruleset struct {
	// literals are the spellings of recently learned secrets, by the first three bytes of the spelling.
	literals map[[3]byte][]literal
	// older are the spellings of the secrets that were learned earlier, by the first three bytes of the
	// spelling; they are separate so that learning a secret copies only few spellings.
	older map[[3]byte][]literal

	// recent is the number of secrets that were learned so recently that their spellings are separate from
	// the older ones.
	recent int

	// shapes are the formats of API keys by the first three bytes of their prefixes.
	shapes map[[3]byte][]keyshape.Shape

	// base is the ruleset without learned secrets, to start over from.
	base *ruleset

	// pairs is the first filter, indexed by two bytes; only every second pair of the data is looked up, so
	// the value is a bit set of the bytes in or next to the pair at which a match may begin.
	pairs [1 << 16]uint8
	// quads is the second filter: it has a bit for each hash of the first four bytes of a match.
	quads [1 << 12]uint64

	// wide means that the spelling of some secret is UTF-16 text, which must be searched for separately.
	wide bool
	// anyByte means that the spelling of some secret does not begin with ASCII text, so that binary data must
	// not be skipped.
	anyByte bool

	// tails has a bit for each hash of the fourth to seventh byte of a secret's spelling. It is the last
	// filter, because shorter hashes accept too many positions if hundreds of secrets are known.
	tails [1 << 11]uint64

	// first marks the bytes with which the spelling of a secret or an API key can begin.
	first [256]bool
	// one marks the bytes with which any match can begin, including the signs that precede a value.
	one [256]bool

	// sign marks the bytes, such as ':' or '=', that can precede a secret value.
	sign [256]bool
	// two has a bit for each pair of bytes with which a match can begin. It is used for the last bytes of the
	// data.
	two [1 << 10]uint64

	// three has a bit for each hash of three bytes with which a match can begin. It is the third filter, and the only one for
	// the last bytes.
	three [1 << 9]uint64
}

// newRuleset returns a ruleset without learned secrets. keys are formats of API keys in addition to the
// built-in ones.
func newRuleset(keys []profile.KeyShape) *ruleset {
	f := &ruleset{literals: make(map[[3]byte][]literal), shapes: make(map[[3]byte][]keyshape.Shape)}
	for _, s := range keyshape.All(keys) {
		for _, start := range s.Starts() {
			k := f.admit(start, s.Follows)
			f.shapes[k] = append(f.shapes[k], s)
			f.first[k[0]] = true
		}
		f.anyByte = f.anyByte || !startsRun(s.Prefix) || s.Least() < leastHead
	}
	for _, start := range syntax.Starts() {
		f.admit(start, func(byte) bool { return true })
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

// with returns a copy of the ruleset that also searches for secrets in all their spellings.
func (f *ruleset) with(secrets ...string) *ruleset {
	c := *f
	// Copy on write: other goroutines search with the old set meanwhile. Older secrets are merged,
	// so that a copy stays small.
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
		// Index each spelling by its first three bytes and by a hash of its tail.
		for _, spelt := range spellings {
			if len(spelt) >= minLearned && !seen[spelt] {
				seen[spelt] = true
				k := c.admit(spelt, nil)
				h := hash4(spelt[3:7], 15)
				c.tails[h>>6] |= 1 << (h & 63)
				c.first[k[0]] = true
				switch {
				case startsRun(spelt):
				case startsWide(spelt):
					c.wide = true
				default:
					c.anyByte = true
				}
				c.literals[k] = append(slices.Clip(c.literals[k]), literal{spelt, secret})
			}
		}
	}
	return &c
}

// maxRecent is the number of secrets whose spellings are kept in literals before they are moved to older.
const maxRecent = 32

// merge returns the union of two maps of literals.
func merge(older, recent map[[3]byte][]literal) map[[3]byte][]literal {
	all := make(map[[3]byte][]literal, len(older)+len(recent))
	maps.Copy(all, older)
	for k, list := range recent {
		all[k] = slices.Concat(all[k], list)
	}
	return all
}

// admit adds s, the beginning of something to be found, to the filters, and returns its first three bytes, the
// key for the maps. If s has only three bytes, follows reports which fourth bytes are possible.
func (f *ruleset) admit(s string, follows func(byte) bool) [3]byte {
	if len(s) > 3 {
		f.admitQuad([4]byte([]byte(s)))
	} else {
		for c := range 256 {
			if follows(byte(c)) {
				f.admitQuad([4]byte{s[0], s[1], s[2], byte(c)})
			}
		}
	}
	h := hash3(s[0], s[1], s[2])
	f.three[h>>6] |= 1 << (h & 63)
	two := uint16(s[0])<<8 | uint16(s[1])
	f.two[two>>6] |= 1 << (two & 63)
	f.one[s[0]] = true
	f.pairs[pairOf(s[0], s[1])] |= beginsHere
	f.pairs[pairOf(s[1], s[2])] |= beginsBefore
	return [3]byte{s[0], s[1], s[2]}
}

// admitQuad adds four bytes with which a match can begin to the filter quads.
func (f *ruleset) admitQuad(b [4]byte) {
	h := hash4(b[:], 14)
	f.quads[h>>6] |= 1 << (h & 63)
}

// Bits of ruleset.pairs: a match may begin at the pair's first byte, at the byte before the pair, or at the
// pair's second byte, which is then a sign.
const (
	beginsHere uint8 = 1 << iota
	beginsBefore
	beginsAfter
)

// mayHold reports whether the filter tails permits that a literal begins like rest. It is called if
// admits(rest).
func (f *ruleset) mayHold(rest []byte) bool {
	if len(rest) < 7 {
		return true
	}
	h := hash4(rest[3:7], 15)
	return f.tails[h>>6]&(1<<(h&63)) != 0
}

// hash4 returns a hash of the first four bytes of b, which has 32-shift bits.
func hash4[T string | []byte](b T, shift int) uint32 {
	return (uint32(b[0]) | uint32(b[1])<<8 | uint32(b[2])<<16 | uint32(b[3])<<24) * 0x9e3779b1 >> shift
}

// pairOf returns the index of two consecutive bytes in ruleset.pairs.
func pairOf(a, b byte) uint16 { return uint16(a) | uint16(b)<<8 }

// hasPair reports whether a match may begin at, or one byte before, one of the four pairs of eight bytes.
func (f *ruleset) hasPair(b *[8]byte) bool {
	v := binary.LittleEndian.Uint64(b[:])
	return f.pairs[uint16(v)]|f.pairs[uint16(v>>16)]|f.pairs[uint16(v>>32)]|f.pairs[uint16(v>>48)] != 0
}

// hasPairs reports whether a match may begin at, or one byte before, one of the eight pairs of 16 bytes. For
// most bytes of a large body, this is the only test.
func (f *ruleset) hasPairs(b *[16]byte) bool {
	v, w := binary.LittleEndian.Uint64(b[:]), binary.LittleEndian.Uint64(b[8:])
	return f.pairs[uint16(v)]|f.pairs[uint16(v>>16)]|f.pairs[uint16(v>>32)]|f.pairs[uint16(v>>48)]|
		f.pairs[uint16(w)]|f.pairs[uint16(w>>16)]|f.pairs[uint16(w>>32)]|f.pairs[uint16(w>>48)] != 0
}

// admits reports whether the filters permit that a literal, a key shape or one of syntax.Starts begins like b.
func (f *ruleset) admits(b []byte) bool {
	if len(b) < 4 {
		return len(b) < 3 || f.admitsThree(b)
	}
	h := hash4(b, 14)

	// The second filter excludes most of those that have the hash of another start.
	return f.quads[h>>6]&(1<<(h&63)) != 0 && f.admitsThree(b)
}

// admitsThree reports whether the filters permit that a match begins with the first three bytes of b.
func (f *ruleset) admitsThree(b []byte) bool {
	h := hash3(b[0], b[1], b[2])
	return f.three[h>>6]&(1<<(h&63)) != 0
}

// hash3 returns a 15-bit hash of three bytes.
func hash3(a, b, c byte) uint32 {
	return (uint32(a) | uint32(b)<<8 | uint32(c)<<16) * 0x9e3779b1 >> 17
}

// next returns the first index, from i on, at which a match may begin according to the filters; len(b) if there
// is none. For the last bytes, it uses only as many as are left.
func (f *ruleset) next(b []byte, i int) int {
	// The first position at which something may begin.
	from := i
	for pairs := leastPairs; ; pairs = mostPairs {
		to := i + pairs
		if f.anyByte || to+2*textrun.Window > len(b) {
			to = len(b)
		}
		var begins bool
		if i, begins = f.nextPair(b, i, from, to); begins {
			return i
		}
		if to == len(b) {
			return f.nextOfLast(b, max(from, i-1))
		}
		if i, begins = f.nextRun(b, i, from); begins {
			return i
		}
		from = i
	}
}

// nextPair implements next for text, with the filter pairs, up to the index to. If begins is true, a match may
// begin at the index at. Otherwise at is at least to, or within the last ten bytes of b; then no match begins
// between from and at, except perhaps at the byte directly before at.
func (f *ruleset) nextPair(b []byte, i, from, to int) (at int, begins bool) {
	for ; i+10 <= len(b) && i < to; i += 8 {
		for i+18 <= len(b) && i < to && !f.hasPairs((*[16]byte)(b[i:])) {
			i += 16
		}
		if i+10 > len(b) || i >= to {
			break
		}
		if !f.hasPair((*[8]byte)(b[i:])) {
			continue
		}
		if at := f.firstOf(b, i, from); at >= 0 {
			return at, true
		}
	}
	return i, false
}

// nextOfLast implements next for the last bytes of b, for which the other filters would need more bytes.
func (f *ruleset) nextOfLast(b []byte, i int) int {
	for ; i+2 < len(b); i++ {
		if f.sign[b[i]] || f.admits(b[i:]) {
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

// firstOf returns the first index, not before from, at which a match may begin that contains one of the four
// byte pairs from index i on; -1 if there is none.
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

// beginsAt reports whether the filters permit that a match begins at index i.
func (f *ruleset) beginsAt(b []byte, i int) bool {
	if f.sign[b[i]] && f.pairs[pairOf(b[i], b[i+1])]&beginsHere != 0 && (i == 0 || f.pairs[pairOf(b[i-1], b[i])]&beginsAfter != 0) {
		return true
	}
	return f.admits(b[i:])
}

// at compares the literal with rest, the searched bytes from index i on. final and flush are as for
// scanner.at.
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
