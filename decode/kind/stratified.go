package kind

import "math/bits"

// A stratifiedSampler chooses which of a field's payloads in one root message are scored: the
// first ones, and of those behind them ever fewer, which stand for the others.
//
// Each doubling of their number is a stratum of which as many are scored, at random
// places of equal runs. What says most is in the first: the hundredth payload of one message rarely changes
// a judgement. But all are looked at for what refutes a reading. It is within one
// message that they are counted, so that the order of messages does not show.
//
// Limits: the first 32, then 16 each time that their number doubles.
type stratifiedSampler struct {
	sample int64 // the root message
	count  int64 // of payloads of the field in it
	next   int64 // that is scored
}

const (
	scoredFirst = 32
	scoredThen  = 16 // of each doubling
)

// weight is that of the next payload, in the given root message: how many it stands
// for. Those that are not scored have none.
func (s *stratifiedSampler) weight(sample int64) int64 {
	if s.sample != sample {
		*s = stratifiedSampler{sample: sample}
	}
	k := s.count
	s.count++
	if k != s.next {
		return 0
	}
	w := stride(k)
	// Where the next run of payloads begins, of which one is scored.
	s.next = k&^(w-1) + w
	s.next += int64(mix(uint64(s.next))) & (stride(s.next) - 1)
	return w
}

// stride is how many payloads one stands for that is the k-th.
func stride(k int64) int64 {
	if k < scoredFirst {
		return 1
	}
	return 1 << (bits.Len64(uint64(k)) - bits.Len64(scoredThen))
}
