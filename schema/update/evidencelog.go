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

// EvidenceFile is the name of the evidence file, which is in the root folder of the user's .proto files. It
// records for each element which sources confirm it.
const EvidenceFile = "evidence.jsonl"

// maxEvidenceLine is the maximum length of a line of an evidence file, in bytes.
const maxEvidenceLine = 1 << 20

// itoa formats n in decimal.
func itoa(n int) string { return strconv.Itoa(n) }

// An evidenceLine is a line of the evidence file: which sources confirm an element. A line of the kind "source"
// records that a source was read in some version.
type evidenceLine struct {
	// Element is the full name of the element; for a source, its name and version.
	Element string `json:"element"`
	// Kind is the kind of the element, such as "field", or sourceKind.
	Kind string `json:"kind"`
	// Number is the number of the field or enum value; nil for other elements.
	Number *int32 `json:"number,omitempty"`
	// Sources are the names of the sources, in the order in which they confirmed the element.
	Sources []string `json:"sources"`
	// Certainty is "reported" (found in code), "inferred" (from traffic) or "assumed".
	Certainty string `json:"certainty"`
	// Version is the version of the source that last confirmed the element, or "".
	Version string `json:"version,omitempty"`
	// Date is the date of that source, as 2006-01-02, or "".
	Date string `json:"date,omitempty"`
	// Note is a free text for people.
	Note string `json:"note,omitempty"`
}

// An evidenceLog is the content of the evidence file. Lines that do not change keep their text.
type evidenceLog struct {
	// lines are the lines of the evidence file.
	lines []string
	// lineOf maps the full name of an element to the index of its line.
	lineOf map[string]int
	// eol is the end of the last line: "" or a line feed.
	eol string
}

// readLog parses the content of the evidence file.
func readLog(text string) (*evidenceLog, error) {
	l := &evidenceLog{lineOf: map[string]int{}, eol: "\n"}
	for line := range strings.Lines(text) {
		line, ended := strings.CutSuffix(line, "\n")
		if !ended {
			l.eol = ""
		}
		if len(line) > maxEvidenceLine {
			return nil, fmt.Errorf("update: %s:%d: the line is longer than %d bytes", EvidenceFile, len(l.lines)+1, maxEvidenceLine)
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

// read returns the parsed line about an element; ok is false if there is none.
func (l *evidenceLog) read(element string) (evidenceLine, bool) {
	i, ok := l.lineOf[element]
	if !ok {
		return evidenceLine{}, false
	}
	var e evidenceLine
	err := json.Unmarshal([]byte(l.lines[i]), &e)
	return e, err == nil
}

// confirm records that the source src confirms the declaration of an element. note may be "".
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

// rename changes the name of an element, and of all elements inside it, in the lines about them.
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

// isAssumed reports whether the certainty of the element is "assumed".
func (l *evidenceLog) isAssumed(element string) bool {
	e, ok := l.read(element)
	return ok && e.Certainty == "assumed"
}

// sourceKind is the kind of lines that are about a source as a whole.
const sourceKind = "source"

// addVersion records that a complete source was read in a known version. When a later version lacks an element,
// this is the version in which the element was last seen.
func (l *evidenceLog) addVersion(src *Source) {
	if !src.Complete || src.Version == "" {
		return
	}
	name := src.Name + " " + src.Version
	if _, ok := l.lineOf[name]; !ok {
		l.confirm(name, sourceKind, 0, src, "")
	}
}

// lastVersion returns the version in which the source was last read before src, or "".
func (l *evidenceLog) lastVersion(src *Source) string {
	for i := len(l.lines) - 1; i >= 0; i-- {
		var e evidenceLine
		if json.Unmarshal([]byte(l.lines[i]), &e) == nil && e.Kind == sourceKind && e.Version != src.Version && slices.Contains(e.Sources, src.Name) {
			return e.Version
		}
	}
	return ""
}

// elementsOf returns the full names of the elements that the source with that name has confirmed, and of
// everything that encloses them.
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

// appendNote appends text to the note of an element, if there is a line about it.
func (l *evidenceLog) appendNote(element, note string) {
	if e, ok := l.read(element); ok && !strings.Contains(e.Note, note) {
		e.Note = strings.TrimSpace(strings.TrimSuffix(e.Note, ".") + "; " + note)
		e.Note = strings.TrimPrefix(e.Note, "; ")
		l.lines[l.lineOf[element]] = encodeLine(e)
	}
}
