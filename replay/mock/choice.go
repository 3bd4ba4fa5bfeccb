package mock

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"unwire/decode"
	"unwire/decode/diff"
	"unwire/decode/envelope"
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
}

// candidates returns the recorded calls of the request's method, protocol and codec. refusal is the RPC error to
// answer with if there are none; err is an error of reading the capture.
func (x *session) candidates() (list []*candidate, refusal *envelope.Error, err error) {
	l := x.s.library
	all := l.find(x.key)
	if len(all) == 0 {
		return nil, &envelope.Error{Code: "unimplemented", Message: "the capture has no call of " + x.key + l.suggest(x.key)}, nil
	}
	calls := slices.DeleteFunc(slices.Clone(all), func(c call) bool {
		return c.protocol != x.call.Protocol || c.codec != x.call.Codec
	})
	if len(calls) == 0 {
		return nil, &envelope.Error{Code: "unimplemented", Message: fmt.Sprintf("the capture has %s with %s, not with %s", x.key, nameProtocol(all[0].protocol, all[0].codec), nameProtocol(x.call.Protocol, x.call.Codec))}, nil
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
			return nil, nil, err
		}
		list = append(list, &candidate{call: c, tape: t})
	}
	return list, nil, nil
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

// update computes the score from the messages of the request that have arrived. ended means that the request is
// complete. target is the request's URL path and query as a message; nil for an RPC.
func (c *candidate) update(frames []decode.Frame, ended bool, target *decode.Frame) {
	for ; c.seen < len(frames); c.seen++ {
		if c.seen < len(c.tape.up) {
			c.sum += diff.Similarity(&frames[c.seen], c.tape.up[c.seen])
		}
	}
	sum, n := c.sum, len(frames)
	if ended {
		// Frames that only the recorded request has count as different.
		n = max(n, len(c.tape.up))
	}
	if target != nil && c.tape.target != nil {
		sum += diff.Similarity(target, c.tape.target)
		n++
	}
	if c.score = 1; n > 0 {
		c.score = sum / float64(n)
	}
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

// best returns the candidate whose response is sent; nil if repeat is Never and all were used. Of candidates that are
// about equally similar, it prefers the one that was used least often; used counts the uses by exchange.
func best(list []*candidate, repeat Repeat, used map[int64]int) *candidate {
	// The caller's list stays: more frames may change the order.
	list = slices.Clone(list)
	if repeat == Never {
		list = slices.DeleteFunc(list, func(c *candidate) bool { return used[c.id] > 0 })
	}
	if len(list) == 0 {
		return nil
	}
	top := slices.MaxFunc(list, func(a, b *candidate) int { return cmp.Compare(a.score, b.score) }).score
	list = slices.DeleteFunc(list, func(c *candidate) bool { return c.score < top-closeEnough })

	// The least used one, in recorded order.
	slices.SortFunc(list, func(a, b *candidate) int { return cmp.Compare(a.id, b.id) })
	pick := list[0]
	for _, c := range list[1:] {
		if used[c.id] < used[pick.id] {
			pick = c
		}
	}
	if repeat == Last && used[pick.id] > 0 {
		return list[len(list)-1]
	}
	return pick
}
