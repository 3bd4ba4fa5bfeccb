// Package h1 relays HTTP/1 between a client and its servers, and records the exchanges. Messages are forwarded
// unchanged: with the order, case and repetition of their field names, their version, target and reason phrase,
// and the framing of their bodies.
//
//	r := h1.New(h1.Config{Client: client, Route: route, ...})
//	r.Run(ctx)
//
// A Relay serves the connection of one client. It sends the client's requests one after the other, on
// connections that no other client shares, and never twice unless that is safe. A Route says to which server a
// request goes, and how its head is changed. A Front is for clients of which some requests are answered by an
// HTTP server in this process: the server reads these requests from the Front, which relays all others. Only
// package mitm uses this package; it decides what is relayed and recorded.
//
// Every message is checked before it is forwarded, so that both ends agree where it ends. A malformed or
// ambiguous request is refused with an answer; so is a response, if nothing of it was forwarded yet.
//
// Limits: 1 MiB for the head of a request, 8 MiB for that of a response, 64 KiB for a trailer section, 4 KiB for
// the line with the size of a chunk.
//
// Source: mitm/README.md#http1; RFC 9110; RFC 9112
package h1

import (
	"context"
	"net"
	"strings"
	"time"

	"unwire/captures"
	"unwire/mitm/rewrite"
)

const (
	// headTimeout limits how long a client may take to send a request head, and idleTimeout how long it may be
	// silent between two exchanges.
	headTimeout = time.Minute
	idleTimeout = 5 * time.Minute

	// pipelineGap is how long a client must be silent after a response. A request that comes sooner may have
	// been pipelined, i.e. sent without waiting for the response.
	pipelineGap = time.Second

	// serverLinger is how long a server that no longer accepts the request body may take to send a
	// response.
	serverLinger = time.Second

	// clientLinger is how long a client may continue to send after the last answer.
	clientLinger = 500 * time.Millisecond

	// resetDelay is a fifth of the time that a reset (RST) of a client that has left is awaited.
	resetDelay = 3 * time.Millisecond

	// bufferSize is the initial size of a read buffer, in bytes.
	bufferSize = 32 << 10

	// maxServers limits the open connections to servers for one client.
	maxServers = 8
)

// A Config configures a Relay: the client's connection, the routes to servers, and the recording. All fields
// except Rewrite are required.
type Config struct {
	// Client is the connection of the client whose requests are relayed.
	Client net.Conn

	// Route returns the server to which a request is forwarded. A nil Route without an error means that
	// the request is not relayed, which only a Front allows.
	//
	// Errors: a *Malformed error refuses the request.
	Route func(q *Request) (*Route, error)

	// Begin starts the recording of a request. server is the connection on which it is sent, nil if none is open
	// yet. It returns nil if it cannot record.
	Begin func(q *Request, to *Route, server net.Conn) captures.Recording

	// Connected is called when a new connection was opened on which a recorded exchange is sent.
	Connected func(rec captures.Recording, server net.Conn)

	// Refused is called for a request that was refused, with the parts of it that could be parsed.
	Refused func(q *Request, reason *Malformed)

	// Explain returns the response to a request that could not be forwarded because of err; nil closes the
	// client's connection instead. connected means that a connection to the server was open. rec may be nil.
	Explain func(to *Route, rec captures.Recording, err error, connected bool) *Answer

	// Upgrade relays bytes between two connections that have switched to another protocol, until both have
	// ended, and ends the recording, which may be nil. The client has already received the response, whose
	// headers are answer.
	Upgrade func(client, server net.Conn, rec captures.Recording, q *Request, answer captures.Headers)

	// Rewrite returns the rewriting rules for an exchange, or nil if it is not changed. A nil Rewrite means
	// that no exchange is changed.
	Rewrite func(q *Request, to *Route) rewrite.Exchange

	// Admit is called before each exchange; if it returns false, the client's connection is closed.
	Admit func() bool
	// Release is called once for each exchange that Admit has accepted, after its last byte was forwarded and
	// recorded.
	Release func()
}

// A Route is the server to which a request is forwarded, and the changes to the request's head.
type Route struct {
	// Key is equal for routes that may share a connection; it must be comparable.
	Key any

	// Dial opens a connection to the server.
	Dial func(ctx context.Context) (net.Conn, error)

	// URL is the request's absolute URL.
	URL string
	// Unrecorded means that the exchange is not recorded.
	Unrecorded bool

	// Bound means that the client has opened its connection for this server (by CONNECT, for example), so that
	// both connections are closed together.
	Bound bool

	// Target and Host replace the request's target and the value of its Host header; "" keeps them. A
	// missing Host header is added.
	Target, Host string

	// Length replaces the value of the Content-Length field; "" keeps it.
	Length string

	// Drop are the lower-case names of the header fields that are removed.
	Drop []string

	// Add are the header fields that are added at the end of the head.
	Add captures.Headers

	// Refusal checks a response's head, and returns an error if the response does not come from the
	// server but, for example, from a proxy; nil disables the check.
	Refusal func(status int, header captures.Headers) error
}

// isVerbatim reports whether the request's head is forwarded unchanged.
func (to *Route) isVerbatim() bool {
	return to.Target == "" && to.Host == "" && to.Length == "" && len(to.Drop) == 0 && len(to.Add) == 0
}

// A Request is the head of a request, as received. In a refused request, the fields that could not be parsed
// are empty.
type Request struct {
	// Method and Target are the method and the target in the request line.
	Method, Target string

	// Version is the HTTP version, "1.0" or "1.1".
	Version string

	// Header has the header fields in the order in which they arrived.
	Header captures.Headers

	// raw is the head of the request as received, including the empty line at its end.
	raw string

	// framing has what the header fields say about the body's length, the connection and the host.
	framing
}

// Upgrades reports whether the request asks for another protocol (Upgrade).
func (q *Request) Upgrades() bool { return q.upgrade }

// HopByHop returns the lower-case names of the header fields that the client's Connection field declares to be
// for the next hop only. It omits fields about the connection itself or the body, which every hop handles
// anyway.
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

// Host returns the value of the Host header, or "".
func (q *Request) Host() string { return q.host }
