package search

import (
	"context"

	"unwire/captures"
	"unwire/decode"
)

// A Scope selects the parts of an exchange that are searched. The zero value selects all frames.
type Scope struct {
	// Headers adds the URL and the headers, before the frames.
	Headers bool

	// Frames, if not nil, reports whether a frame is searched.
	Frames func(*decode.Frame) bool

	// Split is how the data of exchanges without HTTP is divided into messages.
	Split decode.Splitting
}

// Exchange searches the parts of exchange rec that scope selects, while it is read from src, and calls emit with
// each match until emit returns false.
//
// Errors: src cannot be read. The part that was read has been searched.
func Exchange(ctx context.Context, src captures.Source, rec *captures.Exchange, q Query, scope Scope, emit func(Match) bool) error {
	if scope.Headers && !q.searchHeaders(rec, emit) {
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

	// Frames are decoded and searched chunk by chunk, so that memory stays bounded.
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
