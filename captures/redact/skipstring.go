package redact

import (
	"encoding/binary"
	"math/bits"
)

const (
	// manyStrings is the number of JSON strings in a body from which on a scanner caches harmless strings.
	manyStrings = 64

	// maxRemembered is the greatest length in bytes of a cached string, including its closing quote.
	maxRemembered = 16

	// stringSlots is the number of cached names, and of cached values.
	stringSlots = 128
)

// A shortString is a JSON string of at most maxRemembered bytes, including the closing quote, padded with
// zeros. The zero value means none.
type shortString struct {
	// low contains the first eight bytes of the string, little-endian, padded with zeros.
	low uint64
	// high contains the bytes of the string after the eighth, little-endian, padded with zeros.
	high uint64
}

// A stringCache caches short JSON strings in which a scanner has found no secret, because the same member names
// occur millions of times. It is a hash table without chaining: a new string replaces one with the same hash.
type stringCache struct {
	// rules is the ruleset for which the cached strings are harmless.
	rules *ruleset

	// names are names of JSON members that denote no secret, in the slots of their hashes.
	names [stringSlots]shortString
	// values are harmless values of JSON members, in the slots of their hashes.
	values [stringSlots]shortString
}

// shortStringAt returns the JSON string whose opening quote is at position i, and its length without
// quotes. ok is false if the string is too long, or too near to the end of b.
func shortStringAt(b []byte, i int) (s shortString, n int, ok bool) {
	if len(b)-i < maxRemembered+2 {
		return s, 0, false
	}
	s.low = binary.LittleEndian.Uint64(b[i+1:])
	if at := quotesIn(s.low); at != 0 {
		n = bits.TrailingZeros64(at) / 8
		s.low &= ^uint64(0) >> (56 - 8*n)
		return s, n, true
	}
	s.high = binary.LittleEndian.Uint64(b[i+9:])
	at := quotesIn(s.high)
	if at == 0 {
		return s, 0, false
	}
	n = bits.TrailingZeros64(at) / 8
	s.high &= ^uint64(0) >> (56 - 8*n)
	return s, 8 + n, true
}

// quotesIn searches eight bytes for double quotes. The lowest set bit of the result is in the first byte that
// is a quote; the result is 0 if there is none.
func quotesIn(w uint64) uint64 {
	const each = 0x0101010101010101
	w ^= '"' * each
	return (w - each) & ^w & (0x80 * each)
}

// slot returns the string's index in the hash table.
func (s shortString) slot() uint64 {
	return (s.low*0x9e3779b97f4a7c15 ^ s.high*0xc2b2ae3d27d4eb4f) >> 57 % stringSlots
}

// skipString returns how many bytes of a JSON string that begins at the next undecided byte can be skipped,
// because no secret begins in them; 0 if the position must be examined. JSON has so many strings that examining
// each of them would dominate the search.
func (s *scanner) skipString(f *ruleset) int {
	b, i := s.buf, s.pos
	if b[i] != '"' || len(b)-i < 3 || f.admits(b[i:]) {
		return 0
	}
	str, slot, n := s.slotOf(f, b, i)
	if slot == nil || *slot != str {
		whole := n
		if n = s.syntax.Quoted(b, i); n == 0 {
			return 0
		}
		for at := i + 1; at+3 < i+n; at++ {
			if f.pairs[pairOf(b[at], b[at+1])] != 0 && f.admits(b[at:]) {
				return at - i
			}
		}
		if slot != nil && n == whole {
			*slot = str
		}
	}

	// Something may begin in the last bytes and continue after the string.
	for at := max(i+1, i+n-3); at < i+n; at++ {
		if f.first[b[at]] && f.admits(b[at:]) {
			return at - i
		}
	}
	return n
}

// slotOf looks up the JSON string str at index i in the cache. slot is where it is or may be stored; nil if it
// must not be cached. n is the number of bytes to skip if *slot equals str.
func (s *scanner) slotOf(f *ruleset, b []byte, i int) (str shortString, slot *shortString, n int) {
	if s.strings == nil {
		if s.passed++; s.passed < manyStrings || f.anyByte {
			return str, nil, 0
		}
		s.strings = new(stringCache)
	}
	if s.strings.rules != f {
		*s.strings = stringCache{rules: f}
	}
	str, n, ok := shortStringAt(b, i)
	if !ok || n < 2 || i == 0 {
		return str, nil, 0
	}
	switch after := b[i+n+2]; {
	case after == ':':
		return str, &s.strings.names[str.slot()], n + 3
	case b[i-1] == ':' && (after == ',' || after == '}' || after == ']'):
		return str, &s.strings.values[str.slot()], n + 1
	}
	return str, nil, 0
}

// nextAfterString is like next, after a string was skipped; it is faster if another string follows.
func (f *ruleset) nextAfterString(b []byte, i int) int {
	if len(b)-i > 6 && b[i] == '"' {
		if b[i+1] == ',' && b[i+2] == '"' && (f.pairs[pairOf('"', ',')]|f.pairs[pairOf(',', '"')])&beginsHere == 0 {
			i += 2
		}
		if f.beginsAt(b, i) {
			return i
		}
	}
	return f.next(b, i)
}
