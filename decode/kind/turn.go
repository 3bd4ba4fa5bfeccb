package kind

import "math/bits"

// A turn chooses which of a field's payloads in one root message are scored: the
// first ones, and of those behind them ever fewer, which stand for the others.
//
// What says most is in the first: the hundredth payload of one message rarely changes
// a verdict. But all are looked at for what refutes a reading. It is within one
// message that they are counted, so that the order of messages does not show.
//
// Limits: the first 32, then 16 each time that their number doubles.
type turn struct {
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
func (u *turn) weight(sample int64) int64 {
	if u.sample != sample {
		*u = turn{sample: sample}
	}
	k := u.count
	u.count++
	if k != u.next {
		return 0
	}
	w := stride(k)
	// Where the next run of payloads begins, of which one is scored.
	u.next = k&^(w-1) + w
	u.next += int64(mix(uint64(u.next))) & (stride(u.next) - 1)
	return w
}

// stride is how many payloads one stands for that is the k-th.
func stride(k int64) int64 {
	if k < scoredFirst {
		return 1
	}
	return 1 << (bits.Len64(uint64(k)) - bits.Len64(scoredThen))
}
