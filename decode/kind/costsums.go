package kind

import (
	"google.golang.org/protobuf/encoding/protowire"
)

// costSums is what payloads cost under each hypothesis that none refutes: what is added up,
// of those that were scored. The costs are in thousandths of a nat.
type costSums struct {
	// Bytes that the costs are of, each as often as it stands for others.
	Scored int64 `json:"scored,omitempty"`

	Uneven int64 `json:"uneven,omitempty"` // the same with the squares of that
	Raw    int64 `json:"raw,omitempty"`    // cost as arbitrary bytes

	// That of their bytes, and how they repeat.
	Repeated int64 `json:"repeated,omitempty"`

	// Of payloads that are words of 16 bits: their cost as UTF-16, and as numbers.
	UTF16 int64 `json:"utf16,omitempty"`
	Words int64 `json:"words,omitempty"`

	Text    int64 `json:"text,omitempty"`
	Control int64 `json:"control,omitempty"` // payloads with control characters

	Varints int64 `json:"varints,omitempty"`
	Float32 int64 `json:"float32,omitempty"`
	Int32   int64 `json:"int32,omitempty"`
	Float64 int64 `json:"float64,omitempty"`
	Int64   int64 `json:"int64,omitempty"`
	// Numbers is the cost of payloads of which each holds numbers of its own kind, in
	// either order of bytes; zero where it was not looked for.
	Numbers int64 `json:"numbers,omitempty"`

	// Packed values by their top six bits; nil where there are none.
	Tops32 *histogram `json:"tops32,omitempty"`

	Tops64 *histogram `json:"tops64,omitempty"`

	// Elements are packed varints; nil where there are none. Their greatest and least
	// values are those of all payloads.
	Elements *Varints `json:"elements,omitempty"`
}

// score adds the cost of a payload that counts as weight; known says that it is surely
// text or a message, and file that it is a file. What refutes a hypothesis is found by then.
func (l *Payloads) score(s *costSums, p []byte, known, file bool, weight int64) {
	n := int64(len(p))
	s.Scored += weight * n
	s.Uneven = min(s.Uneven+weight*weight*n, maxCount)
	if !l.NotText {
		cost, control := costText(p)
		if control {
			s.Control++
		}
		s.Text += weight * whole(cost, len(p))
	}
	if !l.NotWide {
		text, numbers := costWide(p)
		s.UTF16 += weight * text
		s.Words += weight * numbers
	}
	raw, repeated := costRaw(p, known)
	if file {
		raw = max(min(raw, costNumbers(p))-costNoFile, 0)
	}
	s.Raw += weight * raw
	s.Repeated += weight * repeated
	if !l.NotVarints {
		s.addVarints(p, weight)
	}
	if !l.NotFixed32 {
		s.addFixed(p, weight, !l.NotFixed64)
	}
}

// addVarints adds p as packed varints, which it is.
func (s *costSums) addVarints(p []byte, weight int64) {
	if s.Elements == nil {
		s.Elements = newElements()
	}
	var cost int64
	for len(p) > 0 {
		if p[0] < 0x80 {
			n := s.Elements.countSmall(p, weight)
			cost += int64(n) * costVarintLen[1]
			p = p[n:]
			continue
		}
		v, n := protowire.ConsumeVarint(p)
		cost += costVarintLen[n]
		s.Elements.count(v, weight)
		p = p[n:]
	}
	s.Varints += weight * cost
}

// addFixed adds p as values of four bytes, and of eight.
func (s *costSums) addFixed(p []byte, weight int64, wide bool) {
	if s.Tops32 == nil {
		s.Tops32 = &histogram{}
	}
	head := p[:min(len(p), costBytes)]
	asFloat, asInt := costWidth32(head)
	for b := head; len(b) >= 4; b = b[4:] {
		s.Tops32[b[3]>>2] += weight
	}
	s.Float32 += weight * whole(asFloat, len(p))
	s.Int32 += weight * whole(asInt, len(p))
	own := min(asFloat, asInt)
	if len(p)%8 == 0 {
		asFloat, asInt = costWidth64(head)
		own = min(own, asFloat, asInt)
		if wide {
			if s.Tops64 == nil {
				s.Tops64 = &histogram{}
			}
			for b := head; len(b) >= 8; b = b[8:] {
				s.Tops64[b[7]>>2] += weight
			}
			s.Float64 += weight * whole(asFloat, len(p))
			s.Int64 += weight * whole(asInt, len(p))
		}
	}
	s.Numbers += weight * whole(min(own, costBigEndian(head))+costNumberKind, len(p))
}

// addSums adds other sums; o stays as it is.
func (s *costSums) addSums(o *costSums) {
	s.Scored += o.Scored
	s.Uneven = min(s.Uneven+o.Uneven, maxCount)
	s.Raw += o.Raw
	s.Repeated += o.Repeated
	s.UTF16 += o.UTF16
	s.Words += o.Words
	s.Text += o.Text
	s.Control += o.Control
	s.Varints += o.Varints
	s.Float32 += o.Float32
	s.Int32 += o.Int32
	s.Float64 += o.Float64
	s.Int64 += o.Int64
	s.Numbers += o.Numbers
	s.Tops32 = s.Tops32.plus(o.Tops32)
	s.Tops64 = s.Tops64.plus(o.Tops64)
	if o.Elements != nil {
		if s.Elements == nil {
			s.Elements = newElements()
		}
		s.Elements.merge(o.Elements)
	}
}

// What is refuted costs nothing any more, so that the order of payloads does not show.
func (s *costSums) noText()    { s.Text, s.Control = 0, 0 }
func (s *costSums) noWords()   { s.UTF16, s.Words = 0, 0 }
func (s *costSums) noVarints() { s.Varints, s.Elements = 0, nil }
func (s *costSums) noFixed32() { s.Float32, s.Int32, s.Numbers, s.Tops32 = 0, 0, 0, nil }
func (s *costSums) noFixed64() { s.Float64, s.Int64, s.Tops64 = 0, 0, nil }

func (s *costSums) valid() bool {
	return countsValid(s.Scored, s.Uneven, s.Raw, s.Repeated, s.UTF16, s.Words, s.Text, s.Control,
		s.Tops32.sum(), s.Tops64.sum(), s.Varints, s.Float32, s.Int32, s.Float64, s.Int64, s.Numbers) &&
		(s.Elements == nil || s.Elements.valid() && s.Elements.Values == nil)
}
