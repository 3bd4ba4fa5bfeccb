package search

import (
	"context"

	"unwire/captures"
	"unwire/decode"
)

// A Scope says what of an exchange is searched. The zero value is all its frames.
type Scope struct {
	// Headers has the URL and the headers searched, too, before the frames.
	Headers bool
	// Frames, if set, chooses the frames.
	Frames func(*decode.Frame) bool
	// Split says how the bytes of exchanges without HTTP divide into messages.
	Split decode.Splitting
}

// Exchange looks into an exchange of src while it is read, and hands what it finds to
// emit until that returns false.
//
// Errors: where src cannot be read, after what was read until then was searched.
func Exchange(ctx context.Context, src captures.Source, rec *captures.Exchange, q Query, scope Scope, emit func(Match) bool) error {
	if scope.Headers && !q.headers(rec, emit) {
		return nil
	}
	searcher := newSearcher(q, emit)
	look := func(frames []decode.Frame) {
		for i := range frames {
			if scope.Frames == nil || scope.Frames(&frames[i]) {
				searcher.Frame(&frames[i])
			}
		}
	}

	stream := decode.NewStream(rec, decode.Options{Profile: src.Profile(), Split: scope.Split})
	var unread error
	for chunk, err := range src.Chunks(ctx, rec.ID, 0) {
		if err != nil {
			unread = err
			break
		}
		look(stream.Feed(chunk))
		if searcher.Done() {
			break
		}
	}
	look(stream.Close())
	return unread
}
