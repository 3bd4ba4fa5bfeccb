package redact

import (
	"encoding/binary"
	"math/bits"
)

const (
	// manyStrings is from how many strings on a scanner remembers them.
	manyStrings = 64

	// maxRemembered is the length of the longest string that is remembered, in bytes, with the
	// quote behind it.
	maxRemembered = 16

	// stringSlots is how many names and how many values are remembered.
	stringSlots = 128
)

// A shortString is a string of maxRemembered bytes or fewer with the quote behind it, then zeros.
// The zero value is none.
type shortString struct{ low, high uint64 }

// stringsOfOne caches short JSON strings that a scanner has found harmless, because the same member
// names occur millions of times. It is a hash table in which a new string evicts an older one with the
// same hash.
type stringsOfOne struct {
	rules *ruleset // for which that is so

	// names are those of members that denote no secret, values those of members.
	names, values [stringSlots]shortString
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

// quotesIn searches eight bytes for double quotes. The lowest set bit of the result is in the first
// byte that is a quote; the result is 0 if there is none.
func quotesIn(w uint64) uint64 {
	const each = 0x0101010101010101
	w ^= '"' * each
	return (w - each) & ^w & (0x80 * each)
}

func (s shortString) slot() uint64 {
	return (s.low*0x9e3779b97f4a7c15 ^ s.high*0xc2b2ae3d27d4eb4f) >> 57 % stringSlots
}

// passString returns how many bytes are passed of a string of JSON that begins at the undecided
// byte, 0 if something may begin at the next byte. JSON has so many strings that looking at each
// of them would take longer than all else.
func (s *scanner) passString(f *ruleset) int {
	b, i := s.buf, s.pos
	if b[i] != '"' || len(b)-i < 3 || f.admits(b[i:]) {
		return 0
	}
	str, slot, n := s.slotOf(f, b, i)
	if slot == nil || *slot != str {
		whole := n
		if n = s.r.syntax.Quoted(b, i); n == 0 {
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

// slotOf looks up the JSON string at position i in the cache. n is the number of bytes to skip if it is
// cached; otherwise slot is where it may be stored, nil if it must not be cached.
func (s *scanner) slotOf(f *ruleset, b []byte, i int) (str shortString, slot *shortString, n int) {
	if s.strings == nil {
		if s.passed++; s.passed < manyStrings || f.anyByte {
			return str, nil, 0
		}
		s.strings = new(stringsOfOne)
	}
	if s.strings.rules != f {
		*s.strings = stringsOfOne{rules: f}
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

// nextAfterString is next where a string was passed: another one often follows.
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
