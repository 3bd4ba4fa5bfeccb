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
