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

// EvidenceFile is the name of the evidence file at the root of a tree.
const EvidenceFile = "evidence.jsonl"

// maxEvidenceLine bounds a line of an evidence file.
const maxEvidenceLine = 1 << 20

func itoa(n int) string { return strconv.Itoa(n) }

// An evidenceLine says where an element comes from. A line of kind "source" is
// about a whole source of some version.
type evidenceLine struct {
	Element   string   `json:"element"`
	Kind      string   `json:"kind"`
	Number    *int32   `json:"number,omitempty"`
	Sources   []string `json:"sources"`
	Certainty string   `json:"certainty"`
	Version   string   `json:"version,omitempty"`
	Date      string   `json:"date,omitempty"`
	Note      string   `json:"note,omitempty"`
}

// An evidenceLog is an evidence file whose untouched lines stay as they are.
type evidenceLog struct {
	lines []string
	at    map[string]int // by element
	eol   string         // "" where the last line has none
}

func readLog(text string) (*evidenceLog, error) {
	l := &evidenceLog{at: map[string]int{}, eol: "\n"}
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
			l.at[e.Element] = len(l.lines)
		}
		l.lines = append(l.lines, line)
	}
	return l, nil
}

func (l *evidenceLog) String() string {
	if len(l.lines) == 0 {
		return ""
	}
	return strings.Join(l.lines, "\n") + l.eol
}

func encodeLine(e evidenceLine) string {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(e) // strings and numbers always encode
	return strings.TrimSuffix(b.String(), "\n")
}

func (l *evidenceLog) read(element string) (evidenceLine, bool) {
	i, ok := l.at[element]
	if !ok {
		return evidenceLine{}, false
	}
	var e evidenceLine
	err := json.Unmarshal([]byte(l.lines[i]), &e)
	return e, err == nil
}

// confirm notes that a source says an element is what it is.
func (l *evidenceLog) confirm(element string, kind compare.ElementKind, number int32, src *Source, note string) {
	e, ok := l.read(element)
	if ok && slices.Contains(e.Sources, src.Name) && e.Certainty == src.Certainty && (note == "" || note == e.Note) {
		return
	}
	e.Element, e.Kind, e.Certainty, e.Version, e.Date = element, string(kind), src.Certainty, src.Version, src.Date
	if kind == compare.FieldElement || kind == compare.ValueElement {
		e.Number = &number
	}
	if !slices.Contains(e.Sources, src.Name) {
		e.Sources = append(e.Sources, src.Name)
	}
	if note != "" {
		e.Note = note
	}
	if ok {
		l.lines[l.at[element]] = encodeLine(e)
		return
	}
	if len(l.lines) == 0 {
		l.eol = "\n"
	}
	l.at[element] = len(l.lines)
	l.lines = append(l.lines, encodeLine(e))
}

// rename moves what is known of an element, and of all within it, to its new name.
func (l *evidenceLog) rename(old, now string) {
	for element, i := range l.at {
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
		delete(l.at, element)
		l.at[e.Element] = i
	}
}

// assumed reports whether nobody states what the element is.
func (l *evidenceLog) assumed(element string) bool {
	e, ok := l.read(element)
	return ok && e.Certainty == "assumed"
}

// sourceKind is the kind of the lines about whole sources.
const sourceKind = "source"

// addVersion notes a complete source of a known version: what it has was last seen
// in that version, until a later one says more.
func (l *evidenceLog) addVersion(src *Source) {
	if !src.Complete || src.Version == "" {
		return
	}
	name := src.Name + " " + src.Version
	if _, ok := l.at[name]; !ok {
		l.confirm(name, sourceKind, 0, src, "")
	}
}

// lastVersion is the latest complete version before that of src, "" if none.
func (l *evidenceLog) lastVersion(src *Source) string {
	for i := len(l.lines) - 1; i >= 0; i-- {
		var e evidenceLine
		if json.Unmarshal([]byte(l.lines[i]), &e) == nil && e.Kind == sourceKind && e.Version != src.Version && slices.Contains(e.Sources, src.Name) {
			return e.Version
		}
	}
	return ""
}

// elementsOf are the elements that a source has told of, and all that they are in.
func (l *evidenceLog) elementsOf(source string) map[string]bool {
	told := map[string]bool{}
	for element := range l.at {
		if e, ok := l.read(element); !ok || e.Kind == sourceKind || !slices.Contains(e.Sources, source) {
			continue
		}
		for dot := len(element); dot > 0 && !told[element[:dot]]; dot = strings.LastIndexByte(element[:dot], '.') {
			told[element[:dot]] = true
		}
	}
	return told
}

// appendNote sets the note of an element that is listed.
func (l *evidenceLog) appendNote(element, note string) {
	if e, ok := l.read(element); ok && !strings.Contains(e.Note, note) {
		e.Note = strings.TrimSpace(strings.TrimSuffix(e.Note, ".") + "; " + note)
		e.Note = strings.TrimPrefix(e.Note, "; ")
		l.lines[l.at[element]] = encodeLine(e)
	}
}
