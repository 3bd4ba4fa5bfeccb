package websocket

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	coder "github.com/coder/websocket"

	"unwire/captures"
)

// A memory is a recorder that keeps what it is given.
type memory struct {
	mu  sync.Mutex
	all []*kept
}

// A kept is an exchange in memory.
type kept struct {
	captures.Recording // nil: what is not overridden is not called

	m *memory
	captures.Exchange
	related int64
	chunks  []captures.Chunk
}

func (m *memory) Begin(ex captures.Exchange) (captures.Recording, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	k := &kept{m: m, Exchange: ex}
	k.Exchange.ID = int64(len(m.all) + 1)
	m.all = append(m.all, k)
	return k, nil
}

func (k *kept) locked(f func()) {
	k.m.mu.Lock()
	defer k.m.mu.Unlock()
	if k.Outcome == captures.InFlight {
		f()
	}
}

func (k *kept) ID() int64 { return k.Exchange.ID }

func (k *kept) Response(status int, h captures.Headers) {
	k.locked(func() { k.Status, k.ResponseHeaders = status, h })
}

func (k *kept) Chunk(dir captures.Direction, p []byte) {
	if len(p) > 0 {
		k.Message(dir, 0, p)
	}
}

func (k *kept) ChunkAt(dir captures.Direction, _ time.Duration, p []byte) { k.Chunk(dir, p) }

func (k *kept) Message(dir captures.Direction, op captures.Opcode, p []byte) {
	k.locked(func() {
		k.chunks = append(k.chunks, captures.Chunk{Dir: dir, Opcode: op, Data: bytes.Clone(p)})
	})
}

func (k *kept) MessageAt(dir captures.Direction, _ time.Duration, op captures.Opcode, p []byte) {
	k.Message(dir, op, p)
}

func (k *kept) Relate(_ captures.RelationKind, target int64) { k.locked(func() { k.related = target }) }

func (k *kept) Trailers(captures.Direction, captures.Headers) {}

func (k *kept) Connection(t captures.TLS, server string) {
	k.locked(func() { k.TLS, k.Server = t, server })
}

func (k *kept) Process(p captures.Process) { k.locked(func() { k.Exchange.Process = p }) }

func (k *kept) End(o captures.Outcome, errText string) {
	k.locked(func() { k.Outcome, k.Error = o, errText })
}

func (k *kept) EndAt(_ time.Duration, o captures.Outcome, errText string) { k.End(o, errText) }

// messages are what was recorded of a direction, each with its opcode, joined.
func (k *kept) messages(dir captures.Direction) (out []string) {
	k.m.mu.Lock()
	defer k.m.mu.Unlock()
	var open []byte
	var op captures.Opcode
	for _, c := range k.chunks {
		switch {
		case c.Dir != dir:
		case c.Opcode.Kind() >= captures.OpClose:
			out = append(out, fmt.Sprintf("%d %s", c.Opcode.Kind(), c.Data))
		default:
			if c.Opcode.Kind() != 0 {
				op = c.Opcode
			}
			if open = append(open, c.Data...); c.Opcode&captures.OpFinal != 0 {
				out = append(out, fmt.Sprintf("%d %s", op&^captures.OpFinal, open))
				open = nil
			}
		}
	}
	if open != nil {
		out = append(out, fmt.Sprintf("unfinished %d %s", op, open))
	}
	return out
}

// body is what was recorded of a direction.
func (k *kept) body(dir captures.Direction) []byte {
	var out []byte
	for _, c := range k.chunks {
		if c.Dir == dir {
			out = append(out, c.Data...)
		}
	}
	return out
}

// handshake begins the recording of a handshake that is accepted.
func handshake(t testing.TB, m *memory, extensions string) captures.Recording {
	t.Helper()
	rec, err := NewRecorder(m).Begin(captures.Exchange{
		Method: "GET", URL: "https://chat.example/talk?room=1", HTTP: "1.1", Source: "proxy", Client: "127.0.0.1:1",
		RequestHeaders: captures.Headers{{Name: "Connection", Value: "Upgrade"}, {Name: "upgrade", Value: "WebSocket"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	rec.Connection(captures.TLS{Version: "1.3"}, "127.0.0.1:443")
	h := captures.Headers{{Name: "Upgrade", Value: "websocket"}}
	if extensions != "" {
		h = append(h, captures.Header{Name: "Sec-WebSocket-Extensions", Value: extensions})
	}
	rec.Response(101, h)
	return rec
}

// conversation has a client and a server of another implementation talk, and returns the
// bytes of both directions, by direction, with what was said.
func conversation(t *testing.T, mode coder.CompressionMode) (extensions string, wire [2][]byte, said [2][]string) {
	t.Helper()
	texts := conversationTexts()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c, err := coder.Accept(w, r, &coder.AcceptOptions{CompressionMode: mode, CompressionThreshold: 1})
		if err != nil {
			t.Error(err)
			return
		}
		c.SetReadLimit(-1)
		defer c.CloseNow()
		for range texts {
			kind, p, err := c.Read(r.Context())
			if err != nil {
				t.Error(err)
				return
			}
			if err := c.Write(r.Context(), kind, append([]byte("re: "), p...)); err != nil {
				t.Error(err)
				return
			}
		}
		_ = c.Close(coder.StatusNormalClosure, "enough")
	}))
	defer server.Close()
	var mu sync.Mutex
	dial := func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := new(net.Dialer).DialContext(ctx, network, addr)
		return &teeConn{Conn: conn, mu: &mu, wire: &wire}, err
	}
	client := &http.Client{Transport: &http.Transport{DialContext: dial}}
	c, res, err := coder.Dial(t.Context(), server.URL, &coder.DialOptions{HTTPClient: client, CompressionMode: mode, CompressionThreshold: 1})
	if err != nil {
		t.Fatal(err)
	}
	c.SetReadLimit(-1)
	for i, text := range texts {
		kind := coder.MessageText
		if i%2 == 1 {
			kind = coder.MessageBinary
		}
		w, err := c.Writer(t.Context(), kind)
		if err != nil {
			t.Fatal(err)
		}
		for part := range strings.SplitAfterSeq(text, "|") { // fragments
			_, _ = io.WriteString(w, part)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		if i == 1 {
			go func() { _ = c.Ping(t.Context()) }()
		}
		if _, p, err := c.Read(t.Context()); err != nil || string(p) != "re: "+text {
			t.Fatalf("message %d: %v", i, err)
		}
		said[captures.Up] = append(said[captures.Up], fmt.Sprintf("%d %s", kind, text))
		said[captures.Down] = append(said[captures.Down], fmt.Sprintf("%d re: %s", kind, text))
	}
	_, _, _ = c.Read(t.Context())
	_ = c.Close(coder.StatusNormalClosure, "")
	mu.Lock()
	defer mu.Unlock()
	for dir := range wire {
		_, wire[dir], _ = bytes.Cut(wire[dir], []byte("\r\n\r\n"))
	}
	return res.Header.Get("Sec-WebSocket-Extensions"), wire, said
}

func conversationTexts() []string {
	random := rand.New(rand.NewPCG(1, 2))
	noise := make([]byte, 100_000)
	for i := range noise {
		noise[i] = byte(random.Uint32())
	}
	return []string{
		"hello", "", "hello again, hello", strings.Repeat("a", 125), strings.Repeat("b", 126), "one|two|three|",
		strings.Repeat("all work and no play ", 10_000), string(noise), strings.Repeat("c", 65535), string(noise[:65536]),
		`{"delta":"` + strings.Repeat("x|", 3000) + `"}`, "hello", string(noise),
	}
}

// A teeConn keeps what passes through a connection.
type teeConn struct {
	net.Conn
	mu   *sync.Mutex
	wire *[2][]byte
}

func (c *teeConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.wire[captures.Down] = append(c.wire[captures.Down], p[:n]...)
	return n, err
}

func (c *teeConn) Write(p []byte) (int, error) {
	c.mu.Lock()
	c.wire[captures.Up] = append(c.wire[captures.Up], p...)
	c.mu.Unlock()
	return c.Conn.Write(p)
}

// TestConversations: messages are recorded as they were sent, whatever the compression
// and the pieces in which the bytes pass.
func TestConversations(t *testing.T) {
	for name, mode := range map[string]coder.CompressionMode{
		"plain": coder.CompressionDisabled, "takeover": coder.CompressionContextTakeover, "no takeover": coder.CompressionNoContextTakeover,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			extensions, wire, said := conversation(t, mode)
			if (mode != coder.CompressionDisabled) != strings.Contains(extensions, "permessage-deflate") {
				t.Fatalf("agreed on %q", extensions)
			}
			for _, piece := range []int{1, 7, 1400, 64 << 10, 1 << 30} {
				m := new(memory)
				rec := handshake(t, m, extensions)
				for dir, p := range wire {
					for len(p) > 0 {
						n := min(piece, len(p))
						rec.Chunk(captures.Direction(dir), p[:n])
						p = p[n:]
					}
				}
				rec.End(captures.Complete, "")
				m.check(t, piece, mode != coder.CompressionDisabled, said)
			}
		})
	}
}

// check compares what was recorded of a conversation with what was said.
func (m *memory) check(t *testing.T, piece int, compressed bool, said [2][]string) {
	t.Helper()
	if len(m.all) != 2 {
		t.Fatalf("%d exchanges", len(m.all))
	}
	h, w := m.all[0], m.all[1]
	if h.Status != 101 || h.Outcome != captures.Complete || len(h.chunks) != 0 {
		t.Errorf("the handshake: %+v", h.Exchange)
	}
	if w.Transport != captures.WebSocket || w.URL != "wss://chat.example/talk?room=1" || w.related != 1 || w.Outcome != captures.Complete ||
		w.Error != "" || w.Server != "127.0.0.1:443" || w.TLS.Version != "1.3" || w.Started.IsZero() || w.Method != "" || w.Status != 0 {
		t.Errorf("the WebSocket: %+v", w.Exchange)
	}
	for dir := range said {
		var data []string
		controls := 0
		for _, message := range w.messages(captures.Direction(dir)) {
			op, text, _ := strings.Cut(message, " ")
			switch op {
			case "8", "9", "10":
				controls++
				continue
			case "65", "66": // compressed
				op = string(op[1] - '5' + '1')
			}
			data = append(data, op+" "+text)
		}
		if controls == 0 {
			t.Errorf("in pieces of %d: no control frames %v", piece, captures.Direction(dir))
		}
		if len(data) != len(said[dir]) {
			t.Fatalf("in pieces of %d: %d messages, want %d", piece, len(data), len(said[dir]))
		}
		for i := range data {
			if data[i] != said[dir][i] {
				t.Errorf("in pieces of %d: message %d is %.60q, want %.60q", piece, i, data[i], said[dir][i])
			}
		}
	}
	anyCompressed := false
	for _, c := range w.chunks {
		anyCompressed = anyCompressed || c.Opcode&captures.OpCompressed != 0
	}
	if anyCompressed != compressed {
		t.Errorf("some are compressed: %v", anyCompressed)
	}
}

// TestOtherAnswers: a refused handshake and another protocol are exchanges of HTTP.
func TestOtherAnswers(t *testing.T) {
	for name, c := range map[string]struct {
		ex     captures.Exchange
		status int
		answer captures.Headers
		opened bool
	}{
		"refused":          {captures.Exchange{Method: "GET", RequestHeaders: captures.Headers{{Name: "Upgrade", Value: "websocket"}}}, 403, nil, false},
		"another protocol": {captures.Exchange{Method: "GET", RequestHeaders: captures.Headers{{Name: "Upgrade", Value: "tsp, websocket"}}}, 101, captures.Headers{{Name: "Upgrade", Value: "tsp"}}, false},
		"not asked for":    {captures.Exchange{Method: "GET"}, 101, captures.Headers{{Name: "Upgrade", Value: "websocket"}}, false},
		"over HTTP/2":      {captures.Exchange{Method: "CONNECT", RequestHeaders: captures.Headers{{Name: ":protocol", Value: "websocket"}}}, 200, nil, true},
		"HTTP/2, refused":  {captures.Exchange{Method: "CONNECT", RequestHeaders: captures.Headers{{Name: ":protocol", Value: "websocket"}}}, 404, nil, false},
		"another CONNECT":  {captures.Exchange{Method: "CONNECT", RequestHeaders: captures.Headers{{Name: ":protocol", Value: "connect-udp"}}}, 200, nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			m := new(memory)
			c.ex.URL = "http://h/x"
			rec, err := NewRecorder(m).Begin(c.ex)
			if err != nil {
				t.Fatal(err)
			}
			rec.Chunk(captures.Up, []byte("\x81\x02")) // before the answer
			rec.Response(c.status, c.answer)
			rec.Chunk(captures.Up, []byte("hi"))
			rec.Chunk(captures.Down, []byte("\x81\x01x"))
			rec.End(captures.Complete, "")
			if !c.opened {
				if len(m.all) != 1 || string(m.all[0].body(captures.Up)) != "\x81\x02hi" || string(m.all[0].body(captures.Down)) != "\x81\x01x" {
					t.Errorf("%d exchanges, %q", len(m.all), m.all[0].body(captures.Up))
				}
				return
			}
			if len(m.all) != 2 || len(m.all[0].chunks) != 0 || m.all[1].URL != "ws://h/x" {
				t.Fatalf("%d exchanges", len(m.all))
			}
			if up, down := m.all[1].messages(captures.Up), m.all[1].messages(captures.Down); fmt.Sprint(up, down) != "[1 hi] [1 x]" {
				t.Errorf("up %q, down %q", up, down)
			}
		})
	}
}
