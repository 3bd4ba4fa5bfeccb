package replay

import (
	"net/url"
	"strings"

	"unwire/captures"
	"unwire/decode"
	"unwire/replay/outbound"
)

// An Append is the call of its own that carries a frame of a conversation in pieces.
type Append struct {
	Exchange int64            `json:"exchange"` // the captured one
	Method   string           `json:"method"`
	URL      string           `json:"url"`
	Headers  captures.Headers `json:"headers"`
	Number   int64            `json:"append_seqno"`

	carrier
}

// A splitting is how a conversation in pieces is sent: one call asks for the
// server's half, and each frame up is the message in a call of its own.
//
// Source: RESEARCH.md#sse-fallback
type splitting struct {
	id   string // of the request, fresh: all pieces have it
	head carrier
	// further calls that asked for the server's half, in their order
	polls   []*Append
	appends map[int]*Append // by the number of the captured frame up
}

// A carrier is a captured request around a message.
type carrier struct {
	call     decode.Call
	frame    PlanFrame // as captured
	url      *url.URL  // with the secrets
	headers  captures.Headers
	trailers captures.Headers
	kept     captures.Headers // as they are recorded
	shown    captures.Headers // trailers
	http     string
}

// isLocal reports whether all appends stay on this machine.
func (s *splitting) isLocal() bool {
	for _, a := range s.polls {
		if !outbound.IsLoopback(strings.ToLower(a.url.Hostname())) {
			return false
		}
	}
	for _, a := range s.appends {
		if !outbound.IsLoopback(strings.ToLower(a.url.Hostname())) {
			return false
		}
	}
	return true
}

// targets are all URLs that a plan sends to.
func (p *Plan) targets() []*url.URL {
	list := []*url.URL{p.url}
	if p.split != nil {
		for _, a := range p.split.polls {
			list = append(list, a.url)
		}
	}
	for i := range p.shown.Frames {
		if a := p.shown.Frames[i].Append; a != nil {
			list = append(list, a.url)
		}
	}
	return list
}
