package contract

import (
	"encoding/json"
	"time"

	"unwire/replay"
	"unwire/replay/suite"
)

// ReplayPlan describes the requests that a replay would send.
type ReplayPlan struct {
	// version adds the member v, the version number of the JSON format.
	version
	// Description describes the requests that would be sent; its fields become members of the JSON object.
	*replay.Description
}

// ReplayResult is the outcome of a replay.
type ReplayResult struct {
	// version adds the member v, the version number of the JSON format.
	version
	// Result is the outcome of the replay; its fields become members of the JSON object.
	*replay.Result

	// After is the number of the exchange that --after names, if this is the result of that exchange. It ended
	// without a regular answer, so the request itself was not sent.
	After int64 `json:"after,omitempty"`
}

// CallFailure is the error that a call of `unwire call` ended with, on stderr.
type CallFailure struct {
	// version adds the member v, the version number of the JSON format.
	version

	// Code is the name of the Connect or gRPC code: "not_found".
	Code string `json:"code"`

	// Message is the error message from the server.
	Message string `json:"message"`

	// Origin is "server" if the server returned the error, and "local" if no response arrived.
	Origin string `json:"origin"`

	// Reason is the kind of local failure, with the same values as for replay.
	Reason string `json:"reason,omitempty"`

	// RetryAfter is the time before which the server wants no further request, from its Retry-After header.
	RetryAfter time.Time `json:"retry_after,omitzero"`

	// Details are the detail messages in the server's error.
	Details []FailureDetail `json:"details"`

	// Exchange is the call's number in the capture of -o.
	Exchange int64 `json:"exchange,omitempty"`
}

// FailureDetail is one detail message of an error.
type FailureDetail struct {
	// Type is the full name of the detail's message type.
	Type string `json:"type"`

	// Value is the detail in the protobuf wire format.
	Value []byte `json:"value"`

	// JSON is the detail in protojson; missing if its type is not defined.
	JSON json.RawMessage `json:"json,omitempty"`
}

// Credential describes where a secret is read from and when it expires. It never contains the secret
// itself.
type Credential struct {
	// version adds the member v, the version number of the JSON format.
	version

	// Reference names the credentials, such as the name of a profile.
	Reference string `json:"reference"`

	// What is the kind of secret: "token" or "API key".
	What string `json:"what"`

	// State is "found", "missing", "expired", or "expiring" if the secret expires too soon to be sent.
	State string `json:"state"`

	// From is where the secret is read from; "" if it was not found.
	From string `json:"from"`

	// Expires is when the secret expires, in RFC 3339; "" if not known.
	Expires string `json:"expires"`

	// Issuer is who issued the token; "" if not known.
	Issuer string `json:"issuer"`

	// Audience is for whom the token was issued.
	Audience []string `json:"audience"`

	// Hosts are the hosts to which the secret may be sent; empty for the hosts of --allow-host.
	Hosts []string `json:"hosts"`

	// Error is why the secret cannot be read; "" if it can.
	Error string `json:"error"`
}

// Experiment is the result of one experiment of a replay suite.
type Experiment struct {
	// version adds the member v, the version number of the JSON format.
	version

	// File is the path of the experiment.
	File string `json:"file"`

	// About is the description in the file.
	About string `json:"about,omitempty"`

	// OK means that all expectations were met.
	OK bool `json:"ok"`

	// Failed are the expectations that were not met, or the reason why the experiment did not run.
	Failed []string `json:"failed"`

	// Result is the result of the replay; missing if the experiment did not run.
	Result *ReplayResult `json:"result,omitempty"`

	// Duration is the duration of the experiment in milliseconds.
	Duration float64 `json:"duration_ms"`
}

// NewExperiment builds the JSON object for the outcome of an experiment. failed are the expectations that
// were not met, or the reason why the experiment did not run.
func NewExperiment(o *suite.Outcome, failed []string) *Experiment {
	e := &Experiment{
		File: o.File, About: o.About, OK: len(failed) == 0, Failed: failed,
		Duration: float64(o.Duration.Microseconds()) / 1000,
	}
	if o.Result != nil {
		e.Result = &ReplayResult{Result: o.Result}
	}
	return e
}

// setVersion sets the version number of the experiment and of its result.
func (e *Experiment) setVersion() {
	e.version.setVersion()
	if e.Result != nil {
		e.Result.setVersion()
	}
}
