package captures

import (
	"encoding/binary"
	"net/http"
	"strconv"
	"strings"
)

const (
	frameHeaderSize = 5 // of a message in a stream: flags(1) length(4)

	connectEndFlag = 0x02 // of the frame that ends a Connect stream
	grpcWebEndFlag = 0x80 // of gRPC-Web's trailers
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
// Source: RFC 9110, sections 6.4.1, 6.6.2 and 8.6; RESEARCH.md#proxy
type ResponseEnd struct {
	bodiless bool
	opaque   bool  // its end is not in the body, or cannot be seen there
	declared int64 // -1: it is not known
	received int64

	endFlag byte // 0: the body has no frames
	header  []byte
	left    uint32 // of the frame that is being read
	ended   bool   // the last frame is whole
	beyond  bool   // bytes came behind it
}

// NewResponseEnd follows the final response to a request of a method.
func NewResponseEnd(method string, status int, h Headers) *ResponseEnd {
	e := &ResponseEnd{
		bodiless: method == http.MethodHead || status == http.StatusNoContent || status == http.StatusNotModified,
		opaque:   method == http.MethodConnect || h.Get("trailer") != "",
		declared: -1,
	}
	if n, err := strconv.ParseInt(strings.TrimSpace(h.Get("content-length")), 10, 64); err == nil && n >= 0 && !e.bodiless {
		e.declared = n
	}
	media, _, _ := strings.Cut(strings.ToLower(h.Get("content-type")), ";")
	media = strings.TrimSpace(media)
	switch is := func(name string) bool { return media == name || strings.HasPrefix(media, name+"+") }; {
	case strings.HasPrefix(media, "application/connect+"):
		e.endFlag = connectEndFlag
	case is("application/grpc-web"):
		e.endFlag = grpcWebEndFlag
	case is("application/grpc"), is("application/grpc-web-text"):
		e.opaque = true
	}
	if coding := h.Get("content-encoding"); e.endFlag != 0 && coding != "" && !strings.EqualFold(coding, "identity") {
		e.opaque = true
	}
	return e
}

// Add takes bytes of the body.
func (e *ResponseEnd) Add(p []byte) {
	e.received += int64(len(p))
	if e.endFlag == 0 {
		return
	}
	for len(p) > 0 {
		if e.ended {
			e.beyond = true
			return
		}
		n := 0
		if len(e.header) < frameHeaderSize {
			n = min(frameHeaderSize-len(e.header), len(p))
			if e.header = append(e.header, p[:n]...); len(e.header) < frameHeaderSize {
				return
			}
			e.left = binary.BigEndian.Uint32(e.header[1:])
		} else {
			n = int(min(int64(e.left), int64(len(p))))
			e.left -= uint32(n)
		}
		p = p[n:]
		if e.left == 0 {
			e.ended = e.header[0]&e.endFlag != 0
			e.header = e.header[:0]
		}
	}
}

// Whole reports whether nothing of the response is missing.
func (e *ResponseEnd) Whole() bool {
	switch {
	case e.bodiless:
		return true
	case e.opaque:
		return false
	case e.endFlag != 0:
		return e.ended && !e.beyond && (e.declared < 0 || e.received == e.declared)
	}
	return e.declared >= 0 && e.received == e.declared
}

// Length returns the length of the body so far and the one that is declared,
// which is -1 if none is.
func (e *ResponseEnd) Length() (received, declared int64) { return e.received, e.declared }
