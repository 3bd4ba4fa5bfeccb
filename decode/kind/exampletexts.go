package kind

import (
	"slices"
	"unicode"
	"unicode/utf8"
)

const (
	maxTexts    = 3  // payloads of a field that are kept as examples
	maxTextSize = 40 // bytes; what is longer is prose, or no example
)

// texts are the first few payloads of a sketch as they are, "" for those that are
// no short text: by hash, so that the order of input does not show.
type texts []string

// exampleText is a payload as an example, or "".
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

// insert makes room at place i, and forgets what is behind the last.
func (t *texts) insert(i int, text string) {
	for len(*t) < i {
		*t = append(*t, "")
	}
	if *t = slices.Insert(*t, i, text); len(*t) > maxTexts {
		*t = (*t)[:maxTexts]
	}
}

// merge adds what another sketch knows of the same payload. Where two say
// different things one of them is redacted.
func (t *texts) merge(i int, text string) {
	for len(*t) <= i {
		*t = append(*t, "")
	}
	if mine := (*t)[i]; mine == "" || text == Redacted {
		(*t)[i] = text
	}
}

// Redacted stands for a text that is not shown.
const Redacted = "[redacted]"

func (t texts) valid(items int) bool {
	for _, s := range t {
		if len(s) > maxTextSize || s != "" && exampleText([]byte(s)) == "" {
			return false
		}
	}
	return len(t) <= min(maxTexts, items)
}

// Examples returns some of the field's payloads, short text that they are, in an
// order that does not depend on that of input; all says that there were no others.
func (l *Payloads) Examples() (list []string, all bool) {
	for _, s := range l.Values.Texts {
		if s != "" {
			list = append(list, s)
		}
	}
	return list, l.Skipped == 0 && !l.Values.Full && len(list) == len(l.Values.Items)
}

// Redact has hide look at each example of the evidence, and keeps what it returns.
func (e *Evidence) Redact(hide func(string) string) {
	for _, m := range e.roots {
		m.redact(hide)
	}
}

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
