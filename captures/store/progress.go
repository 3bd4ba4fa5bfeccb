package store

import (
	"context"
	"iter"

	"unwire/captures"
)

// readsKey is the key of a context that counts reads.
type readsKey struct{}

// CountReads returns a context with which Chunks calls count for the body bytes that it reads
// of a capture, so that a command can show how far it is. Count may be called from several
// goroutines.
func CountReads(ctx context.Context, count func(path string, bytes int)) context.Context {
	return context.WithValue(ctx, readsKey{}, count)
}

// counted yields chunks, and counts them if the context says so.
func (s *Store) counted(ctx context.Context, chunks iter.Seq2[captures.Chunk, error]) iter.Seq2[captures.Chunk, error] {
	count, ok := ctx.Value(readsKey{}).(func(string, int))
	if !ok {
		return chunks
	}
	return func(yield func(captures.Chunk, error) bool) {
		for c, err := range chunks {
			count(s.Path, len(c.Data))
			if !yield(c, err) {
				return
			}
		}
	}
}

// BodyBytes returns how many bytes the bodies of all exchanges have together.
//
// Errors: ErrDamaged.
func (s *Store) BodyBytes(ctx context.Context) (n int64, err error) {
	err = s.page(ctx, func(c *rowValues) bool {
		n = c.size()
		return false
	}, `SELECT coalesce(sum(bytes_up + bytes_down), 0) FROM exchanges`)
	return n, err
}
