package wire

// SkipField returns the length in bytes of the first field of b, tag included. It returns 0 for a malformed
// field, and for a group, whose length is not written in its tag.
func SkipField(b []byte) int {
	tag, n := ConsumeVarint(b)
	// The subtraction wraps around for field number 0, which is malformed as well.
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

// SkipFields returns the length in bytes of the whole fields at the beginning of b. It ends before a malformed field and
// before a group; isGroup means that it was a group.
func SkipFields(b []byte) (n int, isGroup bool) {
	for n < len(b) {
		size := SkipField(b[n:])
		if size == 0 {
			return n, Type(b[n]&7) == StartGroup
		}
		n += size
	}
	return n, false
}
