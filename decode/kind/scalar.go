package kind

import (
	"math"

	"unwire/decode/kind/bytecost"
	"unwire/decode/value"
	"unwire/decode/wire"
)

// A scalarType is a possible type of a field of numbers, with the reasons for its probability.
type scalarType struct {
	// Type is the protobuf scalar type, such as "int32".
	Type string

	// P is first the type's log odds and, after the softmax over all possible types, its probability.
	P float64

	// Why are the observations that determined P, each with its weight; nil if they were not requested.
	Why []Feature
}

// softmax converts log odds to probabilities that sum to 1.
func softmax(in []scalarType) []scalarType {
	best := math.Inf(-1)
	for _, s := range in {
		best = max(best, s.P)
	}
	sum := 0.0
	for i := range in {
		in[i].P = math.Exp(in[i].P - best)
		sum += in[i].P
	}
	for i := range in {
		in[i].P /= sum
	}
	return in
}

// mostScalars is the maximum number of possible types of a field of numbers.
const mostScalars = 5

// scalarsOf appends to list, which is empty, the possible types of a field of numbers of kind k (varint, fixed32 or
// fixed64). why adds the reasons for their probabilities.
func scalarsOf(list []scalarType, f *Field, k wire.Kind, why bool) []scalarType {
	switch k {
	case wire.KindVarint:
		return varintScalars(list, f.Varint, why)
	case wire.KindFixed32:
		return fixedScalars(list, f.Fixed32, 32, why)
	}
	return fixedScalars(list, f.Fixed64, 64, why)
}

// The log-odds of the types of a varint field before its values are examined.
const (
	oddsInt    = 0.0
	oddsUint   = -1.2
	oddsBool   = -0.75
	oddsEnum   = -1.0
	oddsZigzag = -2.8
	oddsTime   = -1.5
)

// varintScalars appends to list, which is empty, the possible types of varints with their probabilities. Values alone
// cannot distinguish an enum from an int, nor a small int from other types. why adds the reasons.
func varintScalars(list []scalarType, s *Varints, why bool) []scalarType {
	if s == nil || s.N == 0 {
		return append(list, scalarType{Type: "int64", P: 1})
	}
	// Log-odds of prior and evidence add up.
	add := func(typ string, prior, weight float64, reason string) {
		t := scalarType{Type: typ, P: prior + weight}
		if why {
			t.Why = []Feature{{reason, round2(weight)}, {priorReason, prior}}
		}
		list = append(list, t)
	}
	n := bytecost.Log(float64(s.N))
	// Parity is evidence for zigzag. A negative number has ten bytes in zigzag only if it is enormous.
	zigzag := zigzagOdds(s)
	if s.Negative > 0 {
		small := s.Lowest > -1<<40
		add("int64", oddsInt, 0, "varints of ten bytes, as for negative numbers")
		if small {
			add("uint64", oddsUint, -3, "as uint64, all values would be just below 2^64")
			add("sint64", oddsZigzag, -4, "as sint64, the values would be enormous")
		} else {
			add("uint64", oddsUint, 1.2, "the values fill 64 bits")
			add("sint64", oddsZigzag, zigzag, "how well the share of odd numbers fits zigzag encoding")
		}
		return softmax(list)
	}

	// The range of the values determines which types compete.
	switch {
	case s.Max <= 1:
		// Bools usually take both values.
		both := 0.0
		if s.Zero > 0 && s.Zero < s.N {
			both = -0.5
		}
		add("bool", oddsBool, 0.3, "all values are 0 or 1")
		add("int64", oddsInt, -1.7-0.35*n+both, "an integer field rarely has only the values 0 and 1")
		add("enum", oddsEnum, -0.9-0.3*n+both, "an enum rarely has only the values 0 and 1")
		add("uint64", oddsUint, -1.7-0.35*n+both, "an integer field rarely has only the values 0 and 1")
		return softmax(list)
	case s.Max < 100:
		distinct := float64(len(s.Values.Items))
		// Values of enums repeat.
		few := 0.0
		if !s.Values.Full {
			few = min(max(bytecost.Log(float64(s.N)/distinct)-1, -0.5), 1.5)
		}
		add("int64", oddsInt, 0, "any number fits")
		add("enum", oddsEnum, few+0.6-float64(s.Max)/24, "small numbers that occur repeatedly")
	default:
		add("int64", oddsInt, 0, "any number fits")
	}
	add("uint64", oddsUint, 0, "no value is negative")
	add("sint64", oddsZigzag, zigzag, "how well the share of odd numbers fits zigzag encoding")
	if unit := value.TimeUnit(s.Min); unit != "" && unit == value.TimeUnit(s.Max) {
		w := 5.0
		if unit == "timestamp-s" {
			w = 2.6
		}
		add(unit, oddsTime, w+min(n, 2), "all values could be times between 2001 and 2065")
	}
	return softmax(list)
}

// zigzagOdds returns the log-odds of zigzag encoding (sint32, sint64), judged by the parity of the values. Half of
// ordinary numbers are odd, but zigzag makes all numbers even that are not negative. Round numbers are even, too:
// they are multiples of ten, or of four more often than of two alone.
func zigzagOdds(s *Varints) float64 {
	if s.N == 1 && s.Small+s.Negative == 0 && !s.Values.Full && len(s.Values.Items) == 1 {
		return oneZigzagOdds[s.Values.Items[0].Value%uint64(len(oneZigzagOdds))]
	}
	return computeZigzagOdds(s)
}

// oneZigzagOdds caches the log-odds of a single value from 8 on. They depend only on whether the value is a multiple of
// two, four and ten, and so on its remainder modulo 20. Most fields of a single message have one value.
var oneZigzagOdds = func() (t [20]float64) {
	for i := range uint64(len(t)) {
		s := newVarints()
		s.addValue(2*uint64(len(t))+i, 1)
		t[i] = computeZigzagOdds(s)
	}
	return t
}()

// computeZigzagOdds computes the result of zigzagOdds.
func computeZigzagOdds(s *Varints) float64 {
	all := float64(s.N - s.Small - s.Negative)
	seen, known, evens, tens := all, 0.0, 0.0, 0.0
	for _, it := range s.Values.Items {
		if it.Value < 8 {
			continue
		}
		if known++; it.Value%2 == 0 {
			evens++
		}
		if it.Value%10 == 0 {
			tens++
		}
	}
	// Repetitions are no evidence.
	if !s.Values.Full {
		seen = min(seen, known)
	}
	if seen < 1 {
		return -0.3
	}

	// Compare zigzag with several models of ordinary numbers.
	n := min(seen, mostParities)
	k := float64(s.Odd) / all * n
	twos := 0.5
	if even := all - float64(s.Odd); even > 0 {
		twos = float64(s.Twos) / even
	}
	fair := bytecost.BetaBinomial(evens, tens, 8, 32) + bytecost.BetaBinomial(n-k, twos*(n-k), 20, 20)
	round := bytecost.BetaBinomial(n, k, 1, 3)
	ints := bytecost.Log(0.9) + bytecost.BetaBinomial(n, k, 100, 100) + fair
	for _, other := range [...]float64{
		bytecost.Log(0.02) + bytecost.BetaBinomial(n, k, 20, 20) + fair,
		// Even numbers without a visible reason.
		bytecost.Log(0.006) + round + fair,
		bytecost.Log(0.07) + round + bytecost.BetaBinomial(evens, tens, 5, 1.5) + bytecost.BetaBinomial(n-k, twos*(n-k), 10, 10),
		bytecost.Log(0.07) + round + bytecost.BetaBinomial(evens, tens, 2, 8) + bytecost.BetaBinomial(n-k, twos*(n-k), 1, 9),
	} {
		ints = bytecost.LogSum(ints, other)
	}
	return min(max(bytecost.BetaBinomial(n, k, 1.2, 3)+fair-ints, -4), 12)
}

// mostParities is the maximum number of values whose parity counts as evidence, because values of one field
// resemble each other.
const mostParities = 300

// fixedScalars appends to list, which is empty, the possible types of fixed values of the given width in bits. why adds
// the reasons for their probabilities.
func fixedScalars(list []scalarType, s *fixeds, width int, why bool) []scalarType {
	names := [...]string{"float", "fixed32", "sfixed32"}
	if width == 64 {
		names = [...]string{"double", "fixed64", "sfixed64"}
	}
	if s == nil || s.N == 0 {
		return append(list, scalarType{Type: names[1], P: 1})
	}
	diff := float64(s.Int-s.Float) / bytecost.Nat * math.Pow(float64(s.N), poolPower-1)
	list = append(list, scalarType{Type: names[0], P: diff + 1}, scalarType{Type: names[1]})

	// Negative integers near zero suggest a signed type.
	signed, negatives := -1.5, "no value is just below zero"
	if s.Small > 0 {
		signed, negatives = 3, "some values are just below zero"
	}
	list = append(list, scalarType{Type: names[2], P: signed})
	if unit := value.TimeUnit(s.Min); unit != "" && unit == value.TimeUnit(s.Max) && (width == 64 || unit == "timestamp-s") {
		w := 2.0
		if unit == "timestamp-s" && width == 64 {
			w = 0.5
		}
		list = append(list, scalarType{Type: unit, P: w})
	}
	if why {
		list[0].Why = []Feature{{"the magnitudes and digits, compared with typical values of " + names[0], round2(diff)}, {priorReason, 1}}
		for i, reason := range []string{"any number fits", negatives, "all values could be times between 2001 and 2065"}[:len(list)-1] {
			list[i+1].Why = []Feature{{reason, list[i+1].P}}
		}
	}
	return softmax(list)
}
