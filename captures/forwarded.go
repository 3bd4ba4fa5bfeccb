package captures

import "time"

// An Edit is a change that unwire made to a body before forwarding it: instead of the received bytes from Start
// to End (exclusive), it forwarded Data.
//
// Shape: equal offsets insert Data, empty Data removes. The edits of a direction do not overlap; those that insert
// at the same offset are in the order in which they were forwarded.
type Edit struct {
	// Exchange is the ID of the exchange whose body was edited.
	Exchange int64

	// Dir is the direction of the edited body.
	Dir Direction

	// Start is the offset, in the received body, of the first byte that was replaced.
	Start int64
	// End is the offset, in the received body, after the last byte that was replaced; equal to Start for an
	// insertion.
	End int64

	// T is the time since Exchange.Started at which Data was forwarded.
	T time.Duration

	// Rule is the name of the rule that changed the body, or "intercept" if a user changed it by hand.
	Rule string

	// Data are the bytes that were forwarded instead of the received ones.
	Data []byte
}

// A ForwardedHead records the HTTP head (request line or status, and headers) that was forwarded after
// a rewriting rule changed it. Method and URL are set for a request, Status for a response.
type ForwardedHead struct {
	// Exchange is the ID of the exchange whose head was changed.
	Exchange int64

	// Dir is Up for the head of a request, Down for that of a response.
	Dir Direction

	// Rule is the name of the rule that changed the head.
	Rule string

	// Method is the HTTP method of the forwarded request; "" for a response.
	Method string
	// URL is the absolute URL of the forwarded request; "" for a response.
	URL string

	// Status is the HTTP status of a response; 0 for a request.
	Status int

	// Headers are the headers as forwarded.
	Headers Headers

	// Trailers are the trailers as forwarded; empty if there were none.
	Trailers Headers
}

// Shown selects, for an exchange that rules changed, whether the received or the forwarded bytes are shown.
type Shown string

const (
	// ShownReceived are the bytes as unwire received them, i.e. as the client and the server sent them.
	ShownReceived Shown = "received"

	// ShownForwarded are the bytes as unwire forwarded them, i.e. as the client and the server received them.
	ShownForwarded Shown = "forwarded"

	// ShownToServer are the request as forwarded and the response as received: what the server received and sent.
	ShownToServer Shown = "server"

	// ShownToClient are the request as received and the response as forwarded: what the client sent and received.
	ShownToClient Shown = "client"
)

// Rewritten describes an exchange whose request or response unwire changed before forwarding it.
type Rewritten struct {
	// Rules are the names of the rules that changed something, in alphabetical order; "intercept" is a change
	// by hand.
	Rules []string `json:"rules"`

	// Shown is which version of the bytes, received or forwarded, accompanies this description.
	Shown Shown `json:"shown"`
}
