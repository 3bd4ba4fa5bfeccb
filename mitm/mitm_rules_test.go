package mitm

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coder/websocket"

	"unwire/captures"
	"unwire/decode/envelope"
	"unwire/mitm/intercept"
	"unwire/mitm/rules"
	"unwire/replay/edit"
)

// newEchoOrigin starts a server that echoes bodies.
func newEchoOrigin(tb testing.TB, h2 bool) *httptest.Server {
	tb.Helper()
	return newTLSOrigin(tb, h2, http.HandlerFunc(echoBody))
}

// post sends a body and returns the answer.
func post(tb testing.TB, c *http.Client, url, contentType string, body []byte, fields ...string) (*http.Response, []byte) {
	tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), matrixTimeout)
	tb.Cleanup(cancel)
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		tb.Fatal(err)
	}
	r.Header.Set("Content-Type", contentType)
	for i := 0; i+1 < len(fields); i += 2 {
		r.Header.Set(fields[i], fields[i+1])
	}
	res, err := c.Do(r)
	if err != nil {
		tb.Fatal(err)
	}
	defer res.Body.Close()
	got, err := io.ReadAll(res.Body)
	if err != nil {
		tb.Fatalf("after %d bytes: %v", len(got), err)
	}
	return res, got
}

// bodyOf returns the body of a direction of an exchange, as it was received or as it was forwarded.
func (b *testProxy) bodyOf(src captures.ChunkSource, id int64, d captures.Direction) []byte {
	b.tb.Helper()
	var out []byte
	for c, err := range src.Chunks(context.Background(), id, 0) {
		if err != nil {
			b.tb.Fatal(err)
		}
		if c.Dir == d {
			out = append(out, c.Data...)
		}
	}
	return out
}

// An oneField is a message of protobuf with the text v in field 1.
func oneField(v string) []byte { return edit.AppendField(nil, 1, 2, []byte(v)) }

// TestRulesEdit: the edit is what client and server see, in every framing and compression, and the capture has both.
func TestRulesEdit(t *testing.T) {
	t.Parallel()
	packed, err := envelope.Compress("gzip", oneField("before"))
	if err != nil {
		t.Fatal(err)
	}
	cases := []struct {
		name, contentType string
		fields            []string
		body              []byte
		decode            func([]byte) string
	}{
		{"proto", "application/proto", nil, oneField("before"), func(p []byte) string { return string(p) }},
		{"gzip", "application/proto", []string{"Content-Encoding", "gzip"}, packed, func(p []byte) string {
			out, _ := envelope.Decompress("gzip", p, 0)
			return string(out)
		}},
		{"connect", "application/connect+proto", nil, envelope.Append(envelope.Append(nil, 0, oneField("before")), 0, oneField("other")), func(p []byte) string {
			frames, _ := envelope.Split(p)
			return string(frames[0].Raw)
		}},
		{"grpc gzip", "application/grpc", []string{"Grpc-Encoding", "gzip"}, envelope.Append(nil, envelope.Compressed, packed), func(p []byte) string {
			frames, _ := envelope.Split(p)
			if len(frames) != 1 || frames[0].Flags != envelope.Compressed {
				return fmt.Sprint(frames)
			}
			out, _ := envelope.Decompress("gzip", frames[0].Raw, 0)
			return string(out)
		}},
	}
	for _, h2 := range []bool{false, true} {
		origin := newEchoOrigin(t, h2)
		b := newTestProxy(t, []*httptest.Server{origin}, func(o *Options) {
			o.Rewrite = newRules(t, "rules:\n  - name: longer\n    match: dir:up path:1=before\n    set: 1=quite a bit longer than before\n")
		})
		for i, c := range cases {
			res, got := post(t, b.client(h2), origin.URL+"/a.S/M", c.contentType, c.body, c.fields...)
			if text := c.decode(got); text != string(oneField("quite a bit longer than before")) && c.name != "connect" && c.name != "gzip" && c.name != "grpc gzip" {
				t.Errorf("%s, HTTP/2 %v: got %q", c.name, h2, text)
			}
			if res.Trailer.Get("X-End") != "over" {
				t.Errorf("%s: trailers %v", c.name, res.Trailer)
			}
			all := b.recorded(i + 1)
			x := all[i]
			if received := b.bodyOf(b.store, x.ID, captures.Up); !bytes.Equal(received, c.body) {
				t.Errorf("%s: received %q", c.name, received)
			}
			forwarded := b.bodyOf(b.store.Forwarded(), x.ID, captures.Up)
			if !bytes.Equal(forwarded, got) || c.decode(forwarded) != string(oneField("quite a bit longer than before")) {
				t.Errorf("%s, HTTP/2 %v: forwarded %q, echoed %q", c.name, h2, forwarded, got)
			}
			edits, err := b.store.Edits(context.Background(), x.ID)
			if err != nil || len(edits) != 1 || edits[0].Rule != "longer" || edits[0].Dir != captures.Up {
				t.Errorf("%s: %+v, %v", c.name, edits, err)
			}
		}
	}
}

// TestRulesEnd: a call is answered, failed or reset by a rule, before the server sees it, after a frame of the request,
// and within the response.
func TestRulesEnd(t *testing.T) {
	t.Parallel()
	var asked atomic.Int64
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		echoBody(w, r)
	})
	stream := envelope.Append(envelope.Append(nil, 0, oneField("one")), 0, oneField("two"))
	for _, h2 := range []bool{false, true} {
		origin := newTLSOrigin(t, h2, handler)
		for _, c := range []struct {
			rule, contentType string
			body              []byte
			status            int
			want              string
			trailer           string
			unasked           bool
		}{
			{"match: method:M\n    fail: {code: not_found, message: no such thing}", "application/proto", oneField("x"), 404, `{"code":"not_found","message":"no such thing"}`, "", true},
			{"match: method:M\n    fail: unavailable", "application/grpc", stream, 200, "", "14", true},
			{"match: method:M\n    fail: aborted", "application/connect+proto", stream, 200, string(envelope.Append(nil, envelope.EndStream, []byte(`{"error":{"code":"aborted"}}`))), "", true},
			{"match: method:M\n    answer: text:hello", "application/proto", oneField("x"), 200, "hello", "", true},
			{"match: method:M\n    answer: {status: 418, headers: {x-by: rule}, body: text:tea}", "application/proto", oneField("x"), 418, "tea", "", true},
			{"match: dir:up path:1=two\n    fail: aborted", "application/connect+proto", stream, 200, "", "", false},
			{"match: dir:down path:1=two\n    fail: aborted", "application/connect+proto", stream, 200, string(envelope.Append(envelope.Append(nil, 0, oneField("one")), envelope.EndStream, []byte(`{"error":{"code":"aborted"}}`))), "", false},
			{"match: dir:down path:1=two\n    fail: aborted", "application/grpc", stream, 200, string(envelope.Append(nil, 0, oneField("one"))), "10", false},
			{"match: dir:down path:1=x\n    fail: internal", "application/proto", oneField("x"), 500, `{"code":"internal"}`, "", false},
		} {
			name := fmt.Sprintf("HTTP/2 %v, %s, %s", h2, c.contentType, c.rule)
			b := newTestProxy(t, []*httptest.Server{origin}, func(o *Options) { o.Rewrite = newRules(t, "rules:\n  - "+c.rule+"\n") })
			before := asked.Load()
			res, got := post(t, b.client(h2), origin.URL+"/a.S/M", c.contentType, c.body)
			if res.StatusCode != c.status || c.want != "" && string(got) != c.want || res.Trailer.Get("Grpc-Status")+res.Header.Get("Grpc-Status") != c.trailer {
				t.Errorf("%s: status %d, %q, trailers %v", name, res.StatusCode, got, res.Trailer)
			}
			if c.want == "" && c.trailer == "" && !strings.Contains(string(got), `{"error":{"code":"aborted"}}`) {
				t.Errorf("%s: %q", name, got)
			}
			if c.unasked && asked.Load() != before {
				t.Errorf("%s: the server was asked", name)
			}
			x := b.recorded(1)[0]
			forwarded := b.bodyOf(b.store.Forwarded(), x.ID, captures.Down)
			if x.Outcome != captures.Complete || !bytes.Equal(forwarded, got) {
				t.Errorf("%s: %s %s, forwarded %q, got %q", name, x.Outcome, x.Error, forwarded, got)
			}
		}
		b := newTestProxy(t, []*httptest.Server{origin}, func(o *Options) {
			o.Rewrite = newRules(t, "rules:\n  - match: dir:up path:1=x\n    reset: true\n")
		})
		if _, err := b.client(h2).Post(origin.URL+"/a.S/M", "application/proto", bytes.NewReader(oneField("x"))); err == nil {
			t.Error("a reset was answered")
		}
		if x := b.recorded(1)[0]; x.Outcome != captures.Reset || !strings.Contains(x.Error, "rule 1") {
			t.Errorf("%s %q", x.Outcome, x.Error)
		}
	}
}

// TestHold: a frame is held in the middle of a lock-step stream; other streams and the other direction go on.
func TestHold(t *testing.T) {
	t.Parallel()
	hold := 500 * time.Millisecond
	if os.Getenv("UNWIRE_LONG") != "" {
		hold = time.Minute
	}
	origin := newEchoOrigin(t, true)
	holder := intercept.New(intercept.Options{})
	s := loadRules(t, "rules:\n  - match: dir:down path:1=round-100\n    hold: true\n")
	policy := rules.New(s, rules.Options{Hold: holder.Hold})
	b := newTestProxy(t, []*httptest.Server{origin}, func(o *Options) { o.Rewrite = policy })
	client := b.client(true)
	pr, pw := io.Pipe()
	r, _ := http.NewRequest(http.MethodPost, origin.URL+"/a.S/M", pr)
	r.Header.Set("Content-Type", "application/connect+proto")
	go func() {
		_, _ = pw.Write(envelope.Append(nil, 0, oneField("round-0")))
	}()
	res, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	released := make(chan time.Duration, 1)
	go func() {
		frames := holder.Held(context.Background(), 0)
		began := time.Now()
		time.Sleep(hold)
		// Meanwhile, other streams of the connection go on.
		if _, got := post(t, client, origin.URL+"/a.S/M", "application/proto", bytes.Repeat([]byte("\x0a\x01x"), 100_000)); len(got) != 300_000 {
			t.Errorf("%d bytes", len(got))
		}
		if err := holder.Decide(frames[0].ID, intercept.Decision{Action: "replace", Messages: [][]byte{oneField("by hand")}}); err != nil {
			t.Error(err)
		}
		released <- time.Since(began)
	}()
	for i := range 200 {
		want := oneField(fmt.Sprintf("round-%d", i))
		if i == 100 {
			want = oneField("by hand")
		}
		got := make([]byte, 5+len(want))
		if _, err := io.ReadFull(res.Body, got); err != nil || !bytes.Equal(got[5:], want) {
			t.Fatalf("round %d: %q, %v", i, got, err)
		}
		if i < 199 {
			_, _ = pw.Write(envelope.Append(nil, 0, oneField(fmt.Sprintf("round-%d", i+1))))
		}
	}
	pw.Close()
	if rest, err := io.ReadAll(res.Body); err != nil || len(rest) > 0 {
		t.Errorf("%q, %v", rest, err)
	}
	if d := <-released; d < hold {
		t.Errorf("held for %v", d)
	}
}

// TestThousandHeld: a frame is held in each of 1,000 streams at once, and all of them end.
func TestThousandHeld(t *testing.T) {
	t.Parallel()
	const n = 1000
	origin := newEchoOrigin(t, true)
	holder := intercept.New(intercept.Options{})
	s := loadRules(t, "rules:\n  - match: dir:up path:1=held\n    hold: true\n")
	policy := rules.New(s, rules.Options{Hold: holder.Hold})
	b := newTestProxy(t, []*httptest.Server{origin}, func(o *Options) { o.Rewrite = policy })
	clients := []*http.Client{b.client(true), b.client(true), b.client(true), b.client(true)}
	body := envelope.Append(envelope.Append(envelope.Append(nil, 0, oneField("a")), 0, oneField("held")), 0, oneField("b"))
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			if _, got := post(t, clients[i%len(clients)], origin.URL+"/a.S/M", "application/connect+proto", body); !bytes.Equal(got, body) {
				t.Errorf("stream %d: %q", i, got)
			}
		})
	}
	ctx, cancel := context.WithTimeout(t.Context(), matrixTimeout)
	defer cancel()
	for ctx.Err() == nil && len(holder.Held(ctx, n-1)) == 0 {
		time.Sleep(time.Millisecond)
	}
	if got := holder.ReleaseAll(); got != n {
		t.Errorf("%d frames were held", got)
	}
	all.Wait()
}

// TestRulesWebSocket: messages are edited, dropped, duplicated and replaced, compressed with a shared window or not.
func TestRulesWebSocket(t *testing.T) {
	t.Parallel()
	for name, mode := range map[string]websocket.CompressionMode{
		"plain": websocket.CompressionDisabled, "window": websocket.CompressionContextTakeover, "no window": websocket.CompressionNoContextTakeover,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			origin := newTLSOrigin(t, false, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				c, err := websocket.Accept(w, r, &websocket.AcceptOptions{CompressionMode: mode, CompressionThreshold: 1})
				if err != nil {
					t.Error(err)
					return
				}
				for {
					kind, p, err := c.Read(r.Context())
					if err != nil {
						return
					}
					_ = c.Write(r.Context(), kind, append([]byte("re "), p...))
				}
			}))
			b := newTestProxy(t, []*httptest.Server{origin}, func(o *Options) {
				o.Rewrite = newRules(t, `rules:
  - {name: edit, match: 'protocol:websocket dir:up text:"old value"', set: 'name=new value'}
  - {name: drop, match: dir:up text:dropped, drop: true}
  - {name: twice, match: dir:down text:twice, duplicate: 1}
  - {name: replaced, match: dir:down text:secret, replace: 'text:nothing to see'}
`)
			})
			ctx, cancel := context.WithTimeout(t.Context(), matrixTimeout)
			defer cancel()
			c, _, err := websocket.Dial(ctx, origin.URL+"/talk", &websocket.DialOptions{HTTPClient: b.client(false), CompressionMode: mode, CompressionThreshold: 1})
			if err != nil {
				t.Fatal(err)
			}
			sent := []string{"hello hello hello", `{"name":"old value"}`, "hello hello again", "this is dropped", "hello hello", "say it twice", "the secret is out", "hello hello at last"}
			want := []string{"re hello hello hello", `re {"name":"new value"}`, "re hello hello again", "re hello hello", "re say it twice", "re say it twice", "nothing to see", "re hello hello at last"}
			for _, p := range sent {
				if err := c.Write(ctx, websocket.MessageText, []byte(p)); err != nil {
					t.Fatal(err)
				}
			}
			for _, p := range want {
				if _, got, err := c.Read(ctx); err != nil || string(got) != p {
					t.Fatalf("got %q, %v; want %q", got, err, p)
				}
			}
			_ = c.Close(websocket.StatusNormalClosure, "")
			x := b.recorded(2)[1]
			up, down := b.bodyOf(b.store.Forwarded(), x.ID, captures.Up), b.bodyOf(b.store.Forwarded(), x.ID, captures.Down)
			wantUp := strings.NewReplacer("old value", "new value", "this is dropped", "").Replace(strings.Join(sent, ""))
			if !strings.HasPrefix(string(up), wantUp) || !strings.HasPrefix(string(down), strings.Join(want, "")) {
				t.Errorf("forwarded %q and %q", up, down)
			}
		})
	}
}

// TestRulesRaw: chunks of a connection that is not HTTP are replaced, dropped and delayed.
func TestRulesRaw(t *testing.T) {
	t.Parallel()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ln.Close() })
	go func() {
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			go echo(conn)
		}
	}()
	b := newTestProxy(t, nil, func(o *Options) {
		o.Rewrite = newRules(t, `rules:
  - {match: dir:up text:drop, drop: true}
  - {match: dir:down text:ping, replace: text:pong, delay: 100ms}
`)
	})
	conn := b.tunnel(ln.Addr().String())
	began, sent := time.Now(), ""
	for _, c := range []struct{ send, want string }{{"\x01hello", "\x01hello"}, {"\x01drop", ""}, {"\x01ping", "pong"}} {
		if _, err := io.WriteString(conn, c.send); err != nil {
			t.Fatal(err)
		}
		got := make([]byte, len(c.want))
		_ = conn.SetReadDeadline(time.Now().Add(matrixTimeout))
		if _, err := io.ReadFull(conn, got); err != nil || string(got) != c.want {
			t.Errorf("got %q, %v; want %q", got, err, c.want)
		}
		// Each is a chunk of its own if the proxy has read the one before.
		sent += c.send
		b.await(1, func(all, _ int) bool { return all == 1 && string(b.body(1, captures.Up)) == sent })
	}
	if time.Since(began) < 100*time.Millisecond {
		t.Error("not delayed")
	}
	conn.Close()
	x := b.recorded(1)[0]
	if up, down := b.bodyOf(b.store.Forwarded(), x.ID, captures.Up), b.bodyOf(b.store.Forwarded(), x.ID, captures.Down); string(up) != "\x01hello\x01ping" || string(down) != "\x01hellopong" {
		t.Errorf("forwarded %q, %q", up, down)
	}
}

// TestRulesMap: a host is served by another server.
func TestRulesMap(t *testing.T) {
	t.Parallel()
	for _, h2 := range []bool{false, true} {
		origin := newEchoOrigin(t, h2)
		b := newTestProxy(t, []*httptest.Server{origin}, func(o *Options) {
			o.Rewrite = newRules(t, "rules:\n  - match: host:nowhere.example\n    map: "+origin.URL+"\n")
		})
		if _, got := post(t, b.client(h2), "https://nowhere.example/a.S/M", "application/proto", oneField("x")); string(got) != string(oneField("x")) {
			t.Errorf("%q", got)
		}
		if x := b.recorded(1)[0]; !strings.HasPrefix(x.URL, "https://nowhere.example/") || x.Server != strings.TrimPrefix(origin.URL, "https://") {
			t.Errorf("%s at %s", x.URL, x.Server)
		}
	}
}

// TestRandomRules: random messages through random rules are what an oracle makes of the decoded messages. UNWIRE_LONG=1
// makes 10,000 exchanges.
func TestRandomRules(t *testing.T) {
	t.Parallel()
	n := 200
	if os.Getenv("UNWIRE_LONG") != "" {
		n = 10_000
	}
	for _, h2 := range []bool{false, true} {
		origin := newEchoOrigin(t, h2)
		var policy *rules.Policy
		b := newTestProxy(t, []*httptest.Server{origin}, func(o *Options) {
			policy = newRules(t, "")
			o.Rewrite = policy
		})
		client := b.client(h2)
		for seed := range n / 2 {
			random := rand.New(rand.NewPCG(uint64(seed), 7))
			text, oracle := randomRules(t, random)
			s := loadRules(t, text)
			policy.Replace(s)
			framed := random.IntN(3) > 0
			var messages [][]byte
			for range 1 + random.IntN(6) {
				messages = append(messages, randomProto(random))
			}
			if !framed {
				messages = messages[:1]
			}
			contentType, compressed := "application/proto", framed && random.IntN(3) == 0
			if framed {
				contentType = "application/connect+proto"
			}
			want := oracle(captures.Down, oracle(captures.Up, messages))
			if !framed {
				want = [][]byte{bytes.Join(want, nil)}
			}
			_, got := post(t, client, origin.URL+"/a.S/M", contentType, frames(t, messages, framed, compressed), "Connect-Content-Encoding", "gzip")
			if decoded := unframed(t, got, framed); !slices.EqualFunc(decoded, want, bytes.Equal) {
				t.Fatalf("seed %d, HTTP/2 %v\n%s\nsent %q\n got %q\nwant %q", seed, h2, text, messages, decoded, want)
			}
		}
	}
}

// frames puts messages into envelopes, or returns the only one.
func frames(t *testing.T, messages [][]byte, framed, compressed bool) (out []byte) {
	if !framed {
		return messages[0]
	}
	for _, m := range messages {
		if !compressed {
			out = envelope.Append(out, 0, m)
			continue
		}
		packed, err := envelope.Compress("gzip", m)
		if err != nil {
			t.Fatal(err)
		}
		out = envelope.Append(out, envelope.Compressed, packed)
	}
	return out
}

// unframed is the reverse of frames. The server echoes no header, so compressed frames pass down unchanged.
func unframed(t *testing.T, body []byte, framed bool) (out [][]byte) {
	if !framed {
		return [][]byte{body}
	}
	all, ok := envelope.Split(body)
	if !ok && len(body) > 0 {
		t.Fatalf("no envelopes: %q", body)
	}
	for _, f := range all {
		p := f.Raw
		if f.Flags&envelope.Compressed != 0 {
			var err error
			if p, err = envelope.Decompress("gzip", p, 0); err != nil {
				t.Fatal(err)
			}
		}
		out = append(out, p)
	}
	return out
}

// randomProto returns a message with a few fields.
func randomProto(r *rand.Rand) (out []byte) {
	for range r.IntN(5) {
		switch number := uint64(1 + r.IntN(4)); r.IntN(3) {
		case 0:
			out = edit.AppendField(out, number, 0, []byte{byte(r.IntN(128))})
		case 1:
			out = edit.AppendField(out, number, 2, bytes.Repeat([]byte("ab"), r.IntN(20)))
		case 2:
			out = edit.AppendField(out, number, 2, bytes.Repeat([]byte("0123456789"), r.IntN(20_000)))
		}
	}
	return out
}

// randomRules returns rules for requests, and what they make of messages.
func randomRules(t *testing.T, r *rand.Rand) (text string, oracle func(captures.Direction, [][]byte) [][]byte) {
	type step func([][]byte, int) [][]byte
	var steps []step
	text = "rules:\n"
	for range 1 + r.IntN(3) {
		frame := r.IntN(4)
		line := fmt.Sprintf("  - match: dir:up frame:%d\n    ", frame)
		var change func([]byte) [][]byte
		switch r.IntN(5) {
		case 0:
			text += line + "drop: true\n"
			change = func([]byte) [][]byte { return nil }
		case 1:
			text += line + "duplicate: 2\n"
			change = func(m []byte) [][]byte { return [][]byte{m, m, m} }
		case 2:
			text += line + "replace: hex:0a0178\n"
			change = func([]byte) [][]byte { return [][]byte{{0x0a, 1, 'x'}} }
		case 3:
			text += line + "delete: 1\n"
			change = applies(t, "del", "1")
		case 4:
			value := fmt.Sprintf("9:string=%s", strings.Repeat("z", r.IntN(100_000)))
			text += line + "add: " + value + "\n"
			change = applies(t, "add", value)
		}
		steps = append(steps, func(messages [][]byte, number int) (out [][]byte) {
			if number != frame || len(messages) == 0 {
				return messages
			}
			if replaced := change(messages[0]); len(messages) == 1 {
				return replaced
			}
			// The rules before have duplicated the frame.
			for i, m := range messages {
				changed := change(m)
				switch {
				case len(changed) == 3:
					if i == 0 {
						out = append(slices.Clone(messages), messages[len(messages)-1], messages[len(messages)-1])
					}
				case len(changed) == 1 && string(changed[0]) == "\x0a\x01x":
					return changed
				default:
					out = append(out, changed...)
				}
			}
			return out
		})
	}
	return text, func(d captures.Direction, messages [][]byte) (out [][]byte) {
		if d == captures.Down {
			return messages
		}
		for i, m := range messages {
			left := [][]byte{m}
			for _, s := range steps {
				left = s(left, i)
			}
			out = append(out, left...)
		}
		if len(out) == 0 {
			return nil
		}
		return out
	}
}

// applies returns the function that edits a message. An edit that does not fit leaves it unchanged.
func applies(t *testing.T, op, text string) func([]byte) [][]byte {
	e, err := edit.Parse(op, text)
	if err != nil {
		t.Fatal(err)
	}
	return func(m []byte) [][]byte {
		if out, _, err := e.Apply(m, false, nil); err == nil {
			m = out
		}
		return [][]byte{m}
	}
}
