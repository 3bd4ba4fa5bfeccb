package values

import (
	"iter"
	"strconv"
	"strings"
	"unicode"

	"unwire/decode/jsontree"
	"unwire/decode/transcript/ident"
)

// How many characters a word needs so that it is unlikely to be in two messages by chance: with letters and
// digits, only letters, only digits.
const (
	leastMixed   = 4
	leastLetters = 6
	leastDigits  = 5
	// leastDigitsInText is for a number between the words of a text, where round numbers and sizes are common.
	leastDigitsInText = 7
)

// longestTerm is the length in bytes of the longest term.
const longestTerm = 96

// Terms returns the values and words of a message that are unlikely to be in another message by chance, each
// with the path of the value that contains it: values without white space, names and texts in JSON, words
// with letters and digits, and numbers in texts.
func Terms(leaves []Leaf) map[string]string {
	out := map[string]string{}
	for k := range leaves {
		l := &leaves[k]
		add := func(term string) {
			if _, known := out[term]; !known && isTelling(term) {
				out[term] = l.Path
			}
		}
		// The name of a member may be the key of a map.
		if l.json.Kind() != jsontree.Null {
			add(l.Last)
		}
		if l.Object || l.IsMessage() {
			continue
		}
		addText := func(s string) {
			add(s)
			for number := range numbersIn(s) {
				add(number)
			}
		}
		if !beginsContainer(l.Text()) {
			addText(l.Text())
		}
		for _, w := range l.Words() {
			if !IsDigits(w.Value) && strings.ContainsAny(w.Value, "0123456789") {
				add(w.Value)
			}
		}
		if len(l.Data) > maxWordText || !beginsContainer(string(l.Data)) {
			continue
		}
		if root, err := jsontree.Parse(l.Data); err == nil {
			for v := range root.All() {
				if add(v.Name()); v.Kind() == jsontree.String {
					addText(v.Text())
				}
			}
		}
	}
	return out
}

// numbersIn yields the numbers in a text, such as those of a path or a file name, that are long enough to be
// unlikely there by chance. A time has none.
func numbersIn(s string) iter.Seq[string] {
	return func(yield func(string) bool) {
		least := leastDigits
		if strings.ContainsFunc(s, unicode.IsSpace) {
			least = leastDigitsInText
		}
		if len(s) > maxWordText || ClassOf(s) == ident.Time {
			return
		}
		words := strings.FieldsFuncSeq(s, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
		for word := range words {
			if len(word) >= least && IsDigits(word) && !yield(word) {
				return
			}
		}
	}
}

// isTelling reports whether a text is one word that is unlikely to be in two messages by chance.
func isTelling(s string) bool {
	letters, digits := 0, 0
	for _, r := range s {
		switch {
		case unicode.IsSpace(r) || unicode.IsControl(r) || r == unicode.ReplacementChar:
			return false
		case unicode.IsLetter(r):
			letters++
		case unicode.IsDigit(r):
			digits++
		}
	}
	switch {
	case len(s) > longestTerm || ClassOf(s) == ident.Time:
		return false
	case letters == 0:
		// Dates, addresses and times occur on both sides.
		n, err := strconv.ParseUint(s, 10, 64)
		return err == nil && digits >= leastDigits && !ident.IsTime(n)
	case digits == 0:
		return letters >= leastLetters
	}
	return letters+digits >= leastMixed
}
