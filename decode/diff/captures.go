package diff

import (
	"context"
	"strings"

	"unwire/captures"
	"unwire/decode"
	"unwire/decode/conversation"
)

// A CallChanges is the differences of a call in two captures.
type CallChanges struct {
	// Name is the call's method, or else its HTTP method and URL; Nth counts the
	// calls of that name.
	Name string
	Nth  int
	// Call is A's, where both captures have it.
	Call    decode.Call
	Changes []Change
}

// Captures pairs the calls of two captures and compares each pair. A call that only
// one of them has is one change, without a path.
//
// Limits: those of pairing; of a pair, both exchanges are held.
// Errors: where a capture cannot be read; of a damaged one while pairs are compared,
// with what was compared before.
func Captures(ctx context.Context, a, b captures.Capture, o Options) ([]CallChanges, error) {
	p := newPairing()
	if err := eachCall(ctx, a, p.addA); err != nil {
		return nil, err
	}
	if err := eachCall(ctx, b, p.addB); err != nil {
		return nil, err
	}

	var list []CallChanges
	for _, pair := range p.pairs() {
		call := CallChanges{Name: pair.name, Nth: pair.nth}
		switch {
		case pair.b == 0:
			call.Changes = []Change{{Op: Remove}}
		case pair.a == 0:
			call.Changes = []Change{{Op: Add}}
		default:
			inA, err := conversation.Resolve(ctx, a, pair.a, false, decode.Options{})
			if err != nil {
				return list, err
			}
			inB, err := conversation.Resolve(ctx, b, pair.b, false, decode.Options{})
			if err != nil {
				return list, err
			}
			call.Call, call.Changes = inA.Call, Exchanges(inA.Exchange, inB.Exchange, o)
		}
		if len(call.Changes) > 0 {
			list = append(list, call)
		}
	}
	return list, nil
}

// EachOfMethod decodes the calls of a capture that are of a method, named with its
// service or without.
func EachOfMethod(ctx context.Context, src captures.Capture, method string, do func(*decode.Exchange)) error {
	return eachCall(ctx, src, func(name string, ex *decode.Exchange) {
		if name == method || strings.HasSuffix(name, "/"+method) {
			do(ex)
		}
	})
}

// eachCall names and decodes the calls of a capture.
func eachCall(ctx context.Context, src captures.Capture, do func(name string, ex *decode.Exchange)) error {
	return conversation.EachWhole(ctx, src, false, func(ex *decode.Exchange) error {
		name := ex.Service + "/" + ex.RPC
		if ex.Service == "" {
			name = ex.Method + " " + ex.URL
		}
		do(name, ex)
		return nil
	})
}
