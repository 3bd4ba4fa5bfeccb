package replay

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"unwire/captures"
	"unwire/decode/diff"
)

// withToken gives a replay the secret that the captures of these tests want.
func (l *lab) withToken(o Options) Options {
	l.Helper()
	c, err := LoadCredentials("", func(name string) string {
		if name == EnvToken {
			return "another-made-up-secret"
		}
		return ""
	})
	if err != nil {
		l.Fatal(err)
	}
	o.Credentials = c
	return o
}

func TestUnarySame(t *testing.T) {
	for name, o := range map[string][]connect.ClientOption{
		"proto":    nil,
		"json":     {connect.WithProtoJSON()},
		"gzip":     {connect.WithSendGzip()},
		"get":      {connect.WithHTTPGet()},
		"get gzip": {connect.WithHTTPGet(), connect.WithSendGzip()},
		"grpc":     {connect.WithGRPC()},
		"grpc-web": {connect.WithGRPCWeb()},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			id := l.say("hello", o...)
			r := l.replay(id, l.withToken(l.options()))
			l.expect(r, Same, FromServer, "ok")
			if r.Exchange != 1 || r.Status != 200 || r.Sent != 1 || r.Received != 1 || len(r.Refreshed) != 1 || r.Refreshed[0] != "x-request-id" {
				t.Errorf("%+v", r)
			}
			// What an edit does not touch went out byte for byte.
			was, is := l.plan(id, l.options()).captured, l.answered(r.Exchange)
			if a, b := was.Frame(captures.Up, 0), is.Frame(captures.Up, 0); !bytes.Equal(a.Raw, b.Raw) {
				t.Errorf("sent %x, captured %x", b.Raw, a.Raw)
			}
			if is.Source != "replay" || is.Outcome != captures.Complete || is.Protocol != was.Protocol || is.HTTP != "2" {
				t.Errorf("recorded as %+v", is.Exchange)
			}
			if a, b := was.RequestHeaders.Get("x-request-id"), is.RequestHeaders.Get("x-request-id"); a == b || len(a) != len(b) {
				t.Errorf("x-request-id %s, was %s", b, a)
			}

			edit := "set 1=other"
			if name == "json" {
				edit = "set =other" // a StringValue is a bare string
			}
			r = l.replay(id, l.withToken(l.options(edit)))
			l.expect(r, Differs, FromServer, "ok")
			if len(r.Diff) != 1 || r.Diff[0].New != "other" || r.Diff[0].Old != "hello" {
				t.Errorf("%+v", r.Diff)
			}
		})
	}
}

func TestRejected(t *testing.T) {
	for name, o := range map[string][]connect.ClientOption{"connect": nil, "grpc": {connect.WithGRPC()}, "grpc-web": {connect.WithGRPCWeb()}} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			r := l.replay(l.say("good", o...), l.withToken(l.options("set 1=bad one")))
			l.expect(r, Rejected, FromServer, "invalid_argument")
			if r.Message != "not bad one" || r.ConnectCode() != 3 {
				t.Errorf("%q, code %d", r.Message, r.ConnectCode())
			}
			if len(r.Details) != 1 || r.Details[0].Type != "google.protobuf.Duration" || !bytes.Equal(r.Details[0].Value, []byte{8, 60}) {
				t.Errorf("details %+v", r.Details)
			}
			if r.Details[0].Text != `"60s"` {
				t.Errorf("detail as %s", r.Details[0].Text)
			}
			// The error that was captured is the same answer, not a rejection.
			l.expect(l.replay(l.say("bad", o...), l.withToken(l.options())), Same, FromServer, "invalid_argument")
		})
	}
}

func TestServerStream(t *testing.T) {
	l := newLab(t)
	c := connect.NewClient[number, words](l.http, l.server.URL+"/test.v1.Test/Count", connect.WithSendGzip())
	count := func(n uint32) int64 {
		stream, err := c.CallServerStream(t.Context(), connect.NewRequest(wrapperspb.UInt32(n)))
		if err != nil {
			t.Fatal(err)
		}
		for stream.Receive() {
		}
		return l.recorded()
	}
	id := count(50)
	r := l.replay(id, l.options())
	l.expect(r, Same, FromServer, "ok")
	if r.Received != 50 {
		t.Errorf("%d frames", r.Received)
	}
	r = l.replay(id, l.options("set 1=49"))
	l.expect(r, Differs, FromServer, "ok")
	// The server drops the connection in the middle: what came is kept.
	r = l.replay(id, l.options("set 1=100"))
	l.expect(r, Differs, FromUs, "unavailable")
	if ex := l.answered(r.Exchange); ex.Outcome != captures.Reset || len(ex.Frames) < 50 {
		t.Errorf("%s after %d frames", ex.Outcome, len(ex.Frames))
	}
}

func TestClientStream(t *testing.T) {
	l := newLab(t)
	stream := connect.NewClient[words, words](l.http, l.server.URL+"/test.v1.Test/Join", connect.WithSendGzip()).CallClientStream(t.Context())
	long := strings.Repeat("long ", 100)
	for _, s := range []string{"a", long, "c"} {
		if err := stream.Send(wrapperspb.String(s)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := stream.CloseAndReceive(); err != nil {
		t.Fatal(err)
	}
	id := l.recorded()
	l.expect(l.replay(id, l.options()), Same, FromServer, "ok")

	// An edit inside a compressed frame, one taken out: the others stay.
	p := l.plan(id, l.options("set @1 1=b", "del @2"))
	if !p.Frames[1].Compressed || !p.Frames[1].Edited || len(p.Frames) != 2 {
		t.Fatalf("%+v", p.Frames)
	}
	r := l.replay(id, l.options("set @1 1=b", "del @2"))
	l.expect(r, Differs, FromServer, "ok")
	if r.Diff[0].New != "a+b" {
		t.Errorf("%+v", r.Diff)
	}
	sent := l.answered(r.Exchange)
	if a, b := sent.Frame(captures.Up, 0), p.captured.Frame(captures.Up, 0); !bytes.Equal(a.Raw, b.Raw) {
		t.Errorf("frame 0 changed: %x, was %x", a.Raw, b.Raw)
	}
	if f := sent.Frame(captures.Up, 1); f.Encoding != "gzip" {
		t.Error("the edited frame is no longer compressed")
	}
}

// lockstep records a call in which the client answers each frame with what is
// in it.
func lockstep[M any](l *lab, method string, first *M) int64 {
	l.Helper()
	ctx, cancel := context.WithTimeout(l.Context(), 10*time.Second)
	defer cancel()
	stream := connect.NewClient[M, M](l.http, l.server.URL+"/test.v1.Test/"+method).CallBidiStream(ctx)
	if err := stream.Send(first); err != nil {
		l.Fatal(err)
	}
	for {
		m, err := stream.Receive()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			l.Fatal(err)
		}
		if err := stream.Send(m); err != nil && !errors.Is(err, io.EOF) {
			l.Fatal(err)
		}
	}
	_ = stream.CloseRequest()
	_ = stream.CloseResponse()
	return l.recorded()
}

func TestLockStep(t *testing.T) {
	l := newLab(t)
	id := lockstep(l, "Issue", wrapperspb.String("begin"))
	p := l.plan(id, l.options())
	if len(p.Frames) != rounds+1 || !p.Hold {
		t.Fatalf("%d frames, hold %v", len(p.Frames), p.Hold)
	}
	for i, f := range p.Frames[1:] {
		if f.After != i+1 || len(f.Live) != 1 || f.Live[0].Path != "1" || f.Live[0].FromPath != "1" {
			t.Fatalf("frame %d: %+v", i+1, f)
		}
	}
	r := l.replay(id, l.options())
	l.expect(r, Same, FromServer, "ok")
	if r.Sent != rounds+1 || r.Received != rounds {
		t.Errorf("%d up, %d down", r.Sent, r.Received)
	}
	// A replay is a capture that can be replayed.
	out, err := captures.Open(l.out)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close() //nolint:errcheck // it was only read
	again, err := NewPlan(t.Context(), out, r.Exchange, l.options())
	if err != nil {
		t.Fatal(err)
	}
	if r, err = Send(t.Context(), again, nil); err != nil {
		t.Fatal(err)
	}
	l.expect(r, Same, FromServer, "ok")
	// An edited id is left alone, and the server notices.
	l.expect(l.replay(id, l.options("set @5 1=mine")), Rejected, FromServer, "failed_precondition")
}

func TestLockStepNumbers(t *testing.T) {
	l := newLab(t)
	id := lockstep(l, "Number", wrapperspb.UInt32(7))
	for range 3 {
		r := l.replay(id, l.options())
		// The ids are plain numbers, so the answers do differ.
		if r.Code != "ok" || r.Sent != rounds+1 || r.Received != rounds {
			t.Fatalf("%+v", r)
		}
	}
}

func TestServerIsSilent(t *testing.T) {
	l := newLab(t)
	id := lockstep(l, "Issue", wrapperspb.String("begin"))
	l.server.mute.Store(true)
	o := l.options()
	o.Wait = 300 * time.Millisecond
	r := l.replay(id, o)
	l.expect(r, Differs, FromUs, "deadline_exceeded")
	if want := "server did not send a frame like down/3"; !strings.Contains(r.Message, want) {
		t.Errorf("%q, want %q", r.Message, want)
	}
	if ex := l.answered(r.Exchange); ex.Outcome != captures.Canceled {
		t.Errorf("recorded as %s", ex.Outcome)
	}
	o.Wait, o.Timeout = 10*time.Second, 400*time.Millisecond
	r = l.replay(id, o)
	l.expect(r, Differs, FromUs, "deadline_exceeded")
	if !strings.Contains(r.Message, "within 400ms") {
		t.Error(r.Message)
	}
}

func TestInterrupted(t *testing.T) {
	l := newLab(t)
	id := lockstep(l, "Issue", wrapperspb.String("begin"))
	l.server.mute.Store(true)
	out, err := captures.Create(l.out, captures.Options{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	r, err := Send(ctx, l.plan(id, l.options()), out)
	if !errors.Is(err, context.DeadlineExceeded) || r == nil || r.Received != 3 {
		t.Fatalf("%+v, %v", r, err)
	}
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}
	if ex := l.answered(r.Exchange); ex.Outcome != captures.Canceled || len(ex.Frames) < 6 {
		t.Errorf("recorded as %s, %d frames", ex.Outcome, len(ex.Frames))
	}
}

func TestRedirectIsNotFollowed(t *testing.T) {
	l := newLab(t)
	c := connect.NewClient[words, words](l.http, l.server.URL+"/test.v1.Test/Say")
	if _, err := c.CallUnary(t.Context(), connect.NewRequest(wrapperspb.String("x"))); err != nil {
		t.Fatal(err)
	}
	id := l.recorded()
	p := l.plan(id, l.options())
	p.url.Path = "/test.v1.Test/Moved"
	before := l.server.requests.Load()
	r, err := Send(t.Context(), p, nil)
	if err != nil {
		t.Fatal(err)
	}
	l.expect(r, Differs, FromServer, "ok")
	if r.Status != 302 || !strings.Contains(r.Message, "http://192.0.2.1/elsewhere; redirects are not followed") {
		t.Errorf("%d %s", r.Status, r.Message)
	}
	if n := l.server.requests.Load() - before; n != 1 {
		t.Errorf("%d requests", n)
	}
}

func TestNothingLeavesUnasked(t *testing.T) {
	l := newLab(t)
	id := l.say("hello")
	dialled := ""
	o := l.withToken(l.options())
	o.dial = func(_ context.Context, _, address string) (net.Conn, error) {
		dialled = address
		return nil, errors.New("no network in this test")
	}
	for _, c := range []struct {
		to      string
		live    bool
		allowed []string
		dials   string // "": refused
	}{
		{"https://api.example.com", false, nil, ""},
		{"https://api.example.com", true, nil, ""},
		{"https://api.example.com", false, []string{"api.example.com"}, ""},
		{"https://api.example.com", true, []string{"example.com"}, ""},
		{"https://127.0.0.1.example.com", false, nil, ""},
		{"https://192.0.2.1", false, nil, ""},
		{"https://[2001:db8::1]", false, nil, ""},
		{"https://0.0.0.0", false, nil, ""},
		{"https://api.example.com", true, []string{"api.example.com"}, "api.example.com:443"},
		{"https://api.example.com:8443", true, []string{"*.example.com"}, "api.example.com:8443"},
		{"https://127.0.0.2:1", false, nil, "127.0.0.2:1"},
		{"https://localhost:1", false, nil, "[::1]:1"},
	} {
		dialled = ""
		o.To, o.Live, o.AllowHosts = mustURL(c.to), c.live, c.allowed
		p := l.plan(id, o)
		r, err := Send(t.Context(), p, nil)
		if err != nil {
			t.Fatal(err)
		}
		if dialled != c.dials {
			t.Errorf("%s: dialled %q, want %q", c.to, dialled, c.dials)
		}
		if c.dials != "" {
			l.expect(r, Rejected, FromUs, "unavailable")
			continue
		}
		l.expect(r, Refused, FromUs, "")
		if p.Refusal == "" || r.Message == "" || r.Exchange != 0 {
			t.Errorf("%s: %+v", c.to, r)
		}
	}
}

func TestGuardLooksAtTheAddress(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close() //nolint:errcheck // nothing was written
	conn, err := guard{}.DialContext(t.Context(), "tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	_ = conn.Close()
	if err := (guard{}).control("tcp4", "192.0.2.7:443", nil); !errors.Is(err, ErrRefused) {
		t.Errorf("a name that resolves elsewhere: %v", err)
	}
	if err := (guard{}).control("tcp6", "[::ffff:127.0.0.1]:443", nil); err != nil {
		t.Error(err)
	}
	if _, err := (guard{}).DialContext(t.Context(), "tcp", "rebound.example:443"); !errors.Is(err, ErrRefused) {
		t.Errorf("a name: %v", err)
	}
}

func TestCredentials(t *testing.T) {
	l := newLab(t)
	id := l.say("hello")
	p := l.plan(id, l.options())
	if _, err := Send(t.Context(), p, nil); !errors.Is(err, ErrCredentials) || !strings.Contains(err.Error(), EnvToken) {
		t.Fatalf("without a token: %v", err)
	}
	file := filepath.Join(t.TempDir(), "credentials")
	if err := os.WriteFile(file, []byte("# comment\n\nauthorization: Basic from-a-file-0123456789\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := LoadCredentials(file, os.Getenv); err == nil || !strings.Contains(err.Error(), "chmod 600") {
		t.Fatalf("a file that others can read: %v", err)
	}
	if err := os.Chmod(file, 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := LoadCredentials(file, os.Getenv)
	if err != nil {
		t.Fatal(err)
	}
	o := l.options()
	o.Credentials = c
	l.expect(l.replay(id, o), Same, FromServer, "ok")
	if got := l.server.header("authorization"); got != "Basic from-a-file-0123456789" {
		t.Errorf("sent %q", got)
	}
	l.expect(l.replay(id, l.withToken(l.options())), Same, FromServer, "ok")
	if got := l.server.header("authorization"); got != "Bearer another-made-up-secret" {
		t.Errorf("sent %q", got)
	}
	o = l.options()
	o.OmitSecrets = true
	l.expect(l.replay(id, o), Same, FromServer, "ok")
	if got := l.server.header("authorization"); got != "" {
		t.Errorf("sent %q", got)
	}
}

// A server that repeats the token must not get it into what is kept or shown.
func TestSecretStaysOut(t *testing.T) {
	l := newLab(t)
	const secret = "another-made-up-secret"
	id := l.say("hello")
	o := l.withToken(l.options("set 1=token"))
	p := l.plan(id, o)
	r := l.replay(id, o)
	l.expect(r, Differs, FromServer, "ok")
	if got := l.server.header("authorization"); got != "Bearer "+secret {
		t.Fatalf("sent %q", got)
	}
	for what, v := range map[string]any{"plan": p, "result": r} {
		b, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(b, []byte(secret)) {
			t.Errorf("the secret is in the %s: %s", what, b)
		}
	}
	for _, dir := range []string{filepath.Dir(l.out), filepath.Dir(l.store.Path())} {
		files, err := filepath.Glob(filepath.Join(dir, "*"))
		if err != nil || len(files) == 0 {
			t.Fatalf("%v, %v", files, err)
		}
		for _, file := range files {
			if b, err := os.ReadFile(file); err != nil || bytes.Contains(b, []byte(secret)) || bytes.Contains(b, []byte("made-up-secret-of-the-capture")) {
				t.Errorf("%s: %v, or holds a secret", file, err)
			}
		}
	}
	if f := l.answered(r.Exchange).Frame(captures.Down, 0); !bytes.Contains(f.Data, []byte("you sent Bearer redacted-")) {
		t.Errorf("recorded answer: %q", f.Data)
	}
}

func TestUnreachable(t *testing.T) {
	l := newLab(t)
	id := l.say("hello")
	l.server.Close()
	r := l.replay(id, l.withToken(l.options()))
	l.expect(r, Rejected, FromUs, "unavailable")
	if r.Status != 0 || r.ConnectCode() != 14 || len(r.Diff) != 0 {
		t.Errorf("%+v", r)
	}
	if ex := l.answered(r.Exchange); ex.Outcome != captures.Failed || ex.Error == "" {
		t.Errorf("recorded as %+v", ex.Exchange)
	}
}

func TestUntrustedServer(t *testing.T) {
	l := newLab(t)
	o := l.withToken(l.options())
	o.Roots = nil
	r := l.replay(l.say("hello"), o)
	l.expect(r, Rejected, FromUs, "unavailable")
	if !strings.Contains(r.Message, "certificate") {
		t.Error(r.Message)
	}
}

func TestVolatileAnswerIsTheSame(t *testing.T) {
	l := newLab(t)
	l.server.answer.Store(" 0d3b5a52-8d2f-4f2c-8a55-0f9d5ea1c001")
	id := l.say("hello")
	l.server.answer.Store(" 7a1f6a0e-1b7e-4c61-9d0c-5ed1a7c0b7b2")
	r := l.replay(id, l.withToken(l.options()))
	l.expect(r, Same, FromServer, "ok")
	if len(r.Diff) != 1 || r.Diff[0].Ignored == "" || !diff.Same(r.Diff) {
		t.Errorf("%+v", r.Diff)
	}
}

func TestAnswerIsTooLarge(t *testing.T) {
	l := newLab(t)
	o := l.withToken(l.options("set 1=" + randomHex(2000)))
	o.MaxBytes = 1000
	r := l.replay(l.say("hello"), o)
	l.expect(r, Differs, FromUs, "resource_exhausted")
}

func TestEditErrors(t *testing.T) {
	l := newLab(t)
	id := l.say("hello")
	for edit, want := range map[string]string{
		"set @1 1=x":     "there is no frame up/1; the request has 1",
		"del @0":         "cannot be without it",
		"set 2=x":        "2 is not there",
		"set 1:int32=x":  `"x" is no int32`,
		"set value=x":    "names need a schema",
		"add 2.1:bool=1": "",
	} {
		o := l.options(edit)
		_, err := NewPlan(t.Context(), l.store, id, o)
		if (want == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", edit, err, want)
		}
	}
	if _, err := NewPlan(t.Context(), l.store, 99, l.options()); !errors.Is(err, captures.ErrNoExchange) {
		t.Errorf("no exchange: %v", err)
	}
}

func (s *testServer) header(name string) string {
	h, _ := s.seen.Load().(interface{ Get(string) string })
	if h == nil {
		return ""
	}
	return h.Get(name)
}
