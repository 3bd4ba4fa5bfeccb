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
	"fmt"
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
}

// A ClientCertificate says what became of a server's wish for a client certificate;
// "" if it had none.
type ClientCertificate string

const (
	CertificateRequested ClientCertificate = "requested" // and none was given
	CertificateSent      ClientCertificate = "sent"
)

// An Exchange is one request with its response, without the bodies.
//
// Shape: headers are in wire order; trailers are empty until the end.
// Times are wall-clock; a Chunk's T is monotonic from Started.
type Exchange struct {
	ID               int64
	Method           string
	URL              string // absolute
	HTTP             string // version the client spoke: "1.1", "2"
	Status           int    // 0 until the response's headers arrive
	RequestHeaders   Headers
	RequestTrailers  Headers
	ResponseHeaders  Headers
	ResponseTrailers Headers
	Started          time.Time
	Duration         time.Duration // 0 while in flight
	Client, Server   string        // addresses, host:port
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
}
