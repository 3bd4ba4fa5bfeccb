package live

import "unwire/replay/live/values"

// A search finds the live server frame that corresponds to a captured one, while live frames arrive.
type search struct {
	// t describes the captured frame.
	t *target

	// l has the relations between the captured frames.
	l *Links
	// question is the question in the captured frame, i.e. the request for which a client frame is the
	// response; nil if the frame is not a question.
	question *question
	// byHand means that the user specified which client frame responds to the captured frame.
	byHand bool

	// next is the number of live frames that were examined.
	next int
	// count is the number of live frames that ask the same as the question, except for identifiers;
	// without a question, of those with the same shape.
	count int
	// exact is the number of live frames that ask exactly the same.
	exact int
	// at is the number of live frames that contain the target's path.
	at int

	// found is the corresponding live frame; nil until it has arrived.
	found *parsedMessage
	// like is a live frame that asks the same except for identifiers; nil if there is none. It is used
	// if none asks exactly the same.
	like *parsedMessage
	// loose is the live frame in which the target's path occurs for the same, nth time as in the
	// capture. It is used if the shapes differ.
	loose *parsedMessage
	// place is the live frame that is in the same position among those of the target's shape, whatever
	// it asks.
	place *parsedMessage

	// shaped is the number of live frames with the target's shape.
	shaped int
}

// advance examines the live frames that have arrived since the last call; down are all frames so far.
func (s *search) advance(down []*parsedMessage) {
	for ; s.next < len(down) && s.found == nil; s.next++ {
		h := down[s.next]
		if h.shape.Matches(s.t.shape) {
			if s.shaped++; s.shaped == s.t.nth {
				s.place = h
			}
		}
		// Without a question, the nth frame of the same shape corresponds.
		switch q := s.question; {
		case q == nil:
			if h.shape.Matches(s.t.shape) {
				if s.count++; s.count == s.t.nth {
					s.found = h
				}
			}
		case s.l.fits(q, h):
			if s.count++; s.count == q.nth {
				s.like = h
			}
			if s.l.fitsExactly(q, h) {
				if s.exact++; s.exact == q.exact {
					s.found = h
				}
			}
		}

		// A looser match by the path alone is kept in case the shapes differ.
		if s.loose == nil && s.question == nil && s.hasPath(h) {
			if s.at++; s.at == s.t.nthAt {
				s.loose = h
			}
		}
	}

	// A question whose ids all differ still matches if it is unique.
	if s.found == nil && s.like != nil && s.question.alone {
		s.found = s.like
	}
}

// hasPath reports whether h is a frame with a value at the path of the target. Joined texts have no paths of their own.
func (s *search) hasPath(h *parsedMessage) bool {
	return s.t.path != "" && !h.shape.IsJoined() && !s.t.shape.IsJoined() && values.Has(h.leaves, s.t.path)
}

// answers reports whether a client frame responds to the captured frame that is searched for.
func (s *search) answers() bool { return s.question != nil || s.byHand }

// result returns the live frame that corresponds best to the captured one; nil if none does so far.
func (s *search) result() *parsedMessage {
	switch {
	case s.found != nil:
		return s.found
	case s.like != nil:
		return s.like
	}
	return s.loose
}
