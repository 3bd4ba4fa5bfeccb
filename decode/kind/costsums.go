package kind

import (
	"google.golang.org/protobuf/encoding/protowire"

	"unwire/decode/kind/bytecost"
)

// costSums are the summed costs (description lengths, in thousandths of a nat) of the scored payloads under each
// hypothesis about their type that no payload has refuted.
type costSums struct {
	// Scored is the number of bytes of the scored payloads, each multiplied by its weight: how many payloads it
	// represents.
	Scored int64 `json:"scored,omitempty" pb:"40"`

	// Uneven is the same sum with squared weights. It measures how unevenly the payloads were sampled; see
	// Payloads.scale.
	Uneven int64 `json:"uneven,omitempty" pb:"41"`

	// Raw is the description length of the payloads as bytes without known structure.
	Raw int64 `json:"raw,omitempty" pb:"42"`

	// Repeated is the cost of the payloads as bytes if only regularities that encoded numbers share, such as
	// repeated bytes, are used.
	Repeated int64 `json:"repeated,omitempty" pb:"43"`

	// UTF16 is the cost of the payloads as UTF-16 text, if they consist of 16-bit words.
	UTF16 int64 `json:"utf16,omitempty" pb:"44"`

	// Words is the cost of the payloads as 16-bit numbers, if they consist of 16-bit words.
	Words int64 `json:"words,omitempty" pb:"45"`

	// Text is the description length of the payloads as UTF-8 text.
	Text int64 `json:"text,omitempty" pb:"46"`

	// Control is the number of payloads with control characters.
	Control int64 `json:"control,omitempty" pb:"47"`

	// Varints is the description length of the payloads as packed varints.
	Varints int64 `json:"varints,omitempty" pb:"48"`

	// Float32 is the cost of the payloads as packed 32-bit floating-point numbers.
	Float32 int64 `json:"float32,omitempty" pb:"49"`

	// Int32 is the cost of the payloads as packed integers of 4 bytes each (fixed32).
	Int32 int64 `json:"int32,omitempty" pb:"50"`

	// Float64 is the cost of the payloads as packed 64-bit floating-point numbers.
	Float64 int64 `json:"float64,omitempty" pb:"51"`

	// Int64 is the cost of the payloads as packed integers of 8 bytes each (fixed64).
	Int64 int64 `json:"int64,omitempty" pb:"52"`

	// Numbers is the description length if each payload contains numbers of a different kind, in either
	// byte order; 0 if that was not computed.
	Numbers int64 `json:"numbers,omitempty" pb:"53"`

	// Tops32 is a histogram of the top six bits of packed 4-byte values; nil if there are none.
	Tops32 *histogram `json:"tops32,omitempty" pb:"54"`

	// Tops64 is a histogram of the top six bits of packed 8-byte values; nil if there are none.
	Tops64 *histogram `json:"tops64,omitempty" pb:"55"`

	// Elements are the statistics of the numbers in packed varints; nil if there are none. Its maximum and minimum
	// cover all payloads, scored or not.
	Elements *Varints `json:"elements,omitempty" pb:"56"`
}

// score adds to s the cost of payload p, which represents weight payloads. known means that p is certainly text or
// a message, and file that it begins like a known file format. Hypotheses that p refutes must be marked already.
func (l *Payloads) score(s *costSums, p []byte, known, file bool, weight int64) {
	n := int64(len(p))
	s.Scored += weight * n
	s.Uneven = min(s.Uneven+weight*weight*n, maxCount)
	if !l.NotText {
		cost, control := bytecost.Text(p)
		if control {
			s.Control++
		}
		s.Text += weight * bytecost.Extrapolate(cost, len(p))
	}
	if !l.NotWide {
		text, numbers := bytecost.Wide(p)
		s.UTF16 += weight * text
		s.Words += weight * numbers
	}

	// Bytes may have regularities of their own.
	raw, repeated := bytecost.Raw(p, known)
	if file {
		raw = max(min(raw, bytecost.Numbers(p))-bytecost.NoFile, 0)
	}
	s.Raw += weight * raw
	s.Repeated += weight * repeated
	if !l.NotVarints {
		s.addVarints(p, weight, l.recycler)
	}
	if !l.NotFixed32 {
		s.addFixed(p, weight, !l.NotFixed64, l.recycler)
	}
}

// addVarints adds the cost of the payload p as packed varints. memory provides new statistics.
func (s *costSums) addVarints(p []byte, weight int64, memory *recycler) {
	if s.Elements == nil {
		s.Elements = memory.newElements()
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

// addFixed adds the cost of payload p as packed values of 4 bytes and, if wide is true, of 8 bytes. p represents
// weight payloads. memory provides new statistics.
func (s *costSums) addFixed(p []byte, weight int64, wide bool, memory *recycler) {
	if s.Tops32 == nil {
		s.Tops32 = memory.newTops()
	}
	head := p[:min(len(p), bytecost.Head)]
	// Score the beginning and extrapolate.
	asFloat, asInt := bytecost.Width32(head)
	for b := head; len(b) >= 4; b = b[4:] {
		s.Tops32[b[3]>>2] += weight
	}
	s.Float32 += weight * bytecost.Extrapolate(asFloat, len(p))
	s.Int32 += weight * bytecost.Extrapolate(asInt, len(p))

	// A payload may have numbers of a kind of its own.
	own := min(asFloat, asInt)
	if len(p)%8 == 0 {
		asFloat, asInt = bytecost.Width64(head)
		own = min(own, asFloat, asInt)
		if wide {
			if s.Tops64 == nil {
				s.Tops64 = memory.newTops()
			}
			for b := head; len(b) >= 8; b = b[8:] {
				s.Tops64[b[7]>>2] += weight
			}
			s.Float64 += weight * bytecost.Extrapolate(asFloat, len(p))
			s.Int64 += weight * bytecost.Extrapolate(asInt, len(p))
		}
	}
	s.Numbers += weight * bytecost.Extrapolate(min(own, bytecost.BigEndian(head))+bytecost.NumberKind, len(p))
}

// addSums adds other sums to s.
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

// noText, noWords, noVarints, noFixed32 and noFixed64 clear the sums of a refuted hypothesis, so that the order of
// payloads does not matter. noText is for UTF-8 text.
func (s *costSums) noText() { s.Text, s.Control = 0, 0 }

// noWords clears the sums of the hypothesis that payloads consist of 16-bit words.
func (s *costSums) noWords() { s.UTF16, s.Words = 0, 0 }

// noVarints clears the sums of the hypothesis of packed varints.
func (s *costSums) noVarints() { s.Varints, s.Elements = 0, nil }

// noFixed32 clears the sums of the hypothesis of packed 4-byte numbers.
func (s *costSums) noFixed32() { s.Float32, s.Int32, s.Numbers, s.Tops32 = 0, 0, 0, nil }

// noFixed64 clears the sums of the hypothesis of packed 8-byte numbers.
func (s *costSums) noFixed64() { s.Float64, s.Int64, s.Tops64 = 0, 0, nil }

// valid reports whether the sums, which were read from a file, are plausible.
func (s *costSums) valid() bool {
	return countsValid(s.Scored, s.Uneven, s.Raw, s.Repeated, s.UTF16, s.Words, s.Text, s.Control,
		s.Tops32.sum(), s.Tops64.sum(), s.Varints, s.Float32, s.Int32, s.Float64, s.Int64, s.Numbers) &&
		(s.Elements == nil || s.Elements.valid() && s.Elements.Values == nil)
}
