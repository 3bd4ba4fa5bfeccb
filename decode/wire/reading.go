package wire

import (
	"math"
	"slices"
)

// A Kind is what a field's bytes may stand for, in the contract's words.
type Kind string

const (
	KindMessage Kind = "message"
	KindString  Kind = "string"
	KindBytes   Kind = "bytes"
	KindPacked  Kind = "packed"
	KindVarint  Kind = "varint"
	KindFixed32 Kind = "fixed32"
	KindFixed64 Kind = "fixed64"
	KindGroup   Kind = "group"
)

// A Reading is one way to understand a field, with its probability.
//
// Shape: Type is finer than Kind: for varint int64, uint64, sint64, bool, enum
// or timestamp-s, -ms, -us, -ns; for fixed32 float, fixed32, sfixed32; for fixed64
// double, fixed64, sfixed64 or timestamp-ns …; for packed "packed varint",
// "packed fixed32", "packed fixed64"; else the kind. Value is a string, []byte,
// int64, uint64, bool, float32, float64 or []uint64; nil for a message or a
// group, whose fields are the node's children.
type Reading struct {
	Kind  Kind
	Type  string
	P     float64 // of this kind; of this type, where one kind has several
	Value any
	Why   []Feature
}

// A Feature is one part of the evidence for a reading.
type Feature struct {
	Name string
	Bits float64 // log2 of the odds: of a payload against bytes without structure, of a scalar its weight
}

const (
	leastP = 0.001 // readings less likely than this are left out

	// The features are not independent, so their sum overstates the case: the
	// log-odds are divided by this. Fitted on the corpus of reading_test.go.
	temperature = 2.0

	impossible = math.MaxFloat32
)

// prior is how often a length-delimited field is what, in bits, before its
// bytes are looked at. Counted, roughly, over public .proto files.
var prior = [numPayloadKinds]float64{asMessage: 1.3, asString: 1.3, asBytes: 3.5, asPackedVarint: 5, asPackedFixed32: 6, asPackedFixed64: 6}

// The ways to read a length-delimited payload.
const (
	asMessage = iota
	asString
	asBytes
	asPackedVarint
	asPackedFixed32
	asPackedFixed64
	numPayloadKinds
)

var payloadKinds = [numPayloadKinds]struct {
	kind Kind
	typ  string
}{
	{KindMessage, "message"},
	{KindString, "string"},
	{KindBytes, "bytes"},
	{KindPacked, "packed varint"},
	{KindPacked, "packed fixed32"},
	{KindPacked, "packed fixed64"},
}

// A payloadCost is how many bits it takes to write a payload down as each kind.
type payloadCost [numPayloadKinds]float64

// least is the cost of the payload as its likeliest kind, prior included.
func (c *payloadCost) least() float64 {
	least := impossible
	for k, bits := range c {
		least = min(least, bits+prior[k])
	}
	return least
}

// A Reader finds the readings of a tree's nodes. It looks at the tree once;
// use it instead of Readings where many nodes are asked for. It is not for
// several goroutines at once.
//
// Shape: the likelihood of a kind is 2 to the minus its code length: the number
// of bits that a simple code made for that kind needs for these bytes. Text
// takes about five bits a character, and a control character sixteen; random
// bytes eight; a message the bits of its field numbers (small, ascending), wire
// types, lengths and values, and its sub-fields in turn; packed numbers by
// magnitude. With priors and Bayes' rule that gives the probabilities. A
// nonsense parse needs more bits than the bytes have, so it loses by itself.
// Source: RESEARCH.md#readings
type Reader struct {
	t     *Tree
	first int32     // the node of fields[0]
	cost  []float64 // of each node's fields read as a message; of a leaf 0

	last     int32
	lastCost payloadCost
}

// NewReader looks at all of t.
func NewReader(t *Tree) *Reader { return newReader(t, 0, int32(len(t.Nodes))) }

// newReader looks at the nodes from first to before end, a subtree.
func newReader(t *Tree, first, end int32) *Reader {
	r := &Reader{t: t, first: first, cost: make([]float64, end-first)}
	for i := end - 1; i >= first; i-- {
		if t.Nodes[i].First != None {
			r.cost[i-first] = r.messageBits(i)
		}
	}
	return r
}

// Readings returns the readings of node i, the best first. Their probabilities
// sum to 1.
//
// Shape: of the root, those of all the data. Garbage is bytes.
// Limits: it looks at all nodes below i; see Reader.
func Readings(t *Tree, i int32) []Reading {
	end := i + 1
	for end < int32(len(t.Nodes)) && t.Nodes[end].Off < t.Nodes[i].End {
		end++
	}
	return newReader(t, i, end).Readings(i)
}

// Readings returns the readings of node i, as the function of that name.
func (r *Reader) Readings(i int32) []Reading {
	n := &r.t.Nodes[i]
	switch n.Type {
	case Varint:
		return varintReadings(r.t.Uint(i), n.End-n.Val)
	case I32:
		return fixed32Readings(uint32(r.t.Uint(i)))
	case I64:
		return fixed64Readings(r.t.Uint(i))
	case StartGroup:
		return []Reading{{Kind: KindGroup, Type: "group", P: 1}}
	case Len, Message:
		return r.payloadReadings(i)
	}
	return []Reading{{Kind: KindBytes, Type: "bytes", P: 1, Value: r.t.Payload(i)}}
}

// payloadReadings weighs the kinds of a length-delimited payload.
func (r *Reader) payloadReadings(i int32) []Reading {
	cost := r.payload(i)
	data := r.t.Payload(i)
	best := cost.least()
	out := make([]Reading, 0, 3)
	for k := range cost {
		if cost[k] >= impossible {
			continue
		}
		p := math.Exp2((best - cost[k] - prior[k]) / temperature)
		if p >= leastP {
			out = append(out, Reading{Kind: payloadKinds[k].kind, Type: payloadKinds[k].typ, P: p, Why: cost.why(k, len(data))})
		}
	}
	out = normalize(out)
	for j := range out {
		out[j].Value = payloadValue(out[j].Type, data)
	}
	return out
}

// Best returns the kind and type of node i's likeliest reading with its
// probability, in less time and memory than Readings.
func (r *Reader) Best(i int32) (kind Kind, typ string, p float64) {
	if t := r.t.Nodes[i].Type; t != Len && t != Message {
		best := r.Readings(i)[0]
		return best.Kind, best.Type, best.P
	}
	cost := r.payload(i)
	least := cost.least()
	sum, at := 0.0, 0
	for k := range cost {
		if cost[k]+prior[k] < cost[at]+prior[at] {
			at = k
		}
		if q := math.Exp2((least - cost[k] - prior[k]) / temperature); q >= leastP {
			sum += q
		}
	}
	return payloadKinds[at].kind, payloadKinds[at].typ, 1 / sum
}

// normalize sorts, drops what is too unlikely, and makes the sum 1.
func normalize(in []Reading) []Reading {
	sum := 0.0
	for i := range in {
		sum += in[i].P
	}
	out := slices.DeleteFunc(in, func(r Reading) bool { return r.P < leastP*sum })
	sum = 0
	for i := range out {
		sum += out[i].P
	}
	for i := range out {
		out[i].P /= sum
	}
	slices.SortStableFunc(out, func(a, b Reading) int {
		switch {
		case a.P > b.P:
			return -1
		case a.P < b.P:
			return 1
		}
		return 0
	})
	return out
}

func payloadValue(typ string, data []byte) any {
	switch typ {
	case "string":
		return string(data)
	case "bytes":
		return data
	case "packed varint", "packed fixed32", "packed fixed64":
		return PackedValues(typ, data)
	}
	return nil
}

// PackedValues returns the numbers in a payload that has a reading of type
// "packed varint", "packed fixed32" or "packed fixed64". Of other data it
// returns those before the place where it stops being that.
func PackedValues(typ string, data []byte) []uint64 {
	width := 0
	switch typ {
	case "packed fixed32":
		width = 4
	case "packed fixed64":
		width = 8
	}
	vs := []uint64{}
	for len(data) >= max(width, 1) {
		n := width
		v := uint64(0)
		if n > 0 {
			v = Fixed(data[:n])
		} else if v, n = ConsumeVarint(data); n <= 0 {
			break
		}
		vs, data = append(vs, v), data[n:]
	}
	return vs
}
