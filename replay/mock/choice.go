package mock

import (
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"unwire/decode"
	"unwire/decode/diff"
	"unwire/decode/envelope"
	"unwire/replay/live"
)

// closeEnough is the difference in score, from 0 to 1, up to which two recorded requests count as equally similar.
const closeEnough = 0.02

// A candidate is a recorded call whose response may be sent to a request, with the similarity of the two requests.
type candidate struct {
	// call identifies the recorded call.
	call
	// tape is the recorded exchange with its messages.
	tape *tape

	// sum is the sum of the similarities, each from 0 to 1, of the request's messages compared so far with the
	// recorded ones.
	sum float64
	// seen is the number of messages of the request that were compared so far.
	seen int

	// score is the similarity, from 0 to 1, of the request so far and the recorded one.
	score float64

	// same are the request's identifiers so far that are equal to the recorded ones, or stand for them.
	same []string
	// claimed is the number of recorded identifiers so far for which clients have sent other ones than the request has.
	claimed int
}

// A query is a request so far, in the form in which it is compared with the recorded ones.
type query struct {
	// key is the name by which recorded calls are found, with recorded identifiers in place of the client's.
	key string
	// target is the URL's path and query as a message, with recorded identifiers; nil for an RPC.
	target *decode.Frame
	// messages are the client's messages, with recorded identifiers.
	messages []decode.Frame

	// head are the client's identifiers in the headers, path and parameters, by their position.
	head map[string]string
	// ids are the client's identifiers in each message, by their position.
	ids []map[string]string

	// ended means that no more messages arrive.
	ended bool

	// version is that of the identities with which the recorded calls were compared.
	version int64
}

// newQuery returns the request without its messages.
func (x *session) newQuery() *query {
	version := x.s.ids.version.Load()
	head := x.s.ids.toRecorded(&decode.Exchange{Exchange: x.ex})
	return &query{key: keyOf(&head.Exchange, x.call), target: targetOf(head.URL, x.call), head: live.HeaderIDs(requestHead(&x.ex)), version: version}
}

// add adds the messages of the request that are not in q yet; messages are all that have arrived. ended means that
// no more messages arrive.
func (q *query) add(ids *identities, messages []decode.Frame, ended bool) {
	fresh := messages[len(q.messages):]
	for i := range fresh {
		q.ids = append(q.ids, live.MessageIDs(&fresh[i]))
	}
	q.messages = append(q.messages, ids.toRecorded(&decode.Exchange{Frames: fresh}).Frames...)
	q.ended = ended
}

// candidates returns the recorded calls of the request's method, protocol and codec. refusal is the RPC error to
// answer with if there are none, or if the capture cannot be read.
func (x *session) candidates(q *query) (list []*candidate, refusal *envelope.Error) {
	l := x.s.library
	all := l.find(q.key)
	if len(all) == 0 {
		return nil, &envelope.Error{Code: "unimplemented", Message: "the capture has no call of " + x.key + l.suggest(x.key)}
	}
	calls := slices.DeleteFunc(slices.Clone(all), func(c call) bool {
		return c.protocol != x.call.Protocol || c.codec != x.call.Codec
	})
	if len(calls) == 0 {
		return nil, &envelope.Error{Code: "unimplemented", Message: fmt.Sprintf("the capture has %s with %s, not with %s", x.key, nameProtocol(all[0].protocol, all[0].codec), nameProtocol(x.call.Protocol, x.call.Codec))}
	}

	// A client that is sent here under the recorded name wants that server's calls.
	if host := hostOf(x.ex.URL); slices.ContainsFunc(calls, func(c call) bool { return c.host == host }) {
		calls = slices.DeleteFunc(calls, func(c call) bool { return c.host != host })
	}
	if len(calls) > maxCandidates {
		x.note("the request was compared with the first %d of %d recorded calls", maxCandidates, len(calls))
		calls = calls[:maxCandidates]
	}
	for _, c := range calls {
		t, err := l.load(x.r.Context(), c.id)
		if err != nil {
			return nil, &envelope.Error{Code: "internal", Message: "the capture cannot be read: " + err.Error()}
		}
		list = append(list, &candidate{call: c, tape: t})
		list[len(list)-1].compareIDs(x.s.ids, q.head, t.head)
	}
	return list, nil
}

// nameProtocol returns a protocol and its codec for a message, such as "connect and proto".
func nameProtocol(p decode.Protocol, codec string) string {
	return strings.TrimSuffix(fmt.Sprintf("%s and %s", p, codec), " and ")
}

// suggest returns the end of an error message that names a recorded method whose last path segment is equal to that
// of key; "" if there is none.
func (l *library) suggest(key string) string {
	name := key[strings.LastIndexByte(key, '/')+1:]
	var found []string
	for other := range l.byKey {
		if strings.EqualFold(other[strings.LastIndexByte(other, '/')+1:], name) && name != "" {
			found = append(found, other)
		}
	}
	if len(found) == 0 {
		return ""
	}
	return "; it has " + slices.Min(found)
}

// update computes the score from the messages of the request that have arrived.
func (c *candidate) update(ids *identities, q *query) {
	for ; c.seen < len(q.messages); c.seen++ {
		if c.seen < len(c.tape.up) {
			c.sum += diff.Similarity(&q.messages[c.seen], c.tape.up[c.seen])
			c.compareIDs(ids, q.ids[c.seen], c.tape.ids[c.seen])
		}
	}
	sum, n := c.sum, len(q.messages)
	if q.ended {
		// Frames that only the recorded request has count as different.
		n = max(n, len(c.tape.up))
	}
	if q.target != nil && c.tape.target != nil {
		sum += diff.Similarity(q.target, c.tape.target)
		n++
	}
	if c.score = 1; n > 0 {
		c.score = sum / float64(n)
	}
}

// compareIDs compares identifiers of the request with recorded ones at the same positions.
func (c *candidate) compareIDs(ids *identities, request, recorded map[string]string) {
	same, claimed := ids.compare(request, recorded)
	c.same, c.claimed = append(c.same, same...), c.claimed+claimed
}

// compareAllIDs compares the identifiers again, because other requests have been answered meanwhile.
func (c *candidate) compareAllIDs(ids *identities, q *query) {
	c.same, c.claimed = nil, 0
	c.compareIDs(ids, q.head, c.tape.head)
	for i := range min(c.seen, len(c.tape.ids)) {
		c.compareIDs(ids, q.ids[i], c.tape.ids[i])
	}
}

// A turn is a recorded call together with the identifiers for which it answers requests.
type turn struct {
	// exchange is the number of the recorded call.
	exchange int64
	// ids is a hash of the identifiers that the request and the recorded one have in common.
	ids [sha256.Size]byte
}

// maxTurns is the number of turns that are counted.
const maxTurns = 200_000

// turn returns the turn in which c answers the request, so that each client that follows a recorded session with
// identifiers of its own gets the recorded answers from the first one on.
func (c *candidate) turn() turn {
	ids := slices.Compact(slices.Sorted(slices.Values(c.same)))
	return turn{c.id, sha256.Sum256([]byte(strings.Join(ids, "\x00")))}
}

// uses returns how often c has answered requests with the same identifiers; for Never, with any. The caller must hold
// s.mu.
func (s *Server) uses(c *candidate) int {
	if s.o.Repeat == Never {
		return s.report.Used[c.id]
	}
	return s.turns[c.turn()]
}

// use counts a use of c. The caller must hold s.mu.
func (s *Server) use(c *candidate) {
	s.report.Used[c.id]++
	if len(s.turns) >= maxTurns {
		clear(s.turns)
	}
	s.turns[c.turn()]++
}

// targetOf returns the path and the query of a URL as a JSON message, for comparison; nil for an RPC, which is
// identified by its method.
func targetOf(text string, c decode.Call) *decode.Frame {
	u, err := url.Parse(text)
	if err != nil || c.Service != "" {
		return nil
	}
	b, err := json.Marshal(map[string]any{"path": strings.Split(u.Path, "/"), "query": u.Query()})
	if err != nil {
		return nil
	}
	return &decode.Frame{Frame: envelope.Frame{Data: b}}
}

// alike returns the candidates that answer the request equally well, in recorded order; list must not be empty. These
// are the most similar ones; of them, those that equal the request, if any; of them, those with most of its
// identifiers; of them, those whose other identifiers no client has replaced.
func alike(list []*candidate) []*candidate {
	top := slices.MaxFunc(list, func(a, b *candidate) int { return cmp.Compare(a.score, b.score) }).score
	if top < 1 {
		top -= closeEnough
	}
	// The caller's list stays: more frames may change the order.
	list = slices.DeleteFunc(slices.Clone(list), func(c *candidate) bool { return c.score < top })
	better := func(a, b *candidate) int {
		return cmp.Or(cmp.Compare(len(b.same), len(a.same)), cmp.Compare(a.claimed, b.claimed))
	}
	first := slices.MinFunc(list, better)
	list = slices.DeleteFunc(list, func(c *candidate) bool { return better(c, first) != 0 })
	slices.SortFunc(list, func(a, b *candidate) int { return cmp.Compare(a.id, b.id) })
	return list
}

// next returns the one of equally good candidates whose response is sent: the one that was used least often, in
// recorded order. If repeat is Never and all were used, it returns nil.
func next(list []*candidate, repeat Repeat, uses func(*candidate) int) *candidate {
	pick, least := list[0], uses(list[0])
	for _, c := range list[1:] {
		if n := uses(c); n < least {
			pick, least = c, n
		}
	}
	switch {
	case least > 0 && repeat == Never:
		return nil
	case least > 0 && repeat == Last:
		return list[len(list)-1]
	}
	return pick
}
