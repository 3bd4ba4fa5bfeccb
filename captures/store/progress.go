package store

import (
	"context"
	"iter"

	"unwire/captures"
)

// readsKey is the context key for the function that CountReads sets.
type readsKey struct{}

// CountReads returns a context with which Chunks calls count for each chunk that it reads, with the path of the
// capture and the number of body bytes. Commands show progress with it. count may be called from several
// goroutines.
func CountReads(ctx context.Context, count func(path string, bytes int)) context.Context {
	return context.WithValue(ctx, readsKey{}, count)
}

// countReads wraps an iterator over chunks so that it calls the function set by CountReads, if the
// context has one.
func countReads(ctx context.Context, path string, chunks iter.Seq2[captures.Chunk, error]) iter.Seq2[captures.Chunk, error] {
	count, ok := ctx.Value(readsKey{}).(func(string, int))
	if !ok {
		return chunks
	}
	return func(yield func(captures.Chunk, error) bool) {
		for c, err := range chunks {
			count(path, len(c.Data))
			if !yield(c, err) {
				return
			}
		}
	}
}
