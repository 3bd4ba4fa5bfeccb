package envelope

import "encoding/binary"

// PrefixLen is the length of an envelope's flags and length together.
const PrefixLen = 5

// A Prefix is what precedes the payload of an envelope.
type Prefix struct {
	Flags  Flags
	Length uint32
}

// ParsePrefix reads the prefix that b, which has at least PrefixLen bytes, begins with.
func ParsePrefix(b []byte) Prefix {
	return Prefix{Flags(b[0]), binary.BigEndian.Uint32(b[1:PrefixLen])}
}

// Append appends the prefix as it is on the wire.
func (p Prefix) Append(dst []byte) []byte {
	return binary.BigEndian.AppendUint32(append(dst, byte(p.Flags)), p.Length)
}

// Append appends an envelope around payload.
//
// Limits: a payload has at most 4 GiB - 1 byte, as its length field has 32 bits.
func Append(dst []byte, f Flags, payload []byte) []byte {
	return append(Prefix{f, uint32(len(payload))}.Append(dst), payload...)
}

// A PrefixReader gathers prefixes that arrive in pieces. The zero value is ready to
// use.
type PrefixReader struct {
	bytes [PrefixLen]byte
	have  int
}

// Feed reads as many bytes of p as the prefix lacks, and returns how many these are.
// When the prefix is whole, it is returned, and the next call begins another one.
func (r *PrefixReader) Feed(p []byte) (n int, prefix Prefix, whole bool) {
	n = copy(r.bytes[r.have:], p)
	if r.have += n; r.have < PrefixLen {
		return n, Prefix{}, false
	}
	r.have = 0
	return n, ParsePrefix(r.bytes[:]), true
}

// Pending is what has come of a prefix that is not whole.
func (r *PrefixReader) Pending() []byte { return r.bytes[:r.have] }
