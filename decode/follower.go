package decode

import (
	"context"
	"errors"
	"fmt"

	"unwire/captures"
)

// A Follower decodes an exchange while it is recorded. An update reads only the chunks that were recorded since
// the previous one, so that a stream of many frames is not decoded again for each new frame.
//
// Until the exchange has ended, incomplete frames are omitted. After that, the result equals that of Decode.
type Follower struct {
	// src is the capture (the recording) that contains the exchange.
	src captures.Source

	// o are the options of decoding.
	o Options

	// s is the state of decoding the exchange, up to the last chunk that was read.
	s *Stream

	// ex is the decoded exchange so far.
	ex *Exchange

	// next is the sequence number of the next chunk to be read.
	next int64 // the sequence number of the next chunk
}

// Follow returns a Follower of exchange id of src, with what was recorded so far.
//
// Errors: as Decode.
func Follow(ctx context.Context, src captures.Source, id int64, o Options) (*Follower, error) {
	rec, err := src.Exchange(ctx, id)
	if err != nil {
		return nil, fmt.Errorf("decode: exchange %d: %w", id, err)
	}
	if o.Profile == nil {
		o.Profile = src.Profile()
	}
	f := &Follower{src: src, o: o, s: NewStream(rec, o), ex: &Exchange{Exchange: *rec, Profile: o.Profile, Split: o.Split}}
	f.ex.Call = f.s.Call()
	f.ex.LoadChoices(ctx, src)
	return f, f.Update(ctx)
}

// Exchange returns the exchange with the frames so far. Update modifies it.
func (f *Follower) Exchange() *Exchange { return f.ex }

// Update decodes what was recorded since the last update.
//
// Errors: as Decode. Frames before the error are present.
func (f *Follower) Update(ctx context.Context) error {
	if f.ex.Ended() {
		return nil
	}
	rec, err := f.src.Exchange(ctx, f.ex.ID)
	if err != nil {
		return fmt.Errorf("decode: exchange %d: %w", f.ex.ID, err)
	}
	if rec.Ended() {
		// Incomplete frames and the order of frames are known only now.
		whole, err := Decode(ctx, f.src, f.ex.ID, f.o)
		if whole != nil {
			*f.ex = *whole
		}
		return err
	}
	if len(f.ex.ResponseHeaders) == 0 && len(rec.ResponseHeaders) > 0 {
		f.s.Update(rec)
	}
	f.ex.Exchange, f.ex.Call = *rec, f.s.Call()
	for chunk, cerr := range f.src.Chunks(ctx, f.ex.ID, f.next) {
		if cerr != nil {
			err = fmt.Errorf("decode: exchange %d: %w", f.ex.ID, cerr)
			break
		}
		f.ex.Frames = append(f.ex.Frames, f.s.Feed(chunk)...)
		f.next = chunk.Seq + 1
	}
	f.ex.Code, f.ex.Message = f.s.Status()
	f.ex.Err = errors.Join(f.s.err(), err)
	return err
}
