package decode

import (
	"context"
	"fmt"

	"unwire/captures"
)

// Index derives the frames of all exchanges that have ended and have none yet,
// and stores them.
//
// Limits: it holds one exchange's incomplete frames at a time.
// Errors: of the store. Bodies that cannot be decoded have the frames before
// the place where they cannot.
func Index(ctx context.Context, store *captures.Store) error {
	for ex, err := range store.Exchanges(ctx) {
		if err != nil {
			return fmt.Errorf("decode: index: %w", err)
		}
		if !ex.Ended() {
			continue
		}
		have, err := store.Frames(ctx, ex.ID)
		if err != nil {
			return fmt.Errorf("decode: index: exchange %d: %w", ex.ID, err)
		}
		if len(have) > 0 {
			continue
		}
		rows, err := rowsOf(ctx, store, ex)
		if err != nil {
			return err
		}
		if len(rows) == 0 {
			continue
		}
		if err := store.PutFrames(ctx, ex.ID, rows); err != nil {
			return fmt.Errorf("decode: index: exchange %d: %w", ex.ID, err)
		}
	}
	return nil
}

// rowsOf derives the frames of one exchange.
func rowsOf(ctx context.Context, src Source, ex *captures.Exchange) ([]captures.FrameRow, error) {
	s := NewStream(ex, Options{NoTrees: true})
	var rows []captures.FrameRow
	add := func(frames []Frame) {
		for i := range frames {
			f := &frames[i]
			rows = append(rows, captures.FrameRow{
				Exchange: ex.ID, Dir: f.Dir, Seq: f.Seq, Off: f.Offset, Len: int64(f.Len), Flags: uint8(f.Flags), T: f.T,
			})
		}
	}
	for chunk, err := range src.Chunks(ctx, ex.ID, 0) {
		if err != nil {
			s.Close()
			return nil, fmt.Errorf("decode: index: exchange %d: %w", ex.ID, err)
		}
		add(s.Feed(chunk))
	}
	add(s.Close())
	return rows, nil
}
