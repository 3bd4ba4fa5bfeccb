package rules

import (
	"regexp"
	"strings"
	"sync"

	"unwire/captures"
	"unwire/decode"
	"unwire/decode/filter"
	"unwire/decode/wire"
)

const (
	// maxCandidates limits the calls whose rules a Set remembers.
	maxCandidates = 1000

	// maxCallKey limits the length of a callKey that is remembered, in bytes.
	maxCallKey = 4 << 10
)

// directions are both directions.
var directions = [...]captures.Direction{captures.Up, captures.Down}

// A condition is what is left of a filter for the frames of one direction of an exchange.
type condition struct {
	// value is Yes or No if it is the same for all frames. Otherwise rest decides.
	value filter.Truth
	rest  *filter.Filter

	// need is a field that a message must have.
	need filter.Need
}

// conditionOf returns the part of a filter that depends on the frame; nil matches no frame.
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

// fieldSet is a set of field numbers. Different numbers may have the same element.
type fieldSet uint64

func elementOf(number uint64) fieldSet { return 1 << (number % 64) }

// fieldsOf returns the fields at the top of a message.
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

// holds reports whether the condition is true for a frame.
func (c condition) holds(view *filter.Exchange, shown filter.Frame) bool {
	if c.value == filter.Unknown {
		return c.rest.Frame(view, shown) == filter.Yes
	}
	return c.value == filter.Yes
}

// A candidate is a rule that may change the exchanges of a call, with its condition for each direction.
type candidate struct {
	rule *rule
	when [len(directions)]condition
}

// A frameRule is a rule that may change frames of one direction, if when holds.
type frameRule struct {
	rule *rule
	when condition
}

// A plan is what rules may do to an exchange.
type plan struct {
	// rules are those that may change frames, by direction, in the order of the file.
	rules [len(directions)][]frameRule

	// ending ends the exchange before the request is sent. It may be nil.
	ending *rule

	// indexes exclude rules quickly, by direction.
	indexes [len(directions)]*index
}

// newPlan returns what candidates may do.
func newPlan(list []candidate) *plan {
	p := &plan{}
	for _, c := range list {
		decided := true
		for _, d := range directions {
			decided = decided && c.when[d].value == filter.Yes
			if c.when[d].value != filter.No {
				p.rules[d] = append(p.rules[d], frameRule{c.rule, c.when[d]})
			}
		}
		if decided && p.ending == nil && c.rule.endsAtHead() && c.rule.changesOnlyEnd() {
			p.ending = c.rule
		}
	}
	for _, d := range directions {
		p.indexes[d] = newIndex(p.rules[d])
	}
	return p
}

// A knownCall is what is remembered of a call: the rules that may change it, and what they may do if that is the same
// for all exchanges of the call.
type knownCall struct {
	candidates []candidate
	plan       *plan
}

// A candidateCache remembers, for each call, the rules that may change it: most rules match no call at all, and to
// evaluate a hundred filters would cost more than to relay a small call.
type candidateCache struct {
	mu    sync.RWMutex
	known map[string]knownCall
}

// get returns what is remembered of a call.
func (c *candidateCache) get(key []byte) (call knownCall, known bool) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	// A conversion in an index expression allocates nothing.
	call, known = c.known[string(key)]
	return call, known
}

// put remembers a call.
func (c *candidateCache) put(key []byte, call knownCall) {
	if len(key) > maxCallKey {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.known) >= maxCandidates || c.known == nil {
		c.known = make(map[string]knownCall)
	}
	c.known[string(key)] = call
}

// ofCall are the keys of a filter whose value is the same for all exchanges with the same callKey, or that concern
// frames.
var ofCall = map[string]bool{
	"host": true, "method": true, "verb": true, "http": true, "dir": true, "frame": true, "type": true, "len": true, "path": true, "text": true,
}

// termKey finds what may be the key of a term. What it finds in quotes or values only makes a rule be evaluated anew.
var termKey = regexp.MustCompile(`([A-Za-z]+)[:=<>!]`)

// dependsOnCall reports whether a filter has the same value for all exchanges with the same callKey.
func dependsOnCall(text string) bool {
	for _, m := range termKey.FindAllStringSubmatch(text, -1) {
		if !ofCall[m[1]] {
			return false
		}
	}
	return true
}

// appendCallKey appends a key that is equal for exchanges for which filters of a call have the same value.
func appendCallKey(key []byte, ex *captures.Exchange) []byte {
	u, query, _ := strings.Cut(ex.URL, "?")
	h := ex.RequestHeaders
	for _, part := range [...]string{
		string(ex.Transport), ex.Method, ex.HTTP, u, h.Get("content-type"), h.Get("connect-protocol-version"), h.Get(":protocol"),
	} {
		key = append(append(key, part...), 0)
	}
	if ex.Method == "GET" && query != "" {
		// The query decides whether a GET is a call.
		c := decode.Classify(ex)
		key = append(append(append(key, c.Protocol...), 0), c.Codec...)
	}
	return key
}

// matchesNone reports whether it is remembered that no rule may change the exchanges of a call.
func (s *Set) matchesNone(ex *captures.Exchange) bool {
	if !s.ofCalls {
		return false
	}
	var space [256]byte
	call, known := s.cache.get(appendCallKey(space[:0], ex))
	return known && len(call.candidates) == 0
}

// planFor returns what the rules may do to an exchange.
func (s *Set) planFor(view *filter.Exchange) *plan {
	key := appendCallKey(nil, view.Exchange)
	call, known := s.cache.get(key)
	if !known {
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
	}
	if call.plan != nil {
		return call.plan
	}

	// The remembered list has a place for each rule that depends on more than the call.
	var list []candidate
	for _, c := range call.candidates {
		if c.rule.ofCall {
			list = append(list, c)
		} else {
			list = appendCandidate(list, c.rule, view)
		}
	}
	return newPlan(list)
}

// appendCandidate appends a rule, unless it cannot match a frame of the exchange.
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
