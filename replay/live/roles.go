package live

import (
	"fmt"
	"slices"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"

	"unwire/captures"
	"unwire/decode"
)

// roles are the names of the two sides of an exchange in messages for the user. A Schedule sends the
// captured frames of one side to the other side, the peer.
type roles struct {
	// peer is the name of the other side, "server" or "client".
	peer string
	// out is the name of the direction that is sent, in that of the direction from the peer: "up" or
	// "down".
	out, in string
	// headers is the name of the peer's headers.
	headers string
	// headersFirst means that the peer's headers come before all messages.
	headersFirst bool
}

var (
	// The names if the client's or the server's frames are sent.
	asClient = roles{peer: "server", out: "up", in: "down", headers: "the response's headers"}
	asServer = roles{peer: "client", out: "down", in: "up", headers: "the request's headers", headersFirst: true}
)

// sent returns the name of the frame seq of the direction that is sent, such as "client frame 2".
func (r *roles) sent(seq int) string { return frameWords(fmt.Sprintf("%s/%d", r.out, seq)) }

// received returns the name of the frame seq of the direction from the peer, such as "server frame 4".
func (r *roles) received(seq int) string { return frameWords(fmt.Sprintf("%s/%d", r.in, seq)) }

// frameWords returns an address such as "down/4" in words: "server frame 4". Other texts are unchanged.
func frameWords(address string) string {
	name, number, ok := strings.Cut(address, "/")
	for _, dir := range [...]captures.Direction{captures.Up, captures.Down} {
		if ok && name == dir.String() {
			return dir.Sender() + " frame " + number
		}
	}
	return address
}

// NewServerLinks is NewLinks with the sides exchanged, for playing the server: a Schedule sends the
// server's frames, a Dialogue collects the client's, and a Binding is a value that the client issued.
// ex must come from Swap. types are the types of the captured messages by direction, if known.
func NewServerLinks(ex *decode.Exchange, types [2]protoreflect.MessageDescriptor) *Links {
	return newLinks(ex, [2]protoreflect.MessageDescriptor{types[captures.Down], types[captures.Up]}, asServer)
}

// Swap returns a copy of an exchange in which the client and the server have changed places.
func Swap(ex *decode.Exchange) *decode.Exchange {
	c := *ex
	c.RequestHeaders, c.ResponseHeaders = ex.ResponseHeaders, ex.RequestHeaders
	c.RequestTrailers, c.ResponseTrailers = ex.ResponseTrailers, ex.RequestTrailers
	c.Choices[0], c.Choices[1] = ex.Choices[1], ex.Choices[0]
	c.Frames = SwapFrames(ex.Frames)
	return &c
}

// SwapFrames returns copies of frames with opposite directions.
func SwapFrames(frames []decode.Frame) []decode.Frame {
	frames = slices.Clone(frames)
	for i := range frames {
		frames[i].Dir = captures.Up + captures.Down - frames[i].Dir
	}
	return frames
}
