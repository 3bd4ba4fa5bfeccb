package store

import (
	"context"

	"unwire/captures"
	"unwire/captures/store/internal/schema"
)

// maxRelations is how many relations are read of one exchange.
const maxRelations = 10_000

// Relations returns how an exchange is related to others: what it is to them, and what
// they are to it.
//
// Limits: 10,000 relations. Errors: ErrDamaged.
func (s *Store) Relations(ctx context.Context, id int64) ([]captures.Relation, error) {
	if s.format < schema.WithSegments {
		return nil, nil
	}
	var list []captures.Relation
	err := s.page(ctx, func(c *rowValues) bool {
		list = append(list, captures.Relation{Exchange: c.int(), Kind: captures.RelationKind(c.text()), Capture: string(c.bytes()), Target: c.int()})
		return c.err == nil
	}, `SELECT exchange, kind, capture, target FROM relations
		WHERE exchange = ?1 OR target = ?1 AND length(capture) = 0 ORDER BY n LIMIT ?2`, id, maxRelations)
	if err != nil {
		return nil, err
	}
	return list, nil
}
