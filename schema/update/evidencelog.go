package update

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"unwire/schema/compare"
)

// EvidenceFile is the name of the evidence file at the root of the files.
const EvidenceFile = "evidence.jsonl"

// maxEvidenceLine limits a line of an evidence file, in bytes.
const maxEvidenceLine = 1 << 20

// itoa formats n in decimal.
func itoa(n int) string { return strconv.Itoa(n) }

// An evidenceLine is a line of an evidence file: which sources confirm an element. A line of the kind "source"
// stands for a whole source in some version.
type evidenceLine struct {
	// Element is the full name of the element. For a source it is the name and the version.
	Element string `json:"element"`
	// Kind is the kind of the element, and Number that of a field or enum value.
	Kind string `json:"kind"`
	// Number is the number of the field or enum value.
	Number *int32 `json:"number,omitempty"`
	// Sources are the names of the sources, in the order in which they confirmed the element.
	Sources []string `json:"sources"`
	// Certainty is "reported" (by code), "inferred" (from traffic) or "assumed".
	Certainty string `json:"certainty"`
	// Version and Date describe the source that last confirmed the element.
	Version string `json:"version,omitempty"`
	// Date is the date of the last source, as 2006-01-02.
	Date string `json:"date,omitempty"`
	// Note is a free text.
	Note string `json:"note,omitempty"`
}

// An evidenceLog is the content of an evidence file. Lines that do not change keep their text.
type evidenceLog struct {
	// lines are the lines of the evidence file.
	lines []string
	// lineOf maps the name of an element to the index of its line.
	lineOf map[string]int
	// eol is the end of the last line: "" or a line feed.
	eol string
}

// readLog parses the content of an evidence file.
func readLog(text string) (*evidenceLog, error) {
	l := &evidenceLog{lineOf: map[string]int{}, eol: "\n"}
	for line := range strings.Lines(text) {
		line, ended := strings.CutSuffix(line, "\n")
		if !ended {
			l.eol = ""
		}
		if len(line) > maxEvidenceLine {
			return nil, fmt.Errorf("update: %s:%d: longer than %d bytes", EvidenceFile, len(l.lines)+1, maxEvidenceLine)
		}
		if strings.TrimSpace(line) != "" {
			var e evidenceLine
			if err := json.Unmarshal([]byte(line), &e); err != nil {
				return nil, fmt.Errorf("update: %s:%d: %w", EvidenceFile, len(l.lines)+1, err)
			}
			l.lineOf[e.Element] = len(l.lines)
		}
		l.lines = append(l.lines, line)
	}
	return l, nil
}

// String returns the content of the evidence file.
func (l *evidenceLog) String() string {
	if len(l.lines) == 0 {
		return ""
	}
	return strings.Join(l.lines, "\n") + l.eol
}

// encodeLine formats one line of the evidence file as JSON.
func encodeLine(e evidenceLine) string {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	// Strings and numbers can always be encoded.
	_ = enc.Encode(e)
	return strings.TrimSuffix(b.String(), "\n")
}

// read returns the parsed line about an element; false if there is none.
func (l *evidenceLog) read(element string) (evidenceLine, bool) {
	i, ok := l.lineOf[element]
	if !ok {
		return evidenceLine{}, false
	}
	var e evidenceLine
	err := json.Unmarshal([]byte(l.lines[i]), &e)
	return e, err == nil
}

// confirm records that a source confirms the declaration of an element.
func (l *evidenceLog) confirm(element string, kind compare.ElementKind, number int32, src *Source, note string) {
	e, ok := l.read(element)

	// A line that says nothing new keeps its text, version and date.
	if ok && slices.Contains(e.Sources, src.Name) && e.Certainty == src.Certainty && (note == "" || note == e.Note) {
		return
	}
	e.Element, e.Kind, e.Certainty, e.Version, e.Date = element, string(kind), src.Certainty, src.Version, src.Date
	if kind == compare.FieldElement || kind == compare.ValueElement {
		e.Number = &number
	}

	// Versions and dates are overwritten; sources accumulate.
	if !slices.Contains(e.Sources, src.Name) {
		e.Sources = append(e.Sources, src.Name)
	}
	if note != "" {
		e.Note = note
	}
	if ok {
		l.lines[l.lineOf[element]] = encodeLine(e)
		return
	}
	if len(l.lines) == 0 {
		l.eol = "\n"
	}
	l.lineOf[element] = len(l.lines)
	l.lines = append(l.lines, encodeLine(e))
}

// rename moves the lines of an element, and of all elements inside it, to the new name.
func (l *evidenceLog) rename(old, now string) {
	for element, i := range l.lineOf {
		// A longer name with the same beginning is another element.
		rest, ok := strings.CutPrefix(element, old)
		if !ok || rest != "" && rest[0] != '.' {
			continue
		}
		e, ok := l.read(element)
		if !ok {
			continue
		}
		e.Element = now + rest
		l.lines[i] = encodeLine(e)
		delete(l.lineOf, element)
		l.lineOf[e.Element] = i
	}
}

// isAssumed reports whether the element is listed as an assumption.
func (l *evidenceLog) isAssumed(element string) bool {
	e, ok := l.read(element)
	return ok && e.Certainty == "assumed"
}

// sourceKind is the kind of those lines that describe a whole source.
const sourceKind = "source"

// addVersion records a complete source whose version is known. When a later version lacks an element, this is
// the version in which it was last seen.
func (l *evidenceLog) addVersion(src *Source) {
	if !src.Complete || src.Version == "" {
		return
	}
	name := src.Name + " " + src.Version
	if _, ok := l.lineOf[name]; !ok {
		l.confirm(name, sourceKind, 0, src, "")
	}
}

// lastVersion returns the version of the last complete source before src, or "".
func (l *evidenceLog) lastVersion(src *Source) string {
	for i := len(l.lines) - 1; i >= 0; i-- {
		var e evidenceLine
		if json.Unmarshal([]byte(l.lines[i]), &e) == nil && e.Kind == sourceKind && e.Version != src.Version && slices.Contains(e.Sources, src.Name) {
			return e.Version
		}
	}
	return ""
}

// elementsOf returns the elements that a source has confirmed, and everything that encloses them.
func (l *evidenceLog) elementsOf(source string) map[string]bool {
	told := map[string]bool{}
	for element := range l.lineOf {
		if e, ok := l.read(element); !ok || e.Kind == sourceKind || !slices.Contains(e.Sources, source) {
			continue
		}
		for dot := len(element); dot > 0 && !told[element[:dot]]; dot = strings.LastIndexByte(element[:dot], '.') {
			told[element[:dot]] = true
		}
	}
	return told
}

// appendNote appends to the note of an element that is listed.
func (l *evidenceLog) appendNote(element, note string) {
	if e, ok := l.read(element); ok && !strings.Contains(e.Note, note) {
		e.Note = strings.TrimSpace(strings.TrimSuffix(e.Note, ".") + "; " + note)
		e.Note = strings.TrimPrefix(e.Note, "; ")
		l.lines[l.lineOf[element]] = encodeLine(e)
	}
}
