package replay

import (
	"slices"
	"strings"

	"unwire/captures"
)

// hopByHop are the header fields that belong to one connection, or that the
// transport writes itself.
var hopByHop = [...]string{
	"connection", "keep-alive", "proxy-authenticate", "proxy-authorization", "proxy-connection", "trailer",
	"transfer-encoding", "upgrade", "http2-settings", "expect", "host", "content-length",
}

// isHopByHop reports whether a header is not to be sent on. named are those
// that the connection header lists.
func isHopByHop(h captures.Header, named []string) bool {
	name := strings.ToLower(h.Name)
	if name == "te" {
		return !strings.EqualFold(strings.TrimSpace(h.Value), "trailers")
	}
	return strings.HasPrefix(name, ":") || slices.Contains(hopByHop[:], name) || slices.Contains(named, name)
}

// connectionNames are the fields that a connection header lists.
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

// buildHeaders makes the headers to be sent, and the same with references to
// the secrets in them, to be shown.
func (p *Plan) buildHeaders(r *refresher) {
	p.headers, p.Headers, p.kept = p.section(p.captured.RequestHeaders, r)
	p.trailers, p.Trailers, _ = p.section(p.captured.RequestTrailers, r)
}

// section makes the fields of a header or trailer section: as they are sent, as
// they are shown, and as they are recorded, with the captured placeholders.
func (p *Plan) section(captured captures.Headers, r *refresher) (sent, shown, kept captures.Headers) {
	named := connectionNames(captured)
	for _, h := range captured {
		if isHopByHop(h, named) {
			continue
		}
		value, display, keep := h.Value, h.Value, h.Value
		if isRedacted(h.Value) {
			var ok bool
			if value, display, ok = p.headerSecret(h, r); !ok {
				continue
			}
		} else if fresh, ok := r.header(h.Name, h.Value); ok {
			value, display, keep = fresh, fresh, fresh
			p.refreshed(h.Name)
		}
		sent = append(sent, captures.Header{Name: h.Name, Value: value})
		shown = append(shown, captures.Header{Name: h.Name, Value: display})
		kept = append(kept, captures.Header{Name: h.Name, Value: keep})
	}
	return sent, shown, kept
}

func (p *Plan) refreshed(name string) {
	if name = strings.ToLower(name); !slices.Contains(p.Refreshed, name) {
		p.Refreshed = append(p.Refreshed, name)
	}
}
