package search

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

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
			n.varints = append(n.varints, uint64(uint32(v))) // an int32 that was not extended
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

// A Path is a pattern for paths.
type Path struct{ steps []pathStep }

type pathStep struct {
	name  string // a field number or a member's name; "*" for any
	many  bool   // **: any number of steps, none too
	index int    // -1: any
}

// ParsePath reads a pattern: field numbers joined by dots, * for any one step,
// ** for any number of them, [n] behind a number for one of a repeated field. A
// member of JSON goes by its name, an element by its place.
func ParsePath(s string) (*Path, error) {
	p := &Path{}
	for part := range strings.SplitSeq(s, ".") {
		st := pathStep{name: part, many: part == "**", index: -1}
		if name, rest, ok := strings.Cut(part, "["); ok {
			inner, closed := strings.CutSuffix(rest, "]")
			k, err := strconv.ParseUint(inner, 10, 31)
			if !closed || err != nil {
				return nil, fmt.Errorf("path %.80q: %q is not an index in brackets", s, "["+rest)
			}
			st.name, st.index = name, int(k)
		}
		if st.name == "" {
			return nil, fmt.Errorf("path %.80q: an empty step", s)
		}
		p.steps = append(p.steps, st)
	}
	return p, nil
}

func (p *Path) matches(steps []step) bool { return matchSteps(p.steps, steps) }

func matchSteps(pattern []pathStep, steps []step) bool {
	for i := range pattern {
		if pattern[i].many {
			for k := len(steps); k >= i; k-- {
				if matchSteps(pattern[i+1:], steps[k:]) {
					return true
				}
			}
			return false
		}
		if i >= len(steps) || !pattern[i].matches(&steps[i]) {
			return false
		}
	}
	return len(pattern) == len(steps)
}

func (p *pathStep) matches(s *step) bool {
	if p.name != "*" {
		name := s.name
		if s.tree != nil {
			name = strconv.FormatUint(s.number, 10)
		}
		if p.name != name {
			return false
		}
	}
	if p.index < 0 {
		return true
	}
	if s.tree == nil {
		return false
	}
	k, _ := indexOf(s.tree, s.node)
	return k == p.index
}

// Headers looks for Text in an exchange's URL and headers.
func (q Query) Headers(ex *captures.Exchange, emit func(Match) bool) bool {
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
