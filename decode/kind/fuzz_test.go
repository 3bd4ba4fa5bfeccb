package kind

import (
	"testing"

	"unwire/decode/wire"
)

// FuzzReadings: the readings of any bytes sum to one and are ranked, and fit
// the nodes that they are of.
func FuzzReadings(f *testing.F) {
	f.Add([]byte("\n\x03abc\x12\x02Hi"), []byte("\n\x03ab\xff"))
	f.Fuzz(func(t *testing.T, b, other []byte) {
		tree := wire.Parse(b, wire.Options{})
		ev := NewEvidence()
		if err := ev.Add("R", other); err != nil && len(other) == 0 {
			t.Fatal(err)
		}
		for _, pooled := range []*Message{nil, ev.Root("R")} {
			r := NewReader(tree, pooled)
			for i := range min(len(tree.Nodes), 200) {
				got := r.Readings(int32(i))
				checkReadings(t, got)
				for j := range got {
					if n := tree.Node(int32(i)); n.Type != wire.Garbage && !r.fits(n, int32(i), &got[j]) {
						t.Fatalf("node %d of %x read as %s", i, b, got[j].Type)
					}
				}
				if kind, typ, _ := r.Best(int32(i)); kind != got[0].Kind || typ != got[0].Type {
					t.Fatalf("node %d: best %s %s of %s", i, kind, typ, describe(got))
				}
			}
		}
	})
}
