package wire

import (
	"bytes"
	"math"
	"math/bits"
	"unicode"
	"unicode/utf8"
)

// sampleLen is how much of a long payload is weighed; the rest is taken to be
// like it. Validity is always checked to the end.
const sampleLen = 4096

// payload returns the code length of a payload as each kind. That of the node
// that was asked for last is kept: it is often asked for again.
func (r *Reader) payload(i int32) payloadCost {
	if r.last != i || i == 0 {
		r.last, r.lastCost = i, r.weighPayload(i)
	}
	return r.lastCost
}

func (r *Reader) weighPayload(i int32) (cost payloadCost) {
	data := r.t.Payload(i)
	if len(data) == 0 {
		// Nothing tells the kinds apart. A serializer omits an empty string or
		// bytes where it may, but not an empty message.
		return payloadCost{asMessage: 0, asString: 2, asBytes: 2, asPackedVarint: impossible, asPackedFixed32: impossible, asPackedFixed64: impossible}
	}
	cost[asString] = textBits(data)
	cost[asMessage] = r.fieldsBits(i)
	// Bytes fields hold text and messages, too: then only the declared kind
	// differs, which no byte tells.
	cost[asBytes] = min(bytesBits(data), cost[asString]+bytesOfText, cost[asMessage]+bytesOfMessage)
	if cost[asString] < 6.5*float64(len(data)) && len(data) > 40 {
		// Nobody's numbers look like that much text.
		cost[asPackedVarint], cost[asPackedFixed32], cost[asPackedFixed64] = impossible, impossible, impossible
		return cost
	}
	cost[asPackedVarint] = packedVarintBits(data, min(cost[asString], cost[asBytes])+hopeless)
	cost[asPackedFixed32] = packedFixedBits(data, 4)
	cost[asPackedFixed64] = packedFixedBits(data, 8)
	return cost
}

// payloadWhy says what speaks for the readings of a payload.
var payloadWhy = [numPayloadKinds]string{
	"fields with plausible numbers, types and values", "characters of text", "known file format, or nothing better",
	"varints of alike size", "fixed32 values", "fixed64 values",
}

func (c *payloadCost) why(k, length int) []Feature {
	return []Feature{{payloadWhy[k], 8*float64(length) - c[k]}, {"how common it is", -prior[k]}}
}

const (
	bytesOfText    = 7 // bits by which bytes that hold text are rarer than other bytes
	bytesOfMessage = 7
)

// fieldsBits is the cost of node i as a message; impossible if it does not
// parse as one, or, for the root, if it has garbage.
func (r *Reader) fieldsBits(i int32) float64 {
	if !r.t.IsMessage(i) {
		return impossible
	}
	return r.cost[i-r.first]
}

// messageBits adds up the cost of a node's fields.
func (r *Reader) messageBits(i int32) float64 {
	total := 2.0 // that it ends where its length says
	prev := uint64(0)
	prevType := Garbage
	for c := range r.t.Children(i) {
		n := &r.t.Nodes[c]
		if n.Type == Garbage || n.Err != nil && n.Type != Len {
			return impossible
		}
		total += numberBits(n.Number, prev)
		if n.Number == prev && n.Type != prevType {
			total += 12 // one number has one type, but for packed and unpacked
		}
		prev, prevType = n.Number, n.Type
		if n.Overlong {
			total += 20
		}
		switch n.Type {
		case Varint:
			total += 1 + varintBits(r.t.Uint(c))
		case I32:
			total += 5 + fixed32Bits(uint32(r.t.Uint(c)))
		case I64:
			total += 5 + fixed64Bits(r.t.Uint(c))
		case StartGroup:
			total += 12
			if n.First != None {
				total += r.cost[c-r.first]
			}
		case Len:
			total++
			// That the last field is the last tells its length.
			if n.Next != None {
				total += 1.5 + math.Log2(float64(n.End-n.Val)+2)
			}
			if n.End == n.Val {
				total += 2
				break
			}
			cost := r.payload(c)
			total += cost.least()
		}
	}
	return min(total, impossible)
}

// numberBits is the cost of a field number behind the one before it, 0 for
// none. Serializers write fields in ascending order.
func numberBits(number, prev uint64) float64 {
	size := func(n uint64) float64 { return 1 + 1.3*math.Log2(float64(n)) }
	switch {
	case number == 0:
		return 64
	case prev == 0:
		return size(number)
	case number == prev:
		return 1
	case number > prev:
		return min(size(number-prev), size(number)) + 0.5
	}
	return size(number) + 5
}

// varintBits is the cost of a scalar varint. Small ones are common; zero is
// mostly not written at all.
func varintBits(v uint64) float64 {
	switch {
	case v == 0:
		return 5
	case v == 1:
		return 1.5
	case int64(v) < 0:
		return 10 + 1.3*float64(bits.Len64(-v)) // int32 and int64 below zero
	}
	return 1 + 1.15*float64(bits.Len64(v))
}

// fixed32Bits and fixed64Bits tell floats that somebody meant, and small
// numbers, from random bits, for which they need more bits than there are.
func fixed32Bits(v uint32) float64 {
	switch {
	case v == 0:
		return 6
	case plausibleFloat(float64(math.Float32frombits(v))):
		return 9 + 23 - 0.9*float64(min(bits.TrailingZeros32(v), 23))
	}
	return min(3+1.15*float64(bits.Len32(v)), 36)
}

func fixed64Bits(v uint64) float64 {
	switch {
	case v == 0:
		return 6
	case plausibleFloat(math.Float64frombits(v)):
		// Quantities often have three decimals or fewer; random bits never.
		f := math.Abs(math.Float64frombits(v)) * 1000
		mantissa := 9 + 52 - 0.9*float64(min(bits.TrailingZeros64(v), 52))
		if math.Abs(f-math.Round(f)) < f*1e-15 && f < 1e12 {
			return min(mantissa, 12+math.Log2(f+1))
		}
		return mantissa
	}
	return min(3+1.15*float64(bits.Len64(v)), 68)
}

// plausibleFloat reports a magnitude that measured quantities have.
func plausibleFloat(f float64) bool {
	f = math.Abs(f)
	return f > 1e-9 && f < 1e13
}

// textBits is the cost of data as text in UTF-8.
func textBits(data []byte) float64 {
	if !utf8.Valid(data) {
		return impossible
	}
	sample := data
	if len(data) > sampleLen {
		sample = data[:sampleLen]
	}
	total := 0.0
	var script *unicode.RangeTable
	for i := 0; i < len(sample); {
		if c := sample[i]; c < utf8.RuneSelf {
			total += asciiBits[c]
			i++
			continue
		}
		c, size := utf8.DecodeRune(sample[i:])
		if c == utf8.RuneError && size <= 1 {
			sample = sample[:i] // cut by the sampling
			break
		}
		i += size
		b, s := runeBits(c, script)
		total += b
		script = s
	}
	if len(sample) == 0 {
		return 0
	}
	return total * float64(len(data)) / float64(len(sample))
}

// asciiBits is the cost of ASCII characters in text: prose, code, paths, ids.
var asciiBits = func() (t [utf8.RuneSelf]float64) {
	for c := range t {
		switch {
		case c == ' ':
			t[c] = 3
		case c >= 'a' && c <= 'z':
			t[c] = 4.6
		case c >= '0' && c <= '9':
			t[c] = 5
		case c >= 'A' && c <= 'Z':
			t[c] = 5.5
		case c == '\n':
			t[c] = 6
		case c == '\t' || c == '\r':
			t[c] = 7
		case c == 0x1b:
			t[c] = 12 // terminal output
		case c < ' ' || c == 0x7f:
			t[c] = 17
		case bytes.IndexByte([]byte("._-/:,"), byte(c)) >= 0:
			t[c] = 5.5
		default:
			t[c] = 6.5
		}
	}
	return t
}()

// scripts are those whose runs make text coherent. A rune in the script of the
// one before costs less than one that changes it.
var scripts = [...]struct {
	table *unicode.RangeTable
	bits  float64
}{
	{unicode.Latin, 7},
	{unicode.Cyrillic, 5.5},
	{unicode.Han, 11},
	{unicode.Hiragana, 6.5},
	{unicode.Katakana, 6.5},
	{unicode.Hangul, 10.5},
	{unicode.Arabic, 6},
	{unicode.Hebrew, 5.5},
	{unicode.Greek, 6},
	{unicode.Devanagari, 6.5},
	{unicode.Thai, 6.5},
}

func runeBits(c rune, prev *unicode.RangeTable) (cost float64, script *unicode.RangeTable) {
	if prev != nil && unicode.Is(prev, c) {
		for i := range scripts {
			if scripts[i].table == prev {
				return scripts[i].bits, prev
			}
		}
	}
	for i := range scripts {
		if unicode.Is(scripts[i].table, c) {
			return scripts[i].bits + 3, scripts[i].table
		}
	}
	switch {
	case unicode.Is(unicode.So, c), c == 0x200d, c == 0xfe0f: // emoji and what joins them
		return 12, prev
	case unicode.IsPunct(c), unicode.IsSpace(c), unicode.IsSymbol(c):
		return 10, prev
	case unicode.IsLetter(c), unicode.IsMark(c), unicode.IsDigit(c), unicode.Is(unicode.Sk, c):
		return 13, prev
	}
	return 30, prev // controls, private use, unassigned
}

// magics begin the file formats that are sent in bytes fields.
var magics = [...]string{
	"\x1f\x8b\x08", "\x28\xb5\x2f\xfd", "\x89PNG\r\n\x1a\n", "\xff\xd8\xff", "GIF8", "PK\x03\x04", "%PDF-",
	"\x7fELF", "\x00asm", "RIFF", "SQLite format 3\x00", "OggS", "ID3", "BZh", "\xfd7zXZ\x00",
}

// bytesBits is the cost of data as bytes without any structure that we know.
func bytesBits(data []byte) float64 {
	total := 8 * float64(len(data))
	for _, m := range magics {
		if len(data) > len(m) && string(data[:len(m)]) == m {
			// As unlikely by chance as its bits, and one of a few formats.
			return total - 8*float64(len(m)) + 6
		}
	}
	if len(data) < 64 && len(data)%4 != 0 {
		return total + 2.5 // short bytes are ids, hashes and keys, of even sizes
	}
	return total
}

// hopeless is by how many bits a reading must lose to be certain to be left out.
const hopeless = 40

// packedVarintBits is the cost of data as varints one behind the other;
// impossible as soon as it exceeds limit.
//
// Shape: the better of two codes: one for small or ascending numbers, and one
// for numbers of about the same size, which says the greatest width, and for
// each its width and seven bits a byte.
func packedVarintBits(data []byte, limit float64) float64 {
	sized := 2.0
	widest, count, seen, pos := 0, 0, 0, 0
	var prev uint64
	for pos < len(data) {
		v, n := consumeVarint(data, pos, len(data))
		if n <= 0 || n > 1 && data[pos+n-1] == 0 {
			return impossible
		}
		pos += n
		if pos > sampleLen {
			continue
		}
		if sized > limit && float64(7*pos) > limit {
			return impossible
		}
		widest, count, seen = max(widest, n), count+1, pos
		sized += elementBits(v, prev)
		prev = v
	}
	even := 2*float64(widest) + float64(7*seen) + float64(count)*(math.Log2(float64(widest))-0.3)
	total := 1 + min(sized, even)
	if seen > 0 {
		total *= float64(len(data)) / float64(seen)
	}
	return total
}

// elementBits is the cost of an element behind the one before it. Lists often
// ascend.
func elementBits(v, prev uint64) float64 {
	cost := 2 + 1.2*float64(bits.Len64(v))
	switch {
	case v == 0:
		cost = 3
	case int64(v) < 0:
		cost = 12 + 1.3*float64(bits.Len64(-v))
	}
	if prev > 0 && v > prev {
		cost = min(cost, 3+1.3*float64(bits.Len64(v-prev)))
	}
	return cost
}

// packedFixedBits is the cost of data as fixed values of a width in bytes.
func packedFixedBits(data []byte, width int) float64 {
	if len(data)%width != 0 || len(data) == 0 {
		return impossible
	}
	total := 2.0
	if len(data) == width {
		total += 3 // a list of one is rare
	}
	sample := data[:min(len(data), sampleLen)]
	for pos := 0; pos < len(sample); pos += width {
		v := Fixed(sample[pos : pos+width])
		if width == 4 {
			total += fixed32Bits(uint32(v))
		} else {
			total += fixed64Bits(v)
		}
	}
	return total * float64(len(data)) / float64(len(sample))
}
