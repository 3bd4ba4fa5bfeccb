package search

import (
	"fmt"
	"math"
	"slices"
	"strconv"

	"unwire/captures"
	"unwire/decode/wire"
)

// A Number is a number that a search looks for in all its protobuf encodings.
type Number struct {
	// varints are the varint values that may represent the number: plain, zigzag, and as an int32.
	varints []uint64

	// fixed32 are the bit patterns of 4-byte fields that may represent the number: integer and floating point.
	fixed32 []uint64

	// fixed64 are the bit patterns of 8-byte fields that may represent the number: integer and floating point.
	fixed64 []uint64

	// text is the number as the user wrote it.
	text string

	// value is the number as parsed from text.
	value float64
}

// ParseNumber parses an integer (decimal or 0x…) or a number with a decimal point.
func ParseNumber(s string) (*Number, error) {
	n := &Number{text: s}
	var integer, found bool
	var bits uint64
	if v, err := strconv.ParseInt(s, 0, 64); err == nil {
		integer, found, bits, n.value = true, true, uint64(v), float64(v)
		n.varints = append(n.varints, uint64(v))
		// The second one is in zigzag encoding.
		n.varints = append(n.varints, uint64(v)<<1^uint64(v>>63))
		if v < 0 && v >= math.MinInt32 {
			// An int32 that was encoded without sign extension.
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

	// Every number may also be a floating-point value.
	if !found {
		return nil, fmt.Errorf("%.40q is not a number", s)
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

// matches reports whether a field of wire type typ with the bits v may represent the number.
func (n *Number) matches(typ wire.Type, v uint64) bool {
	switch typ {
	case wire.I32:
		return slices.Contains(n.fixed32, v)
	case wire.I64:
		return slices.Contains(n.fixed64, v)
	}
	return slices.Contains(n.varints, v)
}

// matchesText reports whether the JSON number s equals the number.
func (n *Number) matchesText(s string) bool {
	if s == n.text {
		return true
	}
	f, err := strconv.ParseFloat(s, 64)
	return err == nil && f == n.value
}

// numberText formats a field's number as text in its most probable types.
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

// searchHeaders searches an exchange's URL and headers. It returns false if emit ended the search.
func (q Query) searchHeaders(ex *captures.Exchange, emit func(Match) bool) bool {
	if q.Text == nil {
		return true
	}

	// Report at most one match per header.
	look := func(kind, path string, dir captures.Direction, s string) bool {
		lo, hi, ok := q.Text.find([]byte(s), 0)
		if !ok {
			return true
		}
		m := around([]byte(s), lo, hi, false)
		m.Kind, m.Path, m.Dir, m.Frame = kind, path, dir, -1
		return emit(m)
	}

	// The URL first, then all headers and trailers.
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
