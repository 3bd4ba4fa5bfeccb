package diff

import (
	"bytes"
	"encoding/base64"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"unwire/captures"
	"unwire/decode"
	"unwire/decode/envelope"
	"unwire/decode/transcript/shape"
)

// Exchanges compares the content of two exchanges.
//
// Runs divide a text differently into frames. So deltas of one path are joined before they are compared, and
// counters are added up. Both have the path of the direction (@down 1.1.1) and not that of a frame. Other frames
// are aligned like elements of a repeated field. Heartbeats, which are empty frames at arbitrary times, are
// ignored.
//
// Shape: properties of the exchange (status, codec, outcome), then the frames up and down, then code, message,
// details and trailers.
//
// Limits: those of compareTrees.
func Exchanges(a, b *decode.Exchange, o Options) []Change {
	// Equal exchanges need no nodes, which take a hundred times the memory of small fields.
	if isSame(a, b) {
		return []Change{}
	}
	c := newComparison(o)
	c.compareProperty("status", number(a.Status), number(b.Status))
	c.compareProperty("codec", a.Codec, b.Codec)
	c.compareProperty("outcome", string(a.Outcome), string(b.Outcome))
	if !o.Answer {
		c.compareDirection(a, b, captures.Up)
	}
	c.compareDirection(a, b, captures.Down)
	c.compareTexts("code", a.Code, b.Code)
	c.compareTexts("message", a.Message, b.Message)
	c.compareDetails(a, b)
	c.compareTrailers(a, b)
	return c.finish()
}

// isSame reports whether everything that Exchanges compares is equal in a and b, byte by byte.
func isSame(a, b *decode.Exchange) bool {
	return a.Status == b.Status && a.Codec == b.Codec && a.Outcome == b.Outcome && a.Code == b.Code && a.Message == b.Message &&
		slices.Equal(a.ResponseTrailers, b.ResponseTrailers) &&
		reflect.DeepEqual(a.Choices, b.Choices) &&
		slices.EqualFunc(a.Frames, b.Frames, isSameFrame)
}

// isSameFrame reports whether two frames of exchanges have the same content.
func isSameFrame(f, g decode.Frame) bool {
	return f.Dir == g.Dir && f.Flags == g.Flags && f.Event == g.Event && f.Partial == g.Partial && f.Opcode == g.Opcode &&
		f.Framed == g.Framed && f.Encoding == g.Encoding && bytes.Equal(f.Raw, g.Raw) && bytes.Equal(f.Data, g.Data) &&
		(f.Tree == nil) == (g.Tree == nil) && reflect.DeepEqual(f.End, g.End)
}

// number formats n in decimal. 0 means unknown and becomes "".
func number(n int) string {
	if n == 0 {
		return ""
	}
	return strconv.Itoa(n)
}

// compareProperty compares a property of two exchanges, such as the status, unless it is unknown ("") on one side.
// path is its name.
func (c *comparison) compareProperty(path, a, b string) {
	if a != "" && b != "" {
		c.compareTexts(path, a, b)
	}
}

// compareTexts compares the values a and b of a text property whose path is path. Volatile parts of the texts, such
// as ids, are recognised.
func (c *comparison) compareTexts(path, a, b string) {
	c.compareNodes(at(path), c.textNode("", a), c.textNode("", b))
}

// textNode returns a node with a text as its value.
func (c *comparison) textNode(key, s string) *node {
	n := &node{key: key, kind: text, text: s}
	c.hash(n)
	return n
}

// An item is an element of the lists that are aligned: a frame, or the joined deltas of several frames.
type item struct {
	// path is the item's address, such as "@down/3" for a frame or "@down 1.2" for joined deltas.
	path string

	// node is the root of the item's content, as a tree of values to be compared.
	node *node
}

// compareDirection compares the frames that exchanges a and b have in one direction.
func (c *comparison) compareDirection(a, b *decode.Exchange, dir captures.Direction) {
	var s shape.Shape
	addShapes(&s, a, dir)
	addShapes(&s, b, dir)
	left, right := c.items(&s, a, dir), c.items(&s, b, dir)
	if !c.o.records {
		left, right = c.removeHeartbeats("@"+dir.String(), left, right)
		left, right = c.joinDeltas("@"+dir.String(), left, right)
	}

	// Frames are aligned like elements of a repeated field.
	mates, added := align(nodesOf(left), nodesOf(right))
	inOrder := longestRun(mates)
	for i, j := range mates {
		if j < 0 {
			c.compareNodes(at(left[i].path), left[i].node, nil)
			continue
		}
		// Frames of concurrent activities have no fixed order.
		if !inOrder[i] {
			c.addFinding(finding{Change: Change{Path: left[i].path, Op: Move, Old: i, New: j, To: right[j].path}, ignored: "frame order"})
		}
		c.compareNodes(pathPair{left[i].path, right[j].path}, left[i].node, right[j].node)
	}
	for _, j := range added {
		c.compareNodes(at(right[j].path), nil, right[j].node)
	}
}

// addShapes adds the messages of one direction of ex, and the types that users chose for their fields, to the
// statistics s, from which the kind of each field (text, message, bytes) is determined.
func addShapes(s *shape.Shape, ex *decode.Exchange, dir captures.Direction) {
	for i := range ex.Frames {
		if f := &ex.Frames[i]; f.Dir == dir && f.Tree != nil && f.End == nil {
			s.Add(f.Tree)
		}
	}
	s.Choose(ex.Choices[dir&1])
}

// nodesOf returns the nodes of a list of items.
func nodesOf(items []item) []*node {
	nodes := make([]*node, len(items))
	for i := range items {
		nodes[i] = items[i].node
	}
	return nodes
}

// items returns an item for each frame of one direction except ends of streams. s are the statistics from which
// kinds of fields are determined.
func (c *comparison) items(s *shape.Shape, ex *decode.Exchange, dir captures.Direction) []item {
	var items []item
	for i := range ex.Frames {
		f := &ex.Frames[i]
		if f.Dir != dir || f.End != nil || f.Framed && f.Flags&(envelope.EndStream|envelope.Trailer) != 0 {
			continue
		}
		items = append(items, item{"@" + dir.String() + "/" + strconv.Itoa(f.Seq), c.fromFrame(s, f)})
	}
	return items
}

// fromFrame converts a frame (protobuf, JSON, text or bytes) to a node for comparison. s are the statistics from
// which kinds of fields are determined.
func (c *comparison) fromFrame(s *shape.Shape, f *decode.Frame) *node {
	if f.Tree != nil {
		return c.fromTree(s, f.Tree)
	}
	if n, ok := c.fromJSON(f.Data); ok {
		return n
	}
	n := &node{kind: blob, bytes: f.Data}
	if shape.FitOf(f.Data) != shape.Not {
		n.kind, n.text, n.bytes = text, string(f.Data), nil
	}
	c.hash(n)
	return n
}

// removeHeartbeats removes frames without any value from both lists. A different number of them is recorded as an
// ignored change at path. But if only one side has such a frame as its last, the change counts, because the end of
// a turn has no value either.
func (c *comparison) removeHeartbeats(path string, left, right []item) (l, r []item) {
	counts := make(map[uint64][2]int)
	var order []item
	var last [2]uint64
	for side, items := range [][]item{left, right} {
		for _, it := range items {
			last[side] = it.node.exact
			if !isEmpty(it.node) {
				continue
			}
			n := counts[it.node.exact]
			if n == [2]int{} {
				order = append(order, it)
			}
			n[side]++
			counts[it.node.exact] = n
		}
	}

	// Report each kind of heartbeat once.
	for _, it := range order {
		n := counts[it.node.exact]
		if n[0] == n[1] {
			continue
		}
		f := finding{Change: Change{Path: join(path, firstKeys(it.node)), Op: Modify, Old: n[0], New: n[1]}, ignored: "heartbeat"}

		// A last message that only one side has may be the end of the stream, so it is a real change
		// and not ignored.
		if n[0] == 0 && last[1] == it.node.exact {
			f = finding{Change: Change{Path: it.path, Op: Add, New: it.node.value()}}
		} else if n[1] == 0 && last[0] == it.node.exact {
			f = finding{Change: Change{Path: it.path, Op: Remove, Old: it.node.value()}}
		}
		c.addFinding(f)
	}
	empty := func(it item) bool { return isEmpty(it.node) }
	return slices.DeleteFunc(left, empty), slices.DeleteFunc(right, empty)
}

// isEmpty reports whether n and all nodes below it have no value: only empty messages and empty texts.
func isEmpty(n *node) bool {
	switch n.kind {
	case object:
		for _, child := range n.children {
			if !isEmpty(child) {
				return false
			}
		}
		return true
	case text:
		return n.text == ""
	}
	return false
}

// firstKeys returns the path that leads from n down along the first child of each node.
func firstKeys(n *node) string {
	path := ""
	for len(n.children) > 0 {
		n = n.children[0]
		path = join(path, n.key)
	}
	return path
}

// compareDetails compares the error details (typed messages in the status) of two exchanges.
func (c *comparison) compareDetails(a, b *decode.Exchange) {
	var sides [2][]*node
	for side, ex := range []*decode.Exchange{a, b} {
		for i := range ex.Frames {
			if end := ex.Frames[i].End; end != nil && end.Error != nil {
				for _, d := range end.Error.Details {
					sides[side] = append(sides[side], c.detailNode(d))
				}
			}
		}
	}
	c.compareElements(at("details"), sides[0], sides[1], true)
}

// detailNode returns a node for an error detail. It prefers the JSON rendering that the server included.
func (c *comparison) detailNode(d envelope.Detail) *node {
	value, ok := c.fromJSON(d.Debug)
	if !ok {
		value = c.textNode("", base64.StdEncoding.EncodeToString(d.Value))
	}
	value.key = "value"
	n := &node{kind: object, children: []*node{c.textNode("type", d.Type), value}}
	c.hash(n)
	return n
}

// compareTrailers compares the metadata at the end of both exchanges, from trailers and from end-of-stream frames.
// Fields of the gRPC status are omitted, because the code is compared separately.
func (c *comparison) compareTrailers(a, b *decode.Exchange) {
	var sides [2]*node
	for side, ex := range []*decode.Exchange{a, b} {
		// Trailers are in the response's trailers, or in the end of the stream.
		n := &node{kind: object}
		add := func(name, value string) {
			if name = strings.ToLower(name); !strings.HasPrefix(name, "grpc-") {
				n.children = append(n.children, c.textNode(name, value))
			}
		}
		for _, h := range ex.ResponseTrailers {
			add(h.Name, h.Value)
		}
		for i := range ex.Frames {
			if end := ex.Frames[i].End; end != nil {
				for name, values := range end.Metadata {
					for _, v := range values {
						add(name, v)
					}
				}
			}
		}
		slices.SortStableFunc(n.children, func(x, y *node) int { return strings.Compare(x.key, y.key) })
		c.hash(n)
		sides[side] = n
	}

	c.compareNodes(at("trailers"), sides[0], sides[1])
}
