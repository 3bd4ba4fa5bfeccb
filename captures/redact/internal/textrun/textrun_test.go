package textrun

import (
	"bytes"
	"math/bits"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// isPlace is what Next looks for, byte by byte.
func isPlace(b []byte, i int) bool {
	from, to := i, i
	for from > 0 && IsText(b[from-1]) {
		from--
	}
	for to < len(b) && IsText(b[to]) {
		to++
	}
	return to-i >= Least || strings.IndexByte(Signs, b[i]) >= 0 && to-from >= AroundSign && to > i+1
}

// Next finds every place, and nothing else.
func TestNext(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		byteOf := rapid.OneOf(rapid.Byte(), rapid.ByteRange('a', 'z'), rapid.SampledFrom([]byte(Signs+"\x00\x07\x08\n\x0f\x10\x1f\x7f\x80\xff")))
		b := rapid.SliceOfN(byteOf, 0, 300).Draw(t, "bytes")
		found := make(map[int]bool)
		at := 0
		for {
			window, places := Next(b, at, false)
			if places == 0 {
				if window+Window <= len(b) {
					t.Skip("a window is text")
				}
				at = window
				break
			}
			for ; places != 0; places &= places - 1 {
				found[window+bits.TrailingZeros64(places)] = true
			}
			at = window + Stride
		}
		for i := range b {
			if want := isPlace(b, i); i < at && want && !found[i] || !want && found[i] {
				t.Fatalf("%d: %v, want %v, in %q", i, found[i], want, b)
			}
		}
	})
}

// A window of text is not searched for places, and text in UTF-16 is found wherever it stands.
func TestNextText(t *testing.T) {
	noise := bytes.Repeat([]byte{0xfe}, 200)
	if window, places := Next(append(noise, bytes.Repeat([]byte("text "), 40)...), 0, true); places != 0 || window < 100 || window > 200 {
		t.Errorf("text: %d, %b", window, places)
	}
	for _, wide := range []string{"s\x00e\x00c\x00r\x00e\x00t\x00w\x00o\x00r\x00d\x00s\x00", "\x00s\x00e\x00c\x00r\x00e\x00t\x00w\x00o\x00r\x00d\x00s"} {
		for i := range 140 {
			p := append(append(bytes.Clone(noise[:i]), wide...), noise...)
			window, places := Next(p, 0, true)
			if places != 0 || window-LeastWide > i || window+Window <= i {
				t.Fatalf("at %d: window %d, %b", i, window, places)
			}
			if window, _ = Next(p, 0, false); window+Window <= len(p) {
				t.Fatalf("%d without wide", window)
			}
		}
	}
}
