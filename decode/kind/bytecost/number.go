package bytecost

import (
	"encoding/binary"
	"math"
	"math/bits"
)

// costFull is the cost, in thousandths of a nat, of stating that an integer uses all bits of its width.
const costFull = 120

// Fixed returns the cost (description length) of v as an integer of width bits, in thousandths of a nat. It depends
// mainly on the number of significant bits; Unix times are cheaper.
func Fixed(v uint64, width int) int64 {
	// Small negative numbers cost as much as their absolute values.
	if width == 32 && int32(v) < 0 && int32(v) > -1<<20 {
		v = uint64(-int64(int32(v)))
	} else if width == 64 && int64(v) < 0 && int64(v) > -1<<48 {
		v = uint64(-int64(v))
	}
	if width == 64 || v < 1<<32 {
		for _, t := range times {
			if v-t.from < t.span {
				return t.cost
			}
		}
	}
	// Hashes fill the whole width. They cost as much as raw bytes, plus the statement that they do.
	return min(costBits[bits.Len64(v)], int64(width/8)*RawByte+costFull)
}

// times are the ranges of Unix times from 2010 to 2037, in seconds, milliseconds, microseconds and nanoseconds,
// with the cost of a number in that range.
var times = func() (t [4]struct {
	from, span uint64
	cost       int64
},
) {
	per := uint64(1)
	for i := range t {
		t[i].from, t[i].span = 1_262_304_000*per, 852_000_000*per
		t[i].cost = int64(Nat * (3.5 + math.Log(float64(t[i].span))))
		per *= 1000
	}
	return t
}()

// costBits is the cost, in thousandths of a nat, of an integer by its length in bits, if nothing is known about
// other values of the field: the cost of stating the length, and of the bits below the top one.
var costBits = func() (t [65]int64) {
	for n := range t {
		t[n] = int64(Nat * (1 + 1.2*math.Log(float64(n+1)) + float64(max(n-1, 0))*math.Ln2))
	}
	return t
}()

// Double returns the cost (description length) of 8 bytes as a double, in thousandths of a nat. Exponents near one
// are cheap, and so are values with few binary or decimal digits.
func Double(v uint64) int64 {
	f := math.Float64frombits(v)
	exp := int(v>>52&0x7ff) - 1023
	return costReal(f, exp, bits.TrailingZeros64(v|1<<52), 52, 1e-15)
}

// Float returns the cost (description length) of 4 bytes as a float, in thousandths of a nat. Exponents near one are
// cheap, and so are values with few binary or decimal digits.
func Float(v uint32) int64 {
	f := float64(math.Float32frombits(v))
	exp := int(v>>23&0xff) - 127
	return costReal(f, exp, bits.TrailingZeros32(v|1<<23), 23, 6.5e-8)
}

// costDecimal is the cost in nats of stating f by its decimal digits. ok is false if f has more than five digits
// after the point, within the precision of the type.
func costDecimal(f, precision float64) (cost float64, ok bool) {
	s := math.Abs(f)
	for digits := range 6 {
		off := s * precision
		// Any number is near a whole one at this precision.
		if off > 0.01 {
			return 0, false
		}
		if s >= 1 && math.Abs(s-math.Round(s)) <= off {
			return math.Log(s+2) + 1.5 + 0.5*float64(digits), true
		}
		s *= 10
	}
	return 0, false
}

// costReal is the cost, in thousandths of a nat, of a floating-point number f: its exponent, sign, and the bits of
// the mantissa or its decimal digits. trailing is the number of zero bits at the end of the mantissa, which has
// that many bits.
func costReal(f float64, exp, trailing, mantissa int, precision float64) int64 {
	full := float64(mantissa) * math.Ln2
	var cost float64
	switch {
	case f == 0:
		return 2500
	case math.IsNaN(f) || math.IsInf(f, 0):
		return int64(Nat * (full + 12))
	// Most numbers are between a thousandth and a thousand.
	case exp >= -8 && exp <= 11:
		cost = 3.4
	case exp >= -14 && exp <= 20:
		cost = 4.4
	case exp >= -20 && exp <= 33:
		cost = 5.5
	case exp >= -64 && exp <= 64:
		cost = 8
	default:
		cost = 13
	}
	if f < 0 {
		cost++
	}

	// Trailing zeros of the mantissa are free, or else the decimal digits are cheaper.
	bitsLeft := full - float64(trailing)*math.Ln2 + 1.5
	if trailing < 8 && exp >= -20 && exp <= 50 {
		if short, ok := costDecimal(f, precision); ok {
			bitsLeft = min(bitsLeft, short)
		}
	}
	return int64(Nat * (cost + min(full, bitsLeft)))
}

// NumberKind is the cost, in thousandths of a nat, of stating which kind of numbers a payload consists of.
const NumberKind = 1500

// Numbers returns the cost (description length) of payload p as an array of numbers of the kind that fits best:
// floats, doubles, integers. Arrays in bytes fields often have such numbers, while another field names their type.
func Numbers(p []byte) int64 {
	if len(p)%4 != 0 {
		return math.MaxInt64
	}
	head := p[:min(len(p), Head)]
	asFloat, asInt := Width32(head)
	cost := min(asFloat, asInt, BigEndian(head))
	if len(p)%8 == 0 {
		asFloat, asInt = Width64(head)
		cost = min(cost, asFloat, asInt)
	}
	return Extrapolate(cost+NumberKind, len(p))
}

// Width32 returns the cost of payload p as 32-bit floats and as 32-bit integers, both little-endian, in thousandths
// of a nat.
func Width32(p []byte) (asFloat, asInt int64) {
	for ; len(p) >= 4; p = p[4:] {
		v := binary.LittleEndian.Uint32(p)
		asFloat += Float(v)
		asInt += Fixed(uint64(v), 32)
	}
	return asFloat, asInt
}

// Width64 returns the cost of payload p as doubles and as 64-bit integers, both little-endian, in thousandths of a
// nat.
func Width64(p []byte) (asFloat, asInt int64) {
	for ; len(p) >= 8; p = p[8:] {
		v := binary.LittleEndian.Uint64(p)
		asFloat += Double(v)
		asInt += Fixed(v, 64)
	}
	return asFloat, asInt
}

// BigEndian returns the cost of payload p as big-endian integers, which protobuf itself does not use. It is
// math.MaxInt64 (impossible) unless the first byte is zero.
func BigEndian(p []byte) (cost int64) {
	if p[0] != 0 {
		return math.MaxInt64
	}
	for b := p; len(b) >= 4; b = b[4:] {
		cost += Fixed(uint64(binary.BigEndian.Uint32(b)), 32)
	}
	if len(p)%8 != 0 {
		return cost
	}
	wide := int64(0)
	for b := p; len(b) >= 8; b = b[8:] {
		wide += Fixed(binary.BigEndian.Uint64(b), 64)
	}
	return min(cost, wide)
}
