package packet

import (
	"bytes"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// TestDefragment: fragments in any order, cut anywhere, overlapping, give the
// payload back, and what is kept is forgotten.
func TestDefragment(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		payload := rapid.SliceOfN(rapid.Byte(), 1, 4000).Draw(t, "payload")
		var list []fragment
		for at := 0; at < len(payload); {
			n := 8 * rapid.IntRange(1, 100).Draw(t, "size")
			end := min(len(payload), at+n)
			from := max(0, at-8*rapid.IntRange(0, 3).Draw(t, "overlap"))
			list = append(list, fragment{offset: from, more: end < len(payload), data: payload[from:end]})
			at = end
		}
		for i := range list {
			j := rapid.IntRange(0, i).Draw(t, "place")
			list[i], list[j] = list[j], list[i]
		}
		var d defragmenter
		for i, f := range list {
			got, ok := d.addFragment(f)
			if ok != (got != nil) || ok && !bytes.Equal(got, payload) {
				t.Fatalf("fragment %d of %d: %d bytes of %d", i, len(list), len(got), len(payload))
			}
			if ok {
				return // later ones begin another that nobody completes
			}
		}
		t.Fatal("never whole")
	})
}

// TestDefragmentBounds: what never completes does not gather.
func TestDefragmentBounds(t *testing.T) {
	var d defragmenter
	for i := range 3 * maxDatagrams {
		d.addFragment(fragment{key: datagramKey{id: uint32(i)}, more: true, data: make([]byte, 32768), t: time.Unix(int64(i), 0)})
	}
	if len(d.waiting) > maxDatagrams || d.bytes > maxFragmentBytes || d.bytes != len(d.waiting)*32768 {
		t.Errorf("%d wait, with %d bytes", len(d.waiting), d.bytes)
	}
	if n := d.incomplete(); n != 3*maxDatagrams {
		t.Errorf("%d are incomplete", n)
	}
}
