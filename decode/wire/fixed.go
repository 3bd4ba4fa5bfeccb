package wire

import "encoding/binary"

// Fixed reads a little-endian value of 4 or 8 bytes. For any other length it returns 0.
func Fixed(b []byte) uint64 {
	switch len(b) {
	case 4:
		return uint64(binary.LittleEndian.Uint32(b))
	case 8:
		return binary.LittleEndian.Uint64(b)
	}
	return 0
}
