// Package captures is the record model: what a capture consists of, and what
// those who record and read captures have in common. Package store keeps captures
// in files (.uwc), package redact takes secrets out while they are recorded, and
// the packages below convert other formats.
//
// The truth of a capture is what was seen: exchanges (one request with its
// response) and chunks (the bytes of a body as they passed, with direction and
// time). Frames, trees and annotations are derived from them elsewhere and can
// be rebuilt at any time, so malformed traffic survives.
//
// An Exchange has headers, an Outcome and its TLS; a Chunk is a run of body bytes. An
// Event says what happened while a capture was recorded. A Source has exchanges to
// read, a Recorder takes them while they run, a Target when they are imported. A
// Summary is derived, and stored for speed; a Reading is how a user says that a field
// is read. Errors on which callers branch are declared here. The package imports
// nothing but the profile.
package captures

import (
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Direction tells which side sent something.
type Direction uint8

const (
	Up   Direction = iota // client to server
	Down                  // server to client
)

// String returns "up" or "down", the words of the JSON contract.
func (d Direction) String() string {
	if d == Up {
		return "up"
	}
	return "down"
}

// A Header is one field line of a header or trailer section.
type Header struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// Headers is a header or trailer section in the order in which it was seen.
type Headers []Header

// Get returns the first value of the named field, compared without case, or "".
func (h Headers) Get(name string) string {
	for _, f := range h {
		if strings.EqualFold(f.Name, name) {
			return f.Value
		}
	}
	return ""
}

// SortedHeaders lists the fields of an http.Header or http.Trailer by name, in lower case,
// since net/http does not keep their order and spelling.
func SortedHeaders(h map[string][]string) Headers {
	var out Headers
	for name, values := range h {
		for _, v := range values {
			out = append(out, Header{Name: strings.ToLower(name), Value: v})
		}
	}
	slices.SortStableFunc(out, func(a, b Header) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// An Outcome says how an exchange ended.
type Outcome string

const (
	InFlight   Outcome = ""           // still going on, or its recorder died
	Complete   Outcome = "complete"   // both directions ended cleanly
	Reset      Outcome = "reset"      // the server or the network cut it off
	Canceled   Outcome = "canceled"   // the client went away
	Incomplete Outcome = "incomplete" // recording stopped before it ended

	// Failed exchanges never reached the server; see Exchange.Error.
	Failed Outcome = "failed"
)

// TLS describes the connection to the server. The zero value is cleartext, without a
// proxy.
type TLS struct {
	Version    string `json:"version,omitempty"`     // "1.2", "1.3"
	Cipher     string `json:"cipher,omitempty"`      // IANA name
	ServerName string `json:"server_name,omitempty"` // the client's SNI
	ALPN       string `json:"alpn,omitempty"`        // "h2", "http/1.1"

	// Unverified is true if the server's certificate was not checked.
	Unverified bool `json:"unverified,omitempty"`

	// ClientCertificate says whether the server asked for a client certificate.
	ClientCertificate ClientCertificate `json:"client_certificate,omitempty"`

	// Proxy is the user's proxy that the connection went through, without user and
	// password, in TLS or not; "" if the server was connected to directly.
	Proxy string `json:"proxy,omitempty"`

	// CA is the authority by which the server was trusted; zero if it was not checked.
	CA Authority `json:"ca,omitzero"`
}

// An Authority is a CA's certificate.
type Authority struct {
	SHA256  string `json:"sha256"` // of the certificate in DER, in hex
	Subject string `json:"subject"`
}

// AuthorityOf returns the CA by which the server of a connection was trusted; zero if its
// certificate was not checked.
func AuthorityOf(s tls.ConnectionState) Authority {
	if len(s.VerifiedChains) == 0 || len(s.VerifiedChains[0]) == 0 {
		return Authority{}
	}
	chain := s.VerifiedChains[0]
	root := chain[len(chain)-1]
	sum := sha256.Sum256(root.Raw)
	return Authority{SHA256: hex.EncodeToString(sum[:]), Subject: root.Subject.String()}
}

// A ClientCertificate says what became of a server's wish for a client certificate;
// "" if it had none.
type ClientCertificate string

const (
	CertificateRequested ClientCertificate = "requested" // and none was given
	CertificateSent      ClientCertificate = "sent"
)

// A Transport says what the bytes of an exchange are: the protocol that carried them,
// below the one (Connect, gRPC …) that is derived from them. The list is open: readers
// show the bytes of a transport that they do not know.
type Transport string

const (
	HTTP      Transport = "" // bodies of HTTP; "http" in files
	WebSocket Transport = "websocket"
	RawTLS    Transport = "tls" // inside TLS that was ended, and no HTTP
	RawTCP    Transport = "tcp" // without TLS, and no HTTP
)

// A Process is the program that made an exchange's connection. Any part may be unknown.
type Process struct {
	PID  int    `json:"pid,omitempty"`  // 0: unknown
	Name string `json:"name,omitempty"` // of the executable, without folder

	// Client and Version are what the client calls itself, such as the product of its
	// User-Agent.
	Client  string `json:"client,omitempty"`
	Version string `json:"version,omitempty"`
}

// An Exchange is one request with its response, without the bodies, or one connection
// that has no HTTP in it.
//
// Shape: headers are in wire order; trailers are empty until the end.
// Times are wall-clock; a Chunk's T is monotonic from Started.
type Exchange struct {
	ID               int64
	Transport        Transport
	Method           string // "" for connections without HTTP
	URL              string // absolute: also tcp://host:port, ws://…
	HTTP             string // version the client spoke: "1.0", "1.1", "2"; or ""
	Status           int    // 0 until the response's headers arrive
	RequestHeaders   Headers
	RequestTrailers  Headers
	ResponseHeaders  Headers
	ResponseTrailers Headers
	Started          time.Time
	Duration         time.Duration // 0 while in flight
	Client, Server   string        // addresses, host:port
	Process          Process
	TLS              TLS
	Outcome          Outcome

	// Error says in words why it failed, or what of it was not stored. It is mostly "".
	Error string

	BytesUp   int64 // body bytes as on the wire, framing of HTTP removed
	BytesDown int64

	// Source is what recorded it: "proxy", "reverse", "replay", "import …".
	Source string
}

// Ended reports whether nothing more will be added to the exchange.
func (e *Exchange) Ended() bool { return e.Outcome != InFlight }

// Shortened reports whether Options.MaxBody kept a part of a body from being
// stored; Error has the words.
func (e *Exchange) Shortened() bool { return strings.Contains(e.Error, notStored) }

// AddShortened notes in Error that the last n bytes of a direction were left out
// because of a limit.
func (e *Exchange) AddShortened(dir Direction, n, limit int64) {
	if e.Error != "" {
		e.Error += "; "
	}
	e.Error += fmt.Sprintf("the last %d bytes %s %s %d", n, dir, notStored, limit)
}

// notStored is what Error says then.
const notStored = "were not stored: the limit is"

// ChangedProtocol returns the protocol that the exchange's connection or stream
// changed to, after which its bytes are no bodies of HTTP; "" if it did not.
func (e *Exchange) ChangedProtocol() string {
	to := ""
	switch {
	case e.Status == 101:
		if to = e.ResponseHeaders.Get("upgrade"); to == "" {
			to = "another protocol"
		}
	case e.Status/100 != 2:
	case e.RequestHeaders.Get(":protocol") != "":
		to = e.RequestHeaders.Get(":protocol")
	case e.Method == "CONNECT":
		to = "tunnel"
	}
	return strings.ToLower(to)
}

// A Chunk is a run of body bytes as they passed, in one direction.
type Chunk struct {
	Exchange int64
	Dir      Direction

	// Seq counts the chunks of an exchange from 0, over both directions, in order of arrival.
	Seq int64

	T    time.Duration // monotonic time since Exchange.Started
	Data []byte

	// Opcode is set in the chunks of a WebSocket, each of which is a message or a part of
	// one, unmasked and decompressed.
	Opcode Opcode
}

// An Opcode says what a chunk of a WebSocket is: an opcode of RFC 6455 in the lower four
// bits, and flags.
type Opcode uint8

const (
	OpContinuation Opcode = 0 // goes on with the direction's last message
	OpText         Opcode = 1
	OpBinary       Opcode = 2
	OpClose        Opcode = 8
	OpPing         Opcode = 9
	OpPong         Opcode = 10

	OpCompressed Opcode = 1 << 6 // it was compressed on the wire (RFC 7692)
	OpFinal      Opcode = 1 << 7 // the message ends with this chunk
)

// Kind is the opcode without its flags.
func (o Opcode) Kind() Opcode { return o & 0x0f }

// Known reports whether the opcode, without its flags, is one of RFC 6455.
func (o Opcode) Known() bool {
	return o <= OpBinary || o >= OpClose && o <= OpPong
}

// A Relation says how an exchange is related to another one.
type Relation struct {
	Exchange int64
	Kind     RelationKind
	Capture  string // the other's, by its id of 16 bytes; "": the same
	Target   int64  // the other exchange
}

// A RelationKind is what an exchange is to its target. Readers ignore unknown kinds.
type RelationKind string

const (
	// HandshakeOf is what a WebSocket is to the HTTP exchange that opened it.
	HandshakeOf RelationKind = "handshake"

	// FrontEndOf is what a request to a served endpoint is to the upstream's stream that
	// answered it.
	FrontEndOf RelationKind = "front end of"
)
