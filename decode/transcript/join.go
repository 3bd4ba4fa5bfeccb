package transcript

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"unwire/captures"
	"unwire/decode/transcript/language"
)

// A joining is how the pieces of a path make its text.
type joining uint8

const (
	single   joining = iota // there is one piece
	same                    // all are equal
	delta                   // each continues the one before
	growing                 // each begins with the one before: a snapshot
	separate                // each is a value of its own
)

// join makes the text of the stream. Pieces beside different identifiers are
// joined apart: two calls may pass through one path.
func (s *stream) join(c *collection) {
	for i, p := range s.pieces {
		if i == 0 || p.frame != s.pieces[i-1].frame {
			s.seqs = append(s.seqs, p.seq)
		}
	}
	if s.isTurnByTurn(c) {
		s.ownIDs, s.whole = true, true
	}
	order, runs := s.runs(c)
	var texts []string
	open := 0.0
	for _, id := range order {
		kind, text, share := joinPieces(runs[id], s.ownIDs, s.whole)
		if s.hasOffsets && kind == separate {
			kind, text, share = delta, concat(runs[id], ""), 1
		}
		s.kind = max(s.kind, kind)
		if len(texts) == 0 || text != texts[len(texts)-1] {
			texts = append(texts, text)
		}
		open += share
	}
	s.open = open / float64(len(order))
	if len(texts) > 1 && s.kind < delta {
		s.kind = separate
	}
	s.text = strings.Join(texts, "\n")
	if s.kind == delta && !looksJSON(texts[0]) {
		s.text = strings.Join(texts, "")
	}
	s.text = strings.ToValidUTF8(s.text, "\uFFFD")
	s.class = s.classify()
}

// isTurnByTurn reports whether the client sent each piece after the server had said
// something, and none as the middle of a sentence: what was asked one after the other.
func (s *stream) isTurnByTurn(c *collection) bool {
	if s.dir != captures.Up || len(s.pieces) < 2 || len(s.pieces) > maxAsked {
		return false
	}
	for i, p := range s.pieces {
		text := strings.TrimSpace(p.text)
		if text != p.text || strings.Count(text, " ") < 1 && language.IsASCII(text) {
			return false
		}
		if i > 0 && (strings.HasPrefix(p.text, s.pieces[i-1].text) || !c.serverTextBetween(s.pieces[i-1].frame, p.frame)) {
			return false
		}
	}
	return true
}

const maxAsked = 1000 // turns of one exchange

// serverTextBetween reports whether the server sent text in a frame between two.
func (c *collection) serverTextBetween(from, to int) bool {
	i, _ := slices.BinarySearch(c.serverTexts, from)
	return i < len(c.serverTexts) && c.serverTexts[i] < to
}

// runs parts the pieces by the identifiers beside them. An identifier for each
// piece parts nothing, but tells that the pieces stand apart.
func (s *stream) runs(c *collection) (order []string, runs map[string][]piece) {
	runs = make(map[string][]piece)
	ids := make([]string, len(s.pieces))
	levels := make([]int, len(s.pieces))
	near, named := maxDepth, 0
	for i, p := range s.pieces {
		if ids[i], levels[i] = c.idOf(p.group); ids[i] == p.text {
			ids[i], levels[i] = "", maxDepth
		}
		near = min(near, levels[i])
	}
	for i := range ids {
		if levels[i] > near {
			ids[i] = "" // an identifier of what encloses them all
		} else {
			named++
		}
	}
	last := ""
	for i, p := range s.pieces {
		id := ids[i]
		if id == "" && named*2 <= len(s.pieces) {
			id = last // only the first piece of a text has it
		}
		last = id
		if runs[id] == nil {
			order = append(order, id)
		}
		runs[id] = append(runs[id], p)
	}
	if len(order) > 1 && len(order)*2 > len(s.pieces) {
		s.ownIDs = true
	}
	if s.discriminates || s.whole {
		s.ownIDs = true // names of kinds stand for themselves
	}
	if s.ownIDs {
		return []string{""}, map[string][]piece{"": s.pieces}
	}
	return order, runs
}

// joinPieces decides how pieces belong together, and returns their text and,
// of deltas, the share of borders that run through a sentence. Pieces that stand
// apart by their identifiers are values unless they read on in each other.
func joinPieces(pieces []piece, apart, whole bool) (joining, string, float64) {
	if n := len(pieces); n > 1 && isStop(pieces[n-1].text) && !isStop(pieces[n-2].text) {
		pieces = pieces[:n-1]
	}
	if len(pieces) == 1 {
		return single, pieces[0].text, 0
	}
	if areSame(pieces) {
		return same, pieces[0].text, 0
	}
	if len(pieces) == 2 && pieces[0].text == pieces[1].text && len(strings.TrimSpace(pieces[0].text)) > 1 {
		return single, pieces[0].text, 0 // short, and said again
	}
	if text, ok := grown(pieces); ok {
		return growing, text, 0
	}
	open, closed := borders(pieces)
	if apart && !whole && isWordInParts(pieces) {
		return delta, concat(pieces, ""), open
	}
	if whole || areNames(pieces) || areSeparate(pieces) || areLines(pieces) || closed >= 0.8 || apart && (open < 0.5 || !hasSpace(pieces) && !isDense(pieces)) {
		return separate, concat(unique(pieces), "\n"), 0
	}
	if n := len(pieces); n > 2 {
		// A stream may end with the whole text again.
		if whole := concat(pieces[:n-1], ""); whole == pieces[n-1].text {
			return delta, whole, open
		}
	}
	return delta, concat(pieces, ""), open
}

// isStop reports whether text is a token of a model's that ends its answer, and no
// part of it.
func isStop(text string) bool {
	text = strings.TrimSpace(text)
	switch text {
	case "</s>", "<eos>", "<end_of_turn>", "<|end|>", "[EOS]", "[DONE]":
		return true
	}
	return len(text) <= 40 && strings.HasPrefix(text, "<|") && strings.HasSuffix(text, "|>") || strings.HasPrefix(text, "<｜") && strings.HasSuffix(text, "｜>")
}

// isWordInParts reports whether pieces are one word with a capital, or of another
// script than Latin: names of values begin anew.
func isWordInParts(pieces []piece) bool {
	first, _ := utf8.DecodeRuneInString(pieces[0].text)
	if !unicode.IsUpper(first) && first < utf8.RuneSelf {
		return false
	}
	for i, p := range pieces {
		r, _ := utf8.DecodeRuneInString(p.text)
		if i > 0 && !unicode.IsLower(r) || strings.ContainsAny(p.text, " \n_") {
			return false
		}
	}
	return true
}

// isDense reports whether pieces are of a script without spaces.
func isDense(pieces []piece) bool {
	dense := 0
	for _, p := range pieces {
		if r, _ := utf8.DecodeRuneInString(p.text); language.IsUnspaced(r) || isWidePunct(r) {
			dense++
		}
	}
	return dense*2 > len(pieces)
}

// isWidePunct reports whether r is punctuation of a script without spaces.
func isWidePunct(r rune) bool { return r >= 0x3000 && r <= 0x303f || r >= 0xff00 && r <= 0xffef }

func hasSpace(pieces []piece) bool {
	return slices.ContainsFunc(pieces, func(p piece) bool { return strings.ContainsAny(p.text, " \n\t") })
}

func concat(pieces []piece, between string) string {
	var b strings.Builder
	for i, p := range pieces {
		if i > 0 {
			b.WriteString(between)
		}
		b.WriteString(p.text)
	}
	return b.String()
}

// areSame reports whether all pieces are equal, and more than a repeated token.
func areSame(pieces []piece) bool {
	for _, p := range pieces[1:] {
		if p.text != pieces[0].text {
			return false
		}
	}
	n := len(strings.TrimSpace(pieces[0].text))
	return n >= 4 || n >= 2 && len(pieces) > 2
}

// unique drops the pieces that were there before.
func unique(pieces []piece) []piece {
	seen := make(map[string]bool, len(pieces))
	var out []piece
	for _, p := range pieces {
		if !seen[p.text] {
			seen[p.text] = true
			out = append(out, p)
		}
	}
	return out
}

const (
	growthShare = 0.75 // of the steps between snapshots that grow
	// Bytes of a first snapshot that is followed by one only, spaces aside.
	minGrown = 2
)

// grown returns the text of pieces that are snapshots of a growing text. Where
// a piece does not begin with the one before, a new text begins.
func grown(pieces []piece) (string, bool) {
	steps, grows, again := 0, 0, 0
	var text strings.Builder
	for i := 1; i < len(pieces); i++ {
		before, now := pieces[i-1].text, pieces[i].text
		steps++
		if strings.HasPrefix(now, before) {
			if len(now) > len(before) {
				grows++
			} else {
				steps--
				again++
			}
			continue
		}
		text.WriteString(before)
	}
	text.WriteString(pieces[len(pieces)-1].text)
	switch {
	case steps == 0 || float64(grows) < growthShare*float64(steps):
		return "", false
	case grows == 1 && again == 0 && len(strings.TrimSpace(pieces[0].text)) < minGrown:
		return "", false
	}
	return text.String(), true
}

// areSeparate reports whether pieces are values: several in a frame, or most of
// them complete in themselves.
func areSeparate(pieces []piece) bool {
	crowded, values, weighed := 0, 0, 0
	for i, p := range pieces {
		if i > 0 && p.frame == pieces[i-1].frame {
			crowded++
		}
		if len(p.text) < 4 || i >= 1000 {
			continue
		}
		weighed++
		if c := classOf(p.text); c != plain && c != word && c != jsonPart && c != number && c != tag {
			values++
		}
	}
	return crowded*2 >= len(pieces) || weighed*2 >= len(pieces) && values*5 >= weighed*3
}

const (
	wholeLine  = 8 // runes of a piece, on average, that may be a line of its own
	wholeWords = 3 // spaces of a piece that does not come again by chance
	// Lines behind each other without a space between them, beyond chance.
	minLines  = 14
	linesSeen = 64 // pieces that are looked at
)

// areLines reports whether pieces are lines of their own: the same come again, but
// for their digits, or none of many borders between several words has a space.
func areLines(pieces []piece) bool {
	pieces = pieces[:min(len(pieces), linesSeen)]
	runes, spaces := 0, 0
	forms := make(map[string]int)
	again := 0 // of several words
	for _, p := range pieces {
		if p.text == "" || strings.TrimSpace(p.text) != p.text {
			return false
		}
		runes += utf8.RuneCountInString(p.text)
		spaces += strings.Count(p.text, " ")
		form := withoutDigits(p.text)
		if forms[form]++; forms[form] > 1 && strings.Count(form, " ") >= wholeWords {
			again++
		}
	}
	n := len(pieces)
	return n > 2 && runes >= wholeLine*n && (n-len(forms))*4 >= n || again*8 >= n || n >= minLines && spaces >= 3*n
}

func withoutDigits(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsDigit(r) {
			return '0'
		}
		return r
	}, s)
}

// Words behind each other that are names, and not a word in parts.
const leastNames = 3

// areNames reports whether pieces are names of a program's making, each whole: the
// kinds of events, say.
func areNames(pieces []piece) bool {
	joined := 0
	for _, p := range pieces[:min(len(pieces), maxClassified)] {
		if len(p.text) < 3 || !isKindName(p.text) {
			return false
		}
		if strings.ContainsAny(p.text, "_.-") {
			joined++
		}
	}
	// Three words of letters that have no space between them are no sentence.
	return joined*2 >= min(len(pieces), maxClassified) || len(pieces) >= leastNames && len(unique(pieces)) == len(pieces)
}

// borders returns which shares of the borders between pieces run through a
// sentence, and which stand between two that are complete.
func borders(pieces []piece) (open, closed float64) {
	for i := 1; i < len(pieces); i++ {
		a, b := pieces[i-1].text, pieces[i].text
		before, _ := utf8.DecodeLastRuneInString(a)
		after, _ := utf8.DecodeRuneInString(b)
		switch {
		case before == utf8.RuneError || after == utf8.RuneError:
			open++ // a rune is cut, or U+FFFD
		case unicode.IsSpace(before) || unicode.IsSpace(after):
			open++
		case unicode.IsLetter(after) && strings.ContainsRune(".?!", before) && strings.Count(a, " ") > 1 && !language.IsUnspaced(after):
			closed++ // a sentence that ended, and no space
		case unicode.IsLower(after), unicode.IsDigit(after), language.IsUnspaced(before) && language.IsUnspaced(after):
			open++
		case unicode.IsPunct(after) || unicode.IsSymbol(after):
			open += 0.7
		case unicode.IsUpper(after) && (unicode.IsLower(before) || unicode.IsPunct(before)) && len(a) > 3:
			closed++
		}
	}
	n := float64(len(pieces) - 1)
	return open / n, closed / n
}
