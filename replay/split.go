package replay

import (
	"net/url"
	"strings"

	"unwire/captures"
	"unwire/decode"
	"unwire/replay/outbound"
)

// An Append is the call that carries one frame of a conversation in pieces.
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

	carrier
}

// A splitting describes how a conversation in pieces is sent: one call requests the server's half,
// and each frame of the client is the message of its own call.
//
// Source: RESEARCH.md#sse-fallback
type splitting struct {
	// id is the fresh request id, which all pieces share.
	id   string
	head carrier
	// polls are further calls that requested the server's half, in order.
	polls []*Append
	// appends maps the numbers of captured frames to the calls that carry them.
	appends map[int]*Append
}

// A carrier is the captured call that carries one message of a split stream.
type carrier struct {
	call decode.Call
	// frame is the message as captured.
	frame PlanFrame
	// url is the URL of the call including secrets.
	url      *url.URL
	headers  captures.Headers
	trailers captures.Headers
	// kept are the headers as recorded.
	kept captures.Headers
	// shown are the headers with placeholders, for the description.
	shown captures.Headers
	http  string
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
