package infer

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"unwire/captures/safetext"
	"unwire/decode/kind"
	"unwire/decode/wire"
)

// Probabilities below which the comment on a field says which further observation would resolve the doubt.
const (
	// doubtfulKind is the limit for the probability of the kind on the wire (FieldEvidence.P).
	doubtfulKind = 0.95
	// doubtfulType is the limit for the probability of the type (FieldEvidence.TypeP).
	doubtfulType = 0.5
	// doubtfulLabel is the limit for the probability of the label (FieldEvidence.LabelP).
	doubtfulLabel = 0.8
)

// describe returns the lines of the comment on the field: counts, a note on its values, probabilities and
// doubts. Unless verbose is set, a field that is certain has at most its count and an example.
func (d *declared) describe(v kind.Judgement, verbose bool) []string {
	if !verbose && d.isSure() && v.Odd == 0 {
		list := d.briefly()
		if d.couldBe != "" {
			list = append(list, UpperFirst(d.couldBe)+".")
		}
		return list
	}
	line := fmt.Sprintf("Seen in %d of %s", d.Seen, Plural(d.Samples, "message"))
	if d.Occurrences > d.Seen {
		line += fmt.Sprintf(", %d times", d.Occurrences)
	}
	if d.Note != "" {
		line += "; " + d.Note
	}
	line += fmt.Sprintf("; %s with probability %.2f", d.Kind, d.P)
	if d.TypeP < 1 && d.Kind != wire.KindMessage {
		line += fmt.Sprintf(" (%s %.2f)", d.Type, d.TypeP)
	}

	// Only alternatives that matter to a reader.
	for i, a := range d.Alternatives {
		if i < 3 && a.P >= 0.01 {
			line += fmt.Sprintf(", or %s %.2f", a.Kind, a.P)
		}
	}

	if d.Label == Map {
		line += fmt.Sprintf("; a map, not a list, with probability %.2f", d.LabelP)
	} else if d.LabelP < doubtfulLabel {
		line += fmt.Sprintf("; %s with probability %.2f", d.Label, d.LabelP)
	}
	list := []string{line + "."}
	if d.couldBe != "" {
		list = append(list, UpperFirst(d.couldBe)+".")
	}
	if d.Settle != "" && (d.P < doubtfulKind || d.TypeP < doubtfulType || d.LabelP < doubtfulLabel) {
		list = append(list, fmt.Sprintf("Ambiguous declaration. This would decide it: %s.", d.Settle))
	}

	if v.Odd > 0 {
		list = append(list, fmt.Sprintf("%s with another wire type, which this declaration cannot decode.", Plural(v.Odd, "occurrence")))
	}
	return list
}

// isSure reports whether the kind, type and label of the field are certain, and the field is declared
// accordingly.
func (d *declared) isSure() bool {
	return d.P >= doubtfulKind && (d.TypeP >= doubtfulType || d.enum != nil) && (d.LabelP >= doubtfulLabel || d.Oneof != "") && d.skip == "" && !d.remark
}

// briefly returns the comment on a field that is certain: an example or description of its values, and its
// count if some messages lack it.
func (d *declared) briefly() []string {
	note := d.example
	switch {
	case d.Seen == d.Samples && note == "":
		return nil
	case d.Seen == d.Samples:
		return []string{UpperFirst(note) + "."}
	case note != "":
		note = "; " + note
	}
	return []string{fmt.Sprintf("Seen in %d of %s%s.", d.Seen, Plural(d.Samples, "message"), note)}
}

// Plural formats a number with its noun, such as "1 message" or "2 messages".
func Plural(n int64, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// payloadNote describes the payloads of a string or bytes field: their size, and a common format, examples or a
// common prefix.
func (w *writer) payloadNote(l *kind.Payloads) string {
	if l == nil {
		return ""
	}
	size := fmt.Sprintf("%d to %d bytes", l.Shortest, l.Longest)
	if l.Shortest == l.Longest {
		size = fmt.Sprintf("%d bytes", l.Longest)
	}
	if form := l.Forms.Of(l.N); form != "" {
		return size + ", always " + form
	}
	if examples := w.hide.examples(l); examples != "" {
		return size + ", " + examples
	}
	if len(l.Values.Items) > 2 && len(l.Prefix) > 2 && len(l.Prefix) < kind.PrefixLen && utf8.Valid(l.Prefix) {
		size += fmt.Sprintf(", all begin %q", l.Prefix)
	}
	return size
}

// payloadExample describes typical texts by their common format or by examples. It returns "" if there are none
// that may be shown.
func (w *writer) payloadExample(l *kind.Payloads) string {
	if l == nil {
		return ""
	}
	if form := l.Forms.Of(l.N); form != "" {
		return form
	}
	return w.hide.examples(l)
}

// settleMessage returns the observation that would decide whether the payloads of a field are messages, or "".
func settleMessage(f *classField) string {
	switch {
	case f.Len.Empty == f.Len.N:
		return "a payload that is not empty"
	case f.judgement.P < 0.95:
		return "a payload that does not parse as a message, or more values of the field"
	}
	return ""
}

// settlePayload returns the observation that would decide whether payloads are strings or bytes, or "".
func settlePayload(f *classField, v kind.Judgement) string {
	switch {
	case v.Kind == wire.KindString:
		return "a payload that is not valid UTF-8 would rule out string"
	case !f.Len.NotText:
		return "a payload that is not valid UTF-8 would confirm bytes; so far, all are valid UTF-8"
	case v.P < doubtfulKind:
		return "more payloads, of other lengths"
	}
	return ""
}

// commentText makes text from traffic safe for a one-line comment in a .proto file.
func commentText(s string) string {
	return strings.Map(func(r rune) rune {
		if safetext.IsUnsafe(r) || r == utf8.RuneError {
			return '?'
		}
		return r
	}, s[:min(len(s), MaxName)])
}
