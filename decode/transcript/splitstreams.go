package transcript

import (
	"slices"
	"strconv"
	"strings"

	"unwire/captures"
	"unwire/decode/transcript/ident"
)

// split parts the streams whose texts are told apart by a field beside them: a
// role, or the name of a kind, as {"type":"text_delta","text":"Hi"} has it.
func (c *collection) split() []*stream {
	for _, s := range c.streams {
		s.discriminates = s.isDiscriminator(c)
		for _, p := range s.pieces {
			g := &c.groups[p.group]
			if s.discriminates {
				g.label = strings.TrimPrefix(g.label+" "+p.text, " ")
			} else if g.id == "" && len(p.text) < 100 && isIdent(p.text) {
				g.id = p.text
			}
		}
	}
	for _, s := range c.streams {
		s.dropRepeatedPrefix()
	}
	c.common = commonWords(c.streams)
	var out []*stream
	for _, s := range c.streams {
		parts := make(map[string]*stream)
		last := ""
		outer := c.labelLevel(s)
		for _, p := range s.pieces {
			label := ""
			if !s.discriminates {
				label = c.labelOf(p.group, outer)
			}
			if label == "" {
				label = last // said once, for what follows
			}
			last = label
			part := parts[label]
			if part == nil {
				part = &stream{dir: s.dir, path: s.path, name: s.name, label: label, stored: s.stored, discriminates: s.discriminates, whole: s.whole}
				parts[label] = part
				out = append(out, part)
			}
			part.pieces = append(part.pieces, p)
		}
	}
	sent := c.sent()
	for i := 0; i < len(out); i++ {
		if ids := out[i].splitIDs(); ids != nil {
			out = slices.Insert(out, i+1, ids)
		}
		if told := out[i].splitEchoes(sent); told != nil {
			out = slices.Insert(out, i+1, told)
		}
		if parts := c.splitVariants(out[i]); parts != nil {
			out = slices.Replace(out, i, i+1, parts...)
			i += len(parts) - 1
		}
	}
	return out
}

// dropRepeatedPrefix keeps the values that are new in each frame, where each frame of the
// server has the list of the one before, with more behind it.
func (s *stream) dropRepeatedPrefix() {
	if s.dir != captures.Down || len(s.pieces) < 3 {
		return
	}
	var out []piece
	var before []piece // of the frame before
	for i := 0; i < len(s.pieces); {
		end := i + 1
		for end < len(s.pieces) && s.pieces[end].frame == s.pieces[i].frame {
			end++
		}
		list := s.pieces[i:end]
		if len(list) < len(before) || !slices.EqualFunc(list[:len(before)], before, func(a, b piece) bool { return a.text == b.text }) {
			return
		}
		out = append(out, list[len(before):]...)
		before, i = list, end
	}
	if len(before) > 1 && before[0].frame != s.pieces[0].frame && len(s.pieces) > len(before) {
		s.pieces, s.whole = out, true
	}
}

const leastKinds = 3 // names of kinds that may have a word in common

// commonWords are the words that all names of kinds at a path have, as all events
// of a response are called response.something: they say nothing of any.
func commonWords(streams []*stream) map[string]bool {
	out := make(map[string]bool)
	for _, s := range streams {
		if !s.discriminates {
			continue
		}
		names := make(map[string]bool)
		words := make(map[string]int)
		for _, p := range s.pieces {
			if names[p.text] {
				continue
			}
			names[p.text] = true
			for w := range nameParts(p.text) {
				words[w]++
			}
		}
		for w, n := range words {
			if n == len(names) && n >= leastKinds {
				out[w] = true
			}
		}
	}
	return out
}

// splitIDs parts the identifiers from the texts of a path that has both, or returns
// nil where it has one of them only.
func (s *stream) splitIDs() *stream {
	return s.splitOff("id", func(i int) bool {
		inText := i > 0 && strings.HasSuffix(s.pieces[i-1].text, " ") || i+1 < len(s.pieces) && strings.HasPrefix(s.pieces[i+1].text, " ")
		return !inText && len(s.pieces[i].text) >= leastID && isIdent(s.pieces[i].text)
	})
}

// splitOff parts the pieces of one sort from the others, or returns nil where all or
// none are of it.
func (s *stream) splitOff(sort string, is func(i int) bool) *stream {
	var taken, rest []piece
	for i, p := range s.pieces {
		if is(i) {
			taken = append(taken, p)
		} else {
			rest = append(rest, p)
		}
	}
	if len(taken) == 0 || len(rest) == 0 {
		return nil
	}
	part := *s
	part.pieces, part.variant = taken, sort
	s.pieces = rest
	return &part
}

// Bytes of a value that is what the client sent, and not by chance.
const minEcho = 12

// sent are the values that the client sent, with the frame.
func (c *collection) sent() map[string]int {
	out := make(map[string]int)
	for _, s := range c.streams {
		if s.dir != captures.Up {
			continue
		}
		for _, p := range s.pieces {
			if _, ok := out[p.text]; !ok && len(p.text) >= minEcho {
				out[p.text] = p.frame
			}
		}
	}
	return out
}

// splitEchoes parts the values that the client had sent from those that the server
// says itself on the same path, or returns nil where there are none of either.
func (s *stream) splitEchoes(sent map[string]int) *stream {
	if s.dir != captures.Down || s.discriminates || len(s.pieces) < 2 {
		return nil
	}
	return s.splitOff("sent", func(i int) bool {
		frame, ok := sent[s.pieces[i].text]
		return ok && frame < s.pieces[i].frame
	})
}

const leastID = 16 // bytes of an identifier that stands among texts

const maxLevels = 4 // of labels, one around the other, that are looked at

// labelLevel is which of the labels around the texts of s tells them apart: 0 is
// the nearest. A type that is the same for all of them says nothing where the kind
// of the event around it does.
func (c *collection) labelLevel(s *stream) int {
	if s.discriminates {
		return 0
	}
	for level := range maxLevels {
		first, some := "", false
		for i, p := range s.pieces {
			label, ok := c.labelAt(p.group, level)
			some = some || ok
			if i == 0 {
				first = label
			} else if label != first {
				return level
			}
		}
		if !some {
			break
		}
	}
	return 0
}

// labelOf is the nearest label of g or of what encloses it, and the one at an outer level.
func (c *collection) labelOf(g int32, outer int) string {
	label, _ := c.labelAt(g, 0)
	if outer > 0 {
		if more, ok := c.labelAt(g, outer); ok {
			return label + " " + more
		}
	}
	return label
}

// labelAt is a label of g or of what encloses it, 0 the nearest.
func (c *collection) labelAt(g int32, level int) (label string, ok bool) {
	for range maxDepth {
		if g < 0 {
			break
		}
		if label := c.groups[g].label; label != "" {
			if level == 0 {
				return label, true
			}
			level--
		}
		g = c.groups[g].parent
	}
	return "", false
}

// idOf is the identifier beside the texts of g, or else of what encloses it, and
// how far out that is.
func (c *collection) idOf(g int32) (id string, level int) {
	for level = range maxDepth {
		if g < 0 {
			break
		}
		if c.groups[g].id != "" {
			return c.groups[g].id, level
		}
		g = c.groups[g].parent
	}
	return "", maxDepth
}

// isIdent reports whether s names one thing.
func isIdent(s string) bool {
	switch ident.Of(s) {
	case ident.UUID, ident.Hex, ident.ID, ident.Token:
		return true
	}
	n := len(s)
	_, err := strconv.ParseUint(s, 10, 64)
	return err == nil && n >= 6
}

const maxLabels = 12 // values of a field that tells kinds apart

// isDiscriminator reports whether the stream's values are names of kinds: a few short
// words that come again and again, or roles of a conversation.
func (s *stream) isDiscriminator(c *collection) bool {
	if len(s.pieces) == 0 {
		return false
	}
	distinct := make(map[string]int)
	roles := true
	for _, p := range s.pieces {
		if !isKindName(p.text) || len(p.text) == 1 && c.groups[p.group].texts < 2 {
			return false
		}
		roles = roles && roleWord(p.text) >= 0
		if distinct[p.text]++; len(distinct) > maxLabels {
			return false
		}
	}
	if roles {
		return true
	}
	// A name that stands for a kind comes more than once, beside others.
	return len(distinct) > 1 && len(s.pieces) >= 3*len(distinct) || s.besideTexts(c) && len(distinct) > 1 && len(s.pieces) > len(distinct)
}

// besideTexts reports whether each value stands beside one other text: what it
// tells the kind of.
func (s *stream) besideTexts(c *collection) bool {
	for _, p := range s.pieces {
		if c.groups[p.group].texts != 2 {
			return false
		}
	}
	return true
}

// isKindName reports whether s is a lower- or upper-case name of a kind.
func isKindName(s string) bool {
	if s == "" || len(s) > 48 {
		return false
	}
	for i := range len(s) {
		c := s[i]
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
		if !letter && (i == 0 || c != '_' && c != '.' && c != '-' && (c < '0' || c > '9')) {
			return false
		}
	}
	return true
}
