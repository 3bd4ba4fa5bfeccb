package store

import (
	"context"
	"errors"
	"iter"
	"slices"
	"time"

	"unwire/captures"
	"unwire/captures/redact"
	"unwire/captures/store/internal/payload"
	"unwire/captures/store/internal/schema"
)

// CopyExchange copies an exchange of another capture to this one, and redacts it with this store's
// rules. The ID, times, outcome, trailers and chunk boundaries stay.
//
// edits, indexed by direction, are applied to the bodies first. If an edited range spans several
// chunks, each chunk keeps its size, and the last one gets the rest of the replacement. Chunks that
// become empty are omitted. Derived data is not copied. A relation is copied if its target is in the
// same capture and was copied before under the same ID.
//
// Limits: exchanges must be copied in the order of their IDs. Edits must not overlap. An exchange in
// flight becomes Incomplete.
//
// Errors: ErrReadOnly, ErrClosed, ErrDamaged, or the error that stopped the recording.
func (s *Store) CopyExchange(ctx context.Context, from *Store, ex *captures.Exchange, edits [2][]redact.Edit) error {
	if s.writer == nil {
		return pathError(s.Path, captures.ErrReadOnly)
	}
	r := &recording{store: s, start: time.Now(), ex: *ex}
	if err := r.begin(*ex, captures.Began); err != nil {
		return pathError(s.Path, err)
	}
	if s.maxBody > 0 {
		// The source applied its limit already: whatever it stored is stored again.
		r.bodyLeft = [2]int64{s.maxBody - ex.BytesUp, s.maxBody - ex.BytesDown}
	}
	for c, err := range from.Cleaned(ctx, ex, s.Redactor, edits) {
		if err != nil {
			r.EndAt(ex.Duration, captures.Incomplete, ex.Error)
			return err
		}
		r.emit(false, &c)
	}
	more, err := from.moreOf(ctx, ex.ID)
	if err == nil && more.forwarded {
		err = s.copyForwarded(ctx, from, r)
	}
	if err == nil && more.relations {
		err = s.copyRelations(ctx, from, r)
	}
	s.copied = append(s.copied, r.ID())
	if err = errors.Join(err, s.copyAuthority(ctx, from, ex.TLS.CA)); err != nil {
		r.EndAt(ex.Duration, captures.Incomplete, ex.Error)
		return err
	}
	r.EndAt(ex.Duration, ex.Outcome, ex.Error)
	return s.Err()
}

// copyRelations copies the relations of the exchange of r from the capture from.
func (s *Store) copyRelations(ctx context.Context, from *Store, r *recording) error {
	list, err := from.Relations(ctx, r.ID())
	if err != nil {
		return err
	}
	for _, rel := range list {
		if rel.Exchange != r.ID() || rel.Kind == "" {
			continue
		}

		// s.copied is sorted, because exchanges are copied in order.
		if _, copied := slices.BinarySearch(s.copied, rel.Target); copied && rel.Capture == "" {
			r.Relate(rel.Kind, rel.Target)
		}
	}
	return nil
}

// moreOf describes what a capture has of an exchange in addition to its chunks.
type moreOf struct {
	// forwarded means that it was changed when it was forwarded.
	forwarded bool
	// relations means that it is related to another exchange.
	relations bool
}

// moreOf returns what the capture has of an exchange in addition to its chunks. Most exchanges have nothing, so one query
// replaces one for each kind.
func (s *Store) moreOf(ctx context.Context, id int64) (more moreOf, err error) {
	if s.format < schema.WithSegments {
		return more, nil
	}
	err = s.query(ctx, func(c *rowValues) bool {
		more = moreOf{c.intUpTo(1) == 1, c.intUpTo(1) == 1}
		return false
	}, `SELECT EXISTS (SELECT 1 FROM edits WHERE exchange = ?1) OR EXISTS (SELECT 1 FROM forwarded_heads WHERE exchange = ?1),
		EXISTS (SELECT 1 FROM relations WHERE exchange = ?1)`, id)
	return more, err
}

// Cleaned yields the chunks of an exchange as CopyExchange stores them: with edits applied, and with the
// secrets that r finds replaced. If r is nil, no secrets are replaced.
//
// Errors: ErrDamaged.
func (s *Store) Cleaned(ctx context.Context, ex *captures.Exchange, r *redact.Redactor, edits [2][]redact.Edit) iter.Seq2[captures.Chunk, error] {
	return func(yield func(captures.Chunk, error) bool) {
		// The filter must know which chunk is the last of its direction, to release what it holds back.
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

// copyAuthority copies the certificate of an exchange's CA from the capture from, if it contains it.
func (s *Store) copyAuthority(ctx context.Context, from *Store, a captures.Authority) error {
	if a.SHA256 == "" {
		return nil
	}
	der, err := from.Authority(ctx, a.SHA256)
	if err != nil || len(der) == 0 {
		return err
	}
	a.Certificate = string(der)
	s.keepAuthority(a)
	return nil
}
