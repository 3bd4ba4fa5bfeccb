package live

import (
	"slices"

	"google.golang.org/protobuf/reflect/protoreflect"

	"unwire/captures"
	"unwire/decode"
)

// roles are the words for the two sides of an exchange. A Schedule sends what one side has sent in the capture,
// to the other side, its peer.
type roles struct {
	// peer is the other side.
	peer string
	// out and in are the words for the directions of what is sent and what the peer sends.
	out, in string
	// headers names the peer's headers.
	headers string
	// headersFirst means that the peer's headers come before all messages.
	headersFirst bool
}

var (
	asClient = roles{peer: "server", out: "up", in: "down", headers: "the response's headers"}
	asServer = roles{peer: "client", out: "down", in: "up", headers: "the request's headers", headersFirst: true}
)

// NewServerLinks analyses a captured exchange for the side of the server: a Schedule sends the server's frames, a
// Dialogue collects the client's, and Binding is a value that the client issued. ex must come from Swap. types are
// the types of the captured messages by direction, if known.
func NewServerLinks(ex *decode.Exchange, types [2]protoreflect.MessageDescriptor) *Links {
	return newLinks(ex, [2]protoreflect.MessageDescriptor{types[captures.Down], types[captures.Up]}, asServer)
}

// Swap returns an exchange in which the client and the server have changed places. The original is unchanged.
func Swap(ex *decode.Exchange) *decode.Exchange {
	c := *ex
	c.RequestHeaders, c.ResponseHeaders = ex.ResponseHeaders, ex.RequestHeaders
	c.RequestTrailers, c.ResponseTrailers = ex.ResponseTrailers, ex.RequestTrailers
	c.Choices[0], c.Choices[1] = ex.Choices[1], ex.Choices[0]
	c.Frames = SwapFrames(ex.Frames)
	return &c
}

// SwapFrames returns frames with the opposite directions.
func SwapFrames(frames []decode.Frame) []decode.Frame {
	frames = slices.Clone(frames)
	for i := range frames {
		frames[i].Dir = captures.Up + captures.Down - frames[i].Dir
	}
	return frames
}
