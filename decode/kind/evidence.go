package kind

import (
	"errors"
	"fmt"
	"slices"

	"unwire/decode/wire"
)

// Bounds of the evidence. Real schemas stay far below: the largest message
// known has 300 fields, the deepest object 20 levels. Fields with the smallest
// (depth, path) are kept, so what is kept does not depend on the order of input.
const (
	maxFields = 100_000 // in all
	MaxDepth  = 48      // levels of nesting below the root
	maxRoots  = 4096
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
// roots. Beyond that the fields with the greatest depth and numbers are forgotten and
// Truncated says so; only then can the order of input show, through fields that were kept
// for a while below a payload that a later sample proves to be no message.
type Evidence struct {
	roots   map[string]*Message
	count   int  // fields in all, vetoed subtrees taken off
	cut     *key // fields after it were forgotten; nil while nothing was
	scratch scratch
}

// NewEvidence returns evidence of nothing.
func NewEvidence() *Evidence {
	return &Evidence{roots: map[string]*Message{}}
}

// Add enters one serialized message of the named root type.
//
// Errors: data that is no protobuf message is not entered, and the error says
// where it stopped being one.
func (e *Evidence) Add(root string, data []byte) error {
	t := &e.scratch.tree
	t.Reset(data, wire.Options{MaxDepth: MaxDepth})
	return e.AddTree(root, t)
}

// AddTree is Add for a message that is parsed.
func (e *Evidence) AddTree(root string, t *wire.Tree) error {
	for i := range t.Nodes {
		if err := t.Nodes[i].Err; err != nil && t.Nodes[i].Type != wire.Len {
			at := len(t.Data)
			if bad, ok := errors.AsType[*wire.Error](err); ok {
				at = bad.Off
			}
			return fmt.Errorf("kind: a sample of %s is no protobuf message: stops at 0x%x of 0x%x: %w", root, at, len(t.Data), err)
		}
	}
	m := e.roots[root]
	if m == nil {
		if len(e.roots) >= maxRoots {
			return fmt.Errorf("kind: more than %d root types: %s is left out", maxRoots, root)
		}
		m = &Message{}
		e.roots[root] = m
	}
	e.scratch.root = root
	e.scratch.sample++
	e.scratch.samplingLevel = samplingLevel(t.Data)
	e.addMessage(m, t, 0, e.scratch.path[:0])
	if e.count > 2*maxFields {
		e.trim()
	}
	return nil
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

// Root returns the evidence of the named root type, or nil.
func (e *Evidence) Root(name string) *Message { return e.roots[name] }

// Fields returns how many fields there is evidence of, message fields within
// payloads included.
func (e *Evidence) Fields() int { return e.count }
