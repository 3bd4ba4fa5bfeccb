package mock

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/coder/websocket"

	"unwire/captures"
	"unwire/captures/need"
	"unwire/captures/store"
	"unwire/decode/envelope"
	"unwire/mitm"
)

// socketServer has a WebSocket for each way to talk.
func socketServer() http.Handler {
	mux := http.NewServeMux()
	handle := func(pattern string, o *websocket.AcceptOptions, talk func(ctx context.Context, r *http.Request, c *websocket.Conn)) {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("X-Talk", "talk at "+r.URL.Path)
			o := *o
			o.InsecureSkipVerify = true
			c, err := websocket.Accept(w, r, &o)
			if err != nil {
				return
			}
			defer c.CloseNow() //nolint:errcheck // it may be closed
			c.SetReadLimit(1 << 20)
			talk(r.Context(), r, c)
		})
	}
	plain := &websocket.AcceptOptions{}
	// The server speaks first, repeats the client's identifiers, and closes.
	handle("/ids/{id}", &websocket.AcceptOptions{Subprotocols: []string{"v2.talk"}}, func(ctx context.Context, r *http.Request, c *websocket.Conn) {
		_ = c.Write(ctx, websocket.MessageText, fmt.Appendf(nil, `{"hello":%q,"at":%q}`, r.PathValue("id"), r.URL.Query().Get("trace")))
		for n := 0; ; n++ {
			_, p, err := c.Read(ctx)
			var in struct{ Ref string }
			if err != nil || json.Unmarshal(p, &in) != nil {
				return
			}
			if in.Ref == "" {
				_ = c.Close(4001, "no more refs")
				return
			}
			_ = c.Write(ctx, websocket.MessageText, fmt.Appendf(nil, `{"n":%d,"ref":%q}`, n, in.Ref))
			go c.Ping(ctx) //nolint:errcheck // its answer is read with the next message
		}
	})
	// As the client of testdata/node/ws.mjs expects it.
	handle("/talk", &websocket.AcceptOptions{CompressionMode: websocket.CompressionContextTakeover, CompressionThreshold: 1}, func(ctx context.Context, _ *http.Request, c *websocket.Conn) {
		for {
			kind, p, err := c.Read(ctx)
			if err != nil {
				return
			}
			if string(p) != "drop this" {
				_ = c.Write(ctx, kind, append([]byte("re "), p...))
			}
		}
	})
	// Several envelopes in one message, and empty messages.
	handle("/pkg.Talk/Envelopes", plain, func(ctx context.Context, _ *http.Request, c *websocket.Conn) {
		_, p, err := c.Read(ctx)
		if err != nil {
			return
		}
		_ = c.Write(ctx, websocket.MessageBinary, append([]byte{0}, envelope.Append(envelope.Append(nil, 0, p[6:]), 0, []byte("\x0a\x03two"))...))
		_ = c.Write(ctx, websocket.MessageBinary, nil)
		_ = c.Write(ctx, websocket.MessageText, nil)
		_ = c.Write(ctx, websocket.MessageBinary, envelope.Append(nil, 0, []byte("\x0a\x04last")))
		_ = c.Close(websocket.StatusNormalClosure, "")
	})
	// A connection that ends without a close frame.
	handle("/cut", plain, func(ctx context.Context, _ *http.Request, c *websocket.Conn) {
		_ = c.Write(ctx, websocket.MessageText, []byte("half"))
		time.Sleep(200 * time.Millisecond) // the message arrives before the end
	})
	mux.HandleFunc("/refused", func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "not today", http.StatusForbidden) })
	mux.HandleFunc("/page", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = io.WriteString(w, socketPage)
	})
	return mux
}

// socketPage opens a WebSocket and reports what happened to the URL in its fragment.
const socketPage = `<!doctype html><link rel="icon" href="data:,"><script>
const out = [], socket = new WebSocket(location.origin.replace('http', 'ws') + '/talk');
const say = ['one', JSON.stringify({big: 'y'.repeat(70000)}), new Uint8Array([0, 255, 7]), 'bye'];
socket.binaryType = 'arraybuffer';
socket.onopen = () => socket.send(say.shift());
socket.onmessage = (e) => {
  out.push(typeof e.data === 'string' ? e.data.length + e.data.slice(0, 20) : [...new Uint8Array(e.data)].join());
  if (say.length) socket.send(say.shift()); else socket.close(3000, 'enough');
};
socket.onclose = (e) => fetch(location.hash.slice(1), {method: 'POST', mode: 'no-cors', body: out.join('|') + ' ' + e.code + e.reason + socket.extensions});
</script>`

// dial opens a WebSocket of a test.
func dial(ctx context.Context, addr, path string, o *websocket.DialOptions) (*websocket.Conn, string) {
	c, res, err := websocket.Dial(ctx, "ws://"+addr+path, o)
	if err != nil {
		var body []byte
		if res != nil {
			body, _ = io.ReadAll(res.Body)
			return nil, fmt.Sprintf("%s %s %s", path, res.Status, body)
		}
		return nil, err.Error()
	}
	c.SetReadLimit(1 << 20)
	return c, path + " " + c.Subprotocol() + " " + res.Header.Get("X-Talk")
}

// talk sends messages and prints what a WebSocket receives, until it ends.
func talk(ctx context.Context, c *websocket.Conn, awaited int, send ...string) (out string) {
	defer c.CloseNow() //nolint:errcheck // it may be closed
	for i := 0; ; i++ {
		if i >= awaited && len(send) > 0 {
			kind := websocket.MessageText
			if strings.Contains(send[0], "\x00") {
				kind = websocket.MessageBinary
			}
			if err := c.Write(ctx, kind, []byte(send[0])); err != nil {
				return out + "cannot send"
			}
			send = send[1:]
		}
		kind, p, err := c.Read(ctx)
		var closed websocket.CloseError
		switch {
		case errors.As(err, &closed):
			return fmt.Sprintf("%sclosed %d %q\n", out, closed.Code, closed.Reason)
		case err != nil:
			return out + "lost\n"
		}
		out += fmt.Sprintf("%v %q\n", kind, p)
	}
}

// TestWebSockets has the client coder/websocket: identifiers, a subprotocol, messages of several envelopes, and all
// ways to end.
func TestWebSockets(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.same(socketServer(), func(addr string) string {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		id, ref := newID(), newID()
		c, out := dial(ctx, addr, "/ids/"+id+"?trace="+ref, &websocket.DialOptions{Subprotocols: []string{"v1.talk", "v2.talk"}})
		out += talk(ctx, c, 1, `{"ref":"`+ref+`"}`, `{"ref":"`+id+`"}`, `{}`)
		c, head := dial(ctx, addr, "/pkg.Talk/Envelopes", nil)
		out += head + talk(ctx, c, 0, "\x00"+string(envelope.Append(nil, 0, []byte("\x0a\x03one"))))
		_, head = dial(ctx, addr, "/refused", nil)
		return strings.NewReplacer(id, "ID", ref, "REF").Replace(out + head)
	})
}

// TestWebSocketCut: the loss of a connection is played, too.
func TestWebSocketCut(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	client := func(addr string) string {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		c, _ := dial(ctx, addr, "/cut", nil)
		return talk(ctx, c, 0)
	}
	f.record(socketServer(), mitm.Options{}, func(addr string) { client(addr) })
	answers, _ := f.mock(Options{}, func(addr string) {
		if got := client(addr); got != "MessageText \"half\"\nlost\n" {
			t.Error(got)
		}
	})
	if len(answers) != 1 || !answers[0].Complete || !slices.Equal(answers[0].Notes, []string{"mock did not send the whole answer"}) {
		t.Errorf("%+v", answers)
	}
}

// TestWebSocketWS has the client ws of Node, with compression.
func TestWebSocketWS(t *testing.T) {
	t.Parallel()
	const folder = "../../mitm/testdata/node"
	node := need.Node(t, folder)
	f := newFixture(t)
	f.same(socketServer(), func(addr string) string {
		b, err := exec.CommandContext(t.Context(), node, folder+"/ws.mjs", "ws://"+addr+"/talk", "deflate").CombinedOutput()
		if !strings.Contains(string(b), "closed 1000 done permessage-deflate") {
			t.Errorf("%s %v", b, err)
		}
		return string(b)
	})
}

// TestWebSocketChromium has a page in Chromium, which the mock serves, too.
func TestWebSocketChromium(t *testing.T) {
	t.Parallel()
	need.Program(t, "chromium", "chromium", "--version")
	f := newFixture(t)
	f.same(socketServer(), func(addr string) string {
		told := make(chan string, 1)
		report := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			b, _ := io.ReadAll(r.Body)
			told <- string(b)
		}))
		defer report.Close()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		profile := filepath.Join(t.TempDir(), "profile")
		cmd := exec.CommandContext(ctx, "chromium", "--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking",
			"--user-data-dir="+profile, "http://"+addr+"/page#"+report.URL)
		cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
		cmd.WaitDelay = 5 * time.Second
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		defer removeProfile(t, profile)
		defer cmd.Wait() //nolint:errcheck // it is ended by a signal
		defer cancel()
		select {
		case got := <-told:
			if !strings.Contains(got, "3000enough") {
				t.Errorf("the page tells %q", got)
			}
			return got
		case <-ctx.Done():
			t.Error("the page tells nothing")
			return ""
		}
	})
}

// removeProfile removes the profile of a browser that has ended. Its helper processes may still write to it for a
// moment.
func removeProfile(t *testing.T, dir string) {
	t.Helper()
	var err error
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		if err = os.RemoveAll(dir); err == nil {
			return
		}
	}
	t.Error(err)
}

// TestWebSocketOrigin: a page of another site cannot read the capture through a WebSocket.
func TestWebSocketOrigin(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	from := func(addr, origin string) string {
		c, head := dial(ctx, addr, "/talk", &websocket.DialOptions{HTTPHeader: http.Header{"Origin": {origin}}})
		if c != nil {
			_ = c.Close(websocket.StatusNormalClosure, "")
		}
		return head
	}
	f.record(socketServer(), mitm.Options{}, func(addr string) { from(addr, "https://shop.example") })
	f.mock(Options{}, func(addr string) {
		for origin, allowed := range map[string]bool{
			"https://shop.example": true, "http://localhost:5173": true, "http://127.0.0.1:1": true, "http://" + addr: true,
			"https://evil.example": false, "http://shop.example": false, "null": false,
		} {
			if got := from(addr, origin); strings.Contains(got, "403 Forbidden") == allowed {
				t.Errorf("%s: %s", origin, got)
			}
		}
	})
}

// TestWebSocketRefusals: a WebSocket whose messages resemble no recorded one is closed with the reason, and one without
// a recording gets an HTTP error.
func TestWebSocketRefusals(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	f.record(socketServer(), mitm.Options{}, func(addr string) {
		c, _ := dial(ctx, addr, "/ids/7", nil)
		talk(ctx, c, 1, `{"ref":"abc"}`, `{}`)
	})
	_, report := f.mock(Options{MinSimilarity: 0.9}, func(addr string) {
		if _, got := dial(ctx, addr, "/nowhere", nil); !strings.Contains(got, "501") || !strings.Contains(got, "no call of websocket /nowhere") {
			t.Error(got)
		}
		c, got := dial(ctx, addr, "/ids/8", nil)
		if got += talk(ctx, c, 0, "\x00\x01\x02 neither"); !strings.Contains(got, `closed 1011 "unimplemented: no recorded call of websocket`) {
			t.Error(got)
		}
	})
	if report.Refused != 2 || report.Answered != 0 {
		t.Errorf("%+v", report)
	}
}

// TestWebSocketIsReported: Shutdown waits until an ended WebSocket is counted and reported.
func TestWebSocketIsReported(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	talk := func(addr string) {
		c, _ := dial(t.Context(), addr, "/talk", nil)
		_ = c.Write(t.Context(), websocket.MessageText, []byte("hello"))
		_, _, _ = c.Read(t.Context())
		_ = c.Close(websocket.StatusNormalClosure, "")
	}
	f.record(socketServer(), mitm.Options{}, talk)
	src := must(store.Open(f.path, store.ReadOptions{}))
	defer src.Close() //nolint:errcheck // only read
	reporting, report := make(chan bool), make(chan bool)
	server := must(New(t.Context(), src, Options{CA: f.ca, Answered: func(Answer) { reporting <- true; <-report }}))
	srv := httptest.NewServer(server)
	defer srv.Close()
	talk(must(url.Parse(srv.URL)).Host)
	<-reporting
	ended := make(chan error, 1)
	go func() { ended <- server.Shutdown(t.Context()) }()
	select {
	case err := <-ended:
		t.Fatalf("Shutdown returned %v before the WebSocket was reported", err)
	case <-time.After(100 * time.Millisecond):
	}
	close(report)
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// TestWebSocketShutdown: an open WebSocket does not keep the server from ending.
func TestWebSocketShutdown(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.record(socketServer(), mitm.Options{}, func(addr string) {
		c, _ := dial(t.Context(), addr, "/talk", nil)
		_ = c.Write(t.Context(), websocket.MessageText, []byte("hello"))
		_, _, _ = c.Read(t.Context())
		_ = c.Close(websocket.StatusNormalClosure, "")
	})
	src := must(store.Open(f.path, store.ReadOptions{}))
	defer src.Close() //nolint:errcheck // only read
	server := must(New(t.Context(), src, Options{CA: f.ca}))
	srv := httptest.NewServer(server)
	defer srv.Close()
	addr := must(url.Parse(srv.URL)).Host
	c, _ := dial(t.Context(), addr, "/talk", nil)
	_ = c.Write(t.Context(), websocket.MessageText, []byte("hello"))
	if _, p, err := c.Read(t.Context()); err != nil || string(p) != "re hello" {
		t.Fatalf("%q %v", p, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	start := time.Now()
	if err := server.Shutdown(ctx); !errors.Is(err, context.DeadlineExceeded) || time.Since(start) > 3*time.Second {
		t.Errorf("%v after %s", err, time.Since(start))
	}
	if _, _, err := c.Read(t.Context()); err == nil {
		t.Error("the WebSocket is still open")
	}
	if n := server.Report().Answered; n != 1 {
		t.Errorf("%d answered", n)
	}
}

// TestWebSocketPings: the mock answers the client's pings, and sends a ping before each message before which the recorded
// server sent one.
func TestWebSocketPings(t *testing.T) {
	t.Parallel()
	mux := http.NewServeMux()
	mux.HandleFunc("/pings", func(w http.ResponseWriter, r *http.Request) {
		c, err := websocket.Accept(w, r, nil)
		if err != nil {
			return
		}
		defer c.CloseNow() //nolint:errcheck // it may be closed
		// The answer is read by CloseRead.
		ctx := c.CloseRead(r.Context())
		for _, text := range []string{"one", "two"} {
			if err := c.Ping(ctx); err != nil {
				return
			}
			_ = c.Write(ctx, websocket.MessageText, []byte(text))
		}
		_ = c.Ping(ctx)
		<-ctx.Done()
	})
	f := newFixture(t)
	f.same(mux, func(addr string) string {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		pings := make(chan struct{}, 10)
		c, _, err := websocket.Dial(ctx, "ws://"+addr+"/pings", &websocket.DialOptions{OnPingReceived: func(context.Context, []byte) bool {
			pings <- struct{}{}
			return true
		}})
		if err != nil {
			return err.Error()
		}
		defer c.CloseNow() //nolint:errcheck // it may be closed
		out := ""
		for range 2 {
			_, p, err := c.Read(ctx)
			out += fmt.Sprintf("%s %v ", p, err)
		}
		c.CloseRead(ctx)
		err = c.Ping(ctx)
		for range 3 {
			select {
			case <-pings:
			case <-ctx.Done():
				t.Error("a ping does not arrive")
			}
		}
		return fmt.Sprint(out, err, c.Close(websocket.StatusNormalClosure, ""))
	})
}

// TestWebSocketOfHTTP2: a WebSocket that was recorded over HTTP/2 is opened over HTTP/1.1, with a remark.
func TestWebSocketOfHTTP2(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	s := must(store.Create(f.path, store.Options{}))
	handshake := must(s.Begin(captures.Exchange{
		Method: http.MethodConnect, URL: "https://a.example/talk", HTTP: "2", Started: time.Now(),
		RequestHeaders: captures.Headers{{Name: ":protocol", Value: "websocket"}, {Name: "sec-websocket-version", Value: "13"}},
	}))
	handshake.Response(http.StatusOK, captures.Headers{{Name: "x-talk", Value: "recorded"}})
	handshake.End(captures.Complete, "")
	rec := must(s.Begin(captures.Exchange{Transport: captures.WebSocket, URL: "wss://a.example/talk", HTTP: "2", Started: time.Now()}))
	rec.Relate(captures.HandshakeOf, handshake.ID())
	rec.Message(captures.Up, captures.OpFinal|captures.OpText, []byte("hello"))
	rec.Message(captures.Down, captures.OpFinal|captures.OpText, []byte("re hello"))
	rec.Message(captures.Up, captures.OpFinal|captures.OpClose, []byte{3, 232})
	rec.End(captures.Complete, "")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	answers, report := f.mock(Options{}, func(addr string) {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		c, head := dial(ctx, addr, "/talk", nil)
		if err := c.Write(ctx, websocket.MessageText, []byte("hello")); err != nil {
			t.Error(err)
		}
		if _, p, err := c.Read(ctx); err != nil || string(p) != "re hello" || !strings.HasSuffix(head, "recorded") {
			t.Errorf("%q, %v after %q", p, err, head)
		}
		_ = c.Close(websocket.StatusNormalClosure, "")
	})
	if report.Answered != 1 || len(answers) != 1 || !strings.Contains(strings.Join(answers[0].Notes, "\n"), "recorded over HTTP/2") {
		t.Errorf("%+v, %+v", answers, report)
	}
}
