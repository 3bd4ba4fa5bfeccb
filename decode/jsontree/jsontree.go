// Package jsontree parses a JSON text into values that know their offsets in the text, and edits the text one
// value at a time. Text goes in through Parse, a tree of Values comes out, and Replace, Insert and Delete return
// edited text.
//
//	root, err := jsontree.Parse(text)
//	for v := range root.Items() {
//		fmt.Println(v.Name(), v.Kind(), v.Text())
//	}
//
// JSON is read in one of three ways in this module:
//
//   - into a struct, with encoding/json, if the members are fixed;
//   - with this package, if any JSON may come, and if the offset of a value, the order of members, duplicate names or the digits of a number matter;
//   - token by token, with json.Decoder, if the input is unbounded, or if reading must stop or continue at a malformed value. The doc comment of such a reader gives the reason.
//
// The package accepts exactly the texts that encoding/json accepts: json.Valid checks a text before it is
// divided into values.
//
// Limits: a text has less than 2 GiB. encoding/json limits the nesting to 10,000 levels.
package jsontree

import (
	"bytes"
	"encoding/json"
	"errors"
	"iter"
	"math"
	"unicode/utf8"
)

// A Kind is one of the six kinds of JSON values.
type Kind uint8

// The kinds of JSON values. The zero Value has kind 0.
const (
	Null Kind = iota + 1
	Bool
	Number
	String
	Array
	Object
)

// String returns the kind's name in lower case, such as "object", or "" for kind 0.
func (k Kind) String() string {
	return [...]string{"", "null", "bool", "number", "string", "array", "object"}[k]
}

// A Value is one value in a JSON text. It is valid as long as the text does not change. The zero Value is no
// value, and only its method Kind may be called.
type Value struct {
	// text is the JSON text that contains the value; nil for the zero Value.
	text *text

	// at is the index of the value in text.nodes.
	at int32
}

// A text is a parsed JSON text, with the positions of all values in it in the order in which they begin.
type text struct {
	// data is the JSON text as bytes.
	data []byte

	// nodes are the positions of all values in data, in the order in which they begin.
	nodes []node
}

// A node is the position of one JSON value in the text, in bytes.
type node struct {
	// name is where a member's name begins. It equals off if the value is not a member of an object.
	name int32

	// off is the offset of the value's first byte in the text.
	off int32

	// end is the offset after the value's last byte.
	end int32

	// next is the index in text.nodes of the first node after the value and everything in it.
	next int32

	// kind is the JSON type of the value, such as object or string.
	kind Kind
}

// errTooLong is the error of Parse for a text whose offsets exceed int32.
var errTooLong = errors.New("the JSON text is larger than 2 GiB")

// Parse parses a text that consists of one JSON value.
//
// Errors: a *json.SyntaxError as json.Unmarshal returns it, or a text of 2 GiB or more.
func Parse(data []byte) (Value, error) {
	if len(data) > math.MaxInt32 {
		return Value{}, errTooLong
	}
	if !json.Valid(data) {
		// json.Valid does not report the error's offset, but Unmarshal does.
		var raw json.RawMessage
		return Value{}, json.Unmarshal(data, &raw)
	}
	t := &text{data: data, nodes: make([]node, 0, 4+len(data)/16)}
	start := t.skipSpace(0)
	t.scan(start, start)
	return Value{text: t}, nil
}

// scan appends to nodes the value at offset off and everything in it, and returns the offset of its end. name is
// the offset of its member name, or off. The text must be valid: scan checks nothing.
func (t *text) scan(name, off int) (end int) {
	at := len(t.nodes)
	t.nodes = append(t.nodes, node{name: int32(name), off: int32(off)})
	kind := Number
	switch t.data[off] {
	case '{':
		kind, end = Object, t.scanItems(off)
	case '[':
		kind, end = Array, t.scanItems(off)
	case '"':
		kind, end = String, t.stringEnd(off)
	case 'n':
		kind, end = Null, off+len("null")
	case 't':
		kind, end = Bool, off+len("true")
	case 'f':
		kind, end = Bool, off+len("false")
	default:
		end = t.numberEnd(off)
	}
	// scanItems may have moved the slice, so take the address now.
	n := &t.nodes[at]
	n.kind, n.end, n.next = kind, int32(end), int32(len(t.nodes))
	return end
}

// scanItems appends the members or elements of the object or array at off, and returns its end.
func (t *text) scanItems(off int) (end int) {
	isObject := t.data[off] == '{'
	i := t.skipSpace(off + 1)
	for t.data[i] != '}' && t.data[i] != ']' {
		name := i
		// The name and its colon precede a member's value.
		if isObject {
			colon := t.skipSpace(t.stringEnd(i))
			i = t.skipSpace(colon + 1)
		}
		i = t.skipSpace(t.scan(name, i))
		if t.data[i] == ',' {
			i = t.skipSpace(i + 1)
		}
	}
	return i + 1
}

// skipSpace returns the offset of the first byte from i on that is not white space.
func (t *text) skipSpace(i int) int {
	for i < len(t.data) && (t.data[i] == ' ' || t.data[i] == '\t' || t.data[i] == '\n' || t.data[i] == '\r') {
		i++
	}
	return i
}

// stringEnd returns the offset after the closing quote of the string that begins at i.
func (t *text) stringEnd(i int) int {
	for i++; t.data[i] != '"'; i++ {
		// The next byte is escaped and cannot end the string. The digits of \u need no attention.
		if t.data[i] == '\\' {
			i++
		}
	}
	return i + 1
}

// numberEnd returns the end of the number that begins at i.
func (t *text) numberEnd(i int) int {
	for ; i < len(t.data); i++ {
		switch c := t.data[i]; {
		case c >= '0' && c <= '9', c == '-', c == '+', c == '.', c == 'e', c == 'E':
		default:
			return i
		}
	}
	return i
}

// node returns the position of v. v must not be the zero Value.
func (v Value) node() *node { return &v.text.nodes[v.at] }

// Kind returns the value's kind, or 0 for the zero Value.
func (v Value) Kind() Kind {
	if v.text == nil {
		return 0
	}
	return v.node().kind
}

// Span returns the offsets where the value begins and ends in the text.
func (v Value) Span() (off, end int) {
	n := v.node()
	return int(n.off), int(n.end)
}

// Raw returns the value as written: a slice of the text.
func (v Value) Raw() []byte {
	off, end := v.Span()
	return v.text.data[off:end:end]
}

// Text returns the characters of a string, and any other value as written. Invalid UTF-8 becomes U+FFFD, as in
// encoding/json.
func (v Value) Text() string {
	if v.node().kind == String {
		return unquote(v.Raw())
	}
	return string(v.Raw())
}

// NameSpan returns the offsets where the name of a member begins and ends, including its quotes. The span is
// empty if the value is not a member of an object.
func (v Value) NameSpan() (off, end int) {
	n := v.node()
	if n.name == n.off {
		return int(n.off), int(n.off)
	}
	return int(n.name), v.text.stringEnd(int(n.name))
}

// Name returns the name of a member, or "" if the value is not a member of an object.
func (v Value) Name() string {
	off, end := v.NameSpan()
	if off == end {
		return ""
	}
	return unquote(v.text.data[off:end])
}

// Items yields the members or elements of the value, in order. Scalars have none.
func (v Value) Items() iter.Seq[Value] {
	return func(yield func(Value) bool) {
		end := v.node().next
		for at := v.at + 1; at < end; at = v.text.nodes[at].next {
			if !yield(Value{v.text, at}) {
				return
			}
		}
	}
}

// All yields the value and all values inside it. A parent precedes its children.
func (v Value) All() iter.Seq[Value] {
	return func(yield func(Value) bool) {
		for at := v.at; at < v.node().next; at++ {
			if !yield(Value{v.text, at}) {
				return
			}
		}
	}
}

// unquote returns the decoded characters of a valid JSON string; raw includes the quotes.
func unquote(raw []byte) string {
	// Most strings need no conversion.
	inner := raw[1 : len(raw)-1]
	if bytes.IndexByte(inner, '\\') < 0 && utf8.Valid(inner) {
		return string(inner)
	}
	var s string
	if json.Unmarshal(raw, &s) != nil {
		return "" // not reached: the string is valid
	}
	return s
}

// Quote returns s as a JSON string. It does not escape HTML characters.
func Quote(s string) []byte {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(s); err != nil {
		return []byte(`""`) // not reached: every string can be encoded
	}
	return bytes.TrimRight(b.Bytes(), "\n")
}
