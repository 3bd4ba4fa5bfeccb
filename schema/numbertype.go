package schema

import (
	"fmt"
	"math"

	"unwire/decode/wire"
)

// A typeVerdict is the declared type of a number, with the doubt about it.
type typeVerdict struct {
	name   string
	p      float64
	note   string // what the values say, for a comment
	settle string // what would decide it
}

// varintType chooses a type for varints.
//
// No value tells an enum from an int32, nor int32 from uint32 or a small int64;
// the choice is the most usual type that keeps every value seen. All of them
// read each other's small values alike, so a wrong choice loses nothing until a
// value outside the seen range comes.
func varintType(s *varintStats) typeVerdict {
	switch {
	case s.Negative > 0:
		return signedType(s)
	case s.Max <= 1:
		return boolType(s)
	case s.Max > math.MaxUint32:
		v := typeVerdict{name: "int64", p: 0.8, note: rangeNote(s), settle: "a value with the top bit set: negative, or a hash"}
		switch {
		case s.Bits[63] > 0: // no time or size is so large
			v.name, v.p = "uint64", 0.6
		case s.Min > 1_000_000_000_000 && s.Max < 4_200_000_000_000:
			v.note += ", milliseconds of the Unix epoch by their size"
			v.p = 0.9
		}
		return v
	case s.Max > math.MaxInt32:
		if 3*s.Bits[32] > s.N {
			return typeVerdict{name: "uint32", p: 0.6, note: rangeNote(s) + ", values fill 32 bits", settle: "a value above 4294967295"}
		}
		return typeVerdict{name: "int64", p: 0.55, note: rangeNote(s), settle: "a value above 4294967295"}
	case s.Epoch == s.N && s.N > 1:
		return typeVerdict{
			name: "int64", p: 0.8, note: rangeNote(s) + ", seconds of the Unix epoch by their size",
			settle: "a value above 4294967295 or below 0",
		}
	}
	v := typeVerdict{name: "int32", p: 0.55, note: rangeNote(s), settle: "a negative value, or one above 2147483647"}
	distinct := int64(len(s.Values.Items))
	switch {
	case !s.Values.Full && s.Max < 64 && distinct*3 <= s.N && s.N >= 6:
		v.p = 0.25
		v.note += fmt.Sprintf(", %d distinct: perhaps an enum, which reads alike", distinct)
		v.settle = "the client's own code: the wire does not tell an enum from an int32"
	case s.N >= 10:
		v.p = 0.75
	}
	return v
}

// boolType is for values of 0 and 1 only: an int or an enum whose values all
// happened to be those gets rarer with samples, but never rare.
func boolType(s *varintStats) typeVerdict {
	v := typeVerdict{name: "bool", p: 0.7, note: "always 1", settle: "a value above 1 would make it an int32 or an enum"}
	switch {
	case s.Max == 0:
		v.note, v.p = "always 0", 0.4
	case s.Zero > 0:
		v.note, v.p = "0 or 1", 0.75
	case s.N > 3:
		v.p = 0.75
	}
	return v
}

// signedType chooses among the types that write ten bytes for some value.
func signedType(s *varintStats) typeVerdict {
	v := typeVerdict{name: "int32", p: 0.75, note: rangeNote(s), settle: "a value outside 32 bits would make it an int64"}
	if s.Lowest < math.MinInt32 || s.Max > math.MaxInt32 {
		v = typeVerdict{name: "int64", p: 0.85, note: rangeNote(s), settle: "the client's own code"}
		// Values that fill 64 bits on both sides of zero are hashes or ids.
		if high := s.Bits[63] + s.Bits[62] + s.Bits[61]; 2*high > s.N && s.N > 2 {
			v.name, v.p, v.note = "uint64", 0.7, "values fill 64 bits"
		}
	}
	return v
}

func rangeNote(s *varintStats) string {
	lo := int64(s.Min)
	if s.Negative > 0 {
		lo = s.Lowest
	}
	if s.Negative == s.N { // Max says nothing
		return fmt.Sprintf("%d and greater, negative", lo)
	}
	if uint64(lo) == s.Max {
		return fmt.Sprintf("always %d", s.Max)
	}
	return fmt.Sprintf("%d to %d", lo, s.Max)
}

// fixedType chooses between floating point and integer for values of width bits.
func fixedType(asFloat, asInt, n, small int64, width int) typeVerdict {
	diff := float64(asInt-asFloat) / nat * math.Pow(float64(max(n, 1)), poolPower-1)
	p := 1 / (1 + math.Exp(-(diff + 1)))
	if p >= 0.5 {
		name := "double"
		if width == 32 {
			name = "float"
		}
		return typeVerdict{name: name, p: round(math.Min(p, 0.995)), settle: "values that make no sense as floating point"}
	}
	v := typeVerdict{name: fmt.Sprintf("fixed%d", width), p: round(math.Min(1-p, 0.995) * 0.85), settle: "a value near zero from below would make it signed"}
	if small > 0 {
		v.name = "s" + v.name
	}
	return v
}

// numberType chooses the type of a field of numbers, packed or not.
func numberType(f *field, v kindVerdict) typeVerdict {
	switch {
	case v.kind == wire.KindVarint || v.element == packedVarint:
		s := newVarintStats()
		if f.varint != nil {
			s.merge(f.varint)
		}
		if v.kind == wire.KindPacked && f.len != nil {
			s.merge(f.len.Elements)
		}
		if s.N == 0 {
			return typeVerdict{name: "int64", p: 0.3}
		}
		return varintType(s)
	case v.kind == wire.KindFixed32 || v.element == packedFixed32:
		var asFloat, asInt, n, small int64
		if s := f.fixed32; s != nil {
			asFloat, asInt, n, small = s.Float, s.Int, s.N, s.Small
		}
		if f.len != nil && v.kind == wire.KindPacked {
			asFloat, asInt, n = asFloat+f.len.Float32, asInt+f.len.Int32, n+f.len.Bytes/4
		}
		return fixedType(asFloat, asInt, n, small, 32)
	}
	var asFloat, asInt, n, small int64
	if s := f.fixed64; s != nil {
		asFloat, asInt, n, small = s.Float, s.Int, s.N, s.Small
	}
	if f.len != nil && v.kind == wire.KindPacked {
		asFloat, asInt, n = asFloat+f.len.Float64, asInt+f.len.Int64, n+f.len.Bytes/8
	}
	return fixedType(asFloat, asInt, n, small, 64)
}
