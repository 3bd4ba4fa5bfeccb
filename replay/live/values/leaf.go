package values

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"

	"unwire/decode"
	"unwire/decode/fieldpath"
	"unwire/decode/jsontree"
	"unwire/decode/wire"
)

// Limits for examining one message.
const (
	maxLeaves    = 20_000
	maxLeafDepth = 32
	// maxLeafPath is the length in bytes of a path up to which the members of a JSON object or array are values of
	// their own. The paths of 20,000 members in an object with a long name would not fit into memory.
	maxLeafPath = 1024
	// longLeaf is the size in bytes above which a value is compared by its hash.
	longLeaf = 128
	// ShortText is the size in bytes below which a text is an id only in a place where ids are
	// known to occur.
	ShortText   = 8
	smallNumber = 1 << 16
	// shapeLikeness is the share of their inner fields that two frames must have in common.
	shapeLikeness = 0.5
)

// A Leaf is a value in a protobuf or JSON message: a scalar, a text, bytes, or a nested message. A
// nested message is a leaf itself, followed by those of its content.
type Leaf struct {
	// Path selects only this value, such as 2.1, 1.3[1] or result.id.
	Path string
	// Last is the last step of the path without its index.
	Last string
	// Depth is the number of messages that enclose the value.
	Depth int
	// Value is the value in a form for comparison: "n" and a number, or "t" and a text; long texts are
	// hashed.
	Value string
	// Number means that the value is a number.
	Number bool
	// Small means that the value is too common to be recognised as an id, except at a path where ids
	// are known to occur.
	Small bool
	// Inner is the number of the following leaves that are nested in this one.
	Inner int
	// top means that the value is a text, bytes or message at the top level.
	top bool
	// sub means that the value is a text, bytes or message one level below the top.
	sub bool
	// Data is the content of a text, bytes or message; nil for a number.
	Data []byte

	// Object means that the value is a JSON object or array.
	Object bool

	// Opaque means that the value is bytes that can be parsed as a message, perhaps by chance. It then
	// has both Data and inner leaves.
	Opaque bool

	// perhaps means that other messages of the same kind may lack this leaf: digits in a JSON string
	// (possibly a 64-bit number), and values inside opaque bytes.
	perhaps bool

	// place is the position of the value in the encoded message.
	place
	// Budget limits how many bytes are decompressed to find parts of the value; nil means a small
	// budget.
	Budget *Budget
}

// A place is the position of a leaf in the encoded message: a node in protobuf, or a value in JSON.
type place struct {
	// node is the index of the leaf's node in the parsed protobuf message.
	node int32
	// wireType is the wire type of that node.
	wireType wire.Type
	// json is the leaf's value in the parsed JSON message.
	json jsontree.Value
	// key means that the leaf is the name of the JSON member, and not its value.
	key bool
}

// Leaves returns the values in a frame's message; a nested message precedes its content. md is the
// message's type; nil if unknown. Without it, a text that can be parsed as a message counts as one,
// unless it looks like an identifier.
func Leaves(f *decode.Frame, md protoreflect.MessageDescriptor) []Leaf {
	if f.Tree != nil {
		return protoLeaves(nil, f.Tree, 0, md, "", 1)
	}
	if f.End != nil {
		return nil
	}
	root, err := jsontree.Parse(f.Data)
	if err != nil && len(f.Data) > 0 {
		// A text that is no JSON: its words may be identifiers.
		l := Leaf{Depth: 1}
		l.SetText(f.Data)
		return []Leaf{l}
	}
	if err != nil {
		return nil
	}
	// Well-known types have their own JSON forms.
	if k := root.Kind(); k != jsontree.Object && k != jsontree.Array {
		return []Leaf{jsonScalar(Leaf{Depth: 1, place: place{json: root}}, root)}
	}
	return jsonLeaves(nil, root, "", 1)
}

// protoLeaves appends the values below the node parent of a protobuf message to out. prefix is the path
// of parent, and depth the number of messages that enclose the values.
func protoLeaves(out []Leaf, t *wire.Tree, parent int32, md protoreflect.MessageDescriptor, prefix string, depth int) []Leaf {
	counts, order := map[uint64]int{}, entryOrder(t, parent)
	for c := range t.Children(parent) {
		counts[t.Node(c).Number]++
	}
	seen := map[uint64]int{}
	for c := range t.Children(parent) {
		n := t.Node(c)
		if n.Type == wire.Garbage || len(out) >= maxLeaves {
			continue
		}

		// Maps have no order on the wire, so their entries are visited in the order of their keys.
		if entries := order[n.Number]; seen[n.Number] < len(entries) {
			c = entries[seen[n.Number]].node
			n = t.Node(c)
		}
		l := Leaf{Last: strconv.FormatUint(n.Number, 10), Depth: depth, place: place{node: c, wireType: n.Type}}
		l.Path = prefix + l.Last
		if counts[n.Number] > 1 {
			l.Path += "[" + strconv.Itoa(seen[n.Number]) + "]"
		}
		seen[n.Number]++

		// A nested message is followed by its own leaves.
		at := len(out)
		if n.Type == wire.StartGroup || n.Type == wire.Len {
			l.SetText(t.Payload(c))
			out = append(out, l)
			if inner, ok := messageIn(md, n.Number); ok && t.IsMessage(c) && (inner != nil || !isIdentifier(t, c)) && depth < maxLeafDepth {
				out = protoLeaves(out, t, c, inner, l.Path+".", depth+1)
				out[at].Opaque = inner == nil && n.Type == wire.Len && mayBeChance(t, c)
			}
			out[at].Inner = len(out) - at - 1

			// Fields inside random bytes that only look like a message are uncertain.
			for i := at + 1; i < len(out) && out[at].Opaque; i++ {
				out[i].perhaps = true
			}
			continue
		}
		l.setNumber(strconv.FormatUint(t.Uint(c), 10), t.Uint(c))
		out = append(out, l)
	}
	return out
}

// isIdentifier reports whether a field that can be parsed as a message is actually an identifier: it
// consists of letters, digits, - and _, and as a message it has only numbers. One in a few thousand
// identifiers of 32 hexadecimal digits can be parsed in this way.
func isIdentifier(t *wire.Tree, field int32) bool {
	if len(t.Payload(field)) < ShortText {
		return false
	}
	for _, b := range t.Payload(field) {
		switch {
		case b >= '0' && b <= '9', b >= 'a' && b <= 'z', b >= 'A' && b <= 'Z', b == '-', b == '_':
		default:
			return false
		}
	}
	for c := range t.Children(field) {
		if typ := t.Node(c).Type; typ == wire.Len || typ == wire.StartGroup {
			return false
		}
	}
	return true
}

// longestID is the length in bytes of the longest binary identifier.
const longestID = 64

// mayBeChance reports whether a field that can be parsed as a message may actually be a random binary
// identifier; about one in a hundred of these can be parsed. A message that contains a text is not an
// identifier.
func mayBeChance(t *wire.Tree, field int32) bool {
	const leastText = 3
	p := t.Payload(field)
	if len(p) < ShortText || len(p) > longestID || IsPrintable(p) {
		return false
	}
	for c := range t.Children(field) {
		if inner := t.Payload(c); t.Node(c).Type == wire.Len && len(inner) >= leastText && IsPrintable(inner) {
			return false
		}
	}
	return true
}

// messageIn returns the message type of field number in md; nil if unknown. ok is false if the
// definition says that the field is not a message.
func messageIn(md protoreflect.MessageDescriptor, number uint64) (inner protoreflect.MessageDescriptor, ok bool) {
	if md == nil || number > math.MaxInt32 {
		return nil, true
	}
	fd := md.Fields().ByNumber(protoreflect.FieldNumber(number))
	if fd == nil {
		return nil, true
	}
	return fd.Message(), fd.Message() != nil
}

// SetText makes l the leaf of a text, bytes or message with the content b.
func (l *Leaf) SetText(b []byte) {
	l.Small, l.Data = len(b) < ShortText, b
	l.top, l.sub = l.Depth == 1, l.Depth == 2
	if len(b) > longLeaf {
		// The prefix avoids a collision, because the hash of a blob may itself be an id on the
		// wire.
		sum := sha256.Sum256(b)
		l.Value = "h" + string(sum[:])
		return
	}
	l.Value = "t" + string(b)
}

// setDigits makes l the leaf of a number in a JSON string, which is the form of protobuf's 64-bit
// numbers in JSON.
func (l *Leaf) setDigits(digits string, v uint64) {
	l.setNumber(digits, v)
	l.Data, l.perhaps = []byte(digits), true
	l.top, l.sub = l.Depth == 1, l.Depth == 2
}

// setNumber makes l the leaf of the number v, written as digits.
func (l *Leaf) setNumber(digits string, v uint64) {
	l.Number, l.Small, l.Value = true, v < smallNumber, "n"+digits
}

// jsonLeaves appends the values in a JSON object or array to out; each precedes its content. An object
// that is a map is treated like a protobuf map, i.e. as a list of entries with a key and a value each.
func jsonLeaves(out []Leaf, v jsontree.Value, prefix string, depth int) []Leaf {
	if isMap(v) {
		for i, item := range sortedEntries(v) {
			entry := strings.TrimSuffix(prefix, ".") + "[" + strconv.Itoa(i) + "]."
			out = appendJSON(out, Leaf{Path: entry + "key", Last: "key", Depth: depth, place: place{json: item, key: true}}, item)
			out = appendJSON(out, Leaf{Path: entry + "value", Last: "value", Depth: depth, place: place{json: item}}, item)
		}
		return out
	}
	i := -1
	for item := range v.Items() {
		i++
		if len(out) >= maxLeaves {
			return out
		}
		l := Leaf{Depth: depth, place: place{json: item}}
		if v.Kind() == jsontree.Object {
			l.Last = item.Name()
			l.Path = prefix + fieldpath.Path{{Name: l.Last, Index: fieldpath.All}}.String()
		} else {
			l.Last = "[]"
			l.Path = prefix + "[" + strconv.Itoa(i) + "]"
		}
		out = appendJSON(out, l, item)
	}
	return out
}

// appendJSON appends the leaf l of the JSON value item (or of its name), and those of the value's
// content.
func appendJSON(out []Leaf, l Leaf, item jsontree.Value) []Leaf {
	k := item.Kind()
	switch {
	case l.key:
		return append(out, jsonText(l, item.Name()))
	case k != jsontree.Object && k != jsontree.Array:
		return append(out, jsonScalar(l, item))
	}
	at := len(out)
	l.Object = true
	l.SetText(compact(item.Raw()))
	below := l.Path
	if k == jsontree.Object {
		below += "."
	}
	out = append(out, l)
	if l.Depth < maxLeafDepth && len(below) <= maxLeafPath {
		out = jsonLeaves(out, item, below, l.Depth+1)
	}
	out[at].Inner = len(out) - at - 1
	return out
}

// compact returns JSON without white space, because protojson inserts some at random.
func compact(raw []byte) []byte {
	var b bytes.Buffer
	if err := json.Compact(&b, raw); err != nil {
		// unreachable: it was parsed before
		return raw
	}
	return b.Bytes()
}

// jsonScalar returns l as the leaf of a JSON string, number, boolean or null.
func jsonScalar(l Leaf, v jsontree.Value) Leaf {
	text := v.Text()
	if v.Kind() == jsontree.String {
		return jsonText(l, text)
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		n = 0
	}
	l.setNumber(text, n)
	return l
}

// jsonText returns l as the leaf of a JSON string.
func jsonText(l Leaf, text string) Leaf {
	if n, err := strconv.ParseUint(text, 10, 64); err == nil && strconv.FormatUint(n, 10) == text {
		l.setDigits(text, n)
	} else {
		l.SetText([]byte(text))
	}
	return l
}

// A Shape characterises a kind of message without a schema, by the paths of its values that are texts
// or messages: top has those at the top level, sub those one level below, and maybe those at the top
// level that are optional. Numbers do not count, because protobuf omits zero.
type Shape struct {
	// top, maybe and sub are sorted lists of paths: of required and optional values at the top level, and of values one
	// level below.
	top, maybe, sub []string
}

// ShapeOf returns the shape of the message with these leaves.
func ShapeOf(leaves []Leaf) Shape {
	var s Shape
	within := ""
	for i := range leaves {
		switch l := &leaves[i]; {
		case l.top && l.perhaps:
			s.maybe = append(s.maybe, l.Last)
		case l.top:
			within = l.Last
			s.top = append(s.top, l.Last)
		case l.sub && !l.perhaps:
			s.sub = append(s.sub, within+"."+l.Last)
		}
	}
	for _, list := range [...]*[]string{&s.top, &s.maybe, &s.sub} {
		slices.Sort(*list)
		*list = slices.Compact(*list)
	}
	return s
}

// Matches reports whether messages with these shapes are of the same kind, i.e. whether their top
// levels agree and most of their inner fields do. A text may by chance be parsed as a message with
// inner fields, so a shape without any still matches.
func (s Shape) Matches(o Shape) bool {
	return s.covers(o) && o.covers(s) && s.isLike(&o)
}

// isLike reports whether most inner fields of two shapes agree, or one has none.
func (s *Shape) isLike(o *Shape) bool {
	if len(s.sub) == 0 || len(o.sub) == 0 {
		return true
	}
	both := 0
	for _, name := range s.sub {
		if _, ok := slices.BinarySearch(o.sub, name); ok {
			both++
		}
	}
	return float64(both) >= shapeLikeness*float64(len(s.sub)+len(o.sub)-both)
}

// covers reports whether everything at the top level of o may also occur at that of s.
func (s Shape) covers(o Shape) bool {
	for _, name := range o.top {
		if _, ok := slices.BinarySearch(s.top, name); ok {
			continue
		}
		if _, ok := slices.BinarySearch(s.maybe, name); !ok {
			return false
		}
	}
	return true
}

// headers is the only name in the shape of headers.
const headers = "\x00headers"

// HeaderShape returns the shape that stands for response headers, which are treated like a message.
func HeaderShape() Shape { return Shape{top: []string{headers}} }

// IsHeaders reports whether the shape stands for response headers.
func (s Shape) IsHeaders() bool { return len(s.top) == 1 && s.top[0] == headers }

// joined is the first name in the shape of joined texts, and openJoined that of texts which no other message ended.
const joined, openJoined = "\x00joined", "\x00joined open"

// JoinedShape returns the shape that stands for texts which are joined from several messages, by the paths of the texts. open
// means that no other message ended them.
func JoinedShape(paths []string, open bool) Shape {
	name := joined
	if open {
		name = openJoined
	}
	top := append([]string{name}, paths...)
	slices.Sort(top)
	return Shape{top: top}
}

// IsJoined reports whether the shape stands for joined texts.
func (s Shape) IsJoined() bool {
	return len(s.top) > 0 && (s.top[0] == joined || s.top[0] == openJoined)
}

// IsFrame reports whether the shape is that of a frame, and stands neither for headers nor for joined texts.
func (s Shape) IsFrame() bool { return !s.IsHeaders() && !s.IsJoined() }

// Has reports whether leaves contain a value at path.
func Has(leaves []Leaf, path string) bool {
	for i := range leaves {
		if leaves[i].Path == path {
			return true
		}
	}
	return false
}

// Scalars returns the number of leaves without nested leaves.
func Scalars(leaves []Leaf) int {
	n := 0
	for i := range leaves {
		if leaves[i].Inner == 0 {
			n++
		}
	}
	return n
}
