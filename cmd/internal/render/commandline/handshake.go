package commandline

import (
	"slices"
	"strings"

	"unwire/captures"
)

// upgradeHeaders are the headers of the connection with which a client opens a WebSocket over HTTP/1.1. The
// key is only echoed by the server, in a hash; a recorded one is kept.
//
// Source: RFC 6455, section 4.1
var upgradeHeaders = captures.Headers{
	{Name: "connection", Value: "Upgrade"},
	{Name: "upgrade", Value: "websocket"},
	{Name: "sec-websocket-version", Value: "13"},
	{Name: "sec-websocket-key", Value: "dGhlIHNhbXBsZSBub25jZQ=="},
}

// handshake returns the request in the form in which a tool can open its WebSocket: over HTTP/1.1, with the
// headers that this needs, and without the extension for compression, so that the server's messages are
// readable. note says what the tool does not do. Other requests are returned unchanged.
func (r *Request) handshake() (request *Request, note []string) {
	if !r.WebSocket {
		return r, nil
	}
	c := *r
	c.Method, c.HTTP, c.Body = "GET", "1.1", nil
	c.Headers = slices.DeleteFunc(slices.Clone(r.Headers), func(h captures.Header) bool {
		return slices.Contains([]string{"connection", "upgrade", "sec-websocket-extensions"}, strings.ToLower(h.Name))
	})
	for _, h := range upgradeHeaders {
		if c.Headers.Get(h.Name) == "" {
			c.Headers = append(c.Headers, h)
		}
	}
	return &c, []string{"it opens the WebSocket and prints the bytes that the server sends, and sends no messages: 'unwire replay' sends the recorded messages"}
}

// leftOut returns the headers that are left out of a request that is sent as it was recorded.
func (r *Request) leftOut() []string {
	if !r.WebSocket {
		return ofConnection
	}
	return slices.DeleteFunc(slices.Clone(ofConnection), func(name string) bool { return upgradeHeaders.Get(name) != "" })
}
