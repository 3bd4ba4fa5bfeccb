package rules

import (
	"unwire/captures"
	"unwire/decode"
	"unwire/decode/envelope"
	"unwire/mitm/rewrite"
)

// Failure returns an error as a server of the protocol of an exchange's request sends it: as an HTTP status with
// JSON, an end of stream, or trailers. Its Tail ends a response of which a part was sent already.
func Failure(ex *captures.Exchange, e envelope.Error) *rewrite.Response {
	return failureOf(ex, decode.Classify(ex), e)
}
