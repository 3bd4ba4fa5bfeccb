package transfer

import (
	"cmp"
	"context"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"

	"unwire/captures"
)

const (
	// maxRelationKind and captureIDSize bound the members of a relation, in bytes.
	maxRelationKind = 64
	captureIDSize   = 16

	// maxWaiting limits the relations to exchanges that come later.
	maxWaiting = 1 << 18
)

// Relations are how the exchanges of a capture are related, by exchange.
type Relations map[int64][]captures.Relation

// LoadRelations reads the relations of a capture.
//
// Limits: those of the capture.
func LoadRelations(ctx context.Context, src Source) (Relations, error) {
	list, err := src.Relations(ctx, 0)
	if err != nil {
		return nil, err
	}
	all := make(Relations)
	for _, r := range list {
		all[r.Exchange] = append(all[r.Exchange], r)
	}
	return all, nil
}

// Handshake returns the exchange that opened a WebSocket, or 0 if that is not known.
func (all Relations) Handshake(id int64) int64 {
	for _, r := range all[id] {
		if r.Kind == captures.HandshakeOf && r.Capture == "" {
			return r.Target
		}
	}
	return 0
}

// A Relation is the JSON form of a relation: its kind, and the exchange of the file that it
// leads to.
type Relation struct {
	Kind     captures.RelationKind `json:"kind"`
	Exchange int64                 `json:"exchange"`

	// Capture is the id of the exchange's capture in hex; "" is the file's own.
	Capture string `json:"capture,omitempty"`
}

// JSON returns the relations of an exchange as files have them.
func (all Relations) JSON(id int64) []Relation {
	var list []Relation
	for _, r := range all[id] {
		list = append(list, Relation{r.Kind, r.Target, hex.EncodeToString([]byte(r.Capture))})
	}
	return list
}

// Check reports what a relation may not say.
func (r Relation) Check() error {
	switch id, err := hex.DecodeString(r.Capture); {
	case r.Kind == "" || len(r.Kind) > maxRelationKind:
		return fmt.Errorf("kind: %q is none", Clip(string(r.Kind)))
	case r.Exchange <= 0:
		return fmt.Errorf("exchange: %d", r.Exchange)
	case err != nil || len(id) != 0 && len(id) != captureIDSize:
		return fmt.Errorf("capture: %q is no id of one", Clip(r.Capture))
	}
	return nil
}

// A Relater relates exchanges that are imported as they were in their file, where they had
// other numbers.
//
// Shape: files may be joined, so a number that comes again begins another file.
type Relater struct {
	to      captures.Target
	numbers map[int64]int64 // in the capture, by those in the file

	// waiting are relations to exchanges that have not come yet, left how many more there
	// may be.
	waiting map[int64][]waitingRelation
	left    int
}

// A waitingRelation is one whose target is not known.
type waitingRelation struct {
	exchange int64
	kind     captures.RelationKind
	place    string
}

// NewRelater returns a Relater that records to a capture.
func NewRelater(to captures.Target) *Relater {
	return &Relater{to, make(map[int64]int64), make(map[int64][]waitingRelation), maxWaiting}
}

// Add notes that exchange number of the file was recorded under an id, and records its
// relations, which must have passed Check.
func (r *Relater) Add(rep *Report, place string, number, id int64, relations []Relation) {
	if _, again := r.numbers[number]; again {
		r.Finish(rep)
		clear(r.numbers)
	}
	if number != 0 {
		r.numbers[number] = id
	}
	for _, w := range r.waiting[number] {
		r.to.Relate(captures.Relation{Exchange: w.exchange, Kind: w.kind, Target: id})
	}
	r.left += len(r.waiting[number])
	delete(r.waiting, number)

	for _, rel := range relations {
		capture, _ := hex.DecodeString(rel.Capture)
		target, known := r.numbers[rel.Exchange]
		switch {
		case len(capture) > 0:
			r.to.Relate(captures.Relation{Exchange: id, Kind: rel.Kind, Capture: string(capture), Target: rel.Exchange})
		case known:
			r.to.Relate(captures.Relation{Exchange: id, Kind: rel.Kind, Target: target})
		case r.left == 0:
			rep.Problem(place, "relations: left out: more than %d are to exchanges that come later", maxWaiting)
		default:
			r.left--
			r.waiting[rel.Exchange] = append(r.waiting[rel.Exchange], waitingRelation{id, rel.Kind, place})
		}
	}
}

// Finish reports the relations to exchanges that never came.
func (r *Relater) Finish(rep *Report) {
	for _, number := range slices.SortedFunc(maps.Keys(r.waiting), cmp.Compare) {
		for _, w := range r.waiting[number] {
			rep.Problem(w.place, "relations: exchange %d, to which it is related (%s), is not in the file", number, Clip(string(w.kind)))
		}
	}
	clear(r.waiting)
	r.left = maxWaiting
}
