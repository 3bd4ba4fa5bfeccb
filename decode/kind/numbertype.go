package kind

import (
	"fmt"
	"math"

	"unwire/decode/kind/bytecost"
	"unwire/decode/wire"
)

// A TypeEstimate is the most probable protobuf type of a field of numbers.
type TypeEstimate struct {
	// Name is the name of the type, such as "int32".
	Name string

	// P is the probability of the type, from 0 to 1.
	P float64

	// Note describes the range of values in words, for a comment in a schema; or "".
	Note string

	// ResolvedBy describes an observation that would decide whether the type is right; or "".
	ResolvedBy string
}

// varintType chooses a type for varints.
//
// Values alone cannot distinguish an enum from an int32, nor an int32 from a uint32 or a small int64. The choice
// is the most usual type that represents all values seen. These types decode each other's small values
// identically, so a wrong choice has no effect until a value outside the range occurs.
func varintType(s *Varints, u Use) TypeEstimate {
	var buf [mostScalars]scalarType
	for _, t := range varintScalars(buf[:0], s, false) {
		if t.Type == "sint64" && t.P > 0.5 {
			v := TypeEstimate{Name: "sint32", P: round(t.P), Note: "zigzag encoding, judging by the share of odd numbers", ResolvedBy: "the client's source code"}
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
		v := TypeEstimate{Name: "int64", P: 0.8, Note: rangeNote(s), ResolvedBy: "a value with the top bit set could be negative, or a hash"}
		switch {
		// No time or size is that large.
		case s.Bits[63] > 0:
			v.Name, v.P = "uint64", 0.6
		case s.Min > 1_000_000_000_000 && s.Max < 4_200_000_000_000:
			v.Note += ", probably milliseconds since 1970"
			v.P = 0.9
		}
		return v
	case s.Max > math.MaxInt32:
		if 3*s.Bits[32] > s.N {
			return TypeEstimate{Name: "uint32", P: 0.6, Note: rangeNote(s) + ", and the values use all 32 bits", ResolvedBy: "a value above 4294967295"}
		}
		return TypeEstimate{Name: "int64", P: 0.55, Note: rangeNote(s), ResolvedBy: "a value above 4294967295"}
	case s.Epoch == s.N && s.N > 1:
		return TypeEstimate{
			Name: "int64", P: 0.8, Note: rangeNote(s) + ", probably seconds since 1970",
			ResolvedBy: "a value above 4294967295 or below 0",
		}
	}

	// Small non-negative values: an int32, unless they repeat like an enum's.
	v := TypeEstimate{Name: "int32", P: 0.55, Note: rangeNote(s), ResolvedBy: "a negative value, or one above 2147483647"}
	distinct := int64(len(s.Values.Items))
	switch {
	case !s.Values.Full && s.Max < 64 && distinct*3 <= s.N && s.N >= 6:
		v.P = 0.25
		v.Note += fmt.Sprintf(", %d distinct values: int32 or enum, which have the same encoding", distinct)
		v.ResolvedBy = "the client's source code would show whether it is enum or int32, which have the same encoding"
	case s.N >= 10:
		v.P = 0.75
	}
	return v
}

// A Use describes where a field of numbers is used. The zero value means that this is unknown.
type Use struct {
	// Number is the number of the field. The share of bools among fields depends on it.
	Number int32

	// Fresh is the share of the field's messages that are not copies of messages at other fields, from
	// 0 to 1; 0 means all.
	Fresh float64

	// Key means that the field is the key of a map entry.
	Key bool
}

// boolShare is the share of bools among single varint fields, by field number up to five, in the definitions of
// genproto. The first fields are rarely bools, but counts or ids.
var boolShare = [...]float64{0.36, 0.21, 0.24, 0.40, 0.38, 0.37}

// enumShare is the share of enums among varint fields that are not bools. The following constants are the shares of
// enums and of ints whose samples are all 1 (AlwaysOne), or only 0 and 1 (ZeroOne). They were chosen by hand on
// generated tuning corpora.
const (
	enumShare     = 0.35
	enumAlwaysOne = 0.33
	intAlwaysOne  = 0.12
	enumZeroOne   = 0.15
	intZeroOne    = 0.08

	// rarer is the exponent by which these shares decrease with the number of samples.
	rarer = -0.3

	// leastBool is the probability below which an int is chosen, because an int represents any later value.
	leastBool = 0.6

	// boolZeroes and intZeroes are the shares of bools and ints that are always zero.
	boolZeroes, intZeroes = 0.3, 0.45
)

// boolType chooses a type if all values are 0 and 1. That becomes less likely for ints and enums with more
// samples, but never rare. Unless a bool is much more likely, an int is the safer declaration, because it
// represents a later 2.
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

	// Bayes' rule, with shares as likelihoods.
	isBool *= prior
	others := (1 - prior) * (enumShare*isEnum + (1-enumShare)*isInt) * math.Pow(n, rarer)
	p := isBool / (isBool + others)
	if p < leastBool {
		return TypeEstimate{Name: "int32", P: round(1 - p), Note: note + ": int32 or bool, which have the same encoding", ResolvedBy: "a value above 1 would rule out bool"}
	}
	return TypeEstimate{Name: "bool", P: round(p), Note: note, ResolvedBy: "a value above 1 would rule out bool"}
}

// signedType chooses a type for varints some of which have ten bytes, i.e. are negative or at least 2^63.
func signedType(s *Varints) TypeEstimate {
	v := TypeEstimate{Name: "int32", P: 0.75, Note: rangeNote(s), ResolvedBy: "a value outside 32 bits would rule out int32"}
	if s.Lowest < math.MinInt32 || s.Max > math.MaxInt32 {
		v = TypeEstimate{Name: "int64", P: 0.85, Note: rangeNote(s), ResolvedBy: "the client's source code"}
		// Values that fill 64 bits on both sides of zero are hashes or ids.
		if high := s.Bits[63] + s.Bits[62] + s.Bits[61]; 2*high > s.N && s.N > 2 {
			v.Name, v.P, v.Note = "uint64", 0.7, "values fill 64 bits"
		}
	}
	return v
}

// rangeNote describes the range of the values in words.
func rangeNote(s *Varints) string {
	lo := int64(s.Min)
	if s.Negative > 0 {
		lo = s.Lowest
	}
	// Max is meaningless.
	if s.Negative == s.N {
		return fmt.Sprintf("%d and greater, negative", lo)
	}
	if uint64(lo) == s.Max {
		return fmt.Sprintf("always %d", s.Max)
	}
	return fmt.Sprintf("%d to %d", lo, s.Max)
}

// fixedType chooses between floating-point and integer types of width bits. asFloat and asInt are the costs of the
// n values under both hypotheses; small counts negative integers near zero.
func fixedType(asFloat, asInt, n, small int64, width int) TypeEstimate {
	// The difference of the costs is the log-odds of floating point.
	diff := float64(asInt-asFloat) / bytecost.Nat * math.Pow(float64(max(n, 1)), poolPower-1)
	p := 1 / (1 + math.Exp(-(diff + 1)))
	if p >= 0.5 {
		name := "double"
		if width == 32 {
			name = "float"
		}
		return TypeEstimate{Name: name, P: round(math.Min(p, 0.995)), ResolvedBy: "values that make no sense as floating point"}
	}
	v := TypeEstimate{Name: fmt.Sprintf("fixed%d", width), P: round(math.Min(1-p, 0.995) * 0.85), ResolvedBy: "a small negative value would show that it is signed"}
	if small > 0 {
		v.Name = "s" + v.Name
	}
	return v
}

// NumberType chooses the protobuf type of a field of numbers, packed or not, whose kind v has determined, by its
// values and its use.
func NumberType(f *Field, v Judgement, u Use) TypeEstimate {
	switch {
	case v.Kind == wire.KindVarint || v.Element == PackedVarint:
		// Elements of packed lists are evidence as well as single values.
		s := newVarints()
		if f.Varint != nil {
			s.merge(f.Varint)
		}

		// A packed list without statistics of its elements adds nothing.
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
			// Only a sample of the payloads was read as numbers, so its counts are extrapolated.
			asFloat, asInt, n = asFloat+f.Len.extrapolate(f.Len.Float32), asInt+f.Len.extrapolate(f.Len.Int32), n+f.Len.Bytes/4
		}
		return fixedType(asFloat, asInt, n, small, 32)
	}

	var asFloat, asInt, n, small int64
	if s := f.Fixed64; s != nil {
		asFloat, asInt, n, small = s.Float, s.Int, s.N, s.Small
	}
	if f.Len != nil && v.Kind == wire.KindPacked {
		asFloat, asInt, n = asFloat+f.Len.extrapolate(f.Len.Float64), asInt+f.Len.extrapolate(f.Len.Int64), n+f.Len.Bytes/8
	}
	return fixedType(asFloat, asInt, n, small, 64)
}
