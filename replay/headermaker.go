package replay

import (
	"context"
	"time"

	"unwire/captures/profile"
)

// A HeaderMaker makes the value of a header anew for each request: a checksum of
// the time, a signature, what another program knows.
//
// Shape: a value that it returns is held for a secret, and neither shown nor
// recorded. What it returns as it was goes out as it was; "" is none.
type HeaderMaker interface {
	// Part is the environment variable of the secret that completes a value of
	// which the capture has a placeholder alone; "" if there is none.
	Part() string
	MakeHeader(ctx context.Context, c HeaderCall) (value string, err error)
}

// A HeaderCall is a header whose value is to be made.
type HeaderCall struct {
	Name string // in lower case
	// as captured, or the secret that was given for it; "" where there is neither
	Value  string
	Part   string    // the secret of HeaderMaker.Part, where Value is ""
	Method string    // of HTTP
	URL    string    // without secrets
	Time   time.Time // at which the request is made
}

// defaultHeaders are the headers that a profile, which may be nil, knows how to make.
func defaultHeaders(p *profile.Profile) map[string]HeaderMaker {
	if p == nil || p.Checksum.Header == "" {
		return map[string]HeaderMaker{}
	}
	return map[string]HeaderMaker{p.Checksum.Header: checksumMaker{p.Checksum}}
}

// envMachineID is the environment variable with the part of a checksum that tells the
// machine.
const envMachineID = "UNWIRE_MACHINE_ID"

// A checksumMaker computes what of a checksum depends on the time. What tells the
// machine is kept as captured, or as given, and never invented.
//
// Source: RESEARCH.md#checksum
type checksumMaker struct{ profile.Checksum }

func (checksumMaker) Part() string { return envMachineID }

func (m checksumMaker) MakeHeader(_ context.Context, c HeaderCall) (string, error) {
	return m.Make(c.Value, c.Part, c.Time), nil
}
