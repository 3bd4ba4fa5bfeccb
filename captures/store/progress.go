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

// counted yields chunks of a file, and counts them if the context says so.
func counted(ctx context.Context, path string, chunks iter.Seq2[captures.Chunk, error]) iter.Seq2[captures.Chunk, error] {
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
