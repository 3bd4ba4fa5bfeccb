package decode

import (
	"net/url"
	"strings"

	"unwire/captures"
)

// Classify determines the protocol, codec, service and method of an exchange from its HTTP method, URL and
// headers.
//
// Shape: the headers of the response take precedence once they exist: a call that is answered with
// text/event-stream is SSE, whatever the request announced.
//
// Source: RESEARCH.md#transports
func Classify(ex *captures.Exchange) Call {
	if ex.Transport != captures.HTTP {
		return classifyConnection(ex)
	}
	return classifyHTTP(ex)
}

// classifyHTTP determines protocol, codec, service and method of an exchange over HTTP from its headers and URL.
func classifyHTTP(ex *captures.Exchange) Call {
	service, rpc := methodOf(ex.URL)
	req := mediaOf(ex.RequestHeaders.Get("content-type"))
	resp := mediaOf(ex.ResponseHeaders.Get("content-type"))
	c := Call{Protocol: req.protocol, Codec: req.codec, Service: service, RPC: rpc}
	query := queryOf(ex.URL)

	// The request's content type is the strongest evidence, then the URL, then the response.
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

	c.applyStream(req, resp)

	// Without an RPC protocol the path is an ordinary one, even if it looks like a method.
	if c.Protocol == HTTP || !c.Protocol.isRPC() && !strings.Contains(service, ".") {
		c.Service, c.RPC = "", ""
	}
	return c
}

// applyStream corrects c by the response's content type: it sets the protocol if the response is a stream of SSE
// events, JSON lines or AWS events, and the codec if it is still unknown. req and resp are the parsed content
// types.
func (c *Call) applyStream(req, resp media) {
	switch resp.protocol {
	case SSE:
		c.Protocol = SSE
		// The events contain messages of the request's codec, with or without envelopes.
		if c.Codec == "" {
			c.Codec = req.codec
		}
	case ndjson, awsEvents:
		c.Protocol, c.Codec = resp.protocol, "json"
	}
	if c.Codec == "" {
		c.Codec = resp.codec
	}
}

// isRPC reports whether p is the protocol of an RPC framework, such as Connect or gRPC, and not plain HTTP, SSE,
// JSON lines or AWS events.
func (p Protocol) isRPC() bool {
	return p != HTTP && p != SSE && p != ndjson && p != awsEvents
}

// classifyConnection is Classify for an exchange without HTTP (WebSocket, TCP or TLS). A WebSocket counts as a call
// of a method if its path names a package, a service and a method.
func classifyConnection(ex *captures.Exchange) Call {
	c := Call{Protocol: Protocol(ex.Transport)}
	service, rpc := methodOf(ex.URL)
	if ex.Transport == captures.WebSocket && strings.Contains(service, ".") {
		c.Service, c.RPC = service, rpc
	}
	return c
}

// isConnect reports whether a POST request is a Connect unary call of a service. req is its parsed content type. A
// JSON body is weak evidence: without the version header, service must include a package.
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

// A media is a parsed Content-Type header.
type media struct {
	// name is the media type without parameters, in lower case.
	name string

	// protocol is the RPC protocol that the media type implies; HTTP if it implies none.
	protocol Protocol

	// codec is "proto", "json" or the media subtype.
	codec string
}

// framed reports whether a body of this media type consists of length-prefixed envelopes (Connect streams and
// gRPC), possibly in base64.
func (m media) framed() bool {
	switch m.protocol {
	case ConnectStream, GRPC, GRPCWeb, GRPCWebText:
		return true
	}
	return false
}

// framedTypes are the media types whose bodies consist of length-prefixed envelopes. A suffix +codec may follow
// them, as in "application/grpc+json".
var framedTypes = [...]struct {
	name     string
	protocol Protocol
}{
	{"application/connect", ConnectStream},
	{"application/grpc", GRPC},
	{"application/grpc-web", GRPCWeb},
	{"application/grpc-web-text", GRPCWebText},
}

// mediaOf parses the value of a content-type header.
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

	// Not framed: an event stream, or a single message.
	switch name {
	case "text/event-stream":
		return media{name, SSE, ""}
	case "application/vnd.amazon.eventstream":
		return media{name, awsEvents, "json"}
	case "application/x-ndjson", "application/ndjson", "application/jsonl", "application/x-jsonl", "application/jsonlines",
		"application/x-jsonlines", "application/json-seq", "application/stream+json", "application/x-json-stream":
		return media{name, ndjson, "json"}
	case "application/proto", "application/protobuf", "application/x-protobuf", "application/vnd.google.protobuf", "application/x-google-protobuf":
		return media{name, HTTP, "proto"}
	}
	_, subtype, _ := strings.Cut(name, "/")
	return media{name, HTTP, subtype}
}

// methodOf returns the last two segments of a URL's path if they are valid names of a service and a method.
// Segments before them are ignored, because servers may add a prefix.
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

// MethodOfURL returns the service and the method that a request may be a call of, judged by HTTP method and URL
// alone. It returns "" if the URL does not name a service within a package. Unlike Classify it has no headers to
// confirm that the request is a call.
func MethodOfURL(method, rawURL string) (service, rpc string) {
	if method == "GET" && !strings.Contains(rawURL, "message=") {
		return "", ""
	}
	if service, rpc = methodOf(rawURL); !strings.Contains(service, ".") {
		return "", ""
	}
	return service, rpc
}

// isName reports whether s is a valid identifier in a .proto file.
func isName(s string) bool {
	for i, r := range s {
		letter := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r == '_'
		if !letter && (i == 0 || r < '0' || r > '9') {
			return false
		}
	}
	return s != ""
}

// queryOf returns the query parameters of a URL; nil if the URL is malformed.
func queryOf(rawURL string) url.Values {
	u, err := url.Parse(rawURL)
	if err != nil {
		return nil
	}
	return u.Query()
}
