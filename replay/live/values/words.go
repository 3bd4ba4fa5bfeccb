package values

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"unwire/decode/envelope"
	"unwire/decode/jsontree"
)

// firstRun is the position of the first word of a text without structure.
const firstRun = "run 0"

// maxWordText is the size in bytes above which a text is not searched for short identifiers.
const maxWordText = 16 << 10

// A Word is a short value that may be an identifier, such as a counter: a number, a number in JSON, or a
// word of a text.
type Word struct {
	// At is the position of the word in the value that contains it, such as "json id", "run 2" or "gzip
	// json id"; "" for the whole value.
	At string
	// Value is the word.
	Value string
}

// Words returns the words of a value.
func (l *Leaf) Words() (out []Word) {
	if l.Number {
		if IsDigits(l.Value[1:]) {
			out = append(out, Word{l.wordPlace(), l.Value[1:]})
		}
		return out
	}
	l.eachWord(func(w Word) string {
		out = append(out, w)
		return w.Value
	})
	return out
}

// wordPlace returns the position of the only word of a number. Digits in a JSON string may be an identifier
// that has letters in other messages, where it is the first word of a text.
func (l *Leaf) wordPlace() string {
	if l.Data != nil {
		return firstRun
	}
	return ""
}

// isWord reports whether the whole value may be a word: a number, or a text that is not too long.
func (l *Leaf) isWord() bool {
	if l.Number {
		return IsDigits(l.Value[1:])
	}
	return len(l.Data) > 0 && len(l.Data) <= maxWordText && !l.IsMessage() && IsPrintable(l.Data)
}

// WordAt returns the word at a position of the value; ok is false if there is none.
func (l *Leaf) WordAt(at string) (word string, ok bool) {
	if at == "" && l.isWord() {
		return l.Text(), true
	}
	for _, w := range l.Words() {
		if w.At == at {
			return w.Value, true
		}
	}
	return "", false
}

// WithoutWords returns the value with the words at the given positions replaced by a constant, and these
// words.
func (l *Leaf) WithoutWords(at map[string]bool) (out *Leaf, left []Word) {
	if at == nil {
		return l, nil
	}
	out = &Leaf{Path: l.Path, Depth: l.Depth, Inner: l.Inner, Budget: l.Budget}
	switch {
	case at[""] && l.isWord():
		out.SetText([]byte(carriedMark))
		return out, []Word{{"", l.Text()}}
	case l.Number:
		out.SetText([]byte(carriedMark))
		return out, l.Words()
	}
	out.SetText([]byte(l.eachWord(func(w Word) string {
		if !at[w.At] {
			return w.Value
		}
		left = append(left, w)
		return carriedMark
	})))
	return out, left
}

// ReplaceWord returns the encoded message in which the word at a position of the value l is replaced. If
// the position has another word than was, the message is returned unchanged.
func (d *Document) ReplaceWord(l *Leaf, at, was, is string) ([]byte, error) {
	if now, ok := l.WordAt(at); !ok || now != was {
		return d.Data, nil
	}
	if l.Number {
		value := Number(l.Path, is)
		return d.Set(l, &value)
	}
	return d.SetText(l, l.eachWord(func(w Word) string {
		if w.At == at {
			return is
		}
		return w.Value
	}))
}

// eachWord returns the text of the value with each word replaced by the result of visit.
func (l *Leaf) eachWord(visit func(Word) string) string {
	if len(l.Data) == 0 || len(l.Data) > maxWordText || l.IsMessage() {
		return string(l.Data)
	}
	own := Budget(MaxTraced)
	w := wordSearch{visit: visit, budget: l.Budget}
	if w.budget == nil {
		w.budget = &own
	}
	return w.in("", string(l.Data), 0)
}

// A wordSearch visits the words of one value.
type wordSearch struct {
	// visit returns the text that replaces a word.
	visit func(Word) string

	// budget is the number of bytes that may still be decompressed.
	budget *Budget
}

// in returns s with its words replaced. at is the position of s, and depth the number of encodings
// around it.
func (w *wordSearch) in(at, s string, depth int) string {
	if depth < MaxNested {
		if !IsPrintable([]byte(s)) {
			return w.inCompressed(at, s, depth)
		}
		if b := encodedIn(s); b != nil {
			was := string(b)
			if is := w.in(at+"base64 ", was, depth+1); is != was {
				_, e := FromBase64(s)
				return e.EncodeToString([]byte(is))
			}
			return s
		}
		if beginsContainer(s) {
			if out, ok := w.inJSON(at+"json ", s, depth); ok {
				return out
			}
		}
	}
	if !utf8.ValidString(s) {
		return s
	}
	return w.inText(at, s)
}

// inCompressed is in for compressed data.
func (w *wordSearch) inCompressed(at, s string, depth int) string {
	encoding, b := inflate([]byte(s), w.budget)
	if encoding == "" || !IsPrintable(b) {
		return s
	}
	is := w.in(at+encoding+" ", string(b), depth+1)
	if is == string(b) {
		return s
	}
	packed, err := envelope.Compress(encoding, []byte(is))
	if err != nil {
		return s
	}
	return string(packed)
}

// inJSON is in for JSON; ok is false if s is not JSON.
func (w *wordSearch) inJSON(at, s string, depth int) (out string, ok bool) {
	root, err := jsontree.Parse([]byte(s))
	if err != nil {
		return s, false
	}
	type edit struct {
		off, end int
		fresh    string
	}
	var edits []edit
	for _, l := range jsonLeaves(nil, root, "", 1) {
		var was, is string
		switch {
		case l.Object || l.key:
			continue
		case l.Number && IsDigits(l.Value[1:]):
			was = l.Value[1:]
			is = w.visit(Word{at + l.Path, was})
		case !l.Number:
			was = string(l.Data)
			is = w.in(at+l.Path+" ", was, depth+1)
		}
		if was == is {
			continue
		}
		off, end := l.json.Span()
		if l.json.Kind() == jsontree.String || !IsDigits(is) {
			is = string(jsontree.Quote(is))
		}
		edits = append(edits, edit{off, end, is})
	}

	// The entries of maps are not in the order of the text.
	slices.SortFunc(edits, func(a, b edit) int { return cmp.Compare(a.off, b.off) })
	var b strings.Builder
	copied := 0
	for _, e := range edits {
		b.WriteString(s[copied:e.off] + e.fresh)
		copied = e.end
	}
	return b.String() + s[copied:], true
}

// inText is in for a text without structure.
func (w *wordSearch) inText(at, s string) string {
	var b strings.Builder
	copied, n := 0, 0
	for i := 0; i < len(s); {
		j := endOfWord(s, i)
		if j == i {
			i++
			continue
		}
		if run := s[i:j]; !IsDigits(run) || !isDecimal(s, i, j) {
			if is := w.visit(Word{at + "run " + strconv.Itoa(n), run}); is != run {
				b.WriteString(s[copied:i] + is)
				copied = j
			}
		}
		n++
		i = j
	}
	return b.String() + s[copied:]
}

// endOfWord returns the end of the word at s[i:], which is i if there is none. A word consists of letters
// and digits. A name or number that - or _ connects to it is a word of its own, as in call-ID; other
// parts belong to the same word, because generated names contain these characters, also as the first and
// the last.
func endOfWord(s string, i int) int {
	all, first := i, i
	for all < len(s) && (isAlphanumeric(s[all]) || isSeparator(s[all])) {
		all++
	}
	for first < all && isSeparator(s[first]) {
		first++
	}
	if first > i && i > 0 && isAlphanumeric(s[i-1]) {
		return i
	}
	end := endOfParts(s, first, all)
	if strings.Trim(s[end:all], "-_") == "" && isLikeGenerated(s[first:end]) {
		end = all
	}
	if first > i && !isLikeGenerated(s[first:end]) {
		return i
	}
	return end
}

// isSeparator reports whether c separates the parts of a word.
func isSeparator(c byte) bool { return c == '-' || c == '_' }

// isLikeGenerated reports whether a word has the format of an identifier, or resembles a generated name.
func isLikeGenerated(word string) bool { return ClassOf(word) != "" || IsGenerated(word) }

// endOfParts returns the end of the word that begins with the letters and digits at s[i:], and ends before
// all; see endOfWord.
func endOfParts(s string, i, all int) int {
	if ClassOf(s[i:all]) != "" {
		return all
	}
	end := endOfPart(s, i)
	if end == i || isPlain(s[i:end]) {
		return end
	}
	for end+1 < all {
		next := endOfPart(s, end+1)
		if isPlain(s[end+1 : next]) {
			break
		}
		end = next
	}
	return end
}

// endOfPart returns the end of the letters and digits at s[i:].
func endOfPart(s string, i int) int {
	for i < len(s) && isAlphanumeric(s[i]) {
		i++
	}
	return i
}

// isPlain reports whether a part of a word is a number, or a name in lower case.
func isPlain(part string) bool {
	const shortest = 3
	return IsDigits(part) || len(part) >= shortest && strings.Trim(part, "abcdefghijklmnopqrstuvwxyz") == ""
}

// isAlphanumeric reports whether c is a letter or a digit.
func isAlphanumeric(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
}

// isDecimal reports whether the digits s[i:j] are a part of a decimal number, a version or a file name.
func isDecimal(s string, i, j int) bool {
	isPath := func(c byte) bool { return c == '.' || c == '/' || c == '%' }
	return i > 0 && isPath(s[i-1]) || j+1 < len(s) && isPath(s[j]) && isAlphanumeric(s[j+1])
}

// IsGenerated reports whether a word of letters and digits resembles a generated name: it changes between
// letters and digits at least twice. A name with a number changes once.
func IsGenerated(run string) bool {
	const shortest, leastChanges = 6, 2
	changes := 0
	for i := 1; i < len(run); i++ {
		if IsDigits(run[i:i+1]) != IsDigits(run[i-1:i]) {
			changes++
		}
	}
	return len(run) >= shortest && changes >= leastChanges
}

// IsRandomName reports whether a text is one word, as from a generator of random names such as nanoid: it has at least eight
// letters and digits, and changes between them, or from lower to upper case, at least four times. Names of models, files
// and methods change less often.
func IsRandomName(s string) bool {
	const longest, least = 64, 4
	if len(s) < ShortText || len(s) > longest || strings.IndexFunc(s, func(r rune) bool { return r > unicode.MaxASCII || !isAlphanumeric(byte(r)) && !isSeparator(byte(r)) }) >= 0 {
		return false
	}
	changes, digits := 0, false
	for i := 1; i < len(s); i++ {
		a, b := charKind(s[i-1]), charKind(s[i])
		digits = digits || b == '0'
		if a != b && a != 0 && b != 0 && !(a == 'A' && b == 'a') {
			changes++
		}
	}
	return digits && changes >= least && !isPlainName(s)
}

// isPlainName reports whether every part of a name is a number, or a word in lower case that may begin or end with digits.
func isPlainName(s string) bool {
	for part := range strings.FieldsFuncSeq(s, func(r rune) bool { return isSeparator(byte(r)) }) {
		if word := strings.Trim(part, "0123456789"); strings.Trim(word, "abcdefghijklmnopqrstuvwxyz") != "" {
			return false
		}
	}
	return true
}

// charKind returns 'a', 'A' or '0' for a letter of that case or a digit, and 0 for other characters.
func charKind(c byte) byte {
	switch {
	case c >= 'a' && c <= 'z':
		return 'a'
	case c >= 'A' && c <= 'Z':
		return 'A'
	case c >= '0' && c <= '9':
		return '0'
	}
	return 0
}
