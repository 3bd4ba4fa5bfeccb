package store

import (
	"context"
	"iter"

	"unwire/captures"
	"unwire/captures/profile"
	"unwire/captures/store/internal/schema"
)

// bothDirections selects both directions of an exchange.
var bothDirections = [2]bool{true, true}

// A Forwarded is a view of a capture as unwire forwarded the traffic, i.e. with the changes of rules. It
// implements captures.Source. ReadOptions.Forwarded has the same effect for a capture that is open for reading.
type Forwarded struct {
	// from is the capture that is viewed.
	from *Store
}

// Forwarded returns a view of the capture in which rules have been applied: the data as it was
// forwarded, not as received.
func (s *Store) Forwarded() *Forwarded { return &Forwarded{s} }

// Profile returns the profile of the recorded service.
func (f *Forwarded) Profile() *profile.Profile { return f.from.Profile() }

// Exchange returns an exchange with the heads and the sizes that were forwarded.
func (f *Forwarded) Exchange(ctx context.Context, id int64) (*captures.Exchange, error) {
	ex, err := f.from.receivedExchange(ctx, id)
	if err != nil {
		return nil, err
	}
	return ex, f.from.applyHeads(ctx, ex, bothDirections)
}

// Chunks yields the chunks of an exchange with the edits applied. A replacement is part of the chunk in which
// the replaced range begins; a chunk of which nothing was forwarded is omitted.
func (f *Forwarded) Chunks(ctx context.Context, id, fromSeq int64) iter.Seq2[captures.Chunk, error] {
	return f.from.forwardedChunks(ctx, id, fromSeq, bothDirections)
}

// Rewritten returns which rules changed an exchange, and which version of the bytes this Store shows; nil if no
// rule changed it.
//
// Errors: ErrDamaged.
func (s *Store) Rewritten(ctx context.Context, id int64) (*captures.Rewritten, error) {
	if s.format < schema.WithSegments {
		return nil, nil
	}
	r := &captures.Rewritten{Shown: captures.ShownReceived}
	switch s.forwarded {
	case bothDirections:
		r.Shown = captures.ShownForwarded
	case [2]bool{true, false}:
		r.Shown = captures.ShownToServer
	case [2]bool{false, true}:
		r.Shown = captures.ShownToClient
	}
	err := s.query(ctx, func(c *rowValues) bool {
		r.Rules = append(r.Rules, c.text())
		return c.err == nil
	}, `SELECT DISTINCT rule FROM (SELECT rule FROM edits WHERE exchange = ?1 UNION SELECT rule FROM forwarded_heads WHERE exchange = ?1)
		ORDER BY rule LIMIT ?2`, id, maxRewritingRules)
	if err != nil || len(r.Rules) == 0 {
		return nil, err
	}
	return r, nil
}

// maxRewritingRules limits the number of rules that Rewritten names.
const maxRewritingRules = 1000

// maxEditedExchanges limits the number of exchanges in the result of EditedExchanges.
const maxEditedExchanges = 10_000_000

// EditedExchanges returns the IDs of the exchanges in which a rule changed a body or head before it was
// forwarded.
//
// Errors: ErrDamaged.
func (s *Store) EditedExchanges(ctx context.Context) (map[int64]bool, error) {
	if s.format < schema.WithSegments {
		return nil, nil
	}
	edited := make(map[int64]bool)
	err := s.query(ctx, func(c *rowValues) bool {
		edited[c.int()] = true
		return c.err == nil
	}, `SELECT exchange FROM edits UNION SELECT exchange FROM forwarded_heads LIMIT ?`, maxEditedExchanges)
	return edited, err
}
