package envelope

import "encoding/binary"

// PrefixLen is the size in bytes of an envelope's prefix: flags and length.
const PrefixLen = 5

// A Prefix is the 5-byte header of an envelope: flags and length.
type Prefix struct {
	// Flags is the envelope's first byte.
	Flags Flags

	// Length is the size of the envelope's payload in bytes.
	Length uint32
}

// ParsePrefix parses the prefix at the beginning of b, which must have at least PrefixLen bytes.
func ParsePrefix(b []byte) Prefix {
	return Prefix{Flags(b[0]), binary.BigEndian.Uint32(b[1:PrefixLen])}
}

// Append appends the encoded 5-byte prefix to dst.
func (p Prefix) Append(dst []byte) []byte {
	return binary.BigEndian.AppendUint32(append(dst, byte(p.Flags)), p.Length)
}

// Append appends an envelope with the given payload to dst.
//
// Limits: a payload has at most 4 GiB - 1 byte, because its length has 32 bits.
func Append(dst []byte, f Flags, payload []byte) []byte {
	return append(Prefix{f, uint32(len(payload))}.Append(dst), payload...)
}

// A PrefixReader assembles prefixes that arrive in pieces. The zero value is ready to use.
type PrefixReader struct {
	// bytes are the bytes of the prefix that have arrived.
	bytes [PrefixLen]byte

	// have is the number of bytes of the prefix that have arrived.
	have int
}

// Feed copies as many bytes of p as the prefix lacks, and returns their number. If the prefix is complete, whole
// is true, and the next call begins another prefix.
func (r *PrefixReader) Feed(p []byte) (n int, prefix Prefix, whole bool) {
	n = copy(r.bytes[r.have:], p)
	if r.have += n; r.have < PrefixLen {
		return n, Prefix{}, false
	}
	r.have = 0
	return n, ParsePrefix(r.bytes[:]), true
}

// Pending returns the bytes of an incomplete prefix.
func (r *PrefixReader) Pending() []byte { return r.bytes[:r.have] }
