// Package sizes compares the sizes of two fields' values: do they come from one distribution?
//
// A size is the length of a number in bits, or a class of lengths of texts and bytes.
package sizes

import "math"

// Parameters of the comparison, chosen on the tuning corpora of package eval.
const (
	// concentration is the concentration of the Dirichlet prior of a field's sizes. It is low because the values of
	// most fields have few sizes.
	concentration = 2.0
	// mostValues is the number of values of a field that count, because values of one field resemble each other.
	mostValues = 8.0
	// same is the probability that a field has the same sizes at two places where messages of one type occur. It limits
	// the evidence against merging.
	same = 0.85
	// mostEvidence is the maximum evidence for merging.
	mostEvidence = 1.5
	// exactLength is the length in bytes below which each length of a payload is a size of its own. Above it, sizes are
	// eighths of a doubling.
	exactLength = 32
)

// Counts are the numbers of a field's values by size.
type Counts [65]float64

// OfLength returns the size, an index of Counts, of a payload of n bytes.
func OfLength(n uint64) int {
	if n <= exactLength {
		return int(n)
	}
	return min(exactLength+int(8*math.Log2(float64(n)/exactLength)), len(Counts{})-1)
}

// share is the share of the values of all fields that have a size. Small sizes are more common.
func share(size int) float64 { return 0.28 / float64(size+2) }

// scale reduces the counts to at most mostValues in total, and returns the total.
func (c *Counts) scale() float64 {
	sum := 0.0
	for _, n := range c {
		sum += n
	}
	if sum <= mostValues {
		return sum
	}
	for i := range c {
		c[i] *= mostValues / sum
	}
	return mostValues
}

// Evidence returns the evidence, in nats, that two fields are the same field of one message type (above 0) or are not
// (below 0): the logarithm of the Bayes factor of one distribution of sizes against two, each with a Dirichlet prior.
//
// Source: Kass and Raftery, "Bayes factors", Journal of the American Statistical Association, 1995.
func Evidence(a, b Counts) float64 {
	n, m := a.scale(), b.scale()
	if n == 0 || m == 0 {
		return 0
	}
	one := lgamma(concentration+n) + lgamma(concentration+m) - lgamma(concentration) - lgamma(concentration+n+m)
	for size, x := range a {
		// A size that only one field has counts the same under both hypotheses.
		if y := b[size]; x > 0 && y > 0 {
			q := concentration * share(size)
			one += lgamma(q+x+y) + lgamma(q) - lgamma(q+x) - lgamma(q+y)
		}
	}
	return min(math.Log(1-same+same*math.Exp(one)), mostEvidence)
}

// lgamma returns the natural logarithm of the gamma function.
func lgamma(x float64) float64 {
	v, _ := math.Lgamma(x)
	return v
}
