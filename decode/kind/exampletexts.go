package kind

import (
	"slices"
	"unicode"
	"unicode/utf8"
)

const (
	// maxTexts is the maximum number of payloads of a field that are kept as examples.
	maxTexts = 3

	// maxTextSize is the maximum size in bytes of an example. Longer text is prose.
	maxTextSize = 40
)

// exampleTexts are example payloads, parallel to the first items of a sketch (in the order of their hashes); "" for
// payloads that are not short printable text.
type exampleTexts []string

// exampleText returns a payload as an example for the user, or "" if it is not suitable.
func exampleText(p []byte) string {
	if len(p) == 0 || len(p) > maxTextSize || !utf8.Valid(p) {
		return ""
	}
	for _, r := range string(p) {
		if !unicode.IsPrint(r) {
			return ""
		}
	}
	return string(p)
}

// insert inserts text at index i and drops everything beyond maxTexts.
func (t *exampleTexts) insert(i int, text string) {
	for len(*t) < i {
		*t = append(*t, "")
	}
	if *t = slices.Insert(*t, i, text); len(*t) > maxTexts {
		*t = (*t)[:maxTexts]
	}
}

// merge adds the text of item i from another sketch of the same field. If the two texts differ, one of them is
// redacted, and the redaction is kept.
func (t *exampleTexts) merge(i int, text string) {
	for len(*t) <= i {
		*t = append(*t, "")
	}
	// A redaction must survive merging.
	if mine := (*t)[i]; mine == "" || text == Redacted {
		(*t)[i] = text
	}
}

// Redacted is the text that replaces an example that may be secret.
const Redacted = "[redacted]"

// valid reports whether the texts, which were read from a file, may be examples of a
// sketch with the given number of items.
func (t exampleTexts) valid(items int) bool {
	for _, s := range t {
		if len(s) > maxTextSize || s != "" && exampleText([]byte(s)) == "" {
			return false
		}
	}
	return len(t) <= min(maxTexts, items)
}

// Examples returns some short texts among the field's payloads, in an order that does not depend on that of
// samples. all reports whether there are no other payloads.
func (l *Payloads) Examples() (list []string, all bool) {
	for _, s := range l.Values.Texts {
		if s != "" {
			list = append(list, s)
		}
	}
	return list, l.Skipped == 0 && !l.Values.Full && len(list) == len(l.Values.Items)
}

// Redact replaces each example by the result of hide.
func (e *Evidence) Redact(hide func(string) string) {
	for _, m := range e.roots {
		m.redact(hide)
	}
}

// redact replaces the example texts of a message, and of all messages below it, by the result of hide.
func (m *Message) redact(hide func(string) string) {
	for _, n := range m.Numbers() {
		f := m.Field(n)
		if f.Len != nil {
			for i, s := range f.Len.Values.Texts {
				if s != "" {
					f.Len.Values.Texts[i] = hide(s)
				}
			}
		}
		for _, below := range f.Children() {
			below.redact(hide)
		}
	}
}
