package decode

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math"

	"unwire/captures"
)

// EachFrame is Decode for who needs no more than one frame at a time: do is called with
// each as soon as it is complete, and with its exchange.
//
// Shape: the frame, its tree included, is do's until it returns. The exchange has no
// frames, and its Code, Message, Err and Choices are there only in what is returned.
// Limits: nothing is kept, so an exchange has as many frames and nodes as it has, and
// MaxNodes is of one frame; MaxTotal is 1 TiB by default.
// Errors: that of do, which ends it, and those of Decode.
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
		// Nothing tells where a body was to end.
		f.Partial = f.Partial || cut && !f.Framed
		if stop == nil {
			ex.Call = s.Call()
			stop = do(ex, f)
		}
	}
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

// How much is read ahead: chunks of a batch, up to so many bytes, and batches.
const (
	aheadChunks  = 1024
	aheadBytes   = 256 << 10
	aheadBatches = 4
)

// A batch is chunks that follow each other, and what ended them.
type batch struct {
	chunks []captures.Chunk
	err    error
}

// ahead yields the chunks of an exchange, which another goroutine reads meanwhile.
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
		defer func() { // and wait: the source may be closed next
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
		if err := asked.Err(); err != nil { // what was read by then may not have come
			yield(captures.Chunk{}, err)
		}
	}
}
