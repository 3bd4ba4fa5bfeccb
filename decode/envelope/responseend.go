package envelope

import (
	"net/http"
	"strconv"
	"strings"
)

// A ResponseEnd decides whether a response is whole although its transport has
// not said so. HTTP/2 marks the end of a message apart from its content
// (END_STREAM), so a client that has read all of the content may cancel the
// stream before the mark comes: it has lost nothing.
//
// A response to HEAD, and 204 and 304, are whole with their header section. A
// Connect stream and gRPC-Web are with the frame that ends them, any other with
// as many bytes as its content-length declares. gRPC never is, since its status
// is in trailers; nor is a response that announces trailers.
//
// Limits: gRPC-Web as text, and streams that are compressed as a whole, are
// never found whole.
//
// Source: RFC 9110, sections 6.4.1, 6.6.2 and 8.6; mitm/README.md#http2
type ResponseEnd struct {
	// Received is the length of the body so far.
	Received int64

	// Declared is the content-length, or -1 if it is not known.
	Declared int64

	bodiless bool

	// opaque is true if the end is not in the body, or cannot be seen there.
	opaque bool

	// endFlag is set in the prefix of a stream's last frame. It is 0 if the body has no
	// frames.
	endFlag Flags

	// prefix is that of the frame which is being read, and left is what is missing of
	// its payload.
	prefix PrefixReader
	flags  Flags
	left   uint32

	// ended is true once the last frame is whole, and beyond if bytes came after it.
	ended  bool
	beyond bool
}

// NewResponseEnd follows the final response to a request of a method; header returns
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

// AddBody adds bytes of the body.
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

// Complete reports whether nothing of the response is missing.
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
