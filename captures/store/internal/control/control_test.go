package control

import (
	"bufio"
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"time"

	"unwire/captures"
	"unwire/captures/store/internal/additions"
)

// recorder keeps what it is asked for.
type recorder struct {
	mu    sync.Mutex
	added []captures.Addition
	err   error
}

func (r *recorder) Add(_ context.Context, a captures.Addition) (int64, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err != nil {
		return 0, r.err
	}
	r.added = append(r.added, a)
	return 4710 + int64(len(r.added)), nil
}

func (r *recorder) Flush(context.Context) error { return nil }

func (r *recorder) last() captures.Addition {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.added[len(r.added)-1]
}

// start serves a capture in a folder of its own; zero is for the token of FORMAT.md.
func start(t testing.TB, zero bool) (*Server, *recorder, string) {
	t.Helper()
	path, r := filepath.Join(t.TempDir(), "a.uwc"), &recorder{}
	s, err := Listen(path, r)
	if err != nil {
		t.Fatal(err)
	}
	if zero {
		s.token = []byte(strings.Repeat("0", 64))
	}
	t.Cleanup(func() { _ = s.Close() })
	return s, r, path
}

// A client is a connection that says what a test wants.
type client struct {
	t testing.TB
	net.Conn
}

func connect(t testing.TB, s *Server) *client {
	t.Helper()
	conn, err := net.Dial(s.listener.network, s.listener.address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(20 * time.Second))
	return &client{t, conn}
}

// authenticated is connect with the first message.
func authenticated(t testing.TB, s *Server) *client {
	t.Helper()
	c := connect(t, s)
	c.want(fmt.Sprintf(`{"v":1,"token":"%s"}`, s.token), `{"v":1,"ok":true}`)
	return c
}

// say sends a message.
func (c *client) say(message string) {
	c.t.Helper()
	b := append([]byte{byte(len(message) >> 24), byte(len(message) >> 16), byte(len(message) >> 8), byte(len(message))}, message...)
	if _, err := c.Write(b); err != nil {
		c.t.Fatal(err)
	}
}

// want sends a message and compares the answer.
func (c *client) want(message, answer string) {
	c.t.Helper()
	c.say(message)
	if got, err := readMessage(c, maxAnswer); err != nil || string(got) != answer {
		c.t.Errorf("%.200s\nanswered: %s %v\nwant:     %s", message, got, err, answer)
	}
}

// code sends a message and compares the code of the answer.
func (c *client) code(message string, want code) {
	c.t.Helper()
	c.say(message)
	got, err := readMessage(c, maxAnswer)
	if err != nil {
		c.t.Errorf("%.200s: %v", message, err)
		return
	}
	c.reason(got, want)
}

func (c *client) reason(got []byte, want code) {
	c.t.Helper()
	var a answer
	if err := json.Unmarshal(got, &a); err != nil || a.Error == nil || a.Error.Code != want || a.Error.Message == "" {
		c.t.Errorf("%s (%v), want %s", got, err, want)
	}
}

// closed expects the server to hang up.
func (c *client) closed() {
	c.t.Helper()
	if n, err := c.Read(make([]byte, 1)); n != 0 || err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		c.t.Errorf("the connection is open: %d bytes, %v", n, err)
	}
}

// The messages of FORMAT.md, byte for byte.
func TestVectors(t *testing.T) {
	t.Parallel()
	format, err := os.ReadFile("../../FORMAT.md")
	if err != nil {
		t.Fatal(err)
	}
	_, text, ok := strings.Cut(string(format), "**Socket.**")
	if !ok {
		t.Fatal("FORMAT.md has no vectors of the socket")
	}
	_, text, _ = strings.Cut(text, "```\n")
	text, _, _ = strings.Cut(text, "```")
	lines := strings.Split(strings.TrimSpace(text), "\n")
	if len(lines) != 4 {
		t.Fatalf("%d vectors", len(lines))
	}
	s, r, _ := start(t, true)
	c := connect(t, s)
	for i, line := range lines {
		length, object, _ := strings.Cut(line, " ")
		head, err := hex.DecodeString(length)
		if err != nil {
			t.Fatal(err)
		}
		message := append(head, object...)
		if i%2 == 0 {
			if _, err := c.Write(message); err != nil {
				t.Fatal(err)
			}
			continue
		}
		got := make([]byte, len(message))
		if _, err := io.ReadFull(c, got); err != nil || !bytes.Equal(got, message) {
			t.Errorf("%q %v, want %q", got, err, message)
		}
	}
	a := r.last()
	if a.Note == nil || *a.Note != (captures.Note{
		Place: captures.Place{Exchange: 3, Dir: captures.Down, Frame: 0, Path: "1.2"}, Kind: captures.TextNote, Value: "the session id",
	}) {
		t.Errorf("%+v", a.Note)
	}
	q := newRequest(a)
	one := int64(1)
	q.ID = &one
	_, third, _ := strings.Cut(lines[2], " ")
	if b, err := marshal(q); err != nil || !sameJSON(b, []byte(third)) {
		t.Errorf("the client asks %s, want %s (%v)", b, third, err)
	}
}

// sameJSON compares objects whose members may have another order.
func sameJSON(a, b []byte) bool {
	var x, y map[string]any
	return json.Unmarshal(a, &x) == nil && json.Unmarshal(b, &y) == nil && fmt.Sprint(x) == fmt.Sprint(y)
}

// Each request as a client says it is what the server hears, one byte at a time.
func TestRequests(t *testing.T) {
	t.Parallel()
	place := captures.Place{Exchange: 7, Frame: captures.NoFrame}
	for _, a := range []captures.Addition{
		{Note: &captures.Note{Place: place, Kind: captures.MarkNote, Value: "star"}},
		{Note: &captures.Note{Place: captures.Place{Exchange: 7, Dir: captures.Up, Frame: 3}, Kind: captures.TextNote, Value: "<ä>\n"}},
		{Note: &captures.Note{Place: place, Kind: captures.TextNote}},
		{Reading: &captures.Reading{Method: "/a.B/C", Dir: captures.Down, Path: "1.2", Type: "string"}},
		{Reading: &captures.Reading{Method: "/a.B/C", Dir: captures.Up, Path: "1.2"}},
		{Definition: &captures.Definition{Kind: captures.ProtoFile, Name: "a/b.proto", Data: []byte{0, 255}, Active: true}},
		{Definition: &captures.Definition{Name: "a/b.proto"}},
	} {
		q := newRequest(a)
		b, err := appendMessage(nil, q)
		if err != nil {
			t.Fatal(err)
		}
		text, err := readMessage(iotest.OneByteReader(bytes.NewReader(b)), maxRequest)
		if err != nil {
			t.Fatal(err)
		}
		var got request
		if err := json.Unmarshal(text, &got); err != nil {
			t.Fatal(err)
		}
		back, err := got.addition()
		if err != nil || dump(back) != dump(a) {
			t.Errorf("%s: %v\n%s\n%s", text, err, dump(back), dump(a))
		}
	}
}

func dump(a captures.Addition) string {
	b, _ := json.Marshal(a)
	return string(b)
}

// What is wrong is answered with its code; after what cannot be read, the server hangs up.
func TestRefusals(t *testing.T) {
	t.Parallel()
	s, r, _ := start(t, false)

	c := connect(t, s)
	c.code(`{"v":1,"token":"`+strings.Repeat("0", 64)+`"}`, codeUnauthorized)
	c.closed()
	c = connect(t, s)
	c.code(`{"v":2,"token":"`+string(s.token)+`"}`, codeVersion)
	c.closed()
	c = connect(t, s)
	c.code(`{"id":1,"do":"flush"}`, codeVersion)
	c.closed()
	c = connect(t, s)
	c.code(`no JSON`, codeBadRequest)
	c.closed()
	c = connect(t, s)
	_, _ = c.Write([]byte{0, 0, 0x10, 0x01})
	answer, err := readMessage(c, maxAnswer)
	if err != nil {
		t.Fatal(err)
	}
	c.reason(answer, codeTooLarge)
	c.closed()

	c = authenticated(t, s)
	for _, message := range []string{
		`{"do":"flush"}`, `{"id":1}`, `{"id":1,"do":"dance"}`, `{"id":"1","do":"flush"}`,
		`{"id":1,"do":"note"}`, `{"id":1,"do":"note","exchange":1,"kind":"note"}`,
		`{"id":1,"do":"note","exchange":1,"kind":"note","value":"x","dir":"up"}`,
		`{"id":1,"do":"note","exchange":1,"kind":"note","value":"x","dir":"left","frame":1}`,
		`{"id":1,"do":"note","exchange":1,"kind":"note","value":"x","dir":"up","frame":-1}`,
		`{"id":1,"do":"note","exchange":1,"kind":"note","value":"x","path":"1"}`,
		`{"id":1,"do":"note","exchange":0,"kind":"note","value":"x"}`,
		`{"id":1,"do":"note","exchange":1,"kind":"other","value":"x"}`,
		`{"id":1,"do":"note","exchange":"1","kind":"note","value":"x"}`,
		`{"id":1,"do":"reading","method":"/a/B","dir":"up","path":"1"}`,
		`{"id":1,"do":"reading","method":"","dir":"up","path":"1","type":"string"}`,
		`{"id":1,"do":"definitions","name":"a.proto"}`,
		`{"id":1,"do":"definitions","name":"a.proto","kind":"proto","data":""}`,
		`{"id":1,"do":"definitions","name":"a/b","kind":"descriptors","data":"AAAA"}`,
	} {
		c.code(message, codeBadRequest)
	}
	c.code(`{"id":1,"do":"note","exchange":1,"kind":"note","value":"`+strings.Repeat("x", 64<<10+1)+`"}`, codeTooLarge)
	for _, f := range []struct {
		err  error
		want code
	}{
		{captures.ErrNoExchange, codeNoExchange},
		{captures.ErrFull, codeFull},
		{captures.ErrClosed, codeClosing},
		{errors.New("no space left on device"), codeStopped},
	} {
		r.mu.Lock()
		r.err = fmt.Errorf("a: %w", f.err)
		r.mu.Unlock()
		c.code(`{"id":1,"do":"note","exchange":1,"kind":"note","value":"x"}`, f.want)
	}
	c.want(`{"id":9,"do":"flush"}`, `{"id":9,"ok":true}`)
	c.code(`{"id":1`, codeBadRequest)
	c.closed()
	c = authenticated(t, s)
	_, _ = c.Write([]byte{0xff, 0xff, 0xff, 0xff})
	if answer, err = readMessage(c, maxAnswer); err != nil {
		t.Fatal(err)
	}
	c.reason(answer, codeTooLarge)
	c.closed()
	if len(r.added) != 0 {
		t.Errorf("added: %v", r.added)
	}
}

// At most 16 connections are open, and one that does not authenticate is closed soon.
func TestConnections(t *testing.T) {
	t.Parallel()
	s, _, path := start(t, false)
	var slow []*client
	for range maxConnections {
		c := connect(t, s)
		_, _ = c.Write([]byte{0, 0, 0, 9, '{'})
		slow = append(slow, c)
	}
	var refused []*client
	for range 100 {
		refused = append(refused, connect(t, s))
	}
	for _, c := range refused {
		c.closed()
	}
	note := captures.Addition{Note: &captures.Note{Place: captures.Place{Exchange: 1, Frame: captures.NoFrame}, Kind: captures.TextNote, Value: "x"}}
	if _, err := Add(t.Context(), path, note); !errors.Is(err, ErrBusy) {
		t.Errorf("with all connections taken: %v", err)
	}
	began := time.Now()
	for _, c := range slow {
		c.closed()
	}
	if took := time.Since(began); took > authTimeout+3*time.Second {
		t.Errorf("connections without a token were closed after %v", took)
	}
	if n, err := Add(t.Context(), path, note); err != nil || n != 4711 {
		t.Errorf("afterwards: %d %v", n, err)
	}
}

// A request that is announced as large takes memory as it comes only.
func TestAnnouncedLength(t *testing.T) {
	t.Parallel()
	before := memory()
	for range 100 {
		_, err := readMessage(io.MultiReader(bytes.NewReader([]byte{5, 0xff, 0xff, 0xff}), strings.NewReader("abc")), maxRequest)
		if !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Fatal(err)
		}
	}
	if used := memory() - before; used > 16<<20 {
		t.Errorf("100 lengths of 96 MiB took %d bytes", used)
	}
}

func memory() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.TotalAlloc
}

// Close ends connections that are idle and ones that do not read their answers, and leaves
// nothing behind.
func TestClose(t *testing.T) {
	t.Parallel()
	s, _, path := start(t, false)
	idle := authenticated(t, s)
	deaf := authenticated(t, s)
	go func() {
		for range 1 << 20 {
			if _, err := deaf.Write([]byte("\x00\x00\x00\x02{}")); err != nil {
				return
			}
		}
	}()
	time.Sleep(50 * time.Millisecond)
	began := time.Now()
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if took := time.Since(began); took > 2*time.Second {
		t.Errorf("closed after %v", took)
	}
	got, err := readMessage(idle, maxAnswer)
	if err != nil {
		t.Fatal(err)
	}
	idle.reason(got, codeClosing)
	for _, name := range []string{path + suffix, s.listener.address, s.listener.folder} {
		if _, err := os.Lstat(name); name != "" && !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s is still there: %v", name, err)
		}
	}
	if _, err := Add(t.Context(), path, captures.Addition{}); !errors.Is(err, ErrNoWriter) {
		t.Errorf("afterwards: %v", err)
	}
}

// The socket and the control file are for this user only.
func TestPrivate(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("rights are inherited from the folder on Windows")
	}
	s, _, path := start(t, false)
	for name, want := range map[string]os.FileMode{path + suffix: 0o600, s.listener.folder: 0o700} {
		if info, err := os.Lstat(name); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: %v %v, want %v", name, info.Mode(), err, want)
		}
	}
	file, err := os.ReadFile(path + suffix)
	if err != nil {
		t.Fatal(err)
	}
	note := captures.Addition{Note: &captures.Note{Place: captures.Place{Exchange: 1, Frame: captures.NoFrame}, Kind: captures.TextNote, Value: "x"}}
	put := func(name string, mode os.FileMode, content string) string {
		other := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(other+suffix, []byte(content), mode); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(other+suffix, mode); err != nil {
			t.Fatal(err)
		}
		return other
	}
	link := filepath.Join(t.TempDir(), "link.uwc")
	if err := os.Symlink(path+suffix, link+suffix); err != nil {
		t.Fatal(err)
	}
	for _, bad := range []string{
		link,
		put("a.uwc", 0o620, string(file)),
		put("b.uwc", 0o602, string(file)),
		put("c.uwc", 0o600, "no JSON"),
		put("d.uwc", 0o600, `{"v":2,"network":"unix","address":"/x","token":""}`),
		put("e.uwc", 0o600, `{"v":1,"network":"tcp","address":"192.0.2.1:1","token":""}`),
		put("f.uwc", 0o600, `{"v":1,"network":"tcp","address":"localhost:1","token":""}`),
		put("g.uwc", 0o600, `{"v":1,"network":"udp","address":"127.0.0.1:1","token":""}`),
	} {
		if _, err := Add(t.Context(), bad, note); err == nil || errors.Is(err, ErrNoWriter) || errors.Is(err, ErrBusy) {
			t.Errorf("%s was used: %v", bad, err)
		}
	}
	if _, err := Add(t.Context(), path, note); err != nil {
		t.Error(err)
	}
}

// What a killed recorder left is removed, and what only looks like that is not.
func TestStale(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	mine := filepath.Join(folder, "precious")
	if err := os.WriteFile(mine, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(folder, "a.uwc")
	text, _ := json.Marshal(controlFile{V: 1, Network: "unix", Address: mine})
	if err := os.WriteFile(path+suffix, text, 0o600); err != nil {
		t.Fatal(err)
	}
	first, err := Listen(path, &recorder{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(mine); err != nil {
		t.Errorf("the file that a control file names is gone: %v", err)
	}
	second, err := Listen(path, &recorder{}) // the first was killed, say
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(first.listener.folder); first.listener.folder != "" && !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the socket of the first is still there: %v", err)
	}
	if err := second.Close(); err != nil {
		t.Error(err)
	}
	_ = first.Close()
}

// FuzzRequests: whatever a client that has authenticated says, the server answers or hangs
// up, and what is added keeps the limits.
func FuzzRequests(f *testing.F) {
	f.Add([]byte(`{"id":1,"do":"note","exchange":3,"dir":"down","frame":0,"path":"1.2","kind":"note","value":"the session id"}`))
	f.Add([]byte(`{"id":1,"do":"reading","method":"/a/B","dir":"up","path":"1","type":"string"}`))
	f.Add([]byte(`{"id":1,"do":"definitions","kind":"proto","name":"a.proto","data":"AAAA"}`))
	f.Add([]byte(`{"id":1,"do":"definitions","name":"a.proto","active":false}`))
	f.Add([]byte(`{"id":1,"do":"flush"}`))
	f.Add([]byte("[[[[[["))
	f.Fuzz(func(t *testing.T, text []byte) {
		s := &Server{target: &recorder{}}
		here, there := net.Pipe()
		done := make(chan struct{})
		defer func() { _ = here.Close(); <-done }()
		go func() {
			defer close(done)
			defer there.Close()
			for _, message := range [][]byte{text, []byte(`{"id":2,"do":"flush"}`)} {
				size := len(message)
				if _, err := there.Write(append([]byte{byte(size >> 24), byte(size >> 16), byte(size >> 8), byte(size)}, message...)); err != nil {
					return
				}
				got, err := readMessage(there, maxAnswer)
				if err != nil {
					return // it hung up
				}
				var a answer
				if err := json.Unmarshal(got, &a); err != nil || a.OK == (a.Error != nil) {
					t.Errorf("%q was answered with %q: %v", message, got, err)
				}
			}
		}()
		s.serveRequests(here, bufio.NewReader(here))
		for _, a := range s.target.(*recorder).added {
			if err := additions.Check(&a); err != nil {
				t.Errorf("added: %v", err)
			}
		}
	})
}
