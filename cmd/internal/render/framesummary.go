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

// A frameGroup is a run of frames of one direction that are about the same.
type frameGroup struct {
	Arrow        string
	First, Last  int
	Milliseconds float64
	Summary      frameSummary
}

// FrameGroups joins neighbouring frames that are about the same.
func FrameGroups(ex *decode.Exchange, defs *schema.Schema) []frameGroup {
	var out []frameGroup
	for i := range ex.Frames {
		f := &ex.Frames[i]
		g := frameGroup{Arrow: Arrow(f.Dir), First: f.Seq, Last: f.Seq, Milliseconds: app.Millis(f.T)}
		if f.End != nil {
			g.Summary.path = strings.Join(endLines(f.End), "; ")
		} else if f.Tree != nil {
			g.Summary = summarise(decode.View{Type: app.FrameType(defs, ex.Call, f.Dir)}.Fields(f.Tree))
		}
		if n := len(out); n > 0 && out[n-1].Arrow == g.Arrow && out[n-1].Summary.extend(&g.Summary) {
			out[n-1].Last = g.Last
			continue
		}
		out = append(out, g)
	}
	return out
}

// A frameSummary is what a message is about: the path to where it branches, then the
// text there, or the names of the fields with their values.
type frameSummary struct {
	path          string
	text          string
	names, values []string
}

func summarise(fields []*field.Field) (g frameSummary) {
	var steps []string
	for len(fields) == 1 {
		f := fields[0]
		steps = append(steps, fieldName(f))
		if s, ok := f.Value.(string); ok && f.Kind == "string" {
			g.text = s
		}
		fields = f.Fields
	}
	g.path = strings.Join(steps, ".")
	for _, f := range fields {
		g.names = append(g.names, fieldName(f))
		g.values = append(g.values, shortValue(f))
	}
	return g
}

// extend takes over what o adds, if it is about the same.
func (g *frameSummary) extend(o *frameSummary) bool {
	if g.path != o.path || !slices.Equal(g.names, o.names) || (g.text == "") != (o.text == "") {
		return false
	}
	g.text += o.text
	g.values = nil // they are of one frame
	return true
}

func (g frameSummary) String() string {
	switch {
	case g.text != "":
		return g.path + " " + strconv.Quote(g.text)
	case len(g.names) == 0:
		return g.path
	}
	parts := slices.Clone(g.names)
	for i, v := range g.values {
		if v != "" {
			parts[i] += ": " + v
		}
	}
	return g.path + " {" + strings.Join(parts, ", ") + "}"
}

func fieldName(f *field.Field) string {
	if f.Name != "" {
		return f.Name
	}
	return strconv.FormatUint(f.N, 10)
}

// shortValue is a field's value if that takes little room.
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

func Arrow(d captures.Direction) string {
	if d == captures.Up {
		return "↑"
	}
	return "↓"
}

// CutLine is s, cut to a width.
func CutLine(s string, width int) string {
	if len(s) <= width || term.Cells(s) <= width {
		return s
	}
	return term.FirstCells(s, width-1) + "…"
}
