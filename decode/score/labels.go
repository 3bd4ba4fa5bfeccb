package score

import (
	"strconv"
	"strings"

	"unwire/decode/score/ident"
)

// split parts the streams whose texts are told apart by a field beside them: a
// role, or the name of a kind, as {"type":"text_delta","text":"Hi"} has it.
func (c *collection) split() []*stream {
	for _, s := range c.streams {
		s.telling = s.tells()
		for _, p := range s.pieces {
			g := &c.groups[p.group]
			if s.telling {
				g.label = strings.TrimPrefix(g.label+" "+p.text, " ")
			} else if g.id == "" && len(p.text) < 100 && isIdent(p.text) {
				g.id = p.text
			}
		}
	}
	var out []*stream
	for _, s := range c.streams {
		parts := make(map[string]*stream)
		for _, p := range s.pieces {
			label := ""
			if !s.telling {
				label = c.labelOf(p.group)
			}
			part := parts[label]
			if part == nil {
				part = &stream{dir: s.dir, path: s.path, name: s.name, label: label, stored: s.stored, telling: s.telling}
				parts[label] = part
				out = append(out, part)
			}
			part.pieces = append(part.pieces, p)
		}
	}
	return out
}

// labelOf is the label of g, or else of what encloses it.
func (c *collection) labelOf(g int32) string {
	for range maxDepth {
		if g < 0 {
			break
		}
		if c.groups[g].label != "" {
			return c.groups[g].label
		}
		g = c.groups[g].parent
	}
	return ""
}

// idOf is the identifier beside the texts of g, or else of what encloses it.
func (c *collection) idOf(g int32) string {
	for range maxDepth {
		if g < 0 {
			break
		}
		if c.groups[g].id != "" {
			return c.groups[g].id
		}
		g = c.groups[g].parent
	}
	return ""
}

// isIdent reports whether s names one thing.
func isIdent(s string) bool {
	switch ident.Of(s) {
	case ident.UUID, ident.Hex, ident.ID, ident.Token:
		return true
	}
	n := len(s)
	_, err := strconv.ParseUint(s, 10, 64)
	return err == nil && n >= 6
}

const maxLabels = 12 // values of a field that tells kinds apart

// tells reports whether the stream's values are names of kinds: a few short
// words that come again and again, or roles of a conversation.
func (s *stream) tells() bool {
	if len(s.pieces) == 0 {
		return false
	}
	distinct := make(map[string]int)
	roles := true
	for _, p := range s.pieces {
		if !isKindName(p.text) {
			return false
		}
		roles = roles && roleWord(p.text) >= 0
		if distinct[p.text]++; len(distinct) > maxLabels {
			return false
		}
	}
	if roles {
		return true
	}
	// A name that stands for a kind comes more than once, beside others.
	return len(distinct) > 1 && len(s.pieces) >= 3*len(distinct)
}

// isKindName reports whether s is a lower- or upper-case name of a kind.
func isKindName(s string) bool {
	if len(s) < 2 || len(s) > 48 {
		return false
	}
	for i := range len(s) {
		c := s[i]
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
		if !letter && (i == 0 || c != '_' && c != '.' && c != '-' && (c < '0' || c > '9')) {
			return false
		}
	}
	return true
}
