package contract

import (
	"unwire/captures"
	"unwire/mitm/intercept"
)

// Listening is the first event of a command that serves requests.
type Listening struct {
	// version adds the member v, the version number of the JSON format.
	version

	// Event is "listening".
	Event string `json:"event"`

	// Proxy is the URL of the proxy, for capture.
	Proxy string `json:"proxy,omitempty"`

	// URL is the URL of the server, for other commands.
	URL string `json:"url,omitempty"`

	// CA is the path of the CA certificate that clients must trust.
	CA string `json:"ca,omitempty"`

	// Key is the API key or token that the command generated, if none was given.
	Key string `json:"key,omitempty"`

	// UI is the URL of the page that shows the recording, for capture --ui.
	UI string `json:"ui,omitempty"`
}

// Also is the event of each further server to which capture --reverse forwards.
type Also struct {
	// version adds the member v, the version number of the JSON format.
	version

	// Event is "also".
	Event string `json:"event"`

	// URL is where unwire listens for requests to this server.
	URL string `json:"url"`

	// Origin is the URL of the server.
	Origin string `json:"origin"`
}

// RouteConflict is the event of a second destination address that was announced for a connection, and
// rejected.
type RouteConflict struct {
	// version adds the member v, the version number of the JSON format.
	version

	// Event is "route-conflict".
	Event string `json:"event"`

	// Port is the client's port of the connection.
	Port int `json:"port"`

	// To is the address that was announced first, to which the connection goes.
	To string `json:"to"`

	// Refused is the address that was announced later and rejected.
	Refused string `json:"refused"`
}

// RefusedUser is the event of the first connection from another user of this machine, whose connections
// are rejected.
type RefusedUser struct {
	// version adds the member v, the version number of the JSON format.
	version

	// Event is "refused-user".
	Event string `json:"event"`

	// UID is the user id.
	UID uint32 `json:"uid"`

	// Name is the user name; missing if it is not known.
	Name string `json:"name,omitempty"`
}

// RefusedCertificate is the event of a program that does not accept the proxy's certificate for a server.
type RefusedCertificate struct {
	// version adds the member v, the version number of the JSON format.
	version

	// Event is "refused-certificate".
	Event string `json:"event"`

	// Host is the host and port of the server.
	Host string `json:"host"`

	// Process is the program; missing if it is not known.
	Process *Process `json:"process,omitempty"`

	// Fix tells the user what to do.
	Fix string `json:"fix"`
}

// QUIC is the event of the first QUIC connection to an address, which is not recorded.
type QUIC struct {
	// version adds the member v, the version number of the JSON format.
	version

	// Event is "quic".
	Event string `json:"event"`

	// To is the address and port of the server.
	To string `json:"to"`

	// Refused means that unwire rejected the connection, so that the client uses TCP instead.
	Refused bool `json:"refused"`
}

// Unsearched is the event of the first payload that a recording cannot search for secrets.
type Unsearched struct {
	// version adds the member v, the version number of the JSON format.
	version

	// Event is "unsearched".
	Event string `json:"event"`

	// Exchange is the number of the exchange that has the payload.
	Exchange int64 `json:"exchange"`

	// Reason is why the payload cannot be searched.
	Reason string `json:"reason"`
}

// Uncaptured is the event of a server that a response names and whose traffic is not captured.
type Uncaptured struct {
	// version adds the member v, the version number of the JSON format.
	version

	// Event is "uncaptured".
	Event string `json:"event"`

	// URL is the origin of the server.
	URL string `json:"url"`

	// Exchange is the number of the exchange whose response names the server.
	Exchange int64 `json:"exchange"`
}

// ExchangeEnded is the event of an exchange that has ended, with the members of a line of `unwire ls`.
type ExchangeEnded struct {
	// Exchange is the exchange that has ended; its fields become members of the JSON object.
	*Exchange

	// Event is "exchange".
	Event string `json:"event"`

	// Error is why the exchange failed; "" if it did not fail.
	Error string `json:"error"`
}

// NewExchangeEnded builds the event for a finished exchange.
func NewExchangeEnded(l *Exchange) *ExchangeEnded {
	return &ExchangeEnded{Exchange: l, Event: "exchange", Error: l.Error}
}

// A FailureCount counts the exchanges that failed for one kind of reason.
type FailureCount struct {
	// Kind is "certificate-refused" (by the client), "server-certificate", "unreachable", "unknown-host",
	// "timeout", "request", "shortened", "status" (the server returned an error) or "other". Later
	// versions may add kinds.
	Kind string `json:"kind"`

	// Count is the number of exchanges that failed for this kind of reason.
	Count int `json:"count"`

	// File is the capture of the first such exchange.
	File string `json:"file"`

	// Exchange is the number of the first such exchange.
	Exchange int64 `json:"exchange"`

	// Reason is why the first such exchange failed.
	Reason string `json:"reason"`

	// Remedy tells the user how to prevent the failure.
	Remedy string `json:"remedy,omitempty"`
}

// Ended is the last event of `unwire capture`: a summary of the recording.
type Ended struct {
	// version adds the member v, the version number of the JSON format.
	version

	// Event is "ended".
	Event string `json:"event"`

	// File is the first of Files.
	File string `json:"file"`

	// Exchanges is the number of recorded exchanges.
	Exchanges int `json:"exchanges"`

	// Incomplete is the number of these exchanges that are incomplete.
	Incomplete int `json:"incomplete"`

	// Files are the paths of the captures.
	Files []string `json:"files"`

	// Outcomes is the number of exchanges of this recording for each outcome, such as
	// {"complete":9,"failed":2}.
	Outcomes map[captures.Outcome]int `json:"outcomes"`

	// Failures are the failed exchanges, counted by kind of reason; missing if none failed.
	Failures []FailureCount `json:"failures,omitempty"`

	// UnsearchedExchanges is the number of exchanges with payloads that could not be searched for secrets.
	UnsearchedExchanges int `json:"unsearched_exchanges"`

	// UnsearchedBytes is the total size of these payloads.
	UnsearchedBytes int64 `json:"unsearched_bytes"`
}

// Uploaded is the event of a segment that capture --upload moved to an object store.
type Uploaded struct {
	// version adds the member v, the version number of the JSON format.
	version

	// Event is "uploaded".
	Event string `json:"event"`

	// File is the path of the local file, which was removed.
	File string `json:"file"`

	// URL is where the segment was uploaded; its manifest is next to it.
	URL string `json:"url"`

	// SHA256 is the SHA-256 hash of the content, in hex.
	SHA256 string `json:"sha256"`

	// Size is the size in bytes.
	Size int64 `json:"size"`

	// Exchanges is the number of exchanges in the segment.
	Exchanges int `json:"exchanges"`
}

// NotUploaded is the event of a segment that capture --upload could not move to an object store.
type NotUploaded struct {
	// version adds the member v, the version number of the JSON format.
	version

	// Event is "not-uploaded".
	Event string `json:"event"`

	// File is the path of the local file, which remains.
	File string `json:"file"`

	// Error is why the segment was not uploaded.
	Error string `json:"error"`

	// RetrySeconds is the time until the next attempt, in seconds; 0 if there is none, because the segment
	// must not leave this machine.
	RetrySeconds float64 `json:"retry_seconds"`
}

// HeldEvent is the event of `unwire capture` when a frame is held or is no longer held.
type HeldEvent struct {
	// version adds the member v, the version number of the JSON format.
	version

	// Event is "held" or "released".
	Event string `json:"event"`

	// ID is the number of the held frame, for 'unwire intercept'.
	ID int64 `json:"id"`

	// Exchange is the number of the exchange; 0 if it is not recorded.
	Exchange int64 `json:"exchange"`

	// Dir is the direction, up or down.
	Dir string `json:"dir"`

	// Frame is the number of the frame in its direction, from 0.
	Frame int `json:"frame"`

	// Rule is the rule that holds the frame, or intercept.
	Rule string `json:"rule"`
}

// A HeldFrame is one line of 'unwire intercept': a frame that the proxy holds until the user decides.
type HeldFrame struct {
	// version adds the member v, the version number of the JSON format.
	version
	// Frame is the held frame; its fields become members of the JSON object.
	intercept.Frame
}

// Decided reports a decision about held frames that 'unwire intercept' has sent to the proxy.
type Decided struct {
	// version adds the member v, the version number of the JSON format.
	version

	// Event is "decided".
	Event string `json:"event"`

	// Action is the decision: release, drop, replace or release-all.
	Action string `json:"action"`

	// ID is the number of the held frame; missing for release-all.
	ID int64 `json:"id,omitempty"`

	// Frames is the number of frames that release-all has released.
	Frames int `json:"frames,omitempty"`
}
