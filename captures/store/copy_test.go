package store

import (
	"bytes"
	"io"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/gzip"

	"unwire/captures"
	"unwire/captures/internal/require"
	"unwire/captures/redact"
	"unwire/decode/envelope"
)

// A copy has everything but the secrets.
func TestCopyExchange(t *testing.T) {
	dir := t.TempDir()
	from := require.Value(Create(filepath.Join(dir, "a.uwc"), Options{KeepSecrets: true}))(t)
	begun := time.Now().Add(-time.Hour).UTC().Truncate(time.Microsecond)
	for range 3 {
		r := require.Value(from.Begin(captures.Exchange{
			Method: "POST", URL: "https://h/p?access_token=" + testKey, HTTP: "2", Started: begun,
			RequestHeaders: captures.Headers{{Name: "authorization", Value: "Bearer " + testKey}}, Source: "proxy",
		}))(t)
		r.ChunkAt(captures.Up, time.Millisecond, []byte("key "+testKey[:9]))
		r.ChunkAt(captures.Up, 2*time.Millisecond, []byte(testKey[9:]+" and a\x00typed"))
		r.ChunkAt(captures.Up, 3*time.Millisecond, []byte("-one\x00 end"))
		r.Response(200, captures.Headers{{Name: "content-type", Value: "application/connect+proto"}, {Name: "connect-content-encoding", Value: "gzip"}})
		packed := gzipped(t, "in "+testKey)
		frame := envelope.Append(nil, envelope.Compressed, packed)
		r.ChunkAt(captures.Down, 4*time.Millisecond, frame[:20])
		r.ChunkAt(captures.Down, 5*time.Millisecond, frame[20:])
		r.Trailers(captures.Down, captures.Headers{{Name: "grpc-status", Value: "0"}, {Name: "x-token", Value: testKey}})
		r.EndAt(6*time.Millisecond, captures.Reset, "because of "+testKey)
	}
	require.NoError(t, from.Flush(t.Context()))

	path := filepath.Join(dir, "b.uwc")
	to := require.Value(Create(path, Options{}))(t)
	typed := int64(len("key " + testKey + " and a\x00"))
	edits := [2][]redact.Edit{captures.Up: {{Start: typed, End: typed + 9, Data: []byte("REMOVED..")}}}
	require.NoError(t, to.CopyExchange(t.Context(), from, require.Value(from.Exchange(t.Context(), 2))(t), edits))
	require.NoError(t, to.Close())
	require.NoError(t, from.Close())

	s := require.Value(Open(path, ReadOptions{}))(t)
	defer func() { require.NoError(t, s.Close()) }()
	ex := require.Value(s.Exchange(t.Context(), 2))(t)
	if ex.Outcome != captures.Reset || ex.Duration != 6*time.Millisecond || !ex.Started.Equal(begun) || ex.Status != 200 || ex.HTTP != "2" ||
		ex.ResponseTrailers.Get("grpc-status") != "0" || ex.Source != "proxy" || !strings.HasPrefix(ex.Error, "because of [redacted:") {
		t.Errorf("%+v", ex)
	}
	chunks := require.All(t, s.Chunks(t.Context(), 2, 0))
	var up, down string
	for i, c := range chunks {
		if c.Seq != int64(i) || c.T != time.Duration(i+1)*time.Millisecond {
			t.Errorf("chunk %d: %d at %v", i, c.Seq, c.T)
		}
		if c.Dir == captures.Up {
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
	if inflated := gunzipped(t, down[5:]); !strings.HasPrefix(inflated, "in redacted-") {
		t.Errorf("down: %q", inflated)
	}
	if left := require.All(t, s.Exchanges(t.Context())); len(left) != 1 {
		t.Errorf("%d exchanges", len(left))
	}
	mustNotContain(t, path, testKey)
}

// What has passed comes out in its order, whatever is held back for: a secret
// that may begin, a compressed body, more of the other direction than is kept.
func TestCleanedKeepsTheOrder(t *testing.T) {
	s := require.Value(Create(filepath.Join(t.TempDir(), "a.uwc"), Options{KeepSecrets: true}))(t)
	packed := gzipped(t, "a body that ends at once "+testKey)
	r := require.Value(s.Begin(captures.Exchange{RequestHeaders: captures.Headers{{Name: "content-encoding", Value: "gzip"}, {Name: "x-token", Value: testKey}}}))(t)
	r.Response(200, nil)
	r.Chunk(captures.Up, packed[:10])
	r.Chunk(captures.Down, []byte("early, key "+testKey[:9]))
	r.Chunk(captures.Up, packed[10:])
	large := []byte(strings.Repeat("words ", 1<<20))
	for range 4 {
		r.Chunk(captures.Down, large)
	}
	r.Chunk(captures.Down, []byte("end, key "+testKey))
	r.End(captures.Complete, "")
	require.NoError(t, s.Flush(t.Context()))
	defer func() { require.NoError(t, s.Close()) }()
	red := redact.New(redact.Options{})
	red.Learn(testKey)
	ex := require.Value(s.Exchange(t.Context(), 1))(t)
	was := require.All(t, s.Chunks(t.Context(), 1, 0))
	n := 0
	for i, c := range require.All(t, s.Cleaned(t.Context(), ex, red, [2][]redact.Edit{})) {
		if c.Seq != int64(i) || c.Dir != was[i].Dir || c.T != was[i].T || c.Dir == captures.Down && len(c.Data) != len(was[i].Data) {
			t.Errorf("chunk %d: %d %s of %d bytes", i, c.Seq, c.Dir, len(c.Data))
		}
		if strings.Contains(string(c.Data), testKey) {
			t.Errorf("chunk %d holds the key", i)
		}
		n++
	}
	if n != len(was) {
		t.Errorf("%d chunks of %d", n, len(was))
	}
	for i, c := range require.All(t, s.Cleaned(t.Context(), ex, nil, [2][]redact.Edit{})) {
		if string(c.Data) != string(was[i].Data) {
			t.Errorf("chunk %d has changed without a redactor", i)
		}
	}
}

// mustNotContain looks for a text in all that a capture holds.
func mustNotContain(t *testing.T, path, text string) {
	t.Helper()
	s := require.Value(Open(path, ReadOptions{}))(t)
	defer func() { require.NoError(t, s.Close()) }()
	for _, ex := range require.All(t, s.Exchanges(t.Context())) {
		whole := ex.URL + ex.Error
		for _, h := range [][]captures.Header{ex.RequestHeaders, ex.RequestTrailers, ex.ResponseHeaders, ex.ResponseTrailers} {
			for _, f := range h {
				whole += "\n" + f.Value
			}
		}
		for _, c := range require.All(t, s.Chunks(t.Context(), ex.ID, 0)) {
			whole += string(c.Data)
		}
		if strings.Contains(whole, text) {
			t.Errorf("exchange %d of %s holds %s", ex.ID, path, text)
		}
	}
}

func TestMaxBody(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.uwc")
	s := require.Value(Create(path, Options{MaxBody: 30}))(t)
	r := require.Value(s.Begin(captures.Exchange{}))(t)
	r.Chunk(captures.Up, []byte("twenty bytes, or so."))
	r.Chunk(captures.Up, []byte("key: "+testKey)) // cut within the key
	r.Chunk(captures.Up, []byte("more"))
	r.Chunk(captures.Down, []byte("short"))
	r.End(captures.Complete, "")
	require.NoError(t, s.Flush(t.Context()))
	ex := require.Value(s.Exchange(t.Context(), 1))(t)
	passed := int64(20 + 5 + len(testKey) + 4)
	if ex.Outcome != captures.Complete || !ex.Truncated() || ex.BytesUp != passed || ex.BytesDown != 5 || !strings.Contains(ex.Error, "bytes from the client were not stored: the limit is 30") {
		t.Errorf("%+v", ex)
	}
	var stored int
	for _, c := range require.All(t, s.Chunks(t.Context(), 1, 0)) {
		stored += len(c.Data)
	}
	if stored != 30+5 {
		t.Errorf("%d bytes are stored", stored)
	}
	require.NoError(t, s.Close())
	if len(testKey) > 8 {
		mustNotContain(t, path, testKey[:12])
	}
}

func gzipped(t *testing.T, text string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, err := io.WriteString(w, text)
	require.NoError(t, err)
	require.NoError(t, w.Close())
	return b.Bytes()
}

func gunzipped(t *testing.T, data string) string {
	t.Helper()
	r := require.Value(gzip.NewReader(strings.NewReader(data)))(t)
	return string(require.Value(io.ReadAll(r))(t))
}

// A copy of a WebSocket has its messages with their opcodes, empty ones too, and stays
// related to the copy of its handshake.
func TestCopyExchangeOfWebSocket(t *testing.T) {
	dir := t.TempDir()
	from := require.Value(Create(filepath.Join(dir, "a.uwc"), Options{KeepSecrets: true}))(t)
	shake := require.Value(from.Begin(captures.Exchange{Method: "GET", URL: "https://h/chat", HTTP: "1.1", Status: 101}))(t)
	shake.End(captures.Complete, "")
	w := require.Value(from.Begin(captures.Exchange{Transport: captures.WebSocket, URL: "wss://h/chat"}))(t)
	w.Relate(captures.HandshakeOf, shake.ID())
	final := captures.OpFinal
	w.Message(captures.Up, captures.OpText, []byte("my key is "+testKey[:7]))
	w.Message(captures.Up, captures.OpContinuation|final, []byte(testKey[7:]))
	w.Message(captures.Down, captures.OpPing|final, nil)
	w.Message(captures.Down, captures.OpBinary|captures.OpCompressed|final, []byte("\x08\x01"))
	w.Message(captures.Up, captures.OpText|final, nil)
	w.End(captures.Complete, "")
	require.NoError(t, from.Flush(t.Context()))

	to := require.Value(Create(filepath.Join(dir, "b.uwc"), Options{}))(t)
	for id := int64(1); id <= 2; id++ {
		require.NoError(t, to.CopyExchange(t.Context(), from, require.Value(from.Exchange(t.Context(), id))(t), [2][]redact.Edit{}))
	}
	alone := require.Value(Create(filepath.Join(dir, "c.uwc"), Options{}))(t)
	require.NoError(t, alone.CopyExchange(t.Context(), from, require.Value(from.Exchange(t.Context(), 2))(t), [2][]redact.Edit{}))
	for _, s := range []*Store{to, alone, from} {
		defer func() { require.NoError(t, s.Close()) }()
		require.NoError(t, s.Flush(t.Context()))
	}

	before, after := require.All(t, from.Chunks(t.Context(), 2, 0)), require.All(t, to.Chunks(t.Context(), 2, 0))
	if len(before) != 5 || len(after) != len(before) {
		t.Fatalf("%d chunks became %d", len(before), len(after))
	}
	for i := range after {
		if after[i].Opcode != before[i].Opcode || len(after[i].Data) != len(before[i].Data) || after[i].Dir != before[i].Dir {
			t.Errorf("chunk %d: %+v became %+v", i, before[i], after[i])
		}
		if strings.Contains(string(after[i].Data), testKey[7:]) {
			t.Errorf("chunk %d: %q", i, after[i].Data)
		}
	}
	if list := require.Value(to.Relations(t.Context(), 1))(t); len(list) != 1 || list[0] != (captures.Relation{Exchange: 2, Kind: captures.HandshakeOf, Target: 1}) {
		t.Errorf("%+v", list)
	}
	if list := require.Value(to.Relations(t.Context(), 0))(t); len(list) != 1 {
		t.Errorf("of all: %+v", list)
	}
	if list := require.Value(alone.Relations(t.Context(), 0))(t); len(list) != 0 {
		t.Errorf("to what was not copied: %+v", list)
	}
}
