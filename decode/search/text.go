package search

import (
	"bytes"
	"encoding/hex"
	"regexp"
	"regexp/syntax"
	"strings"
	"unicode/utf8"

	"unwire/captures"
)

// A Text is a pattern for text.
type Text struct {
	re      *regexp.Regexp
	literal []byte // instead of re: what it stands for alone
	fold    bool   // literal, in either case; it is lower-case ASCII then
}

// NewText makes a pattern: a regular expression (RE2), or, if fixed, the text
// itself; fold ignores case.
func NewText(pattern string, fixed, fold bool) (*Text, error) {
	if fixed {
		if !fold {
			return &Text{literal: []byte(pattern)}, nil
		}
		if isASCII(pattern) {
			return &Text{literal: []byte(strings.ToLower(pattern)), fold: true}, nil
		}
		pattern = regexp.QuoteMeta(pattern)
	}
	if fold {
		pattern = "(?i)" + pattern
	}
	re, err := regexp.Compile(pattern)
	if err != nil {
		return nil, err
	}
	if lit, whole := re.LiteralPrefix(); whole {
		return &Text{literal: []byte(lit)}, nil
	}
	if lit, ok := foldedLiteral(pattern); ok {
		return &Text{literal: lit, fold: true}, nil
	}
	return &Text{re: re}, nil
}

// foldedLiteral finds that a pattern is ASCII text without regard to case.
func foldedLiteral(pattern string) ([]byte, bool) {
	p, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil || p.Op != syntax.OpLiteral || p.Flags&syntax.FoldCase == 0 || !isASCII(string(p.Rune)) {
		return nil, false
	}
	// K and S have relatives beyond ASCII.
	if strings.ContainsAny(strings.ToLower(string(p.Rune)), "ks") {
		return nil, false
	}
	return []byte(strings.ToLower(string(p.Rune))), true
}

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// find returns the first match in data from offset from on.
func (t *Text) find(data []byte, from int) (lo, hi int, ok bool) {
	switch {
	case t.re != nil:
		if from == 0 {
			loc := t.re.FindIndex(data)
			if loc == nil {
				return 0, 0, false
			}
			return loc[0], loc[1], true
		}
		// What precedes decides on ^ and \b, so all is looked at again.
		all := t.re.FindAllIndex(data, maxPerValue)
		for _, loc := range all {
			if loc[0] >= from {
				return loc[0], loc[1], true
			}
		}
		return 0, 0, false
	case t.fold:
		k := indexFold(data[from:], t.literal)
		return from + k, from + k + len(t.literal), k >= 0
	}
	k := bytes.Index(data[from:], t.literal)
	return from + k, from + k + len(t.literal), k >= 0
}

// findAll calls f for matches that do not overlap, until it returns false.
func (t *Text) findAll(data []byte, f func(lo, hi int) bool) {
	if t.re != nil {
		if !t.re.Match(data) {
			return
		}
		for _, loc := range t.re.FindAllIndex(data, maxPerValue) {
			if !f(loc[0], loc[1]) {
				return
			}
		}
		return
	}
	for from, n := 0, 0; from <= len(data) && n < maxPerValue; n++ {
		lo, hi, ok := t.find(data, from)
		if !ok || !f(lo, hi) {
			return
		}
		from = max(hi, lo+1)
	}
}

// indexFold is bytes.Index without regard to the case of ASCII; sub is lower-case.
func indexFold(data, sub []byte) int {
	if len(sub) == 0 {
		return 0
	}
	lower, upper := sub[0], sub[0]
	if lower >= 'a' && lower <= 'z' {
		upper -= 'a' - 'A'
	}
	nextLower, nextUpper := -2, -2 // where each occurs next; -1 for nowhere
	for i := 0; i+len(sub) <= len(data); i++ {
		if nextLower != -1 && nextLower < i {
			nextLower = indexFrom(data, lower, i)
		}
		if nextUpper != -1 && nextUpper < i {
			nextUpper = indexFrom(data, upper, i)
		}
		switch {
		case nextLower < 0 && nextUpper < 0:
			return -1
		case nextLower < 0:
			i = nextUpper
		case nextUpper < 0:
			i = nextLower
		default:
			i = min(nextLower, nextUpper)
		}
		if i+len(sub) <= len(data) && equalFold(data[i:i+len(sub)], sub) {
			return i
		}
	}
	return -1
}

func indexFrom(data []byte, c byte, from int) int {
	if k := bytes.IndexByte(data[from:], c); k >= 0 {
		return from + k
	}
	return -1
}

func equalFold(data, lower []byte) bool {
	for i, c := range data {
		if c >= 'A' && c <= 'Z' {
			c += 'a' - 'A'
		}
		if c != lower[i] {
			return false
		}
	}
	return true
}

// A tailKey names a field of a direction.
type tailKey struct {
	dir  captures.Direction
	path uint64
}

// A tail is the end of a field's text in the frames so far.
type tail struct {
	text   []byte
	starts []segment // of the frames that it is of, in order
	round  int       // in which it was last added to
	many   bool      // more than once in that one
}

type segment struct{ off, frame int }

// text finds Text in a value. A value that may go on in the next frame's field
// is joined to what came before.
func (s *searcher) text(data []byte, kind string, joined bool) {
	if !s.wanted() {
		return
	}
	if kind == "" {
		kind = "bytes"
		if utf8.Valid(data) {
			kind = "string"
		}
	}
	s.q.Text.findAll(data, func(lo, hi int) bool {
		s.hit(kind, data, lo, hi, kind == "bytes" && !isPlain(data))
		return !s.over
	})
	if joined && kind != "bytes" && !s.over {
		s.join(data, kind)
	}
}

// join looks for what begins in an earlier frame and ends in this one.
func (s *searcher) join(data []byte, kind string) {
	key := tailKey{s.frame.Dir, s.pathHash()}
	t := s.tails[key]
	if t == nil {
		if len(s.tails) >= maxTails {
			return
		}
		t = &tail{round: -1}
		s.tails[key] = t
	}
	switch {
	case t.round == s.round:
		// A repeated field: its values do not continue each other.
		t.text, t.starts, t.many = t.text[:0], t.starts[:0], true
		return
	case t.many:
		t.many = false
	case len(t.text) > 0:
		s.across(t, data, kind)
	}
	t.round = s.round
	t.add(data, s.frame.Seq)
}

func (s *searcher) across(t *tail, data []byte, kind string) {
	before, reach := t.text, tailLen
	if s.q.Text.literal != nil {
		// It cannot reach further than it is long.
		reach = min(max(len(s.q.Text.literal)-1, 0), tailLen)
		before = before[max(len(before)-reach, 0):]
	}
	skipped := len(t.text) - len(before)
	edge := len(before)
	s.both = append(append(s.both[:0], before...), data[:min(len(data), reach)]...)
	both := s.both
	s.q.Text.findAll(both, func(lo, hi int) bool {
		if lo >= edge || hi <= edge {
			return lo < edge
		}
		m := around(both, lo, hi, false)
		m.Kind = kind
		var frames []int
		for i, seg := range t.starts {
			if i+1 == len(t.starts) || t.starts[i+1].off > lo+skipped {
				frames = append(frames, seg.frame)
			}
		}
		s.send(m, append(frames, s.frame.Seq))
		return false
	})
}

// add appends a frame's text and forgets what is too far back.
func (t *tail) add(data []byte, frame int) {
	if len(data) >= tailLen {
		t.text, t.starts = append(t.text[:0], data[len(data)-tailLen:]...), append(t.starts[:0], segment{0, frame})
		return
	}
	t.starts = append(t.starts, segment{len(t.text), frame})
	t.text = append(t.text, data...)
	if len(t.text) < 2*tailLen {
		return
	}
	drop := len(t.text) - tailLen
	t.text = append(t.text[:0], t.text[drop:]...)
	kept := t.starts[:0]
	for i, seg := range t.starts {
		if i+1 < len(t.starts) && t.starts[i+1].off <= drop {
			continue
		}
		kept = append(kept, segment{max(seg.off-drop, 0), seg.frame})
	}
	t.starts = kept
}

// pathHash tells paths apart, without indexes.
func (s *searcher) pathHash() uint64 {
	h := uint64(14695981039346656037)
	for i := range s.steps {
		st := &s.steps[i]
		h = (h ^ st.number) * 1099511628211
		for k := range len(st.name) {
			h = (h ^ uint64(st.name[k])) * 1099511628211
		}
		h = (h ^ uint64(len(st.enc))) * 1099511628211
	}
	return h
}

// around cuts the surroundings of data[lo:hi] out, as text or as hex.
func around(data []byte, lo, hi int, asHex bool) Match {
	if asHex {
		const most = 16
		a, b := max(lo-most/2, 0), min(hi+most/2, len(data))
		if hi-lo > 4*most {
			hi = lo + 4*most
			b = hi
		}
		m := Match{Value: hexText(data[a:b])}
		m.Start, m.End = 3*(lo-a), 3*(hi-a)-1
		if hi == lo {
			m.Start = min(m.Start, len(m.Value))
			m.End = m.Start
		}
		return m
	}
	hi = min(hi, lo+4*contextLen)
	a, b := max(lo-contextLen, 0), min(hi+contextLen, len(data))
	for a < lo && !utf8.RuneStart(data[a]) {
		a++
	}
	for b > hi && b < len(data) && !utf8.RuneStart(data[b]) {
		b--
	}
	return Match{Value: string(data[a:b]), Start: lo - a, End: hi - a}
}

func hexText(b []byte) string {
	var out strings.Builder
	for i, c := range b {
		if i == 4*contextLen {
			out.WriteString(" …")
			break
		}
		if i > 0 {
			out.WriteByte(' ')
		}
		out.WriteString(hex.EncodeToString([]byte{c}))
	}
	return out.String()
}

// isPlain reports UTF-8 without control characters that text does not have.
func isPlain(b []byte) bool {
	for _, c := range b {
		if c < ' ' && c != '\n' && c != '\r' && c != '\t' && c != 0x1b {
			return false
		}
	}
	return utf8.Valid(b)
}
