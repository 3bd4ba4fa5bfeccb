package replay

import (
	"context"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"unwire/captures"
	"unwire/captures/profile"
	"unwire/captures/redact"
	"unwire/replay/credential"
	"unwire/replay/outbound"
)

// hopByHop are the header fields that concern a single connection, or that the transport sets
// itself.
var hopByHop = [...]string{
	"connection", "keep-alive", "proxy-authenticate", "proxy-authorization", "proxy-connection", "trailer",
	"transfer-encoding", "upgrade", "http2-settings", "expect", "host", "content-length",
	"sec-websocket-key", "sec-websocket-version", "sec-websocket-extensions", "sec-websocket-accept",
}

// isHopByHop reports whether a header must not be forwarded. named are the fields that the
// Connection header lists.
func isHopByHop(h captures.Header, named []string) bool {
	name := strings.ToLower(h.Name)
	if name == "te" {
		return !strings.EqualFold(strings.TrimSpace(h.Value), "trailers")
	}
	return strings.HasPrefix(name, ":") || slices.Contains(hopByHop[:], name) || slices.Contains(named, name)
}

// connectionNames returns the fields that a Connection header lists.
func connectionNames(h captures.Headers) []string {
	var names []string
	for _, f := range h {
		if strings.EqualFold(f.Name, "connection") {
			for part := range strings.SplitSeq(f.Value, ",") {
				names = append(names, strings.ToLower(strings.TrimSpace(part)))
			}
		}
	}
	return names
}

// buildHeaders builds the headers and trailers to send, and copies for display in which secrets are
// replaced by references such as "<$UNWIRE_TOKEN>".
func (p *planner) buildHeaders(r *refresher) {
	p.headers, p.shown.Headers, p.kept = p.section(p.captured.RequestHeaders, r)
	p.addHeaders(r)
	p.trailers, p.shown.Trailers, _ = p.section(p.captured.RequestTrailers, r)
}

// section processes the fields of a captured header or trailer section: it inserts secrets, computes
// headers and replaces outdated ids and times. It returns the fields as they are sent, as they are
// shown in the plan, and as they are recorded in the output capture, where secrets remain placeholders.
func (p *planner) section(captured captures.Headers, r *refresher) (sent, shown, kept captures.Headers) {
	named := connectionNames(captured)

	// A value is a secret, is computed, is refreshed because it is volatile, or stays as captured.
	for _, h := range captured {
		// Headers of the captured connection itself, such as Connection, do not apply to the new one.
		if isHopByHop(h, named) {
			continue
		}
		h, display := p.foreign(h)
		value, keep := h.Value, h.Value
		if credential.IsRedacted(h.Value) {
			var ok bool
			if value, display, ok = p.headerSecret(h, r); !ok {
				continue
			}
		} else if made, ok := r.make(HeaderCall{Name: strings.ToLower(h.Name), Value: h.Value}); ok {
			if value = made; made != h.Value {
				p.secrets = append(p.secrets, made)
				display, keep = "<"+fromMaker+">", placeholder
				p.refreshed(h.Name)
			}
		} else if fresh, ok := r.header(h.Name, h.Value); ok && !slices.Contains(p.liveNames, strings.ToLower(h.Name)) {
			if display == value {
				display = fresh
			}
			value, keep = fresh, fresh
			p.refreshed(h.Name)
		}
		sent = append(sent, captures.Header{Name: h.Name, Value: value})
		shown = append(shown, captures.Header{Name: h.Name, Value: display})
		kept = append(kept, captures.Header{Name: h.Name, Value: keep})
	}
	return sent, shown, kept
}

// placeholder is recorded in place of a computed value, or of a secret that the capture should not have
// contained. It has no tag of a real secret.
const placeholder = "[redacted:00000000]"

// foreign processes a captured header that may contain a secret although it should have been redacted.
// Such a secret is only sent to the host that it was captured for, and never shown: shown is the value
// for display.
func (p *planner) foreign(h captures.Header) (_ captures.Header, shown string) {
	if credential.IsRedacted(h.Value) || len(redact.New(redact.Options{Profile: p.captured.Profile}).FindHeaders(captures.Headers{h})) == 0 {
		return h, h.Value
	}
	hidden := placeholder
	if scheme, _, ok := strings.Cut(h.Value, " "); ok && strings.EqualFold(h.Name, "authorization") {
		hidden = scheme + " " + placeholder
	}
	if from, err := url.Parse(p.captured.URL); err != nil || !sameHost(from.Hostname(), p.url.Hostname()) {
		h.Value = hidden
	}
	return h, hidden
}

// sameHost reports whether two host names are equal, regardless of case. All loopback names are the
// same host.
func sameHost(a, b string) bool {
	a, b = strings.ToLower(a), strings.ToLower(b)
	return a == b || outbound.IsLoopback(a) && outbound.IsLoopback(b)
}

// oldVersion is the age from which a client's version causes a warning, because servers reject old
// clients, and not always with a clear error.
const oldVersion = 60 * 24 * time.Hour

// dated matches a date such as 2025.11.25 in a version.
var dated = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\b(20[0-9]{2})\.([0-9]{2})\.([0-9]{2})\b`) })

// releasedAt parses the date in a client's version, such as cli-2025.11.25-d5b3271.
func releasedAt(version string) (time.Time, bool) {
	m := dated().FindString(version)
	t, err := time.Parse("2006.01.02", m)
	return t, m != "" && err == nil
}

// checkVersion adds a warning to the plan if the captured client's version is older than oldVersion.
func (p *planner) checkVersion(now time.Time) {
	service := p.service()
	if service == nil || service.VersionHeader == "" {
		return
	}
	name := service.VersionHeader
	version := p.captured.RequestHeaders.Get(name)
	if released, ok := releasedAt(version); ok && now.Sub(released) > oldVersion {
		p.shown.Warnings = append(p.shown.Warnings, fmt.Sprintf("the header %s contains the client version %s, which is %d days old: the server may require a newer client", name, version, int(now.Sub(released).Hours()/24)))
	}
}

// fromMaker is shown as the source of a header value that a HeaderMaker computed; see Secret.From.
const fromMaker = "made for this request"

// service returns the capture's profile if the request belongs to the service that the profile
// describes, judging by the called package or the host. Otherwise it returns nil.
func (p *planner) service() *profile.Profile {
	known := p.captured.Profile
	if known.Serves(p.captured.Service) {
		return known
	}
	if u, err := url.Parse(p.captured.URL); err == nil && known.CoversHost(u.Hostname()) {
		return known
	}
	return nil
}

// makers returns the functions that compute headers, by header name in lower case: those in
// Changes.Headers, and the profile's for headers that Changes does not mention.
func (p *planner) makers() map[string]HeaderMaker {
	makers := defaultHeaders(p.service())
	for name, m := range p.changes.Headers {
		if delete(makers, name); m != nil {
			makers[name] = m
		}
	}
	return makers
}

// partOf returns the environment variable with the secret that the HeaderMaker of a header needs; "" if
// none.
func (p *planner) partOf(name string) string {
	if m := p.makers()[name]; m != nil {
		return m.Part()
	}
	return ""
}

// maker returns the function that computes the value of a header, if a HeaderMaker exists for it. Its
// first error is stored in failed.
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
			err = fmt.Errorf("the value has a control character")
		}
		if err != nil && *failed == nil {
			*failed = fmt.Errorf("the header %s cannot be created: %w", c.Name, err)
		}
		return value, true
	}
}

// addHeaders adds those computed headers of Changes.Headers that the captured request does not have.
func (p *planner) addHeaders(r *refresher) {
	var names []string
	for name, m := range p.changes.Headers {
		if m != nil && !slices.ContainsFunc(p.captured.RequestHeaders, func(h captures.Header) bool { return strings.EqualFold(h.Name, name) }) {
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
