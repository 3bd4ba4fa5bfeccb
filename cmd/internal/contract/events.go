package contract

import (
	"unwire/captures"
	"unwire/mitm/intercept"
)

// Listening is the first event of a command that serves.
type Listening struct {
	version
	Event string `json:"event"`           // "listening"
	Proxy string `json:"proxy,omitempty"` // of capture: the proxy's URL
	URL   string `json:"url,omitempty"`   // of the others: where they serve
	CA    string `json:"ca,omitempty"`    // file of the certificate to trust
	Key   string `json:"key,omitempty"`   // of serve: the API key that it made
	UI    string `json:"ui,omitempty"`    // of capture --ui: the page
}

// Also is the event of a further server to which capture --reverse forwards: the server's URL, and the
// address at which unwire listens for it.
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

// NewExchangeEnded builds the event for a finished exchange.
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

	// The capture, the number and the failure reason of the first such exchange.
	File     string `json:"file"`
	Exchange int64  `json:"exchange"`
	Reason   string `json:"reason"`

	// A hint for the user that names a remedy.
	Remedy string `json:"remedy,omitempty"`
}

// Ended is the last event of `unwire capture`: a summary of the recording.
type Ended struct {
	version
	Event      string   `json:"event"` // "ended"
	File       string   `json:"file"`  // the first of Files
	Exchanges  int      `json:"exchanges"`
	Incomplete int      `json:"incomplete"` // of Exchanges
	Files      []string `json:"files"`

	// How many exchanges of this recording ended in which way: {"complete":9,"failed":2}.
	Outcomes map[captures.Outcome]int `json:"outcomes"`

	// The failed exchanges, counted by kind of reason; missing if none failed.
	Failures []FailureCount `json:"failures,omitempty"`

	// UnsearchedExchanges and UnsearchedBytes count what could not be searched for
	// secrets.
	UnsearchedExchanges int   `json:"unsearched_exchanges"`
	UnsearchedBytes     int64 `json:"unsearched_bytes"`
}

// Uploaded is the event of a segment that capture --upload moved to an object store.
type Uploaded struct {
	version
	Event string `json:"event"` // "uploaded"
	File  string `json:"file"`  // the local file, which is removed
	URL   string `json:"url"`   // URL of the segment; its manifest is next to it
	// SHA-256 of the content, in hex
	SHA256    string `json:"sha256"`
	Size      int64  `json:"size"`      // in bytes
	Exchanges int    `json:"exchanges"` // how many the segment has
}

// NotUploaded is the event of a segment that capture --upload could not move.
type NotUploaded struct {
	version
	Event string `json:"event"` // "not-uploaded"
	File  string `json:"file"`  // the local file, which stays
	Error string `json:"error"` // why it was not uploaded
	// until the next attempt; 0: there is none, because the segment may not leave this machine
	RetrySeconds float64 `json:"retry_seconds"`
}

// HeldEvent is the event of capture for a frame that is held, or no longer is.
type HeldEvent struct {
	version
	Event string `json:"event"` // "held" or "released"

	// The number of the held frame, for 'unwire intercept'.
	ID int64 `json:"id"`

	// The number of the exchange; 0 if it is not recorded.
	Exchange int64  `json:"exchange"`
	Dir      string `json:"dir"`

	// The number of the frame in its direction, from 0.
	Frame int    `json:"frame"`
	Rule  string `json:"rule"`
}

// A HeldFrame is one line of 'unwire intercept': a frame that the proxy holds until the user decides.
type HeldFrame struct {
	version
	intercept.Frame
}

// Decided reports a decision about held frames that 'unwire intercept' has sent to the proxy.
type Decided struct {
	version
	Event string `json:"event"` // "decided"

	// The decision: release, drop, replace or release-all.
	Action string `json:"action"`
	ID     int64  `json:"id,omitempty"` // of the held frame

	// The number of frames that release-all has released.
	Frames int `json:"frames,omitempty"`
}
