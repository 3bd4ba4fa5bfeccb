package transcript

import (
	"slices"
	"strconv"
	"strings"

	"unwire/captures"
	"unwire/decode/transcript/ident"
	"unwire/decode/transcript/naming"
)

// split returns the streams of c after splitting those with several kinds of text that a field next to them
// distinguishes: a role or the name of a kind, as in {"type":"text_delta","text":"Hi"}. It also splits off
// identifiers, echoes of the client's text and variants (see splitVariants).
func (c *collection) split() []*stream {
	for _, s := range c.streams {
		// Labels and identifiers belong to the message in which they occur.
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
	c.joinOpenings()
	for _, s := range c.streams {
		s.dropRepeatedPrefix()
	}

	// Split each stream by the label of its pieces.
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
				// The label was sent once and holds for the following pieces.
				label = last
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

	// Split the parts again by what the pieces contain.
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

// dropRepeatedPrefix removes repeated values if each frame of the server contains the complete list of the previous
// frame and adds values at the end.
func (s *stream) dropRepeatedPrefix() {
	if s.dir != captures.Down || len(s.pieces) < 3 {
		return
	}
	var out []textPiece
	// before are the values of the frame before.
	var before []textPiece
	for i := 0; i < len(s.pieces); {
		end := i + 1
		for end < len(s.pieces) && s.pieces[end].frame == s.pieces[i].frame {
			end++
		}
		list := s.pieces[i:end]
		if len(list) < len(before) || !slices.EqualFunc(list[:len(before)], before, func(a, b textPiece) bool { return a.text == b.text }) {
			return
		}
		out = append(out, list[len(before):]...)
		before, i = list, end
	}
	if len(before) > 1 && before[0].frame != s.pieces[0].frame && len(s.pieces) > len(before) {
		s.pieces, s.whole = out, true
	}
}

// leastKinds is the minimum number of names of kinds from which words that all of them have are determined.
const leastKinds = 3

// commonWords returns the words that all names of kinds at a path have, as "response" in response.created and
// response.done. They do not distinguish kinds.
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
			for w := range naming.Parts(p.text) {
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

// splitIDs moves the identifiers of a path that also has texts into a new stream. It returns nil if the path does
// not have both.
func (s *stream) splitIDs() *stream {
	return s.splitOff("id", func(i int) bool {
		inText := i > 0 && strings.HasSuffix(s.pieces[i-1].text, " ") || i+1 < len(s.pieces) && strings.HasPrefix(s.pieces[i+1].text, " ")
		return !inText && len(s.pieces[i].text) >= leastID && isIdent(s.pieces[i].text)
	})
}

// splitOff moves the pieces for whose index the function is returns true into a new stream with the variant sort.
// It returns nil if that holds for all or none of them.
func (s *stream) splitOff(sort string, is func(i int) bool) *stream {
	var taken, rest []textPiece
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

// minEcho is the minimum size in bytes of a value whose repetition by the server counts as an echo and not as an
// accident.
const minEcho = 12

// sent returns the values that the client sent, with the index of the frame that has them first.
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

// splitEchoes moves the values that the client had sent before into a new stream, apart from the server's own
// values at the same path. It returns nil if there are only values of one sort.
func (s *stream) splitEchoes(sent map[string]int) *stream {
	if s.dir != captures.Down || s.discriminates || len(s.pieces) < 2 {
		return nil
	}
	return s.splitOff("sent", func(i int) bool {
		frame, ok := sent[s.pieces[i].text]
		return ok && frame < s.pieces[i].frame
	})
}

// leastID is the minimum size in bytes of an identifier that is recognised among texts.
const leastID = 16

// maxLevels is the maximum number of nested messages with labels that are examined.
const maxLevels = 4

// labelLevel returns the level of the label that distinguishes the texts of s: 0 for the nearest enclosing label.
// If the nearest is the same for all texts, the kind of an enclosing event may distinguish them.
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

// labelOf returns the nearest label of group g or of the groups around it, followed by the label at level outer if
// outer is positive.
func (c *collection) labelOf(g int32, outer int) string {
	label, _ := c.labelAt(g, 0)
	if outer > 0 {
		if more, ok := c.labelAt(g, outer); ok {
			return label + " " + more
		}
	}
	return label
}

// labelAt returns the label at a level around group g; 0 is the nearest.
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

// idOf returns the identifier in group g, or else in the nearest group around it, and the number of levels up to
// that.
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

// isIdent reports whether s is an identifier, or a number of at least six digits, which may be one.
func isIdent(s string) bool {
	switch ident.Of(s) {
	case ident.UUID, ident.Hex, ident.ID, ident.Token:
		return true
	}
	n := len(s)
	_, err := strconv.ParseUint(s, 10, 64)
	return err == nil && n >= 6
}

// maxLabels is the maximum number of distinct values of a field that distinguishes kinds.
const maxLabels = 12

// isDiscriminator reports whether the values of s are discriminators: names of kinds (a few short words that
// repeat) or roles of a conversation.
func (s *stream) isDiscriminator(c *collection) bool {
	if len(s.pieces) == 0 {
		return false
	}
	distinct := make(map[string]int)
	roles := true
	for _, p := range s.pieces {
		if !naming.IsKind(p.text) || len(p.text) == 1 && c.groups[p.group].texts < 2 {
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
	// The name of a kind occurs more than once, and other kinds exist.
	return len(distinct) > 1 && len(s.pieces) >= 3*len(distinct) || s.besideTexts(c) && len(distinct) > 1 && len(s.pieces) > len(distinct)
}

// besideTexts reports whether each value is in a message with exactly one other text,
// whose kind it may name.
func (s *stream) besideTexts(c *collection) bool {
	for _, p := range s.pieces {
		if c.groups[p.group].texts != 2 {
			return false
		}
	}
	return true
}

// maxSpread is the maximum number of paths that have all steps but one in common.
const maxSpread = 64

// joinOpenings moves the first piece of a text to the stream of those that continue it. Some services create a message
// with the first words in one field and append to it in another, so that the paths differ in one step. The identifier
// of the message is next to both.
func (c *collection) joinOpenings() {
	alike := make(map[streamKey][]*stream)
	for _, s := range c.streams {
		for _, key := range s.masked() {
			alike[key] = append(alike[key], s)
		}
	}
	for _, s := range c.streams {
		var others []*stream
		for _, key := range s.masked() {
			if list := alike[key]; len(list) <= maxSpread {
				others = append(others, list...)
			}
		}
		c.takeOpenings(s, others)
	}
	c.streams = slices.DeleteFunc(c.streams, func(s *stream) bool { return len(s.pieces) == 0 })
}

// masked returns the path of a stream with each of its steps but the last replaced by an asterisk in turn.
func (s *stream) masked() []streamKey {
	if s.discriminates || s.stored {
		return nil
	}
	var out []streamKey
	steps := strings.Split(s.path, ".")
	for i := range steps[:len(steps)-1] {
		masked := slices.Clone(steps)
		masked[i] = "*"
		out = append(out, streamKey{s.dir, strings.Join(masked, ".")})
	}
	return out
}

// takeOpenings moves to s those pieces of other streams that are the only ones of their message and come before those
// of s with the same identifier.
func (c *collection) takeOpenings(s *stream, others []*stream) {
	if len(others) == 0 {
		return
	}
	first := make(map[string]int)
	for _, p := range s.pieces {
		if id := c.idAround(p.group); id != "" && p.text != id {
			if _, ok := first[id]; !ok {
				first[id] = p.frame
			}
		}
	}
	if len(first)*2 > len(s.pieces) {
		// The identifiers are those of the pieces.
		return
	}
	for _, o := range others {
		if o == s || len(o.pieces) > len(first) {
			continue
		}
		o.pieces = slices.DeleteFunc(o.pieces, func(p textPiece) bool {
			at, ok := first[c.idAround(p.group)]
			if !ok || p.frame >= at || strings.HasPrefix(p.text, "{") {
				// The arguments of a call precede its result.
				return false
			}
			s.pieces = append(s.pieces, p)
			return true
		})
	}
	slices.SortStableFunc(s.pieces, func(a, b textPiece) int { return a.frame - b.frame })
}

// idAround returns the identifier in the message of a group, or in the innermost of those around it that has one.
func (c *collection) idAround(group int32) string {
	for range maxAround {
		if group < 0 {
			break
		}
		if id := c.groups[group].id; id != "" {
			return id
		}
		group = c.groups[group].parent
	}
	return ""
}

// maxAround is the maximum number of messages around a text in which the identifier of its message is searched.
const maxAround = 3
