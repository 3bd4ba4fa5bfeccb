package kind

import (
	"math"
	"slices"

	"unwire/decode/kind/bytecost"
)

// A Cost is the description length, in nats, of all samples of a message type, as four summands.
type Cost struct {
	// Once is the cost of describing the fields. Each is the cost of the values if each is described on its own,
	// and Values if repeated values are described once. Shape is the cost of the presence and the number of fields
	// in each message.
	Once, Each, Values, Shape float64
}

// Of returns the total cost if only the share novelty (from 0 to 1) of the payloads is new. Repetition of payloads
// or of the values inside them is counted only once.
func (c Cost) Of(novelty float64) float64 {
	return c.Once + min(c.Values, c.Each*novelty) + c.Shape*novelty
}

// addCost adds the cost o to c.
func (c *Cost) addCost(o Cost) {
	c.Once += o.Once
	c.Each += o.Each
	c.Values += o.Values
	c.Shape += o.Shape
}

// Costs caches the description lengths of message types, which are computed recursively.
type Costs map[*Message]Cost

// messageCost returns the description length of all samples of m.
func (c Costs) messageCost(m *Message) Cost {
	sum, ok := c[m]
	if ok {
		return sum
	}
	tally := NewTally(m.Samples)
	for n, f := range m.fields {
		tally.Add(f, n, c.Payloads(f))
		if f.Group != nil {
			inner := c.messageCost(f.Group)
			inner.Once += costNewGroup
			sum.addCost(inner)
		}
	}
	sum.addCost(tally.Sum())
	c[m] = sum
	return sum
}

// Payloads returns the description length of a field's payloads as messages, in nats.
func (c Costs) Payloads(f *Field) float64 {
	if f.Child == nil {
		return 0
	}
	return c.messageCost(f.Child).Of(f.Len.Novelty())
}

// A costTally sums the description lengths of the fields of one message type.
type costTally struct {
	// samples is the number of messages.
	samples int64

	// last is the number of the field that was added last.
	last int32

	// sum is the cost of all fields that were added so far, in nats.
	sum Cost

	// few and more have, for each added field in order, the share of the cost that encodes the lengths of its
	// payloads. It is subtracted for the last field of each message, whose length follows from the message's length.
	// few are the first fields, so that a tally of a small message needs no memory of its own, and more the others.
	few  [8]lengthCost
	more []lengthCost

	// fields is the number of fields that were added.
	fields int
}

// A lengthCost is the cost of the lengths of a field's payloads.
type lengthCost struct {
	// seen is the number of messages that contain the field.
	seen int64

	// each and values are the costs in nats of the length of the payload in one message: each if every payload is encoded
	// on its own, values if repeated payloads are encoded once.
	each, values float64
}

// NewTally returns an empty tally for a message type with the given number of messages.
func NewTally(samples int64) costTally { return costTally{samples: samples} }

// Add adds the cost of a field. messageCost is the cost of the field's payloads as messages, in nats. Fields must
// be added in ascending order of their numbers.
func (t *costTally) Add(f *Field, number int32, messageCost float64) {
	c := Cost{
		Once:  costNewField + costNumber*bytecost.Log(float64(number-t.last)),
		Shape: costPresence(f.Seen, t.samples),
	}

	// The costs are description lengths in nats.
	t.last = number
	if !f.hasOneWireType() {
		c.Once += costOddWire * float64(JudgeField(f, messageCost).Odd)
	}
	if f.Most > 1 {
		// A repeated field must state after each element whether another one follows.
		c.Shape += 0.7 * float64(f.Occurs)
	}
	if f.outOfOrder(number) {
		c.Once += costOutOfOrder
	}
	if f.Varint != nil {
		each, values := costVarints(f.Varint)
		c.Each += each
		c.Values += values
		c.Shape += float64(f.Varint.Zero) / 2
	}

	// Both sizes of fixed numbers have the same costs.
	for _, s := range []*fixeds{f.Fixed32, f.Fixed64} {
		if s != nil {
			each, values := costFixeds(s)
			if c.Once += costFixedField; s.random() {
				c.Once += costHashes
			}
			c.Each += each
			c.Values += values
			c.Shape += float64(s.Zero)
		}
	}

	// Payloads: the cheapest hypothesis, and the length of each.
	last := lengthCost{seen: f.Seen}
	if l := f.Len; l != nil {
		least := math.Inf(1)
		for _, h := range l.hypotheses(messageCost) {
			least = min(least, h.cost)
		}
		novelty := l.Novelty()
		size := 1 + bytecost.Log(1+float64(l.Bytes)/float64(l.N))
		odd := costOverlong * float64(l.Overlong)
		c.Each += least/novelty + size*float64(l.N) + odd
		c.Values += least + size*float64(l.N)*novelty + odd
		last.each, last.values = size, size*novelty
	}
	if t.fields++; t.fields <= len(t.few) {
		t.few[t.fields-1] = last
	} else {
		t.more = append(t.more, last)
	}
	t.sum.addCost(c)
}

// Sum returns the cost of the messages. The length of a message is known, so the length of its last field is
// free.
func (t *costTally) Sum() Cost {
	sum, rest := t.sum, t.samples
	for _, e := range slices.Backward(append(t.few[:min(t.fields, len(t.few))], t.more...)) {
		n := min(rest, e.seen)
		rest -= n
		sum.Each -= float64(n) * e.each
		sum.Values -= float64(n) * e.values
	}
	return sum
}

// costPresence returns the cost in nats of stating which of n messages have a field, if seen messages have it.
func costPresence(seen, n int64) float64 {
	k, rest := float64(seen), float64(max(n-seen, 0))
	total := k + rest + 1
	cost := -k * bytecost.Log((k+0.5)/total)
	if rest > 0 {
		cost -= rest * bytecost.Log((rest+0.5)/total)
	}
	return cost
}

// outOfOrder reports whether the field, with the given number, ever occurred after one with a greater number, which
// common encoders do only for fields of a oneof.
func (f *Field) outOfOrder(number int32) bool {
	return f.Before.HasAbove(number)
}
