package replay

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"log"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"connectrpc.com/connect"

	"unwire/captures/store"
	"unwire/decode/diff"
	"unwire/replay/internal/standintest"
	"unwire/replay/testdata/toolloop"
)

// conversationHeader is the header of the answer that has the conversation's identifier.
const conversationHeader = "x-conversation"

// toolCalls are the questions of most conversations, each a tool with its argument.
var toolCalls = [][2]string{{"read", "alpha.go"}, {"read", "beta.go"}, {"list", "src"}, {"grep", "func main"}, {"read", "gamma.go"}, {"list", "test"}}

// A toolLoopServer asks its client, and checks that each answer has the identifier that
// was issued with its question. Identifiers differ from run to run.
type toolLoopServer struct {
	*httptest.Server
	form form
	seed uint64

	// calls are the questions of a conversation, each a tool with its argument.
	calls [][2]string

	token string // that a WebSocket wants; "" is none

	// swapped has every other run ask in another order.
	swapped bool

	// echo puts what the client began with into a question; nil: it is not repeated.
	echo func(question, begin *toolloop.Message)

	mu     sync.Mutex
	runs   int
	issued map[string]bool // in earlier runs
	stale  int             // answers with an identifier of an earlier run
	wrong  int             // answers with another one
	ended  int             // conversations that ended as they should
	got    int             // messages of clients
	why    []string        // what is wrong with answers
}

// newToolLoop starts a server of a form.
func newToolLoop(t testing.TB, f form) *toolLoopServer {
	t.Helper()
	h := fnv.New64a()
	_, _ = h.Write([]byte(t.Name()))
	s := &toolLoopServer{form: f, seed: h.Sum64(), calls: toolCalls, issued: map[string]bool{}}
	mux := http.NewServeMux()
	mux.HandleFunc("/ws/", s.webSocket)
	path := "/toolloop.v1.ToolLoop/Run"
	mux.Handle(path, connect.NewBidiStreamHandler(path, func(_ context.Context, stream *connect.BidiStream[toolloop.Message, toolloop.Message]) error {
		return s.converse(stream.ResponseHeader(), stream.Receive, stream.Send)
	}))
	s.Server = httptest.NewUnstartedServer(mux)
	s.EnableHTTP2 = true
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	t.Cleanup(s.Close)
	return s
}

// draw begins a run and returns what it issues. The lock is held.
func (s *toolLoopServer) draw() (all []issue) {
	s.runs++
	r := rand.New(rand.NewPCG(s.seed, uint64(s.runs)))
	base := 2 + r.Uint64N(600)
	for i := range s.calls {
		parses := s.form.parses == (s.runs%2 == 1)
		all = append(all, newIssue(r, base, 3*i, parses))
	}
	return all
}

// converse has one conversation.
func (s *toolLoopServer) converse(headers http.Header, receive func() (*toolloop.Message, error), send func(*toolloop.Message) error) error {
	s.mu.Lock()
	all := s.draw()
	s.mu.Unlock()
	headers.Set(conversationHeader, all[0].uuid)
	return s.ask(all, receive, send)
}

// ask asks all questions, one after the other.
func (s *toolLoopServer) ask(all []issue, receive func() (*toolloop.Message, error), send func(*toolloop.Message) error) error {
	begin, err := s.count(receive)
	if err != nil {
		return err
	}
	s.mu.Lock()
	swap := s.swapped && s.runs%2 == 0
	s.mu.Unlock()
	for i := range s.calls {
		if swap {
			i ^= 1
		}
		call, of := s.calls[i], all[i]
		if s.form.header {
			of = all[0]
		}
		q := &toolloop.Message{Tool: call[0], Path: call[1]}
		s.form.put(q, of)
		if s.echo != nil {
			s.echo(q, begin)
		}
		if s.form.pieces != nil {
			for _, piece := range s.form.pieces(q.Text) {
				if err := send(&toolloop.Message{Tool: "piece", Text: piece}); err != nil {
					return err
				}
			}
			q.Text = ""
		}
		if err := send(q); err != nil {
			return err
		}
		a, err := s.count(receive)
		if err != nil {
			return err
		}
		if err := s.check(a, call, of); err != nil {
			return connect.NewError(connect.CodeFailedPrecondition, err)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended++
	for i := range all {
		s.issued[s.form.is(all[i])] = true
	}
	return send(&toolloop.Message{Tool: "done"})
}

// count receives a message, and counts it.
func (s *toolLoopServer) count(receive func() (*toolloop.Message, error)) (*toolloop.Message, error) {
	m, err := receive()
	if err == nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.got++
	}
	return m, err
}

// awaitMessage waits until n messages have come.
func (s *toolLoopServer) awaitMessage(t testing.TB, n int) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		s.mu.Lock()
		got := s.got
		s.mu.Unlock()
		if got >= n {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("the server got %d messages, want %d", got, n)
		}
	}
}

// check counts what is wrong with an answer.
func (s *toolLoopServer) check(a *toolloop.Message, call [2]string, of issue) (err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer func() {
		if err != nil {
			s.why = append(s.why, err.Error())
		}
	}()
	got, want := s.form.get(a), s.form.is(of)
	switch {
	case got == want && a.GetContent() == "content of "+call[1]:
		return nil
	case s.issued[got] && got != want:
		s.stale++
		return fmt.Errorf("%s: %q is of an earlier run", call[1], got)
	}
	s.wrong++
	return fmt.Errorf("%s: %q is not %q, or %q is not its content", call[1], got, want, a.GetContent())
}

// answer is the client's answer to a question; nil where the server is done.
func (f *form) answer(q *toolloop.Message, conversation string) *toolloop.Message {
	switch {
	case q.GetTool() == "done":
		return nil
	case q.GetTool() == "piece":
		f.heard += q.GetText()
		return nil
	case f.pieces != nil:
		q.Text, f.heard = f.heard, ""
	}
	a := &toolloop.Message{Tool: q.GetTool(), Content: "content of " + q.GetPath()}
	if f.header {
		q.Text = conversation
	}
	f.carry(a, q)
	return a
}

// A causalTransport records a conversation with a server, and returns its number in
// the capture.
type causalTransport struct {
	name   string
	record func(t testing.TB, s *toolLoopServer, out *store.Store) int64
}

func causalTransports() []causalTransport {
	list := []causalTransport{}
	for _, c := range []struct {
		name string
		o    []connect.ClientOption
	}{
		{"connect proto", nil},
		{"connect JSON", []connect.ClientOption{connect.WithProtoJSON()}},
		{"gRPC", []connect.ClientOption{connect.WithGRPC()}},
		{"gRPC-Web", []connect.ClientOption{connect.WithGRPCWeb()}},
	} {
		list = append(list, causalTransport{c.name, func(t testing.TB, s *toolLoopServer, out *store.Store) int64 {
			return recordCall(t, s, out, c.o)
		}})
	}
	for _, binary := range []bool{true, false} {
		name := map[bool]string{true: "WebSocket proto", false: "WebSocket JSON"}[binary]
		list = append(list, causalTransport{name, func(t testing.TB, s *toolLoopServer, out *store.Store) int64 {
			return recordWebSocket(t, s, out, binary)
		}})
	}
	return list
}

// begin is what a conversation begins with.
func begin() *toolloop.Message {
	return &toolloop.Message{Tool: "begin", Content: "Please summarise the alpha report", List: []string{"draft"}}
}

// recordCall records a conversation over Connect or gRPC.
func recordCall(t testing.TB, s *toolLoopServer, out *store.Store, o []connect.ClientOption) int64 {
	t.Helper()
	tap := &standintest.Tap{Next: s.Client().Transport, Store: out, Done: make(chan struct{}, 1)}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	stream := connect.NewClient[toolloop.Message, toolloop.Message](&http.Client{Transport: tap}, s.URL+"/toolloop.v1.ToolLoop/Run", o...).CallBidiStream(ctx)
	err := stream.Send(begin())
	for err == nil {
		var q *toolloop.Message
		if q, err = stream.Receive(); err != nil {
			break
		}
		if a := s.form.answer(q, stream.ResponseHeader().Get(conversationHeader)); a != nil {
			err = stream.Send(a)
		}
	}
	if !errors.Is(err, io.EOF) {
		t.Fatal(err)
	}
	_, _ = stream.CloseRequest(), stream.CloseResponse()
	<-tap.Done
	return tap.Last.Load()
}

// Every form of an identifier over every transport: no replay sends one of an earlier
// run, and all conversations end.
func TestNoStaleIdentifier(t *testing.T) {
	for _, transport := range causalTransports() {
		for _, f := range causalForms() {
			t.Run(transport.name+"/"+f.name, func(t *testing.T) {
				t.Parallel()
				recordAndReplay(t, transport, f)
			})
		}
	}
}

// The same of identifiers that the client spells in another way, and of short ones.
func TestNoStaleSpelling(t *testing.T) {
	for i, transport := range causalTransports() {
		for _, f := range spelledForms() {
			// Texts in pieces, of which the number differs, matter most where the client ends the connection.
			if os.Getenv("UNWIRE_LONG") == "" && i >= 2 && f.pieces == nil {
				continue
			}
			t.Run(transport.name+"/"+f.name, func(t *testing.T) {
				t.Parallel()
				recordAndReplay(t, transport, f)
			})
		}
	}
}

// recordAndReplay records a conversation about identifiers of a form, and replays it.
func recordAndReplay(t *testing.T, transport causalTransport, f form) {
	t.Helper()
	s := newToolLoop(t, f)
	l := s.recordOver(t, transport)
	if s.wrong+s.stale > 0 {
		t.Fatal("the client answers with wrong identifiers")
	}
	replayToolLoop(t, s, l.file, l.id)
}

// replayToolLoop replays a conversation twice.
func replayToolLoop(t *testing.T, s *toolLoopServer, file *store.Store, id int64) {
	t.Helper()
	times := 2
	if os.Getenv("UNWIRE_LONG") != "" {
		times = 100
	}
	for range times {
		l := &lab{server: &testServer{Server: s.Server}}
		p, err := newPlan(t.Context(), file, id, settings{Roots: l.server.roots(), Wait: time.Minute, Quiet: 100 * time.Millisecond, Timeout: time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		r, err := p.Send(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		// A header of the answer is compared too, and no rule says that it is an id.
		if r.Code != "ok" || r.Unsent != 0 || r.Origin != FromServer {
			t.Errorf("%s %s %s: %s %q", r.Comparison, r.Origin, r.Code, r.Message, r.Concluded)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stale > 0 || s.wrong > 0 || s.ended != times+1 {
		t.Errorf("%d stale and %d wrong ids; %d of %d conversations ended: %q", s.stale, s.wrong, s.ended, times+1, s.why)
	}
}

// A server that asks the same in another order gets each answer to its question, whatever
// the kind of identifier, and the verdict is the same.
func TestSwappedQuestions(t *testing.T) {
	for _, transport := range causalTransports()[:2] {
		for _, f := range append(causalForms(), spelledForms()...) {
			// One identifier for all of them; or texts in pieces, of which the order counts.
			if f.header || f.pieces != nil {
				continue
			}
			t.Run(transport.name+"/"+f.name, func(t *testing.T) {
				t.Parallel()
				l := recordLoop(t, transport, f, func(*toolloop.Message, *toolloop.Message) {})
				l.mu.Lock()
				l.swapped = true
				l.mu.Unlock()
				r := l.replay(t, nil, nil)
				if r.Code != "ok" || l.ended != 2 || l.stale+l.wrong > 0 {
					t.Errorf("%s %s %s: %q; %d stale, %d wrong", r.Comparison, r.Code, r.Message, r.Concluded, l.stale, l.wrong)
				}
				// Frames of JSON with hardly anything but other keys are not paired by diff.
				// Two made-up words do not look like identifiers.
				if unlike := f.name == "several map keys" && strings.Contains(transport.name, "JSON") || f.name == "words"; r.Comparison != Same && !unlike {
					var left []diff.Change
					for _, c := range r.Diff {
						if c.Ignored == "" {
							left = append(left, c)
						}
					}
					t.Errorf("%s: %+v", r.Comparison, left)
				}
			})
		}
	}
}

// A question that the capture does not have is not answered, even if only a short identifier and its
// subject differ from a captured one.
func TestOtherQuestionIsNotAnswered(t *testing.T) {
	for _, f := range spelledForms() {
		if !strings.Contains(f.name, "counter") {
			continue
		}
		for _, transport := range causalTransports()[:2] {
			t.Run(transport.name+"/"+f.name, func(t *testing.T) {
				t.Parallel()
				other := false
				l := recordLoop(t, transport, f, func(q, _ *toolloop.Message) {
					if other && q.GetPath() == "gamma.go" {
						q.Path = "delta.go"
					}
				})
				other = true
				r := l.replay(t, nil, nil)
				const before = 1 + 4 // the first message, and the answers to the questions before that one
				l.mu.Lock()
				defer l.mu.Unlock()
				if got := l.got - 1 - len(toolCalls); r.Origin != FromLocal || got != before || l.stale+l.wrong > 0 {
					t.Errorf("%s %s %q: %d messages; %d stale, %d wrong", r.Comparison, r.Origin, r.Message, got, l.stale, l.wrong)
				}
			})
		}
	}
}
