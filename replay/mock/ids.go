package mock

import (
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"unwire/captures"
	"unwire/decode"
	"unwire/replay/live"
)

// identities map the identifiers that clients generate, such as a session id, to those that clients had generated in
// their place in the capture, across all exchanges. Identifiers that the recorded server issued need no mapping,
// because the mock issues the same ones again.
type identities struct {
	// captured reports whether an identifier occurs in the capture.
	captured func(id string) bool

	// version counts the requests from which identifiers were learnt.
	version atomic.Int64

	// mu guards the fields below.
	mu sync.RWMutex
	// current are the identifiers that clients sent last, by those in the capture.
	current live.IDs
	// recorded are the identifiers in the capture by those that clients sent. Several clients may have sent different
	// ones in place of the same.
	recorded live.IDs
}

// learn compares a request with the recorded one, whose server links are given.
func (s *identities) learn(links *live.Links, request *decode.Exchange) {
	var ids live.IDs
	ids.SkipCaptured(s.captured)
	ids.Learn(links, live.Swap(request))
	inverse := ids.Inverse()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.current.Update(&ids)
	s.recorded.Update(inverse)
	s.version.Add(1)
}

// toClient returns the swapped exchange of t with the clients' current identifiers; t.swapped itself if it has none to
// replace.
func (s *identities) toClient(t *tape) *decode.Exchange {
	s.mu.RLock()
	defer s.mu.RUnlock()
	ex, _, _ := s.current.Apply(t.swapped)
	return ex
}

// toRecorded returns a request with the identifiers of the capture in place of the client's.
func (s *identities) toRecorded(request *decode.Exchange) *decode.Exchange {
	s.mu.RLock()
	defer s.mu.RUnlock()
	ex, _, _ := s.recorded.Apply(request)
	return ex
}

// replaceIn returns recorded headers of the server with the client's identifiers, as far as the head of a request that
// t answers has them.
func (s *identities) replaceIn(h captures.Headers, t *tape, request *decode.Exchange) captures.Headers {
	var ids live.IDs
	ids.SkipCaptured(s.captured)
	ids.Learn(t.links, live.Swap(request))
	ex, _, _ := ids.Apply(&decode.Exchange{Exchange: captures.Exchange{RequestHeaders: h}})
	return ex.RequestHeaders
}

// compare compares the identifiers of a request, by their position, with those of a recorded one. same are the
// request's identifiers that are equal to the recorded ones, or stand for them. claimed is the number of recorded
// identifiers for which clients have sent other ones than the request has.
func (s *identities) compare(request, recorded map[string]string) (same []string, claimed int) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	for at, was := range recorded {
		is, ok := request[at]
		if !ok {
			continue
		}
		if is == was || s.recorded.Of(is) == was {
			same = append(same, is)
		} else if now := s.current.Of(was); now != was && now != is {
			claimed++
		}
	}
	return same, claimed
}

// maxKnown is the number of identifiers of a capture that are remembered.
const maxKnown = 200_000

// allIDs returns the identifiers in a recorded exchange.
func (t *tape) allIDs() (out []string) {
	lists := append([]map[string]string{t.head, live.HeaderIDs(t.ex.ResponseHeaders), live.HeaderIDs(t.ex.ResponseTrailers)}, t.ids...)
	for i := range t.ex.Frames {
		if f := &t.ex.Frames[i]; f.Dir == captures.Down && live.IsMessage(f) {
			lists = append(lists, live.MessageIDs(f))
		}
	}
	for _, list := range lists {
		out = slices.AppendSeq(out, maps.Values(list))
	}
	return out
}

// noteIDs remembers identifiers of the capture. The caller must hold l.mu.
func (l *library) noteIDs(ids []string) {
	for _, id := range ids {
		if len(l.known) < maxKnown {
			l.known[id] = true
		}
	}
}

// hasID reports whether an identifier occurs in one of the recorded exchanges that were read so far.
func (l *library) hasID(id string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.known[id]
}
