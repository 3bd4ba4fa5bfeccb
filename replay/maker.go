package replay

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"unwire/captures"
	"unwire/captures/profile"
	"unwire/replay/credential"
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

// DefaultHeaders are the headers that a profile, which may be nil, knows how to make.
func DefaultHeaders(p *profile.Profile) map[string]HeaderMaker {
	if p == nil || p.Checksum.Header == "" {
		return map[string]HeaderMaker{}
	}
	return map[string]HeaderMaker{p.Checksum.Header: checksumMaker{p.Checksum}}
}

// A checksumMaker computes what of a checksum depends on the time. What tells the
// machine is kept as captured, or as given, and never invented.
//
// Source: RESEARCH.md#checksum
type checksumMaker struct{ profile.Checksum }

func (checksumMaker) Part() string { return credential.EnvMachineID }

func (m checksumMaker) MakeHeader(_ context.Context, c HeaderCall) (string, error) {
	return m.Make(c.Value, c.Part, c.Time), nil
}

// fromMaker says where a made value comes from.
const fromMaker = "made for this request"

func (p *planner) makers() map[string]HeaderMaker {
	if p.changes.Headers == nil {
		return DefaultHeaders(p.captured.Profile)
	}
	return p.changes.Headers
}

// partOf is the variable of the secret that completes a header's value.
func (p *planner) partOf(name string) string {
	if m := p.makers()[name]; m != nil {
		return m.Part()
	}
	return ""
}

// maker returns what makes headers; failed is the first error of one.
func (p *planner) maker(ctx context.Context, now time.Time, failed *error) func(HeaderCall) (string, bool) {
	makers := p.makers()
	return func(c HeaderCall) (string, bool) {
		m := makers[c.Name]
		if m == nil {
			return "", false
		}
		c.Method, c.URL, c.Time = p.shown.Method, p.shown.URL, now
		value, err := m.MakeHeader(ctx, c)
		if err == nil && strings.ContainsAny(value, "\r\n\x00") {
			err = fmt.Errorf("its value has a control character")
		}
		if err != nil && *failed == nil {
			*failed = fmt.Errorf("header %s: %w", c.Name, err)
		}
		return value, true
	}
}

// addHeaders makes the headers that the capture does not have.
func (p *planner) addHeaders(r *refresher) {
	var names []string
	for name := range p.changes.Headers {
		if !slices.ContainsFunc(p.captured.RequestHeaders, func(h captures.Header) bool { return strings.EqualFold(h.Name, name) }) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		if value, ok := r.make(HeaderCall{Name: name}); ok && value != "" {
			p.secrets = append(p.secrets, value)
			p.headers = append(p.headers, captures.Header{Name: name, Value: value})
			p.shown.Headers = append(p.shown.Headers, captures.Header{Name: name, Value: "<" + fromMaker + ">"})
			p.kept = append(p.kept, captures.Header{Name: name, Value: placeholder})
			p.refreshed(name)
		}
	}
}
