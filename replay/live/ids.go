package live

import (
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"

	"unwire/captures"
	"unwire/decode"
	"unwire/decode/wire"
)

// IDs maps the identifiers in a capture to those that the live server returned when
// the calls that issued them were sent again. Its zero value has none.
type IDs struct{ values replacements }

// Learn compares the answer of a request that was sent with the captured one. What
// identifies something in both, in the same place, is the same thing: in headers
// and trailers by their name, in messages by path in the nth of their shape.
func (s *IDs) Learn(links *Links, answer *decode.Exchange) {
	if s.values == nil {
		s.values = replacements{}
	}
	for _, pair := range [...][2]captures.Headers{{links.captured.ResponseHeaders, answer.ResponseHeaders}, {links.captured.ResponseTrailers, answer.ResponseTrailers}} {
		was, is := parseHeaders(pair[0]), parseHeaders(pair[1])
		if was != nil && is != nil {
			s.addPair(was, is)
		}
	}
	live := NewLinks(answer, links.types)
	for j := range links.down {
		was := &links.down[j]
		if was.heartbeat || was.shape.isHeaders() {
			continue
		}
		nth := links.target(j, "").nth
		for k := range live.down {
			if is := &live.down[k]; !is.heartbeat && is.shape.matches(was.shape) {
				if nth--; nth == 0 {
					s.addPair(was, is)
				}
			}
		}
	}
}

// addPair adds the values of two messages that correspond.
func (s *IDs) addPair(was, is *parsedMessage) {
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
func (s *IDs) Apply(ex *decode.Exchange) (out *decode.Exchange, headers []string, changed map[int]bool) {
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
