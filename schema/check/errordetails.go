package check

import (
	"unwire/captures"
	"unwire/decode"
	"unwire/decode/envelope"
	"unwire/decode/wire"
)

// addEnd checks the error details in the message that ended a stream or a call.
func (k *Checker) addEnd(end *envelope.End) {
	if end == nil || end.Error == nil {
		return
	}
	for _, d := range end.Error.Details {
		k.details++
		md := k.resolveType(d.Type)
		if md == nil {
			continue
		}
		if _, ok := k.checkMessage(wire.Parse(d.Value, wire.Options{}), 0, k.info(md)); ok {
			k.detailsDecoded++
		}
	}
}

// addStatus checks the details of a gRPC status. It is in the trailers, or in the headers if the response has
// no body. Findings get the address of the exchange, because the status is not in a frame.
func (k *Checker) addStatus(ex *decode.Exchange) {
	switch ex.Protocol {
	case decode.GRPC, decode.GRPCWeb, decode.GRPCWebText:
	default:
		return
	}
	k.frame = func() string { return k.o.Address(ex, &decode.Frame{Dir: captures.Down, Seq: -1}, k.part) }
	for _, h := range []captures.Headers{ex.ResponseTrailers, ex.ResponseHeaders} {
		if end, _ := envelope.ParseStatus(h.Get); end != nil {
			k.addEnd(end)
			return
		}
	}
}
