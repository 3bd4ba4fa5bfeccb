package live

import (
	"crypto/sha256"
	"math"
	"slices"
	"strconv"

	"google.golang.org/protobuf/reflect/protoreflect"

	"unwire/decode"
	"unwire/decode/fieldpath"
	"unwire/decode/jsontree"
	"unwire/decode/wire"
)

// Bounds of what is looked at in one message to follow ids.
const (
	maxLeaves      = 20_000
	maxLeafDepth   = 32
	longLeaf       = 128 // bytes; a longer value is compared by its hash
	shortText      = 8   // bytes; a shorter text is an id only in the place of one
	smallNumber    = 1 << 16
	shapeLikeness  = 0.5 // how much of two frames' inner fields must agree
	heartbeatBytes = 16
	heartbeatTimes = 3
)

// A leaf is a value in a message: a scalar, a text, bytes, or a whole message
// inside it.
type leaf struct {
	path   string // leads to it alone: 2.1, 1.3[1], result.id
	last   string // the last step without its index
	depth  int
	value  string // comparable; by its hash if it is long
	number bool
	small  bool   // too common to be an id anywhere but in the place of one
	inner  int    // how many leaves after this one lie inside it
	top    bool   // a message's own field that is a text, bytes or a message
	sub    bool   // the same one level below
	data   []byte // of a text, bytes or a message; nil of a number
}

// leavesOf lists the values of a message, each message before what is in it. md
// is its type, where a schema knows it: without one, a text that happens to
// parse as a message is taken for one, unless it is an identifier.
func leavesOf(f *decode.Frame, md protoreflect.MessageDescriptor) []leaf {
	if f.Tree != nil {
		return protoLeaves(nil, f.Tree, 0, md, "", 1)
	}
	if f.End != nil {
		return nil
	}
	root, err := jsontree.Parse(f.Data)
	if err != nil {
		return nil
	}
	// Well-known types have forms of their own.
	if k := root.Kind(); k != jsontree.Object && k != jsontree.Array {
		return []leaf{jsonScalar(leaf{depth: 1}, root)}
	}
	return jsonLeaves(nil, root, "", 1)
}

func protoLeaves(out []leaf, t *wire.Tree, parent int32, md protoreflect.MessageDescriptor, prefix string, depth int) []leaf {
	counts, seen := map[uint64]int{}, map[uint64]int{}
	for c := range t.Children(parent) {
		counts[t.Node(c).Number]++
	}
	for c := range t.Children(parent) {
		n := t.Node(c)
		if n.Type == wire.Garbage || len(out) >= maxLeaves {
			continue
		}
		l := leaf{last: strconv.FormatUint(n.Number, 10), depth: depth}
		l.path = prefix + l.last
		if counts[n.Number] > 1 {
			l.path += "[" + strconv.Itoa(seen[n.Number]) + "]"
		}
		seen[n.Number]++
		at := len(out)
		if n.Type == wire.StartGroup || n.Type == wire.Len {
			l.text(t.Payload(c))
			out = append(out, l)
			if inner, ok := messageIn(md, n.Number); ok && t.IsMessage(c) && (inner != nil || !isIdentifier(t, c)) && depth < maxLeafDepth {
				out = protoLeaves(out, t, c, inner, l.path+".", depth+1)
			}
			out[at].inner = len(out) - at - 1
			continue
		}
		l.count(strconv.FormatUint(t.Uint(c), 10), t.Uint(c))
		out = append(out, l)
	}
	return out
}

// isIdentifier reports whether a field that parses as a message is an identifier:
// letters, digits, - and _, read as numbers alone. One in some thousand identifiers
// of 32 hexadecimal digits parses as fields of fixed width. A message that holds a
// text has a length-delimited field.
func isIdentifier(t *wire.Tree, field int32) bool {
	if len(t.Payload(field)) < shortText {
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

// messageIn is the type of the message in a field; ok is false where the schema
// says that it holds none.
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

// text makes l the leaf of a text, bytes or a message.
func (l *leaf) text(b []byte) {
	l.small, l.data = len(b) < shortText, b
	l.top, l.sub = l.depth == 1, l.depth == 2
	if len(b) > longLeaf {
		// Marked: the hash of a blob may well be an id that is on the wire.
		sum := sha256.Sum256(b)
		l.value = "h" + string(sum[:])
		return
	}
	l.value = "t" + string(b)
}

// count makes l the leaf of a number.
func (l *leaf) count(digits string, v uint64) {
	l.number, l.small, l.value = true, v < smallNumber, "n"+digits
}

// jsonLeaves lists the values in an object or array, each before what is in it.
func jsonLeaves(out []leaf, v jsontree.Value, prefix string, depth int) []leaf {
	i := -1
	for item := range v.Items() {
		i++
		if len(out) >= maxLeaves {
			return out
		}
		l := leaf{depth: depth}
		if v.Kind() == jsontree.Object {
			l.last = item.Name()
			l.path = prefix + fieldpath.Path{{Name: l.last, Index: fieldpath.All}}.String()
		} else {
			l.last = "[]"
			l.path = prefix + "[" + strconv.Itoa(i) + "]"
		}
		at := len(out)
		if k := item.Kind(); k == jsontree.Object || k == jsontree.Array {
			l.text(item.Raw())
			below := l.path
			if k == jsontree.Object {
				below += "."
			}
			out = append(out, l)
			if depth < maxLeafDepth {
				out = jsonLeaves(out, item, below, depth+1)
			}
			out[at].inner = len(out) - at - 1
			continue
		}
		out = append(out, jsonScalar(l, item))
	}
	return out
}

// jsonScalar makes l the leaf of a text, number, bool or null.
func jsonScalar(l leaf, v jsontree.Value) leaf {
	text := v.Text()
	if v.Kind() == jsontree.String {
		l.text([]byte(text))
		return l
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		n = 0
	}
	l.count(text, n)
	return l
}

// A shape tells frames of different kinds apart without a schema: which texts
// and messages a message holds, and which those hold. Numbers do not count, as
// one that is zero is not sent.
type shape struct{ top, sub []string }

func shapeOf(leaves []leaf) shape {
	var s shape
	within := ""
	for _, l := range leaves {
		switch {
		case l.top:
			within = l.last
			s.top = append(s.top, l.last)
		case l.sub:
			s.sub = append(s.sub, within+"."+l.last)
		}
	}
	slices.Sort(s.top)
	slices.Sort(s.sub)
	s.top, s.sub = slices.Compact(s.top), slices.Compact(s.sub)
	return s
}

// matches reports whether two frames are of the same kind. A text that happens
// to parse as a message has inner fields by accident, so one frame without any
// says nothing against another.
func (s shape) matches(o shape) bool {
	if !slices.Equal(s.top, o.top) {
		return false
	}
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

// aside is the shape of what a server says beside its frames.
const aside = "\x00headers"

// isAside reports whether what was heard is no frame.
func (s shape) isAside() bool { return len(s.top) == 1 && s.top[0] == aside }
