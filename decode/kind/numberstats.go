package kind

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"math/bits"

	"google.golang.org/protobuf/encoding/protowire"
)

// Varints is what was seen of a field's varints. Counts only: it merges by
// addition, minimum and maximum.
type Varints struct {
	N        int64 `json:"n"`
	Zero     int64 `json:"zero,omitempty"`
	Overlong int64 `json:"overlong,omitempty"` // longer than need be

	// Greatest value with the top bit clear.
	Max uint64 `json:"max"`

	// Smallest value with the top bit clear.
	Min uint64 `json:"min"`

	// Values with the top bit set: ten bytes.
	Negative int64 `json:"negative,omitempty"`

	// The smallest of those as int64.
	Lowest int64 `json:"lowest,omitempty"`

	Bits   histogram `json:"bits"` // values by bit length
	Odd    int64     `json:"odd,omitempty"`
	Twos   int64     `json:"twos,omitempty"`  // even, and not a multiple of four
	Small  int64     `json:"small,omitempty"` // below 8: parity says nothing
	Values *sketch   `json:"values,omitempty"`

	// Values that are seconds of 2001 to 2100.
	Epoch int64 `json:"epoch,omitempty"`

	Nanos  int64 `json:"nanos,omitempty"`  // values of 1e3 to 1e9-1
	Micros int64 `json:"micros,omitempty"` // of those, multiples of 1000
}

func newVarints() *Varints {
	return &Varints{Min: math.MaxUint64, Values: &sketch{}}
}

// newElements is Varints that do not know their distinct values.
func newElements() *Varints { return &Varints{Min: math.MaxUint64} }

func (s *Varints) addValue(v uint64, size int) {
	if size != protowire.SizeVarint(v) {
		s.Overlong++
	}
	s.Values.addValue(v)
	s.count(v, 1)
	if v >= 1_000_000_000 && v < 4_102_444_800 {
		s.Epoch++
	}
	if v >= 1_000 && v < 1_000_000_000 {
		s.Nanos++
		if v%1000 == 0 {
			s.Micros++
		}
	}
}

// count is what add does for an element of a packed field too, which counts as weight.
func (s *Varints) count(v uint64, weight int64) {
	s.N += weight
	switch {
	case v < 8:
		s.Small += weight
	case v&1 != 0:
		s.Odd += weight
	case v&2 != 0:
		s.Twos += weight
	}
	if int64(v) < 0 {
		s.Negative += weight
		s.Lowest = min(s.Lowest, int64(v))
		s.Bits[bits.Len64(uint64(-int64(v)))] += weight
		return
	}
	s.Bits[bits.Len64(v)] += weight
	s.Max, s.Min = max(s.Max, v), min(s.Min, v)
	if v == 0 {
		s.Zero += weight
	}
}

// smallCounts is what count counts of each number of one byte: eight bits each, of
// small, odd, twos and zero.
var smallCounts = func() (t [128]uint32) {
	for v := range t {
		switch {
		case v < 8:
			t[v] = 1
		case v&1 != 0:
			t[v] = 1 << 8
		case v&2 != 0:
			t[v] = 1 << 16
		}
	}
	t[0] |= 1 << 24
	return t
}()

// countSmall counts the numbers of one byte that p begins with, up to 255, and
// returns how many there are.
func (s *Varints) countSmall(p []byte, weight int64) int {
	p = p[:min(len(p), 255)]
	// Counts of eight bits.
	kinds, lengths, longest := uint32(0), uint64(0), uint64(0)
	least, most := byte(127), byte(0)
	n := 0
	for _, c := range p {
		if c >= 0x80 {
			break
		}
		kinds += smallCounts[c]
		if size := bits.Len8(c); size < 7 {
			lengths += 1 << (8 * size)
		} else {
			longest++
		}
		least, most = min(least, c), max(most, c)
		n++
	}
	s.N += weight * int64(n)
	s.Small += weight * int64(kinds&0xff)
	s.Odd += weight * int64(kinds>>8&0xff)
	s.Twos += weight * int64(kinds>>16&0xff)
	s.Zero += weight * int64(kinds>>24)
	for size := range 7 {
		s.Bits[size] += weight * int64(lengths>>(8*size)&0xff)
	}
	s.Bits[7] += weight * int64(longest)
	s.Max, s.Min = max(s.Max, uint64(most)), min(s.Min, uint64(least))
	return n
}

// spans reports whether p is varints of one byte each, none of them outside of the
// range of those before.
func (s *Varints) spans(p []byte) bool {
	if s == nil || s.Min > s.Max {
		return false
	}
	if s.Min > 127 { // which no byte is
		return len(p) == 0
	}
	const ones = 0x0101010101010101
	least, most := min(s.Min, 127), min(s.Max, 127)
	for ; len(p) >= 8; p = p[8:] {
		v := binary.LittleEndian.Uint64(p)
		above := v + (127-most)*ones | v
		below := ^((v | 0x80*ones) - least*ones)
		if (above|below)&(0x80*ones) != 0 {
			return false
		}
	}
	for _, c := range p {
		if uint64(c) < least || uint64(c) > most {
			return false
		}
	}
	return true
}

func (s *Varints) merge(o *Varints) {
	s.N += o.N
	s.Zero += o.Zero
	s.Overlong += o.Overlong
	s.Max, s.Min = max(s.Max, o.Max), min(s.Min, o.Min)
	s.Negative += o.Negative
	s.Lowest = min(s.Lowest, o.Lowest)
	s.Bits.addHistogram(&o.Bits)
	s.Odd += o.Odd
	s.Twos += o.Twos
	s.Small += o.Small
	switch {
	case s.Values == nil:
	case o.Values == nil:
		s.Values.Full = s.Values.Full || o.N > 0
	default:
		s.Values.merge(o.Values)
	}
	s.Epoch += o.Epoch
	s.Nanos += o.Nanos
	s.Micros += o.Micros
}

// fixeds is what was seen of a field's 4- or 8-byte values. The costs are
// description lengths in thousandths of a nat, integers so that sums commute.
type fixeds struct {
	N      int64   `json:"n"`
	Zero   int64   `json:"zero,omitempty"`
	Float  int64   `json:"float"`           // cost as floating point
	Int    int64   `json:"int"`             // cost as an integer
	Small  int64   `json:"small,omitempty"` // negative integers near zero
	Max    uint64  `json:"max"`
	Min    uint64  `json:"min"`
	Values *sketch `json:"values,omitempty"`
}

func (s *fixeds) add64(v uint64) {
	s.Float += costDouble(v)
	s.Int += costFixed(v, 64)
	if int64(v) < 0 && int64(v) > -1<<48 {
		s.Small++
	}
	s.addBits(v)
}

func (s *fixeds) add32(v uint32) {
	s.Float += costFloat(v)
	s.Int += costFixed(uint64(v), 32)
	if int32(v) < 0 && int32(v) > -1<<20 {
		s.Small++
	}
	s.addBits(uint64(v))
}

func (s *fixeds) addBits(v uint64) {
	if s.N++; s.N == 1 {
		s.Min = v
	}
	if v == 0 {
		s.Zero++
	}
	s.Max, s.Min = max(s.Max, v), min(s.Min, v)
	if s.Values == nil {
		s.Values = &sketch{}
	}
	s.Values.addValue(v)
}

// random reports whether the values are neither like integers nor like real numbers.
func (s *fixeds) random() bool {
	width := int64(4)
	if s.Max > math.MaxUint32 {
		width = 8
	}
	return min(s.Float, s.Int) >= s.N*width*costRawByte
}

func (s *fixeds) merge(o *fixeds) {
	if s.N == 0 {
		s.Min = o.Min
	}
	s.N += o.N
	s.Zero += o.Zero
	s.Min = min(s.Min, o.Min)
	s.Float += o.Float
	s.Int += o.Int
	s.Small += o.Small
	s.Max = max(s.Max, o.Max)
	if s.Values == nil {
		s.Values = &sketch{}
	}
	s.Values.merge(o.Values)
}

// A histogram counts values by their length in bits. Its JSON leaves the
// zeros at its end out.
type histogram [65]int64

func (h *histogram) addHistogram(o *histogram) {
	for i := range h {
		h[i] += o[i]
	}
}

// plus is the sum of both, in the first's place; nil is none.
func (h *histogram) plus(o *histogram) *histogram {
	if o == nil {
		return h
	}
	if h == nil {
		h = &histogram{}
	}
	h.addHistogram(o)
	return h
}

// sum counts all values; it is negative where a count is, or the sum overflows.
func (h *histogram) sum() (n int64) {
	if h == nil {
		return 0
	}
	for _, c := range h {
		if c < 0 || n < 0 {
			return -1
		}
		n += c
	}
	return n
}

// MarshalJSON writes the counts up to the last that is not zero.
func (h histogram) MarshalJSON() ([]byte, error) {
	n := len(h)
	for n > 0 && h[n-1] == 0 {
		n--
	}
	return json.Marshal(h[:n])
}

// UnmarshalJSON reads what MarshalJSON writes.
func (h *histogram) UnmarshalJSON(b []byte) error {
	var list []int64
	if err := json.Unmarshal(b, &list); err != nil {
		return err
	}
	if len(list) > len(h) {
		return fmt.Errorf("%d counts for 65 lengths", len(list))
	}
	*h = histogram{}
	copy(h[:], list)
	return nil
}
