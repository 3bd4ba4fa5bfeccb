package wire

// SkipField returns the length of the field that b begins with: its tag and its
// value. It is 0 where that is malformed, or a group, which no length tells.
func SkipField(b []byte) int {
	tag, n := ConsumeVarint(b)
	if n <= 0 || tag>>3-1 >= maxNumber {
		return 0
	}
	switch Type(tag & 7) {
	case Varint:
		if _, m := ConsumeVarint(b[n:]); m > 0 {
			return n + m
		}
	case I64:
		if len(b) >= n+8 {
			return n + 8
		}
	case I32:
		if len(b) >= n+4 {
			return n + 4
		}
	case Len:
		if v, m := ConsumeVarint(b[n:]); m > 0 && v <= uint64(len(b)-n-m) {
			return n + m + int(v)
		}
	}
	return 0
}
