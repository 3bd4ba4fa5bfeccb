package filter

import (
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// A Candidate is one completion for a filter that a user is typing.
type Candidate struct {
	// Text is the text that replaces the range Completion.From to Completion.To.
	Text string

	// About is a short description of the candidate, or "".
	About string
}

// A Completion lists the texts that may be written at a position of a filter.
type Completion struct {
	// From and To are the offsets in bytes at which the text to be replaced begins and ends.
	From, To int

	// Candidates are the possible texts, best first.
	Candidates []Candidate
}

// words are the operators between terms, with descriptions.
var words = []Candidate{{"and", "both match"}, {"or", "at least one of the two matches"}, {"not", "the next does not match"}, {"(", "a group"}}

// Complete returns what may be written at the offset at in text. known, which may be nil, returns the values of
// a key that occur in a capture, most frequent first.
//
// Errors: an *Error if the text before the term is not a valid filter.
func Complete(text string, at int, known func(key string) []string) (Completion, error) {
	text = text[:min(max(at, 0), len(text))]
	from := termStart(text)
	if err := checkBefore(text[:from]); err != nil {
		return Completion{From: from, To: len(text)}, err
	}
	// The part of the term that is already written determines what may follow.
	name, rest := cutKey(text[from:])
	k := keyOf(name)
	switch {
	case k == nil || rest == "":
		return completeKey(text, from), nil
	case k.kind == wordKey || k.kind == headerKey:
		return completeWord(text, k, known), nil
	case k.kind == pathKey:
		return candidates(text, from+len("path:"), values("path", known), rest[0] == ':'), nil
	}
	return completeNumber(text, k, from+len(name)), nil
}

// termStart returns the offset of the last term in text.
func termStart(text string) int {
	start := 0
	eachRune(text, func(i int, r rune, quoted bool) {
		if !quoted && (unicode.IsSpace(r) || r == '(' || r == ')') {
			start = i + utf8.RuneLen(r)
		}
	})
	return start
}

// eachRune calls do for each character of text with its offset. quoted means that the character is
// inside double quotes.
func eachRune(text string, do func(i int, r rune, quoted bool)) {
	quoted, escaped := false, false
	for i, r := range text {
		if r == '"' && !escaped {
			quoted = !quoted
		}
		do(i, r, quoted)
		escaped = quoted && r == '\\' && !escaped
	}
}

// checkBefore parses the part of a filter before the term that is being typed, and returns its syntax error.
// Missing terms and closing parentheses are not errors, since they may follow.
func checkBefore(text string) error {
	text = strings.TrimRightFunc(text, unicode.IsSpace)
	open := 0
	eachRune(text, func(_ int, r rune, quoted bool) {
		switch {
		case quoted:
		case r == '(':
			open++
		case r == ')':
			open--
		}
	})
	// Complete the text to a whole filter, so that the parser can check it.
	if !endsInOperand(text) {
		text += " id:1"
	}
	_, err := Parse(text+strings.Repeat(")", max(open, 0)), time.Now())
	return err
}

// endsInOperand reports whether text ends with an operand of "and" or "or", so that an operator must follow.
func endsInOperand(text string) bool {
	last := text[termStart(text):]
	return text == "" || strings.HasSuffix(text, ")") || last != "" && last != "or" && last != "and" && last != "not"
}

// cutKey splits a term of a filter into its key and the rest, which begins with the operator.
func cutKey(term string) (name, rest string) {
	i := strings.IndexAny(term, `:=!<>"`)
	if i < 0 {
		return term, ""
	}
	return term[:i], term[i:]
}

// completeKey completes a key, or an operator between terms.
func completeKey(text string, from int) Completion {
	c := Completion{From: from, To: len(text)}
	prefix := strings.ToLower(text[from:])
	for i := range keys {
		if k := &keys[i]; strings.HasPrefix(k.name, prefix) {
			c.Candidates = append(c.Candidates, Candidate{k.name + ":", k.about})
		}
	}
	for _, w := range words {
		if strings.HasPrefix(w.Text, prefix) {
			c.Candidates = append(c.Candidates, w)
		}
	}
	return c
}

// completeWord completes one of the patterns after key k and a colon. text is the filter up to the position of the completion.
func completeWord(text string, k *key, known func(string) []string) Completion {
	from := strings.LastIndexAny(text, ":!,") + 1
	// A quoted pattern may contain separators.
	if quote := openQuote(text); quote >= 0 {
		from = quote
	}
	list := values(k.name, known)
	for _, w := range k.words {
		if !slices.Contains(list, w) {
			list = append(list, w)
		}
	}
	return candidates(text, from, list, true)
}

// openQuote returns the offset of the quote that is not closed, or -1.
func openQuote(text string) int {
	at := -1
	eachRune(text, func(i int, _ rune, quoted bool) {
		switch {
		case !quoted:
			at = -1
		case at < 0:
			at = i
		}
	})
	return at
}

// values returns the values of a key that occur in the capture, by calling known, which may be nil.
func values(key string, known func(string) []string) []string {
	if known == nil {
		return nil
	}
	return slices.Clone(known(key))
}

// candidates offers the values of list that begin with the text from offset from on, ignoring case. It offers
// nothing if ok is false.
func candidates(text string, from int, list []string, ok bool) Completion {
	c := Completion{From: min(from, len(text)), To: len(text)}
	prefix := strings.ToLower(strings.TrimPrefix(text[c.From:], `"`))
	for _, v := range list {
		if ok && strings.HasPrefix(strings.ToLower(v), prefix) {
			c.Candidates = append(c.Candidates, Candidate{Text: quote(v)})
		}
	}
	return c
}

// quote returns a pattern that matches exactly text, in quotes if necessary.
func quote(text string) string {
	escaped := strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`).Replace(text)
	bare := text != "" && text != "and" && text != "or" && text != "not" &&
		!strings.ContainsFunc(text, func(r rune) bool { return unicode.IsSpace(r) || strings.ContainsRune(`()",:=!<>`, r) })
	if bare {
		return escaped
	}
	return `"` + strings.NewReplacer(`"`, `\"`, "\n", `\n`, "\r", `\r`, "\t", `\t`).Replace(escaped) + `"`
}

// completeNumber completes the operator after key k, or the unit after a number. operatorAt is the offset in text
// at which the operator begins.
func completeNumber(text string, k *key, operatorAt int) Completion {
	rest := text[operatorAt:]
	digits := strings.TrimLeft(rest, ":=!<>,")
	if digits == "" {
		c := Completion{From: operatorAt, To: len(text)}
		for _, o := range k.operators() {
			if strings.HasPrefix(o, rest) {
				c.Candidates = append(c.Candidates, Candidate{Text: o})
			}
		}
		return c
	}

	// Behind the digits, only units may follow.
	value, unit := splitUnit(digits)
	c := Completion{From: len(text) - len(unit), To: len(text)}
	var units []string
	switch {
	case value == "":
	case k.kind == sizeKey:
		// Sizes and durations have different units; other keys have none.
		for _, u := range sizeUnits {
			units = append(units, u.name)
		}
	case k.kind == durationKey, k.kind == timeKey && strings.HasPrefix(digits, "-"):
		for _, u := range durationUnits {
			units = append(units, u.name)
		}
	}

	for _, u := range units {
		if strings.HasPrefix(u, unit) {
			c.Candidates = append(c.Candidates, Candidate{Text: u})
		}
	}

	return c
}

// Value returns the value of exchange x for a key such as "host", in the form that completion offers, or "".
func Value(key string, x *Exchange) string {
	k := keyOf(key)
	if k == nil || k.kind != wordKey || k.facts != 0 || k.name == "is" {
		return ""
	}
	values, _ := (&term{key: k}).words(x)
	if len(values) == 0 {
		return ""
	}
	return values[0]
}
