package contract

import "unwire/captures"

// Listening is the first event of a command that serves.
type Listening struct {
	version
	Event string `json:"event"`           // "listening"
	Proxy string `json:"proxy,omitempty"` // of capture: the proxy's URL
	URL   string `json:"url,omitempty"`   // of the others: where they serve
	CA    string `json:"ca,omitempty"`    // file of the certificate to trust
	Key   string `json:"key,omitempty"`   // of serve: the API key that it made
}

// Also is the event of a further server that capture --reverse stands in front of.
type Also struct {
	version
	Event  string `json:"event"`  // "also"
	URL    string `json:"url"`    // where the recorder listens
	Origin string `json:"origin"` // the server
}

// RouteConflict is the event of a second address that was announced for a
// connection, and refused.
type RouteConflict struct {
	version
	Event   string `json:"event"` // "route-conflict"
	Port    int    `json:"port"`  // of the connection, on the client's side
	To      string `json:"to"`    // the address that it goes to
	Refused string `json:"refused"`
}

// RefusedUser is the event of the first connection of another user of this machine, who
// is not admitted.
type RefusedUser struct {
	version
	Event string `json:"event"` // "refused-user"
	UID   uint32 `json:"uid"`
	Name  string `json:"name,omitempty"`
}

// RefusedCertificate is the event of a program that does not accept the proxy's
// certificate for a server.
type RefusedCertificate struct {
	version
	Event   string   `json:"event"` // "refused-certificate"
	Host    string   `json:"host"`  // host:port
	Process *Process `json:"process,omitempty"`
	Fix     string   `json:"fix"` // what to do, in words
}

// QUIC is the event of the first QUIC connection to an address, which is not recorded.
type QUIC struct {
	version
	Event   string `json:"event"`   // "quic"
	To      string `json:"to"`      // address and port
	Refused bool   `json:"refused"` // so that the client falls back to TCP
}

// Unsearched is the event of the first payload that a recording cannot search for
// secrets.
type Unsearched struct {
	version
	Event    string `json:"event"` // "unsearched"
	Exchange int64  `json:"exchange"`
	Reason   string `json:"reason"`
}

// Uncaptured is the event of a server that an answer names and that is not captured.
type Uncaptured struct {
	version
	Event    string `json:"event"`    // "uncaptured"
	URL      string `json:"url"`      // the server's origin
	Exchange int64  `json:"exchange"` // that names it
}

// ExchangeEnded is the event of an exchange that has ended, with the members of a line of
// `unwire ls`.
type ExchangeEnded struct {
	*Exchange
	Event string `json:"event"` // "exchange"
	Error string `json:"error"` // why it failed; "" if it ended well
}

// NewExchangeEnded is the event of an exchange.
func NewExchangeEnded(l *Exchange) *ExchangeEnded {
	return &ExchangeEnded{Exchange: l, Event: "exchange", Error: l.Error}
}

// A FailureCount is why exchanges failed: how many for this kind of reason, and the first.
type FailureCount struct {
	// "certificate-refused" (by the client), "server-certificate", "unreachable",
	// "unknown-host", "timeout", "request", "shortened", "status" (the server answered an
	// error) or "other"; the list is open.
	Kind string `json:"kind"`

	// How many exchanges failed for this kind of reason.
	Count int `json:"count"`

	// The capture of the first of them, its number, and why it failed.
	File     string `json:"file"`
	Exchange int64  `json:"exchange"`
	Reason   string `json:"reason"`

	// What to do about it, in words.
	Remedy string `json:"remedy,omitempty"`
}

// Ended is the last event of capture.
type Ended struct {
	version
	Event      string   `json:"event"` // "ended"
	File       string   `json:"file"`  // the first of Files
	Exchanges  int      `json:"exchanges"`
	Incomplete int      `json:"incomplete"` // of Exchanges
	Files      []string `json:"files"`

	// How many exchanges of this recording ended in which way: {"complete":9,"failed":2}.
	Outcomes map[captures.Outcome]int `json:"outcomes"`

	// Why some of them failed, by kind of reason; missing if none did.
	Failures []FailureCount `json:"failures,omitempty"`

	// UnsearchedExchanges and UnsearchedBytes count what could not be searched for
	// secrets.
	UnsearchedExchanges int   `json:"unsearched_exchanges"`
	UnsearchedBytes     int64 `json:"unsearched_bytes"`
}
