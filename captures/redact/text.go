package redact

import (
	"bytes"
	"slices"
	"strings"
)

// String returns s with its secrets replaced, for a terminal or a log. Parameters of URLs in it are decoded for
// the search, as by url.
func (r *Redactor) String(s string) string {
	return r.clean(nameOfText, s, func() string { return r.prose(s, bracketed, nil) })
}

// prose returns s with its secrets replaced by placeholders of form f, and calls report for each secret.
func (r *Redactor) prose(s string, f form, report reporter) string {
	text, moved := r.embedded(s, 0, 0, report)
	return r.text(text, 0, f, moved.reporter(0, report))
}

// text replaces the secrets that the scanner finds in s by placeholders of form f. at is the offset of s in the
// reported text.
func (r *Redactor) text(s string, at int, f form, report reporter) string {
	var out bytes.Buffer
	copied := 0
	sc := newScanner(r, false)
	sc.see = report.match(at)
	sc.hit = func(start, end int64, secret string) {
		out.WriteString(s[copied:start])
		if secret == "" {
			out.WriteString(strings.Repeat(".", int(end-start)))
		} else {
			out.WriteString(r.placeholder(secret, f))
		}
		copied = int(end)
	}
	sc.feed([]byte(s))
	sc.finish()
	if copied == 0 {
		return s
	}
	out.WriteString(s[copied:])
	return out.String()
}

// Bytes returns a copy of p in which secrets are replaced by placeholders of the same length.
func (r *Redactor) Bytes(p []byte) []byte { return r.mask(p, nil) }

// mask returns a copy of p in which secrets are replaced by placeholders of the same length, and calls report,
// unless it is nil, for each secret.
func (r *Redactor) mask(p []byte, report reporter) []byte {
	out := slices.Clone(p)
	sc := newScanner(r, false)
	sc.see = report.match(0)
	sc.hit = func(start, end int64, secret string) { copy(out[start:end], fill(r, secret, int(end-start))) }
	sc.split = sc.hit
	sc.feed(p)
	sc.finish()
	sc.endSplits()
	return out
}
