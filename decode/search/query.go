package search

import (
	"fmt"
	"math"
	"slices"
	"strconv"

	"unwire/captures"
	"unwire/decode/wire"
)

// A Number is a number in every form that the wire has for it.
type Number struct {
	varints []uint64 // what a varint or a fixed value may be, bit by bit
	fixed32 []uint64
	fixed64 []uint64
	text    string
	value   float64
}

// ParseNumber reads an integer (decimal, 0x…) or a number with a point.
func ParseNumber(s string) (*Number, error) {
	n := &Number{text: s}
	var integer, found bool
	var bits uint64
	if v, err := strconv.ParseInt(s, 0, 64); err == nil {
		integer, found, bits, n.value = true, true, uint64(v), float64(v)
		n.varints = append(n.varints, uint64(v))
		n.varints = append(n.varints, uint64(v)<<1^uint64(v>>63)) // zigzag
		if v < 0 && v >= math.MinInt32 {
			// An int32 that was not extended.
			n.varints = append(n.varints, uint64(uint32(v)))
		}
		if v >= math.MinInt32 && v <= math.MaxUint32 {
			n.fixed32 = append(n.fixed32, uint64(uint32(v)))
		}
	} else if u, err := strconv.ParseUint(s, 0, 64); err == nil {
		integer, found, bits, n.value = true, true, u, float64(u)
		n.varints = append(n.varints, u)
	}
	if f, err := strconv.ParseFloat(s, 64); err == nil && !found {
		found, n.value = true, f
	}
	if !found {
		return nil, fmt.Errorf("%.40q is no number", s)
	}
	if integer {
		n.fixed64 = append(n.fixed64, bits)
	}
	n.fixed64 = append(n.fixed64, math.Float64bits(n.value))
	if f := float32(n.value); !integer || float64(f) == n.value {
		n.fixed32 = append(n.fixed32, uint64(math.Float32bits(f)))
	}
	return n, nil
}

// matches reports whether a value of a wire type can be read as the number.
func (n *Number) matches(typ wire.Type, v uint64) bool {
	switch typ {
	case wire.I32:
		return slices.Contains(n.fixed32, v)
	case wire.I64:
		return slices.Contains(n.fixed64, v)
	}
	return slices.Contains(n.varints, v)
}

// matchesText is matches for a number of JSON.
func (n *Number) matchesText(s string) bool {
	if s == n.text {
		return true
	}
	f, err := strconv.ParseFloat(s, 64)
	return err == nil && f == n.value
}

// numberText shows a value with its likeliest readings.
func numberText(typ wire.Type, v uint64) string {
	switch typ {
	case wire.I32:
		return fmt.Sprintf("%d (float %v)", int32(v), math.Float32frombits(uint32(v)))
	case wire.I64:
		return fmt.Sprintf("%d (double %v)", int64(v), math.Float64frombits(v))
	}
	if int64(v) < 0 {
		return fmt.Sprintf("%d (unsigned %d, zigzag %d)", int64(v), v, int64(v>>1)^-int64(v&1))
	}
	return fmt.Sprintf("%d (zigzag %d)", v, int64(v>>1)^-int64(v&1))
}

// headers looks for Text in an exchange's URL and headers.
func (q Query) headers(ex *captures.Exchange, emit func(Match) bool) bool {
	if q.Text == nil {
		return true
	}
	look := func(kind, path string, dir captures.Direction, s string) bool {
		lo, hi, ok := q.Text.find([]byte(s), 0)
		if !ok {
			return true
		}
		m := around([]byte(s), lo, hi, false)
		m.Kind, m.Path, m.Dir, m.Frame = kind, path, dir, -1
		return emit(m)
	}
	if !look("url", "", captures.Up, ex.URL) {
		return false
	}
	for _, part := range []struct {
		dir     captures.Direction
		headers captures.Headers
	}{
		{captures.Up, ex.RequestHeaders},
		{captures.Up, ex.RequestTrailers},
		{captures.Down, ex.ResponseHeaders},
		{captures.Down, ex.ResponseTrailers},
	} {
		for _, h := range part.headers {
			if !look("header", h.Name, part.dir, h.Name+": "+h.Value) {
				return false
			}
		}
	}
	return true
}
