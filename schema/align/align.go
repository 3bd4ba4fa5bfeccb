// Package align joins the names of JSON to the numbers of protobuf. Pairs of bodies go
// in, the same message in both codecs, and a Report comes out, which can be parsed again
// and made a descriptor set.
//
// The same message in both codecs has the same fields with the same values, so over some
// pairs each number has one name that it can have. A pair is a bipartite graph, numbers
// against names, with an edge where presence and value allow it in every pair; the true
// assignment is one of its perfect matchings. A join is an edge that all of them have.
// What could be exchanged without any pair contradicting it is left in doubt.
//
// Calls finds the pairs among the calls of captures. Instances are the messages of one
// type in all pairs. Candidates are the fields and members that could be the same one, as
// far as no instance contradicts it. The solver finds them for each type, and takes the
// matching from there.
//
// A field and a member are in agreement if some type reads both as the same value; a
// typeset holds the types that do, among them the scalar and the well-known ones.
//
// A body that is not the same data in both halves, such as an answer with a time in it,
// proves nothing as a whole. Of such a body only values of significance count, which are
// long and occur once on either side.
//
// Source: schema/README.md#align
package align

import (
	"errors"
	"fmt"
	"slices"

	"google.golang.org/protobuf/reflect/protoreflect"

	"unwire/decode/wire"
)

// Bounds of what an Aligner holds.
const (
	maxPairs     = 2000
	maxPositions = 20_000
	maxBodyBytes = 4 << 20
	maxNodes     = 1 << 18

	// of one position
	maxInstances = 4096

	// different numbers, or names, of one position
	maxBoard = 512

	// exchangeable fields that are told apart by what is in them
	maxRefinement = 16

	// addresses of a join
	maxEvidence = 8
)

// errLimit is wrapped where a pair is beyond a bound.
var errLimit = errors.New("beyond the limits of align")

// A dataPair is one message in both codecs.
type dataPair struct {
	// full name of its type, or one made from its method
	Message string

	// where definitions know it, for the names of types in it; may be nil
	Type  protoreflect.MessageDescriptor
	Proto []byte
	JSON  []byte

	// addresses of both
	Evidence [2]string
}

// An Aligner collects pairs. The zero value is ready. It is not for several
// goroutines at once.
//
// Shape: the order of pairs, and the way in which they were split over
// Aligners that were merged, does not matter. A pair that comes again counts once.
type Aligner struct {
	pairs map[string]dataPair // by content
}

// addPair takes a pair.
//
// Limits: 2,000 pairs, 4 MiB a body.
// Errors: ErrLimit.
func (a *Aligner) addPair(p dataPair) error {
	if a.pairs == nil {
		a.pairs = map[string]dataPair{}
	}
	key := fmt.Sprintf("%s\x00%d\x00%s%s", p.Message, len(p.Proto), p.Proto, p.JSON)
	if old, ok := a.pairs[key]; ok {
		if slices.Compare(old.Evidence[:], p.Evidence[:]) > 0 {
			a.pairs[key] = p
		}
		return nil
	}
	if len(a.pairs) == maxPairs || len(p.Proto) > maxBodyBytes || len(p.JSON) > maxBodyBytes {
		return fmt.Errorf("align: %s, %s: %w", p.Evidence[0], p.Evidence[1], errLimit)
	}
	a.pairs[key] = p
	return nil
}

func (a *Aligner) sorted() []dataPair {
	out := make([]dataPair, 0, len(a.pairs))
	for _, p := range a.pairs {
		out = append(out, p)
	}
	slices.SortFunc(out, func(x, y dataPair) int {
		return slices.Compare([]string{x.Message, x.Evidence[0], x.Evidence[1], string(x.Proto), string(x.JSON)},
			[]string{y.Message, y.Evidence[0], y.Evidence[1], string(y.Proto), string(y.JSON)})
	})
	return out
}

// newBody parses a pair.
//
// Errors: where one half is not what it should be.
func newBody(p dataPair) (*body, error) {
	v, err := parseJSON(p.JSON)
	if err != nil {
		return nil, err
	}
	if v.kind != object {
		return nil, errors.New("the JSON is no object")
	}
	t := wire.Parse(p.Proto, wire.Options{MaxDepth: maxDepth, MaxNodes: maxNodes})
	if err := t.Err(); err != nil {
		return nil, err
	}
	return &body{proto: t, json: v, left: maxComparisons, feasible: map[at]mode{}, sure: map[at]int{}}, nil
}

func (b *body) root() at { return at{b.proto, 0, b.json} }

// Same reports whether a message and a JSON object can be the same data.
//
// Errors: where one of them is malformed.
func Same(proto, json []byte) (bool, error) {
	b, err := newBody(dataPair{Proto: proto, JSON: json})
	if err != nil {
		return false, err
	}
	return b.agree(b.root()) != differs, nil
}

// alikeData reports whether a message and a JSON object, where they are not the
// same data, have values in common that are none by chance.
//
// Errors: where one of them is malformed.
func alikeData(proto, json []byte) (bool, error) {
	b, err := newBody(dataPair{Proto: proto, JSON: json})
	if err != nil {
		return false, err
	}
	return b.agree(b.root()) != differs || b.overlap(b.root()) >= sureBits, nil
}
