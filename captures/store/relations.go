package store

import (
	"context"

	"unwire/captures"
	"unwire/captures/store/internal/schema"
)

const (
	// maxRelations is how many relations are read of one exchange.
	maxRelations = 10_000

	// maxAllRelations is how many are read of all exchanges together.
	maxAllRelations = 1_000_000
)

// Relations returns how an exchange is related to others: what it is to them, and what
// they are to it. With an id of 0 it returns the relations of all exchanges.
//
// Limits: 10,000 relations, 1,000,000 of all exchanges. Errors: ErrDamaged.
func (s *Store) Relations(ctx context.Context, id int64) ([]captures.Relation, error) {
	if s.format < schema.WithSegments {
		return nil, nil
	}
	where, limit := `?1 = 0`, maxAllRelations
	if id != 0 {
		where, limit = `exchange = ?1 OR target = ?1 AND length(capture) = 0`, maxRelations
	}
	var list []captures.Relation
	err := s.page(ctx, func(c *rowValues) bool {
		list = append(list, captures.Relation{Exchange: c.int(), Kind: captures.RelationKind(c.text()), Capture: string(c.bytes()), Target: c.int()})
		return c.err == nil
	}, `SELECT exchange, kind, capture, target FROM relations
		WHERE `+where+` ORDER BY n LIMIT ?2`, id, limit)
	if err != nil {
		return nil, err
	}
	return list, nil
}

// Relate records how an exchange of the store is related to another one. Both must have
// begun.
func (s *Store) Relate(r captures.Relation) {
	_ = s.writer.put(op{rel: &r}) // Store.Err keeps the error
}
