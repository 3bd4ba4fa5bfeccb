package envelope

import (
	"net/http"
	"strconv"
	"strings"
)

// A ResponseEnd decides whether a response is complete although its transport did not mark the end. HTTP/2 marks
// the end of a message separately from its content (END_STREAM). A client that has all the content may cancel
// the stream before the mark arrives, and nothing is lost.
//
// A response is complete: without a body (to HEAD, 204 and 304) after its headers; a Connect or gRPC-Web stream
// after the frame that ends it; any other response once content-length bytes have arrived. A gRPC response is
// never considered complete, because its status is in trailers. The same holds for a response that announces
// trailers.
//
// Limits: grpc-web-text, and streams that are compressed as a whole, are never considered complete.
//
// Source: RFC 9110, sections 6.4.1, 6.6.2 and 8.6; mitm/README.md#http2
type ResponseEnd struct {
	// Received is the number of body bytes received so far.
	Received int64

	// Declared is the value of the Content-Length header in bytes, or -1 without one.
	Declared int64

	// bodiless means that the response cannot have a body, because of its method or status.
	bodiless bool

	// opaque means that the end cannot be recognised, because the frames of the body cannot be read or do not mark
	// it.
	opaque bool

	// endFlag is the flag of a stream's last frame, or 0 if the body has no frames.
	endFlag Flags

	// prefix collects the 5 bytes (flags and length) before the payload of an envelope, the framing of Connect and
	// gRPC-Web streams.
	prefix PrefixReader

	// flags are the flags of the envelope that is being received.
	flags Flags

	// left is the number of bytes of the current envelope's payload that have not arrived yet.
	left uint32

	// ended means that the frame that ends the response is complete.
	ended bool

	// beyond means that bytes followed the frame that ends the response. Then the response is never considered
	// complete.
	beyond bool
}

// NewResponseEnd returns a ResponseEnd for the final response to a request with the given method. header returns
// the first value of a response header.
func NewResponseEnd(method string, status int, header func(name string) string) *ResponseEnd {
	e := &ResponseEnd{
		bodiless: method == http.MethodHead || status == http.StatusNoContent || status == http.StatusNotModified,
		opaque:   method == http.MethodConnect || header("trailer") != "",
		Declared: -1,
	}
	if n, err := strconv.ParseInt(strings.TrimSpace(header("content-length")), 10, 64); err == nil && n >= 0 && !e.bodiless {
		e.Declared = n
	}

	// The content type determines how the end of the body is marked.
	media, _, _ := strings.Cut(strings.ToLower(header("content-type")), ";")
	media = strings.TrimSpace(media)
	switch is := func(name string) bool { return media == name || strings.HasPrefix(media, name+"+") }; {
	case strings.HasPrefix(media, "application/connect+"):
		e.endFlag = EndStream
	case is("application/grpc-web"):
		e.endFlag = Trailer
	case is("application/grpc"), is("application/grpc-web-text"):
		e.opaque = true
	}
	if coding := header("content-encoding"); e.endFlag != 0 && coding != "" && !strings.EqualFold(coding, "identity") {
		e.opaque = true
	}
	return e
}

// AddBody processes the next bytes of the response body, which may contain the frame that ends the response.
func (e *ResponseEnd) AddBody(p []byte) {
	e.Received += int64(len(p))
	if e.endFlag == 0 {
		return
	}
	for len(p) > 0 {
		if e.ended {
			e.beyond = true
			return
		}

		n := int(min(int64(e.left), int64(len(p))))
		if e.left > 0 {
			e.left -= uint32(n)
		} else {
			var prefix Prefix
			var whole bool
			if n, prefix, whole = e.prefix.Feed(p); !whole {
				return
			}
			e.flags, e.left = prefix.Flags, prefix.Length
		}
		p = p[n:]
		e.ended = e.left == 0 && e.flags&e.endFlag != 0
	}
}

// Complete reports whether the response is complete, even if the transport has not marked its end.
func (e *ResponseEnd) Complete() bool {
	switch {
	case e.bodiless:
		return true
	case e.opaque:
		return false
	case e.endFlag != 0:
		return e.ended && !e.beyond && (e.Declared < 0 || e.Received == e.Declared)
	}
	return e.Declared >= 0 && e.Received == e.Declared
}
