package score

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"

	"unwire/captures"
	"unwire/decode"
	"unwire/decode/envelope"
	"unwire/decode/score/ident"
	"unwire/decode/score/shape"
	"unwire/decode/wire"
)

const (
	maxStreams = 1 << 13 // paths whose texts are kept
	maxDepth   = 200     // of JSON values that are looked into
)

// A collection is the texts of an exchange before they are judged.
type collection struct {
	maxText   int
	streams   []*stream
	index     map[streamKey]*stream
	groups    []group
	at        []shape.Path
	truncated bool
}

type streamKey struct {
	dir  captures.Direction
	path string
}

// A group is one message: a frame's root or a message within it.
type group struct {
	parent int32 // -1 for a root
	label  string
	id     string
}

// collect takes the texts out of the frames, in order.
func collect(ex *decode.Exchange, o Options) *collection {
	c := &collection{maxText: o.MaxText, index: make(map[streamKey]*stream)}
	var shapes [2]shape.Shape
	for i := range ex.Frames {
		if f := &ex.Frames[i]; f.Tree != nil && !isEnd(f) {
			shapes[f.Dir&1].Add(f.Tree)
		}
	}
	for i := range ex.Frames {
		f := &ex.Frames[i]
		if isEnd(f) {
			continue
		}
		if f.Tree != nil {
			w := treeWalk{c: c, shape: &shapes[f.Dir&1], tree: f.Tree, frame: f, index: i}
			w.walk()
		} else {
			c.body(f, i)
		}
	}
	return c
}

// isEnd reports whether a frame ends the stream: it speaks of the call, not in it.
func isEnd(f *decode.Frame) bool {
	return f.End != nil || f.Framed && f.Flags&(envelope.EndStream|envelope.Trailer) != 0
}

func (c *collection) newGroup(parent int32) int32 {
	c.groups = append(c.groups, group{parent: parent})
	return int32(len(c.groups) - 1)
}

// add records a text.
func (c *collection) add(f *decode.Frame, index int, path, name string, group int32, text string) {
	key := streamKey{f.Dir, path}
	s := c.index[key]
	if s == nil {
		if len(c.streams) >= maxStreams {
			c.truncated = true
			return
		}
		s = &stream{dir: f.Dir, path: path, name: name}
		c.index[key] = s
		c.streams = append(c.streams, s)
	}
	if s.bytes+len(text) > c.maxText {
		c.truncated = true
		return
	}
	s.bytes += len(text)
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
}

func (w *treeWalk) walk() {
	w.c.at = w.shape.Locate(w.tree, w.c.at, false)
	w.paths = make(map[shape.Path]string)
	w.message(0, w.c.newGroup(-1))
}

func (w *treeWalk) message(i, group int32) {
	for child := range w.tree.Children(i) {
		n := &w.tree.Nodes[child]
		at := w.c.at[child]
		switch {
		case n.Type != wire.Len && n.Type != wire.StartGroup:
		case w.shape.IsMessage(w.tree, child, at):
			w.message(child, w.c.newGroup(group))
		case w.shape.Kind(at) == shape.Text && n.Type == wire.Len && n.Val < n.End:
			if payload := w.tree.Payload(child); shape.FitOf(payload) != shape.Not || len(payload) < 4 {
				w.c.add(w.frame, w.index, w.path(at), "", group, string(payload))
			}
		}
	}
}

func (w *treeWalk) path(at shape.Path) string {
	p, ok := w.paths[at]
	if !ok {
		p = w.shape.String(at)
		w.paths[at] = p
	}
	return p
}

// body collects the texts of a frame that is not protobuf: JSON, lines of JSON,
// or text.
func (c *collection) body(f *decode.Frame, index int) {
	data := bytes.TrimSpace(f.Data)
	if len(data) == 0 {
		return
	}
	if v, ok := parseJSON(data); ok {
		c.value(f, index, nil, v, c.newGroup(-1))
		return
	}
	if lines := bytes.Split(data, []byte("\n")); len(lines) > 1 {
		if values, ok := parseLines(lines); ok {
			for _, v := range values {
				c.value(f, index, nil, v, c.newGroup(-1))
			}
			return
		}
	}
	if shape.FitOf(f.Data) != shape.Not {
		c.add(f, index, "", "", c.newGroup(-1), string(f.Data))
	}
}

func parseJSON(data []byte) (any, bool) {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	var v any
	if d.Decode(&v) != nil || d.InputOffset() != int64(len(data)) {
		return nil, false
	}
	switch v.(type) {
	case map[string]any, []any:
		return v, true
	}
	return nil, false
}

func parseLines(lines [][]byte) ([]any, bool) {
	var values []any
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

// value collects the strings of a JSON value, member by member in the order of
// their names.
func (c *collection) value(f *decode.Frame, index int, path []string, v any, group int32) {
	if len(path) > maxDepth {
		c.truncated = true
		return
	}
	switch v := v.(type) {
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			inner := group
			if _, ok := v[name].(map[string]any); ok {
				inner = c.newGroup(group)
			}
			c.value(f, index, append(path, name), v[name], inner)
		}
	case []any:
		for _, e := range v {
			inner := group
			if _, ok := e.(map[string]any); ok {
				inner = c.newGroup(group)
			}
			c.value(f, index, path, e, inner)
		}
	case string:
		name := ""
		if len(path) > 0 {
			name = path[len(path)-1]
		}
		if v != "" {
			c.add(f, index, strings.Join(path, "."), name, group, v)
		}
	}
}

// split parts the streams whose texts are told apart by a field beside them: a
// role, or the name of a kind, as {"type":"text_delta","text":"Hi"} has it.
func (c *collection) split() []*stream {
	for _, s := range c.streams {
		tells := s.tells()
		for _, p := range s.pieces {
			g := &c.groups[p.group]
			if tells {
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
			if !s.tells() {
				label = c.labelOf(p.group)
			}
			part := parts[label]
			if part == nil {
				part = &stream{dir: s.dir, path: s.path, name: s.name, label: label}
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
