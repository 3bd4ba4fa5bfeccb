package kind

import "math/bits"

// A stratifiedSampler selects which of a field's payloads in one root message are scored: all of the first ones,
// and ever fewer of the following ones, which represent the others.
//
// Each doubling of the number of payloads is a stratum, of which an equal number is scored, at random positions
// in runs of equal length. The first payloads have most of the information: the hundredth payload of a message
// rarely changes a judgement. All payloads may refute hypotheses. Payloads are counted within one message, so
// that the order of messages does not matter.
//
// Limits: the first 32, then 16 per doubling.
type stratifiedSampler struct {
	// sample is the number of the root message that is being sampled.
	sample int64

	// count is the number of the field's payloads in that message so far.
	count int64

	// next is the index of the next payload that is scored.
	next int64
}

const (
	// scoredFirst is the number of first payloads of a field in a message that are all scored, i.e. whose costs are
	// computed.
	scoredFirst = 32

	// scoredThen is the number of payloads that are scored in each further doubling of the count.
	scoredThen = 16
)

// weight returns the number of payloads that the next payload represents in the sample; 0 if it is not scored.
// sample is the number of the root message.
func (s *stratifiedSampler) weight(sample int64) int64 {
	if s.sample != sample {
		*s = stratifiedSampler{sample: sample}
	}
	// Count every payload, but select only the planned one.
	k := s.count
	s.count++
	if k != s.next {
		return 0
	}
	w := stride(k)
	// The next run begins here. One payload of it is scored.
	s.next = k&^(w-1) + w
	s.next += int64(mix(uint64(s.next))) & (stride(s.next) - 1)
	return w
}

// stride returns the number of payloads that a scored payload represents if it is the k-th of its message, from 0.
func stride(k int64) int64 {
	if k < scoredFirst {
		return 1
	}
	return 1 << (bits.Len64(uint64(k)) - bits.Len64(scoredThen))
}
