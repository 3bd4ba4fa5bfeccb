// Package shape pools what many trees say of each field path, and decides once
// per path what single values leave open: whether length-delimited payloads
// there are messages, text or bytes.
//
// One value is weak evidence. "image.png" is a fixed64 field, and a message of
// one 32-character string is clean text that begins with a line feed. Over all
// values of a path the readings part quickly: every payload of a message path
// parses, and text that parses by chance does not do so again.
//
// FitOf measures how well bytes are text. Where a payload is text and also parses,
// the odds of both are compared. Package diff uses shapes, too.
//
// Source: decode/README.md#readings
package shape

import (
	"strconv"

	"unwire/decode/fieldpath"
	"unwire/decode/kind"
	"unwire/decode/wire"
)

// A valueKind is what the payloads of a path are.
type valueKind uint8

const (
	unknown valueKind = iota // no payload was seen there: scalars only, or nothing
	noBytes                  // all payloads were empty
	submessage
	Text
	otherBytes
)

var kindNames = [...]string{"unknown", "empty", "message", "text", "bytes"}

// String returns the kind's word.
func (k valueKind) String() string { return kindNames[k] }

// A Path is a field path in a Shape, made of field numbers only.
type Path int32

const (
	rootPath Path = 0
	None     Path = -1 // a path that was not recorded
)

const (
	// Paths that are told apart; below others every payload is a leaf.
	maxPaths   = 1 << 16
	maxWeighed = 256 // ambiguous payloads of one path that are weighed
)

// A Shape is the pooled evidence. The zero value is empty and ready.
//
// Limits: 65,536 paths. Time is proportional to the trees' nodes and bytes.
type Shape struct {
	paths []path
	index map[edge]Path
}

type edge struct {
	parent Path
	number uint64
}

type path struct {
	edge
	empty, full int // payloads without and with bytes
	message     int // of the full ones: those that parse

	// Those that are text, and those that are but for a rune cut at an edge.
	clean, cut int
	both       int     // those that are both, and how many of them were weighed
	weight     float64 // log odds of text against message over the weighed
	tag        uint64  // the first tag of the first of them

	// What somebody said that they are; Unknown where nobody did.
	chosen valueKind
	choice *kind.Choice
}

// Add pools the fields of t.
func (s *Shape) Add(t *wire.Tree) {
	at := s.Locate(t, nil, true)
	for i := 1; i < len(t.Nodes); i++ {
		n := &t.Nodes[i]
		if n.Type != wire.Len || at[i] == None {
			continue
		}
		p := &s.paths[at[i]]
		if n.Val == n.End {
			p.empty++
			continue
		}
		if n.Err != nil {
			continue // too deep to be looked into: no evidence either way
		}
		p.full++
		payload := t.Payload(int32(i))
		fit := FitOf(payload)
		switch fit {
		case Clean:
			p.clean++
		case cutAtEdge:
			p.cut++
		}
		if !t.IsMessage(int32(i)) {
			continue
		}
		p.message++
		if fit == Clean {
			if p.both < maxWeighed {
				p.weight += textOdds(t, int32(i))
				// Messages of a type begin with the same tag; texts do not.
				first := &t.Nodes[n.First]
				if tag := first.Number<<3 | uint64(first.Type); p.both == 0 {
					p.tag = tag
				} else if tag == p.tag {
					p.weight += tagLog(first) - sameTagLog
				}
			}
			p.both++
		}
	}
}

// Choose has payloads read as somebody said. Choices about one element are left out.
func (s *Shape) Choose(choices []kind.Choice) {
	if len(choices) == 0 {
		return
	}
	s.Locate(&wire.Tree{Nodes: make([]wire.Node, 1)}, nil, true) // the root
	for _, c := range choices {
		at := rootPath
		for _, step := range c.Path {
			number, ok := step.Number()
			if !ok || step.Index != fieldpath.All || at == None {
				at = None
				break
			}
			if at > rootPath && s.paths[at].chosen == unknown {
				s.paths[at].chosen = submessage // what is around a chosen field
			}
			at = s.child(at, number, true)
		}
		if at <= rootPath {
			continue
		}
		s.paths[at].choice = &c
		switch is, _ := c.For(wire.Len); is {
		case wire.KindMessage:
			s.paths[at].chosen = submessage
		case wire.KindString:
			s.paths[at].chosen = Text
		case wire.KindBytes, wire.KindPacked:
			s.paths[at].chosen = otherBytes
		}
	}
}

// Chosen is what somebody said of the values at p; nil where nobody did.
func (s *Shape) Chosen(p Path) *kind.Choice {
	if p <= rootPath || int(p) >= len(s.paths) {
		return nil
	}
	return s.paths[p].choice
}

// Locate returns the path of each node of t, in buf if that is large enough.
// With grow, paths that are new are recorded; otherwise they are None.
func (s *Shape) Locate(t *wire.Tree, buf []Path, grow bool) []Path {
	if s.paths == nil {
		s.paths = []path{{edge: edge{parent: None}}}
		s.index = make(map[edge]Path)
	}
	if cap(buf) < len(t.Nodes) {
		buf = make([]Path, len(t.Nodes))
	}
	buf = buf[:len(t.Nodes)]
	buf[0] = rootPath
	for i := 1; i < len(t.Nodes); i++ {
		n := &t.Nodes[i]
		buf[i] = None
		if up := buf[n.Parent]; up != None && n.Type != wire.Garbage {
			buf[i] = s.child(up, n.Number, grow)
		}
	}
	return buf
}

func (s *Shape) child(up Path, number uint64, grow bool) Path {
	e := edge{up, number}
	if p, ok := s.index[e]; ok {
		return p
	}
	if !grow || len(s.paths) >= maxPaths {
		return None
	}
	p := Path(len(s.paths))
	s.paths = append(s.paths, path{edge: e})
	s.index[e] = p
	return p
}

// Kind says what the payloads of p are.
func (s *Shape) Kind(p Path) valueKind {
	if p <= rootPath || int(p) >= len(s.paths) {
		return unknown
	}
	c := &s.paths[p]
	switch {
	case c.chosen != unknown:
		return c.chosen
	case c.full == 0 && c.empty == 0:
		return unknown
	case c.full == 0:
		return noBytes
	case c.message == c.full && c.both < c.full:
		return submessage
	case c.message == c.full && c.weight <= 0:
		return submessage
	case c.clean > 0 && (c.clean+c.cut)*20 >= c.full*19:
		// One in twenty may be damaged.
		return Text
	case c.cut == c.full && c.full > 1:
		return Text
	}
	return otherBytes
}

// IsMessage reports whether node i of t, which is at p, is to be read as a
// message: a group, or a payload of a message path that does parse.
func (s *Shape) IsMessage(t *wire.Tree, i int32, p Path) bool {
	switch t.Nodes[i].Type {
	case wire.StartGroup, wire.Message:
		return true
	case wire.Len:
		k := s.Kind(p)
		return k == submessage && t.IsMessage(i)
	}
	return false
}

// String returns p as field numbers joined by dots.
func (s *Shape) String(p Path) string {
	if p <= rootPath {
		return ""
	}
	number := strconv.FormatUint(s.paths[p].number, 10)
	if up := s.String(s.paths[p].parent); up != "" {
		return up + "." + number
	}
	return number
}
