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
	maxText  = 4 << 10 // bytes
	maxTerms = 100
	maxDepth = 20 // parentheses in each other
)

// An Error says what is wrong with the text of a filter.
type Error struct {
	Column int // in characters, from 1
	Text   string
}

func (e *Error) Error() string { return fmt.Sprintf("column %d: %s", e.Column, e.Text) }

// errorf makes an error whose column is set by the parser.
func errorf(format string, args ...any) error { return &Error{Text: fmt.Sprintf(format, args...)} }

// Parse reads a filter. Instants are counted back from now, and are in its time zone.
//
// Limits: 4 KiB of text, 100 terms, 20 nested parentheses.
// Errors: *Error.
func Parse(text string, now time.Time) (*Filter, error) {
	p := &parser{text: text, now: now}
	if len(text) > maxText {
		return nil, &Error{1, fmt.Sprintf("a filter has at most %d bytes, not %d", maxText, len(text))}
	}
	if i := strings.IndexFunc(text, func(r rune) bool { return r == utf8.RuneError }); i >= 0 && !utf8.ValidString(text) {
		return nil, p.at(i, errorf("the filter is not UTF-8"))
	}
	root := &node{op: opAnd}
	if p.space(); !p.atEnd() {
		var err error
		if root, err = p.or(0); err != nil {
			return nil, err
		}
	}
	if !p.atEnd() { // or ends only there or before a parenthesis
		return nil, p.at(p.off, errorf(`")" without "("`))
	}
	f := &Filter{text: text, frames: root, needs: needsOf(root)}
	f.exchanges = forExchanges(root, &f.groups)
	return f, nil
}

// A parser reads a filter by recursive descent.
type parser struct {
	text  string
	off   int
	now   time.Time
	terms int
}

// at adds the column of an offset to an error.
func (p *parser) at(off int, err error) error {
	if e, ok := err.(*Error); ok && e.Column == 0 {
		return &Error{1 + utf8.RuneCountInString(p.text[:min(off, len(p.text))]), e.Text}
	}
	return err
}

func (p *parser) atEnd() bool { return p.off == len(p.text) }

// next returns the character that comes next; 0 at the end.
func (p *parser) next() rune {
	if p.atEnd() {
		return 0
	}
	r, _ := utf8.DecodeRuneInString(p.text[p.off:])
	return r
}

func (p *parser) space() {
	p.off = len(p.text) - len(strings.TrimLeftFunc(p.text[p.off:], unicode.IsSpace))
}

// word reports whether an operator that is a word comes next, and reads it.
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

// or = and { "or" and }.
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

// and = not { [ "and" ] not }.
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
		start := p.off
		if p.atEnd() || p.next() == ')' || p.word("or") {
			p.off = start
			return out, nil
		}
	}
}

// not = [ "not" ] operand.
func (p *parser) not(depth int) (*node, error) {
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
	case isNegation: // it stays on its own
		return &node{op: opOr, operands: []*node{n}}, nil
	}
	return n, nil
}

// operand = "(" or ")" | term | text.
func (p *parser) operand(depth int) (*node, error) {
	start := p.off
	switch c := p.next(); {
	case p.atEnd():
		return nil, p.at(p.off, errorf("a term is missing, such as host:api.example.com"))
	case c == ')':
		return nil, p.at(p.off, errorf("a term is missing before %q", ")"))
	case p.word("or"), p.word("and"):
		word := strings.TrimSpace(p.text[start:p.off])
		return nil, p.at(start, errorf("a term is missing before %q; to search for the word, put it in double quotes", word))
	case c == '(':
		return p.parentheses(depth)
	}
	if p.terms++; p.terms > maxTerms {
		return nil, p.at(start, errorf("a filter has at most %d terms", maxTerms))
	}
	n, err := p.term()
	if err != nil {
		return nil, p.at(start, err)
	}
	if c := p.next(); !p.atEnd() && !unicode.IsSpace(c) && c != '(' && c != ')' {
		return nil, p.at(p.off, unexpected(c))
	}
	return n, nil
}

func (p *parser) parentheses(depth int) (*node, error) {
	open := p.off
	if depth == maxDepth {
		return nil, p.at(open, errorf("at most %d parentheses may be in each other", maxDepth))
	}
	p.off++
	p.space()
	n, err := p.or(depth + 1)
	if err != nil {
		return nil, err
	}
	if p.next() != ')' {
		return nil, p.at(open, errorf(`"(" without ")"`))
	}
	p.off++
	// An "or" of one operand keeps it on its own.
	return &node{op: opOr, operands: []*node{n}}, nil
}

// term reads a term or a text.
func (p *parser) term() (*node, error) {
	start := p.off
	if p.next() != '"' {
		name := p.bare()
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

// unknownKey is the error for a term that does not exist.
func unknownKey(name string) error {
	if name == "" {
		return errorf("a term is missing, such as host:api.example.com")
	}
	if like := similarKey(name); like != "" {
		return errorf("no term is called %s; did you mean %q?", quoted(name), like)
	}
	return errorf("no term is called %s; to search for it as text, put it in double quotes", quoted(name))
}

// comparison returns the operator that comes next; "" if there is none.
func (p *parser) comparison() comparison {
	for _, c := range comparisons {
		if strings.HasPrefix(p.text[p.off:], string(c)) {
			return c
		}
	}
	return ""
}

// colon reads what is behind a key and a colon.
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

// negation reads an exclamation mark.
func (p *parser) negation() bool {
	if p.next() != '!' {
		return false
	}
	p.off++
	return true
}

// negate returns a function that puts a "not" before a term.
func negate(negated bool) func(*node, error) (*node, error) {
	return func(n *node, err error) (*node, error) {
		if err != nil || !negated {
			return n, err
		}
		return &node{op: opNot, operands: []*node{n}}, nil
	}
}

// alternatives reads patterns separated by commas.
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

// check refuses a word that a key does not have; text is how it was written.
func (k *key) check(one pattern, text string) error {
	word, literal := one.literal()
	if !k.closed || !literal && k.name != "is" {
		return nil
	}
	if !slices.Contains(k.words, strings.ToLower(word)) {
		return errorf("%s is one of %s, not %s", k.name, strings.Join(k.words, ", "), quoted(text))
	}
	return nil
}

// compared reads a comparison with a number behind a key.
func (p *parser) compared(k *key) (*node, error) {
	start := p.off
	c := p.comparison()
	switch k.kind {
	case wordKey, pathKey, headerKey:
		return nil, p.at(start, errorf("%s is followed by a colon, not %s", k.name, quoted(string(c))))
	}
	p.off += len(c)
	n, err := p.number(k)
	if err != nil {
		return nil, err
	}
	return negate(c == "!=")(newTerm(&term{key: k, comparison: c, numbers: []number{n}}))
}

// number reads a number of a key's kind.
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

// path reads a path and what its value is compared with.
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
	t.comparison, t.numbers = c, []number{n}
	if err != nil {
		return nil, err
	}
	return newTerm(t)
}

// pathLen returns how much of a text is a path.
func pathLen(text string) int {
	end := len(text)
	eachRune(text, func(i int, r rune, quoted bool) {
		if !quoted && i < end && (unicode.IsSpace(r) || strings.ContainsRune("():=<>", r) || strings.HasPrefix(text[i:], "!=")) {
			end = i
		}
	})
	return end
}

// header reads the name of a field and a pattern of its value.
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
	value, err := p.pattern()
	if err != nil {
		return nil, err
	}
	t.patterns = []pattern{value}
	return negate(c == "!=")(newTerm(t))
}
