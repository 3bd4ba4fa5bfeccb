package es

import (
	"testing"
	"unicode/utf8"
)

func TestCanariesAreReadBack(t *testing.T) {
	for index := range maxBatch {
		for s := range slot(slots) {
			b := appendCanary(nil, index, s)
			if len(b) != 3 || !utf8.Valid(b) {
				t.Fatalf("% x", b)
			}
			tag := uint64(b[0]&0x7F) | uint64(b[1]&0x7F)<<7 | uint64(b[2])<<14
			message := "illegal tag: field no " + itoa(tag>>3) + " wire type " + itoa(tag&7)
			if got := readCanary(message); got != (sighting{index, s, true, true}) || tag&7 < 6 {
				t.Fatalf("%d %d: %s is read as %+v", index, s, message, got)
			}
		}
	}
}

func itoa(n uint64) string {
	s := ""
	for ; n > 9; n /= 10 {
		s = string(rune('0'+n%10)) + s
	}
	return string(rune('0'+n)) + s
}

// An error's text is read without a panic.
func FuzzCanary(f *testing.F) {
	f.Add("parse binary: illegal tag: field no 33768 wire type 6")
	f.Add("illegal tag: field no 9999999999 wire type 9")
	f.Fuzz(func(t *testing.T, message string) {
		if g := readCanary(message); g.canary && (!g.illegal || g.index < 0 || g.index >= maxBatch || g.slot >= slots) {
			t.Errorf("%+v", g)
		}
	})
}
