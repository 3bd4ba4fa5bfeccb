package kind

import (
	"math"
	"math/bits"

	"unwire/decode/kind/bytecost"
)

// Costs are description lengths in thousandths of a nat: what a value costs to encode if a hypothesis is true
// (minimum description length; Rissanen, "Modeling by shortest data description", 1978). The hypothesis with the
// smallest sum over all samples is the most likely. Costs are integers, so that sums do not depend on the order
// of samples. Those of single values are in package bytecost.
//
// Where the numbers come from: the costs of text are rounded figures for the letter frequencies of English prose
// and source text. The costs of numbers follow from the encodings. The priors in kind.go, and the odds in
// fieldlabel.go and unify.go, were chosen by hand for the random schemas of corpus_test.go with seeds below
// 3,000 and the descriptors of google/protobuf and google/rpc. Digests, empty messages and empty payloads were
// adjusted for a recording of the stand-in (TestInferTraps). TestRandomSchemas measures with other seeds. No
// traffic of a live server was used, so the random values reflect our own idea of what is usual.

// costVarintLen is the cost of a packed varint by its encoded length in bytes, in thousandths of a nat: the rarity
// of that length, and seven bits for each byte.
var costVarintLen = func() (t [11]int64) {
	share := [11]float64{1: .66, 2: .2, 3: .06, 4: .025, 5: .03, 6: .005, 7: .003, 8: .003, 9: .005, 10: .009}
	for n := 1; n < len(t); n++ {
		t[n] = int64(bytecost.Nat * (-math.Log(share[n]) + float64(7*n)*math.Ln2))
	}
	return t
}()

// costLengths returns the cost in nats of varints by their lengths (values), and the cost of describing the
// distribution of lengths (shape). It chooses the cheaper of two descriptions: by lengths in bits, where the bits
// below the top one are incompressible, or by lengths in bytes, where seven bits each are. scale and thin correct
// for sampling, see Payloads.scale.
func costLengths(s *Varints, scale, thin float64) (values, shape float64) {
	if length := bits.Len64(s.Max); s.N == 1 && scale == 1 && thin == 1 && s.Negative == 0 && s.Bits[length] == 1 {
		one := &costOneLength[length]
		return one.values, one.shape
	}
	return computeLengths(s, scale, thin)
}

// A lengthsCost is a result of costLengths.
type lengthsCost struct{ values, shape float64 }

// costOneLength has the cost of a single varint that is not negative, by its length in bits. Most fields of a single
// message have one value.
var costOneLength = func() (t [65]lengthsCost) {
	for length := range t {
		s := &Varints{N: 1}
		s.Bits[length] = 1
		t[length].values, t[length].shape = computeLengths(s, 1, 1)
	}
	return t
}()

// computeLengths computes the result of costLengths.
func computeLengths(s *Varints, scale, thin float64) (values, shape float64) {
	var sizes [11]float64
	used, usedSizes := 0.0, 0.0
	n := float64(s.N)
	// Each parameter of a distribution costs half the logarithm of the sample's size.
	each := 0.5 * bytecost.Log(n+1)
	left := s.N
	for length := 0; length < len(s.Bits) && left > 0; length++ {
		count := s.Bits[length]
		if count == 0 {
			continue
		}
		left -= count
		c := float64(count)
		used++
		shape += 1.5 + each
		values -= c * bytecost.Log(c/n)
		if length > 1 {
			values += c * float64(length-1) * math.Ln2
		}
		sizes[max(length+6, 7)/7] += c
	}
	// Negative values in ten bytes have fewer free bits, which is ignored here.
	coarse, coarseShape := 0.0, 0.0
	for size, c := range sizes {
		if c > 0 {
			usedSizes++
			coarseShape += 0.7 + each
			coarse += c * (float64(7*size)*math.Ln2 - bytecost.Log(c/n))
		}
	}

	values = values*scale + costUnseen(used, scale*thin)
	coarse = coarse*scale + costUnseen(usedSizes, scale*thin)

	// Minimum description length: the shorter description is the one that counts.
	if coarse+coarseShape < values+shape {
		return coarse, coarseShape
	}
	return values, shape
}

// costVarints returns the cost in nats of a field's varints, in two encodings: each is the cost of describing every
// value separately, least the smaller cost if the distinct values are listed once and then selected.
func costVarints(s *Varints) (each, least float64) {
	if s.N == 0 {
		return 0, 0
	}
	values, shape := costLengths(s, 1, 1)
	odd := float64(s.Overlong) * costOverlong
	each = values + shape
	least = each
	if !s.Values.Full {
		least = min(each, costDistinct(s.Values, each/float64(s.N)))
	}
	return each + odd, least + odd
}

// costFixeds returns the cost in nats of a field's fixed-width values in two encodings; see costVarints.
func costFixeds(s *fixeds) (each, least float64) {
	each = float64(min(s.Float, s.Int)) / bytecost.Nat
	least = each
	if !s.Values.Full {
		least = min(each, costDistinct(s.Values, each/float64(s.N)))
	}
	return each, least
}

// costDistinct returns the cost in nats of values from a small set: each distinct value is described once, at the
// cost each, and every occurrence selects one.
func costDistinct(s *sketch, each float64) float64 {
	var n, cost float64
	for _, it := range s.Items {
		n += float64(it.Count)
	}
	for _, it := range s.Items {
		cost += each - float64(it.Count)*bytecost.Log(float64(it.Count)/n)
	}
	return cost + bytecost.Log(n)
}
