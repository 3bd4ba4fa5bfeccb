package replay

import (
	"bytes"
	"context"
	"errors"
	"io"
	"regexp"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"unwire/captures"
	"unwire/captures/store"
	"unwire/decode/diff"
)

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
	t.Parallel()
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
	l.expect(r, Differs, FromLocal, "unavailable")
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
	if !p.shown.Frames[1].Compressed || !p.shown.Frames[1].Edited || len(p.shown.Frames) != 2 {
		t.Fatalf("%+v", p.shown.Frames)
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
func lockstep[M any](l *lab, method string, first *M, o ...connect.ClientOption) int64 {
	l.Helper()
	ctx, cancel := context.WithTimeout(l.Context(), time.Minute)
	defer cancel()
	stream := connect.NewClient[M, M](l.http, l.server.URL+"/test.v1.Test/"+method, o...).CallBidiStream(ctx)
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
	if len(p.shown.Frames) != rounds+1 || !p.shown.Hold {
		t.Fatalf("%d frames, hold %v", len(p.shown.Frames), p.shown.Hold)
	}
	for i, f := range p.shown.Frames[1:] {
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
	out, err := store.Open(l.out, store.ReadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close() //nolint:errcheck // it was only read
	again, err := newPlan(t.Context(), out, r.Exchange, l.options())
	if err != nil {
		t.Fatal(err)
	}
	if r, err = again.Send(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	l.expect(r, Same, FromServer, "ok")
	// An edited id is left alone, and the server notices.
	l.expect(l.replay(id, l.options("set @5 1=mine")), Rejected, FromServer, "failed_precondition")
}

func TestLockStepOfOtherProtocols(t *testing.T) {
	for name, o := range map[string][]connect.ClientOption{
		"grpc":     {connect.WithGRPC()},
		"grpc-web": {connect.WithGRPCWeb()},
		"gzip":     {connect.WithSendGzip()},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			r := l.replay(lockstep(l, "Issue", wrapperspb.String("begin"), o...), l.options())
			l.expect(r, Same, FromServer, "ok")
			if r.Sent != rounds+1 || r.Received != rounds {
				t.Errorf("%d up, %d down", r.Sent, r.Received)
			}
		})
	}
}

func TestLockStepNumbers(t *testing.T) {
	t.Parallel()
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
	t.Parallel()
	l := newLab(t)
	id := lockstep(l, "Issue", wrapperspb.String("begin"))
	l.server.mute.Store(true)
	o := l.options()
	o.Wait = 300 * time.Millisecond
	r := l.replay(id, o)
	l.expect(r, Differs, FromLocal, "deadline_exceeded")
	// A machine that is busy for as long may hear less than what was said.
	if want := regexp.MustCompile(`server did not send a frame that corresponds to server frame [0-3] of the recording`); !want.MatchString(r.Message) {
		t.Errorf("%q, want %s", r.Message, want)
	}
	if ex := l.answered(r.Exchange); ex.Outcome != captures.Canceled {
		t.Errorf("recorded as %s", ex.Outcome)
	}
	o.Wait, o.Timeout = time.Minute, 400*time.Millisecond
	if r = l.replay(id, o); r.Origin != FromLocal || r.Code != "deadline_exceeded" || !strings.Contains(r.Message, "within 400ms") {
		t.Errorf("%s %s %s %s", r.Comparison, r.Origin, r.Code, r.Message)
	}
}

func TestInterrupted(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	id := lockstep(l, "Issue", wrapperspb.String("begin"))
	l.server.mute.Store(true)
	out, err := store.Create(l.out, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() {
		<-l.server.muted // all that it said was answered, hence heard
		cancel()
	}()
	o := l.options()
	o.Wait = time.Minute
	r, err := l.plan(id, o).Send(ctx, out)
	if !errors.Is(err, context.Canceled) || r == nil || r.Received != 3 {
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
	r, err := p.Send(t.Context(), nil)
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

func TestUnreachable(t *testing.T) {
	l := newLab(t)
	id := l.say("hello")
	l.server.Close()
	r := l.replay(id, l.withToken(l.options()))
	l.expect(r, NotSent, FromLocal, "")
	if r.Status != 0 || r.ConnectCode() != 0 || len(r.Diff) != 0 {
		t.Errorf("%+v", r)
	}
	if ex := l.answered(r.Exchange); ex.Outcome != captures.Failed || ex.Error == "" {
		t.Errorf("recorded as %+v", ex.Exchange)
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
	l.expect(r, Differs, FromLocal, "resource_exhausted")
}

func TestEditErrors(t *testing.T) {
	l := newLab(t)
	id := l.say("hello")
	for edit, want := range map[string]string{
		"set @1 1=x":     "client frame 1 does not exist; the request has 1",
		"del @0":         "the request consists of one message, which cannot be deleted",
		"set 2=x":        "has no field 2",
		"set 1:int32=x":  `"x" is not a valid int32`,
		"set value=x":    `the field name "value" needs definitions of the message`,
		"add 2.1:bool=1": "",
	} {
		o := l.options(edit)
		_, err := newPlan(t.Context(), l.store, id, o)
		if (want == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", edit, err, want)
		}
	}
	if _, err := newPlan(t.Context(), l.store, 99, l.options()); !errors.Is(err, captures.ErrNoExchange) {
		t.Errorf("no exchange: %v", err)
	}
}
