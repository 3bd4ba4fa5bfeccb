// Package captures is the record model: the types of which a capture consists, and the interfaces between those
// who record captures and those who read them. A capture is the traffic that unwire recorded.
//
// An Exchange is one request with its response: headers, TLS, and an Outcome. A Chunk is a run of body bytes
// that arrived together, with its direction and time. Only these two are recorded. Everything else (frames,
// messages, field types, summaries) is derived from them by other packages and can be rebuilt at any time, so
// malformed traffic survives unchanged.
//
// A Recorder records exchanges while they run; each exchange in progress is a Recording. A Source gives stored
// exchanges back, a Capture also lists them, and a Target is what an import writes to. An Event reports what
// happened while a capture was recorded. The errors on which callers branch are declared here too.
//
// Package store implements these interfaces with a file (.uwc), package redact removes secrets while recording,
// and the other packages below captures/ convert foreign formats. The proxy in mitm records through Recorder;
// decode reads through Source.
//
//	ex := captures.Exchange{Method: "POST", URL: "https://api.example/a", Started: time.Now()}
//	rec, err := recorder.Begin(ex) // recorder is a captures.Recorder, for instance a *store.Store
//	rec.Chunk(captures.Up, []byte("request body"))
//	rec.Response(200, captures.Headers{{Name: "content-type", Value: "text/plain"}})
//	rec.End(captures.Complete, "")
//
// This package imports nothing of unwire but captures/profile.
package captures

import (
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"
)

// A Direction is the direction in which bytes were sent.
type Direction uint8

const (
	// Up is from the client to the server.
	Up Direction = iota
	// Down is from the server to the client.
	Down
)

// String returns "up" or "down", the names of directions in JSON output.
func (d Direction) String() string {
	if d == Up {
		return "up"
	}
	return "down"
}

// Sender returns who sends in the direction, for texts: "client" or "server".
func (d Direction) Sender() string {
	if d == Up {
		return "client"
	}
	return "server"
}

// A Header is one HTTP header or trailer field.
type Header struct {
	// Name is the field's name as it was sent; names are compared without case.
	Name string `json:"name"`
	// Value is the field's value without surrounding white space.
	Value string `json:"value"`
}

// Headers is a list of HTTP header or trailer fields in their original order.
type Headers []Header

// Get returns the first value of the HTTP field with a name, or "" if there is none. Names are ASCII, and
// case-insensitive.
func (h Headers) Get(name string) string {
	for i := range h {
		// Most names have another length.
		if f := &h[i]; len(f.Name) == len(name) && strings.EqualFold(f.Name, name) {
			return f.Value
		}
	}
	return ""
}

// SortedHeaders converts the fields of an http.Header, sorted by name and in lower case: net/http keeps neither
// their order nor their spelling.
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

// An Outcome is how an exchange ended, such as completed, cancelled or failed.
type Outcome string

const (
	// InFlight exchanges are still running, or their recorder was killed.
	InFlight Outcome = ""
	// Complete exchanges ended cleanly in both directions.
	Complete Outcome = "complete"
	// Reset exchanges were cut off by the server or the network.
	Reset Outcome = "reset"
	// Canceled exchanges were cut off by the client.
	Canceled Outcome = "canceled"
	// Incomplete exchanges were still running when recording stopped.
	Incomplete Outcome = "incomplete"

	// Failed exchanges never reached the server; see Exchange.Error.
	Failed Outcome = "failed"
)

// TLS describes the TLS parameters of the connection to the server. The zero value means no TLS and no proxy.
type TLS struct {
	// Version is the TLS version, "1.2" or "1.3".
	Version string `json:"version,omitempty"`
	// Cipher is the IANA name of the TLS cipher suite.
	Cipher string `json:"cipher,omitempty"`
	// ServerName is the server name (SNI) in the client's TLS handshake.
	ServerName string `json:"server_name,omitempty"`
	// ALPN is the negotiated application protocol, such as "h2" or "http/1.1".
	ALPN string `json:"alpn,omitempty"`

	// Unverified is true if the server's certificate was not checked.
	Unverified bool `json:"unverified,omitempty"`

	// ClientCertificate records whether the server requested a TLS client certificate, and whether the
	// client sent one.
	ClientCertificate ClientCertificate `json:"client_certificate,omitempty"`

	// Proxy is the URL of the user's own proxy through which unwire connected, without user name and password;
	// "" if unwire connected directly. It is also set for cleartext connections.
	Proxy string `json:"proxy,omitempty"`

	// CA is the root authority that the server's certificate was verified against; zero if it was not verified.
	CA Authority `json:"ca,omitzero"`
}

// An Authority identifies the certificate of a certificate authority (CA).
type Authority struct {
	// SHA256 is the hash of the DER-encoded certificate, in hex.
	SHA256 string `json:"sha256"`
	// Subject is the certificate's subject as a distinguished name.
	Subject string `json:"subject"`

	// Certificate is the DER-encoded certificate of a CA that this machine does not trust by default.
	// It is passed to the recorder, which stores it separately: in exchanges read from a capture, and
	// for all other CAs, it is "".
	Certificate string `json:"-"`
}

// AuthorityOf returns the root CA at the end of the first verified chain of a connection, or the zero Authority
// if the certificate was not verified.
func AuthorityOf(s tls.ConnectionState) Authority {
	if len(s.VerifiedChains) == 0 || len(s.VerifiedChains[0]) == 0 {
		return Authority{}
	}
	chain := s.VerifiedChains[0]
	root := chain[len(chain)-1]
	sum := sha256.Sum256(root.Raw)
	a := Authority{SHA256: hex.EncodeToString(sum[:]), Subject: root.Subject.String()}
	if _, err := root.Verify(x509.VerifyOptions{KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny}}); err != nil {
		a.Certificate = string(root.Raw)
	}
	return a
}

// A ClientCertificate records whether the server requested a client certificate, and whether it got one; ""
// means that the server requested none.
type ClientCertificate string

const (
	// CertificateRequested means that the server requested one and the client had none.
	CertificateRequested ClientCertificate = "requested"
	// CertificateSent means that unwire sent the client's certificate.
	CertificateSent ClientCertificate = "sent"
)

// A Transport is the protocol whose payload the chunks contain. It is the layer below protocols such as Connect
// and gRPC, which are derived later. The list is open: readers show the raw bytes of transports that they do not
// know.
type Transport string

const (
	// HTTP chunks are parts of HTTP bodies. Files spell it "http".
	HTTP Transport = ""
	// WebSocket chunks are messages or parts of messages.
	WebSocket Transport = "websocket"
	// RawTLS chunks are bytes inside a TLS connection that unwire terminated and that did not carry HTTP.
	RawTLS Transport = "tls"
	// RawTCP chunks are bytes of a connection without TLS that did not carry HTTP.
	RawTCP Transport = "tcp"
)

// A Process is the client program that opened the connection. Each field may be unknown.
type Process struct {
	// PID is the process id of the client program; 0 if unknown.
	PID int `json:"pid,omitempty"`
	// Name is the base name of the client program's executable.
	Name string `json:"name,omitempty"`

	// Client is the product name that the client gives itself, for instance in its User-Agent header; "" if
	// unknown.
	Client string `json:"client,omitempty"`
	// Version is the version that the client gives itself, for instance in its User-Agent header; "" if
	// unknown.
	Version string `json:"version,omitempty"`
}

// An Exchange is one request with its response, without the bodies. For a connection that does not carry HTTP,
// it is the connection.
//
// Shape: headers are in wire order; trailers are empty until their direction has ended. Started and Duration are
// wall-clock time; Chunk.T is monotonic time since Started.
type Exchange struct {
	// ID is the exchange's number in its capture, starting at 1.
	ID int64
	// Transport is the protocol whose payload is recorded, such as a WebSocket; the zero value is HTTP.
	Transport Transport
	// Method is the HTTP method; "" if the connection does not carry HTTP.
	Method string
	// URL is absolute. Connections without HTTP have tcp://host:port or tls://host:port, WebSockets ws:// or
	// wss://.
	URL string
	// HTTP is the HTTP version that the client spoke: "1.0", "1.1" or "2"; "" if none.
	HTTP string
	// Status is the HTTP status; 0 until the response headers arrive.
	Status int
	// RequestHeaders are the header fields of the request, in wire order.
	RequestHeaders Headers
	// RequestTrailers are the trailer fields after the request body, in wire order; nil if there are none or
	// the body has not ended.
	RequestTrailers Headers
	// ResponseHeaders are the header fields of the response, in wire order; nil until they arrive.
	ResponseHeaders Headers
	// ResponseTrailers are the trailer fields after the response body, in wire order; nil if there are none
	// or the body has not ended.
	ResponseTrailers Headers
	// Started is the wall-clock time at which the request began.
	Started time.Time
	// Duration is the time from Started to the end; 0 while the exchange is in flight.
	Duration time.Duration
	// Client is the network address of the client, host:port; "" if unknown.
	Client string
	// Server is the network address of the server, host:port; "" if unknown.
	Server string
	// Process is the client program; its zero value means unknown.
	Process Process
	// TLS describes the connection to the server; the zero value is a connection without TLS.
	TLS TLS
	// Outcome is how the exchange ended; "" while it is running.
	Outcome Outcome

	// Error describes why the exchange failed, or which data was not stored; usually "".
	Error string

	// BytesUp is the number of bytes of the request body as sent, without HTTP framing such as chunked
	// encoding.
	BytesUp int64
	// BytesDown is the number of bytes of the response body as sent, without HTTP framing such as chunked
	// encoding.
	BytesDown int64

	// Source names the recorder of the exchange: "proxy", "reverse", "replay" or "import …".
	Source string
}

// Ended reports whether the exchange is over, so that nothing more is added to it.
func (e *Exchange) Ended() bool { return e.Outcome != InFlight }

// Truncated reports whether a recording limit (store.Options.MaxBody) left out the end of a body. Error then
// describes how much.
func (e *Exchange) Truncated() bool { return strings.Contains(e.Error, truncationMark) }

// AddTruncation appends to Error that the last n bytes of a direction were not stored because of a limit in
// bytes.
func (e *Exchange) AddTruncation(dir Direction, n, limit int64) {
	if e.Error != "" {
		e.Error += "; "
	}
	e.Error += fmt.Sprintf("the last %d bytes from the %s %s %d bytes", n, dir.Sender(), truncationMark, limit)
}

// truncationMark is the phrase by which Truncated recognizes the texts of AddTruncation.
const truncationMark = "were not stored: the limit is"

// ChangedProtocol returns, in lower case, the protocol that the connection or HTTP/2 stream switched to, such as
// "websocket" or "tunnel"; "" if it still carries HTTP. After a switch, its bytes are no HTTP bodies.
func (e *Exchange) ChangedProtocol() string {
	to := ""
	switch {
	case e.Status == 101:
		if to = e.ResponseHeaders.Get("upgrade"); to == "" {
			to = "another protocol"
			// All switches below need a successful status.
		}
	case e.Status/100 != 2:
	// Extended CONNECT, RFC 8441: HTTP/2's form of an upgrade.
	case e.RequestHeaders.Get(":protocol") != "":
		to = e.RequestHeaders.Get(":protocol")
	case e.Method == "CONNECT":
		to = "tunnel"
	}
	return strings.ToLower(to)
}

// A Chunk is a sequence of body bytes of one direction that arrived together, such as from one read call.
type Chunk struct {
	// Exchange is the ID of the exchange to which the chunk belongs.
	Exchange int64
	// Dir is the direction in which the chunk's bytes were sent.
	Dir Direction

	// Seq numbers the chunks of an exchange from 0, across both directions, in order of arrival.
	Seq int64

	// T is the time since Exchange.Started at which the bytes arrived, by the monotonic clock.
	T time.Duration
	// Data are the bytes of the HTTP body or connection.
	Data []byte

	// Opcode is set for the chunks of a WebSocket only. Each is a message or a part of one, unmasked and
	// decompressed.
	Opcode Opcode
}

// An Opcode is the kind of a WebSocket chunk: the opcode of RFC 6455 in the lower four bits, and two flags in
// the upper bits.
type Opcode uint8

const (
	// OpContinuation continues the current message of its direction.
	OpContinuation Opcode = 0
	// OpText and OpBinary start a message; OpClose, OpPing and OpPong are control frames (RFC 6455,
	// section 5.2).
	OpText   Opcode = 1
	OpBinary Opcode = 2
	OpClose  Opcode = 8
	OpPing   Opcode = 9
	OpPong   Opcode = 10

	// OpCompressed is set if the message was compressed on the wire (permessage-deflate, RFC 7692).
	OpCompressed Opcode = 1 << 6
	// OpFinal is set if the message ends with this chunk.
	OpFinal Opcode = 1 << 7
)

// Kind returns the WebSocket opcode without its flags.
func (o Opcode) Kind() Opcode { return o & 0x0f }

// Known reports whether RFC 6455 defines the opcode. Flags must have been removed by Kind.
func (o Opcode) Known() bool {
	return o <= OpBinary || o >= OpClose && o <= OpPong
}

// A Relation links an exchange to a related one, such as a retry to its original.
type Relation struct {
	// Exchange is the ID of the exchange that has the relation.
	Exchange int64
	// Kind is the kind of the relation, such as a retry.
	Kind RelationKind
	// Capture is the 16-byte id of the capture that contains the target; "" if both are in the same capture.
	Capture string
	// Target is the ID of the related exchange in its capture.
	Target int64
}

// A RelationKind names the role of Relation.Exchange toward Relation.Target. Readers ignore unknown kinds.
type RelationKind string

const (
	// HandshakeOf links a WebSocket to the HTTP exchange that opened it.
	HandshakeOf RelationKind = "handshake"

	// FrontEndOf links a request to an endpoint that unwire serves to the upstream exchange that answered it.
	FrontEndOf RelationKind = "front end of"
)
