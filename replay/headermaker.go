package replay

import (
	"context"
	"time"

	"unwire/captures/profile"
)

// A HeaderMaker computes the value of a header for each request, such as a checksum of the time or a
// signature.
//
// Shape: computed values are treated as secrets: they are neither shown nor recorded. If the captured
// value is returned, it is sent unchanged; if "" is returned, the header is omitted.
type HeaderMaker interface {
	// Part returns the environment variable with a secret from which the value is computed. It is only
	// looked up if the captured value is a placeholder. "" means that no such secret is needed.
	Part() string
	// MakeHeader returns the header's value for the request that c describes.
	MakeHeader(ctx context.Context, c HeaderCall) (value string, err error)
}

// A HeaderCall describes the request for which a header's value is computed.
type HeaderCall struct {
	// Name is the header's name in lower case.
	Name string
	// Value is the captured value, or the secret from the credentials; "" if there is neither.
	Value string
	// Part is the secret from the environment variable that HeaderMaker.Part names. It is "" if Value
	// is set.
	Part string
	// Method is the HTTP method of the request.
	Method string
	// URL is the request's URL without secrets.
	URL string
	// Time is the time at which the request is built.
	Time time.Time
}

// defaultHeaders returns the functions for the headers that a profile defines as computed, by header
// name in lower case. The profile may be nil.
func defaultHeaders(p *profile.Profile) map[string]HeaderMaker {
	if p == nil || p.Checksum.Header == "" {
		return map[string]HeaderMaker{}
	}
	return map[string]HeaderMaker{p.Checksum.Header: checksumMaker{p.Checksum}}
}

// envMachineID is the environment variable with the machine id, which is one part of the checksum
// header.
const envMachineID = "UNWIRE_MACHINE_ID"

// A checksumMaker computes a checksum header, which consists of a time-dependent part and a machine id.
// Only the first is computed; the machine id stays as captured or comes from the credentials, and is
// never invented.
//
// Source: RESEARCH.md#checksum
type checksumMaker struct {
	// Checksum describes the header and how it is computed.
	profile.Checksum
}

// Part returns the environment variable with the machine id that the checksum header contains.
func (checksumMaker) Part() string { return envMachineID }

// MakeHeader returns the header's value with its time-dependent part computed for the time of the
// request.
func (m checksumMaker) MakeHeader(_ context.Context, c HeaderCall) (string, error) {
	return m.Make(c.Value, c.Part, c.Time), nil
}
