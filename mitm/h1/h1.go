// Package h1 relays HTTP/1 between a client and its servers, and records the
// exchanges that pass. Messages go through as they came: the order, case and
// repetition of field names, versions, targets, reasons, and the framing of bodies.
//
//	r := h1.New(h1.Config{Client: client, Route: route, ...})
//	r.Run(ctx)
//
// A Relay serves the connection of one client. Its requests are sent one after the
// other, each on a connection that belongs to this client alone, and never twice
// unless that is safe. A Route says which server a request goes to, and what of its
// head is changed for that. A Front is a connection whose requests are not all
// relayed: the others can be read from it, by an HTTP server. Package mitm alone calls
// this one, and decides what is relayed and recorded.
//
// Every message is checked before it is forwarded, so that both ends agree on where it
// ends. A request that is malformed or ambiguous is refused with an answer, and a
// response too while nothing of it was forwarded.
//
// Limits: a request's head has at most 1 MiB, a response's at most 8 MiB, a trailer
// section at most 64 KiB, the line of a chunk's size at most 4 KiB.
//
// Source: mitm/README.md#http1; RFC 9110; RFC 9112
package h1

import (
	"context"
	"net"
	"strings"
	"time"

	"unwire/captures"
)

const (
	headTimeout = time.Minute
	idleTimeout = 5 * time.Minute

	// pipelineGap is how long a client has to be silent after an answer for its next
	// request not to count as pipelined.
	pipelineGap = time.Second

	// serverLinger is how long a server that accepts nothing more may take to answer.
	serverLinger = time.Second

	// clientLinger is how long a client may go on sending after the last answer.
	clientLinger = 500 * time.Millisecond

	// resetDelay is a fifth of how long the reset of a client that has left is awaited.
	resetDelay = 3 * time.Millisecond

	// bufferSize is how much is read and forwarded at once, in bytes.
	bufferSize = 32 << 10

	// maxServers is how many servers a client's connection keeps connections to.
	maxServers = 8
)

// A Config says what a Relay serves, and what it records to. All of it is required
// but where it says otherwise.
type Config struct {
	// Client is the client's connection.
	Client net.Conn

	// Route returns where a request goes. Nil, without an error, is for requests that
	// a Front does not relay.
	//
	// Errors: *Malformed refuses the request.
	Route func(q *Request) (*Route, error)

	// Begin starts to record a request. server is the connection that it goes on, nil
	// if there is none yet. It returns nil if it cannot.
	Begin func(q *Request, to *Route, server net.Conn) captures.Recording

	// Connected notes that a recorded exchange goes on a new connection.
	Connected func(rec captures.Recording, server net.Conn)

	// Refused is told of a request that was refused, with what was understood of it.
	Refused func(q *Request, reason *Malformed)

	// Explain returns the answer to a request that failed, or nil if the client's
	// connection is closed instead, as the server's was. connected says that there was
	// a connection to the server. rec may be nil.
	Explain func(to *Route, rec captures.Recording, err error, connected bool) *Answer

	// Upgrade serves two connections that changed their protocol, until both have
	// ended. The client has the answer already. It ends the recording, which may be nil.
	Upgrade func(client, server net.Conn, rec captures.Recording, q *Request, answer captures.Headers)

	// Admit counts an exchange, and Release ends it when the last of its bytes are
	// written and recorded. If Admit returns false, the client's connection is closed.
	Admit   func() bool
	Release func()
}

// A Route says where a request goes.
type Route struct {
	// Key tells the connections apart that can stand for each other; it is comparable.
	Key any

	// Dial connects to the server.
	Dial func(ctx context.Context) (net.Conn, error)

	// URL is the request's. Unrecorded says that it is not recorded.
	URL        string
	Unrecorded bool

	// Bound says that the client takes its connection for one to this server: they
	// end together.
	Bound bool

	// Target and Host, unless they are "", replace the request's target and the value
	// of its Host field, which is added if there is none.
	Target, Host string

	// Drop are the lower-case names of fields that are not forwarded.
	Drop []string

	// Add are fields that are added.
	Add captures.Headers

	// Refusal, if set, returns an error for an answer that is not the server's.
	Refusal func(status int, header captures.Headers) error
}

// isVerbatim reports whether the request's head is forwarded as it came.
func (to *Route) isVerbatim() bool {
	return to.Target == "" && to.Host == "" && len(to.Drop) == 0 && len(to.Add) == 0
}

// A Request is the head of a request as it came. What of a refused one was not
// understood is empty.
type Request struct {
	Method, Target string

	// Version is "1.0" or "1.1".
	Version string

	// Header has the fields in their order, as they came.
	Header captures.Headers

	// raw is the head, with the empty line at its end.
	raw string

	framing
}

// Upgrades reports whether the request asks for a change of protocol.
func (q *Request) Upgrades() bool { return q.upgrade }

// HopByHop are the lower-case names of the fields that the client says are for the
// next hop only, but for those that are about the connection or the body: these are for
// every hop.
//
// Source: RFC 9110, section 7.6.1
func (q *Request) HopByHop() []string {
	var names []string
	for _, f := range q.Header {
		if !strings.EqualFold(f.Name, "connection") {
			continue
		}
		for name := range strings.SplitSeq(f.Value, ",") {
			switch name = strings.ToLower(strings.Trim(name, " \t")); name {
			case "", "close", "connection", "content-length", "host", "keep-alive", "te", "trailer", "transfer-encoding", "upgrade":
			default:
				names = append(names, name)
			}
		}
	}
	return names
}

// Host is the value of the Host field, or "".
func (q *Request) Host() string { return q.host }
