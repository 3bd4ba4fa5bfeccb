package captures

import (
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// A copy has everything but the secrets.
func TestCopyExchange(t *testing.T) {
	dir := t.TempDir()
	from := must(Create(filepath.Join(dir, "a.uwc"), Options{KeepSecrets: true}))(t)
	begun := time.Now().Add(-time.Hour).UTC().Truncate(time.Microsecond)
	for range 3 {
		r := must(from.Begin(Exchange{
			Method: "POST", URL: "https://h/p?access_token=" + madeUpKey, HTTP: "2", Started: begun,
			RequestHeaders: Headers{{"authorization", "Bearer " + madeUpKey}}, Source: "proxy",
		}))(t)
		r.ChunkAt(Up, time.Millisecond, []byte("key "+madeUpKey[:9]))
		r.ChunkAt(Up, 2*time.Millisecond, []byte(madeUpKey[9:]+" and a\x00typed"))
		r.ChunkAt(Up, 3*time.Millisecond, []byte("-one\x00 end"))
		r.Response(200, Headers{{"content-type", "application/connect+proto"}, {"connect-content-encoding", "gzip"}})
		packed := must(deflate("gzip", []byte("in "+madeUpKey)))(t)
		frame := envelope(1, packed)
		r.ChunkAt(Down, 4*time.Millisecond, frame[:20])
		r.ChunkAt(Down, 5*time.Millisecond, frame[20:])
		r.Trailers(Down, Headers{{"grpc-status", "0"}, {"x-token", madeUpKey}})
		r.EndAt(6*time.Millisecond, Reset, "because of "+madeUpKey)
	}
	check(t, from.Flush(t.Context()))

	path := filepath.Join(dir, "b.uwc")
	to := must(Create(path, Options{}))(t)
	typed := int64(len("key " + madeUpKey + " and a\x00"))
	edits := [2][]Edit{Up: {{Start: typed, End: typed + 9, Data: []byte("REMOVED..")}}}
	check(t, to.CopyExchange(t.Context(), from, must(from.Exchange(t.Context(), 2))(t), edits))
	check(t, to.Close())
	check(t, from.Close())

	s := must(Open(path))(t)
	defer func() { check(t, s.Close()) }()
	ex := must(s.Exchange(t.Context(), 2))(t)
	if ex.Outcome != Reset || ex.Duration != 6*time.Millisecond || !ex.Started.Equal(begun) || ex.Status != 200 || ex.HTTP != "2" ||
		ex.ResponseTrailers.Get("grpc-status") != "0" || ex.Source != "proxy" || !strings.HasPrefix(ex.Error, "because of [redacted:") {
		t.Errorf("%+v", ex)
	}
	chunks := all(t, s.Chunks(t.Context(), 2, 0))
	var up, down string
	for i, c := range chunks {
		if c.Seq != int64(i) || c.T != time.Duration(i+1)*time.Millisecond {
			t.Errorf("chunk %d: %d at %v", i, c.Seq, c.T)
		}
		if c.Dir == Up {
			up += string(c.Data)
		} else {
			down += string(c.Data)
		}
	}
	if len(chunks) != 5 || len(chunks[0].Data) != 13 || string(chunks[2].Data) != "ED..\x00 end" {
		t.Errorf("%d chunks, the first of %d bytes, the third %q", len(chunks), len(chunks[0].Data), chunks[2].Data)
	}
	if !strings.HasPrefix(up, "key redacted-") || !strings.HasSuffix(up, " and a\x00REMOVED..\x00 end") {
		t.Errorf("up: %q", up)
	}
	if inflated := string(inflateAll(t, "gzip", []byte(down[5:]))); !strings.HasPrefix(inflated, "in redacted-") {
		t.Errorf("down: %q", inflated)
	}
	if left := all(t, s.Exchanges(t.Context())); len(left) != 1 {
		t.Errorf("%d exchanges", len(left))
	}
	mustNotContain(t, path, madeUpKey)
}

// What has passed comes out in its order, whatever is held back for: a secret
// that may begin, a compressed body, more of the other direction than is kept.
func TestCleanedKeepsTheOrder(t *testing.T) {
	s := must(Create(filepath.Join(t.TempDir(), "a.uwc"), Options{KeepSecrets: true}))(t)
	packed := must(deflate("gzip", []byte("a body that ends at once "+madeUpKey)))(t)
	r := must(s.Begin(Exchange{RequestHeaders: Headers{{"content-encoding", "gzip"}, {"x-token", madeUpKey}}}))(t)
	r.Response(200, nil)
	r.Chunk(Up, packed[:10])
	r.Chunk(Down, []byte("early, key "+madeUpKey[:9]))
	r.Chunk(Up, packed[10:])
	large := []byte(strings.Repeat("words ", 1<<20))
	for range 4 {
		r.Chunk(Down, large)
	}
	r.Chunk(Down, []byte("end, key "+madeUpKey))
	r.End(Complete, "")
	check(t, s.Flush(t.Context()))
	defer func() { check(t, s.Close()) }()
	red := DefaultRedactor()
	red.Learn(madeUpKey)
	ex := must(s.Exchange(t.Context(), 1))(t)
	was := all(t, s.Chunks(t.Context(), 1, 0))
	n := 0
	for i, c := range all(t, s.Cleaned(t.Context(), ex, red, [2][]Edit{})) {
		if c.Seq != int64(i) || c.Dir != was[i].Dir || c.T != was[i].T || c.Dir == Down && len(c.Data) != len(was[i].Data) {
			t.Errorf("chunk %d: %d %s of %d bytes", i, c.Seq, c.Dir, len(c.Data))
		}
		if strings.Contains(string(c.Data), madeUpKey) {
			t.Errorf("chunk %d holds the key", i)
		}
		n++
	}
	if n != len(was) {
		t.Errorf("%d chunks of %d", n, len(was))
	}
	for i, c := range all(t, s.Cleaned(t.Context(), ex, nil, [2][]Edit{})) {
		if string(c.Data) != string(was[i].Data) {
			t.Errorf("chunk %d has changed without a redactor", i)
		}
	}
}

// mustNotContain looks for a text in all that a capture holds.
func mustNotContain(t *testing.T, path, text string) {
	t.Helper()
	s := must(Open(path))(t)
	defer func() { check(t, s.Close()) }()
	for _, ex := range all(t, s.Exchanges(t.Context())) {
		whole := ex.URL + ex.Error
		for _, h := range [][]Header{ex.RequestHeaders, ex.RequestTrailers, ex.ResponseHeaders, ex.ResponseTrailers} {
			for _, f := range h {
				whole += "\n" + f.Value
			}
		}
		for _, c := range all(t, s.Chunks(t.Context(), ex.ID, 0)) {
			whole += string(c.Data)
		}
		if strings.Contains(whole, text) {
			t.Errorf("exchange %d of %s holds %s", ex.ID, path, text)
		}
	}
}

func TestMaxBody(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.uwc")
	s := must(Create(path, Options{MaxBody: 30}))(t)
	r := must(s.Begin(Exchange{}))(t)
	r.Chunk(Up, []byte("twenty bytes, or so."))
	r.Chunk(Up, []byte("key: "+madeUpKey)) // cut within the key
	r.Chunk(Up, []byte("more"))
	r.Chunk(Down, []byte("short"))
	r.End(Complete, "")
	check(t, s.Flush(t.Context()))
	ex := must(s.Exchange(t.Context(), 1))(t)
	passed := int64(20 + 5 + len(madeUpKey) + 4)
	if ex.Outcome != Complete || !ex.Shortened() || ex.BytesUp != passed || ex.BytesDown != 5 || !strings.Contains(ex.Error, "bytes up were not stored: the limit is 30") {
		t.Errorf("%+v", ex)
	}
	var stored int
	for _, c := range all(t, s.Chunks(t.Context(), 1, 0)) {
		stored += len(c.Data)
	}
	if stored != 30+5 {
		t.Errorf("%d bytes are stored", stored)
	}
	check(t, s.Close())
	if len(madeUpKey) > 8 {
		mustNotContain(t, path, madeUpKey[:12])
	}
}
