package decode

import (
	"net/url"
	"strings"

	"unwire/captures"
)

// Classify tells from an exchange's method, URL and headers what it is.
//
// Shape: the response counts as soon as its headers are there: a call that is
// answered with text/event-stream is SSE, whatever it asked for.
// Source: RESEARCH.md#transports
func Classify(ex *captures.Exchange) Call {
	if ex.Transport != captures.HTTP {
		return classifyConnection(ex)
	}
	return classifyHTTP(ex)
}

// classifyHTTP is Classify for an exchange of HTTP.
func classifyHTTP(ex *captures.Exchange) Call {
	service, rpc := methodOf(ex.URL)
	req := mediaOf(ex.RequestHeaders.Get("content-type"))
	resp := mediaOf(ex.ResponseHeaders.Get("content-type"))
	c := Call{Protocol: req.protocol, Codec: req.codec, Service: service, RPC: rpc}
	query := queryOf(ex.URL)
	switch {
	case req.framed():
	case ex.Method == "GET" && service != "" && (query.Get("connect") == "v1" || query.Has("message") && query.Has("encoding")):
		c.Protocol, c.Codec = ConnectGet, query.Get("encoding")
	case service != "" && ex.Method == "POST" && isConnect(ex, req, service):
		c.Protocol = ConnectUnary
	case req.name == "" && resp.framed() && service != "":
		c.Protocol, c.Codec = resp.protocol, resp.codec
	default:
		c.Protocol = HTTP
	}
	if resp.protocol == SSE {
		c.Protocol = SSE
		// The events hold what the request's codec says, envelopes or not.
		if c.Codec == "" {
			c.Codec = req.codec
		}
	}
	if c.Codec == "" {
		c.Codec = resp.codec
	}
	if c.Protocol == HTTP || c.Protocol == SSE && !strings.Contains(service, ".") {
		c.Service, c.RPC = "", ""
	}
	return c
}

// classifyConnection is Classify for an exchange without HTTP. A WebSocket whose path names
// a package, a service and a method is taken for a call of it.
func classifyConnection(ex *captures.Exchange) Call {
	c := Call{Protocol: Protocol(ex.Transport)}
	service, rpc := methodOf(ex.URL)
	if ex.Transport == captures.WebSocket && strings.Contains(service, ".") {
		c.Service, c.RPC = service, rpc
	}
	return c
}

// isConnect tells a Connect unary call from any other POST. JSON alone proves
// nothing: without the version header the path must name a package too.
func isConnect(ex *captures.Exchange, req media, service string) bool {
	switch {
	case ex.RequestHeaders.Get("connect-protocol-version") != "":
		return true
	case req.name == "application/proto":
		return true
	case req.codec == "json" || req.codec == "proto":
		return strings.Contains(service, ".")
	}
	return false
}

// A media is what a content type says about a body.
type media struct {
	name     string // without parameters, in lower case
	protocol Protocol
	codec    string
}

// framed reports whether the body is a run of envelopes, in whatever clothing.
func (m media) framed() bool {
	switch m.protocol {
	case ConnectStream, GRPC, GRPCWeb, GRPCWebText:
		return true
	}
	return false
}

// framedTypes are the media types that stand for envelopes; +codec may follow.
var framedTypes = [...]struct {
	name     string
	protocol Protocol
}{
	{"application/connect", ConnectStream},
	{"application/grpc", GRPC},
	{"application/grpc-web", GRPCWeb},
	{"application/grpc-web-text", GRPCWebText},
}

func mediaOf(contentType string) media {
	name, _, _ := strings.Cut(contentType, ";")
	name = strings.ToLower(strings.TrimSpace(name))
	base, codec, plus := strings.Cut(name, "+")
	for _, f := range framedTypes {
		if base == f.name && (plus || f.protocol != ConnectStream) {
			if !plus {
				codec = "proto"
			}
			return media{name, f.protocol, codec}
		}
	}
	switch name {
	case "text/event-stream":
		return media{name, SSE, ""}
	case "application/proto", "application/protobuf", "application/x-protobuf", "application/vnd.google.protobuf", "application/x-google-protobuf":
		return media{name, HTTP, "proto"}
	}
	_, subtype, _ := strings.Cut(name, "/")
	return media{name, HTTP, subtype}
}

// methodOf returns the last two segments of a URL's path if they can name a
// service and its method; there may be a prefix before them.
func methodOf(rawURL string) (service, rpc string) {
	u, err := url.Parse(rawURL)
	if err != nil {
		return "", ""
	}
	parts := strings.Split(u.Path, "/")
	if len(parts) < 3 {
		return "", ""
	}
	service, rpc = parts[len(parts)-2], parts[len(parts)-1]
	if !isName(rpc) {
		return "", ""
	}
	for part := range strings.SplitSeq(service, ".") {
		if !isName(part) {
			return "", ""
		}
	}
	return service, rpc
}

// ServiceOf returns the full name of the service that a request with a method of HTTP and a
// URL may be a call of; "" if the URL names none in a package. Unlike Classify it needs no
// headers, so that not every request for which it returns a name is a call.
func ServiceOf(method, rawURL string) string {
	if method == "GET" && !strings.Contains(rawURL, "message=") {
		return ""
	}
	service, _ := methodOf(rawURL)
	if !strings.Contains(service, ".") {
		return ""
	}
	return service
}

// isName reports whether s is an identifier of a .proto file.
func isName(s string) bool {
	for i, r := range s {
		letter := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r == '_'
		if !letter && (i == 0 || r < '0' || r > '9') {
			return false
		}
	}
	return s != ""
}

func queryOf(rawURL string) url.Values {
	u, err := url.Parse(rawURL)
	if err != nil {
		return nil
	}
	return u.Query()
}
