// Package bytecost says what the bytes of one value cost to encode if they are text, numbers, or neither: description
// lengths in thousandths of a nat.
//
// It has no statistics over several values: those, and the choice between the hypotheses, are in package kind, which
// also uses the logarithms of this package.
package bytecost

import "math"

const (
	// Nat is one nat (the information of an event with probability 1/e) in the unit of all costs: thousandths of a
	// nat. A cost is a description length, i.e. the negative logarithm of a probability.
	Nat = 1000

	// RawByte is the cost of a random byte, ln 256, in thousandths of a nat.
	RawByte = 5545
)

const (
	// Head is the number of bytes at the beginning of a payload that are scored. The rest is assumed to cost as
	// much per byte.
	Head = 512

	// ProseLen is the size in bytes from which a text may be prose, so that an unusual order of its characters is
	// no evidence against text.
	ProseLen = 32
)

// Log returns the natural logarithm of x, as math.Log does. Counts and ratios of small counts are found in a table: the
// statistics of a small message need hundreds of them.
func Log(x float64) float64 {
	if i := 4 * x; i >= 0 && i < float64(len(quarterLogs)) && i == float64(int(i)) {
		return quarterLogs[int(i)]
	}
	return math.Log(x)
}

// quarterLogs has the logarithm of each quarter i/4, by i.
var quarterLogs = func() (t [4 * 64]float64) {
	for i := range t {
		t[i] = math.Log(float64(i) / 4)
	}
	return t
}()

// BetaBinomial returns the log-likelihood of a sequence with k successes in n trials, whose probability has a
// Beta(a, b) prior.
func BetaBinomial(n, k, a, b float64) float64 {
	l := func(x float64) float64 { v, _ := math.Lgamma(x); return v }
	return l(k+a) + l(n-k+b) - l(n+a+b) - l(a) - l(b) + l(a+b)
}

// LogSum returns ln(e^a + e^b) without overflow.
func LogSum(a, b float64) float64 {
	if a < b {
		a, b = b, a
	}
	return a + math.Log1p(math.Exp(b-a))
}

// Extrapolate estimates the cost of a payload of size bytes from the cost of its first Head bytes.
func Extrapolate(cost int64, size int) int64 {
	if size <= Head {
		return cost
	}
	return int64(float64(cost) * float64(size) / Head)
}
