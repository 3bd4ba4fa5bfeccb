package wire

// maxVarintLen is the length of the longest varint of 64 bits: 10 groups of 7 bits.
const maxVarintLen = 10

// Results of consumeVarint if there is no complete varint.
const (
	// varintTruncated: the input ends before the last byte.
	varintTruncated = 0

	// varintLong: the value needs more than 64 bits.
	varintLong = -1
)

// consumeVarint reads the varint that begins at pos and must end before end. n is its length in bytes, or
// varintTruncated or varintLong.
func consumeVarint(b []byte, pos, end int) (v uint64, n int) {
	for n < maxVarintLen && pos < end {
		c := b[pos]
		pos++
		v |= uint64(c&0x7f) << (7 * n)
		n++
		if c < 0x80 {
			// 9 bytes carry 63 bits, so the tenth may only add one.
			if n == maxVarintLen && c > 1 {
				return v, varintLong
			}
			return v, n
		}
	}
	if n == maxVarintLen {
		return v, varintLong
	}
	return v, varintTruncated
}

// AppendVarint appends v in as few bytes as possible.
func AppendVarint(dst []byte, v uint64) []byte {
	for v >= 0x80 {
		dst = append(dst, byte(v)|0x80)
		v >>= 7
	}
	return append(dst, byte(v))
}

// AppendVarintWidth appends v in exactly width bytes, which makes it overlong. If width is too small or above
// 10, v has as few bytes as possible. It preserves the width of lengths that a sender padded.
func AppendVarintWidth(dst []byte, v uint64, width int) []byte {
	size := SizeVarint(v)
	if width <= size || width > maxVarintLen {
		return AppendVarint(dst, v)
	}
	for range width - 1 {
		dst = append(dst, byte(v)|0x80)
		v >>= 7
	}
	return append(dst, byte(v))
}

// SizeVarint returns the number of bytes that AppendVarint appends for v.
func SizeVarint(v uint64) int {
	n := 1
	for v >= 0x80 {
		v >>= 7
		n++
	}
	return n
}

// ConsumeVarint reads the varint at the beginning of b and returns its value and its length in bytes.
//
// Errors: n is 0 if b ends inside the varint, and negative if the value has more than 64 bits.
func ConsumeVarint(b []byte) (v uint64, n int) { return consumeVarint(b, 0, len(b)) }
