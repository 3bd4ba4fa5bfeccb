package intercept

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"unwire/captures"
	"unwire/decode"
	"unwire/mitm/rewrite"
	"unwire/mitm/rules"
)

// testTimeout is how long a test waits for what should come at once.
const testTimeout = 30 * time.Second

// frameOf returns a frame of an exchange that a rule holds.
func frameOf(exchange int64, data string) rules.Held {
	return rules.Held{
		Exchange: &captures.Exchange{ID: exchange, URL: "https://a.example/shop.Cart/Get"},
		Call:     decode.Call{Service: "shop.Cart", RPC: "Get"},
		Frame:    &rewrite.Frame{Dir: captures.Down, Number: 3, Flags: 1},
		Data:     []byte(data), JSON: true, Rule: "the rule",
	}
}

// A result is what Hold returned.
type result struct {
	messages [][]byte
	changed  bool
}

// hold holds a frame and returns where its result comes.
func hold(ctx context.Context, h *Holder, in rules.Held) <-chan result {
	c := make(chan result, 1)
	go func() {
		messages, changed := h.Hold(ctx, in)
		c <- result{messages, changed}
	}()
	return c
}

// await returns the result of a frame.
func await(t *testing.T, c <-chan result) result {
	t.Helper()
	select {
	case r := <-c:
		return r
	case <-time.After(testTimeout):
		t.Fatal("the frame is still held")
		return result{}
	}
}

func TestDecide(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		decision Decision
		fault    string
		want     result
	}{
		{Decision{Action: "release"}, "", result{nil, false}},
		{Decision{Action: "drop"}, "", result{nil, true}},
		{Decision{Action: "replace", Messages: [][]byte{[]byte("a"), {}}}, "", result{[][]byte{[]byte("a"), {}}, true}},
		{Decision{Action: "replace"}, "the action replace needs messages; to remove a frame, use drop", result{}},
		{Decision{Action: "drop", Messages: [][]byte{{}}}, "the action drop must have no messages", result{}},
		{Decision{Action: "relaese"}, `"relaese" is not an action: release, drop or replace`, result{}},
	} {
		h := New(Options{})
		held := hold(t.Context(), h, frameOf(7, "data"))
		frames := h.Held(t.Context(), 0)
		f := frames[0]
		if len(frames) != 1 || f.ID != 1 || f.Exchange != 7 || f.Method != "/shop.Cart/Get" || f.Dir != "down" || f.Number != 3 ||
			f.Flags != 1 || !f.JSON || f.Rule != "the rule" || string(f.Data) != "data" || f.Until.Sub(f.Since) != defaultMaxTime {
			t.Errorf("%+v", f)
		}
		err := h.Decide(f.ID, c.decision)
		if c.fault != "" {
			if err == nil || !strings.Contains(err.Error(), c.fault) {
				t.Errorf("%+v: %v", c.decision, err)
			}
			h.Close()
			if got := await(t, held); got.changed {
				t.Errorf("%+v: a decision that is invalid was carried out", c.decision)
			}
			continue
		}
		got := await(t, held)
		if err != nil || got.changed != c.want.changed || !bytes.Equal(bytes.Join(got.messages, []byte{0}), bytes.Join(c.want.messages, []byte{0})) || len(got.messages) != len(c.want.messages) {
			t.Errorf("%+v: %+v, %v", c.decision, got, err)
		}
		if err := h.Decide(f.ID, c.decision); !errors.Is(err, ErrNotHeld) {
			t.Errorf("decided twice: %v", err)
		}
	}
}

// Frames are released unchanged in time, when their exchange ends, when there are too many, and when the Holder closes.
func TestReleases(t *testing.T) {
	t.Parallel()
	var changes sync.Map
	h := New(Options{MaxTime: 30 * time.Millisecond, MaxBytes: 10, Changed: func(f Frame, held bool) {
		n, _ := changes.LoadOrStore(f.ID, 0)
		changes.Store(f.ID, n.(int)*2+map[bool]int{true: 1, false: 2}[held])
	}})
	began := time.Now()
	if got := await(t, hold(t.Context(), h, frameOf(1, "late"))); got.changed || time.Since(began) < 30*time.Millisecond {
		t.Errorf("%+v after %v", got, time.Since(began))
	}
	if n, _ := changes.Load(int64(1)); n != 4 {
		t.Errorf("Changed was called in another way: %v", n)
	}

	h = New(Options{MaxBytes: 10})
	ctx, cancel := context.WithCancel(t.Context())
	ended := hold(ctx, h, frameOf(1, "12345"))
	h.Held(t.Context(), 0)
	// 11 bytes are too many: the frame is not held at all.
	if got := await(t, hold(t.Context(), h, frameOf(2, "123456"))); got.changed {
		t.Errorf("%+v", got)
	}
	cancel()
	if got := await(t, ended); got.changed {
		t.Errorf("%+v", got)
	}
	// What was released no longer counts.
	again := hold(t.Context(), h, frameOf(3, "1234567890"))
	if frames := h.Held(t.Context(), 1); len(frames) != 1 || frames[0].Exchange != 3 {
		t.Errorf("%+v", frames)
	}
	h.Close()
	if got := await(t, again); got.changed {
		t.Errorf("%+v", got)
	}
	if got := await(t, hold(t.Context(), h, frameOf(4, "x"))); got.changed {
		t.Errorf("a closed Holder holds: %+v", got)
	}
	if frames := h.Held(t.Context(), 0); len(frames) != 0 {
		t.Errorf("%+v", frames)
	}
}

// A decision and the end of the time may come together: exactly one of them counts.
func TestDecideWhileReleased(t *testing.T) {
	t.Parallel()
	for range 200 {
		h := New(Options{})
		ctx, cancel := context.WithCancel(t.Context())
		held := hold(ctx, h, frameOf(1, "x"))
		id := h.Held(t.Context(), 0)[0].ID
		go cancel()
		err := h.Decide(id, Decision{Action: "drop"})
		if got := await(t, held); got.changed != (err == nil) {
			t.Fatalf("%v, but %+v", err, got)
		}
		cancel()
	}
}

// Held waits for frames behind a number, and returns them in their order.
func TestHeld(t *testing.T) {
	t.Parallel()
	h := New(Options{})
	defer h.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if frames := h.Held(ctx, 0); len(frames) != 0 {
		t.Errorf("%+v", frames)
	}
	for i := range 20 {
		hold(t.Context(), h, frameOf(int64(i), "x"))
		h.Held(t.Context(), int64(i))
	}
	for i, f := range h.Held(t.Context(), 5) {
		if f.ID != int64(6+i) {
			t.Fatalf("frame %d at place %d", f.ID, i)
		}
	}
	if n := h.ReleaseAll(); n != 20 {
		t.Errorf("%d were held", n)
	}
}

// serve starts a server of a Holder for a capture.
func serve(t *testing.T, h *Holder) (capture string, s *Server) {
	t.Helper()
	capture = filepath.Join(t.TempDir(), "a.uwc")
	s, err := Serve(capture, h)
	if err != nil {
		t.Fatal(err)
	}
	return capture, s
}

func TestServe(t *testing.T) {
	t.Parallel()
	h := New(Options{})
	defer h.Close()
	capture, s := serve(t, h)
	c, err := Dial(capture)
	if err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	if frames, err := c.Held(ctx, 0, 0); len(frames) != 0 || err != nil {
		t.Errorf("%+v, %v", frames, err)
	}
	waiting := make(chan []Frame, 1)
	go func() {
		frames, _ := c.Held(ctx, 0, testTimeout)
		waiting <- frames
	}()
	held := hold(ctx, h, frameOf(1, "\x00\xff"))
	frames := <-waiting
	if len(frames) != 1 || string(frames[0].Data) != "\x00\xff" {
		t.Fatalf("%+v", frames)
	}
	if err := c.Decide(ctx, frames[0].ID, Decision{Action: "nothing"}); err == nil || !strings.Contains(err.Error(), "is not an action") {
		t.Errorf("%v", err)
	}
	if err := c.Decide(ctx, frames[0].ID, Decision{Action: "replace", Messages: [][]byte{[]byte("new")}}); err != nil {
		t.Error(err)
	}
	if got := await(t, held); !got.changed || string(got.messages[0]) != "new" {
		t.Errorf("%+v", got)
	}
	if err := c.Decide(ctx, frames[0].ID, Decision{Action: "drop"}); !errors.Is(err, ErrNotHeld) {
		t.Errorf("%v", err)
	}
	both := []<-chan result{hold(ctx, h, frameOf(1, "a")), hold(ctx, h, frameOf(2, "b"))}
	for len(h.Held(ctx, 0)) < 2 {
		time.Sleep(time.Millisecond)
	}
	if n, err := c.ReleaseAll(ctx); n != 2 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
	for _, r := range both {
		if got := await(t, r); got.changed {
			t.Errorf("%+v", got)
		}
	}

	// Without the token, requests are refused.
	wrong := &Client{http: c.http, token: "x"}
	if _, err := wrong.Held(ctx, 0, 0); err == nil || !strings.Contains(err.Error(), "token") {
		t.Errorf("%v", err)
	}

	// When the recorder has ended, its file and its socket are gone.
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if _, err := c.Held(ctx, 0, 0); !errors.Is(err, ErrNoRecorder) {
		t.Errorf("%v", err)
	}
	if _, err := Dial(capture); !errors.Is(err, ErrNoRecorder) {
		t.Errorf("%v", err)
	}
	if _, err := os.Stat(s.folder); s.folder != "" && !os.IsNotExist(err) {
		t.Errorf("the folder of the socket is left: %v", err)
	}
}

// A recorder that ends while it is asked has ended, as one that does not listen any more.
func TestRecorderEnds(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]string{"no answer": "", "half an answer": "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n["} {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			for {
				conn, err := listener.Accept()
				if err != nil {
					return
				}
				_, _ = http.ReadRequest(bufio.NewReader(conn))
				_, _ = io.WriteString(conn, answer)
				_ = conn.Close()
			}
		}()
		c := &Client{http: &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "tcp", listener.Addr().String())
		}}}}
		if _, err := c.Held(t.Context(), 0, 0); !errors.Is(err, ErrNoRecorder) {
			t.Errorf("%s: %v", name, err)
		}
		_ = listener.Close()
	}
}

// Only the user's own file is believed, and a killed recorder's file is replaced.
func TestAddressFile(t *testing.T) {
	t.Parallel()
	h := New(Options{})
	defer h.Close()
	capture := filepath.Join(t.TempDir(), "a.uwc")
	name := capture + fileSuffix
	if err := os.WriteFile(name, []byte("left over"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Dial(capture); err == nil || !strings.Contains(err.Error(), "is damaged: delete it") {
		t.Errorf("%v", err)
	}
	s, err := Serve(capture, h)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, err := Dial(capture); err != nil {
		t.Error(err)
	}
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if runtime.GOOS == "windows" {
		return
	}
	if info, err := os.Stat(name); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	var at address
	if err := json.Unmarshal(text, &at); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(filepath.Dir(at.Address)); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("%v, %v", info, err)
	}

	// A file that others can write to, a link, and an address on another machine.
	if err := os.Chmod(name, 0o622); err != nil {
		t.Fatal(err)
	}
	if _, err := Dial(capture); err == nil || !strings.Contains(err.Error(), "other users can write to "+name) {
		t.Errorf("%v", err)
	}
	link := filepath.Join(t.TempDir(), "b.uwc")
	if err := os.Chmod(name, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(name, link+fileSuffix); err != nil {
		t.Fatal(err)
	}
	if _, err := Dial(link); err == nil {
		t.Error("a link was followed")
	}
	elsewhere := filepath.Join(t.TempDir(), "c.uwc")
	if err := os.WriteFile(elsewhere+fileSuffix, []byte(`{"network":"tcp","address":"192.0.2.1:80"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Dial(elsewhere); err == nil || !strings.Contains(err.Error(), "is damaged") {
		t.Errorf("%v", err)
	}
}

// FuzzDecision: whatever is sent, the server answers, and a held frame is decided about at most once.
func FuzzDecision(f *testing.F) {
	f.Add("1", `{"action":"release"}`)
	f.Add("1", `{"action":"replace","messages":["AA=="]}`)
	f.Add("-1", `{"action":7}`)
	f.Add("x", `[`)
	f.Fuzz(func(t *testing.T, id, body string) {
		h := New(Options{})
		defer h.Close()
		s := &Server{holder: h, token: "token"}
		held := hold(t.Context(), h, frameOf(1, "x"))
		h.Held(t.Context(), 0)
		r, err := http.NewRequest(http.MethodPost, "http://recorder/held/1", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.SetPathValue("id", id)
		w := &answer{header: http.Header{}}
		s.serveDecision(w, r)
		decided := w.status == http.StatusNoContent
		if !decided {
			h.ReleaseAll()
		}
		if got := await(t, held); got.changed && !decided {
			t.Errorf("status %d, but %+v", w.status, got)
		}
	})
}

// An answer is an http.ResponseWriter that keeps the status.
type answer struct {
	header http.Header
	status int
}

func (a *answer) Header() http.Header         { return a.header }
func (a *answer) WriteHeader(status int)      { a.status = status }
func (a *answer) Write(p []byte) (int, error) { return len(p), nil }
