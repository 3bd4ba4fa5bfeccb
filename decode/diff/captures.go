package diff

import (
	"context"
	"strings"

	"unwire/captures"
	"unwire/decode"
	"unwire/decode/conversation"
)

// CallChanges are the differences between the same call in two captures.
type CallChanges struct {
	// Name is the call's service and method or, for other HTTP, its HTTP method and URL.
	Name string

	// Nth is the number of the call among the calls of the same name, from 0.
	Nth int

	// Call is the classification of A's call. It is empty if only one capture has the call.
	Call decode.Call

	// Changes are the differences between the two calls.
	Changes []Change
}

// Captures pairs the calls of captures a and b that repeat the same call, and compares each pair. A call that only
// one capture has is a single change without a path. Calls without differences are omitted.
//
// Limits: those of pairing. Both exchanges of a pair are in memory.
//
// Errors: a capture that cannot be read. If that happens while pairs are compared, the previous results are
// returned.
func Captures(ctx context.Context, a, b captures.Capture, o Options) ([]CallChanges, error) {
	// First read both captures for sketches, then decode one pair at a time.
	p := newPairing()
	if err := eachCall(ctx, a, p.addA); err != nil {
		return nil, err
	}
	if err := eachCall(ctx, b, p.addB); err != nil {
		return nil, err
	}

	inCapture := [2]decode.Options{{NoChoices: !decode.HasChoices(ctx, a)}, {NoChoices: !decode.HasChoices(ctx, b)}}

	// A call that occurs in only one capture is one addition or removal; its frames are not decoded.
	var list []CallChanges
	for _, pair := range p.pairs() {
		call := CallChanges{Name: pair.name, Nth: pair.nth}
		switch {
		case pair.b == 0:
			call.Changes = []Change{{Op: Remove}}
		case pair.a == 0:
			call.Changes = []Change{{Op: Add}}
		default:
			inA, err := conversation.Resolve(ctx, a, pair.a, false, inCapture[0])
			if err != nil {
				return list, err
			}
			inB, err := conversation.Resolve(ctx, b, pair.b, false, inCapture[1])
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

// EachOfMethod decodes the calls of one method in a capture and calls do with each. method is the method's name,
// with or without its service.
func EachOfMethod(ctx context.Context, src captures.Capture, method string, do func(*decode.Exchange)) error {
	return eachCall(ctx, src, func(name string, ex *decode.Exchange) {
		if name == method || strings.HasSuffix(name, "/"+method) {
			do(ex)
		}
	})
}

// eachCall decodes the calls of a capture and calls do with each and its name; see CallChanges.Name.
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
