package render

import (
	"fmt"
	"io"
	"strings"

	"unwire/captures"
	"unwire/cmd/internal/app"
	"unwire/cmd/internal/contract"
	"unwire/cmd/internal/term"
	"unwire/decode"
	"unwire/decode/fieldpath"
)

// maxListedNote is how many characters of a note a listing shows.
const maxListedNote = 40

// notesText returns the text for the column with an exchange's notes and mark.
func notesText(l *contract.Exchange) string {
	var parts []string
	if l.Mark != "" {
		parts = append(parts, "["+term.Clean(l.Mark)+"]")
	}
	more := l.Notes
	if l.Note != "" {
		parts = append(parts, firstLine(l.Note))
		more--
	}
	switch {
	case more > 0 && len(parts) > 0:
		parts = append(parts, fmt.Sprintf("(+%d)", more))
	case more > 0:
		parts = append(parts, app.Counted(more, "note"))
	}
	return strings.Join(parts, " ")
}

// firstLine returns the first line of a note, shortened.
func firstLine(note string) string {
	line, rest, _ := strings.Cut(note, "\n")
	text := term.Cut(term.Clean(line), maxListedNote)
	if rest != "" && !strings.HasSuffix(text, "…") {
		text += " …"
	}
	return text
}

// noteText is a note for people: a mark in brackets, or the lines of a text, with an indent
// in front of all but the first.
func noteText(n *contract.PlaceNote, indent string) string {
	if n.Kind == captures.MarkNote {
		return "[" + term.Clean(n.Value) + "]"
	}
	lines := strings.Split(strings.TrimRight(n.Value, "\n"), "\n")
	for i := range lines {
		lines[i] = term.Clean(lines[i])
	}
	return strings.Join(lines, "\n"+indent+strings.Repeat(" ", len("note: ")))
}

// Notes prints notes, each with its kind and the path of the field that it is about.
func Notes(out *term.Output, w io.Writer, list []*contract.PlaceNote, indent string) {
	for _, n := range list {
		name := string(n.Kind)
		if n.Path != "" {
			name += " at " + n.Path
		}
		fmt.Fprint(w, out.Wrap(fmt.Sprintf("%s%s %s\n", indent, out.Bold(term.Clean(name)+":"), noteText(n, indent))))
	}
}

// fieldNotes splits the notes about a frame: byOffset has those about a field that the frame contains,
// by the field's offset; rest has those about the whole frame or a missing field.
func fieldNotes(f *decode.Frame, list []*contract.PlaceNote) (byOffset map[int][]*contract.PlaceNote, rest []*contract.PlaceNote) {
	for _, n := range list {
		path, err := fieldpath.ParseNumbers(n.Path)
		if n.Path == "" || err != nil || f.Tree == nil {
			rest = append(rest, n)
			continue
		}
		nodes := f.Tree.Find(path)
		if len(nodes) == 0 || nodes[0] == 0 {
			rest = append(rest, n)
			continue
		}
		if byOffset == nil {
			byOffset = map[int][]*contract.PlaceNote{}
		}
		at := int(f.Tree.Node(nodes[0]).Off)
		byOffset[at] = append(byOffset[at], n)
	}
	return byOffset, rest
}
