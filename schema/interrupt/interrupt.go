// Package interrupt ends work with a context that does not accept one: calls of libraries, and searches in large
// files that are mapped into memory.
//
// files, err := interrupt.Run(ctx, func() (*protoregistry.Files, error) { return protodesc.NewFiles(set) })
package interrupt

import (
	"bytes"
	"context"
)

// Run calls work and returns its result, or returns early when ctx ends. In the second case work continues in
// the background and its result is dropped. Therefore work must not use anything that the caller closes or
// unmaps, and must not return anything that has to be closed. A panic in work is passed on to the caller.
//
// Errors: those of work, and the context's.
func Run[T any](ctx context.Context, work func() (T, error)) (T, error) {
	type result struct {
		value T
		err   error
		panic any
	}

	// The buffer lets the goroutine end if nobody receives the result.
	done := make(chan result, 1)
	go func() {
		var r result
		defer func() {
			// A panic in another goroutine would end the program.
			r.panic = recover()
			done <- r
		}()
		r.value, r.err = work()
	}()

	select {
	case r := <-done:
		if r.panic != nil {
			panic(r.panic)
		}
		return r.value, r.err
	case <-ctx.Done():
		var none T
		return none, ctx.Err()
	}
}

// Index is bytes.Index for large data. It checks the context every 8 MiB, and returns -1 when the context has
// ended.
func Index(ctx context.Context, data, word []byte) int {
	const window = 8 << 20
	// Windows overlap by the length of word, so that no occurrence is missed.
	for at := 0; ctx.Err() == nil; at += window {
		if i := bytes.Index(data[at:min(len(data), at+window+len(word)-1)], word); i >= 0 {
			return at + i
		}
		if at+window >= len(data) {
			break
		}
	}
	return -1
}
