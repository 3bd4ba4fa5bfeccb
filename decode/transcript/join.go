package transcript

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"unwire/captures"
	"unwire/decode/transcript/language"
	"unwire/decode/transcript/naming"
)

// A joining is the way in which the pieces (values) at a path form a text.
type joining uint8

const (
	// single: there is one piece.
	single joining = iota

	// same: all pieces are equal.
	same

	// delta: each piece continues the previous one.
	delta

	// growing: each piece begins with the previous one, i.e. the pieces are snapshots of a growing text.
	growing

	// separate: each piece is a value of its own.
	separate
)

// join sets the text of the stream from its pieces, and how they form it. Pieces with different identifiers next to
// them are joined separately, because one path may carry several calls.
func (s *stream) join(c *collection) {
	for i, p := range s.pieces {
		if i == 0 || p.frame != s.pieces[i-1].frame {
			s.seqs = append(s.seqs, p.seq)
		}
	}
	if s.isTurnByTurn(c) {
		s.ownIDs, s.whole = true, true
	}

	// Join the pieces of each identifier, then combine the texts.
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

	// Several texts are separate values, unless they are deltas of one JSON value or
	// text.
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

// isTurnByTurn reports whether the pieces are questions that the client asked one after the other: each follows
// text of the server, and none is the middle of a sentence.
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

// maxAsked is the maximum number of questions on one path of an exchange.
const maxAsked = 1000

// serverTextBetween reports whether the server sent text between two frames.
func (c *collection) serverTextBetween(from, to int) bool {
	i, _ := slices.BinarySearch(c.serverTexts, from)
	return i < len(c.serverTexts) && c.serverTexts[i] < to
}

// runs groups the pieces by the identifiers next to them; order has the identifiers in order of occurrence. If
// almost every piece has an identifier of its own, the pieces are not grouped but considered separate.
func (s *stream) runs(c *collection) (order []string, runs map[string][]textPiece) {
	runs = make(map[string][]textPiece)
	ids := make([]string, len(s.pieces))
	levels := make([]int, len(s.pieces))

	// Only identifiers at the innermost level distinguish texts.
	near, named := maxDepth, 0
	for i, p := range s.pieces {
		if ids[i], levels[i] = c.idOf(p.group); ids[i] == p.text {
			ids[i], levels[i] = "", maxDepth
		}
		near = min(near, levels[i])
	}
	for i := range ids {
		if levels[i] > near {
			// The identifier belongs to a message that encloses all pieces.
			ids[i] = ""
		} else {
			named++
		}
	}

	// Group the pieces by identifier, in order of first occurrence.
	last := ""
	for i, p := range s.pieces {
		id := ids[i]
		if id == "" && named*2 <= len(s.pieces) {
			// Only the first piece of a text has the identifier.
			id = last
		}
		last = id
		if runs[id] == nil {
			order = append(order, id)
		}
		runs[id] = append(runs[id], p)
	}

	// With almost as many identifiers as pieces, each piece is separate.
	if len(order) > 1 && len(order)*2 > len(s.pieces) {
		s.ownIDs = true
	}
	if s.discriminates || s.whole {
		// Names of kinds are separate values.
		s.ownIDs = true
	}
	if s.ownIDs {
		return []string{""}, map[string][]textPiece{"": s.pieces}
	}
	return order, runs
}

// joinPieces determines how pieces form a text. It returns the text and, for deltas, the share of borders that are
// inside sentences. apart means that each piece has an identifier of its own: they are separate values unless they
// continue each other. whole means that each piece is a complete message.
func joinPieces(pieces []textPiece, apart, whole bool) (joining, string, float64) {
	if n := len(pieces); n > 1 && language.IsStop(pieces[n-1].text) && !language.IsStop(pieces[n-2].text) {
		pieces = pieces[:n-1]
	}

	// Repeated and growing texts are recognized by their content alone.
	if len(pieces) == 1 {
		return single, pieces[0].text, 0
	}
	if areSame(pieces) {
		return same, pieces[0].text, 0
	}
	if len(pieces) == 2 && pieces[0].text == pieces[1].text && len(strings.TrimSpace(pieces[0].text)) > 1 {
		// A short value that was sent twice.
		return single, pieces[0].text, 0
	}
	if text, ok := grown(pieces); ok {
		return growing, text, 0
	}

	// The rest is deltas or separate values, depending on the borders.
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

// isWordInParts reports whether the pieces are parts of one word that begins with a capital, or of a word in
// another script than Latin. Separate names would each begin with a capital.
func isWordInParts(pieces []textPiece) bool {
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

// isDense reports whether most pieces are in a script without spaces between words.
func isDense(pieces []textPiece) bool {
	dense := 0
	for _, p := range pieces {
		if r, _ := utf8.DecodeRuneInString(p.text); language.IsUnspaced(r) || language.IsWidePunct(r) {
			dense++
		}
	}
	return dense*2 > len(pieces)
}

// hasSpace reports whether a piece contains white space.
func hasSpace(pieces []textPiece) bool {
	return slices.ContainsFunc(pieces, func(p textPiece) bool { return strings.ContainsAny(p.text, " \n\t") })
}

// concat joins the pieces' texts, with between in between.
func concat(pieces []textPiece, between string) string {
	var b strings.Builder
	for i, p := range pieces {
		if i > 0 {
			b.WriteString(between)
		}
		b.WriteString(p.text)
	}
	return b.String()
}

// areSame reports whether all pieces are equal and not just a repeated token.
func areSame(pieces []textPiece) bool {
	for _, p := range pieces[1:] {
		if p.text != pieces[0].text {
			return false
		}
	}
	n := len(strings.TrimSpace(pieces[0].text))
	return n >= 4 || n >= 2 && len(pieces) > 2
}

// unique returns the pieces without those whose text occurred before.
func unique(pieces []textPiece) []textPiece {
	seen := make(map[string]bool, len(pieces))
	var out []textPiece
	for _, p := range pieces {
		if !seen[p.text] {
			seen[p.text] = true
			out = append(out, p)
		}
	}
	return out
}

const (
	// growthShare is the minimum share of pieces that begin with the previous piece, among the pieces of a growing
	// text.
	growthShare = 0.75

	// minGrown is the minimum size in bytes, without spaces, of the first of only two snapshots.
	minGrown = 2
)

// grown returns the text whose growing snapshots the pieces are; ok is false if they are not snapshots. A piece
// that does not begin with the previous one starts a new text.
func grown(pieces []textPiece) (string, bool) {
	steps, grows, again := 0, 0, 0
	var text strings.Builder
	for i := 1; i < len(pieces); i++ {
		before, now := pieces[i-1].text, pieces[i].text
		steps++
		// A snapshot repeats the previous text and adds to it.
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

// areSeparate reports whether the pieces are separate values: several in a frame, or most of them complete in
// themselves.
func areSeparate(pieces []textPiece) bool {
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
	// wholeLine is the minimum average number of characters of pieces that are complete lines.
	wholeLine = 8

	// wholeWords is the minimum number of spaces in a piece whose repetition is not considered accidental.
	wholeWords = 3

	// minLines is the minimum number of lines after each other, without a space between them, that cannot be
	// chance.
	minLines = 14

	// linesSeen is the maximum number of pieces that are examined.
	linesSeen = 64
)

// areLines reports whether the pieces are separate lines, as in a log: the same ones recur apart from their digits,
// or many pieces of several words have no space at their borders.
func areLines(pieces []textPiece) bool {
	pieces = pieces[:min(len(pieces), linesSeen)]
	runes, spaces := 0, 0
	forms := make(map[string]int)
	// again is the number of repeated pieces that have several words.
	again := 0
	for _, p := range pieces {
		if p.text == "" || strings.TrimSpace(p.text) != p.text {
			return false
		}
		runes += utf8.RuneCountInString(p.text)
		spaces += strings.Count(p.text, " ")
		form := language.WithoutDigits(p.text)
		if forms[form]++; forms[form] > 1 && strings.Count(form, " ") >= wholeWords {
			again++
		}
	}
	n := len(pieces)
	return n > 2 && runes >= wholeLine*n && (n-len(forms))*4 >= n || again*8 >= n || n >= minLines && spaces >= 3*n
}

// leastNames is the minimum number of different words after each other that count as names and not as parts of a
// text.
const leastNames = 3

// areNames reports whether the pieces are names in a program, each complete, such as the kinds of events.
func areNames(pieces []textPiece) bool {
	joined := 0
	for _, p := range pieces[:min(len(pieces), maxClassified)] {
		if len(p.text) < 3 || !naming.IsKind(p.text) {
			return false
		}
		if strings.ContainsAny(p.text, "_.-") {
			joined++
		}
	}
	// Three words of letters that have no space between them are no sentence.
	return joined*2 >= min(len(pieces), maxClassified) || len(pieces) >= leastNames && len(unique(pieces)) == len(pieces)
}

// borders returns the share of borders between pieces that are inside a sentence (open), and the share between two
// complete sentences without a space (closed).
func borders(pieces []textPiece) (open, closed float64) {
	for i := 1; i < len(pieces); i++ {
		a, b := pieces[i-1].text, pieces[i].text
		before, _ := utf8.DecodeLastRuneInString(a)
		after, _ := utf8.DecodeRuneInString(b)
		switch {
		case before == utf8.RuneError || after == utf8.RuneError:
			// A rune is incomplete, or U+FFFD.
			open++
		case unicode.IsSpace(before) || unicode.IsSpace(after):
			open++
		case unicode.IsLetter(after) && strings.ContainsRune(".?!", before) && strings.Count(a, " ") > 1 && !language.IsUnspaced(after):
			// The sentence ended, and no space follows.
			closed++
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
