package store

import (
	"context"
	"iter"

	"unwire/captures"
	"unwire/captures/profile"
)

// A ClientView is a view of a capture as its clients saw it: their requests as they sent them, and the
// responses as unwire forwarded them, with the changes that rules made. It implements captures.Source.
type ClientView struct {
	// from is the capture that is viewed.
	from *Store
}

// ClientView returns a view of the capture as its clients saw it.
func (s *Store) ClientView() *ClientView { return &ClientView{s} }

// Profile describes the recorded service.
func (v *ClientView) Profile() *profile.Profile { return v.from.Profile() }

// Exchange returns an exchange with the response's head as it was forwarded to the client.
func (v *ClientView) Exchange(ctx context.Context, id int64) (*captures.Exchange, error) {
	ex, err := v.from.Exchange(ctx, id)
	if err != nil {
		return nil, err
	}
	heads, err := v.from.ForwardedHeads(ctx, id)
	for _, h := range heads {
		if h.Dir == captures.Down {
			ex.Status, ex.ResponseHeaders, ex.ResponseTrailers = h.Status, h.Headers, h.Trailers
		}
	}
	return ex, err
}

// Chunks yields the chunks of an exchange: the client's as received, the server's with edits applied. A
// replacement is part of the chunk in which the replaced range begins. fromSeq must be 0.
func (v *ClientView) Chunks(ctx context.Context, id, fromSeq int64) iter.Seq2[captures.Chunk, error] {
	return func(yield func(captures.Chunk, error) bool) {
		edits, err := v.from.Edits(ctx, id)
		if err != nil {
			yield(captures.Chunk{}, err)
			return
		}
		var down editedDirection
		for _, e := range edits {
			if e.Dir == captures.Down {
				down.edits = append(down.edits, e)
			}
		}
		last := int64(-1)
		for c, err := range v.from.Chunks(ctx, id, fromSeq) {
			if err != nil {
				yield(c, err)
				return
			}
			if last = c.Seq; c.Dir == captures.Down {
				c.Data = down.apply(c.Data)
			}
			if !yield(c, nil) {
				return
			}
		}

		// What was added behind the last received byte, such as an answer that a rule gave.
		for _, e := range down.edits {
			last++
			if !yield(captures.Chunk{Exchange: id, Dir: captures.Down, Seq: last, T: e.T, Data: e.Data}, nil) {
				return
			}
		}
	}
}
