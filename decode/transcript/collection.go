package transcript

import (
	"bytes"
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
	"unwire/decode/transcript/language"
	"unwire/decode/transcript/shape"
	"unwire/decode/wire"
)

const (
	maxStreams = 1 << 13 // paths whose texts are kept
	leastAmong = 12      // bytes of a text among values that are none
	maxDepth   = 200     // of JSON values that are looked into
	maxProbed  = 4096    // bytes of a payload that may be language
)

// A collection is the texts of an exchange before they are judged.
type collection struct {
	maxText     int
	streams     []*stream
	index       map[streamKey]*stream
	shapes      map[streamKey]*shape.Shape
	groups      []group
	numbers     []*numbers
	numberAt    map[streamKey]int32
	at          []shape.Path
	common      map[string]bool // words of all names of kinds
	serverTexts []int           // frames of the server that have text, ascending

	// The texts come from a message of a conversation that is kept as JSON.
	stored    bool
	truncated bool
}

type streamKey struct {
	dir  captures.Direction
	path string
}

// A group is one message: a frame's root or a message within it.
type group struct {
	parent  int32 // -1 for a root
	label   string
	id      string
	texts   int
	scalars []scalar
}

// collect takes the texts out of the frames, in order.
func collect(ex *decode.Exchange, o Options) *collection {
	c := &collection{maxText: o.MaxText, index: make(map[streamKey]*stream), shapes: make(map[streamKey]*shape.Shape), numberAt: make(map[streamKey]int32)}
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

// shape is the shape of a direction's messages, or of those inside a field.
func (c *collection) shape(dir captures.Direction, carrier string) *shape.Shape {
	key := streamKey{dir, carrier}
	if c.shapes[key] == nil {
		c.shapes[key] = new(shape.Shape)
	}
	return c.shapes[key]
}

// addFrame takes the texts out of a frame, and out of the messages that travel
// encoded inside its fields.
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

// isEnd reports whether a frame ends the stream: it speaks of the call, not in it.
func isEnd(f *decode.Frame) bool {
	return f.End != nil || f.Framed && f.Flags&(envelope.EndStream|envelope.Trailer) != 0
}

func (c *collection) newGroup(parent int32) int32 {
	c.groups = append(c.groups, group{parent: parent})
	return int32(len(c.groups) - 1)
}

// root is the outermost group of a frame. The name of an event tells kinds of
// frames apart, as a field beside the text does.
func (c *collection) root(f *decode.Frame) int32 {
	g := c.newGroup(-1)
	if f.Event != "message" && len(f.Event) > 1 && isKindName(f.Event) {
		c.groups[g].label = f.Event
	}
	return g
}

// addTextOrMessage records a text, or in its place the texts of the message of a
// conversation that it is the JSON of, as JSON or, as JSON writes bytes, in base64.
func (c *collection) addTextOrMessage(f *decode.Frame, index int, path, name string, group int32, text string) {
	if strings.HasPrefix(text, "eyJ") { // {" in base64
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

// addText records a text.
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
	s.pieces = append(s.pieces, piece{frame: index, seq: f.Seq, group: group, text: text})
}

// A treeWalk collects the texts of one protobuf frame.
type treeWalk struct {
	c     *collection
	shape *shape.Shape
	tree  *wire.Tree
	frame *decode.Frame
	index int
	paths map[shape.Path]string

	// The path, with a point, of the field that the message is inside of.
	carrier string
	inside  map[int32]bool // nodes that hold such messages
}

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
		case w.shape.Kind(at) == shape.Text && n.Type == wire.Len && n.Val < n.End:
			if payload := w.tree.Payload(child); shape.FitOf(payload) != shape.Not || len(payload) < 4 {
				w.c.addTextOrMessage(w.frame, w.index, w.path(at), "", group, string(payload))
			}
		case n.Type == wire.Len && n.End-n.Val >= leastAmong:
			// A path of bytes may have text among them, as tensors have.
			if payload := w.tree.Payload(child); shape.FitOf(payload) == shape.Clean && language.Likeness(string(payload[:min(len(payload), maxProbed)])) >= 0.6 {
				w.c.addTextOrMessage(w.frame, w.index, w.path(at), "", group, string(payload))
			}
		}
	}
}

func (w *treeWalk) path(at shape.Path) string {
	p, ok := w.paths[at]
	if !ok {
		p = w.carrier + w.shape.String(at)
		w.paths[at] = p
	}
	return p
}

// addBody collects the texts of a frame that is not protobuf: JSON, lines of JSON,
// or text.
func (c *collection) addBody(f *decode.Frame, index int) {
	data := bytes.TrimSpace(f.Data)
	if len(data) == 0 {
		return
	}
	if v, ok := parseJSON(data); ok {
		c.addValue(f, index, nil, v, c.root(f))
		return
	}
	if lines := bytes.Split(data, []byte("\n")); len(lines) > 1 {
		if values, ok := parseLines(lines); ok {
			for _, v := range values {
				c.addValue(f, index, nil, v, c.root(f))
			}
			return
		}
	}
	if shape.FitOf(f.Data) != shape.Not {
		c.addText(f, index, "", "", c.root(f), string(f.Data))
	}
}

func parseLines(lines [][]byte) ([]jsonValue, bool) {
	var values []jsonValue
	for _, line := range lines {
		if line = bytes.TrimSpace(line); len(line) == 0 {
			continue
		}
		v, ok := parseJSON(line)
		if !ok {
			return nil, false
		}
		values = append(values, v)
	}
	return values, true
}

// addValue collects the strings of a JSON value, member by member in the order of
// their names.
func (c *collection) addValue(f *decode.Frame, index int, path []string, v jsonValue, group int32) {
	if len(path) > maxDepth {
		c.truncated = true
		return
	}
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

func lastName(path []string) string {
	if len(path) == 0 {
		return ""
	}
	return path[len(path)-1]
}
