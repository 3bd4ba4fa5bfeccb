package transcript

import (
	"cmp"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"unwire/captures"
	"unwire/decode"
	"unwire/decode/transcript/language"
)

const (
	// maxScalar is the greatest number that may distinguish kinds of texts.
	maxScalar = 1 << 26

	// maxScalars is the maximum number of small numbers and flags that are kept for each message.
	maxScalars = 12

	// maxVariants is the maximum number of distinct values of a number that distinguishes
	// kinds.
	maxVariants = 8

	// maxVoices is the maximum number of distinct values if the texts alternate.
	maxVoices = 4

	// variantLevels is the number of enclosing messages in which such a number is
	// searched.
	variantLevels = 6

	// absent is the value for a message without the number. proto3 omits zero.
	absent = -1
)

// A smallNumber is a small number or a flag in a message.
type smallNumber struct {
	// at is the index in collection.numbers of the path at which the number was sent.
	at int32

	// value is the number; 0 or 1 for a flag.
	value int64
}

// addNumber records a number at path in message group, both for the texts next to it and for the numbers of the
// whole exchange. index is the index of frame f, and name the member name in JSON or "".
func (c *collection) addNumber(f *decode.Frame, index int, path, name string, group int32, value int64) {
	key := streamKey{f.Dir, path}
	at, ok := c.numberAt[key]
	if !ok {
		if len(c.numbers) >= maxStreams {
			c.truncated = true
			return
		}
		at = int32(len(c.numbers))
		c.numbers = append(c.numbers, &pathNumbers{dir: f.Dir, path: path, name: name, first: index})
		c.numberAt[key] = at
	}
	c.numbers[at].addValue(index, group, value)
	g := &c.groups[group]
	if value < 0 || value > maxScalar || len(g.scalars) >= maxScalars {
		return
	}
	g.scalars = append(g.scalars, smallNumber{at, value})
}

// addJSONNumber is addNumber for a number in JSON. Numbers that are not integers are ignored.
func (c *collection) addJSONNumber(f *decode.Frame, index int, path, name string, group int32, n json.Number) {
	if v, err := strconv.ParseInt(n.String(), 10, 64); err == nil {
		c.addNumber(f, index, path, name, group, v)
	}
}

// splitVariants splits the pieces of s by the number or flag next to them that identifies
// their kind, as in {1: 2, 3: "Hi"} where field 1 is an enum. It returns nil if there is
// no such number.
//
// A number that counts, or that changes inside sentences, does not identify a kind.
func (c *collection) splitVariants(s *stream) (parts []*stream) {
	if len(s.pieces) < 2 || s.discriminates || s.listed() || s.isConstant() {
		return nil
	}
	if text, ok := grown(s.pieces); ok && text == s.pieces[len(s.pieces)-1].text {
		// These are snapshots of one text.
		return nil
	}
	best, ascending := c.variantNumber(s)
	if best < 0 {
		return nil
	}
	index := make(map[int64]*stream)
	// Split the stream by the value of the number that accompanies each piece.
	for _, p := range s.pieces {
		v := c.scalarOf(p.group, best)
		part := index[v]
		if part == nil {
			part = &stream{dir: s.dir, path: s.path, name: s.name, label: s.label, stored: s.stored, discriminates: s.discriminates, whole: s.whole, variant: strconv.FormatInt(v, 10), ascending: ascending}
			index[v] = part
			parts = append(parts, part)
		}
		part.pieces = append(part.pieces, p)
	}

	changes, _, _, _ := c.changes(s, best)
	mixed := c.isInterleaved(s, best, changes)
	for _, part := range parts {
		part.interleaved = mixed
		part.whole = part.whole || !mixed && changes > 1 && changes == len(s.pieces)-1
	}
	return parts
}

// variantNumber returns the index in c.numbers of the number that best distinguishes kinds of pieces of s, or -1.
// ascending reports whether its values ascend.
func (c *collection) variantNumber(s *stream) (best int32, ascending bool) {
	best = -1
	least := len(s.pieces)
	mix, mixed := int32(-1), 0
	kinds := slices.DeleteFunc(c.scalarsBeside(s), func(at int32) bool { return c.isSize(s, at) })
	for _, at := range kinds {
		changes, open, distinct, monotone := c.changes(s, at)
		n := len(s.pieces)
		switch {
		case distinct < 2 || distinct > maxVariants || changes < 1:
		case monotone && distinct == n && n > 2:
			// it counts the pieces
		case changes == 1 && c.marksEdge(s, at):
			// it marks the last piece, or all but the first one
		case monotone && n == 2 && !language.EndsSentence(strings.TrimSpace(s.pieces[0].text)) && c.scalarOf(s.pieces[1].group, at)-max(c.scalarOf(s.pieces[0].group, at), 0) == 1:
		case distinct <= maxVoices && changes > 1 && open == 0 && s.bytesEach() >= minWhole:
			// Complete texts alternate.
			best, least, ascending = at, min(least, changes), monotone
		case c.isInterleaved(s, at, changes):
			if changes > mixed {
				mix, mixed = at, changes
			}
		case float64(changes) > float64(distinct-1)+float64(n)/4:
		case changes > 1 && open*2 > changes, changes == 1 && open == 1 && n < 4:
		case changes < least:
			best, least, ascending = at, changes, monotone
		}
	}

	if mix >= 0 {
		return mix, false
	}
	return best, ascending
}

// isConstant reports whether all pieces of s are the same, such as an identifier that each message repeats.
func (s *stream) isConstant() bool {
	return !slices.ContainsFunc(s.pieces, func(p textPiece) bool { return p.text != s.pieces[0].text })
}

const (
	// leastSizes is the minimum number of changes of a number that may be the size of a piece, and leastSizeShare the
	// minimum share, in percent, of changes in the direction in which the size of the piece changes.
	leastSizes     = 6
	leastSizeShare = 95
)

// isSize reports whether number at (an index in c.numbers) is greater next to longer pieces, so that it is their size.
// The pieces must be too short to be complete messages, next to which a number may say who sent them.
func (c *collection) isSize(s *stream, at int32) bool {
	if s.bytesEach() >= minWhole {
		return false
	}
	changes, agree := 0, 0
	for i, p := range s.pieces[1:] {
		before := s.pieces[i]
		a, b := c.scalarOf(before.group, at), c.scalarOf(p.group, at)
		if a == b || len(before.text) == len(p.text) {
			continue
		}
		if changes++; (a < b) == (len(before.text) < len(p.text)) {
			agree++
		}
	}
	return changes >= leastSizes && agree*100 >= leastSizeShare*changes
}

// scalarsBeside returns the indexes in c.numbers of the numbers in the messages around the pieces, those with the
// longest path first.
func (c *collection) scalarsBeside(s *stream) []int32 {
	seen := make(map[int32]bool)
	for _, p := range s.pieces {
		g := p.group
		for range variantLevels {
			if g < 0 {
				break
			}
			for _, n := range c.groups[g].scalars {
				seen[n.at] = true
			}
			g = c.groups[g].parent
		}
	}
	var out []int32
	for at := range seen {
		if c.numbers[at].dir == s.dir {
			out = append(out, at)
		}
	}
	slices.SortFunc(out, func(a, b int32) int {
		return cmp.Or(cmp.Compare(len(c.numbers[b].path), len(c.numbers[a].path)), cmp.Compare(a, b))
	})
	return out[:min(len(out), maxScalars)]
}

// scalarOf returns the value of number at (an index in c.numbers) in message group or in the nearest message around
// it, or absent.
func (c *collection) scalarOf(group, at int32) int64 {
	for range variantLevels {
		if group < 0 {
			break
		}
		for _, n := range c.groups[group].scalars {
			if n.at == at {
				return n.value
			}
		}
		group = c.groups[group].parent
	}
	return absent
}

// marksEdge reports whether number at (an index in c.numbers) only marks the beginning or the end of the text.
func (c *collection) marksEdge(s *stream, at int32) bool {
	return c.marksEnd(s, at) || c.marksStart(s, at)
}

// marksEnd reports whether number at (an index in c.numbers) occurs next to the last piece only, like the reason
// why a stream ended.
func (c *collection) marksEnd(s *stream, at int32) bool {
	n := len(s.pieces)
	before, last := s.pieces[n-2], s.pieces[n-1]
	if c.scalarOf(before.group, at) > 0 || c.scalarOf(last.group, at) <= 0 {
		return false
	}
	return strings.HasPrefix(last.text, before.text) || !language.EndsSentence(strings.TrimSpace(before.text)) || n > 2 && unicode.IsSpace(rune(last.text[0]))
}

// marksStart reports whether number at (an index in c.numbers) changes between the first piece and the second, which
// continues the sentence, such as a flag that the others are appended.
func (c *collection) marksStart(s *stream, at int32) bool {
	first, second := s.pieces[0], s.pieces[1]
	if len(s.pieces) < 4 || c.scalarOf(first.group, at) == c.scalarOf(second.group, at) {
		return false
	}
	before, _ := utf8.DecodeLastRuneInString(first.text)
	after, _ := utf8.DecodeRuneInString(second.text)
	return !language.EndsSentence(strings.TrimSpace(first.text)) && before != '\n' && (!unicode.IsUpper(after) || unicode.IsSpace(before))
}

// changes returns how often number at (an index in c.numbers) changes between pieces, how many of these changes are
// inside a sentence (open), how many distinct values there are, and whether the values never fall (monotone).
func (c *collection) changes(s *stream, at int32) (changes, open, distinct int, monotone bool) {
	values := make(map[int64]bool)
	last := c.scalarOf(s.pieces[0].group, at)
	values[last] = true
	monotone = true
	for i, p := range s.pieces[1:] {
		v := c.scalarOf(p.group, at)
		if v == last {
			continue
		}
		monotone = monotone && v > last
		last = v
		if values[v] = true; len(values) > maxVariants {
			return changes, open, len(values), monotone
		}
		changes++
		if language.ReadsOn(s.pieces[i].text, p.text) {
			open++
		}
	}
	return changes, open, len(values), monotone
}

// mergeVariants merges variants of one path that turned out to have the same role: blocks
// of one text, each with its own number.
func mergeVariants(streams []*stream) (out []*stream, changed bool) {
	type key struct {
		dir         captures.Direction
		path, label string
		role        int
		streamed    bool
	}

	index := make(map[key]*stream)
	// Interleaved variants are independent texts and stay separate.
	for _, s := range streams {
		if s.variant == "" || s.interleaved || (s.kind < delta || s.kind == separate) && s.features[headline]+s.features[status] > 0 {
			out = append(out, s)
			continue
		}
		k := key{s.dir, s.path, s.label, s.role, s.kind == delta || s.kind == growing}
		whole := index[k]
		if whole == nil {
			copied := *s
			whole = &copied
			whole.pieces = slices.Clone(s.pieces)
			index[k] = whole
			out = append(out, whole)
			continue
		}
		changed = true
		whole.pieces = append(whole.pieces, s.pieces...)
	}

	for _, s := range out {
		if s.variant != "" {
			slices.SortStableFunc(s.pieces, comparePieces)
		}
	}

	return out, changed
}

// comparePieces orders pieces as they were sent.
func comparePieces(a, b textPiece) int {
	return cmp.Or(cmp.Compare(a.frame, b.frame), cmp.Compare(a.group, b.group))
}

// bytesEach returns the average size of the pieces in bytes.
func (s *stream) bytesEach() int {
	bytes := 0
	for _, p := range s.pieces {
		bytes += len(p.text)
	}
	return bytes / len(s.pieces)
}

// minWhole is the minimum average size in bytes of pieces that may be complete messages.
const minWhole = 15

// minListed is the average size in bytes below which several values in one frame are considered a list of words.
const minListed = 12

// listed reports whether the pieces of s are a list of short values in one frame. Numbers next to them are their
// properties and do not distinguish kinds.
func (s *stream) listed() bool {
	bytes := 0
	for _, p := range s.pieces {
		if p.frame != s.pieces[0].frame {
			return false
		}
		bytes += len(p.text)
	}
	return bytes < minListed*len(s.pieces)
}
