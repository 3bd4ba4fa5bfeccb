package values

import (
	"slices"
	"strings"

	"unwire/decode/jsontree"
	"unwire/decode/wire"
)

// carriedMark replaces parts of a value that are left out of comparisons.
const carriedMark = "<carried>"

// maxParts limits the number of parts; a value with more is compared as a whole.
const maxParts = 5000

// Without returns a copy of a value in which the parts in carried, which the client sends back, are
// replaced by a constant, so that two values can be compared without them. Compressed data is
// decompressed, because the same data can be compressed in several ways.
func (v *Leaf) Without(carried map[string]bool) *Leaf {
	if v.Number && carried == nil || v.IsMessage() {
		return v
	}
	w := carriedText{all: v.PartsWith(carried), carried: carried}
	if len(w.all) == 0 || len(w.all) > maxParts || carried == nil && !slices.ContainsFunc(w.all, Part.isCompressed) {
		return v
	}
	out := Leaf{Path: v.Path, Depth: v.Depth, Inner: v.Inner, Budget: v.Budget}
	out.SetText([]byte(w.render(0)))
	return &out
}

// isCompressed reports whether a part is the content of compressed data.
func (p Part) isCompressed() bool { return p.layer && !strings.HasSuffix(p.At, "base64") }

// A carriedText formats a value for comparison, without some of its parts.
type carriedText struct {
	// all are the parts of the value; the first is the value itself.
	all []Part

	// carried has the positions of the parts that are left out.
	carried map[string]bool
}

// render returns the text of part i.
func (c *carriedText) render(i int) string {
	p := &c.all[i]
	if c.carried[p.At] {
		return carriedMark
	}
	s := p.Value
	for k := i + 1; k < len(c.all); k++ {
		child := &c.all[k]
		if child.holder != p.At || !strings.HasPrefix(child.At, p.At) {
			continue
		}
		fresh := c.render(k)
		switch {
		case child.layer && (child.isCompressed() || fresh != child.Value):
			return "<" + child.At + ">" + fresh
		case fresh == child.Value:
		case p.message:
			return c.renderMessage(i)
		case strings.Contains(s, child.Value):
			s = strings.ReplaceAll(s, child.Value, fresh)
		// with escapes
		default:
			s = strings.ReplaceAll(s, inQuotes(child.Value), inQuotes(fresh))
		}
	}
	return s
}

// renderMessage returns the text of part i, which is a message, with one field on each line.
func (c *carriedText) renderMessage(i int) string {
	p := &c.all[i]
	prefix := p.At
	if prefix != "" {
		prefix += " "
	}
	var b strings.Builder
	leaves := protoLeaves(nil, wire.Parse([]byte(p.Value), wire.Options{}), 0, nil, "", 1)
	for k := 0; k < len(leaves); k++ {
		l := &leaves[k]
		if l.IsMessage() {
			// Bytes that read like a message by chance are an identifier nevertheless.
			if c.carried[prefix+l.Path] {
				b.WriteString(l.Path + "=" + carriedMark + "\n")
				k += l.Inner
			}
			continue
		}
		k += l.Inner
		value := l.Text()
		if k := slices.IndexFunc(c.all, func(p Part) bool { return p.At == prefix+l.Path }); k > i {
			value = c.render(k)
		}
		b.WriteString(l.Path + "=" + value + "\n")
	}
	return b.String()
}

// inQuotes returns a text with the escapes of a JSON string, but without the quotes.
func inQuotes(s string) string {
	b := jsontree.Quote(s)
	return string(b[1 : len(b)-1])
}
