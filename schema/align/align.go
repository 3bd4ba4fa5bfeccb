// Package align matches the field names of JSON with the field numbers of protobuf. If the same call was
// recorded in both encodings, its messages have the same fields with the same values, so the pairs reveal names
// for numbers.
//
// var calls align.Calls
// err := calls.AddCapture(ctx, "rec.uwc", capture, 0, false)
// var a align.Aligner
// unpaired, err := calls.Pair(&a)
// report := a.Solve() // report.Joins: message, number, name, type
//
// Pairs of bodies form a bipartite graph for each message type: numbers on one side, names on the other, and an
// edge where presence and value of both agree in every pair. The true assignment is one of the perfect matchings
// of this graph. A Join is an edge that all perfect matchings have; everything that could be exchanged without
// contradicting a pair is a Doubt. Strongly connected components (Tarjan 1972) find these edges.
//
// Calls finds the pairs among the calls of captures. Instances are all messages of one type in the pairs, and
// the solver processes the types from the outermost inwards.
//
// If the two bodies of a pair are not the same data, such as two answers with different times, the pair as a
// whole proves nothing. Then only significant values count: long ones that occur once on each side.
//
// The commands align and schema update use this package.
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

// Limits of an Aligner.
const (
	// maxPairs is the maximum number of message pairs (protobuf and JSON).
	maxPairs = 2000
	// maxPositions is the maximum number of message types.
	maxPositions = 20_000
	// maxBodyBytes is the maximum size of one message in one encoding, in bytes.
	maxBodyBytes = 4 << 20
	// maxNodes is the maximum number of fields, nested ones included, in a parsed protobuf body.
	maxNodes = 1 << 18

	// maxInstances is how many messages of one type are compared at most; further ones are ignored.
	maxInstances = 4096

	// maxMatrixSide is the maximum number of distinct field numbers, and of distinct JSON names, of one message
	// type.
	maxMatrixSide = 512

	// maxRefinement is the maximum size of a group of interchangeable fields that is resolved by comparing the
	// contents of nested messages.
	maxRefinement = 16

	// maxEvidence is the maximum number of frame addresses listed in a Join.
	maxEvidence = 8
)

// errLimit is wrapped by errors for message pairs and reports that exceed a limit.
var errLimit = errors.New("the input is too large for align")

// A dataPair is one message that was recorded twice: in protobuf and in JSON.
type dataPair struct {
	// Message is the full name of the message type, or a name derived from the RPC method.
	Message string

	// Type is the descriptor of the message type, which provides the names of nested types; nil if no
	// definitions have it.
	Type protoreflect.MessageDescriptor
	// Proto is the protobuf encoding of the message.
	Proto []byte
	// JSON is the JSON encoding of the message.
	JSON []byte

	// Evidence has the addresses (capture, exchange, frame) of the protobuf frame and of the JSON frame.
	Evidence [2]string
}

// An Aligner collects messages that were recorded both in protobuf and in JSON, and finds out which JSON name
// belongs to which protobuf field number. The zero value is empty. It is not safe for concurrent use.
//
// Shape: the result does not depend on the order of the pairs. A pair that is added again is counted once.
type Aligner struct {
	// pairs has the collected pairs. The key is a pair's content, so that duplicates are ignored.
	pairs map[string]dataPair
}

// addPair adds a message that was recorded in both encodings.
//
// Limits: 2,000 pairs, 4 MiB for a body.
// Errors: errLimit.
func (a *Aligner) addPair(p dataPair) error {
	if a.pairs == nil {
		a.pairs = map[string]dataPair{}
	}
	key := fmt.Sprintf("%s\x00%d\x00%s%s", p.Message, len(p.Proto), p.Proto, p.JSON)
	if old, ok := a.pairs[key]; ok {
		// Equal pairs count once. The smaller addresses win, so that the order does not matter.
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

// sorted returns the collected pairs in an order that depends on their content only.
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

// newBody parses both forms of a message.
//
// Errors: one of the two forms is malformed.
func newBody(p dataPair) (*body, error) {
	v, err := parseJSON(p.JSON)
	if err != nil {
		return nil, err
	}
	if v.kind != object {
		return nil, errors.New("the JSON is not an object")
	}
	t := wire.Parse(p.Proto, wire.Options{MaxDepth: maxDepth, MaxNodes: maxNodes})
	if err := t.Err(); err != nil {
		return nil, err
	}
	return &body{proto: t, json: v, comparisonsLeft: maxComparisons, agreements: map[messagePair]agreement{}, significance: map[messagePair]int{}}, nil
}

// root returns the outermost message together with the outermost JSON object.
func (b *body) root() messagePair { return messagePair{b.proto, 0, b.json} }

// Same reports whether a protobuf message and a JSON object can represent the same data.
//
// Errors: one of them is malformed.
func Same(proto, json []byte) (bool, error) {
	b, err := newBody(dataPair{Proto: proto, JSON: json})
	if err != nil {
		return false, err
	}
	return b.agree(b.root()) != differs, nil
}

// shareValues reports whether a protobuf message and a JSON object have more values in common than chance
// explains. They need not represent the same data.
//
// Errors: if one of them is malformed.
func shareValues(proto, json []byte) (bool, error) {
	b, err := newBody(dataPair{Proto: proto, JSON: json})
	if err != nil {
		return false, err
	}
	return b.agree(b.root()) != differs || b.overlap(b.root()) >= significantBits, nil
}
