package proto

import (
	"encoding/base64"
	"strings"
	"time"
)

// checksumTimeLen is the length in characters of a checksum's time part.
const checksumTimeLen = 8

// checksum returns the value of the checksum header for the time now. It replaces the time part of the captured
// value. Without a captured value, it appends machine, the part that identifies the machine.
func checksum(captured, machine string, now time.Time) string {
	if captured == "" && machine != "" {
		return checksumTime(now, base64.RawURLEncoding) + machine
	}
	fresh, _ := refreshChecksum(captured, now)
	return fresh
}

// checksumTime returns the first part of an x-cursor-checksum in base64: the time in units of 1,000 seconds,
// obfuscated by chaining its bytes with a running key.
//
// The six bytes are a 32-bit number shifted by 40, 32, 24, 16, 8 and 0. JavaScript shifts modulo 32, so the
// first two bytes equal the last two.
//
// Source: RESEARCH.md#checksum
func checksumTime(t time.Time, enc *base64.Encoding) string {
	n := uint32(t.UnixMilli() / 1_000_000)
	var b [6]byte
	key := byte(165)
	for i, shift := range [...]uint{40, 32, 24, 16, 8, 0} {
		// Each byte is the key of the next one.
		key = (byte(n>>(shift%32)) ^ key) + byte(i)
		b[i] = key
	}
	return enc.EncodeToString(b[:])
}

// refreshChecksum replaces the time part of a checksum. It keeps the rest, which identifies the machine and is
// never invented here. ok is false if captured does not begin with a time part.
func refreshChecksum(captured string, now time.Time) (fresh string, ok bool) {
	if len(captured) < checksumTimeLen {
		return captured, false
	}
	// Clients differ in the alphabet of base64, so keep the captured one.
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

// isChecksumTime decodes b and reports whether it is plausible: the first two bytes must equal the last two, and
// the third is zero until the year 2500.
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
