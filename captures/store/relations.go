package store

import (
	"context"

	"unwire/captures"
	"unwire/captures/store/internal/schema"
)

const (
	// maxRelations limits the relations that are read for one exchange.
	maxRelations = 10_000

	// maxAllRelations limits the relations that are read for all exchanges together.
	maxAllRelations = 1_000_000
)

// Relations returns the relations in which exchange id is either end, or those of all exchanges if id is 0.
//
// Limits: 10,000 relations of one exchange, 1,000,000 of all. Errors: ErrDamaged.
func (s *Store) Relations(ctx context.Context, id int64) ([]captures.Relation, error) {
	if s.format < schema.WithSegments {
		return nil, nil
	}
	where, limit := `?1 = 0`, maxAllRelations
	if id != 0 {
		where, limit = `exchange = ?1 OR target = ?1 AND length(capture) = 0`, maxRelations
	}
	var list []captures.Relation
	err := s.query(ctx, func(c *rowValues) bool {
		list = append(list, captures.Relation{Exchange: c.int(), Kind: captures.RelationKind(c.text()), Capture: string(c.bytes()), Target: c.int()})
		return c.err == nil
	}, `SELECT exchange, kind, capture, target FROM relations
		WHERE `+where+` ORDER BY n LIMIT ?2`, id, limit)
	if err != nil {
		return nil, err
	}
	return list, nil
}

// Relate links two exchanges of this store. Both must have begun. In r, Capture is the id of another capture if
// the target is not in this store.
func (s *Store) Relate(r captures.Relation) {
	// An error stops the recording; Store.Err returns it.
	_ = s.writer.enqueue(op{rel: &r})
}
