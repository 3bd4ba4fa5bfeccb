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
	"unwire/decode/wire"
)

// Issued are the values that a server issued in earlier calls, with those that it
// issued when these calls were sent again. Its zero value has none.
type Issued struct{ values exchanged }

// Learn compares the answer of a request that was sent with the captured one. What
// identifies something in both, in the same place, is the same thing: in headers
// and trailers by their name, in messages by path in the nth of their shape.
func (s *Issued) Learn(links *Links, answer *decode.Exchange) {
	if s.values == nil {
		s.values = exchanged{}
	}
	for _, pair := range [...][2]captures.Headers{{links.captured.ResponseHeaders, answer.ResponseHeaders}, {links.captured.ResponseTrailers, answer.ResponseTrailers}} {
		was, is := hearHeaders(pair[0]), hearHeaders(pair[1])
		if was != nil && is != nil {
			s.pair(was, is)
		}
	}
	live := NewLinks(answer, links.types)
	for j := range links.down {
		was := &links.down[j]
		if was.heartbeat || was.shape.isAside() {
			continue
		}
		nth := links.target(j, "").nth
		for k := range live.down {
			if is := &live.down[k]; !is.heartbeat && is.shape.matches(was.shape) {
				if nth--; nth == 0 {
					s.pair(was, is)
				}
			}
		}
	}
}

// pair takes the values of two messages that correspond.
func (s *Issued) pair(was, is *heard) {
	at := map[string]*leaf{}
	for k := range is.leaves {
		at[is.leaves[k].path] = &is.leaves[k]
	}
	for k := range was.leaves {
		v := &was.leaves[k]
		w := at[v.path]
		if w == nil || v.number || w.number || v.value == w.value {
			continue
		}
		fresh := map[string]string{}
		for _, p := range partsOf(w.data) {
			fresh[p.at] = p.value
		}
		for _, p := range partsOf(v.data) {
			now, ok := fresh[p.at]
			if !ok || now == p.value || !p.id && !isName(p.value) {
				continue
			}
			for _, how := range spellings {
				old, ok := how.of(p.value)
				spelt, isToo := how.of(now)
				if _, known := s.values[old]; ok && isToo && !known && len(old) >= shortText && len(s.values) < maxTokens {
					s.values[old] = spelt
				}
			}
		}
	}
}

// isName reports whether a text may be one that a server made up to name
// something by: a word with digits in it, or with letters in both cases at random.
func isName(s string) bool {
	if !utf8.ValidString(s) {
		return false
	}
	mixed := 0
	for i := 1; i < len(s); i++ {
		if s[i] >= 'A' && s[i] <= 'Z' && s[i-1] >= 'a' && s[i-1] <= 'z' {
			mixed++
		}
	}
	return isIDLike("t"+s) || mixed >= 3 && len(s) >= shortText && !strings.ContainsAny(s, " /\\.\n")
}

// Apply puts the live values into a captured exchange: then it is as if the
// server had issued them when that was captured. changed are the numbers of the
// frames up that have some, headers the names of those that have.
func (s *Issued) Apply(ex *decode.Exchange) (out *decode.Exchange, headers []string, changed map[int]bool) {
	changed = map[int]bool{}
	if s == nil || len(s.values) == 0 {
		return ex, nil, changed
	}
	c := *ex
	c.Frames, c.RequestHeaders = slices.Clone(ex.Frames), slices.Clone(ex.RequestHeaders)
	for i := range c.RequestHeaders {
		h := &c.RequestHeaders[i]
		if value, ok := s.values.in(h.Value, 0); ok {
			h.Value = value
			headers = append(headers, strings.ToLower(h.Name))
		}
	}
	if u, err := url.Parse(c.URL); err == nil {
		path, inPath := s.values.in(u.Path, maxNested)
		query, inQuery := s.values.in(u.RawQuery, maxNested)
		if inPath || inQuery {
			u.Path, u.RawPath, u.RawQuery = path, "", query
			c.URL = u.String()
			headers = append(headers, "url")
		}
	}
	for i := range c.Frames {
		f := &c.Frames[i]
		if !IsMessage(f) || f.Err != nil {
			continue
		}
		data, ok := s.values.message(f.Data, f.Tree == nil)
		if !ok {
			continue
		}
		if f.Data, f.Inner = data, nil; f.Tree != nil {
			f.Tree = wire.Parse(data, wire.Options{})
		}
		if f.Dir == captures.Up {
			changed[f.Seq] = true
		}
	}
	return &c, headers, changed
}

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
// in their order: sent first, with Issued, they make the request a live one.
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
		s.take(n, ex)
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

// take reads the next exchange, in the order in which its frames passed.
func (s *issuers) take(id int64, ex *decode.Exchange) {
	for _, h := range ex.RequestHeaders {
		s.said(id, []byte(h.Value))
	}
	if u, err := url.Parse(ex.URL); err == nil {
		s.said(id, []byte(u.Path))
		s.said(id, []byte(u.RawQuery))
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
				s.said(id, l.data)
			default:
				s.issued(id, l.data, false)
			}
		}
	}
	for _, h := range slices.Concat(ex.ResponseHeaders, ex.ResponseTrailers) {
		s.issued(id, []byte(h.Value), true)
	}
}

// issued takes a value of an answer. Of one that is all of a header a name will
// do; in messages, where models and files have names, it must be an identifier.
func (s *issuers) issued(id int64, data []byte, inHeader bool) {
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

func (s *issuers) said(id int64, data []byte) {
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
