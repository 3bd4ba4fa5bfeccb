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

// maxListedNote is the length to which a note is truncated in a listing, in characters.
const maxListedNote = 40

// notesText returns the text for the column NOTES of a listing: the mark, the beginning of the note, and
// the number of further notes.
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

// firstLine returns the first line of a note, truncated.
func firstLine(note string) string {
	line, rest, _ := strings.Cut(note, "\n")
	text := term.Cut(term.Clean(line), maxListedNote)
	if rest != "" && !strings.HasSuffix(text, "…") {
		text += " …"
	}
	return text
}

// noteText formats a note: a mark in brackets, or the lines of a text, all but the first indented.
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

// Notes prints notes, each with its kind and the path of the field that it is about, after indent.
func Notes(out *term.Output, w io.Writer, list []*contract.PlaceNote, indent string) {
	for _, n := range list {
		name := string(n.Kind)
		if n.Path != "" {
			name += " at " + n.Path
		}
		fmt.Fprint(w, out.Wrap(fmt.Sprintf("%s%s %s\n", indent, out.Bold(term.Clean(name)+":"), noteText(n, indent))))
	}
}

// fieldNotes splits the notes on a frame: byOffset has those on a field that the frame contains, by the
// field's offset; rest has those on the whole frame, or on a field that the frame lacks.
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
