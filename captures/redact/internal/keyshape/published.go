package keyshape

import (
	_ "embed"
	"regexp/syntax"
	"strings"
	"sync"
	"unicode/utf8"

	"unwire/captures/redact/internal/charset"
)

// publishedRules are the regular expressions of the secret scanner Gitleaks, with its license notice.
//
//go:embed gitleaks.txt
var publishedRules string

const (
	// leastPrefix is the smallest length of a prefix for which a published rule is used, because the scanner's
	// filter tests three bytes.
	leastPrefix = 3

	// leastRun is the smallest number of characters after the prefix for which a published rule is used.
	leastRun = 10

	// maxPrefixes is the largest number of prefixes that are derived from one rule.
	maxPrefixes = 64
)

// published returns shapes for those published rules that begin with a fixed text. The other rules search for
// names of vendors near a value, which package names covers.
var published = sync.OnceValue(func() []Shape {
	var shapes []Shape
	seen := make(map[string]bool)
	for line := range strings.Lines(publishedRules) {
		_, expression, ok := strings.Cut(strings.TrimSpace(line), "\t")
		if !ok || line[0] == '#' {
			continue
		}
		re, err := syntax.Parse(expression, syntax.Perl)
		if err != nil {
			continue // a test says so
		}
		for _, s := range shapesOf(re, expression) {
			if !seen[s.Prefix] {
				seen[s.Prefix] = true
				shapes = append(shapes, s)
			}
		}
	}
	return shapes
})

// shapesOf converts a regular expression to shapes that match at least the same keys. It returns none
// if re does not begin with a fixed text. A shape records only which bytes may follow the prefix, and
// so may match more than re.
func shapesOf(re *syntax.Regexp, source string) []Shape {
	w := &shapeWalk{source: source, prefixes: []string{""}, open: true}
	if group := firstGroup(re); group != nil {
		re = group
	}
	w.walk(re)
	if w.failed || w.least < leastRun {
		return nil
	}
	var shapes []Shape
	for _, p := range w.prefixes {
		if len(p) < leastPrefix || len(p)+w.least < 16 {
			continue
		}
		shapes = append(shapes, Shape{Prefix: p, chars: &w.chars, min: w.least, digit: w.chars['0'] && len(p) < 8})
	}
	return shapes
}

// firstGroup returns the first capture group of a published rule, which matches the key itself; nil if the rule
// has none. The rest of such a rule only describes the text around the key.
func firstGroup(re *syntax.Regexp) *syntax.Regexp {
	switch re.Op {
	case syntax.OpCapture:
		return re.Sub[0]
	case syntax.OpConcat:
		for _, sub := range re.Sub {
			switch sub.Op {
			case syntax.OpCapture:
				return sub.Sub[0]
			case syntax.OpWordBoundary, syntax.OpEmptyMatch:
			default:
				return nil
			}
		}
	}
	return nil
}

// A shapeWalk walks over a regular expression and collects the possible prefixes and, for the part after the
// prefix, the possible bytes and the smallest length.
type shapeWalk struct {
	// source is the text of the regular expression.
	source string
	// prefixes are the possible prefixes so far.
	prefixes []string
	// open means that the walk is still in the prefix.
	open bool

	// chars are the bytes that may occur after the prefix.
	chars charset.Set
	// least is the smallest number of bytes after the prefix.
	least int

	// failed means that the expression cannot be converted to shapes.
	failed bool
}

// walk adds the expression re to the prefixes or, after the prefix, to chars and least.
func (w *shapeWalk) walk(re *syntax.Regexp) {
	switch re.Op {
	case syntax.OpEmptyMatch, syntax.OpWordBoundary, syntax.OpEndText, syntax.OpEndLine:
	case syntax.OpCapture:
		w.walk(re.Sub[0])
	case syntax.OpConcat:
		for _, sub := range re.Sub {
			w.walk(sub)
		}
	case syntax.OpLiteral:
		w.literal(string(re.Rune), re.Flags&syntax.FoldCase != 0)
	case syntax.OpCharClass:
		w.class(re.Rune)
	case syntax.OpAlternate:
		w.alternatives(re.Sub)
	case syntax.OpStar, syntax.OpQuest:
		w.repeat(re.Sub[0], 0)
	case syntax.OpPlus:
		w.repeat(re.Sub[0], 1)
	case syntax.OpRepeat:
		w.repeat(re.Sub[0], re.Min)
	default:
		w.failed = true
	}
}

// literal adds a fixed text. If case is ignored (fold), it uses the spelling in the rule's source.
func (w *shapeWalk) literal(text string, fold bool) {
	if fold {
		if i := strings.Index(strings.ToLower(w.source), strings.ToLower(text)); i >= 0 && w.open {
			text = w.source[i : i+len(text)]
		}
	}
	if w.open {
		for i := range w.prefixes {
			w.prefixes[i] += text
		}
		return
	}
	for i := range len(text) {
		w.addRange(rune(text[i]), rune(text[i]))
	}
	w.least += len(text)
}

// class adds a character class. If it has at most four characters and the walk is in the prefix, each prefix is
// extended by each of them; otherwise the prefix ends.
func (w *shapeWalk) class(ranges []rune) {
	size := 0
	for i := 0; i+1 < len(ranges); i += 2 {
		if ranges[i+1] >= utf8.RuneSelf && ranges[i] < utf8.RuneSelf && ranges[i] < '0' {
			w.failed = true // all but a few
			return
		}
		size += int(min(ranges[i+1], utf8.RuneSelf) - min(ranges[i], utf8.RuneSelf) + 1)
	}
	if w.open && size <= 4 && size*len(w.prefixes) <= maxPrefixes {
		var longer []string
		for _, p := range w.prefixes {
			for i := 0; i+1 < len(ranges); i += 2 {
				for c := ranges[i]; c <= ranges[i+1] && c < utf8.RuneSelf; c++ {
					longer = append(longer, p+string(c))
				}
			}
		}
		w.prefixes = longer
		return
	}
	w.open = false
	for i := 0; i+1 < len(ranges); i += 2 {
		w.addRange(ranges[i], ranges[i+1])
	}
	w.least++
}

// addRange adds the ASCII characters from one to another to chars.
func (w *shapeWalk) addRange(from, to rune) {
	for c := from; c <= to && c < utf8.RuneSelf; c++ {
		w.chars[c] = true
	}
}

// alternatives adds an alternation: in the prefix, the prefixes of each alternative; after it, the bytes that
// occur in any alternative.
func (w *shapeWalk) alternatives(subs []*syntax.Regexp) {
	var prefixes []string
	least, failed := -1, false
	var chars charset.Set
	open := w.open
	for _, sub := range subs {
		one := &shapeWalk{source: w.source, prefixes: append([]string(nil), w.prefixes...), open: w.open}
		one.walk(sub)
		failed = failed || one.failed
		open = open && one.open
		prefixes = append(prefixes, one.prefixes...)
		for c := range chars {
			chars[c] = chars[c] || one.chars[c]
		}
		if least < 0 || one.least < least {
			least = one.least
		}
	}
	for c := range chars {
		w.chars[c] = w.chars[c] || chars[c]
	}
	w.failed = w.failed || failed || len(prefixes) > maxPrefixes
	if w.open {
		w.prefixes = prefixes
	}
	w.open, w.least = open, w.least+max(least, 0)
}

// repeat adds an expression that occurs at least n times; it ends the prefix.
func (w *shapeWalk) repeat(sub *syntax.Regexp, n int) {
	w.open = false
	before := w.least
	w.walk(sub)
	w.least = before + n*(w.least-before)
}
