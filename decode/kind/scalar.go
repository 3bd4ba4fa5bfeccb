package kind

import (
	"math"

	"unwire/decode/value"
	"unwire/decode/wire"
)

// A scalar is one type of a field of numbers, with its probability.
type scalar struct {
	Type string
	P    float64
	Why  []Feature
}

// weighed turns log-odds into probabilities.
func weighed(in []scalar) []scalar {
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

// scalarsOf returns the types of a field of numbers.
func scalarsOf(f *Field, k wire.Kind) []scalar {
	switch k {
	case wire.KindVarint:
		return varintScalars(f.Varint)
	case wire.KindFixed32:
		return fixedScalars(f.Fixed32, 32)
	}
	return fixedScalars(f.Fixed64, 64)
}

// The log-odds of a varint field's types before its values are looked at.
const (
	oddsInt    = 0.0
	oddsUint   = -1.2
	oddsBool   = -0.75
	oddsEnum   = -1.0
	oddsZigzag = -2.8
	oddsTime   = -1.5
)

// varintScalars weighs the types of varints. No value tells an enum from an int,
// nor a small int from any other.
func varintScalars(s *Varints) []scalar {
	if s == nil || s.N == 0 {
		return []scalar{{Type: "int64", P: 1}}
	}
	var list []scalar
	add := func(typ string, prior, weight float64, why string) {
		list = append(list, scalar{typ, prior + weight, []Feature{{why, round2(weight)}, {"how common it is", prior}}})
	}
	n := math.Log(float64(s.N))
	// zigzagOdds is about parity; what is negative takes ten bytes only as an enormous zigzag.
	zigzag := zigzagOdds(s)
	if s.Negative > 0 {
		small := s.Lowest > -1<<40
		add("int64", oddsInt, 0, "ten bytes: below zero")
		if small {
			add("uint64", oddsUint, -3, "values just below 2^64")
			add("sint64", oddsZigzag, -4, "zigzag would be enormous")
		} else {
			add("uint64", oddsUint, 1.2, "values fill 64 bits")
			add("sint64", oddsZigzag, zigzag, "parity of the values")
		}
		return weighed(list)
	}
	switch {
	case s.Max <= 1:
		both := 0.0
		if s.Zero > 0 && s.Zero < s.N {
			both = -0.5
		}
		add("bool", oddsBool, 0.3, "0 or 1")
		add("int64", oddsInt, -1.7-0.35*n+both, "an int is rarely only 0 and 1")
		add("enum", oddsEnum, -0.9-0.3*n+both, "an enum is rarely only 0 and 1")
		add("uint64", oddsUint, -1.7-0.35*n+both, "an int is rarely only 0 and 1")
		return weighed(list)
	case s.Max < 100:
		distinct := float64(len(s.Values.Items))
		few := 0.0
		if !s.Values.Full {
			few = min(max(math.Log(float64(s.N)/distinct)-1, -0.5), 1.5)
		}
		add("int64", oddsInt, 0, "a number")
		add("enum", oddsEnum, few+0.6-float64(s.Max)/24, "small numbers that repeat")
	default:
		add("int64", oddsInt, 0, "a number")
	}
	add("uint64", oddsUint, 0, "never negative")
	add("sint64", oddsZigzag, zigzag, "parity of the values")
	if unit := value.TimeUnit(s.Min); unit != "" && unit == value.TimeUnit(s.Max) {
		w := 5.0
		if unit == "timestamp-s" {
			w = 2.6
		}
		add(unit, oddsTime, w+min(n, 2), "times between 2001 and 2065")
	}
	return weighed(list)
}

// zigzagOdds is the log-odds of zigzag in the parity of values: half of ordinary
// numbers are odd, and zigzag makes those that are not negative even. Round numbers
// are even too: they are multiples of ten, or of four more often than of two alone.
func zigzagOdds(s *Varints) float64 {
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
	if !s.Values.Full { // what repeats says nothing new
		seen = min(seen, known)
	}
	if seen < 1 {
		return -0.3
	}
	n := min(seen, mostParities)
	k := float64(s.Odd) / all * n
	twos := 0.5
	if even := all - float64(s.Odd); even > 0 {
		twos = float64(s.Twos) / even
	}
	fair := betaBinomial(evens, tens, 8, 32) + betaBinomial(n-k, twos*(n-k), 20, 20)
	round := betaBinomial(n, k, 1, 3)
	ints := math.Log(0.9) + betaBinomial(n, k, 100, 100) + fair
	for _, other := range [...]float64{
		math.Log(0.02) + betaBinomial(n, k, 20, 20) + fair,
		math.Log(0.006) + round + fair, // as many even for no reason that shows
		math.Log(0.07) + round + betaBinomial(evens, tens, 5, 1.5) + betaBinomial(n-k, twos*(n-k), 10, 10),
		math.Log(0.07) + round + betaBinomial(evens, tens, 2, 8) + betaBinomial(n-k, twos*(n-k), 1, 9),
	} {
		ints = logSum(ints, other)
	}
	return min(max(betaBinomial(n, k, 1.2, 3)+fair-ints, -4), 12)
}

// mostParities is how many values' parities count: those of one field resemble each other.
const mostParities = 300

// betaBinomial is the log-likelihood of a run of k successes in n, the chance of one being drawn from Beta(a, b).
func betaBinomial(n, k, a, b float64) float64 {
	l := func(x float64) float64 { v, _ := math.Lgamma(x); return v }
	return l(k+a) + l(n-k+b) - l(n+a+b) - l(a) - l(b) + l(a+b)
}

func logSum(a, b float64) float64 {
	if a < b {
		a, b = b, a
	}
	return a + math.Log1p(math.Exp(b-a))
}

// fixedScalars weighs the types of fixed values of so many bits.
func fixedScalars(s *fixeds, width int) []scalar {
	names := [...]string{"float", "fixed32", "sfixed32"}
	if width == 64 {
		names = [...]string{"double", "fixed64", "sfixed64"}
	}
	if s == nil || s.N == 0 {
		return []scalar{{Type: names[1], P: 1}}
	}
	diff := float64(s.Int-s.Float) / nat * math.Pow(float64(s.N), poolPower-1)
	list := []scalar{
		{names[0], diff + 1, []Feature{{"magnitudes and digits of a " + names[0], round2(diff)}, {"how common it is", 1}}},
		{names[1], 0, []Feature{{"a number", 0}}},
	}
	signed := -1.5
	if s.Small > 0 {
		signed = 3
	}
	list = append(list, scalar{names[2], signed, []Feature{{"values close below zero", signed}}})
	if unit := value.TimeUnit(s.Min); unit != "" && unit == value.TimeUnit(s.Max) && (width == 64 || unit == "timestamp-s") {
		w := 2.0
		if unit == "timestamp-s" && width == 64 {
			w = 0.5
		}
		list = append(list, scalar{unit, w, []Feature{{"times between 2001 and 2065", w}}})
	}
	return weighed(list)
}
