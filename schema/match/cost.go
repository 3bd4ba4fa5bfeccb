package match

import (
	"fmt"
	"math"
	"math/bits"
	"unicode"
	"unicode/utf8"

	"google.golang.org/protobuf/reflect/protoreflect"

	"unwire/decode/wire"
)

// Prices in bits. They are round figures for what is usual, chosen by hand: text
// costs about five bits a character, a number its length twice.
const (
	costTag     = 8
	costByte    = 8
	costControl = 16

	// bytes of a payload that are looked at; the rest costs as much a byte
	maxCosted = 1024
)

// scalar is the price of a value as what is declared, and why it cannot be that.
func (s *scorer) scalar(f *field, c int32) (price float64, veto string) {
	n := &s.t.Nodes[c]
	switch n.Type {
	case wire.Varint:
		return s.number(f, s.t.Uint(c))
	case wire.I32:
		v := uint32(s.t.Uint(c))
		if f.kind == protoreflect.FloatKind {
			return costReal(float64(math.Float32frombits(v)), bits.TrailingZeros32(v|1<<23), 23, 32), ""
		}
		return min(1+costNumber(zigzag32(v)), 32), ""
	case wire.I64:
		v := s.t.Uint(c)
		if f.kind == protoreflect.DoubleKind {
			return costReal(math.Float64frombits(v), bits.TrailingZeros64(v|1<<52), 52, 64), ""
		}
		return min(1+costNumber(v), 64), ""
	}
	p := s.t.Payload(c)
	price = costLength(len(p))
	if len(p) == 0 && f.implicit {
		price += costDefault
	}
	if f.kind == protoreflect.StringKind {
		text, ok := s.text(c)
		if !ok {
			return price + costByte*float64(len(p)), "not UTF-8, declared string"
		}
		return price + text, ""
	}
	text, ok := s.text(c)
	if raw := costByte * float64(len(p)); !ok || raw < text+3 {
		return price + raw, ""
	}
	return price + text + 3, ""
}

// number is the price of a varint.
func (s *scorer) number(f *field, v uint64) (price float64, veto string) {
	if v == 0 && f.implicit {
		price = costDefault
	}
	switch f.kind {
	case protoreflect.BoolKind:
		if v > 1 {
			return price + costNumber(v), fmt.Sprintf("%d, declared bool", v)
		}
		return price + 1, ""
	case protoreflect.EnumKind:
		if int64(v) != int64(int32(v)) {
			return price + costNumber(v), "outside 32 bits, declared enum"
		}
		if !f.names[int32(v)] {
			return price + costNoName + costNumber(v), ""
		}
		return price + min(math.Log2(float64(len(f.names))), costNumber(v)), ""
	case protoreflect.Int32Kind:
		if int64(v) != int64(int32(v)) {
			return price + costNumber(v), "outside 32 bits, declared int32"
		}
	case protoreflect.Uint32Kind:
		if v > math.MaxUint32 {
			return price + costNumber(v), "outside 32 bits, declared uint32"
		}
	case protoreflect.Sint32Kind, protoreflect.Sint64Kind:
		if f.kind == protoreflect.Sint32Kind && v > math.MaxUint32 {
			return price + costNumber(v), "outside 32 bits, declared sint32"
		}
		// rarer than the others, and no better for the same number
		return price + 1.5 + costNumber(v), ""
	}
	if int64(v) < 0 && f.kind != protoreflect.Uint64Kind {
		return price + 4 + costNumber(-v), ""
	}
	return price + costNumber(v), ""
}

// packed adds the price of a packed payload and returns the bytes explained.
func (s *scorer) packed(r *score, f *field, g *group, c int32) int64 {
	p := s.t.Payload(c)
	n := &s.t.Nodes[c]
	r.bits += costLength(len(p))
	if width := f.wire.FixedLen(); width > 0 {
		if len(p)%width != 0 {
			r.veto(g.number, "%d bytes, declared packed %s", len(p), f.kind)
			r.bits += costByte * float64(len(p))
			return 0
		}
		r.bits += s.fixed(f, p, width)
		return int64(n.End - n.Off)
	}
	if !s.isVarints(c) {
		r.veto(g.number, "no list of varints, declared packed %s", f.kind)
		r.bits += costByte * float64(len(p))
		return 0
	}
	element := &field{kind: f.kind, names: f.names}
	sum, read := 0.0, 0
	for read < min(len(p), maxCosted) {
		v, n := wire.ConsumeVarint(p[read:])
		price, reason := s.number(element, v)
		if reason != "" {
			r.veto(g.number, "%s", reason)
		}
		sum += price
		read += n
	}
	if read > 0 {
		sum *= float64(len(p)) / float64(read)
	}
	r.bits += sum
	return int64(n.End - n.Off)
}

// fixed is the price of packed fixed-width values, by the first of them.
func (s *scorer) fixed(f *field, p []byte, width int) float64 {
	head := p[:min(len(p), maxCosted)]
	sum := 0.0
	for ; len(head) >= width; head = head[width:] {
		v := wire.Fixed(head[:width])
		switch f.kind {
		case protoreflect.FloatKind:
			sum += costReal(float64(math.Float32frombits(uint32(v))), bits.TrailingZeros32(uint32(v)|1<<23), 23, 32)
		case protoreflect.DoubleKind:
			sum += costReal(math.Float64frombits(v), bits.TrailingZeros64(v|1<<52), 52, 64)
		default:
			sum += min(1+costNumber(v), float64(8*width))
		}
	}
	return whole(sum, len(p))
}

// raw is the price of a node of which nothing is known.
func (s *scorer) raw(c int32) float64 {
	n := &s.t.Nodes[c]
	switch n.Type {
	case wire.Varint:
		return costNumber(s.t.Uint(c)) + 2
	case wire.I32:
		return 34
	case wire.I64:
		return 66
	}
	p := s.t.Payload(c)
	price := costByte * float64(len(p))
	if text, ok := s.text(c); ok {
		price = min(price, text)
	}
	return price + costLength(len(p)) + 3
}

// costNumber grows with the length in bits; small numbers are usual.
func costNumber(v uint64) float64 { return 1 + 1.4*float64(bits.Len64(v)) }

func zigzag32(v uint32) uint64 {
	if i := int32(v); i < 0 {
		return uint64(-int64(i))
	}
	return uint64(v)
}

func costLength(n int) float64 { return 1 + 1.2*float64(bits.Len(uint(n))) }

// costCount is the price of how often a list occurs.
func costCount(n int) float64 { return 1 + 2*math.Log2(float64(n)) }

// costReal is the price of a floating-point number: exponents near one and short
// fractions are usual.
func costReal(f float64, trailing, mantissa, width int) float64 {
	if f == 0 {
		return 4
	}
	a := math.Abs(f)
	price := float64(mantissa-min(trailing, mantissa)) + 4
	if s := a * 1e4; s < 1<<50 && math.Abs(s-math.Round(s)) < 1e-6*max(1, s) {
		price = min(price, 6+math.Log2(s+1))
	}
	switch {
	case math.IsNaN(f) || math.IsInf(f, 0):
		price = 20
	case a >= 1e-6 && a < 1e10:
		price += 5
	case a >= 1e-20 && a < 1e20:
		price += 10
	default:
		price += 16
	}
	return min(price, float64(width+6))
}

// costText is the price of bytes as text, if they are UTF-8.
func costText(p []byte) (price float64, ok bool) {
	if !utf8.Valid(p) {
		return 0, false
	}
	head := p[:min(len(p), maxCosted)]
	for len(head) > 0 {
		c := head[0]
		if c < utf8.RuneSelf {
			price += costASCII(c)
			head = head[1:]
			continue
		}
		r, n := utf8.DecodeRune(head)
		switch {
		case r == utf8.RuneError && n == 1: // cut by the bound
		case unicode.IsPrint(r):
			price += 4 * float64(n)
		default:
			price += costControl + 8
		}
		head = head[n:]
	}
	return whole(price, len(p)), true
}

func costASCII(c byte) float64 {
	switch {
	case c >= 'a' && c <= 'z', c == ' ':
		return 4.5
	case c >= '0' && c <= '9', c >= 'A' && c <= 'Z':
		return 5.3
	case c == '\n', c == '\t':
		return 6
	case c < 0x20, c == 0x7f:
		return costControl
	}
	return 6.3
}

// whole extends the price of a payload's head to all of its size bytes.
func whole(price float64, size int) float64 {
	if size <= maxCosted {
		return price
	}
	return price * float64(size) / maxCosted
}

// costSubset is the price of which k of n fields are present.
func costSubset(k, n int) float64 {
	return math.Log2(float64(n+1)) + costChoose(min(k, n), n)
}

// costChoose is log2 of n over k.
func costChoose(k, n int) float64 {
	if k <= 0 || k >= n {
		return 0
	}
	lg := func(x int) float64 { v, _ := math.Lgamma(float64(x) + 1); return v }
	return (lg(n) - lg(k) - lg(n-k)) / math.Ln2
}
