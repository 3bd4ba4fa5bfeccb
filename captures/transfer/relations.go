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
	// maxRelationKind is the longest name of a kind of relation, and captureIDSize the length of a capture's
	// id, in bytes.
	maxRelationKind = 64
	captureIDSize   = 16

	// maxWaiting limits the number of relations that wait for an exchange that comes later in an imported file.
	maxWaiting = 1 << 18
)

// Relations maps the ID of each exchange to its relations, such as that of a WebSocket to its handshake.
type Relations map[int64][]captures.Relation

// LoadRelations reads all relations of a capture into memory.
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

// Handshake returns the ID of the exchange that opened a WebSocket, or 0 if it is unknown.
func (all Relations) Handshake(id int64) int64 {
	for _, r := range all[id] {
		if r.Kind == captures.HandshakeOf && r.Capture == "" {
			return r.Target
		}
	}
	return 0
}

// A Relation is the JSON form of a relation in an exported file, in which it belongs to an exchange.
type Relation struct {
	// Kind is the kind of relation, such as from a WebSocket to its handshake.
	Kind captures.RelationKind `json:"kind"`
	// Exchange is the number that the related exchange has in the file.
	Exchange int64 `json:"exchange"`

	// Capture is the id, in hex, of the capture that contains the target; "" if that is the file itself.
	Capture string `json:"capture,omitempty"`
}

// JSON returns the relations of an exchange in their JSON form.
func (all Relations) JSON(id int64) []Relation {
	var list []Relation
	for _, r := range all[id] {
		list = append(list, Relation{r.Kind, r.Target, hex.EncodeToString([]byte(r.Capture))})
	}
	return list
}

// Check returns an error if a member of the relation is invalid.
func (r Relation) Check() error {
	switch id, err := hex.DecodeString(r.Capture); {
	case r.Kind == "" || len(r.Kind) > maxRelationKind:
		return fmt.Errorf("kind: %q is not a known kind of relation", Clip(string(r.Kind)))
	case r.Exchange <= 0:
		return fmt.Errorf("exchange: the number %d is out of range", r.Exchange)
	case err != nil || len(id) != 0 && len(id) != captureIDSize:
		return fmt.Errorf("capture: %q is not the id of a capture", Clip(r.Capture))
	}
	return nil
}

// A Relater records the relations of imported exchanges. It translates the exchange numbers in the file to the
// IDs that the capture assigned.
//
// Shape: files may be concatenated, so a number that occurs again begins another file.
type Relater struct {
	// to is the capture in which the relations are recorded.
	to captures.Target
	// numbers maps an exchange's number in the file to its ID in the capture.
	numbers map[int64]int64

	// waiting are relations whose target comes later in the file, indexed by the target's number in the file.
	waiting map[int64][]waitingRelation
	// freeSlots is the number of further relations that may wait for their targets.
	freeSlots int
}

// A waitingRelation is a relation whose target was not imported yet. exchange is the ID of the exchange that
// has it, and place its position in the file.
type waitingRelation struct {
	// exchange is the ID, in the capture, of the exchange that has the relation.
	exchange int64
	// kind is the kind of relation, such as from a WebSocket to its handshake.
	kind captures.RelationKind
	// place is the position of the exchange in the file, for error messages.
	place string
}

// NewRelater returns a Relater that records relations in a capture.
func NewRelater(to captures.Target) *Relater {
	return &Relater{to, make(map[int64]int64), make(map[int64][]waitingRelation), maxWaiting}
}

// Add registers that the exchange with a number in the file was recorded under the ID id, and records its
// relations. Each of them must be valid (see Check). place is the exchange's position in the file, for problems
// in rep. A repeated number belongs to the next of several concatenated files.
func (r *Relater) Add(rep *Report, place string, number, id int64, relations []Relation) {
	if _, again := r.numbers[number]; again {
		r.Finish(rep)
		clear(r.numbers)
	}
	if number != 0 {
		r.numbers[number] = id
	}

	// Earlier exchanges may have been waiting for this one.
	for _, w := range r.waiting[number] {
		r.to.Relate(captures.Relation{Exchange: w.exchange, Kind: w.kind, Target: id})
	}
	r.freeSlots += len(r.waiting[number])
	delete(r.waiting, number)

	// A target may be in another capture, earlier or later in this file.
	for _, rel := range relations {
		capture, _ := hex.DecodeString(rel.Capture)
		target, known := r.numbers[rel.Exchange]
		switch {
		case len(capture) > 0:
			r.to.Relate(captures.Relation{Exchange: id, Kind: rel.Kind, Capture: string(capture), Target: rel.Exchange})
		case known:
			r.to.Relate(captures.Relation{Exchange: id, Kind: rel.Kind, Target: target})
		case r.freeSlots == 0:
			rep.Problem(place, "relations: left out, because more than %d refer to later exchanges", maxWaiting)
		default:
			r.freeSlots--
			r.waiting[rel.Exchange] = append(r.waiting[rel.Exchange], waitingRelation{id, rel.Kind, place})
		}
	}
}

// Finish reports the relations whose target does not occur in the file.
func (r *Relater) Finish(rep *Report) {
	for _, number := range slices.SortedFunc(maps.Keys(r.waiting), cmp.Compare) {
		for _, w := range r.waiting[number] {
			rep.Problem(w.place, "relations: the file lacks the related exchange %d (%s)", number, Clip(string(w.kind)))
		}
	}
	clear(r.waiting)
	r.freeSlots = maxWaiting
}
