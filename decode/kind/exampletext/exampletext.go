// Package exampletext has the texts that package kind keeps as examples of a field's payloads. They are parallel to the
// first items of a sketch of distinct values, so that which payloads are examples does not depend on their order.
//
//	texts.Insert(0, exampletext.Of(payload))
package exampletext

import (
	"slices"
	"unicode"
	"unicode/utf8"
)

const (
	// Most is the maximum number of payloads of a field that are kept as examples.
	Most = 3

	// maxTextSize is the maximum size in bytes of an example. Longer text is prose.
	maxTextSize = 40
)

// Texts are example payloads, in the order of the hashes of all payloads; "" for payloads that are not short printable
// text.
type Texts []string

// Of returns a payload as an example for the user, or "" if it is not suitable.
func Of(p []byte) string {
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

// Insert inserts text at index i and drops everything beyond Most.
func (t *Texts) Insert(i int, text string) {
	for len(*t) < i {
		*t = append(*t, "")
	}
	if *t = slices.Insert(*t, i, text); len(*t) > Most {
		*t = (*t)[:Most]
	}
}

// Merge adds the text of item i from another sketch of the same field. If the two texts differ, one of them is
// redacted, and the redaction is kept.
func (t *Texts) Merge(i int, text string) {
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

// Valid reports whether the texts, which were read from a file, may be examples of a sketch with the given number of
// items.
func (t Texts) Valid(items int) bool {
	for _, s := range t {
		if len(s) > maxTextSize || s != "" && Of([]byte(s)) == "" {
			return false
		}
	}
	return len(t) <= min(Most, items)
}
