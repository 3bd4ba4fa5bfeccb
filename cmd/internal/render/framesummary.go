package render

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"unwire/captures"
	"unwire/cmd/internal/app"
	"unwire/cmd/internal/term"
	"unwire/decode"
	"unwire/decode/field"
	"unwire/schema"
)

// A frameGroup is a run of consecutive frames in one direction with similar content, which is printed
// as one line.
type frameGroup struct {
	// Arrow is the arrow of the direction.
	Arrow string

	// First is the number of the first frame.
	First int

	// Last is the number of the last frame.
	Last int

	// Milliseconds is the time of the first frame since the exchange began.
	Milliseconds float64

	// Summary describes the common content.
	Summary frameSummary
}

// FrameGroups divides the frames of an exchange into groups of consecutive frames with similar content.
func FrameGroups(ex *decode.Exchange, defs *schema.Schema) []frameGroup {
	read := func(f *decode.Frame) []*field.Field {
		return decode.View{Type: app.FrameType(defs, ex.Call, f.Dir)}.Fields(f.Tree)
	}
	var out []frameGroup
	for i := range ex.Frames {
		out = appendToGroups(out, &ex.Frames[i], summariseFrame(&ex.Frames[i], read))
	}
	return out
}

// appendToGroups adds a frame to the last group if its content is similar, or else starts a new group.
func appendToGroups(groups []frameGroup, f *decode.Frame, s frameSummary) []frameGroup {
	if n := len(groups); n > 0 && groups[n-1].Arrow == Arrow(f.Dir) && groups[n-1].Summary.extend(&s) {
		groups[n-1].Last = f.Seq
		return groups
	}
	return append(groups, frameGroup{Arrow: Arrow(f.Dir), First: f.Seq, Last: f.Seq, Milliseconds: app.Millis(f.T), Summary: s})
}

// Span returns the numbers of the group's frames as text: "3" or "3–10".
func (g *frameGroup) Span() string {
	if g.Last > g.First {
		return fmt.Sprintf("%d–%d", g.First, g.Last)
	}
	return strconv.Itoa(g.First)
}

// A frameSummary describes the content of a message in short: the path of fields down to where the
// message branches, and then either the text there, another single value, or the names and values of
// several fields.
type frameSummary struct {
	// path leads from the message down through nested messages that have only one field each: the names or numbers
	// of these fields, joined by dots. "" if the message itself has several fields or none.
	path string

	// text is the text at the path, of all frames of a group.
	text string

	// leaf is the value at the path, if it is not text.
	leaf string

	// names are the names of the fields at the path, if there are several.
	names []string

	// values are the values of these fields.
	values []string

	// doubtful has, for each element of names, whether the type of its value is uncertain.
	doubtful []bool
}

// summarise returns the summary of a message with the given fields.
func summarise(fields []*field.Field) (g frameSummary) {
	var steps []string
	for len(fields) == 1 {
		f := fields[0]
		steps = append(steps, fieldName(f))
		if s, ok := f.Value.(string); ok && f.Kind == "string" {
			g.text = s
		} else if len(f.Fields) == 0 {
			g.leaf = shortValue(f)
		}
		fields = f.Fields
	}
	g.path = strings.Join(steps, ".")
	for _, f := range fields {
		g.names = append(g.names, fieldName(f))
		g.values = append(g.values, shortValue(f))
		g.doubtful = append(g.doubtful, certainty(f) != "" && !f.Chosen)
	}
	return g
}

// extend merges the summary o into g if both describe similar content, and reports whether it did.
func (g *frameSummary) extend(o *frameSummary) bool {
	if g.path != o.path || !slices.Equal(g.names, o.names) || (g.text == "") != (o.text == "") {
		return false
	}
	g.text += o.text
	g.values, g.leaf = nil, "" // they are of one frame
	return true
}

// String formats the summary on one line.
func (g frameSummary) String() string {
	switch {
	case g.text != "":
		return g.path + " " + strconv.Quote(g.text)
	case len(g.names) == 0:
		return strings.TrimSpace(g.path + " " + g.leaf)
	}
	parts := slices.Clone(g.names)
	for i, v := range g.values {
		if v != "" {
			parts[i] += ": " + v
		}
	}
	return g.path + " {" + strings.Join(parts, ", ") + "}"
}

// fieldName returns the name of a field or, if it is not known, its number.
func fieldName(f *field.Field) string {
	if f.Name != "" {
		return f.Name
	}
	return strconv.FormatUint(f.N, 10)
}

// shortValue formats the value of a field in at most 40 columns; "" for bytes and messages.
func shortValue(f *field.Field) string {
	const most = 40
	switch v := f.Value.(type) {
	case nil, []byte:
		return ""
	case string:
		if f.Kind != "string" {
			return ""
		}
		return strconv.Quote(CutLine(v, most))
	default:
		return CutLine(fmt.Sprint(v), most)
	}
}

// Arrow returns the arrow for a direction: ↑ from client to server, ↓ from server to client.
func Arrow(d captures.Direction) string {
	if d == captures.Up {
		return "↑"
	}
	return "↓"
}

// arrows explains the arrows of Arrow.
const arrows = "↑ from the client to the server, ↓ from the server to the client"

// Sender returns who sends in a direction: "client" or "server".
func Sender(d captures.Direction) string {
	if d == captures.Up {
		return "client"
	}
	return "server"
}

// CutLine truncates s to a width in terminal columns, with "…" at the end.
func CutLine(s string, width int) string {
	if len(s) <= width || term.Cells(s) <= width {
		return s
	}
	return term.FirstCells(s, width-1) + "…"
}
