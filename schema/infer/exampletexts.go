package infer

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	"unwire/captures/profile"
	"unwire/captures/redact"
	"unwire/decode/kind"
	"unwire/decode/kind/exampletext"
	"unwire/decode/value"
)

// An exampleRedactor replaces example texts that may be secrets: those that redact.Redactor finds, and all that
// look random, such as hashes, which explain nothing to a reader anyway.
type exampleRedactor struct {
	// red finds values that look like secrets, such as tokens and keys.
	red *redact.Redactor
}

// newExampleRedactor returns a redactor that also applies the rules for secrets in p, which may be nil.
func newExampleRedactor(p *profile.Profile) *exampleRedactor {
	return &exampleRedactor{redact.New(redact.Options{Profile: p})}
}

// hide returns s, or exampletext.Redacted if s may be a secret.
func (h *exampleRedactor) hide(s string) string {
	if form, ok := value.FormOf([]byte(s)); ok {
		switch form.Name {
		case "jwt", "hex", "base64", "pem", "email", "number":
			return exampletext.Redacted
		}
	}
	if redact.IsPlaceholder(s) || h.red.String(s) != s {
		return exampletext.Redacted
	}
	return s
}

// isTerm reports whether s is a single term, such as a name, a path or a version. Only terms are shown as
// examples of a field whose texts are all different, because other texts may be private sentences.
func isTerm(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("._-/:@+*#", r)
	})
}

// examples describes the texts of a field: "always x", "only x, y" if the list is complete, or "for example x, y". It
// returns "" if no text may be shown.
func (h *exampleRedactor) examples(l *kind.Payloads) string {
	list, all := l.Examples()
	var words []string
	for _, s := range list {
		if s = h.hide(s); s == exampletext.Redacted || l.Values.Full && !isTerm(s) {
			all = false
			continue
		}
		words = append(words, fmt.Sprintf("%q", s))
	}
	switch {
	case len(words) == 0:
		return ""
	case all && l.N > 1 && len(words) == 1:
		return "always " + words[0]
	case all && l.N > int64(len(words)):
		return "only " + strings.Join(words, ", ")
	}
	return "for example " + strings.Join(words, ", ")
}

// maxValues is the number of distinct values up to which a comment lists them instead of their range.
const maxValues = 6

// fewValues lists the distinct values of a numeric field, if there are at most maxValues and each occurred
// three times on average. Otherwise it returns "".
func fewValues(s *kind.Varints) string {
	if s == nil || s.Values == nil || s.Values.Full || len(s.Values.Items) < 2 || len(s.Values.Items) > maxValues || s.N < 3*int64(len(s.Values.Items)) {
		return ""
	}
	var values []int64
	for _, it := range s.Values.Items {
		values = append(values, int64(it.Value))
	}
	slices.Sort(values)
	words := make([]string, len(values))
	for i, v := range values {
		words[i] = fmt.Sprint(v)
	}
	return "only " + strings.Join(words, ", ")
}
