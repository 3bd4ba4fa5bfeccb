package replay

import (
	"net/url"
	"strings"

	"unwire/captures"
	"unwire/decode"
	"unwire/replay/outbound"
)

// An Append is the HTTP call that carries one client frame of a split stream, i.e. of a stream that is
// sent as several calls.
type Append struct {
	// Exchange is the number of the captured exchange of this call.
	Exchange int64 `json:"exchange"`
	// Method is the HTTP method of the call.
	Method string `json:"method"`
	// URL is the URL to which the call is sent.
	URL string `json:"url"`
	// Headers are the headers of the call, with placeholders for secrets.
	Headers captures.Headers `json:"headers"`
	// Number is the sequence number of the append, from 0.
	Number int64 `json:"append_seqno"`

	// carrier has the captured call, and the URL and headers to send.
	carrier
}

// A splitting describes how a split stream is sent: one HTTP call requests the server's half, and each
// frame of the client is the message of its own call.
//
// Source: RESEARCH.md#sse-fallback
type splitting struct {
	// id is the newly generated request id, which all calls have in common.
	id string

	// head is the captured call that requests the server's half.
	head carrier
	// polls are further calls that request more of the server's half, in order.
	polls []*Append
	// appends maps the numbers of captured frames to the calls that carry them.
	appends map[int]*Append
}

// A carrier is a captured call of a split stream, with the message that it carries.
type carrier struct {
	// call is the captured call's method and protocol.
	call decode.Call
	// frame is the message as captured.
	frame PlanFrame
	// url is the URL of the call including secrets.
	url *url.URL

	// headers are the headers to send, including secrets.
	headers captures.Headers

	// trailers are the trailers to send, including secrets.
	trailers captures.Headers
	// kept are the headers as recorded in the output capture, with placeholders for secrets.
	kept captures.Headers
	// shown are the trailers for display, with placeholders for secrets.
	shown captures.Headers

	// http is the captured HTTP version.
	http string
}

// isLocal reports whether all append calls go to loopback addresses.
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

// targets returns all URLs to which the plan sends requests.
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
