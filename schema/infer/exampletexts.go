package infer

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	"unwire/captures/profile"
	"unwire/captures/redact"
	"unwire/decode/kind"
	"unwire/decode/value"
)

// A hider takes out of examples what may be a secret: what a Redactor finds, and
// whatever looks drawn at random, of which the text itself tells nothing anyway.
type hider struct{ red *redact.Redactor }

func newHider(p *profile.Profile) *hider { return &hider{redact.New(redact.Options{Profile: p})} }

// hide returns the text, or kind.Redacted.
func (h *hider) hide(s string) string {
	if form, ok := value.FormOf([]byte(s)); ok {
		switch form.Name {
		case "jwt", "hex", "base64", "pem", "email", "number":
			return kind.Redacted
		}
	}
	if redact.IsPlaceholder(s) || h.red.String(s) != s {
		return kind.Redacted
	}
	return s
}

// isTerm reports whether a text is a name, a path, a version: of a field that has
// ever other texts, parts of sentences are somebody's, and say nothing.
func isTerm(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("._-/:@+*#", r)
	})
}

// examples writes what texts a field had, or "" where none is to be shown. All are
// named where there are no more.
func (h *hider) examples(l *kind.Payloads) string {
	list, all := l.Examples()
	var words []string
	for _, s := range list {
		if s = h.hide(s); s == kind.Redacted || l.Values.Full && !isTerm(s) {
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
	return "as " + strings.Join(words, ", ")
}

// maxValues is how many different numbers are named instead of their range.
const maxValues = 6

// fewValues names the numbers of a field that has had few, each more than once.
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
