package kind

import (
	"encoding/binary"
	"math"
)

// costNumberKind is the cost of saying which numbers a payload holds.
const costNumberKind = 1500

// costNumbers is the cost of a payload as numbers of whichever kind suits it best, as
// arrays in bytes are beside a field that says which.
func costNumbers(p []byte) int64 {
	if len(p)%4 != 0 {
		return math.MaxInt64
	}
	head := p[:min(len(p), costBytes)]
	asFloat, asInt := costWidth32(head)
	cost := min(asFloat, asInt, costBigEndian(head))
	if len(p)%8 == 0 {
		asFloat, asInt = costWidth64(head)
		cost = min(cost, asFloat, asInt)
	}
	return whole(cost+costNumberKind, len(p))
}

// costWidth32 is the cost of a payload as values of 32 bits.
func costWidth32(p []byte) (asFloat, asInt int64) {
	for ; len(p) >= 4; p = p[4:] {
		v := binary.LittleEndian.Uint32(p)
		asFloat += costFloat(v)
		asInt += costFixed(uint64(v), 32)
	}
	return asFloat, asInt
}

// costWidth64 is the cost of a payload as values of 64 bits.
func costWidth64(p []byte) (asFloat, asInt int64) {
	for ; len(p) >= 8; p = p[8:] {
		v := binary.LittleEndian.Uint64(p)
		asFloat += costDouble(v)
		asInt += costFixed(v, 64)
	}
	return asFloat, asInt
}

// costBigEndian is the cost of a payload as integers that begin with their upper bytes,
// as protobuf writes none. It is looked for where the first of these is zero.
func costBigEndian(p []byte) (cost int64) {
	if p[0] != 0 {
		return math.MaxInt64
	}
	for b := p; len(b) >= 4; b = b[4:] {
		cost += costFixed(uint64(binary.BigEndian.Uint32(b)), 32)
	}
	if len(p)%8 != 0 {
		return cost
	}
	wide := int64(0)
	for b := p; len(b) >= 8; b = b[8:] {
		wide += costFixed(binary.BigEndian.Uint64(b), 64)
	}
	return min(cost, wide)
}
