package decode

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math"

	"unwire/captures"
)

// EachFrame decodes exchange id of src and calls do with each frame as soon as it is complete. Unlike Decode it
// needs constant memory.
//
// Shape: the frame and its tree are valid until do returns. The exchange passed to do has no frames; its Code,
// Message, Err and Choices are set only in the returned one.
//
// Limits: MaxFrames is unlimited by default, MaxNodes applies to each frame, and MaxTotal is 1 TiB by default.
//
// Errors: the error of do, which ends decoding, and those of Decode.
func EachFrame(ctx context.Context, src captures.Source, id int64, o Options, do func(*Exchange, *Frame) error) (*Exchange, error) {
	rec, err := src.Exchange(ctx, id)
	if err != nil {
		return nil, fmt.Errorf("decode: exchange %d: %w", id, err)
	}
	if o.Profile == nil {
		o.Profile = src.Profile()
	}
	if o.MaxFrames <= 0 {
		o.MaxFrames = math.MaxInt
	}
	if o.MaxTotal <= 0 {
		o.MaxTotal = 1 << 40
	}
	s := NewStream(rec, o)
	ex := &Exchange{Exchange: *rec, Call: s.Call(), Profile: o.Profile, Split: o.Split}
	cut := false
	var stop error
	s.onFrame = func(f *Frame) {
		// If reading failed, the recorded end of an unframed body is unknown.
		f.Partial = f.Partial || cut && !f.Framed
		if stop == nil {
			ex.Call = s.Call()
			stop = do(ex, f)
		}
	}

	// Reading and decoding run concurrently, because a capture decompresses chunks as it reads them.
	for chunk, cerr := range ahead(ctx, src, id) {
		if cerr != nil {
			err, cut = fmt.Errorf("decode: exchange %d: %w", id, cerr), true
			break
		}
		if s.Feed(chunk); stop != nil {
			return ex, stop
		}
	}
	s.Close()
	if stop != nil {
		return ex, stop
	}
	ex.Call = s.Call()
	ex.Code, ex.Message = s.Status()
	ex.Err = errors.Join(s.err(), err)
	ex.LoadChoices(ctx, src)
	return ex, err
}

// Limits for reading the chunks of an exchange in advance.
const (
	// aheadChunks and aheadBytes are the number of chunks and of bytes at which a batch
	// is complete.
	aheadChunks = 1024
	aheadBytes  = 256 << 10

	// aheadBatches is the maximum number of complete batches that wait to be used.
	aheadBatches = 4
)

// A batch is a run of consecutive chunks of an exchange. err, if not nil, is the error that prevented reading
// further chunks.
type batch struct {
	// chunks are consecutive pieces of the recorded bodies of both directions, in recorded order.
	chunks []captures.Chunk

	// err is the error that prevented reading further chunks; nil if there was none.
	err error
}

// ahead yields the chunks of an exchange while another goroutine reads the next ones.
func ahead(ctx context.Context, src captures.Source, id int64) iter.Seq2[captures.Chunk, error] {
	return func(yield func(captures.Chunk, error) bool) {
		asked := ctx
		ctx, cancel := context.WithCancel(ctx)
		batches := make(chan batch, aheadBatches)
		go func() {
			defer close(batches)
			give := func(b batch) bool {
				select {
				case batches <- b:
					return true
				case <-ctx.Done():
					return false
				}
			}

			// Chunks are small, so they are sent in batches.
			var b batch
			size := 0
			for chunk, err := range src.Chunks(ctx, id, 0) {
				if err != nil {
					b.err = err
					break
				}
				b.chunks = append(b.chunks, chunk)
				if size += len(chunk.Data); len(b.chunks) < aheadChunks && size < aheadBytes {
					continue
				}
				if !give(b) {
					return
				}
				b, size = batch{chunks: make([]captures.Chunk, 0, len(b.chunks))}, 0
			}
			give(b)
		}()
		// Wait for the goroutine to end, because the caller may close the source next.
		defer func() {
			cancel()
			for range batches {
			}
		}()
		for b := range batches {
			for _, chunk := range b.chunks {
				if !yield(chunk, nil) {
					return
				}
			}
			if b.err != nil {
				yield(captures.Chunk{}, b.err)
				return
			}
		}
		// If the caller's context was cancelled, batches may be missing without an error.
		if err := asked.Err(); err != nil {
			yield(captures.Chunk{}, err)
		}
	}
}
