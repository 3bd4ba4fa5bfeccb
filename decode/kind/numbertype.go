package kind

import (
	"fmt"
	"math"

	"unwire/decode/wire"
)

// A TypeEstimate is the declared type of a number, with the doubt about it.
type TypeEstimate struct {
	Name   string
	P      float64
	Note   string // what the values say, for a comment
	Settle string // what would decide it
}

// varintType chooses a type for varints.
//
// No value tells an enum from an int32, nor int32 from uint32 or a small int64; the choice
// is the most usual type that keeps every value seen. All of them read each other's small
// values alike, so a wrong choice loses nothing until a value outside the seen range comes.
func varintType(s *Varints, u Use) TypeEstimate {
	for _, t := range varintScalars(s) {
		if t.Type == "sint64" && t.P > 0.5 {
			v := TypeEstimate{Name: "sint32", P: round(t.P), Note: "zigzag by the parity of its values", Settle: "the client's own code"}
			if s.Max > math.MaxUint32 {
				v.Name = "sint64"
			}
			return v
		}
	}
	switch {
	case s.Negative > 0:
		return signedType(s)
	case s.Max <= 1:
		return boolType(s, u)
	case s.Max > math.MaxUint32:
		v := TypeEstimate{Name: "int64", P: 0.8, Note: rangeNote(s), Settle: "a value with the top bit set: negative, or a hash"}
		switch {
		case s.Bits[63] > 0: // no time or size is so large
			v.Name, v.P = "uint64", 0.6
		case s.Min > 1_000_000_000_000 && s.Max < 4_200_000_000_000:
			v.Note += ", milliseconds of the Unix epoch by their size"
			v.P = 0.9
		}
		return v
	case s.Max > math.MaxInt32:
		if 3*s.Bits[32] > s.N {
			return TypeEstimate{Name: "uint32", P: 0.6, Note: rangeNote(s) + ", values fill 32 bits", Settle: "a value above 4294967295"}
		}
		return TypeEstimate{Name: "int64", P: 0.55, Note: rangeNote(s), Settle: "a value above 4294967295"}
	case s.Epoch == s.N && s.N > 1:
		return TypeEstimate{
			Name: "int64", P: 0.8, Note: rangeNote(s) + ", seconds of the Unix epoch by their size",
			Settle: "a value above 4294967295 or below 0",
		}
	}
	v := TypeEstimate{Name: "int32", P: 0.55, Note: rangeNote(s), Settle: "a negative value, or one above 2147483647"}
	distinct := int64(len(s.Values.Items))
	switch {
	case !s.Values.Full && s.Max < 64 && distinct*3 <= s.N && s.N >= 6:
		v.P = 0.25
		v.Note += fmt.Sprintf(", %d distinct: perhaps an enum, which reads alike", distinct)
		v.Settle = "the client's own code: the wire does not tell an enum from an int32"
	case s.N >= 10:
		v.P = 0.75
	}
	return v
}

// A Use is what surrounds a field of numbers. The zero value knows nothing.
type Use struct {
	Number int32 // the field's

	// The share of its messages that are no copies of others; 0 is all.
	Fresh float64

	Key bool // it is the key of a map
}

// The share of bools among single varint fields, by field number up to five and
// more, in the definitions of genproto: what comes first is a count or an id.
var boolShare = [...]float64{0.36, 0.21, 0.24, 0.40, 0.38, 0.37}

// Of the other varint fields this share are enums, and so many of enums and of
// ints have one value for all of their samples that is the first above zero, or
// only the two first: chosen by hand on the generated tuning corpora.
const (
	enumShare     = 0.35
	enumAlwaysOne = 0.33
	intAlwaysOne  = 0.12
	enumZeroOne   = 0.15
	intZeroOne    = 0.08

	// The power of the samples with which that gets rarer.
	rarer = -0.3

	// Below it an int is written, which reads whatever comes.
	leastBool = 0.6

	boolZeroes, intZeroes = 0.3, 0.45
)

// boolType is for values of 0 and 1 only: an int or an enum whose values all
// happened to be those gets rarer with samples, but never rare. Where a bool is
// not much more likely an int is the safer declaration: it keeps a later 2.
func boolType(s *Varints, u Use) TypeEstimate {
	n := float64(s.N)
	if u.Fresh > 0 {
		n = max(n*u.Fresh, 1)
	}
	prior := boolShare[min(max(int(u.Number), 0), len(boolShare)-1)]
	isBool, isEnum, isInt, note := 1.0, enumAlwaysOne, intAlwaysOne, "always 1"
	switch {
	case u.Key:
		prior = 0.02
	case s.Max == 0:
		isBool, isEnum, isInt, note = boolZeroes, intZeroes, intZeroes, "always 0"
		n = 1
	case s.Zero > 0:
		isBool, isEnum, isInt, note = 0.6, enumZeroOne, intZeroOne, "0 or 1"
	}
	isBool *= prior
	others := (1 - prior) * (enumShare*isEnum + (1-enumShare)*isInt) * math.Pow(n, rarer)
	p := isBool / (isBool + others)
	if p < leastBool {
		return TypeEstimate{Name: "int32", P: round(1 - p), Note: note + ": perhaps a bool, which reads alike", Settle: "a value above 1 would make it an int32 or an enum"}
	}
	return TypeEstimate{Name: "bool", P: round(p), Note: note, Settle: "a value above 1 would make it an int32 or an enum"}
}

// signedType chooses among the types that write ten bytes for some value.
func signedType(s *Varints) TypeEstimate {
	v := TypeEstimate{Name: "int32", P: 0.75, Note: rangeNote(s), Settle: "a value outside 32 bits would make it an int64"}
	if s.Lowest < math.MinInt32 || s.Max > math.MaxInt32 {
		v = TypeEstimate{Name: "int64", P: 0.85, Note: rangeNote(s), Settle: "the client's own code"}
		// Values that fill 64 bits on both sides of zero are hashes or ids.
		if high := s.Bits[63] + s.Bits[62] + s.Bits[61]; 2*high > s.N && s.N > 2 {
			v.Name, v.P, v.Note = "uint64", 0.7, "values fill 64 bits"
		}
	}
	return v
}

func rangeNote(s *Varints) string {
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
func fixedType(asFloat, asInt, n, small int64, width int) TypeEstimate {
	diff := float64(asInt-asFloat) / nat * math.Pow(float64(max(n, 1)), poolPower-1)
	p := 1 / (1 + math.Exp(-(diff + 1)))
	if p >= 0.5 {
		name := "double"
		if width == 32 {
			name = "float"
		}
		return TypeEstimate{Name: name, P: round(math.Min(p, 0.995)), Settle: "values that make no sense as floating point"}
	}
	v := TypeEstimate{Name: fmt.Sprintf("fixed%d", width), P: round(math.Min(1-p, 0.995) * 0.85), Settle: "a value near zero from below would make it signed"}
	if small > 0 {
		v.Name = "s" + v.Name
	}
	return v
}

// NumberType chooses the type of a field of numbers, packed or not, by its values and by
// what surrounds the field.
func NumberType(f *Field, v Judgement, u Use) TypeEstimate {
	switch {
	case v.Kind == wire.KindVarint || v.Element == PackedVarint:
		s := newVarints()
		if f.Varint != nil {
			s.merge(f.Varint)
		}
		if v.Kind == wire.KindPacked && f.Len != nil && f.Len.Elements != nil {
			s.merge(f.Len.elements())
		}
		if s.N == 0 {
			return TypeEstimate{Name: "int64", P: 0.3}
		}
		return varintType(s, u)
	case v.Kind == wire.KindFixed32 || v.Element == PackedFixed32:
		var asFloat, asInt, n, small int64
		if s := f.Fixed32; s != nil {
			asFloat, asInt, n, small = s.Float, s.Int, s.N, s.Small
		}
		if f.Len != nil && v.Kind == wire.KindPacked {
			asFloat, asInt, n = asFloat+f.Len.inAll(f.Len.Float32), asInt+f.Len.inAll(f.Len.Int32), n+f.Len.Bytes/4
		}
		return fixedType(asFloat, asInt, n, small, 32)
	}
	var asFloat, asInt, n, small int64
	if s := f.Fixed64; s != nil {
		asFloat, asInt, n, small = s.Float, s.Int, s.N, s.Small
	}
	if f.Len != nil && v.Kind == wire.KindPacked {
		asFloat, asInt, n = asFloat+f.Len.inAll(f.Len.Float64), asInt+f.Len.inAll(f.Len.Int64), n+f.Len.Bytes/8
	}
	return fixedType(asFloat, asInt, n, small, 64)
}
