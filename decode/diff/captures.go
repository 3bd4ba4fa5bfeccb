package diff

import (
	"cmp"
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
// Limits: those of pairing. Both exchanges of a pair are in memory, and up to 16 MiB of small ones of each capture.
//
// Errors: a capture that cannot be read. If that happens while pairs are compared, the previous results are
// returned.
func Captures(ctx context.Context, a, b captures.Capture, o Options) ([]CallChanges, error) {
	// First read both captures for sketches, then decode one pair at a time.
	p := newPairing()
	callsOfA, callsOfB := newCalls(ctx, a), newCalls(ctx, b)
	if err := eachCall(ctx, a, func(name string, ex *decode.Exchange) { p.addA(name, ex); callsOfA.keep(ex) }); err != nil {
		return nil, err
	}
	if err := eachCall(ctx, b, func(name string, ex *decode.Exchange) { p.addB(name, ex); callsOfB.keep(ex) }); err != nil {
		return nil, err
	}

	exchangeOfA := func(id int64) (*decode.Exchange, error) { return callsOfA.decode(ctx, id) }
	exchangeOfB := func(id int64) (*decode.Exchange, error) { return callsOfB.decode(ctx, id) }
	if err := cmp.Or(p.complete(0, exchangeOfA), p.complete(1, exchangeOfB)); err != nil {
		return nil, err
	}

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
			inA, err := exchangeOfA(pair.a)
			if err != nil {
				return list, err
			}
			inB, err := exchangeOfB(pair.b)
			if err != nil {
				return list, err
			}
			call.Call, call.Changes = inA.Call, Exchanges(inA, inB, o)
		}
		if len(call.Changes) > 0 {
			list = append(list, call)
		}
	}
	return list, nil
}

const (
	// maxKept limits the size in bytes of the calls of a capture that are kept for the comparison.
	maxKept = 16 << 20
	// keptSize is the size in bytes of a kept call without frames, and treeSize that of a frame's tree for each byte.
	keptSize = 2 << 10
	treeSize = 64
)

// calls decodes the calls of a capture. It keeps small ones, because reading a small call takes longer than comparing it.
type calls struct {
	// src is the capture.
	src captures.Capture
	// options are the options for decoding a call that was not kept.
	options decode.Options
	// kept are the kept calls by their IDs, and left the number of bytes that may still be kept.
	kept map[int64]*decode.Exchange
	left int
}

// newCalls returns the calls of a capture.
func newCalls(ctx context.Context, src captures.Capture) *calls {
	return &calls{src: src, options: decode.Options{NoChoices: !decode.HasChoices(ctx, src)}, kept: map[int64]*decode.Exchange{}, left: maxKept}
}

// keep keeps a decoded call, if it is not too large.
func (c *calls) keep(ex *decode.Exchange) {
	size := keptSize + len(ex.URL)
	for _, list := range [...]captures.Headers{ex.RequestHeaders, ex.RequestTrailers, ex.ResponseHeaders, ex.ResponseTrailers} {
		for i := range list {
			size += len(list[i].Name) + len(list[i].Value)
		}
	}
	for i := range ex.Frames {
		size += keptSize + treeSize*(len(ex.Frames[i].Raw)+len(ex.Frames[i].Data))
	}
	if size <= c.left {
		c.kept[ex.ID] = ex
		c.left -= size
	}
}

// decode returns the call with an ID.
func (c *calls) decode(ctx context.Context, id int64) (*decode.Exchange, error) {
	if ex := c.kept[id]; ex != nil {
		return ex, nil
	}
	r, err := conversation.Resolve(ctx, c.src, id, false, c.options)
	return r.Exchange, err
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
