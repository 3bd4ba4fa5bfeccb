package transcript

import (
	"encoding/base64"
	"encoding/json"
	"maps"
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"unwire/captures"
	"unwire/decode"
	"unwire/decode/envelope"
	"unwire/decode/jsontree"
	"unwire/decode/transcript/event"
	"unwire/decode/transcript/language"
	"unwire/decode/transcript/naming"
	"unwire/decode/transcript/shape"
	"unwire/decode/wire"
)

const (
	// maxStreams is the maximum number of paths whose texts are collected.
	maxStreams = 1 << 13

	// leastAmong is the minimum size in bytes of a text that is collected from a path if most values at the path are
	// not text.
	leastAmong = 12

	// maxDepth is the maximum nesting of JSON values.
	maxDepth = 200

	// maxProbed is the maximum number of bytes of a payload that are examined for natural language.
	maxProbed = 4096
)

// A collection has the texts of an exchange before they are classified by role (answer, thinking, question and so
// on).
type collection struct {
	// maxText is the maximum number of bytes of text that are collected for a path.
	maxText int

	// streams are the texts by path, in the order of their first occurrence.
	streams []*stream

	// index finds an element of streams by direction and path.
	index map[streamKey]*stream

	// shapes has statistics by which bytes fields are classified as text or message, by direction and by the field
	// that carries the message ("" for the frame itself).
	shapes map[streamKey]*shape.Shape

	// groups are the messages (protobuf or JSON objects) that contain the texts.
	groups []group

	// numbers summarizes the numbers that were sent at each path.
	numbers []*pathNumbers

	// numberAt has the index in numbers of each direction and path.
	numberAt map[streamKey]int32

	// at is reused memory for the paths of a tree's nodes.
	at []shape.Path

	// common has the words that occur in all names of kinds (values of fields such as "type"). They do not
	// distinguish kinds.
	common map[string]bool

	// serverTexts are the indexes of the server's frames that contain text, ascending.
	serverTexts []int

	// stored means that the texts being added come from a message of the conversation that is stored as JSON in a
	// field.
	stored bool

	// shaped means that calls of tools were found in the exchange by the structure of their messages; see package
	// callshape.
	shaped bool

	// truncated means that a limit was reached.
	truncated bool
}

// A streamKey identifies a stream by direction and path.
type streamKey struct {
	// dir is the direction of the frames.
	dir captures.Direction

	// path is the field path at which the texts are sent: field numbers or names of JSON members from the frame on,
	// joined by dots, without indexes.
	path string
}

// A group is one message that contains texts: the root of a frame, or a message inside it.
type group struct {
	// parent is the index of the enclosing group, or -1 for a root.
	parent int32

	// label has the names of kinds next to the texts, such as the value of a field "type".
	label string

	// id is the value next to the texts that looks like an identifier, or "".
	id string

	// texts is the number of texts in the message itself.
	texts int

	// scalars are the small numbers and flags in the message.
	scalars []smallNumber
}

// collect collects the texts of all frames, in order.
func collect(ex *decode.Exchange, o Options) *collection {
	c := &collection{maxText: o.MaxText, index: make(map[streamKey]*stream), shapes: make(map[streamKey]*shape.Shape), numberAt: make(map[streamKey]int32)}
	// The kinds of fields must be known for all frames before texts are collected.
	for i := range ex.Frames {
		f := &ex.Frames[i]
		if isEnd(f) || f.Tree == nil {
			continue
		}
		c.shape(f.Dir, "").Add(f.Tree)
		for _, in := range f.Inner {
			if in.Tree != nil {
				c.shape(f.Dir, f.Tree.FieldPath(in.Node).String()).Add(in.Tree)
			}
		}
	}

	// Choices of a person override the evidence.
	for dir, choices := range ex.Choices {
		if len(choices) > 0 {
			c.shape(captures.Direction(dir), "").Choose(choices)
		}
	}
	for i := range ex.Frames {
		if f := &ex.Frames[i]; !isEnd(f) {
			c.addFrame(f, i)
		}
	}

	c.unpackEvents(ex)
	return c
}

// shape returns the statistics about fields of a direction's messages, or, if carrier is not "", of the messages
// inside the field at that path.
func (c *collection) shape(dir captures.Direction, carrier string) *shape.Shape {
	key := streamKey{dir, carrier}
	if c.shapes[key] == nil {
		c.shapes[key] = new(shape.Shape)
	}
	return c.shapes[key]
}

// addFrame collects the texts of frame f, whose index in the exchange is index, and of encoded messages inside its
// fields.
func (c *collection) addFrame(f *decode.Frame, index int) {
	if f.Tree == nil {
		c.addBody(f, index)
		return
	}
	w := treeWalk{c: c, shape: c.shape(f.Dir, ""), tree: f.Tree, frame: f, index: index}
	w.walk()
	for _, in := range f.Inner {
		carrier := f.Tree.FieldPath(in.Node).String()
		if in.Tree == nil {
			c.addTextOrMessage(f, index, carrier, "", c.root(f), string(in.Data))
			continue
		}
		w := treeWalk{c: c, shape: c.shape(f.Dir, carrier), tree: in.Tree, frame: f, index: index, carrier: carrier + "."}
		w.walk()
	}
}

// isEnd reports whether a frame ends the stream. Such a frame contains the status of the call and no conversation.
func isEnd(f *decode.Frame) bool {
	return f.End != nil || f.Framed && f.Flags&(envelope.EndStream|envelope.Trailer) != 0
}

// newGroup adds a group inside the group parent (-1 for a frame's root) and returns its index.
func (c *collection) newGroup(parent int32) int32 {
	c.groups = append(c.groups, group{parent: parent})
	return int32(len(c.groups) - 1)
}

// root adds the outermost group of a frame and returns its index. The name of an event becomes the group's label,
// because it distinguishes kinds of frames like a field next to the text does.
func (c *collection) root(f *decode.Frame) int32 {
	g := c.newGroup(-1)
	if f.Event != "message" && len(f.Event) > 1 && naming.IsKind(f.Event) {
		c.groups[g].label = f.Event
	}
	return g
}

// addTextOrMessage adds a text; see addText. If the text is a stored message of a conversation in JSON, or in
// base64 of JSON, the texts of that message are added instead.
func (c *collection) addTextOrMessage(f *decode.Frame, index int, path, name string, group int32, text string) {
	// This is the base64 of {".
	if strings.HasPrefix(text, "eyJ") {
		if data, err := base64.StdEncoding.DecodeString(text); err == nil && utf8.Valid(data) {
			text = string(data)
		}
	}
	if strings.HasPrefix(text, "{") && strings.Contains(text, `"role"`) && strings.Contains(text, `"content"`) {
		if v, ok := parseJSON([]byte(text)); ok {
			c.stored = true
			c.addValue(f, index, strings.Split(path, "."), v, c.newGroup(group))
			c.stored = false
			return
		}
	}
	c.addText(f, index, path, name, group, text)
}

// addText appends a text to the stream of its path. index is the index of frame f, name the text's member name in
// JSON, and group the message that contains it.
func (c *collection) addText(f *decode.Frame, index int, path, name string, group int32, text string) {
	key := streamKey{f.Dir, path}
	s := c.index[key]
	if s == nil {
		if len(c.streams) >= maxStreams {
			c.truncated = true
			return
		}
		s = &stream{dir: f.Dir, path: path, name: name, stored: c.stored}
		c.index[key] = s
		c.streams = append(c.streams, s)
	}
	if s.bytes+len(text) > c.maxText {
		c.truncated = true
		return
	}
	s.bytes += len(text)
	if f.Dir == captures.Down && (len(c.serverTexts) == 0 || c.serverTexts[len(c.serverTexts)-1] < index) {
		c.serverTexts = append(c.serverTexts, index)
	}
	c.groups[group].texts++
	s.pieces = append(s.pieces, textPiece{frame: index, seq: f.Seq, group: group, text: text})
}

// A treeWalk collects the texts of one protobuf message.
type treeWalk struct {
	// c receives the texts.
	c *collection

	// shape has the statistics by which the message's fields are classified as text or message.
	shape *shape.Shape

	// tree is the parsed message.
	tree *wire.Tree

	// frame is the frame that contains the message, directly or encoded inside a field.
	frame *decode.Frame

	// index is the frame's index in the exchange.
	index int

	// paths caches the text form of paths.
	paths map[shape.Path]string

	// carrier is the path of the field that contains the message, with a dot, or "".
	carrier string

	// inside are the nodes that contain encoded messages, which are visited separately.
	inside map[int32]bool
}

// walk collects the texts of the whole message.
func (w *treeWalk) walk() {
	w.c.at = w.shape.Locate(w.tree, w.c.at, false)
	w.paths = make(map[shape.Path]string)
	if w.carrier == "" {
		w.inside = make(map[int32]bool)
		for _, in := range w.frame.Inner {
			w.inside[in.Node] = true
		}
	}
	w.message(0, w.c.root(w.frame))
}

// message collects the texts in the message at node i; group is the index of the group for that message.
func (w *treeWalk) message(i, group int32) {
	for child := range w.tree.Children(i) {
		n := &w.tree.Nodes[child]
		at := w.c.at[child]
		switch {
		case n.Type == wire.Varint && at != shape.None:
			if v := w.tree.Uint(child); v <= math.MaxInt64 {
				w.c.addNumber(w.frame, w.index, w.path(at), "", group, int64(v))
			}
		case n.Type != wire.Len && n.Type != wire.StartGroup, w.inside[child]:
		case w.shape.IsMessage(w.tree, child, at):
			w.message(child, w.c.newGroup(group))
		case n.Type == wire.Len && shape.Prefixed(w.tree.Payload(child)) != nil:
			w.c.addTextOrMessage(w.frame, w.index, w.path(at), "", group, string(shape.Prefixed(w.tree.Payload(child))))
		case w.shape.Kind(at) == shape.Text && n.Type == wire.Len && n.Val < n.End:
			if payload := w.tree.Payload(child); shape.FitOf(payload) != shape.Not || len(payload) < 4 {
				w.c.addTextOrMessage(w.frame, w.index, w.path(at), "", group, string(payload))
			}
		case n.Type == wire.Len && n.End-n.Val >= leastAmong:
			// A bytes field may contain text among other values.
			if payload := w.tree.Payload(child); shape.FitOf(payload) == shape.Clean && language.Likeness(string(payload[:min(len(payload), maxProbed)])) >= 0.6 {
				w.c.addTextOrMessage(w.frame, w.index, w.path(at), "", group, string(payload))
			}
		}
	}
}

// path returns the text form of a path, with that of the carrier before it.
func (w *treeWalk) path(at shape.Path) string {
	p, ok := w.paths[at]
	if !ok {
		p = w.carrier + w.shape.String(at)
		w.paths[at] = p
	}
	return p
}

// addBody collects the texts of a frame that is not protobuf: JSON values, or plain text.
func (c *collection) addBody(f *decode.Frame, index int) {
	for _, v := range event.Values(f) {
		if v.Text == "" {
			c.addValue(f, index, nil, jsonValue{Value: v.JSON}, c.root(f))
		} else if shape.FitOf(f.Data) != shape.Not {
			c.addText(f, index, "", "", c.root(f), v.Text)
		}
	}
}

// addValue collects the strings of the JSON value v, which is at path in frame f and in message group. index is the
// index of the frame. Members are visited in the order of their names.
func (c *collection) addValue(f *decode.Frame, index int, path []string, v jsonValue, group int32) {
	if len(path) > maxDepth {
		c.truncated = true
		return
	}
	// Each object is a group.
	innerGroup := func(v jsonValue) int32 {
		if v.Kind() == jsontree.Object {
			return c.newGroup(group)
		}
		return group
	}

	switch v.Kind() {
	case jsontree.Object:
		members := v.members()
		for _, name := range slices.Sorted(maps.Keys(members)) {
			c.addValue(f, index, append(path, name), members[name], innerGroup(members[name]))
		}
	case jsontree.Array:
		for e := range v.Items() {
			element := jsonValue{Value: e}
			c.addValue(f, index, path, element, innerGroup(element))
		}
	case jsontree.Bool:
		flag := int64(0)
		if v.Text() == "true" {
			flag = 1
		}
		c.addNumber(f, index, strings.Join(path, "."), lastName(path), group, flag)
	case jsontree.Number:
		c.addJSONNumber(f, index, strings.Join(path, "."), lastName(path), group, json.Number(v.Text()))
	case jsontree.String:
		if text := v.Text(); text != "" {
			c.addTextOrMessage(f, index, strings.Join(path, "."), lastName(path), group, text)
		}
	}
}

// lastName returns the last name of a path, or "".
func lastName(path []string) string {
	if len(path) == 0 {
		return ""
	}
	return path[len(path)-1]
}
