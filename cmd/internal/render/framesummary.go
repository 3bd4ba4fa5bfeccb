package render

import (
	"fmt"
	"iter"
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

// fieldsBy returns a function that reads the fields of a message in a frame of ex. defs describe the messages; nil for
// none. memory is reused for one frame after another.
func fieldsBy(defs *schema.Schema, ex *decode.Exchange, memory *decode.Memory) func(*decode.Frame) iter.Seq[*field.Field] {
	return func(f *decode.Frame) iter.Seq[*field.Field] {
		return decode.View{Type: app.FrameType(defs, ex.Call, f.Dir), Memory: memory}.Each(f.Tree)
	}
}

// FrameGroups divides the frames of an exchange into groups of consecutive frames with similar content.
func FrameGroups(ex *decode.Exchange, defs *schema.Schema) []frameGroup {
	read := fieldsBy(defs, ex, &decode.Memory{})
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

	// texts are the texts at the path, one for each frame of a group that has one.
	texts []string

	// leaf is the value at the path, if it is not text.
	leaf string

	// names are the names of the fields at the path, if there are several.
	names []string

	// values are the values of these fields.
	values []string

	// doubtful has, for each element of names, whether the type of its value is uncertain.
	doubtful []bool

	// more is the number of further fields, and moreHash is a hash of their numbers.
	more     int
	moreHash uint64
}

// mostNamed is the largest number of fields whose names and values a summary has.
const mostNamed = 100

// summarise returns the summary of a message with the given fields.
func summarise(fields iter.Seq[*field.Field]) (g frameSummary) {
	var steps []string
	for {
		// A message may have a million fields, so only the first ones are kept.
		named := frameSummary{}
		var first field.Field
		for f := range fields {
			if len(named.names) == 0 {
				first = *f
			}
			named.addField(f)
		}
		if len(named.names) != 1 {
			named.path, named.texts, named.leaf = strings.Join(steps, "."), g.texts, g.leaf
			return named
		}

		steps = append(steps, fieldName(&first))
		if s, ok := first.Value.(string); ok && first.Kind == "string" {
			g.texts = nil
			if s != "" {
				g.texts = []string{s}
			}
		} else if len(first.Fields) == 0 {
			g.leaf = shortValue(&first)
		}
		fields = slices.Values(first.Fields)
	}
}

// addField adds the name and value of a field to the summary.
func (g *frameSummary) addField(f *field.Field) {
	if len(g.names) == mostNamed {
		g.more++
		g.moreHash = g.moreHash*31 + f.N
		return
	}
	g.names = append(g.names, fieldName(f))
	g.values = append(g.values, shortValue(f))
	g.doubtful = append(g.doubtful, !f.Chosen && !isCertain(f))
}

// equal reports whether o has the same content, which is not text.
func (g *frameSummary) equal(o *frameSummary) bool {
	return g.path == o.path && g.leaf == o.leaf && g.more == o.more && g.moreHash == o.moreHash && len(g.texts)+len(o.texts) == 0 &&
		slices.Equal(g.names, o.names) && slices.Equal(g.values, o.values) && slices.Equal(g.doubtful, o.doubtful)
}

// extend merges the summary o into g if both describe similar content, and reports whether it did.
func (g *frameSummary) extend(o *frameSummary) bool {
	if g.path != o.path || !slices.Equal(g.names, o.names) || g.more != o.more || g.moreHash != o.moreHash || (len(g.texts) == 0) != (len(o.texts) == 0) {
		return false
	}
	g.texts = append(g.texts, o.texts...)
	g.values, g.leaf = nil, "" // they are of one frame
	return true
}

// String formats the summary on one line.
func (g frameSummary) String() string {
	switch {
	case len(g.texts) > 0:
		return g.path + " " + strconv.Quote(strings.Join(g.texts, ""))
	case len(g.names) == 0:
		return strings.TrimSpace(g.path + " " + g.leaf)
	}
	parts := slices.Clone(g.names)
	for i, v := range g.values {
		if v != "" {
			parts[i] += ": " + v
		}
	}
	if g.more > 0 {
		parts = append(parts, fmt.Sprintf("… %d more", g.more))
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

const (
	// arrows explains the arrows of Arrow.
	arrows = "↑ from the client to the server, ↓ from the server to the client"
	// arrowLegend explains them in a sentence of its own.
	arrowLegend = "Arrows: " + arrows + "."
	// fieldLegend explains the lines of Fields.
	fieldLegend = " Frames: number, time since the start, and size. Lines of fields: offset in hex, field number, type and value."
)

// Sender is captures.Direction.Sender for the name of a direction, "up" or "down".
func Sender(direction string) string {
	if direction == captures.Up.String() {
		return captures.Up.Sender()
	}
	return captures.Down.Sender()
}

// CutLine truncates s to a width in terminal columns, with "…" at the end.
func CutLine(s string, width int) string {
	if len(s) <= width || term.Cells(s) <= width {
		return s
	}
	return term.FirstCells(s, width-1) + "…"
}
