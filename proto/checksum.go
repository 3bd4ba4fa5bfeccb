package proto

import (
	"encoding/base64"
	"strings"
	"time"
)

// checksumTimeLen is how many characters the time part of a checksum has.
const checksumTimeLen = 8

// checksum returns the value of the header at a time: the captured one with
// another time part, or one of the machine's part.
func checksum(captured, machine string, now time.Time) string {
	if captured == "" && machine != "" {
		return checksumTime(now, base64.RawURLEncoding) + machine
	}
	fresh, _ := refreshChecksum(captured, now)
	return fresh
}

// checksumTime is the first part of an x-cursor-checksum: the time in units of
// 1,000 seconds, its bytes chained with a running key, in base64.
//
// The six bytes come from shifts of a 32-bit number by 40, 32, 24, 16, 8 and 0.
// In JavaScript a shift counts modulo 32, so the first two repeat the last two.
//
// Source: RESEARCH.md#checksum
func checksumTime(t time.Time, enc *base64.Encoding) string {
	n := uint32(t.UnixMilli() / 1_000_000)
	var b [6]byte
	key := byte(165)
	for i, shift := range [...]uint{40, 32, 24, 16, 8, 0} {
		key = (byte(n>>(shift%32)) ^ key) + byte(i)
		b[i] = key
	}
	return enc.EncodeToString(b[:])
}

// refreshChecksum replaces the time part of a checksum and keeps what follows
// it, which tells the machine and is never invented here. ok is false where
// captured does not begin with a time part.
func refreshChecksum(captured string, now time.Time) (fresh string, ok bool) {
	if len(captured) < checksumTimeLen {
		return captured, false
	}
	enc := base64.RawURLEncoding
	if strings.ContainsAny(captured[:checksumTimeLen], "+/") {
		enc = base64.RawStdEncoding
	}
	b, err := enc.DecodeString(captured[:checksumTimeLen])
	if err != nil || !isChecksumTime(b) {
		return captured, false
	}
	return checksumTime(now, enc) + captured[checksumTimeLen:], true
}

// isChecksumTime undoes the chain and looks whether the first two bytes repeat
// the last two, and the third, which is zero until the year 2500, is.
func isChecksumTime(b []byte) bool {
	if len(b) != 6 {
		return false
	}
	var plain [6]byte
	key := byte(165)
	for i, c := range b {
		plain[i] = (c - byte(i)) ^ key
		key = c
	}
	return plain[0] == plain[4] && plain[1] == plain[5] && plain[2] == 0
}
