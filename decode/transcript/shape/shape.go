// Package shape collects evidence from many trees about each field path and decides once
// per path what a single value leaves open: whether length-delimited payloads are
// messages, text or bytes. Trees of package wire go in (Shape.Add); decisions by path
// come out (Shape.Kind, Shape.IsMessage). Packages transcript and diff use it.
//
// One value is weak evidence. The bytes of "image.png" also parse as a fixed64 field, and
// a message with one string of 32 characters is also clean text that begins with a line
// feed. Over all values of a path the readings separate quickly: every payload of a
// message path parses, but text that parses by accident seldom does so again.
//
// FitOf measures how well bytes are text. If a payload is text and also parses, the odds
// of both readings are compared.
//
// Source: decode/README.md#readings
package shape

import (
	"strconv"

	"unwire/decode/fieldpath"
	"unwire/decode/kind"
	"unwire/decode/wire"
)

// A valueKind is the kind of the payloads at a path: message, text or other bytes.
type valueKind uint8

const (
	// unknown means that no payload was seen: only scalars, or nothing.
	unknown valueKind = iota

	// noBytes means that all payloads were empty.
	noBytes
	submessage
	// Text means that the payloads are text.
	Text
	otherBytes
)

// kindNames are the words of String, in the order of the constants.
var kindNames = [...]string{"unknown", "empty", "message", "text", "bytes"}

// String returns the kind's word.
func (k valueKind) String() string { return kindNames[k] }

// A Path identifies a field path in one Shape, by index. The path consists of field numbers only.
type Path int32

const (
	rootPath Path = 0

	// None is a path that was not recorded.
	None Path = -1
)

const (
	// maxPaths is the maximum number of paths. Payloads at further paths are not recorded.
	maxPaths = 1 << 16

	// maxWeighed is the maximum number of ambiguous payloads (text that also parses as a message) of one path for
	// which log odds are computed.
	maxWeighed = 256
)

// A Shape has statistics about the payloads at each field path of many messages, by which they are classified as
// messages, text or other bytes. The zero value is empty and ready to use.
//
// Limits: 65,536 paths. The time is proportional to the number of nodes and bytes of the
// trees.
type Shape struct {
	// paths has the statistics of each path. A Path is an index into it.
	paths []path

	// index finds the Path of a field from its enclosing path and its field number.
	index map[edge]Path
}

// An edge leads from a path to a field below it.
type edge struct {
	// parent is the path of the enclosing message.
	parent Path

	// number is the number of the field in that message.
	number uint64
}

// A path has the statistics about the payloads at one path.
type path struct {
	// edge is the path's position below its enclosing path.
	edge

	// empty and full are the numbers of payloads without and with bytes.
	empty, full int

	// message is the number of payloads with bytes that parse as a message.
	message int

	// clean is the number of payloads that are text, and cut the number of those that would be text without an
	// incomplete character at their beginning or end.
	clean, cut int

	// both is the number of payloads that are text and also parse as a message.
	both int

	// weight is the sum of the log odds of text against message over the first maxWeighed of these ambiguous
	// payloads.
	weight float64

	// tag is the first tag (number and wire type) in the first ambiguous payload.
	tag uint64

	// chosen is the kind (text or message) that a user's choice implies; unknown if there is no choice.
	chosen valueKind

	// choice is the type that a user chose for the field; nil if nobody did.
	choice *kind.Choice
}

// Add adds the fields of message t to the statistics.
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
		if !n.Sound() {
			// The nesting was too deep to parse it: no evidence for either reading.
			continue
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
				// Messages of one type begin with the same tag; texts do not.
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

// Choose sets the kinds of paths that users chose, overriding the statistics. Choices about a single element of a
// list are ignored.
func (s *Shape) Choose(choices []kind.Choice) {
	if len(choices) == 0 {
		return
	}
	// This records the root.
	s.Locate(&wire.Tree{Nodes: make([]wire.Node, 1)}, nil, true)
	for _, c := range choices {
		at := rootPath
		for _, step := range c.Path {
			number, ok := step.Number()
			if !ok || step.Index != fieldpath.All || at == None {
				at = None
				break
			}
			if at > rootPath && s.paths[at].chosen == unknown {
				// A chosen field must be inside a message.
				s.paths[at].chosen = submessage
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

// Chosen returns the user's choice for the values at p; nil if there is none.
func (s *Shape) Chosen(p Path) *kind.Choice {
	if p <= rootPath || int(p) >= len(s.paths) {
		return nil
	}
	return s.paths[p].choice
}

// Locate returns the path of each node of t, using buf as memory if it is large enough. If grow is true, new paths
// are recorded; otherwise their nodes get None.
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

// child returns the path of field number below up, and records it if grow is true. It returns None if it is not
// recorded.
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

// Kind returns the kind of the payloads at p: message, text or other bytes.
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
		// One payload in twenty may be damaged.
		return Text
	case c.cut == c.full && c.full > 1:
		return Text
	}
	return otherBytes
}

// IsMessage reports whether node i of t, whose path is p, must be decoded as a message: a group, or a payload that
// parses at a path whose payloads are messages.
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

// String returns p as field numbers joined by dots; "" for the root and for None.
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
