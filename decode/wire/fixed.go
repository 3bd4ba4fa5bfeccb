package wire

import "encoding/binary"

// Fixed reads a fixed value of four or eight bytes; of any other length it is 0.
func Fixed(b []byte) uint64 {
	switch len(b) {
	case 4:
		return uint64(binary.LittleEndian.Uint32(b))
	case 8:
		return binary.LittleEndian.Uint64(b)
	}
	return 0
}
