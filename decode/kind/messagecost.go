package kind

import (
	"math"
	"slices"
)

// A Cost is what samples of a message cost, in nats: what is described once; the
// values, one by one and with their repetition accounted for; and the shape,
// which fields there are how often.
type Cost struct {
	Once, Each, Values, Shape float64
}

// Of is the cost of payloads of which only a share is new: there is no need to
// tell twice what repeats, be it the payload or the values in it.
func (c Cost) Of(novelty float64) float64 {
	return c.Once + min(c.Values, c.Each*novelty) + c.Shape*novelty
}

// addCost adds the cost of another part of the description.
func (c *Cost) addCost(o Cost) {
	c.Once += o.Once
	c.Each += o.Each
	c.Values += o.Values
	c.Shape += o.Shape
}

// A Costs computes the costs of messages, each once.
type Costs map[*Message]Cost

// message is the cost of all samples of m.
func (c Costs) message(m *Message) Cost {
	sum, ok := c[m]
	if ok {
		return sum
	}
	tally := NewTally(m.Samples)
	for _, n := range m.Numbers() {
		f := m.Field(n)
		tally.Add(f, n, c.Payloads(f))
		if f.Group != nil {
			inner := c.message(f.Group)
			inner.Once += costNewGroup
			sum.addCost(inner)
		}
	}
	sum.addCost(tally.Sum())
	c[m] = sum
	return sum
}

// Payloads is the cost of a field's payloads as messages, in nats.
func (c Costs) Payloads(f *Field) float64 {
	if f.Child == nil {
		return 0
	}
	return c.message(f.Child).Of(f.Len.Novelty())
}

// A tally sums the cost of the fields of one message type.
type tally struct {
	samples int64
	last    int32 // the number that was added last
	sum     Cost
	ends    []end
}

// An end is what the lengths of a field's payloads cost.
type end struct {
	seen         int64
	each, values float64 // of one
}

// NewTally is for fields of so many messages.
func NewTally(samples int64) *tally { return &tally{samples: samples} }

// Add adds a field, given the cost of its payloads as messages. Numbers ascend.
func (t *tally) Add(f *Field, number int32, messageCost float64) {
	c := Cost{
		Once:  costNewField + costNumber*math.Log(float64(number-t.last)),
		Shape: costPresence(f.Seen, t.samples),
	}
	t.last = number
	if !f.pure() {
		c.Once += costOddWire * float64(JudgeField(f, messageCost).Odd)
	}
	if f.Most > 1 {
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
	last := end{seen: f.Seen}
	if l := f.Len; l != nil {
		least := math.Inf(1)
		for _, h := range hypotheses(l, messageCost) {
			least = min(least, h.cost)
		}
		mean := float64(l.Bytes) / float64(l.N)
		novelty := l.Novelty()
		size := 1 + math.Log(1+mean)
		odd := costOverlong * float64(l.Overlong)
		c.Each += least/novelty + size*float64(l.N) + odd
		c.Values += least + size*float64(l.N)*novelty + odd
		last.each, last.values = size, size*novelty
	}
	t.ends = append(t.ends, last)
	t.sum.addCost(c)
}

// Sum is the cost of the messages. How long a message is is known, so the length of
// what ends it need not be told: that it reaches just to the end is no accident.
func (t *tally) Sum() Cost {
	sum, rest := t.sum, t.samples
	for _, e := range slices.Backward(t.ends) {
		n := min(rest, e.seen)
		rest -= n
		sum.Each -= float64(n) * e.each
		sum.Values -= float64(n) * e.values
	}
	return sum
}

// costPresence is the cost of saying which of n messages have the field.
func costPresence(seen, n int64) float64 {
	k, rest := float64(seen), float64(max(n-seen, 0))
	total := k + rest + 1
	return -k*math.Log((k+0.5)/total) - rest*math.Log((rest+0.5)/total)
}

// outOfOrder reports whether the field ever came behind a greater number,
// which no common encoder does, but for a oneof's.
func (f *Field) outOfOrder(number int32) bool {
	for _, n := range f.Before.List() {
		if n > number {
			return true
		}
	}
	return false
}
