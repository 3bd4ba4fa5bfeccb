package rules

import (
	"net/http"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"

	"unwire/captures"
	"unwire/decode"
	"unwire/decode/filter"
	"unwire/decode/wire"
	"unwire/mitm/rewrite"
)

const (
	// maxCandidates is the number of calls for which a Set caches the rules that may apply; then the cache is
	// emptied.
	maxCandidates = 1000

	// maxCallKey is the length, in bytes, of the longest key of that cache; calls with a longer one are not cached.
	maxCallKey = 4 << 10
)

// directions are both directions.
var directions = [...]captures.Direction{captures.Up, captures.Down}

// A condition is the part of a rule's filter that remains to be evaluated for the frames of one direction, after
// everything that depends only on the exchange was decided.
type condition struct {
	// value is Yes or No if the filter has the same result for all frames; if it is Unknown, rest decides.
	value filter.Truth
	// rest is the filter without the parts that are already decided; it is evaluated for each frame. nil if value
	// decides.
	rest *filter.Filter

	// need is a field that a message must have so that rest can match; its Name is "" if there is none.
	need filter.Need
}

// conditionOf evaluates the parts of a filter that depend only on the exchange and the direction, and returns the
// rest as a condition for frames. A nil filter matches no frame.
func conditionOf(f *filter.Filter, view *filter.Exchange, d captures.Direction) condition {
	if f == nil {
		return condition{value: filter.No}
	}
	rest, value := f.Given(view, d)
	c := condition{value: value, rest: rest}
	if value == filter.Unknown {
		c.need = rest.Need()
	}
	return c
}

// fieldSet is an approximate set of field numbers: a bit mask in which numbers that are equal modulo 64 share a bit.
type fieldSet uint64

// elementOf returns the set with one field number.
func elementOf(number uint64) fieldSet { return 1 << (number % 64) }

// fieldsOf returns the numbers of a message's top-level fields; all numbers if t is nil.
func fieldsOf(t *wire.Tree) (all fieldSet) {
	if t == nil {
		// Nothing is known.
		return ^fieldSet(0)
	}
	for c := t.Nodes[0].First; c != wire.None; c = t.Nodes[c].Next {
		all |= elementOf(t.Nodes[c].Number)
	}
	return all
}

// holds reports whether the condition is true for a frame. view is the frame's exchange as filters examine it, and
// shown the decoded frame.
func (c condition) holds(view *filter.Exchange, shown filter.Frame) bool {
	if c.value == filter.Unknown {
		return c.rest.Frame(view, shown) == filter.Yes
	}
	return c.value == filter.Yes
}

// A candidate is a rule that may change the exchanges of a call, with its condition for each direction.
type candidate struct {
	// rule is the rule.
	rule *rule
	// when is the condition for frames of each direction, by direction.
	when [len(directions)]condition
}

// A frameRule is a rule that may change frames of one direction, if when holds.
type frameRule struct {
	// rule is the rule.
	rule *rule
	// when is the condition that a frame must fulfil.
	when condition
	// indexed means that the direction's indexes cover the rule.
	indexed bool
}

// A plan lists the rules that may affect one exchange.
type plan struct {
	// rules are those that may change frames, by direction, in the order of the file.
	rules [len(directions)][]frameRule

	// endsUp means that a rule may end the exchange at a frame of the request.
	endsUp bool
	// ending is the rule that ends the exchange before the request is sent; nil if there is none.
	ending *rule

	// indexes quickly detect frames that no rule matches, by direction. An entry is nil if it would cover no
	// rule.
	indexes [len(directions)]*index
	// typedIndexes are the indexes for messages of a known type, by direction; nil until one is needed.
	typedIndexes [len(directions)]atomic.Pointer[typedIndex]
	// partial means that there are rules that no index covers, by direction.
	partial [len(directions)]bool
}

// newPlan returns the plan for an exchange that the rules of list may change.
func newPlan(list []candidate) *plan {
	p := &plan{}
	for _, c := range list {
		decided := true
		for _, d := range directions {
			decided = decided && c.when[d].value == filter.Yes
			if c.when[d].value != filter.No {
				r := frameRule{rule: c.rule, when: c.when[d], indexed: canIndex(c.when[d].need)}
				p.rules[d], p.partial[d] = append(p.rules[d], r), p.partial[d] || !r.indexed
				p.endsUp = p.endsUp || d == captures.Up && c.rule.endsAtHead()
			}
		}
		if decided && p.ending == nil && c.rule.endsAtHead() && c.rule.changesOnlyEnd() {
			p.ending = c.rule
		}
	}
	for _, d := range directions {
		p.indexes[d] = newIndex(p.rules[d], nil)
	}
	return p
}

// A knownCall is the cached result of matching the rules with one call, i.e. with requests of the same URL, method
// and content type.
type knownCall struct {
	// candidates are the rules that may change exchanges of the call. Rules with ofCall unset have no conditions yet;
	// those are determined for each exchange.
	candidates []candidate
	// plan is what the rules may do; nil if that depends on the exchange.
	plan *plan
	// call is the RPC that is called, as far as requests tell.
	call *decode.Call
	// answered is the last result of answeredCall; nil before.
	answered atomic.Pointer[answeredCall]
}

// An answeredCall is the RPC of a call as its request and the content type of its response tell. Nothing else of a
// response matters (see decode.Classify).
type answeredCall struct {
	// contentType is the content type of the response.
	contentType string
	// call is the RPC that is called.
	call *decode.Call
}

// answeredCall returns the RPC of an exchange of the call whose response has arrived. The caller has locked x.mu, or no
// other goroutine uses x yet.
func (c *knownCall) answeredCall(x *exchange) *decode.Call {
	contentType := x.response.Get("content-type")
	if a := c.answered.Load(); a != nil && a.contentType == contentType {
		return a.call
	}
	call := decode.Classify(x.recorded())
	c.answered.Store(&answeredCall{strings.Clone(contentType), &call})
	return &call
}

// matchesNone reports whether no rule may change any exchange of the call.
func (c *knownCall) matchesNone() bool { return c.plan != nil && len(c.candidates) == 0 }

// A candidateCache remembers, for each call, the rules that may change it: most rules match no call at all, and to
// evaluate a hundred filters would cost more than to relay a small call.
type candidateCache struct {
	// mu guards known.
	mu sync.RWMutex
	// known are the entries by call. It is emptied when it has maxCandidates entries.
	known map[callKey]*knownCall
}

// get returns the cached entry for a call; nil if there is none.
func (c *candidateCache) get(key callKey) *knownCall {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.known[key]
}

// put stores the entry for a call.
func (c *candidateCache) put(key callKey, call *knownCall) {
	key, short := key.clone()
	if !short {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.known) >= maxCandidates || c.known == nil {
		c.known = make(map[callKey]*knownCall)
	}
	c.known[key] = call
}

// ofCall are the filter keys whose value is the same for all exchanges with the same callKey, or that concern
// only frames.
var ofCall = map[string]bool{
	"host": true, "method": true, "verb": true, "http": true, "dir": true, "frame": true, "type": true, "len": true, "path": true, "text": true,
}

// termKey matches the keys of terms in the text of a filter, such as "host" in host:api.*. It also matches within
// quotes and values; then the rule is only evaluated anew for each exchange.
var termKey = regexp.MustCompile(`([A-Za-z]+)[:=<>!]`)

// dependsOnCall reports whether the filter with this text has the same value for all exchanges with the same
// callKey.
func dependsOnCall(text string) bool {
	for _, m := range termKey.FindAllStringSubmatch(text, -1) {
		if !ofCall[m[1]] {
			return false
		}
	}
	return true
}

// A callKey identifies a call: requests with the same key are for the same method, and in the same protocol.
type callKey struct {
	// transport is the transport of the exchange.
	transport captures.Transport

	// method is the HTTP method, http the version of HTTP, and url the URL without its query.
	method, http, url string
	// contentType, connectVersion and protocol are the values of the headers that determine the protocol.
	contentType, connectVersion, protocol string

	// query is the protocol and the codec of a GET request with a query, which decides whether that is a call; empty for
	// other requests.
	query string
}

// keyOf returns the key of the call that a request makes.
func keyOf(connection *captures.Exchange, q *rewrite.Request) callKey {
	u, query, _ := strings.Cut(q.URL, "?")
	h := q.Header
	k := callKey{
		transport: connection.Transport, method: q.Method, http: connection.HTTP, url: u, contentType: h.Get("content-type"),
		connectVersion: h.Get("connect-protocol-version"), protocol: h.Get(":protocol"),
	}
	if q.Method == http.MethodGet && query != "" {
		c := decode.Classify(&captures.Exchange{Transport: connection.Transport, Method: q.Method, URL: q.URL, RequestHeaders: h})
		k.query = string(c.Protocol) + " " + c.Codec
	}
	return k
}

// clone returns a copy of the key that shares no memory with the exchange, and whether the key is short enough to be
// kept.
func (k callKey) clone() (own callKey, short bool) {
	size := 0
	for _, part := range [...]*string{&k.method, &k.http, &k.url, &k.contentType, &k.connectVersion, &k.protocol, &k.query} {
		*part = strings.Clone(*part)
		size += len(*part)
	}
	return k, size <= maxCallKey
}

// addCall determines which rules may change exchanges of the call of view, and stores them in the cache.
func (s *Set) addCall(key callKey, view *filter.Exchange) *knownCall {
	classified := view.Call
	call := &knownCall{call: &classified}
	for _, r := range s.rules {
		switch {
		case !r.changesFrames():
		case !r.ofCall:
			// It is evaluated for each exchange.
			call.candidates = append(call.candidates, candidate{rule: r})
		default:
			call.candidates = appendCandidate(call.candidates, r, view)
		}
	}
	if s.ofCalls {
		call.plan = newPlan(call.candidates)
	}
	s.cache.put(key, call)
	return call
}

// newPlan returns which rules may affect one exchange of the call.
func (c *knownCall) newPlan(view *filter.Exchange) *plan {
	// The remembered list has a place for each rule that depends on more than the call.
	var list []candidate
	for _, one := range c.candidates {
		if one.rule.ofCall {
			list = append(list, one)
		} else {
			list = appendCandidate(list, one.rule, view)
		}
	}
	return newPlan(list)
}

// appendCandidate appends a rule to list, unless its filter cannot match any frame of the exchange.
func appendCandidate(list []candidate, r *rule, view *filter.Exchange) []candidate {
	c := candidate{rule: r}
	for _, d := range directions {
		c.when[d] = conditionOf(r.match, view, d)
	}
	if c.when[captures.Up].value == filter.No && c.when[captures.Down].value == filter.No {
		return list
	}
	return append(list, c)
}
