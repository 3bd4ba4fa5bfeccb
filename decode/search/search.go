// Package search finds text, bytes, numbers and field paths inside decoded frames:
// through compression, hex and base64 in strings, JSON, and messages within messages. A
// Query and frames, or an exchange, go in; each Match comes out with its frame, its
// field path and an excerpt. No schema is needed.
//
// A pattern of text is a literal or a regular expression. A text that a server sends in
// several frames is also found where it runs across frames, if they have it in the same
// field. An excerpt is the text around a match, or the bytes around it in hex. A path in
// a query may have wildcards.
//
// Endpoints uses the same view of frames for another purpose: it finds the URLs of
// servers that an answer names and that are not recorded yet.
//
// Source: decode/README.md#search
package search

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"

	"unwire/captures"
	"unwire/decode"
	"unwire/decode/envelope"
	"unwire/decode/fieldpath"
	"unwire/decode/jsontree"
	"unwire/decode/kind"
	"unwire/decode/nested"
	"unwire/decode/wire"
)

// A Query says what to look for. Of Text, Bytes and Number one may be set; with
// none of them every field at Path is found.
type Query struct {
	Text   *Text          // in strings, bytes, JSON and plain bodies
	Bytes  []byte         // anywhere in a frame's data
	Number *Number        // in varints, fixed values, packed ones and JSON
	Path   fieldpath.Path // as ParsePath returns it; nil: any
}

// A Match is a place where something was found.
type Match struct {
	Dir    captures.Direction
	Frame  int   // in which it begins
	Frames []int // all that it spans

	// Path is field numbers joined by dots; (hex) and the like where the value was
	// something else inside; "" for a body without fields
	Path string

	// Kind is one of "string", "bytes", "message", "varint", "fixed32", "fixed64", "packed",
	// "json", "text", "header", "url"
	Kind  string
	Value string // the text around the match, or the value
	Start int    // of the match in Value, and its
	End   int    // end
}

const (
	// tailLen bounds the bytes of a path's text that are kept for what goes on in
	// the next frame.
	tailLen = 4 << 10

	contextLen    = 60       // bytes of text on either side of a match
	maxDepth      = 4        // levels of data inside data
	maxTails      = 4096     // paths of an exchange whose text is joined
	maxPerValue   = 1000     // matches in one value
	maxPackedText = 16       // bytes
	maxJSONLen    = 16 << 20 // bytes of a JSON document that is taken apart
)

// A searcher looks into the frames of one exchange, in order. A text that goes
// on in the same field of the direction's next frames is found, too.
//
// Limits: of what spans frames at most 4 KiB; 1,000 matches in one value.
type searcher struct {
	q     Query
	emit  func(Match) bool // false ends the search
	over  bool
	find  nested.Finder
	tails map[tailKey]*tail
	round int // frames seen
	found int
	both  []byte // the end of a field's text and what goes on, joined

	frame *decode.Frame
	steps []step

	// onValue, if set, is called with each value instead of emit, and declared is the
	// definition of the frame's message, if there is one.
	onValue  func(Value)
	declared protoreflect.MessageDescriptor

	reader *kind.Reader // of the tree that was asked about last
	readOf *wire.Tree
}

// A step is a field, or a member of JSON.
type step struct {
	number uint64
	name   string // of JSON; "" for a field
	enc    string // the value above was this inside
	tree   *wire.Tree
	node   int32

	declared protoreflect.FieldDescriptor // nil if that is not known
}

// newSearcher returns a Searcher that hands what it finds to emit.
func newSearcher(q Query, emit func(Match) bool) *searcher {
	return &searcher{q: q, emit: emit, tails: map[tailKey]*tail{}}
}

// Done reports whether emit has ended the search.
func (s *searcher) Done() bool { return s.over }

// Frame looks into one frame.
func (s *searcher) Frame(f *decode.Frame) {
	if s.over {
		return
	}
	s.frame = f
	s.round++
	s.steps = s.steps[:0]
	switch {
	case f.Tree != nil:
		s.tree(f.Tree, "")
		s.carried(f)
	case len(f.Data) > 0:
		s.body(f.Data, "", 0)
	}
}

// carried looks into messages that only their place tells to be some: those of
// fewer bytes than would be believed elsewhere.
func (s *searcher) carried(f *decode.Frame) {
	for _, in := range f.Inner {
		if in.Tree == nil {
			continue
		}
		if _, ok := s.find.Find(f.Tree.Payload(in.Node)); ok {
			continue // it was found on the way
		}
		n := f.Tree.Node(in.Node)
		s.steps = append(s.steps[:0], step{number: n.Number, tree: f.Tree, node: in.Node})
		s.tree(in.Tree, in.Encoding)
	}
	s.steps = s.steps[:0]
}

// tree looks into a message, which was in enc.
func (s *searcher) tree(t *wire.Tree, enc string) {
	if len(s.q.Bytes) > 0 {
		s.bytes(t, enc)
	}
	s.children(t, 0, enc)
}

func (s *searcher) children(t *wire.Tree, i int32, enc string) {
	for c := t.Nodes[i].First; c != wire.None && !s.over; c = t.Nodes[c].Next {
		n := &t.Nodes[c]
		if n.Type == wire.Garbage {
			if s.q.Text != nil && len(t.Payload(c)) > 0 {
				s.text(t.Payload(c), "bytes", false)
			}
			continue
		}
		s.steps = append(s.steps, step{number: n.Number, enc: enc, tree: t, node: c, declared: s.declarationOf(n, enc)})
		s.node(t, c, n)
		s.steps = s.steps[:len(s.steps)-1]
	}
}

func (s *searcher) node(t *wire.Tree, c int32, n *wire.Node) {
	switch {
	case s.onValue != nil:
		s.onValue(Value{Tree: t, Node: c, Declared: s.steps[len(s.steps)-1].declared})
	case s.everything():
		s.listed(t, c, n)
	}
	switch n.Type {
	case wire.Varint, wire.I32, wire.I64:
		if s.q.Number != nil && s.q.Number.matches(n.Type, t.Uint(c)) {
			s.number(n.Type, t.Uint(c))
		}
	case wire.StartGroup:
		s.children(t, c, "")
	case wire.Len:
		s.payload(t, c, n)
	}
}

// payload looks into a length-delimited value: at its fields where it is a
// message, else at its text and what that may stand for.
func (s *searcher) payload(t *wire.Tree, c int32, n *wire.Node) {
	data := t.Payload(c)
	if len(data) == 0 {
		return
	}
	if n.First != wire.None {
		message := !isPlain(data)
		if !message {
			is, _ := s.best(t, c)
			message = is == wire.KindMessage
		}
		if message {
			s.children(t, c, "")
			return
		}
	}
	if s.q.Number != nil {
		s.packed(t, c, data)
	}
	// What is found in a member of JSON need not be found in its text again.
	before := s.found
	if s.depth() < maxDepth {
		s.inside(data)
	}
	if s.q.Text != nil && s.found == before {
		s.text(data, "", true)
	}
}

// depth is how many times data is inside data here.
func (s *searcher) depth() (d int) {
	for i := range s.steps {
		if s.steps[i].enc != "" {
			d++
		}
	}
	return d
}

// inside looks at what a value holds in another form.
func (s *searcher) inside(data []byte) {
	in, ok := s.find.Find(data)
	if !ok {
		return
	}
	enc := in.Encoding
	switch in.Form {
	case nested.Message:
		s.tree(in.Tree, enc)
	case nested.Frames:
		if enc == "" {
			enc = "frames"
		}
		frames, _ := envelope.Split(in.Data)
		for i := range frames {
			payload := frames[i].Raw
			if t := wire.Parse(payload, wire.Options{}); t.Err() == nil {
				s.tree(t, enc)
			} else if s.q.Text != nil {
				s.text(payload, "bytes", false)
			}
		}
	case nested.JSON:
		if enc == "" {
			enc = "json"
		}
		s.body(in.Data, enc, 1)
	default:
		if s.q.Text != nil {
			s.text(in.Data, "bytes", false)
		}
		if k := bytes.Index(in.Data, s.q.Bytes); len(s.q.Bytes) > 0 && k >= 0 {
			s.hit("bytes", in.Data, k, k+len(s.q.Bytes), true)
		}
	}
}

// body looks into a body without fields: JSON, or any text.
func (s *searcher) body(data []byte, enc string, depth int) {
	if k := bytes.Index(data, s.q.Bytes); len(s.q.Bytes) > 0 && k >= 0 && depth == 0 {
		s.hit("text", data, k, k+len(s.q.Bytes), true)
	}
	trimmed := bytes.TrimSpace(data)
	if len(trimmed) > 1 && len(trimmed) <= maxJSONLen && (trimmed[0] == '{' || trimmed[0] == '[') {
		if root, err := jsontree.Parse(trimmed); err == nil {
			s.json(root, enc)
			return
		}
	}
	if s.q.Text != nil && depth == 0 {
		s.text(data, "text", false)
	}
}

// everything reports that all values at the path are wanted.
func (s *searcher) everything() bool {
	return s.onValue == nil && s.q.Text == nil && s.q.Number == nil && len(s.q.Bytes) == 0
}

// bytes finds Bytes in a message's bytes: each once, at the innermost field.
func (s *searcher) bytes(t *wire.Tree, enc string) {
	for from := 0; from < len(t.Data) && !s.over; {
		k := bytes.Index(t.Data[from:], s.q.Bytes)
		if k < 0 {
			return
		}
		at := from + k
		from = at + 1
		outer := len(s.steps)
		i := t.At(at)
		var up []int32
		for n := i; n > 0; n = t.Nodes[n].Parent {
			if t.Nodes[n].Type != wire.Garbage {
				up = append(up, n)
			}
		}
		for k := len(up) - 1; k >= 0; k-- {
			e := ""
			if k == len(up)-1 {
				e = enc
			}
			s.steps = append(s.steps, step{number: t.Nodes[up[k]].Number, enc: e, tree: t, node: up[k]})
		}
		s.hit("bytes", t.Data, at, at+len(s.q.Bytes), true)
		s.steps = s.steps[:outer]
	}
}

// packed finds the number in a value that is rather packed than anything else.
func (s *searcher) packed(t *wire.Tree, c int32, data []byte) {
	if len(data) > maxPackedText && isPlain(data) {
		return // numbers do not look like that much text
	}
	for _, typ := range [...]string{"packed varint", "packed fixed32", "packed fixed64"} {
		for _, v := range kind.PackedValues(typ, data) {
			if !s.q.Number.matches(packedType(typ), v) {
				continue
			}
			if _, best := s.best(t, c); kind.ElementOf(best) == kind.ElementOf(typ) {
				s.value("packed", numberText(packedType(typ), v))
				return
			}
			break
		}
	}
}

func packedType(typ string) wire.Type {
	switch kind.ElementOf(typ) {
	case kind.PackedFixed32:
		return wire.I32
	case kind.PackedFixed64:
		return wire.I64
	}
	return wire.Varint
}

func (s *searcher) number(typ wire.Type, v uint64) { s.value(kindOf(typ), numberText(typ, v)) }

// listed gives a field out because of its path alone.
func (s *searcher) listed(t *wire.Tree, c int32, n *wire.Node) {
	if !s.wanted() {
		return
	}
	if n.Type != wire.Len && n.Type != wire.StartGroup {
		s.number(n.Type, t.Uint(c))
		return
	}
	data := t.Payload(c)
	switch is, _ := s.best(t, c); is {
	case wire.KindMessage, wire.KindGroup:
		s.value(string(is), strconv.Itoa(len(data))+" bytes")
	case wire.KindString:
		s.value("string", string(data))
	case wire.KindPacked:
		s.value(string(is), strings.Trim(fmt.Sprint(s.reader.Readings(c)[0].Value), "[]"))
	default:
		s.value(string(is), hexText(data))
	}
}

// best is the likeliest reading of a node, by its tree alone.
func (s *searcher) best(t *wire.Tree, c int32) (k wire.Kind, typ string) {
	if s.readOf != t {
		s.reader, s.readOf = kind.NewReader(t, nil), t
	}
	k, typ, _ = s.reader.Best(c)
	return k, typ
}

func kindOf(typ wire.Type) string {
	switch typ {
	case wire.I32:
		return string(wire.KindFixed32)
	case wire.I64:
		return string(wire.KindFixed64)
	}
	return string(wire.KindVarint)
}

// wanted reports whether the path here is one that is asked for.
func (s *searcher) wanted() bool { return s.q.Path == nil || matchSteps(s.q.Path, s.steps) }

// value gives out a value as a whole.
func (s *searcher) value(kind, v string) {
	if s.wanted() {
		s.send(Match{Kind: kind, Value: cut(v), End: len(cut(v))}, nil)
	}
}

func cut(s string) string {
	if len(s) <= 4*contextLen {
		return s
	}
	return strings.ToValidUTF8(s[:4*contextLen], "") + "…"
}

// hit gives out a stretch of data with what is around it.
func (s *searcher) hit(kind string, data []byte, lo, hi int, asHex bool) {
	if !s.wanted() {
		return
	}
	m := around(data, lo, hi, asHex)
	m.Kind = kind
	s.send(m, nil)
}

func (s *searcher) send(m Match, frames []int) {
	m.Dir, m.Frame, m.Frames = s.frame.Dir, s.frame.Seq, frames
	if frames == nil {
		m.Frames = []int{s.frame.Seq}
	} else {
		m.Frame = frames[0]
	}
	m.Path = s.path()
	s.found++
	if !s.emit(m) {
		s.over = true
	}
}

// path writes the steps: 3(hex).1.2, with an index where a field is repeated.
func (s *searcher) path() string {
	var b strings.Builder
	for i := range s.steps {
		st := &s.steps[i]
		if st.enc != "" {
			b.WriteString("(" + st.enc + ")")
		}
		if b.Len() > 0 {
			b.WriteByte('.')
		}
		if st.tree == nil {
			b.WriteString(st.name)
			continue
		}
		b.WriteString(strconv.FormatUint(st.number, 10))
		if k, many := indexOf(st.tree, st.node); many {
			b.WriteString("[" + strconv.Itoa(k) + "]")
		}
	}
	return b.String()
}

// indexOf is a node's place among its siblings of the same number.
func indexOf(t *wire.Tree, i int32) (index int, many bool) {
	count := 0
	for c := range t.Children(t.Nodes[i].Parent) {
		if t.Nodes[c].Number != t.Nodes[i].Number || t.Nodes[c].Type == wire.Garbage {
			continue
		}
		if c == i {
			index = count
		}
		count++
	}
	return index, count > 1
}
