package edit

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"unwire/decode/fieldpath"
)

// maxPathSteps bounds an edit's path; the wire tree follows no more either.
const maxPathSteps = 100

// A pathStep names a field of a message, or a member of a JSON object. Where
// only an index stands, it names an element of a JSON array.
type pathStep struct {
	// a field number, a field's or a member's name; "" for an index alone
	Name  string
	Index int // from 0, or fieldpath.All
	// what the value is wrapped in, outermost first: "hex!gzip"; see layerNames
	layers string
}

// An editPath leads from a frame's root to what an edit is about. The empty
// path is the whole message.
//
// Shape: steps joined by dots, an index in brackets where one element is meant:
// 1.2[3].5, run_request.model.name. Where a value is text or bytes in which
// something else is, a step names the layers, and the path goes on inside:
// 3!gzip.1, 1!hex!gzip.2, 2!json.messages[0]. A name that holds one of . [ ] : =
// ! " or a space stands in double quotes, with backslash escapes.
type Path []pathStep

// CutPath reads the path at the beginning of s, up to a colon, an equals sign
// or the end, and returns what follows it.
func CutPath(s string) (p Path, rest string, err error) {
	off := 0
	for {
		if off == len(s) || s[off] == ':' || s[off] == '=' {
			if len(p) > 0 {
				return p, s[off:], fmt.Errorf("at %d: a step is missing after the dot", off)
			}
			return p, s[off:], nil
		}
		steps, n, err := scanStep(s[off:])
		off += n
		if err != nil {
			return p, s[off:], fmt.Errorf("at %d: %w", off, err)
		}
		if len(p) > 0 && steps[0].bare() {
			return p, s[off:], fmt.Errorf("at %d: an index stands after its name, without a dot", off)
		}
		if p = append(p, steps...); len(p) > maxPathSteps {
			return p, s[off:], fmt.Errorf("at %d: more than %d steps", off, maxPathSteps)
		}
		if off == len(s) || s[off] != '.' {
			break
		}
		off++
	}
	if off < len(s) && s[off] != ':' && s[off] != '=' {
		return p, s[off:], fmt.Errorf("at %d: %q in a path; put the name in double quotes", off, s[off])
	}
	return p, s[off:], nil
}

// scanStep reads one name with its indexes. Indexes after the first become
// steps of their own: elements of arrays in arrays.
func scanStep(s string) (steps []pathStep, n int, err error) {
	name, n, err := scanName(s)
	if err != nil {
		return nil, n, err
	}
	step := pathStep{Name: name, Index: fieldpath.All}
	for first := true; n < len(s) && s[n] == '['; first = false {
		end := strings.IndexByte(s[n:], ']')
		if end < 0 {
			return nil, n, fmt.Errorf("%q: an index without its closing bracket", s[n:])
		}
		k, err := strconv.ParseUint(s[n+1:n+end], 10, 31)
		if err != nil {
			return nil, n, fmt.Errorf("%q is not an index", s[n+1:n+end])
		}
		if !first {
			steps = append(steps, step)
			step = pathStep{}
		}
		step.Index = int(k)
		n += end + 1
	}
	for n < len(s) && s[n] == '!' {
		layer, used, _ := scanName(s[n+1:]) // a quoted one is unknown
		if !slices.Contains(layerNames(), layer) {
			return nil, n, fmt.Errorf("%q is no layer: %s", layer, strings.Join(layerNames(), " "))
		}
		step.layers = strings.TrimPrefix(step.layers+"!"+layer, "!")
		n += used + 1
	}
	switch quoted := s != "" && s[0] == '"'; {
	case name == "" && len(steps) == 0 && step.Index == fieldpath.All && !quoted:
		return nil, n, fmt.Errorf("a step is missing")
	case name == "" && quoted && (len(steps) > 0 || step.Index != fieldpath.All):
		return nil, n, fmt.Errorf("an index needs a name that is not empty")
	}
	return append(steps, step), n, nil
}

// scanName reads a bare or quoted name.
func scanName(s string) (name string, n int, err error) {
	if s == "" || s[0] != '"' {
		n := strings.IndexAny(s, ".[]:=!\" \t")
		if n < 0 {
			n = len(s)
		}
		return s[:n], n, nil
	}
	quoted, err := strconv.QuotedPrefix(s)
	if err != nil {
		return "", 0, fmt.Errorf("%q: a quoted name without its end", s)
	}
	name, err = strconv.Unquote(quoted)
	if err != nil {
		return "", 0, fmt.Errorf("%s is not a quoted name", quoted)
	}
	return name, len(quoted), nil
}

// String writes the path as scanPath reads it.
func (p Path) String() string {
	var b strings.Builder
	for i, s := range p {
		if i > 0 && !s.bare() {
			b.WriteByte('.')
		}
		switch {
		case s.bare():
		case s.Name == "" || strings.ContainsAny(s.Name, ".[]:=!\" \t") || strconv.Quote(s.Name) != `"`+s.Name+`"`:
			b.WriteString(strconv.Quote(s.Name))
		default:
			b.WriteString(s.Name)
		}
		if s.Index != fieldpath.All {
			fmt.Fprintf(&b, "[%d]", s.Index)
		}
		if s.layers != "" {
			b.WriteString("!" + s.layers)
		}
	}
	return b.String()
}

// bare reports whether the step is an index alone.
func (s pathStep) bare() bool { return s.Name == "" && s.Index != fieldpath.All }
