package replay

import (
	"context"
	"time"

	"unwire/captures/profile"
)

// A HeaderMaker computes the value of a header for each request, such as a checksum of the time or
// a signature.
//
// Shape: its values are treated as secrets, and neither shown nor recorded. A value that is
// returned unchanged is sent unchanged; "" omits the header.
type HeaderMaker interface {
	// Part returns the environment variable with the secret that completes the header's value, if the
	// capture contains a placeholder instead; "" if none is needed.
	Part() string
	// MakeHeader computes the value of a header for a request.
	MakeHeader(ctx context.Context, c HeaderCall) (value string, err error)
}

// A HeaderCall describes the request for which a header's value is computed.
type HeaderCall struct {
	// Name is the header's name in lower case.
	Name string
	// Value is the captured value, or the secret from the credentials; "" if there is neither.
	Value string
	// Part is the secret of HeaderMaker.Part, if Value is "".
	Part string
	// Method is the HTTP method of the request.
	Method string
	// URL is the request's URL without secrets.
	URL string
	// Time is the time at which the request is built.
	Time time.Time
}

// defaultHeaders returns the headers that a profile computes. The profile may be nil.
func defaultHeaders(p *profile.Profile) map[string]HeaderMaker {
	if p == nil || p.Checksum.Header == "" {
		return map[string]HeaderMaker{}
	}
	return map[string]HeaderMaker{p.Checksum.Header: checksumMaker{p.Checksum}}
}

// envMachineID is the environment variable with the part of a checksum that identifies the machine.
const envMachineID = "UNWIRE_MACHINE_ID"

// A checksumMaker computes the time-dependent part of a checksum. The part that identifies the
// machine is kept as captured or as given, and never invented.
//
// Source: RESEARCH.md#checksum
type checksumMaker struct{ profile.Checksum }

// Part returns the environment variable with the machine id that the checksum header contains.
func (checksumMaker) Part() string { return envMachineID }

// MakeHeader replaces the time-dependent part of the checksum.
func (m checksumMaker) MakeHeader(_ context.Context, c HeaderCall) (string, error) {
	return m.Make(c.Value, c.Part, c.Time), nil
}
