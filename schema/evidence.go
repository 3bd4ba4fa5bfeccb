package schema

import (
	"fmt"
	"slices"

	"unwire/captures"
	"unwire/decode"
	"unwire/decode/envelope"
	"unwire/decode/wire"
)

// Bounds of the evidence. Real schemas stay far below: the largest message
// known has 300 fields, the deepest object 20 levels. Fields with the smallest
// (depth, path) are kept, so what is kept does not depend on the order of input.
const (
	maxEvidenceFields = 100_000 // in all
	maxEvidenceDepth  = 48      // levels of nesting below the root
	maxRoots          = 4096
)

// Evidence is what was seen of every field of some root types, pooled over all
// samples: a value that merges. Adding samples in any order, or merging the
// evidence of parts in any order, gives the same evidence.
//
// A payload of a length-delimited field is entered under every hypothesis it
// does not refute by itself: text, bytes, packed numbers, and message, whose
// fields are followed. The choice between them is made by Infer, once.
//
// Limits: 100,000 fields (twice that between two tidyings), 48 levels, 4,096
// roots. Beyond that the fields with
// the greatest depth and numbers are forgotten and Truncated says so; only
// then can the order of input show, through fields that were kept for a while
// below a payload that a later sample proves to be no message.
type Evidence struct {
	roots   map[string]*message
	methods map[string]*methodEvidence
	count   int  // fields in all, vetoed subtrees taken off
	cut     *key // fields after it were forgotten; nil while nothing was
	scratch scratch
}

// NewEvidence returns evidence of nothing.
func NewEvidence() *Evidence {
	return &Evidence{roots: map[string]*message{}, methods: map[string]*methodEvidence{}}
}

// Add enters one serialized message of the named root type.
//
// Errors: data that is no protobuf message is not entered, and the error says
// where it stopped being one.
func (e *Evidence) Add(root string, data []byte) error {
	if at, ok := validate(data); !ok {
		return fmt.Errorf("schema: a sample of %s is no protobuf message: stops at 0x%x of 0x%x", root, at, len(data))
	}
	m := e.roots[root]
	if m == nil {
		if len(e.roots) >= maxRoots {
			return fmt.Errorf("schema: more than %d root types: %s is left out", maxRoots, root)
		}
		m = &message{}
		e.roots[root] = m
	}
	e.scratch.root = root
	e.add(m, data, nil)
	if e.count > 2*maxEvidenceFields {
		e.trim()
	}
	return nil
}

// AddFrame enters one message of a method, sent in the direction dir.
func (e *Evidence) AddFrame(service, rpc string, dir captures.Direction, t *wire.Tree) error {
	name := service + "/" + rpc
	if _, err := e.method(name); err != nil {
		return err
	}
	return e.Add(methodRoot(name, dir), t.Data)
}

// method makes room for the named method.
func (e *Evidence) method(name string) (*methodEvidence, error) {
	m := e.methods[name]
	if m == nil {
		if len(e.methods) >= maxRoots {
			return nil, fmt.Errorf("schema: more than %d methods: %s is left out", maxRoots, name)
		}
		m = newMethodEvidence()
		e.methods[name] = m
	}
	return m, nil
}

// AddExchange enters the protobuf messages of an exchange under its method:
// requests and responses are two root types. An exchange that is no RPC, or
// whose codec is not protobuf, is none of evidence's business.
//
// Errors: frames that are no protobuf message are left out and the first is
// named by the error; the others count.
func (e *Evidence) AddExchange(ex *decode.Exchange) error {
	if ex.Service == "" || ex.RPC == "" || ex.Codec != "proto" {
		return nil
	}
	name := ex.Service + "/" + ex.RPC
	m, err := e.method(name)
	if err != nil {
		return err
	}
	m.addExchange(ex)
	var first error
	for i := range ex.Frames {
		f := &ex.Frames[i]
		if !isMessageFrame(ex, f) {
			continue
		}
		if err := e.Add(methodRoot(name, f.Dir), f.Data); err != nil && first == nil {
			first = fmt.Errorf("%w (exchange %d, frame %s/%d)", err, ex.ID, f.Dir, f.Seq)
		}
	}
	return first
}

// isMessageFrame reports whether f carries a whole message: not an end of
// stream, and not the page that something on the way answers an error with.
func isMessageFrame(ex *decode.Exchange, f *decode.Frame) bool {
	return !isOther(ex, f) && !f.Partial && f.Err == nil
}

// isOther reports whether f is no message by what it says of itself.
func isOther(ex *decode.Exchange, f *decode.Frame) bool {
	return f.End != nil || f.Flags&(envelope.EndStream|envelope.Trailer) != 0 ||
		!f.Framed && f.Dir == captures.Down && ex.Status >= 400
}

// Truncated reports whether fields were forgotten for want of room.
func (e *Evidence) Truncated() bool { return e.cut != nil }

// Roots returns the names of the root types, sorted.
func (e *Evidence) Roots() []string {
	list := make([]string, 0, len(e.roots))
	for name := range e.roots {
		list = append(list, name)
	}
	slices.Sort(list)
	return list
}
