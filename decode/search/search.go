// Package search finds text, bytes, numbers and field paths in decoded frames. It looks through compression, hex
// and base64 in strings, JSON, and messages inside messages. A Query and an exchange go in, and each Match comes
// out with its frame, field path and excerpt. No schema is needed:
//
//	text, err := search.NewText("rate limit", true, true)
//	err = search.Exchange(ctx, capture, record, search.Query{Text: text}, search.Scope{}, func(m search.Match) bool {
//		fmt.Println(m.Frame, m.Path, m.Value)
//		return true
//	})
//
// A pattern for text is a literal or a regular expression. Text that a server sends in several frames is also
// found across frames, if the frames have it in the same field. Paths in a query may have wildcards.
//
// The command grep, the filter language, the workbench and rules of the proxy use this package. Values visits
// fields by path without a pattern. Endpoints finds URLs of servers in responses, so that the recorder can
// record those servers too.
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

// A Query describes what to find. At most one of Text, Bytes and Number may be set. Without any of them, every
// field at Path matches.
type Query struct {
	// Text is searched in strings, bytes, JSON and plain bodies.
	Text *Text

	// Bytes is a byte string that is searched for anywhere in a frame's data.
	Bytes []byte

	// Number is searched in varints, fixed values, packed lists and JSON.
	Number *Number

	// Path restricts matches to paths that match this pattern (see fieldpath.ParsePattern). nil matches all.
	Path fieldpath.Path
}

// A Match is one result of a search.
type Match struct {
	// Dir is the direction of the frame with the match.
	Dir captures.Direction

	// Frame is the number of the frame in which the match begins, or -1 for a header.
	Frame int

	// Frames are the numbers of all frames that the match extends over.
	Frames []int

	// Path consists of field numbers joined by dots. An encoding in parentheses, as in 3(hex).1, precedes the
	// path inside decoded data. It is "" for a body without fields.
	Path string

	// Kind is one of "string", "bytes", "message", "varint", "fixed32", "fixed64", "packed", "json", "text",
	// "header" and "url".
	Kind string

	// Value is the text around the match, or the matching value.
	Value string

	// Start is the offset in Value, in bytes, at which the match begins.
	Start int

	// End is the offset in Value, in bytes, after the match.
	End int
}

const (
	// tailLen is the number of bytes at the end of a field's text that are kept, because a match may continue in
	// the next frame.
	tailLen = 4 << 10

	// contextLen is the number of bytes of text that are shown before and after a match.
	contextLen = 60

	// maxDepth is the maximum nesting of data inside data.
	maxDepth = 4

	// maxTails is the maximum number of fields in an exchange whose texts are joined across frames.
	maxTails = 4096

	// maxPerValue is the maximum number of matches in one value.
	maxPerValue = 1000

	// maxPackedText is the size in bytes above which text is not considered packed numbers.
	maxPackedText = 16

	// maxJSONLen is the maximum size in bytes of a JSON document that is parsed.
	maxJSONLen = 16 << 20
)

// A searcher searches the frames of one exchange, in order. It also finds text that continues in the same field
// of the next frames.
//
// Limits: matches across frames extend over at most 4 KiB, and one value has at most 1,000 matches.
type searcher struct {
	// q is the query.
	q Query

	// emit receives the matches. If it returns false, the search ends.
	emit func(Match) bool

	// over means that a callback has ended the search.
	over bool

	// find decodes data that is encoded inside fields.
	find nested.Finder

	// alone means that only one frame is searched, so that no text continues in another one.
	alone bool

	// tails are the texts that may continue in the next frame; nil if there was none.
	tails map[tailKey]*tail

	// round is the number of frames searched so far.
	round int

	// found is the number of matches so far.
	found int

	// both is reused memory for the end of a field's text and its continuation.
	both []byte

	// frame is the frame that is being searched.
	frame *decode.Frame

	// steps are the fields, members and elements that lead from the frame to the current value.
	steps []step

	// onValue, if set, is called with each value at the query's path until it returns false, and emit is not used.
	// It is for the function Values.
	onValue func(Value) bool

	// declared is the definition of the frame's message, or nil.
	declared protoreflect.MessageDescriptor

	// reader infers the types of the fields in the message readOf.
	reader *kind.Reader

	// readOf is the message for which reader was prepared; nil if there is none yet.
	readOf *wire.Tree
}

// A step is one element of the path to the current value: a field, or a member or element of JSON.
type step struct {
	// number is the field's number, if the step is a field.
	number uint64

	// name is the name or index in JSON; "" for a field.
	name string

	// enc is the encoding, such as hex, that was undone to get to the message or JSON that contains the step; or
	// "".
	enc string

	// tree is the message that contains the field; nil for a step in JSON.
	tree *wire.Tree

	// node is the index of the field in tree.Nodes; not used if tree is nil.
	node int32

	// declared is the declaration of the field; nil if unknown.
	declared protoreflect.FieldDescriptor
}

// newSearcher returns a searcher that calls emit with each match.
func newSearcher(q Query, emit func(Match) bool) *searcher {
	return &searcher{q: q, emit: emit}
}

// Done reports whether the callback emit has ended the search.
func (s *searcher) Done() bool { return s.over }

// Frame searches one frame, and reports its matches.
func (s *searcher) Frame(f *decode.Frame) {
	if s.over {
		return
	}
	s.frame = f
	s.round++
	s.steps = s.steps[:0]
	switch {
	case f.Tree != nil:
		s.searchTree(f.Tree, "")
		s.searchCarried(f)
	case len(f.Data) > 0:
		s.searchBody(f.Data, "", 0)
	}
}

// searchCarried searches inner messages (encoded in fields) that only the profile identifies as messages, because
// they are too short to be detected.
func (s *searcher) searchCarried(f *decode.Frame) {
	for _, in := range f.Inner {
		if in.Tree == nil {
			continue
		}
		if _, ok := s.find.Find(f.Tree.Payload(in.Node)); ok {
			// The tree walk has found it already.
			continue
		}
		n := f.Tree.Node(in.Node)
		s.steps = append(s.steps[:0], step{number: n.Number, tree: f.Tree, node: in.Node})
		s.searchTree(in.Tree, in.Encoding)
	}
	s.steps = s.steps[:0]
}

// searchTree searches a message. enc is the encoding that contained it, or "".
func (s *searcher) searchTree(t *wire.Tree, enc string) {
	if len(s.q.Bytes) > 0 {
		s.searchBytes(t, enc)
	}
	s.searchChildren(t, 0, enc)
}

// searchChildren searches the child nodes of node i. enc is the encoding inside which the message t was found, or
// "".
func (s *searcher) searchChildren(t *wire.Tree, i int32, enc string) {
	for c := t.Nodes[i].First; c != wire.None && !s.over; c = t.Nodes[c].Next {
		n := &t.Nodes[c]
		if n.Type == wire.Garbage {
			if s.q.Text != nil && len(t.Payload(c)) > 0 {
				s.searchText(t.Payload(c), "bytes", false)
			}
			continue
		}
		s.steps = append(s.steps, step{number: n.Number, enc: enc, tree: t, node: c, declared: s.declarationOf(n, enc)})
		s.visit(t, c, n)
		s.steps = s.steps[:len(s.steps)-1]
	}
}

// searchNode searches the field in node c of message t.
func (s *searcher) searchNode(t *wire.Tree, c int32, n *wire.Node) {
	switch {
	case s.onValue != nil:
		s.reportValue(Value{Tree: t, Node: c, Declared: s.steps[len(s.steps)-1].declared})
	case s.matchesAnyValue():
		s.reportField(t, c, n)
	}
	switch n.Type {
	case wire.Varint, wire.I32, wire.I64:
		if s.q.Number != nil && s.q.Number.matches(n.Type, t.Uint(c)) {
			s.reportNumber(n.Type, t.Uint(c))
		}
	case wire.StartGroup:
		s.searchChildren(t, c, "")
	case wire.Len:
		s.searchPayload(t, c, n)
	}
}

// searchPayload searches the length-delimited value of node c in message t: the fields of a message, or else the
// text and any data encoded inside it.
func (s *searcher) searchPayload(t *wire.Tree, c int32, n *wire.Node) {
	data := t.Payload(c)
	if len(data) == 0 {
		return
	}
	if n.First != wire.None {
		// The payload parses as a message, but text may do so, too.
		message := !isPlain(data)
		if !message {
			is, _ := s.probableType(t, c)
			message = is == wire.KindMessage
		}
		if message {
			s.searchChildren(t, c, "")
			return
		}
	}

	if s.q.Number != nil {
		s.searchPacked(t, c, data)
	}
	// A match in a JSON member must not be reported again for the JSON text.
	before := s.found
	if s.encodingDepth() < maxDepth {
		s.searchInside(data)
	}
	if s.q.Text != nil && s.found == before {
		s.searchText(data, "", true)
	}
}

// encodingDepth returns the number of encodings around the current value.
func (s *searcher) encodingDepth() (d int) {
	for i := range s.steps {
		if s.steps[i].enc != "" {
			d++
		}
	}
	return d
}

// searchInside searches the content of a value that itself is encoded data, such as a message in base64.
func (s *searcher) searchInside(data []byte) {
	in, ok := s.find.Find(data)
	if !ok {
		return
	}

	// Every encoding becomes a step of the path.
	enc := in.Encoding
	switch in.Form {
	case nested.Message:
		s.searchTree(in.Tree, enc)
	case nested.Frames:
		if enc == "" {
			enc = "frames"
		}
		frames, _ := envelope.Split(in.Data)
		for i := range frames {
			payload := frames[i].Raw

			// A frame whose payload is no valid message can still contain the text.
			if t := wire.Parse(payload, wire.Options{}); t.Err() == nil {
				s.searchTree(t, enc)
			} else if s.q.Text != nil {
				s.searchText(payload, "bytes", false)
			}
		}
	case nested.JSON:
		if enc == "" {
			enc = "json"
		}
		s.searchBody(in.Data, enc, 1)
	default:
		if s.q.Text != nil {
			s.searchText(in.Data, "bytes", false)
		}
		if k := bytes.Index(in.Data, s.q.Bytes); len(s.q.Bytes) > 0 && k >= 0 {
			s.reportExcerpt("bytes", in.Data, k, k+len(s.q.Bytes), true)
		}
	}
}

// searchBody searches data that is not protobuf: JSON, or any text. enc is the encoding inside which it was found,
// or "", and depth the number of encodings around it.
func (s *searcher) searchBody(data []byte, enc string, depth int) {
	if k := bytes.Index(data, s.q.Bytes); len(s.q.Bytes) > 0 && k >= 0 && depth == 0 {
		s.reportExcerpt("text", data, k, k+len(s.q.Bytes), true)
	}

	// JSON is searched value by value, other text as a whole.
	trimmed := bytes.TrimSpace(data)
	if len(trimmed) > 1 && len(trimmed) <= maxJSONLen && (trimmed[0] == '{' || trimmed[0] == '[') {
		if root, err := jsontree.Parse(trimmed); err == nil {
			s.searchJSON(root, enc)
			return
		}
	}
	if s.q.Text != nil && depth == 0 {
		s.searchText(data, "text", false)
	}
}

// matchesAnyValue reports whether the query has only a path, so that all values at the path match.
func (s *searcher) matchesAnyValue() bool {
	return s.onValue == nil && s.q.Text == nil && s.q.Number == nil && len(s.q.Bytes) == 0
}

// searchBytes searches a message's bytes for Query.Bytes, and reports each match once, at the innermost field.
func (s *searcher) searchBytes(t *wire.Tree, enc string) {
	for from := 0; from < len(t.Data) && !s.over; {
		k := bytes.Index(t.Data[from:], s.q.Bytes)
		if k < 0 {
			return
		}
		at := from + k
		from = at + 1
		outer := len(s.steps)
		i := t.At(at)

		// Build the path from the innermost field upwards.
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
		s.reportExcerpt("bytes", t.Data, at, at+len(s.q.Bytes), true)
		s.steps = s.steps[:outer]
	}
}

// searchPacked searches the value of node c for Query.Number if its most probable type is a packed list.
func (s *searcher) searchPacked(t *wire.Tree, c int32, data []byte) {
	if len(data) > maxPackedText && isPlain(data) {
		// Packed numbers rarely look like this much text.
		return
	}
	for _, typ := range [...]string{"packed varint", "packed fixed32", "packed fixed64"} {
		for _, v := range kind.PackedValues(typ, data) {
			if !s.q.Number.matches(packedType(typ), v) {
				continue
			}
			if _, best := s.probableType(t, c); kind.ElementOf(best) == kind.ElementOf(typ) {
				s.reportWhole("packed", numberText(packedType(typ), v))
				return
			}
			break
		}
	}
}

// packedType returns the wire type of a packed list's elements.
func packedType(typ string) wire.Type {
	switch kind.ElementOf(typ) {
	case kind.PackedFixed32:
		return wire.I32
	case kind.PackedFixed64:
		return wire.I64
	}
	return wire.Varint
}

// reportNumber reports a field that contains a number as a match.
func (s *searcher) reportNumber(typ wire.Type, v uint64) {
	s.reportWhole(kindOf(typ), numberText(typ, v))
}

// reportField reports the field in node c of message t as a match of a query that has only a path.
func (s *searcher) reportField(t *wire.Tree, c int32, n *wire.Node) {
	if !s.pathMatches() {
		return
	}
	if n.Type != wire.Len && n.Type != wire.StartGroup {
		s.reportNumber(n.Type, t.Uint(c))
		return
	}
	data := t.Payload(c)
	switch is, typ := s.probableType(t, c); is {
	case wire.KindMessage, wire.KindGroup:
		s.reportWhole(string(is), strconv.Itoa(len(data))+" bytes")
	case wire.KindString:
		s.reportWhole("string", string(data))
	case wire.KindPacked:
		s.reportWhole(string(is), strings.Trim(fmt.Sprint(s.reader.Value(c, typ)), "[]"))
	default:
		s.reportWhole(string(is), hexText(data))
	}
}

// probableType returns the most probable type of a node, inferred from its message alone.
func (s *searcher) probableType(t *wire.Tree, c int32) (k wire.Kind, typ string) {
	switch {
	case s.reader == nil:
		s.reader = kind.NewReader(t, nil)
	case s.readOf != t:
		s.reader.Reset(t)
	}
	s.readOf = t
	k, typ, _ = s.reader.Best(c)
	return k, typ
}

// kindOf returns the name of the kind of a number with wire type typ.
func kindOf(typ wire.Type) string {
	switch typ {
	case wire.I32:
		return string(wire.KindFixed32)
	case wire.I64:
		return string(wire.KindFixed64)
	}
	return string(wire.KindVarint)
}

// pathMatches reports whether the path of the current value matches the query's pattern.
func (s *searcher) pathMatches() bool { return s.q.Path == nil || matchSteps(s.q.Path, s.steps) }

// reportWhole reports the whole value v as a match, if its path matches.
func (s *searcher) reportWhole(kind, v string) {
	if s.pathMatches() {
		s.emitMatch(Match{Kind: kind, Value: shorten(v), End: len(shorten(v))}, nil)
	}
}

// shorten truncates a value to 4*contextLen bytes for output.
func shorten(s string) string {
	if len(s) <= 4*contextLen {
		return s
	}
	return strings.ToValidUTF8(s[:4*contextLen], "") + "…"
}

// reportExcerpt reports data[lo:hi] with the surrounding text as a match, if the path matches. asHex formats it in
// hex.
func (s *searcher) reportExcerpt(kind string, data []byte, lo, hi int, asHex bool) {
	if !s.pathMatches() {
		return
	}
	m := around(data, lo, hi, asHex)
	m.Kind = kind
	s.emitMatch(m, nil)
}

// emitMatch completes a match with frame and path, and calls emit.
func (s *searcher) emitMatch(m Match, frames []int) {
	m.Dir, m.Frame, m.Frames = s.frame.Dir, s.frame.Seq, frames
	if frames == nil {
		m.Frames = []int{s.frame.Seq}
	} else {
		m.Frame = frames[0]
	}
	m.Path = s.pathText()
	s.found++
	if !s.emit(m) {
		s.over = true
	}
}

// pathText formats the current path, as in 3(hex).1.2, with an index where a field repeats.
func (s *searcher) pathText() string {
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

// indexOf returns the position of a node among siblings of the same number. many is true if there are several.
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
