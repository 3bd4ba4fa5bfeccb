package replay

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"unwire/captures"
	"unwire/captures/store"
	"unwire/decode"
	"unwire/decode/envelope"
	"unwire/decode/wire"
	"unwire/proto"
	"unwire/replay/credential"
	"unwire/replay/edit"
)

// A written capture is one whose exchanges a test makes up.
func written(t testing.TB, ex captures.Exchange, chunks ...captures.Chunk) (*store.Store, int64) {
	t.Helper()
	store, err := store.Create(filepath.Join(t.TempDir(), "in.uwc"), store.Options{Profile: proto.Profile()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	rec, err := store.Begin(ex)
	if err != nil {
		t.Fatal(err)
	}
	answered := false
	for _, c := range chunks {
		if c.Dir == captures.Down && !answered {
			rec.Response(200, ex.ResponseHeaders)
			answered = true
		}
		rec.Chunk(c.Dir, c.Data)
	}
	outcome := ex.Outcome
	if outcome == "" {
		outcome = captures.Complete
	}
	rec.End(outcome, "")
	if err := store.Flush(context.Background()); err != nil {
		t.Fatal(err)
	}
	return store, rec.ID()
}

func up(b []byte) captures.Chunk   { return captures.Chunk{Dir: captures.Up, Data: b} }
func down(b []byte) captures.Chunk { return captures.Chunk{Dir: captures.Down, Data: b} }

// serve starts a server over cleartext, of HTTP/1.1 and HTTP/2.
func serve(t *testing.T, h http.HandlerFunc) *httptest.Server {
	t.Helper()
	s := httptest.NewUnstartedServer(h)
	s.Config.Protocols = new(http.Protocols)
	s.Config.Protocols.SetHTTP1(true)
	s.Config.Protocols.SetUnencryptedHTTP2(true)
	s.Start()
	t.Cleanup(s.Close)
	return s
}

func send(t *testing.T, store *store.Store, id int64, o settings) *Result {
	t.Helper()
	p, err := newPlan(t.Context(), store, id, o)
	if err != nil {
		t.Fatal(err)
	}
	r, err := p.Send(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestVersionsOfHTTP(t *testing.T) {
	for _, version := range []string{"1.1", "2"} {
		got := make(chan *http.Request, 1)
		var body []byte
		s := serve(t, func(w http.ResponseWriter, r *http.Request) {
			body, _ = io.ReadAll(r.Body)
			got <- r
			w.Header().Set("content-type", "application/json")
			_, _ = w.Write([]byte(`{"models":[]}`))
		})
		const sent = `{ "customModelIds" : [] }`
		store, id := written(t, captures.Exchange{
			Method: "POST", URL: "https://api.example.com/agent.v1.AgentService/GetUsableModels?x=1", HTTP: version,
			RequestHeaders: captures.Headers{
				{Name: "content-type", Value: "application/json"},
				{Name: "connect-protocol-version", Value: "1"},
				{Name: "connection", Value: "keep-alive, x-hop"},
				{Name: "x-hop", Value: "1"},
				{Name: "te", Value: "gzip"},
				{Name: "host", Value: "api.example.com"},
				{Name: "content-length", Value: "999"},
				{Name: "proxy-authorization", Value: "Basic eDp5"},
				{Name: "x-twice", Value: "a"},
				{Name: "x-twice", Value: "b"},
			},
			ResponseHeaders: captures.Headers{{Name: "content-type", Value: "application/json"}},
		}, up([]byte(sent)), down([]byte(`{"models":[]}`)))
		r := send(t, store, id, settings{To: mustURL(s.URL + "/prefix/")})
		if r.Comparison != Same || r.Status != 200 {
			t.Fatalf("%+v", r)
		}
		q := <-got
		if q.URL.String() != "/prefix/agent.v1.AgentService/GetUsableModels?x=1" || q.Host != strings.TrimPrefix(s.URL, "http://") || string(body) != sent {
			t.Errorf("%s of %s: %s", q.URL, q.Host, body)
		}
		if q.Proto != map[string]string{"1.1": "HTTP/1.1", "2": "HTTP/2.0"}[version] || q.ContentLength != int64(len(sent)) {
			t.Errorf("%s, length %d", q.Proto, q.ContentLength)
		}
		for _, name := range []string{"X-Hop", "Te", "Proxy-Authorization", "User-Agent", "Accept-Encoding"} {
			if q.Header.Get(name) != "" {
				t.Errorf("%s: %s was sent", name, q.Header.Get(name))
			}
		}
		if v := q.Header.Values("X-Twice"); len(v) != 2 || v[0] != "a" {
			t.Errorf("x-twice: %q", v)
		}
	}
}

func TestGRPCWebText(t *testing.T) {
	message := append([]byte{0x0a, 5}, "hello"...)
	answer := append(envelope.Append(nil, 0, message), envelope.Append(nil, envelope.Trailer, []byte("grpc-status: 0\r\n"))...)
	text := func(b []byte) []byte { return base64.StdEncoding.AppendEncode(nil, b) }
	var body []byte
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ = io.ReadAll(r.Body)
		w.Header().Set("content-type", "application/grpc-web-text+proto")
		_, _ = w.Write(text(answer))
	})
	store, id := written(t, captures.Exchange{
		Method: "POST", URL: s.URL + "/test.v1.Test/Say", HTTP: "1.1",
		RequestHeaders:  captures.Headers{{Name: "content-type", Value: "application/grpc-web-text+proto"}},
		ResponseHeaders: captures.Headers{{Name: "content-type", Value: "application/grpc-web-text+proto"}},
	}, up(text(envelope.Append(nil, 0, message))), down(text(answer)))
	if r := send(t, store, id, settings{}); r.Comparison != Same || r.Code != "ok" {
		t.Fatalf("%+v", r)
	}
	if want := text(envelope.Append(nil, 0, message)); !bytes.Equal(body, want) {
		t.Errorf("sent %s, want %s", body, want)
	}
}

// A frame that could not be read to its end goes out as it was captured, or not at all.
func TestUnreadableFrame(t *testing.T) {
	var got []byte
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		got, _ = io.ReadAll(r.Body)
		w.Header().Set("content-type", "application/connect+proto")
		_, _ = w.Write(envelope.Append(nil, envelope.EndStream, []byte("{}")))
	})
	body := envelope.Append(envelope.Append(nil, envelope.Compressed, []byte("this is no gzip")), 0, []byte("\x0a\x03abc"))
	store, id := written(t, captures.Exchange{
		Method: "POST", URL: s.URL + "/test.v1.Test/Join", HTTP: "2",
		RequestHeaders: captures.Headers{{Name: "content-type", Value: "application/connect+proto"}, {Name: "connect-content-encoding", Value: "gzip"}},
	}, up(body))
	if r := send(t, store, id, settings{}); r.Status != 200 || !bytes.Equal(got, body) {
		t.Errorf("sent %q, %+v", got, r)
	}
	for text, want := range map[string]string{"set @0 1=x": "cannot be edited, only sent unchanged", "raw @0 =0a00": "", "set @1 1=x": "unwire sends it as recorded"} {
		op, rest, _ := strings.Cut(text, " ")
		e, err := edit.Parse(op, rest)
		if err != nil {
			t.Fatal(err)
		}
		p, err := newPlan(t.Context(), store, id, settings{Edits: []edit.Edit{e}})
		said := fmt.Sprint(err)
		if err == nil {
			said = strings.Join(p.shown.Warnings, "")
		}
		if !strings.Contains(said, want) || want == "" && said != "" {
			t.Errorf("%s: %q", text, said)
		}
	}
}

// A response of events, in base64 as one report has them.
func TestServerSentEvents(t *testing.T) {
	event := func(b []byte) string { return "data: " + base64.StdEncoding.EncodeToString(b) + "\n\n" }
	answer := event([]byte("\x0a\x06\x0a\x04\x0a\x02Hi")) + event([]byte("\x0a\x02\x72\x00"))
	s := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("content-type", "text/event-stream")
		_, _ = io.WriteString(w, answer)
	})
	store, id := written(t, captures.Exchange{
		Method: "POST", URL: s.URL + "/agent.v1.AgentService/RunSSE", HTTP: "1.1",
		RequestHeaders:  captures.Headers{{Name: "content-type", Value: "application/connect+proto"}},
		ResponseHeaders: captures.Headers{{Name: "content-type", Value: "text/event-stream"}},
	}, up(envelope.Append(nil, 0, []byte("\x0a\x03abc"))), down([]byte(answer)))
	if r := send(t, store, id, settings{}); r.Comparison != Same || r.Received != 2 {
		t.Fatalf("%+v", r)
	}
}

// A client that left an endless stream is replayed leaving it.
func TestLeavesWhereTheClientLeft(t *testing.T) {
	frame := envelope.Append(nil, 0, []byte("\x0a\x05again"))
	left := make(chan struct{})
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		defer close(left)
		w.Header().Set("content-type", "application/connect+proto")
		for range 3 {
			_, _ = w.Write(frame)
		}
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	})
	store, id := written(t, captures.Exchange{
		Method: "POST", URL: s.URL + "/test.v1.Test/Forever", HTTP: "2", Outcome: captures.Canceled,
		RequestHeaders:  captures.Headers{{Name: "content-type", Value: "application/connect+proto"}},
		ResponseHeaders: captures.Headers{{Name: "content-type", Value: "application/connect+proto"}},
	}, up(envelope.Append(nil, 0, nil)), down(frame), down(frame), down(frame))
	r := send(t, store, id, settings{Quiet: 50 * time.Millisecond})
	if r.Comparison != Same || r.Received != 3 {
		t.Fatalf("%+v", r)
	}
	select {
	case <-left:
	case <-time.After(time.Minute):
		t.Error("the stream was not closed")
	}
}

// The server says one thing more than in the capture, and heartbeats; the
// client's answer waits for what it answers all the same.
func TestOtherFramesBetween(t *testing.T) {
	ask := func(id byte) []byte { return []byte{0x12, 0x04, 0x08, id, 0x12, 0x00} }
	delta := []byte("\x0a\x06\x0a\x04\x0a\x02ab")
	beat := []byte("\x0a\x02\x6a\x00")
	end := []byte("{}")
	frames := func(list ...[]byte) (out []byte) {
		for _, b := range list {
			out = envelope.Append(out, 0, b)
		}
		return out
	}
	got := make(chan []byte, 1)
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("content-type", "application/connect+proto")
		c := http.NewResponseController(w)
		head := make([]byte, 5+4) // the first frame up
		_, _ = io.ReadFull(r.Body, head)
		_, _ = w.Write(frames(beat, beat, delta, delta, beat, delta))
		_ = c.Flush()
		time.Sleep(30 * time.Millisecond)
		_, _ = w.Write(frames(beat, ask(9)))
		_ = c.Flush()
		answer := make([]byte, 5+6)
		_, _ = io.ReadFull(r.Body, answer)
		got <- answer
		_, _ = w.Write(envelope.Append(frames(delta), envelope.EndStream, end))
	})
	store, id := written(t, captures.Exchange{
		Method: "POST", URL: s.URL + "/test.v1.Test/Run", HTTP: "2",
		RequestHeaders:  captures.Headers{{Name: "content-type", Value: "application/connect+proto"}},
		ResponseHeaders: captures.Headers{{Name: "content-type", Value: "application/connect+proto"}},
	}, up(frames([]byte("\x0a\x02hi"))), down(frames(delta, beat, beat, beat, ask(7))), up(frames([]byte{0x12, 0x04, 0x08, 7, 0x12, 0x00})),
		down(envelope.Append(frames(delta), envelope.EndStream, end)))
	r := send(t, store, id, settings{Wait: time.Minute, Quiet: 500 * time.Millisecond})
	if r.Code != "ok" || r.Sent != 2 {
		t.Fatalf("%+v", r)
	}
	if answer := <-got; !bytes.Equal(answer, frames([]byte{0x12, 0x04, 0x08, 9, 0x12, 0x00})) {
		t.Errorf("answered %x", answer)
	}
}

func TestSecretsOfURLAndBody(t *testing.T) {
	const key, token = "sk-0123456789abcdef0123456789abcdef", "made-up-bearer-token-0001"
	var q *http.Request
	var body []byte
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		q = r
		body, _ = io.ReadAll(r.Body)
		w.Header().Set("content-type", "application/json")
		_, _ = w.Write([]byte(`{"accessToken":"eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIyIn0.zzzzzzzzzzzzzzzzzzzzzzzzzz"}`))
	})
	store, id := written(t, captures.Exchange{
		Method: "POST", URL: s.URL + "/auth/exchange?api_key=" + key + "&v=2", HTTP: "1.1",
		RequestHeaders:  captures.Headers{{Name: "content-type", Value: "application/json"}, {Name: "authorization", Value: "Bearer " + token}},
		ResponseHeaders: captures.Headers{{Name: "content-type", Value: "application/json"}},
	}, up([]byte(`{"apiKey":"`+key+`","again":"`+token+`"}`)), down([]byte(`{"accessToken":"eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy"}`)))
	ex, err := store.Exchange(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(ex.URL, key) {
		t.Fatalf("captured %s", ex.URL)
	}
	file := filepath.Join(t.TempDir(), "secrets")
	if err := os.WriteFile(file, []byte("UNWIRE_TOKEN=another-bearer-token-0002\nUNWIRE_QUERY_API_KEY: sk-live\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := credential.Resolver{Getenv: os.Getenv}.Load("file:" + file)
	if err != nil {
		t.Fatal(err)
	}
	p, err := newPlan(t.Context(), store, id, settings{Credentials: c})
	if err != nil {
		t.Fatal(err)
	}
	b, err := json.Marshal(p.Description())
	if err != nil || bytes.Contains(b, []byte("sk-live")) || bytes.Contains(b, []byte("0002")) {
		t.Fatalf("the plan shows a secret: %s, %v", b, err)
	}
	r, err := p.Send(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := q.URL.RawQuery; got != "api_key=sk-live&v=2" {
		t.Errorf("query %s", got)
	}
	if got := q.Header.Get("authorization"); got != "Bearer another-bearer-token-0002" {
		t.Errorf("authorization %s", got)
	}
	// Equal secrets have equal placeholders, so one value fills them all.
	if want := `{"apiKey":"sk-live","again":"another-bearer-token-0002"}`; string(body) != want {
		t.Errorf("body %s, want %s", body, want)
	}
	if r.Comparison != Same || len(r.Diff) != 1 || r.Diff[0].Ignored != ignoredSecret {
		t.Errorf("%s %+v", r.Comparison, r.Diff)
	}
}

func TestBodySecretOfAnotherLength(t *testing.T) {
	p := &Plan{tags: map[string]string{"3f2a9c1b": "longer than the placeholder was"}}
	inner := edit.AppendField(nil, 8, wire.Len, []byte("x redacted-3f2a9c1b... y"))
	data := edit.AppendField(edit.AppendField(nil, 1, wire.Len, inner), 2, wire.Varint, []byte{1})
	got, changed, err := p.unredact(data)
	want := edit.AppendField(edit.AppendField(nil, 1, wire.Len, edit.AppendField(nil, 8, wire.Len, []byte("x longer than the placeholder was y"))), 2, wire.Varint, []byte{1})
	if err != nil || !changed || !bytes.Equal(got, want) {
		t.Errorf("%q, %v, %v", got, changed, err)
	}
}

func TestChecksumHeader(t *testing.T) {
	store, id := written(t, captures.Exchange{
		Method: "POST", URL: "http://127.0.0.1:1/aiserver.v1.AiService/AvailableModels", HTTP: "2", Started: time.Now(),
		RequestHeaders: captures.Headers{{Name: "x-cursor-checksum", Value: "pZGTi4-_0123456789abcdef/0123456789abcdef"}, {Name: "content-type", Value: "application/proto"}},
	})
	plan := func(to string, env map[string]string) *Plan {
		c, err := credential.Resolver{Getenv: func(name string) string { return env[name] }}.Load("")
		if err != nil {
			t.Fatal(err)
		}
		p, err := newPlan(t.Context(), store, id, settings{Credentials: c, To: mustURL(to)})
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	const local, remote = "http://127.0.0.1:1", "https://api.example.com"
	value := func(p *Plan) string { return p.headers.Get("x-cursor-checksum") }
	if p := plan(remote, nil); p.shown.Secrets[0].From != "" || len(p.shown.Secrets[0].Wants) < 2 || p.shown.Secrets[0].Omitted || !errors.Is(p.ready(), credential.ErrCredentials) {
		t.Errorf("%+v, %v", p.shown.Secrets, p.ready())
	}
	if p := plan(local, nil); !p.shown.Secrets[0].Omitted || len(p.headers) != 1 || p.ready() != nil {
		t.Errorf("%+v, %v", p.shown.Secrets, p.ready())
	}
	if p := plan(local, map[string]string{"UNWIRE_HEADER_X_CURSOR_CHECKSUM": "verbatim"}); value(p) != "verbatim" || len(p.shown.Refreshed) != 0 {
		t.Errorf("%s, %v", value(p), p.shown.Refreshed)
	}
	p := plan(remote, map[string]string{envMachineID: "machine"})
	fresh := proto.Profile().Checksum.Make("", "machine", time.Now())
	if value(p) != fresh || len(p.shown.Refreshed) != 1 || p.shown.Headers.Get("x-cursor-checksum") != "<$UNWIRE_MACHINE_ID>" {
		t.Errorf("%s, want %s; %v; shown %s", value(p), fresh, p.shown.Refreshed, p.shown.Headers.Get("x-cursor-checksum"))
	}
}

func BenchmarkPlan(b *testing.B) {
	var chunks []captures.Chunk
	var size int64
	for i := range 500 {
		id := byte(i%100 + 1)
		for _, c := range []captures.Chunk{
			down(envelope.Append(nil, 0, []byte("\x0a\x0e\x0a\x0c\x0a\x0asome words"))),
			down(envelope.Append(nil, 0, []byte{0x12, 0x0b, 0x08, id, 0x7a, 0x07, 'e', 'x', 'e', 'c', '-', id, '!'})),
			up(envelope.Append(nil, 0, []byte{0x12, 0x0b, 0x08, id, 0x7a, 0x07, 'e', 'x', 'e', 'c', '-', id, '!'})),
		} {
			chunks = append(chunks, c)
			size += int64(len(c.Data))
		}
	}
	store, id := written(b, captures.Exchange{
		Method: "POST", URL: "http://127.0.0.1:1/test.v1.Test/Run", HTTP: "2",
		RequestHeaders:  captures.Headers{{Name: "content-type", Value: "application/connect+proto"}},
		ResponseHeaders: captures.Headers{{Name: "content-type", Value: "application/connect+proto"}},
	}, chunks...)
	other, err := edit.Parse("set", "@0 2.15=other")
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(size)
	for b.Loop() {
		p, err := newPlan(context.Background(), store, id, settings{Edits: []edit.Edit{other}})
		if err != nil || len(p.shown.Frames) != 500 {
			b.Fatal(err)
		}
	}
	planned := b.Elapsed()
	b.StopTimer()
	const decodings = 20
	begun := time.Now()
	for range decodings {
		if _, err := decode.Decode(context.Background(), store, id, decode.Options{}); err != nil {
			b.Fatal(err)
		}
	}
	plain := float64(time.Since(begun)) / decodings
	b.ReportMetric(float64(planned)/float64(b.N)/plain, "x-of-decoding")
}
