// Package interrupt makes work end with a context that takes none by itself:
// calls of libraries, and searches in large files that are mapped.
//
//	files, err := interrupt.Run(ctx, func() (*protoregistry.Files, error) { return protodesc.NewFiles(set) })
package interrupt

import (
	"bytes"
	"context"
)

// Run does work that takes no context, and returns when it is done or when ctx
// ends. In the second case the work goes on in the background, and what it
// returns is dropped: it may use nothing that the caller closes or unmaps, and
// return nothing that has to be closed. A panic of the work is one of Run.
//
// Errors: those of the work, and the context's.
func Run[T any](ctx context.Context, work func() (T, error)) (T, error) {
	type result struct {
		value T
		err   error
		panic any
	}
	done := make(chan result, 1)
	go func() {
		var r result
		defer func() {
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

// Index is bytes.Index for data of any size. It looks at the context every few
// milliseconds, and returns -1 where that has ended.
func Index(ctx context.Context, data, word []byte) int {
	const window = 8 << 20
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
