package bytecost

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"
)

// TestFastWaysAgree: what is counted many at a time is what one at a time gives.
func TestFastWaysAgree(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := rapid.SliceOfN(rapid.OneOf(rapid.Byte(), rapid.ByteRange('0', '9'), rapid.SampledFrom([]byte{0, 0, 1, 'a', 127})), 2, 700).Draw(t, "bytes")
		for distance := 1; distance <= 2; distance++ {
			same := 0
			for i := distance; i < len(p); i++ {
				if p[i] == p[i-distance] {
					same++
				}
			}
			if s := repeats(p, distance); s != same {
				t.Fatalf("%d and %d bytes are as the one %d before", s, same, distance)
			}
		}

		text := bytes.Clone(p)
		for i := range text {
			text[i] &= 0x7f
		}
		var cost int64
		for i, c := range text[:min(len(text), Head)] {
			if i > 0 && isDigit(c) && isDigit(text[i-1]) {
				cost += costNextDigit
			} else {
				cost += costASCII[c]
			}
		}
		if n, got, _ := costASCIIText(text[:min(len(text), Head)]); got != cost || n != min(len(text), Head) {
			t.Fatalf("%d characters cost %d, not %d", n, got, cost)
		}
	})
}

// TestTextWithin: words within bytes save what they take less, random bytes nothing.
func TestTextWithin(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for range 2000 {
		p := make([]byte, 8+r.IntN(500))
		for i := range p {
			p[i] = byte(r.Uint32())
		}
		if saved := textSaving(p); saved > 6*Nat {
			t.Errorf("%d of random bytes: %q", saved, p)
		}
	}
	if saved := textSaving(append(bytes.Repeat([]byte{0xff}, 20), "and the words within"...)); saved < 15*Nat {
		t.Errorf("%d of words", saved)
	}
}
