package store

import (
	"context"
	"iter"
	"slices"
	"time"

	"unwire/captures"
	"unwire/captures/redact"
	"unwire/captures/store/internal/payload"
)

// CopyExchange copies ex, an exchange of another capture, to this one, through this
// one's redaction, with its number, times, outcome, trailers and the boundaries
// of its chunks. Edits, by direction, are made before: of bytes that lie in
// several chunks each gets as many as it had, and the last one the rest. What is
// derived is not copied. A relation to another exchange of the same capture is, if that
// exchange has been copied before under its number.
//
// Limits: exchanges have to be copied in the order of their numbers. A chunk
// that the edits leave empty is left out. An exchange that is still going on
// becomes Incomplete. Edits must not overlap.
//
// Errors: ErrReadOnly, ErrClosed, ErrDamaged, or what stopped
// the recording.
func (s *Store) CopyExchange(ctx context.Context, from *Store, ex *captures.Exchange, edits [2][]redact.Edit) error {
	if s.writer == nil {
		return pathError(s.Path, captures.ErrReadOnly)
	}
	r := &recording{store: s, start: time.Now(), ex: *ex}
	if err := r.begin(*ex, captures.Began); err != nil {
		return pathError(s.Path, err)
	}
	if s.maxBody > 0 {
		// All that was stored is stored again.
		r.left = [2]int64{s.maxBody - ex.BytesUp, s.maxBody - ex.BytesDown}
	}
	for c, err := range from.Cleaned(ctx, ex, s.Redactor, edits) {
		if err != nil {
			r.EndAt(ex.Duration, captures.Incomplete, ex.Error)
			return err
		}
		r.emit(false, &c)
	}
	if err := s.copyRelations(ctx, from, r); err != nil {
		r.EndAt(ex.Duration, captures.Incomplete, ex.Error)
		return err
	}
	r.EndAt(ex.Duration, ex.Outcome, ex.Error)
	return s.Err()
}

// copyRelations records what the exchange of r was to others in the capture that it is
// copied from.
func (s *Store) copyRelations(ctx context.Context, from *Store, r *recording) error {
	list, err := from.Relations(ctx, r.ID())
	if err != nil {
		return err
	}
	for _, rel := range list {
		if rel.Exchange != r.ID() || rel.Kind == "" {
			continue
		}
		if _, copied := slices.BinarySearch(s.copied, rel.Target); copied && rel.Capture == "" {
			r.Relate(rel.Kind, rel.Target)
		}
	}
	s.copied = append(s.copied, r.ID())
	return nil
}

// Cleaned yields the chunks of an exchange as CopyExchange stores them: with
// edits made, and without the secrets that r finds; a nil Redactor finds none.
//
// Errors: ErrDamaged.
func (s *Store) Cleaned(ctx context.Context, ex *captures.Exchange, r *redact.Redactor, edits [2][]redact.Edit) iter.Seq2[captures.Chunk, error] {
	return func(yield func(captures.Chunk, error) bool) {
		last, _, err := s.chunkEnds(ctx, ex.ID)
		if err != nil {
			yield(captures.Chunk{}, err)
			return
		}
		filter := redact.NewExchangeFilter(r, ex, edits)
		for c, err := range s.Chunks(ctx, ex.ID, 0) {
			if err != nil {
				yield(captures.Chunk{}, err)
				return
			}
			for _, out := range filter.Write(c, payload.MaxSize, c.Seq == last[c.Dir]) {
				if !yield(*out, nil) {
					return
				}
			}
		}
	}
}
