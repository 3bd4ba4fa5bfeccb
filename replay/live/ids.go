package live

import (
	"maps"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"

	"unwire/captures"
	"unwire/decode"
	"unwire/decode/wire"
	"unwire/replay/live/values"
)

// longestCarried is the largest length in bytes of an identifier, such as one in base64. A longer text
// may be content.
const longestCarried = 96

// IDs maps the identifiers in a capture to those that the live server returned when the calls that
// issued them were sent again. The zero value is empty.
type IDs struct {
	// values are the live identifiers by the captured ones.
	values values.Replacements
	// young and old are the captured identifiers that Update added last, and before those: when young has half of
	// maxTokens, those that are only in old are forgotten.
	young, old map[string]struct{}

	// lost are the words of captured answers that the corresponding live answers lack, each with the path
	// of the value that had it; see values.Terms.
	lost map[string]string

	// captured reports whether a live value occurs in the capture too; nil: none does.
	captured func(id string) bool
}

// SkipCaptured makes Learn ignore live values for which captured returns true: an identifier that the capture has
// itself does not stand for another one of the capture.
func (s *IDs) SkipCaptured(captured func(id string) bool) { s.captured = captured }

// Of returns the live identifier that replaces a captured one, or id itself if there is none.
func (s *IDs) Of(id string) string {
	if now, ok := s.values[id]; ok {
		return now
	}
	return id
}

// Inverse returns the captured identifiers by the live ones. If several captured identifiers have one live
// identifier, the first one in alphabetical order counts.
func (s *IDs) Inverse() *IDs {
	out := &IDs{values: make(values.Replacements, len(s.values))}
	for _, old := range slices.Sorted(maps.Keys(s.values)) {
		if _, known := out.values[s.values[old]]; !known {
			out.values[s.values[old]] = old
		}
	}
	return out
}

// Learn compares a live response with the captured one. Identifiers in the same position correspond to
// each other: in headers and trailers, those of the same name; in messages, those at the same path in
// the nth message of the same shape.
func (s *IDs) Learn(links *Links, answer *decode.Exchange) {
	if s.values == nil {
		s.values = values.Replacements{}
	}
	for _, pair := range [...][2]captures.Headers{{links.captured.ResponseHeaders, answer.ResponseHeaders}, {trailersOf(links.captured), trailersOf(answer)}} {
		was, is := parseHeaders(pair[0]), parseHeaders(pair[1])
		if was != nil && is != nil {
			s.addPair(was, is)
		}
	}
	live := NewLinks(answer, links.types)
	for j := range links.down {
		was := &links.down[j]
		if was.heartbeat || was.shape.IsHeaders() {
			continue
		}
		nth := links.target(j, "").nth
		for k := range live.down {
			if is := &live.down[k]; !is.heartbeat && is.shape.Matches(was.shape) {
				if nth--; nth == 0 {
					s.addPair(was, is)
					s.noteLost(was, live)
				}
			}
		}
	}
}

// noteLost records the words of a captured message that no message of the live answer has.
func (s *IDs) noteLost(was *parsedMessage, answer *Links) {
	have := func(term string) bool {
		for k := range answer.down {
			if answer.down[k].termsOf()[term] != "" {
				return true
			}
		}
		return false
	}
	for term, path := range was.termsOf() {
		if _, known := s.values[term]; known || len(s.lost) >= maxTokens || have(term) {
			continue
		}
		if s.lost == nil {
			s.lost = map[string]string{}
		}
		s.lost[term] = path
	}
}

// Lost returns a word of captured answers in the client's frame f that the live answers lack, with its path
// there and in the captured answer. Words that also occur in the messages of ex before the frame do not
// count. ok is false if there is none.
func (s *IDs) Lost(ex *decode.Exchange, f *decode.Frame) (word, path, from string, ok bool) {
	if s == nil || len(s.lost) == 0 {
		return "", "", "", false
	}
	terms := values.Terms(values.Leaves(f, nil))
	maps.DeleteFunc(terms, func(word, _ string) bool { return s.lost[word] == "" })
	for i := range ex.Frames {
		o := &ex.Frames[i]
		if len(terms) == 0 {
			break
		}
		if o.Dir == captures.Down && IsMessage(o) {
			for word := range values.Terms(values.Leaves(o, nil)) {
				delete(terms, word)
			}
		}
	}
	if len(terms) == 0 {
		return "", "", "", false
	}
	word = slices.Min(slices.Collect(maps.Keys(terms)))
	return word, terms[word], s.lost[word], true
}

// addPair maps the identifiers in a captured message (was) to those at the same paths in the live
// message (is).
func (s *IDs) addPair(was, is *parsedMessage) {
	at := map[string]*values.Leaf{}
	for k := range is.leaves {
		at[is.leaves[k].Path] = &is.leaves[k]
	}
	for k := range was.leaves {
		v := &was.leaves[k]
		w := at[v.Path]
		if w == nil || v.Number != w.Number && (v.Data == nil || w.Data == nil) || v.Value == w.Value {
			continue
		}
		parts, known := v.Parts(), map[string]bool{}
		for _, p := range parts {
			known[p.At] = true
		}
		fresh := map[string]string{}
		for _, p := range w.PartsWith(known) {
			fresh[p.At] = p.Value
		}
		for _, p := range parts {
			now, ok := fresh[p.At]
			if !ok || !s.mayStandFor(now, &p) {
				continue
			}
			// The client may spell the identifier in another way than the server.
			for _, how := range values.Spellings {
				old, ok := how.Of(p.Value)
				spelt, isToo := how.Of(now)
				if _, known := s.values[old]; ok && isToo && !known && len(old) >= values.ShortText && len(s.values) < maxTokens {
					s.values[old] = spelt
				}
			}
		}
	}
}

// mayStandFor reports whether the live value now may be an identifier in place of a captured value.
func (s *IDs) mayStandFor(now string, captured *values.Part) bool {
	return now != captured.Value && (captured.ID || isName(captured.Value) || isBase64ID(captured.Value)) && (s.captured == nil || !s.captured(now))
}

// isName reports whether a text may be a name that a server has generated: a word with digits, or with
// a random mixture of upper and lower case.
func isName(s string) bool {
	if !utf8.ValidString(s) {
		return false
	}
	return isIDLike("t"+s) || isMixed(s)
}

// isMixed reports whether a text is one word with a random mixture of upper and lower case.
func isMixed(s string) bool {
	mixed := 0
	for i := 1; i < len(s); i++ {
		if s[i] >= 'A' && s[i] <= 'Z' && s[i-1] >= 'a' && s[i-1] <= 'z' {
			mixed++
		}
	}
	return mixed >= 3 && len(s) >= values.ShortText && !strings.ContainsAny(s, " /\\.\n")
}

// standardAlphabet converts base64url to base64, the alphabet of gRPC's binary metadata. A captured identifier may have
// no character that shows which of both the client uses.
var standardAlphabet = strings.NewReplacer("-", "+", "_", "/")

// Apply replaces the identifiers in a captured exchange by the live ones, as if the server had issued
// them in the capture. headers are the names (in lower case) of the headers, and changed the numbers of
// the client frames, in which identifiers were replaced. Trailers count as headers. If nothing was
// replaced, out is ex.
func (s *IDs) Apply(ex *decode.Exchange) (out *decode.Exchange, headers []string, changed map[int]bool) {
	changed = map[int]bool{}
	if s == nil || len(s.values) == 0 {
		return ex, nil, changed
	}
	c := *ex
	c.Frames = slices.Clone(ex.Frames)
	for _, list := range [...]*captures.Headers{&c.RequestHeaders, &c.RequestTrailers} {
		*list = slices.Clone(*list)
		for i := range *list {
			h := &(*list)[i]
			if value, ok := s.values.In(h.Value, 0); ok {
				name := strings.ToLower(h.Name)
				if strings.HasSuffix(name, "-bin") {
					value = standardAlphabet.Replace(value)
				}
				h.Value = value
				headers = append(headers, name)
			}
		}
	}

	// IDs can occur in the URL too, as a path segment or a query parameter.
	if u, err := url.Parse(c.URL); err == nil {
		if u, ok := replaceInURL(s.values, u); ok {
			c.URL = u.String()
			headers = append(headers, "url")
		}
	}

	// A changed message is parsed again, because its offsets have moved. The JSON of an error is like a message.
	for i := range c.Frames {
		f := &c.Frames[i]
		if !IsMessage(f) && f.End == nil || f.Err != nil {
			continue
		}
		data, ok := s.values.Message(f.Data, f.Tree == nil)
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

// Update adds the identifiers of other. They replace earlier ones.
//
// Limits: 200,000 identifiers; once there are more, those that were added first are forgotten.
func (s *IDs) Update(other *IDs) {
	if len(other.values) > 0 && s.values == nil {
		s.values, s.young = values.Replacements{}, map[string]struct{}{}
	}
	for captured, now := range other.values {
		if len(s.young) >= maxTokens/2 {
			for id := range s.old {
				if _, again := s.young[id]; !again {
					delete(s.values, id)
				}
			}
			s.old, s.young = s.young, map[string]struct{}{}
		}
		s.values[captured], s.young[captured] = now, struct{}{}
	}
}
