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

// Description lengths (costs) in bits of parts of a message. They are rough code lengths for typical data,
// chosen by hand: a character of text costs about five bits, and a number about 1.4 times its length.
const (
	// costTag is the cost of a tag.
	costTag = 8
	// costByte is the cost of a byte that is not text.
	costByte = 8
	// costControl is the cost of a control character in text.
	costControl = 16

	// maxCosted is the number of bytes of a payload that are examined. The rest is assumed to have the same
	// cost per byte.
	maxCosted = 1024
)

// costScalar returns the description length, in bits, of the value at node c under its declared type. veto is
// the reason why the value cannot have that type, or "".
func (s *scorer) costScalar(f *field, c int32) (price float64, veto string) {
	n := &s.t.Nodes[c]
	switch n.Type {
	case wire.Varint:
		return s.costVarint(f, s.t.Uint(c))
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

	// What remains is length-delimited: text or bytes.
	p := s.t.Payload(c)
	price = costLength(len(p))
	if len(p) == 0 && f.implicit {
		price += costDefault
	}

	// A string that is not UTF-8 contradicts its type.
	if f.kind == protoreflect.StringKind {
		text, ok := s.costOfText(c)
		if !ok {
			return price + costByte*float64(len(p)), "is not valid UTF-8, but is declared as string"
		}
		return price + text, ""
	}

	// Declared bytes are often text. Three more bits are the price of saying that they are.

	text, ok := s.costOfText(c)
	if raw := costByte * float64(len(p)); !ok || raw < text+3 {
		return price + raw, ""
	}
	return price + text + 3, ""
}

// costVarint returns the description length, in bits, of the varint v under its declared type. veto is the
// reason why it cannot have that type, or "".
func (s *scorer) costVarint(f *field, v uint64) (price float64, veto string) {
	if v == 0 && f.implicit {
		price = costDefault
	}
	switch f.kind {
	case protoreflect.BoolKind:
		if v > 1 {
			return price + costNumber(v), fmt.Sprintf("has the value %d, but is declared as bool", v)
		}
		return price + 1, ""
	case protoreflect.EnumKind:
		if int64(v) != int64(int32(v)) {
			return price + costNumber(v), "has a value outside 32 bits, but is declared as an enum"
		}
		// An open enum may have unnamed values, so this costs bits but rules nothing out.
		if !f.names[int32(v)] {
			return price + costNoName + costNumber(v), ""
		}
		return price + min(math.Log2(float64(len(f.names))), costNumber(v)), ""
	case protoreflect.Int32Kind:
		if int64(v) != int64(int32(v)) {
			return price + costNumber(v), "has a value outside 32 bits, but is declared as int32"
		}
	case protoreflect.Uint32Kind:
		if v > math.MaxUint32 {
			return price + costNumber(v), "has a value outside 32 bits, but is declared as uint32"
		}
	case protoreflect.Sint32Kind, protoreflect.Sint64Kind:
		if f.kind == protoreflect.Sint32Kind && v > math.MaxUint32 {
			return price + costNumber(v), "has a value outside 32 bits, but is declared as sint32"
		}
		// Zigzag encoding is rarer than the others, and must not win with the same number.
		return price + 1.5 + costNumber(v), ""
	}

	// Negative numbers take ten bytes as a varint, which is rare.
	if int64(v) < 0 && f.kind != protoreflect.Uint64Kind {
		return price + 4 + costNumber(-v), ""
	}
	return price + costNumber(v), ""
}

// addPacked adds the description length of the packed payload at node c to r. It returns the number of
// explained bytes.
func (s *scorer) addPacked(r *messageScore, f *field, g *fieldGroup, c int32) int64 {
	p := s.t.Payload(c)
	n := &s.t.Nodes[c]
	r.bits += costLength(len(p))
	// Numbers that fit no code well are described by their bytes, as those of an unknown field would be. A type must
	// not lose because it explains them.
	raw := costByte * float64(len(p))
	if width := f.wire.FixedLen(); width > 0 {
		if len(p)%width != 0 {
			r.veto(g.number, "has %d bytes, but is declared as packed %s", len(p), f.kind)
			r.bits += raw
			return 0
		}
		r.bits += min(s.costFixed(f, p, width), raw)
		return int64(n.End - n.Off)
	}

	if !s.isVarints(c) {
		r.veto(g.number, "is not a list of varints, but is declared as packed %s", f.kind)
		r.bits += raw
		return 0
	}

	element := &field{kind: f.kind, names: f.names}
	sum, read := 0.0, 0
	for read < min(len(p), maxCosted) {
		v, n := wire.ConsumeVarint(p[read:])
		price, reason := s.costVarint(element, v)
		if reason != "" {
			r.veto(g.number, "%s", reason)
		}
		sum += price
		read += n
	}

	// The price of the beginning stands for all of the payload.
	if read > 0 {
		sum *= float64(len(p)) / float64(read)
	}
	r.bits += min(sum, raw)
	return int64(n.End - n.Off)
}

// costFixed returns the description length, in bits, of packed values of width bytes each, estimated from the
// first of them.
func (s *scorer) costFixed(f *field, p []byte, width int) float64 {
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
	return extrapolate(sum, len(p))
}

// costRaw returns the description length, in bits, of a field that the type does not declare. It is a little
// greater than under any fitting type.
func (s *scorer) costRaw(c int32) float64 {
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
	if text, ok := s.costOfText(c); ok {
		price = min(price, text)
	}
	return price + costLength(len(p)) + 3
}

// costNumber returns the description length, in bits, of a number. It grows with the number of bits, because
// small numbers are frequent.
func costNumber(v uint64) float64 { return 1 + 1.4*float64(bits.Len64(v)) }

// zigzag32 returns the magnitude of a signed 32-bit number.
func zigzag32(v uint32) uint64 {
	if i := int32(v); i < 0 {
		return uint64(-int64(i))
	}
	return uint64(v)
}

// costLength returns the description length, in bits, of the length of a payload.
func costLength(n int) float64 { return 1 + 1.2*float64(bits.Len(uint(n))) }

// costCount returns the description length, in bits, of the number of elements of a list.
func costCount(n int) float64 { return 1 + 2*math.Log2(float64(n)) }

// costReal returns the description length, in bits, of a floating-point number: exponents near one and short
// fractions are frequent. trailing is the number of zero bits at the end of the mantissa; mantissa and width
// are sizes in bits.
func costReal(f float64, trailing, mantissa, width int) float64 {
	if f == 0 {
		return 4
	}
	a := math.Abs(f)
	price := float64(mantissa-min(trailing, mantissa)) + 4
	// A decimal fraction of at most four digits is as likely as a short binary one.
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

// costText returns the description length, in bits, of bytes as text. ok is false if they are not UTF-8.
func costText(p []byte) (price float64, ok bool) {
	if !utf8.Valid(p) {
		return 0, false
	}
	head := p[:min(len(p), maxCosted)]
	for len(head) > 0 {
		c := head[0]
		// ASCII is the frequent case.
		if c < utf8.RuneSelf {
			price += costASCII(c)
			head = head[1:]
			continue
		}
		r, n := utf8.DecodeRune(head)
		switch {
		// The limit cut a character in two.
		case r == utf8.RuneError && n == 1:
		case unicode.IsPrint(r):
			price += 4 * float64(n)
		default:
			price += costControl + 8
		}
		head = head[n:]
	}
	return extrapolate(price, len(p)), true
}

// costASCII returns the description length, in bits, of an ASCII character, from its frequency in usual texts.
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

// extrapolate extends the description length of the first maxCosted bytes of a payload to all of its size
// bytes.
func extrapolate(price float64, size int) float64 {
	if size <= maxCosted {
		return price
	}
	return price * float64(size) / maxCosted
}

// costSubset returns the description length, in bits, of a subset of k out of n fields: first its size, then
// which of the subsets of that size it is.
func costSubset(k, n int) float64 {
	return math.Log2(float64(n+1)) + costChoose(min(k, n), n)
}

// costChoose returns the binary logarithm of the binomial coefficient of n and k.
func costChoose(k, n int) float64 {
	if k <= 0 || k >= n {
		return 0
	}
	lg := func(x int) float64 { v, _ := math.Lgamma(float64(x) + 1); return v }
	return (lg(n) - lg(k) - lg(n-k)) / math.Ln2
}
