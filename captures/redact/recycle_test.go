package redact

import (
	"bytes"
	"fmt"
	"testing"

	"unwire/captures"
	"unwire/captures/internal/require"
	"unwire/decode/envelope"
)

// TestRecycle: a filter in the memory of another one, in whatever state that one ended,
// decides as a new one does.
func TestRecycle(t *testing.T) {
	t.Parallel()
	packed := require.Value(envelope.Compress("gzip", []byte("text "+madeUpKey)))(t)
	bodies := []struct {
		header captures.Headers
		data   []byte
	}{
		{nil, []byte("plain, and at the end a beginning: " + madeUpKey[:9])},
		{captures.Headers{{Name: "content-type", Value: "application/x-www-form-urlencoded"}}, []byte("token=abcdef0123456789&a=b")},
		{captures.Headers{{Name: "content-type", Value: "application/grpc"}}, enveloped(0, []byte("whole "+madeUpKey))},
		{captures.Headers{{Name: "content-type", Value: "application/grpc"}}, enveloped(0, []byte("cut off"))[:8]},
		{captures.Headers{{Name: "content-type", Value: "application/grpc"}, {Name: "grpc-encoding", Value: "gzip"}}, enveloped(1, packed)},
		{captures.Headers{{Name: "content-type", Value: "text/event-stream"}}, []byte("data: " + madeUpKey + "\n\n")},
		{captures.Headers{{Name: "content-encoding", Value: "gzip"}}, packed},
		{captures.Headers{{Name: "content-encoding", Value: "gzip"}}, packed[:len(packed)-5]},
		{captures.Headers{{Name: "content-encoding", Value: "unheard-of"}}, []byte("what " + madeUpKey)},
		{captures.Headers{{Name: "content-type", Value: "application/json"}}, bytes.Repeat([]byte(`{"name":"value","password":"0123456789abcdef"},`), 200)},
		{captures.Headers{{Name: "content-type", Value: "application/octet-stream"}}, packed},
	}
	pass := func(b *BodyFilter, data []byte) (out string) {
		for cut := 0; cut < len(data); cut += 700 {
			b.Write(&captures.Chunk{Data: bytes.Clone(data[cut:min(cut+700, len(data))])})
			out += fmt.Sprintf("%q ", join(b.Ready()))
		}
		b.Close(false)
		out += fmt.Sprintf("%q ", join(b.Ready()))
		return out + fmt.Sprint(b.Unsearched(&captures.Exchange{Outcome: captures.Complete}, captures.Up))
	}
	for i, before := range bodies {
		for j, c := range bodies {
			r := New(Options{})
			used := NewBodyFilter(r, before.header, "")
			pass(used, before.data)
			used.Recycle()

			// The copy has the same secrets and no filter to reuse.
			fresh := r.WithKey(r.key)
			fresh.shortKey = r.shortKey
			want := pass(NewBodyFilter(fresh, c.header, ""), c.data)
			if got := pass(NewBodyFilter(r, c.header, ""), c.data); got != want {
				t.Errorf("body %d after body %d:\ngot  %.300s\nwant %.300s", j, i, got, want)
			}
		}
	}
}
