// Package mock is a server that answers clients from a capture: a recorded session becomes a test fixture.
//
//	server, err := mock.New(ctx, store, mock.Options{CA: authority, Answered: func(a mock.Answer) { … }})
//	go server.Serve(listener)
//	…
//	err = server.Shutdown(ctx)
//	report := server.Report()
//
// A capture goes in, and answers come out, over HTTP/1 and HTTP/2, with and without TLS, for Connect, gRPC,
// gRPC-Web, server-sent events, WebSockets and plain HTTP. The library is an index of the recorded calls by method and path. A
// session is one request in progress: it decodes what the client sends, and chooses the recorded call whose
// request is the most similar (package decode/diff), as late as the recorded answers allow. A player then sends
// the recorded frames by cause: package replay/live, with client and server swapped, decides after which frames of
// the client each is due, and replaces the identifiers that the client issued in the capture by those that it
// issues now, in this exchange and in earlier ones; of equally similar calls, a session chooses the one with the
// request's identifiers. What was changed while recording is sent as the client received it.
//
// A request that no recorded call answers gets an error in its own protocol, which names the reason.
//
// Source: replay/mock/README.md
package mock

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"

	"unwire/captures/store"
	"unwire/decode"
	"unwire/mitm/ca"
	"unwire/replay/listen"
)

// A Repeat says which of several equally similar recorded calls answers a request.
type Repeat string

const (
	// Cycle: in recorded order, and from the beginning again. It is the default.
	Cycle Repeat = "cycle"
	// Last: in recorded order; the last one answers all further requests.
	Last Repeat = "last"
	// Never: each recorded call answers one request.
	Never Repeat = "never"
)

// Options configure a server.
type Options struct {
	// CA signs the server's certificates. Without it, the server has no TLS.
	CA *ca.Authority

	// MinSimilarity is the similarity, from 0 to 1, that a recorded request must have at least. The default is
	// DefaultSimilarity; a negative number accepts any request of the method.
	MinSimilarity float64

	// Repeat decides between equally similar calls; the default is Cycle.
	Repeat Repeat

	// Wait is how long the server waits for a message of the client that precedes the next recorded one of the
	// server; the default is 60 seconds.
	Wait time.Duration

	// Quiet is how long a client that sends other messages than the recorded ones must be silent until the next
	// recorded message is sent; the default is 50 ms.
	Quiet time.Duration

	// Edit, if set, changes a message of a recorded answer before it is sent. It returns the new message, or false
	// to leave it as recorded.
	Edit func(exchange int64, f *decode.Frame) ([]byte, bool)

	// Answered, if set, is called at the end of each request, one call at a time.
	Answered func(Answer)

	// Logger gets the errors of net/http about broken connections; nil discards them.
	Logger *slog.Logger
}

// DefaultSimilarity is the default of Options.MinSimilarity. Two messages of the same type are usually more similar
// than this, even if all values differ.
const DefaultSimilarity = 0.2

// Limits of a server.
const (
	// maxSessions is the number of requests that are answered at the same time; further ones are refused.
	maxSessions = 1024
	// maxRequest is the size of a request's body in bytes.
	maxRequest = 256 << 20
	// maxFrame is the size of a message of a request in bytes.
	maxFrame = 64 << 20
)

// An Answer reports how the server answered one request.
type Answer struct {
	// Method is "/package.Service/Method", or the HTTP method and the path.
	Method string

	// Protocol is how the client sent its messages.
	Protocol decode.Protocol

	// Exchange is the recorded call that answered; 0 if none did.
	Exchange int64

	// Similarity is that of the request and the recorded one, from 0 to 1.
	Similarity float64

	// FramesUp is the number of messages from the client.
	FramesUp int
	// FramesDown is the number of messages sent to the client.
	FramesDown int
	// Substituted is how many messages and header values were sent with values of this client in place of recorded
	// ones.
	Substituted int

	// Code is the RPC error code, such as "unimplemented", that the server itself answered with; "" if it sent the
	// recorded response.
	Code string
	// Reason is the text of that error; "" if there is none.
	Reason string

	// Complete means that the recorded answer was sent to its end.
	Complete bool

	// Notes are remarks, such as frames in another order.
	Notes []string

	// Request is what the client sent, decoded.
	Request *decode.Exchange
}

// A Report sums up the requests that a server has handled.
type Report struct {
	// Answered is the number of requests that got a recorded response.
	Answered int
	// Refused is the number of requests that got an error instead.
	Refused int

	// Used counts the answers by recorded exchange.
	Used map[int64]int

	// Unused are the recorded calls that answered nothing, in order.
	Unused []int64

	// Skipped are the recorded exchanges that cannot answer requests, with the reason, in order.
	Skipped []Skipped
}

// A Skipped exchange is one that cannot answer requests.
type Skipped struct {
	// Exchange is its number in the capture.
	Exchange int64
	// Reason is a sentence without a full stop.
	Reason string
}

// A Server answers requests from a capture. Its methods may be called concurrently.
type Server struct {
	// o are the options, with defaults filled in.
	o Options
	// library has the recorded calls.
	library *library
	// http receives the requests.
	http *listen.Server

	// sessions limits the number of requests in progress; each one puts a value into it.
	sessions chan struct{}

	// sockets is the context of all WebSockets, which net/http does not count as requests, and cutSockets ends it.
	sockets    context.Context
	cutSockets context.CancelFunc
	// open counts the WebSockets.
	open sync.WaitGroup

	// ids follow identifiers from one exchange to another.
	ids *identities

	// mu guards the fields below.
	mu sync.Mutex
	// report counts the requests so far.
	report Report
	// turns counts how often recorded calls answered requests with the same identifiers, up to maxTurns.
	turns map[turn]int

	// answering makes calls of Options.Answered run one at a time.
	answering sync.Mutex
}

// New reads the index of a capture. The capture must stay open as long as the server is used.
//
// Errors: those of reading; a capture without a call that could answer anything.
func New(ctx context.Context, src *store.Store, o Options) (*Server, error) {
	if o.MinSimilarity == 0 {
		o.MinSimilarity = DefaultSimilarity
	}
	if o.Wait <= 0 {
		o.Wait = time.Minute
	}
	if o.Quiet <= 0 {
		o.Quiet = 50 * time.Millisecond
	}
	switch o.Repeat {
	case "":
		o.Repeat = Cycle
	case Cycle, Last, Never:
	default:
		return nil, fmt.Errorf("mock: the option repeat must be %[2]s, %[3]s or %[4]s, not %[1]q", o.Repeat, Cycle, Last, Never)
	}
	lib, err := newLibrary(ctx, src)
	if err != nil {
		return nil, fmt.Errorf("mock: %w", err)
	}
	return newServer(o, lib), nil
}

// newServer returns a server with its own report and identifiers.
func newServer(o Options, lib *library) *Server {
	s := &Server{o: o, library: lib, sessions: make(chan struct{}, maxSessions), turns: map[turn]int{}}
	s.ids = &identities{captured: lib.hasID}
	s.sockets, s.cutSockets = context.WithCancel(context.Background())
	s.report.Used = map[int64]int{}
	serving := listen.Options{Handler: s, Logger: o.Logger}
	if o.CA != nil {
		serving.Leaf = o.CA.Leaf
	}
	s.http = listen.New(serving)
	return s
}

// Serve answers requests that arrive at ln, with and without TLS, until Shutdown. It returns nil only after that.
func (s *Server) Serve(ln net.Listener) error {
	if err := s.http.Serve(ln); err != nil {
		return fmt.Errorf("mock: %w", err)
	}
	return nil
}

// Shutdown waits for the requests in progress until ctx ends, then cuts them off.
func (s *Server) Shutdown(ctx context.Context) error {
	return errors.Join(s.http.Shutdown(ctx), s.endSockets(ctx))
}

// Calls returns the number of recorded calls that can answer requests.
func (s *Server) Calls() int { return len(s.library.order) }

// Exchanges returns the numbers of the recorded calls that can answer requests.
func (s *Server) Exchanges() []int64 { return slices.Clone(s.library.order) }

// Report returns what the server did so far.
func (s *Server) Report() Report {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.report
	r.Used = make(map[int64]int, len(s.report.Used))
	for id, n := range s.report.Used {
		r.Used[id] = n
	}
	r.Skipped = s.library.skipped
	for _, id := range s.library.order {
		if r.Used[id] == 0 {
			r.Unused = append(r.Unused, id)
		}
	}
	return r
}

// ServeHTTP answers one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	x := newSession(s, w, r)
	select {
	case s.sessions <- struct{}{}:
		defer func() { <-s.sessions }()
	default:
		x.refuse("resource_exhausted", fmt.Sprintf("more than %d requests at once", maxSessions))
		s.done(x)
		return
	}
	defer s.done(x)
	x.run()
}

// done counts a request that has ended, and passes it to Options.Answered. Only then is its WebSocket, if any, no
// longer waited for.
func (s *Server) done(x *session) {
	if x.socket != nil {
		defer s.open.Done()
	}
	a := x.finish()
	s.mu.Lock()
	if a.Exchange != 0 {
		s.report.Answered++
	} else {
		s.report.Refused++
	}
	s.mu.Unlock()
	if s.o.Answered != nil {
		s.answering.Lock()
		defer s.answering.Unlock()
		s.o.Answered(a)
	}
}

// Another returns a server of the same capture with its own report and identifiers. It takes Edit, Answered and, if it
// is set, MinSimilarity from o, and the other options from s.
func (s *Server) Another(o Options) *Server {
	own := s.o
	own.Edit, own.Answered = o.Edit, o.Answered
	if o.MinSimilarity != 0 {
		own.MinSimilarity = o.MinSimilarity
	}
	return newServer(own, s.library)
}

// Recorded returns a recorded exchange, decoded as its client saw it.
//
// Errors: those of reading.
func (s *Server) Recorded(ctx context.Context, id int64) (*decode.Exchange, error) {
	t, err := s.library.load(ctx, id)
	if err != nil {
		return nil, fmt.Errorf("mock: %w", err)
	}
	return t.ex, nil
}
