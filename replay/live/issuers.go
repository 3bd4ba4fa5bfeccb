package live

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"net/url"
	"slices"

	"unwire/captures"
	"unwire/captures/store"
	"unwire/decode"
	"unwire/decode/transcript/ident"
	"unwire/replay/live/values"
)

// An issuers value finds the earlier calls that issued identifiers which a request needs.
type issuers struct {
	// tokens maps each issued identifier to the exchange that issued it first.
	tokens map[string]int64
	// own are the values that a client sent before any server did, so that no server issued them.
	own map[string]bool

	// needs maps an exchange to the set of exchanges that issued the identifiers in its request.
	needs map[int64]map[int64]bool

	// budget limits how many bytes are decompressed.
	budget values.Budget
}

// maxEarlier limits the number of earlier exchanges that are examined.
const maxEarlier = 200

// Issuers returns, in order, the earlier exchanges of a capture that issued identifiers which exchange
// id sends, together with the exchanges on which these depend. If they are sent again first, the live
// server knows the request's identifiers.
//
// Limits: the last 200 exchanges with the same host.
func Issuers(ctx context.Context, store *store.Store, id int64) ([]int64, error) {
	// Only exchanges with the same host can have issued them.
	earlier, err := earlierOnHost(ctx, store, id)
	if err != nil {
		return nil, err
	}
	s := &issuers{tokens: map[string]int64{}, own: map[string]bool{}, needs: map[int64]map[int64]bool{}, budget: values.MaxInflated}
	for _, n := range append(earlier, id) {
		ex, err := decode.Decode(ctx, store, n, decode.Options{})
		if err != nil {
			return nil, fmt.Errorf("replay: %w", err)
		}
		s.addExchange(n, ex)
	}

	// The dependencies are transitive.
	found := map[int64]bool{}
	s.follow(id, found)
	return slices.Sorted(maps.Keys(found)), nil
}

// follow adds to found the exchanges on which exchange id depends, directly and indirectly.
func (s *issuers) follow(id int64, found map[int64]bool) {
	for n := range s.needs[id] {
		if n != id && !found[n] {
			found[n] = true
			s.follow(n, found)
		}
	}
}

// addExchange examines the next exchange of the capture, with its frames in captured order.
func (s *issuers) addExchange(id int64, ex *decode.Exchange) {
	// Everything in the request was known to the client, before any answer of this exchange.
	for _, h := range ex.RequestHeaders {
		s.addRequestValue(id, []byte(h.Value))
	}
	if u, err := url.Parse(ex.URL); err == nil {
		for _, text := range urlTexts(u) {
			s.addRequestValue(id, []byte(text))
		}
	}

	// Frames count in captured order: the client may send back an id within the same exchange.
	for i := range ex.Frames {
		f := &ex.Frames[i]
		if !IsMessage(f) {
			continue
		}
		for _, l := range values.Leaves(f, nil) {
			l.Budget = &s.budget
			switch {
			case l.Data == nil && !l.Number || l.IsMessage():
			case f.Dir == captures.Up:
				s.addRequestParts(id, l.Candidates())
			default:
				s.addIssuedParts(id, l.Parts(), false)
			}
		}
	}
	for _, h := range slices.Concat(ex.ResponseHeaders, trailersOf(ex)) {
		s.addIssuedValue(id, []byte(h.Value), true)
	}
}

// addIssuedValue adds the identifiers in a value of exchange id's response. In a header, any name may
// be an identifier; in a message, only values in the format of an identifier and random names count, because models
// and files have names too.
func (s *issuers) addIssuedValue(id int64, data []byte, inHeader bool) {
	s.addIssuedParts(id, values.PartsOf(data, &s.budget), inHeader)
}

// addIssuedParts is addIssuedValue for a value that is already split into its parts.
func (s *issuers) addIssuedParts(id int64, parts []values.Part, inHeader bool) {
	for _, p := range parts {
		if !isIssued(&p, inHeader) || values.ClassOf(p.Value) == ident.Time {
			continue
		}
		for _, how := range values.Spellings {
			if out, ok := how.Of(p.Value); ok && len(out) >= values.ShortText && !s.own[out] && len(s.tokens) < maxTokens {
				if _, known := s.tokens[out]; !known {
					s.tokens[out] = id
				}
			}
		}
	}
}

// isIssued reports whether a part of a response's value may be an identifier.
func isIssued(p *values.Part, inHeader bool) bool {
	switch {
	case p.ID:
		return true
	case p.At != "":
		return false
	case inHeader:
		return isName(p.Value)
	}
	return values.IsRandomName(p.Value) || isBase64ID(p.Value)
}

// addRequestValue examines a value in the request of exchange id: if it contains identifiers that an
// earlier exchange issued, the exchange needs that one.
func (s *issuers) addRequestValue(id int64, data []byte) {
	s.addRequestParts(id, values.CandidatesIn(data, func() []values.Part { return values.PartsOf(data, &s.budget) }))
}

// addRequestParts is addRequestValue for the candidates for identifiers in a value.
func (s *issuers) addRequestParts(id int64, candidates iter.Seq[values.Candidate]) {
	for c := range candidates {
		w := c.Value
		if len(w) < values.ShortText {
			continue
		}
		if from, ok := s.tokens[w]; ok {
			if s.needs[id] == nil {
				s.needs[id] = map[int64]bool{}
			}
			s.needs[id][from] = true
		} else if len(s.own) < maxTokens {
			s.own[w] = true
		}
	}
}
