package live

import (
	"context"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"

	"unwire/captures"
	"unwire/captures/store"
	"unwire/decode"
	"unwire/decode/transcript/ident"
)

// An issuers finds the calls whose answers a later request depends on.
type issuers struct {
	tokens map[string]int64 // what was issued, by the exchange that had it first
	own    map[string]bool  // what the client said first
	needs  map[int64]map[int64]bool
}

// maxEarlier bounds how many earlier exchanges are looked into.
const maxEarlier = 200

// Issuers are the earlier exchanges of a capture that issued identifiers which
// the request of exchange id carries, and those that they depend on themselves,
// in their order: sent first, with IDs, they make the request a live one.
//
// Limits: the last 200 exchanges before it with the same host.
func Issuers(ctx context.Context, store *store.Store, id int64) ([]int64, error) {
	last, err := store.Exchange(ctx, id)
	if err != nil {
		return nil, fmt.Errorf("replay: %w", err)
	}
	host, err := url.Parse(last.URL)
	if err != nil {
		return nil, fmt.Errorf("replay: %w", err)
	}
	var earlier []int64
	for row, err := range store.Exchanges(ctx) {
		if err != nil {
			return nil, fmt.Errorf("replay: %w", err)
		}
		if u, err := url.Parse(row.URL); err == nil && row.ID < id && strings.EqualFold(u.Host, host.Host) {
			earlier = append(earlier, row.ID)
		}
	}
	s := &issuers{tokens: map[string]int64{}, own: map[string]bool{}, needs: map[int64]map[int64]bool{}}
	for _, n := range append(earlier[max(0, len(earlier)-maxEarlier):], id) {
		ex, err := decode.Decode(ctx, store, n, decode.Options{})
		if err != nil {
			return nil, fmt.Errorf("replay: %w", err)
		}
		s.addExchange(n, ex)
	}
	found := map[int64]bool{}
	s.follow(id, found)
	return slices.Sorted(maps.Keys(found)), nil
}

func (s *issuers) follow(id int64, found map[int64]bool) {
	for n := range s.needs[id] {
		if n != id && !found[n] {
			found[n] = true
			s.follow(n, found)
		}
	}
}

// addExchange reads the next exchange, in the order in which its frames passed.
func (s *issuers) addExchange(id int64, ex *decode.Exchange) {
	for _, h := range ex.RequestHeaders {
		s.addRequestValue(id, []byte(h.Value))
	}
	if u, err := url.Parse(ex.URL); err == nil {
		s.addRequestValue(id, []byte(u.Path))
		s.addRequestValue(id, []byte(u.RawQuery))
	}
	for i := range ex.Frames {
		f := &ex.Frames[i]
		if !IsMessage(f) {
			continue
		}
		for _, l := range leavesOf(f, nil) {
			switch {
			case l.number || l.inner > 0 && !isPrintable(l.data):
			case f.Dir == captures.Up:
				s.addRequestValue(id, l.data)
			default:
				s.addIssuedValue(id, l.data, false)
			}
		}
	}
	for _, h := range slices.Concat(ex.ResponseHeaders, ex.ResponseTrailers) {
		s.addIssuedValue(id, []byte(h.Value), true)
	}
}

// addIssuedValue adds the identifiers in a value of an answer. Of one that is all of a header a name will
// do; in messages, where models and files have names, it must be an identifier.
func (s *issuers) addIssuedValue(id int64, data []byte, inHeader bool) {
	for _, p := range partsOf(data) {
		if !p.id && !(inHeader && p.at == "" && isName(p.value)) || classOf(p.value) == ident.Time {
			continue
		}
		for _, how := range spellings {
			if out, ok := how.of(p.value); ok && len(out) >= shortText && !s.own[out] && len(s.tokens) < maxTokens {
				if _, known := s.tokens[out]; !known {
					s.tokens[out] = id
				}
			}
		}
	}
}

func (s *issuers) addRequestValue(id int64, data []byte) {
	for w := range candidates(data) {
		if len(w) < shortText {
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

// candidates are the values in a text or bytes that may have been issued; whole
// tells those that are no words of a longer text.
func candidates(data []byte) func(yield func(w string, whole bool) bool) {
	return func(yield func(string, bool) bool) {
		s := string(data)
		if !yield(s, true) || !utf8.ValidString(s) || len(s) > maxTraced || len(s) < shortText {
			return
		}
		for _, p := range partsOf(data)[1:] {
			if !strings.HasPrefix(p.at, "word ") && !yield(p.value, true) {
				return
			}
		}
		for w := range wordsOf(s) {
			if !yield(w, false) {
				return
			}
		}
	}
}
