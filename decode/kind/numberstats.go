package kind

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"math/bits"

	"google.golang.org/protobuf/encoding/protowire"

	"unwire/decode/kind/bytecost"
)

// Varints has the statistics of a field's varints. All members are counts, minima or maxima, so that they can be
// merged.
type Varints struct {
	// N is the number of varint values.
	N int64 `json:"n" pb:"1"`

	// Zero is the number of values that are zero.
	Zero int64 `json:"zero,omitempty" pb:"2"`

	// Overlong counts values with more bytes than necessary.
	Overlong int64 `json:"overlong,omitempty" pb:"3"`

	// Max is the greatest of the values whose top bit is clear.
	Max uint64 `json:"max" pb:"4"`

	// Min is the smallest of the values whose top bit is clear.
	Min uint64 `json:"min" pb:"5"`

	// Negative counts values with the top bit set, which have ten bytes.
	Negative int64 `json:"negative,omitempty" pb:"6"`

	// Lowest is the smallest value with the top bit set, as an int64.
	Lowest int64 `json:"lowest,omitempty" pb:"7,sint"`

	// Bits is a histogram of the values by their length in bits.
	Bits histogram `json:"bits" pb:"8"`

	// Odd is the number of values from 8 on that are odd. Zigzag encoding makes non-negative numbers even.
	Odd int64 `json:"odd,omitempty" pb:"9"`

	// Twos counts values from 8 on that are even but not multiples of four.
	Twos int64 `json:"twos,omitempty" pb:"10"`

	// Small is the number of values below 8, whose parity is not counted as evidence for zigzag
	// encoding.
	Small int64 `json:"small,omitempty" pb:"11"`

	// Values is a sample of the distinct values with their counts; nil for elements of packed fields.
	Values *sketch `json:"values,omitempty" pb:"12"`

	// Epoch counts values that may be Unix times from 2001 to 2100, in seconds.
	Epoch int64 `json:"epoch,omitempty" pb:"13"`

	// Nanos is the number of values from 1e3 to 1e9-1, the range of nanoseconds in a timestamp.
	Nanos int64 `json:"nanos,omitempty" pb:"14"`

	// Micros is the number of values counted by Nanos that are multiples of 1000, i.e. whole microseconds.
	Micros int64 `json:"micros,omitempty" pb:"15"`
}

// newVarints returns statistics without values.
func newVarints() *Varints {
	return &Varints{Min: math.MaxUint64, Values: &sketch{}}
}

// newElements returns empty statistics for the elements of packed fields, without a sketch of values.
func newElements() *Varints { return &Varints{Min: math.MaxUint64} }

// addValue adds a varint value that is encoded in size bytes.
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

// count adds a value that represents weight values. It omits the statistics that elements of packed fields do not
// have.
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

// smallCounts has, for each one-byte varint, the increments of four counters of eight bits each: small, odd, twos
// and zero. So one addition updates all four.
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

// countSmall adds the one-byte varints at the beginning of p, at most 255, and returns their number. Each
// represents weight values.
func (s *Varints) countSmall(p []byte, weight int64) int {
	p = p[:min(len(p), 255)]
	// Each of these has counts of eight bits.
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

	// Unpack the counts.
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

// inRange reports whether p consists of one-byte varints from Min to Max. It examines eight bytes at a time.
func (s *Varints) inRange(p []byte) bool {
	if s == nil || s.Min > s.Max {
		return false
	}
	// No byte of p can be in the range.
	if s.Min > 127 {
		return len(p) == 0
	}
	const ones = 0x0101010101010101
	least, most := min(s.Min, 127), min(s.Max, 127)
	for ; len(p) >= 8; p = p[8:] {
		v := binary.LittleEndian.Uint64(p)
		// The top bit of a byte is set where the value exceeds most.
		above := v + (127-most)*ones | v
		// The top bit of a byte is set where the value is below least.
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

// merge adds the statistics of other varints.
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

// fixeds has the statistics of a field's fixed-width values, of 4 or of 8 bytes. Costs are in thousandths of a nat.
type fixeds struct {
	// N is the number of fixed-width values.
	N int64 `json:"n" pb:"1"`

	// Zero is the number of values that are zero.
	Zero int64 `json:"zero,omitempty" pb:"2"`

	// Float is the description length of the values as floating-point numbers.
	Float int64 `json:"float" pb:"3"`

	// Int is the description length of the values as integers.
	Int int64 `json:"int" pb:"4"`

	// Small is the number of values that are negative integers near zero.
	Small int64 `json:"small,omitempty" pb:"5"`

	// Max is the greatest of the values' bit patterns, read as an unsigned integer.
	Max uint64 `json:"max" pb:"6"`

	// Min is the smallest of the values' bit patterns, read as an unsigned integer.
	Min uint64 `json:"min" pb:"7"`

	// Values is a sketch of the distinct values.
	Values *sketch `json:"values,omitempty" pb:"8"`
}

// add64 adds an 8-byte value.
func (s *fixeds) add64(v uint64) {
	s.Float += bytecost.Double(v)
	s.Int += bytecost.Fixed(v, 64)
	if int64(v) < 0 && int64(v) > -1<<48 {
		s.Small++
	}
	s.addBits(v)
}

// add32 adds a 4-byte value.
func (s *fixeds) add32(v uint32) {
	s.Float += bytecost.Float(v)
	s.Int += bytecost.Fixed(uint64(v), 32)
	if int32(v) < 0 && int32(v) > -1<<20 {
		s.Small++
	}
	s.addBits(uint64(v))
}

// addBits adds the statistics that do not depend on the width.
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

// random reports whether the values resemble neither integers nor floating-point numbers, as hashes do.
func (s *fixeds) random() bool {
	width := int64(4)
	if s.Max > math.MaxUint32 {
		width = 8
	}
	return min(s.Float, s.Int) >= s.N*width*bytecost.RawByte
}

// merge adds the statistics of other fixed-width values.
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

// A histogram counts values by their length in bits. Its JSON omits zeros at the end.
type histogram [65]int64

// addHistogram adds the counts of the histogram o.
func (h *histogram) addHistogram(o *histogram) {
	for i := range h {
		h[i] += o[i]
	}
}

// plus adds o to h and returns the result. Either may be nil.
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

// sum returns the number of values. It is negative if a count is, or on overflow.
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

// MarshalJSON encodes the histogram's counts up to the last one that is not zero.
func (h histogram) MarshalJSON() ([]byte, error) {
	n := len(h)
	for n > 0 && h[n-1] == 0 {
		n--
	}
	return json.Marshal(h[:n])
}

// UnmarshalJSON decodes the result of MarshalJSON.
func (h *histogram) UnmarshalJSON(b []byte) error {
	var list []int64
	if err := json.Unmarshal(b, &list); err != nil {
		return err
	}
	if len(list) > len(h) {
		return fmt.Errorf("the histogram of numbers has %d counts; a number has 0 to 64 significant bits, so at most 65 are possible", len(list))
	}
	*h = histogram{}
	copy(h[:], list)
	return nil
}
