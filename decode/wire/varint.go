package wire

// maxVarintLen is the most bytes a varint of 64 bits takes.
const maxVarintLen = 10

// Results of consumeVarint that are no width.
const (
	varintCut  = 0
	varintLong = -1
)

// consumeVarint reads the varint that begins at pos and lies before end.
//
// Shape: n is its width, varintCut or varintLong.
func consumeVarint(b []byte, pos, end int) (v uint64, n int) {
	for n < maxVarintLen && pos < end {
		c := b[pos]
		pos++
		v |= uint64(c&0x7f) << (7 * n)
		n++
		if c < 0x80 {
			if n == maxVarintLen && c > 1 {
				return v, varintLong
			}
			return v, n
		}
	}
	if n == maxVarintLen {
		return v, varintLong
	}
	return v, varintCut
}

// AppendVarint appends v in as few bytes as it takes.
func AppendVarint(dst []byte, v uint64) []byte {
	for v >= 0x80 {
		dst = append(dst, byte(v)|0x80)
		v >>= 7
	}
	return append(dst, byte(v))
}

// AppendVarintWidth appends v in exactly width bytes where that is possible,
// which makes it overlong, and in as few as it takes where it is not.
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

// SizeVarint is how many bytes v takes.
func SizeVarint(v uint64) int {
	n := 1
	for v >= 0x80 {
		v >>= 7
		n++
	}
	return n
}

// ConsumeVarint reads the varint at the beginning of b.
//
// Errors: n is 0 where b ends inside it, negative where it has more than 64 bits.
func ConsumeVarint(b []byte) (v uint64, n int) { return consumeVarint(b, 0, len(b)) }
