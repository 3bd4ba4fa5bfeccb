package live

// A search looks for the live frame that corresponds to a captured one, in
// frames that come one by one.
type search struct {
	t        *target
	l        *Links
	question *question // what the captured frame asks; nil where it is no question
	next     int       // frames before it have been looked at
	// of them, how many are of the target's shape and ask the same
	count int
	exact int // of those that ask the same to the letter
	at    int // of those that have the target's path
	found *parsedMessage
	like  *parsedMessage // the one that asks the same but for its identifiers
	// loose is the one that has the path as many times as the target had.
	loose *parsedMessage
}

func (s *search) advance(down []*parsedMessage) {
	for ; s.next < len(down) && s.found == nil; s.next++ {
		h := down[s.next]
		switch q := s.question; {
		case q == nil:
			if h.shape.matches(s.t.shape) {
				if s.count++; s.count == s.t.nth {
					s.found = h
				}
			}
		case s.l.fits(q, h):
			if s.count++; s.count == q.nth {
				s.like = h
			}
			if q.counted || s.l.argumentsOf(h, q.kind).exact == q.args.exact {
				if s.exact++; s.exact == q.exact {
					s.found = h
				}
			}
		}
		if s.loose == nil && s.question == nil && s.t.path != "" && has(h.leaves, s.t.path) {
			if s.at++; s.at == s.t.nthAt {
				s.loose = h
			}
		}
	}
	if s.found == nil && s.like != nil && s.question.alone {
		s.found = s.like
	}
}

// result is the frame that corresponds, as far as it is known.
func (s *search) result() *parsedMessage {
	switch {
	case s.found != nil:
		return s.found
	case s.like != nil:
		return s.like
	}
	return s.loose
}
