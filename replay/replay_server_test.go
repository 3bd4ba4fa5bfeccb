package replay

import (
	"context"
	"crypto/rand"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"unwire/captures"
	"unwire/captures/store"
	"unwire/decode"
	"unwire/proto"
	"unwire/replay/credential"
	"unwire/replay/edit"
	"unwire/replay/internal/standintest"
	"unwire/replay/live"
	"unwire/replay/outbound"
	"unwire/schema"
)

type (
	words  = wrapperspb.StringValue
	number = wrapperspb.UInt32Value
)

// rounds is how often the lock-step calls of the test server go back and forth.
const rounds = 20

// A testServer is a real Connect server over TLS and HTTP/2.
type testServer struct {
	*httptest.Server
	mux      *http.ServeMux
	requests atomic.Int64
	answer   atomic.Value  // what Say appends, string
	drift    atomic.Bool   // Say counts its answers
	mute     atomic.Bool   // Issue stops sending after three rounds
	muted    chan struct{} // and says here that it does
	seen     atomic.Value  // the last request's headers, http.Header
	carried  atomic.Int64  // calls of Carry
}

func newTestServer(t testing.TB) *testServer {
	t.Helper()
	s := &testServer{muted: make(chan struct{}, rounds)}
	s.answer.Store("")
	mux := http.NewServeMux()
	s.mux = mux
	handle := func(h *connect.Handler, path string) { mux.Handle(path, h) }
	handle(connect.NewUnaryHandler("/test.v1.Test/Say", s.say, connect.WithIdempotency(connect.IdempotencyNoSideEffects)), "/test.v1.Test/Say")
	handle(connect.NewServerStreamHandler("/test.v1.Test/Count", s.count), "/test.v1.Test/Count")
	handle(connect.NewClientStreamHandler("/test.v1.Test/Join", s.join), "/test.v1.Test/Join")
	handle(connect.NewBidiStreamHandler("/test.v1.Test/Issue", s.issue), "/test.v1.Test/Issue")
	handle(connect.NewBidiStreamHandler("/test.v1.Test/Number", s.number), "/test.v1.Test/Number")
	handle(connect.NewBidiStreamHandler("/test.v1.Test/Carry", s.carry), "/test.v1.Test/Carry")
	handle(connect.NewBidiStreamHandler("/test.v1.Test/Quiz", s.quiz), "/test.v1.Test/Quiz")
	mux.HandleFunc("/test.v1.Test/Moved", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "http://192.0.2.1/elsewhere", http.StatusFound)
	})
	s.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.requests.Add(1)
		s.seen.Store(r.Header.Clone())
		mux.ServeHTTP(w, r)
	}))
	s.EnableHTTP2 = true
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	t.Cleanup(s.Close)
	return s
}

func (s *testServer) roots() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(s.Certificate())
	return pool
}

// say echoes, and rejects what begins with bad.
func (s *testServer) say(_ context.Context, r *connect.Request[words]) (*connect.Response[words], error) {
	if strings.HasPrefix(r.Msg.GetValue(), "bad") {
		err := connect.NewError(connect.CodeInvalidArgument, errors.New("not "+r.Msg.GetValue()))
		if d, derr := connect.NewErrorDetail(durationpb.New(time.Minute)); derr == nil {
			err.AddDetail(d)
		}
		return nil, err
	}
	if r.Msg.GetValue() == "token" {
		return connect.NewResponse(wrapperspb.String("you sent " + r.Header().Get("authorization"))), nil
	}
	if s.drift.Load() {
		return connect.NewResponse(wrapperspb.String(fmt.Sprintf("%s, the %d%s", r.Msg.GetValue(), s.requests.Load(), "th time"))), nil
	}
	return connect.NewResponse(wrapperspb.String(r.Msg.GetValue() + s.answer.Load().(string))), nil
}

func (s *testServer) count(_ context.Context, r *connect.Request[number], out *connect.ServerStream[words]) error {
	for i := range r.Msg.GetValue() {
		if i == 90 {
			panic(http.ErrAbortHandler)
		}
		if err := out.Send(wrapperspb.String(fmt.Sprintf("message %d %s", i, s.answer.Load()))); err != nil {
			return err
		}
	}
	return nil
}

func (s *testServer) join(_ context.Context, in *connect.ClientStream[words]) (*connect.Response[words], error) {
	var parts []string
	for in.Receive() {
		parts = append(parts, in.Msg().GetValue())
	}
	return connect.NewResponse(wrapperspb.String(strings.Join(parts, "+"))), in.Err()
}

// issue sends a random id each round, which the client has to send back.
func (s *testServer) issue(_ context.Context, stream *connect.BidiStream[words, words]) error {
	if _, err := stream.Receive(); err != nil {
		return err
	}
	for i := range rounds {
		if i == 3 && s.mute.Load() {
			s.muted <- struct{}{}
			_, err := stream.Receive()
			return err
		}
		id := randomHex(12)
		if err := stream.Send(wrapperspb.String(id)); err != nil {
			return err
		}
		got, err := stream.Receive()
		if err != nil {
			return fmt.Errorf("round %d: %w", i, err)
		}
		if got.GetValue() != id {
			return connect.NewError(connect.CodeFailedPrecondition, fmt.Errorf("round %d: %s is not %s", i, got.GetValue(), id))
		}
	}
	return nil
}

// number is issue with small numbers for ids.
func (s *testServer) number(_ context.Context, stream *connect.BidiStream[number, number]) error {
	if _, err := stream.Receive(); err != nil {
		return err
	}
	var b [rounds]byte
	_, _ = rand.Read(b[:])
	for i := range rounds {
		id := uint32(b[i]) // now and then 0, which is not on the wire
		if err := stream.Send(wrapperspb.UInt32(id)); err != nil {
			return err
		}
		if got, err := stream.Receive(); err != nil || got.GetValue() != id {
			return connect.NewError(connect.CodeFailedPrecondition, fmt.Errorf("round %d: %d is not %d (%v)", i, got.GetValue(), id, err))
		}
	}
	return nil
}

func randomHex(n int) string {
	b := make([]byte, n)
	_, _ = rand.Read(b)
	return hex.EncodeToString(b)
}

// A lab is a server with what is recorded of it and replayed to it.
type lab struct {
	testing.TB
	server *testServer
	store  *store.Store
	tap    *standintest.Tap
	http   *http.Client
	out    string // path of the capture of the answers
}

func newLab(t testing.TB) *lab {
	t.Helper()
	server := newTestServer(t)
	store, err := store.Create(filepath.Join(t.TempDir(), "in.uwc"), store.Options{Profile: proto.Profile()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	tap := &standintest.Tap{Next: server.Client().Transport, Store: store, Done: make(chan struct{}, 10)}
	return &lab{TB: t, server: server, store: store, tap: tap, http: &http.Client{Transport: tap}, out: filepath.Join(t.TempDir(), "out.uwc")}
}

// recorded waits for the exchange that was made last to be in the capture.
func (l *lab) recorded() int64 {
	l.Helper()
	select {
	case <-l.tap.Done:
	case <-time.After(time.Minute):
		l.Fatal("the exchange was not recorded to its end")
	}
	if err := l.store.Flush(l.Context()); err != nil {
		l.Fatal(err)
	}
	return l.tap.Last.Load()
}

// settings are all that a test says of how a request is sent.
type settings struct {
	To          *url.URL
	Live        bool
	AllowHosts  []string
	Part        bool
	Edits       []edit.Edit
	Answers     []live.Answer
	Codec       string
	Message     []byte
	Editor      func(name string, text []byte) ([]byte, error)
	EditFrame   int
	Schema      *schema.Schema
	Credentials *credential.Credentials
	OmitSecrets bool
	Headers     map[string]HeaderMaker
	Issued      *live.IDs
	Lesson      *Lesson
	Pace        *outbound.Pace
	Roots       *x509.CertPool
	Insecure    bool
	Timeout     time.Duration
	Wait        time.Duration
	Quiet       time.Duration
	MaxBytes    int64
	Dial        func(ctx context.Context, network, address string) (net.Conn, error)

	now    func() time.Time
	random io.Reader
}

func (s settings) policy() outbound.Policy {
	return outbound.Policy{Live: s.Live, AllowHosts: s.AllowHosts, Roots: s.Roots, Insecure: s.Insecure, Pace: s.Pace, Dial: s.Dial}
}

func (s settings) changes() Changes {
	return Changes{
		To: s.To, Part: s.Part, Edits: s.Edits, Answers: s.Answers, Codec: s.Codec, Message: s.Message, Editor: s.Editor, EditFrame: s.EditFrame,
		Headers: s.Headers, Issued: s.Issued, Timing: Timing{Timeout: s.Timeout, Wait: s.Wait, Quiet: s.Quiet},
	}
}

func (s settings) options() Options {
	return Options{
		Schema: s.Schema, Credentials: s.Credentials, OmitSecrets: s.OmitSecrets, Lesson: s.Lesson, MaxBytes: s.MaxBytes,
		Policy: s.policy(), now: s.now, random: s.random,
	}
}

func newPlan(ctx context.Context, src captures.Source, id int64, s settings) (*Plan, error) {
	r, err := NewRequest(ctx, src, id, s.changes())
	if err != nil {
		return nil, err
	}
	return r.Plan(ctx, s.options())
}

func learn(ctx context.Context, src captures.Source, id int64, s settings, out *store.Store) (*Lesson, error) {
	r, err := NewRequest(ctx, src, id, s.changes())
	if err != nil {
		return nil, err
	}
	return Learn(ctx, r, s.options(), out)
}

func (l *lab) options(edits ...string) settings {
	l.Helper()
	o := settings{Roots: l.server.roots(), Wait: time.Minute, Timeout: time.Minute}
	for _, text := range edits {
		flag, rest, _ := strings.Cut(text, " ")
		e, err := edit.Parse(flag, rest)
		if err != nil {
			l.Fatal(err)
		}
		o.Edits = append(o.Edits, e)
	}
	return o
}

func (l *lab) plan(id int64, o settings) *Plan {
	l.Helper()
	p, err := newPlan(l.Context(), l.store, id, o)
	if err != nil {
		l.Fatal(err)
	}
	return p
}

// replay sends an exchange again, recorded in l.out.
func (l *lab) replay(id int64, o settings) *Result {
	l.Helper()
	out, err := store.Create(l.out, store.Options{Profile: proto.Profile()})
	if err != nil {
		l.Fatal(err)
	}
	defer func() {
		if err := out.Close(); err != nil {
			l.Error(err)
		}
	}()
	r, err := l.plan(id, o).Send(l.Context(), out)
	if err != nil {
		l.Fatal(err)
	}
	return r
}

func (l *lab) expect(r *Result, v Comparison, origin Origin, code string) {
	l.Helper()
	if r.Comparison != v || r.Origin != origin || r.Code != code {
		l.Fatalf("%s %s %q, want %s %s %q: %s; %+v", r.Comparison, r.Origin, r.Code, v, origin, code, r.Message, r.Diff)
	}
}

// answered decodes what was recorded of a replay.
func (l *lab) answered(id int64) *decode.Exchange {
	l.Helper()
	store, err := store.Open(l.out, store.ReadOptions{Profile: proto.Profile()})
	if err != nil {
		l.Fatal(err)
	}
	defer store.Close() //nolint:errcheck // it was only read
	ex, err := decode.Decode(l.Context(), store, id, decode.Options{})
	if err != nil {
		l.Fatal(err)
	}
	return ex
}

func (l *lab) say(msg string, o ...connect.ClientOption) int64 {
	l.Helper()
	c := connect.NewClient[words, words](l.http, l.server.URL+"/test.v1.Test/Say", o...)
	req := connect.NewRequest(wrapperspb.String(msg))
	req.Header().Set("authorization", "Bearer made-up-secret-of-the-capture")
	req.Header().Set("x-request-id", "0d3b5a52-8d2f-4f2c-8a55-0f9d5ea1c001")
	if _, err := c.CallUnary(l.Context(), req); err != nil && !strings.HasPrefix(msg, "bad") {
		l.Fatal(err)
	}
	return l.recorded()
}

func mustURL(s string) *url.URL {
	u, err := url.Parse(s)
	if err != nil {
		panic(err)
	}
	return u
}

func (s *testServer) header(name string) string {
	h, _ := s.seen.Load().(interface{ Get(string) string })
	if h == nil {
		return ""
	}
	return h.Get(name)
}
