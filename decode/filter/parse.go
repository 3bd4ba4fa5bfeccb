package filter

import (
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"unwire/decode/fieldpath"
)

// Limits of a filter.
const (
	// maxText is the length in bytes.
	maxText = 4 << 10

	// maxTerms is the number of terms.
	maxTerms = 100

	// maxDepth is the nesting of parentheses.
	maxDepth = 20
)

// An Error is a syntax error in a filter, with its position.
type Error struct {
	// Column is the position of the error in characters, from 1.
	Column int

	// Text describes the error.
	Text string
}

// Error formats the syntax error with its column.
func (e *Error) Error() string { return fmt.Sprintf("column %d: %s", e.Column, e.Text) }

// errorf returns an error without a column, which the parser adds.
func errorf(format string, args ...any) error { return &Error{Text: fmt.Sprintf(format, args...)} }

// Parse parses a filter. now is the origin of relative times and determines the time zone.
//
// Limits: 4 KiB of text, 100 terms, 20 nested parentheses.
//
// Errors: an *Error.
func Parse(text string, now time.Time) (*Filter, error) {
	p := &parser{text: text, now: now}
	if len(text) > maxText {
		return nil, &Error{1, fmt.Sprintf("a filter has at most %d bytes, not %d", maxText, len(text))}
	}
	if i := strings.IndexFunc(text, func(r rune) bool { return r == utf8.RuneError }); i >= 0 && !utf8.ValidString(text) {
		return nil, p.at(i, errorf("the filter is not UTF-8"))
	}

	// The empty filter has no operands and is true.
	root := &node{op: opAnd}
	if p.space(); !p.atEnd() {
		var err error
		if root, err = p.or(0); err != nil {
			return nil, err
		}
	}
	// The parser stops only at the end or at a parenthesis.
	if !p.atEnd() {
		return nil, p.at(p.off, errorf(`the parenthesis ")" has no "(" before it`))
	}
	f := &Filter{text: text, frames: root, needs: needsOf(root)}
	f.exchanges = forExchanges(root, &f.groups)
	return f, nil
}

// A parser is a recursive descent parser. Each method parses one production of the grammar in the package
// comment.
type parser struct {
	// text is the source text of the filter.
	text string

	// off is the offset in text of the next byte.
	off int

	// now is the current time, to which relative times in the filter refer.
	now time.Time

	// terms is the number of terms parsed so far, for the limit.
	terms int
}

// at returns the syntax error err with its position: the column, in characters, of the byte offset off.
func (p *parser) at(off int, err error) error {
	if e, ok := err.(*Error); ok && e.Column == 0 {
		return &Error{1 + utf8.RuneCountInString(p.text[:min(off, len(p.text))]), e.Text}
	}
	return err
}

// atEnd reports whether the whole filter was parsed.
func (p *parser) atEnd() bool { return p.off == len(p.text) }

// next returns the next character without consuming it, or 0 at the end.
func (p *parser) next() rune {
	if p.atEnd() {
		return 0
	}
	r, _ := utf8.DecodeRuneInString(p.text[p.off:])
	return r
}

// space skips white space.
func (p *parser) space() {
	p.off = len(p.text) - len(strings.TrimLeftFunc(p.text[p.off:], unicode.IsSpace))
}

// word consumes an operator such as "and", and reports whether it was present.
func (p *parser) word(word string) bool {
	rest, ok := strings.CutPrefix(p.text[p.off:], word)
	if !ok {
		return false
	}
	r, _ := utf8.DecodeRuneInString(rest)
	if rest != "" && !unicode.IsSpace(r) && r != '(' && r != ')' {
		return false
	}
	p.off = len(p.text) - len(rest)
	p.space()
	return true
}

// or parses: and { "or" and }.
func (p *parser) or(depth int) (*node, error) {
	first, err := p.and(depth)
	if err != nil {
		return nil, err
	}
	out := &node{op: opOr, operands: []*node{first}}
	for p.word("or") {
		n, err := p.and(depth)
		if err != nil {
			return nil, err
		}
		out.operands = append(out.operands, n)
	}
	if len(out.operands) == 1 {
		return first, nil
	}
	return out, nil
}

// and parses: not { [ "and" ] not }.
func (p *parser) and(depth int) (*node, error) {
	out := &node{op: opAnd}
	for {
		n, err := p.not(depth)
		if err != nil {
			return nil, err
		}
		out.operands = append(out.operands, n)
		if p.word("and") {
			continue
		}
		// Another operand follows, unless the text or the group ends.
		start := p.off
		if p.atEnd() || p.next() == ')' || p.word("or") {
			p.off = start
			return out, nil
		}
	}
}

// not parses: [ "not" ] operand.
func (p *parser) not(depth int) (*node, error) {
	// Pairs of "not" cancel each other.
	negated := false
	start := p.off
	for p.word("not") {
		negated = !negated
	}
	isNegation := p.off > start
	n, err := p.operand(depth)
	if err != nil {
		return nil, err
	}
	p.space()
	switch {
	case negated:
		return &node{op: opNot, operands: []*node{n}}, nil
	// An even number of "not" has no effect on the value, but the operand is evaluated on its own.
	case isNegation:
		return &node{op: opOr, operands: []*node{n}}, nil
	}
	return n, nil
}

// operand parses: "(" or ")" | term | text.
func (p *parser) operand(depth int) (*node, error) {
	start := p.off
	switch c := p.next(); {
	case p.atEnd():
		return nil, p.at(p.off, errorf("the filter lacks a condition, such as host:api.example.com"))
	case c == ')':
		return nil, p.at(p.off, errorf("a condition, such as host:api.example.com, is missing before %q", ")"))
	case p.word("or"), p.word("and"):
		word := strings.TrimSpace(p.text[start:p.off])
		return nil, p.at(start, errorf("a condition is missing before %q; to search for this word, put it in double quotes", word))
	case c == '(':
		return p.parentheses(depth)
	}

	// The limit bounds the time for each frame.
	if p.terms++; p.terms > maxTerms {
		return nil, p.at(start, errorf("the filter has more than %d conditions", maxTerms))
	}
	n, err := p.term()
	if err != nil {
		return nil, p.at(start, err)
	}
	// Two operands need white space between them.
	if c := p.next(); !p.atEnd() && !unicode.IsSpace(c) && c != '(' && c != ')' {
		return nil, p.at(p.off, unexpected(c))
	}
	return n, nil
}

// parentheses parses: "(" or ")".
func (p *parser) parentheses(depth int) (*node, error) {
	open := p.off
	if depth == maxDepth {
		return nil, p.at(open, errorf("parentheses are nested more than %d deep", maxDepth))
	}
	p.off++
	p.space()
	n, err := p.or(depth + 1)
	if err != nil {
		return nil, err
	}
	if p.next() != ')' {
		return nil, p.at(open, errorf(`the parenthesis "(" is not closed`))
	}
	p.off++
	// An opOr with a single operand prevents that the operand's terms are merged with those outside.
	return &node{op: opOr, operands: []*node{n}}, nil
}

// term parses a term such as status>=400, or a text without a key.
func (p *parser) term() (*node, error) {
	start := p.off
	if p.next() != '"' {
		name := p.bare()
		// A key needs an operator behind it. Without one, the word is a text to search for.
		k := keyOf(name)
		switch c := p.next(); {
		case c == ':' && k != nil:
			p.off++
			return p.colon(k)
		case k != nil && p.comparison() != "":
			return p.compared(k)
		case c == ':' || p.comparison() != "":
			return nil, unknownKey(name)
		}
		p.off = start
	}
	text, err := p.pattern()
	if err != nil {
		return nil, err
	}
	return newTerm(&term{key: keyOf("text"), patterns: []pattern{text}})
}

// unknownKey returns the error for a key that does not exist.
func unknownKey(name string) error {
	if name == "" {
		return errorf("the filter lacks a condition, such as host:api.example.com")
	}
	if like := similarKey(name); like != "" {
		return errorf("%s is not a key of filters; did you mean %q?", quoted(name), like)
	}
	return errorf("%s is not a key of filters; to search for this text, put it in double quotes", quoted(name))
}

// comparison returns the operator at the current offset, or "".
func (p *parser) comparison() comparison {
	for _, c := range comparisons {
		if strings.HasPrefix(p.text[p.off:], string(c)) {
			return c
		}
	}
	return ""
}

// colon parses the value after a key and a colon.
func (p *parser) colon(k *key) (*node, error) {
	switch k.kind {
	case wordKey:
		return p.alternatives(&term{key: k})
	case pathKey:
		return p.path(k)
	case headerKey:
		return p.header(k)
	}
	negated := p.negation()
	t := &term{key: k}
	for {
		n, err := p.number(k)
		if err != nil {
			return nil, err
		}
		t.numbers = append(t.numbers, n)
		if p.next() != ',' {
			return negate(negated)(newTerm(t))
		}
		p.off++
	}
}

// negation consumes an exclamation mark, and reports whether it was present.
func (p *parser) negation() bool {
	if p.next() != '!' {
		return false
	}
	p.off++
	return true
}

// negate returns a function that passes on the result of a parser method and negates the condition if negated is
// true.
func negate(negated bool) func(*node, error) (*node, error) {
	return func(n *node, err error) (*node, error) {
		if err != nil || !negated {
			return n, err
		}
		return &node{op: opNot, operands: []*node{n}}, nil
	}
}

// alternatives parses patterns separated by commas into t.patterns, and returns the node of t. One of them has to
// match.
func (p *parser) alternatives(t *term) (*node, error) {
	negated := p.negation()
	for {
		start := p.off
		one, err := p.pattern()
		if err == nil {
			err = t.key.check(one, p.text[start:p.off])
		}
		if err != nil {
			return nil, p.at(start, err)
		}
		t.patterns = append(t.patterns, one)
		if p.next() != ',' {
			return negate(negated)(newTerm(t))
		}
		p.off++
	}
}

// check returns an error if one is a word that key k does not have. text is the word as the user wrote it.
func (k *key) check(one pattern, text string) error {
	word, literal := one.literal()
	if !k.closed || !literal && k.name != "is" {
		return nil
	}
	if !slices.Contains(k.words, strings.ToLower(word)) {
		return errorf("%s must be one of %s, not %s", k.name, strings.Join(k.words, ", "), quoted(text))
	}
	return nil
}

// compared parses a comparison operator and a number after key k.
func (p *parser) compared(k *key) (*node, error) {
	start := p.off
	c := p.comparison()
	switch k.kind {
	case wordKey, pathKey, headerKey:
		return nil, p.at(start, errorf("%s must be followed by a colon, not by %s", k.name, quoted(string(c))))
	}
	p.off += len(c)
	n, err := p.number(k)
	if err != nil {
		return nil, err
	}
	return negate(c == "!=")(newTerm(&term{key: k, comparison: c, numbers: []number{n}}))
}

// number parses a number with the unit that the key requires.
func (p *parser) number(k *key) (n number, err error) {
	start := p.off
	rest := p.text[start:]
	end := strings.IndexFunc(rest, func(r rune) bool { return unicode.IsSpace(r) || strings.ContainsRune("(),", r) })
	if end < 0 {
		end = len(rest)
	}
	p.off += end
	switch text := rest[:end]; k.kind {
	case sizeKey:
		n, err = parseSize(k.name, text)
	case durationKey:
		n, err = parseDuration(k.name, text)
	case timeKey:
		n, err = parseTime(k.name, text, p.now)
	default:
		n, err = parsePlain(k.name, text)
	}
	return n, p.at(start, err)
}

// path parses a field path and the comparison of the field's value.
func (p *parser) path(k *key) (*node, error) {
	start := p.off
	p.off += pathLen(p.text[start:])
	path, err := fieldpath.ParsePattern(p.text[start:p.off])
	if err != nil {
		return nil, p.at(start, errorf("%v", err))
	}
	t := &term{key: k, path: path}
	if p.next() == ':' {
		p.off++
		return p.alternatives(t)
	}
	// Without a comparison, the term only requires that the field exists.
	c := p.comparison()
	p.off += len(c)
	switch c {
	case "":
		return newTerm(t)
	case "=", "!=":
		one, err := p.pattern()
		if err != nil {
			return nil, err
		}
		t.patterns = []pattern{one}
		return negate(c == "!=")(newTerm(t))
	}

	n, err := p.number(&key{name: k.name, kind: plainKey})
	// The comparison applies to the value as a number.
	t.comparison, t.numbers = c, []number{n}
	if err != nil {
		return nil, err
	}
	return newTerm(t)
}

// pathLen returns the length of the path at the beginning of text, in bytes.
func pathLen(text string) int {
	end := len(text)
	eachRune(text, func(i int, r rune, quoted bool) {
		if !quoted && i < end && (unicode.IsSpace(r) || strings.ContainsRune("():=<>", r) || strings.HasPrefix(text[i:], "!=")) {
			end = i
		}
	})
	return end
}

// header parses the name of a header and the pattern for its value.
func (p *parser) header(k *key) (*node, error) {
	name, err := p.pattern()
	if err != nil {
		return nil, err
	}
	t := &term{key: k, name: name.lower()}
	c := p.comparison()
	if c != "=" && c != "!=" {
		return newTerm(t)
	}
	p.off += len(c)
	// Values of headers are case-sensitive.
	value, err := p.pattern()
	if err != nil {
		return nil, err
	}
	t.patterns = []pattern{value}
	return negate(c == "!=")(newTerm(t))
}
