package match

import (
	"reflect"
	"testing"

	"unwire/decode/wire"
)

// FuzzMatch: whatever the bytes, no type explains more than there is, and the
// same samples in another order have the same result.
func FuzzMatch(f *testing.F) {
	f.Add([]byte(tags(nil).varint(1, 7)), []byte(tags(nil).text(1, "hello")))
	f.Add([]byte(tags(nil).text(1, string(tags(nil).varint(1, 5).text(2, "x")))), []byte{0x0b, 0x0c})
	f.Add([]byte(tags(nil).text(1, "\x01\x80\xff")), []byte{0xff})
	m := New(load(f, vetoProto+`message Self { Self v = 1; repeated Self w = 2; map<int32, Self> m = 3; }`), Options{})
	f.Fuzz(func(t *testing.T, a, b []byte) {
		r := m.Match(samples(a, b))
		for i, c := range r.Candidates {
			if c.Bytes < 0 || c.Bytes > r.Bytes || c.Bits < 0 || len(c.Vetoes) > 0 || c.P < 0 || c.P > 1+1e-9 || c.Rank > i+1 {
				t.Errorf("%x %x: %+v", a, b, c)
			}
		}
		again := m.Match(append(samples(b), Sample{Tree: wire.Parse(a, wire.Options{})}))
		for i := range again.Candidates {
			again.Candidates[i].Unknown, r.Candidates[i].Unknown = nil, nil
			again.Candidates[i].Bits, r.Candidates[i].Bits = 0, 0
			again.Candidates[i].P, r.Candidates[i].P = 0, 0
		}
		if again.Conclusion != r.Conclusion || again.Possible != r.Possible || !reflect.DeepEqual(again.Candidates, r.Candidates) {
			t.Errorf("%x %x: the order of samples shows", a, b)
		}
	})
}
