// Package jsontree reads a JSON text into its values, each with its place in the
// text, and changes a text one value at a time.
//
// JSON is read in one of three ways in this module:
//
//   - into a struct, with encoding/json, where the members are known;
//   - with this package, where any JSON may come, and where the place of a value,
//     the order of members, a name that occurs twice or the digits of a number
//     count;
//   - token by token, with a json.Decoder, where the input has no bound, or where
//     reading ends or goes on at a value that is wrong. The doc comment of such a
//     reader says which.
//
// The package accepts exactly the texts that encoding/json accepts: json.Valid
// decides, and what it lets through is only cut into values.
//
// Limits: a text has less than 2 GiB; encoding/json bounds the nesting to 10,000
// levels.
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

// The kinds. The zero Value has none of them.
const (
	Null Kind = iota + 1
	Bool
	Number
	String
	Array
	Object
)

// String returns the name of the kind as JSON's specification has it: "bool" and
// the others in lower case; "" for no kind.
func (k Kind) String() string {
	return [...]string{"", "null", "bool", "number", "string", "array", "object"}[k]
}

// A Value is a value in a JSON text. It stays valid while the text is not changed.
// The zero Value is no value; of its methods only Kind may be called.
type Value struct {
	text *text
	at   int32 // of text.nodes
}

// A text is a JSON text and the values in it, in the order in which they begin.
type text struct {
	data  []byte
	nodes []node
}

// A node is the place of one value.
type node struct {
	name int32 // where a member's name begins; off if the value is no member
	off  int32
	end  int32
	next int32 // the first node behind the value and all that is in it
	kind Kind
}

// errTooLong is the error of Parse for a text that int32 cannot count.
var errTooLong = errors.New("jsontree: the text has 2 GiB or more")

// Parse returns the one value that a text consists of.
//
// Errors: a *json.SyntaxError as json.Unmarshal returns it; a text that is too
// long.
func Parse(data []byte) (Value, error) {
	if len(data) > math.MaxInt32 {
		return Value{}, errTooLong
	}
	if !json.Valid(data) {
		var raw json.RawMessage
		return Value{}, json.Unmarshal(data, &raw)
	}
	t := &text{data: data, nodes: make([]node, 0, 4+len(data)/16)}
	start := t.skipSpace(0)
	t.scan(start, start)
	return Value{text: t}, nil
}

// scan appends the value at off with all that is in it, and returns its end. The
// text is valid.
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
	n := &t.nodes[at]
	n.kind, n.end, n.next = kind, int32(end), int32(len(t.nodes))
	return end
}

// scanItems appends the members or elements of the object or array at off, and
// returns its end.
func (t *text) scanItems(off int) (end int) {
	isObject := t.data[off] == '{'
	i := t.skipSpace(off + 1)
	for t.data[i] != '}' && t.data[i] != ']' {
		name := i
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

func (t *text) skipSpace(i int) int {
	for i < len(t.data) && (t.data[i] == ' ' || t.data[i] == '\t' || t.data[i] == '\n' || t.data[i] == '\r') {
		i++
	}
	return i
}

// stringEnd returns the end of the string that begins at i.
func (t *text) stringEnd(i int) int {
	for i++; t.data[i] != '"'; i++ {
		if t.data[i] == '\\' {
			i++
		}
	}
	return i + 1
}

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

func (v Value) node() *node { return &v.text.nodes[v.at] }

// Kind returns the value's kind, or 0 for the zero Value.
func (v Value) Kind() Kind {
	if v.text == nil {
		return 0
	}
	return v.node().kind
}

// Span returns where the value begins and ends in the text.
func (v Value) Span() (off, end int) {
	n := v.node()
	return int(n.off), int(n.end)
}

// Raw returns the value as it is written, a part of the text.
func (v Value) Raw() []byte {
	off, end := v.Span()
	return v.text.data[off:end:end]
}

// Text returns the characters of a string, or any other value as it is written.
// What is not UTF-8 becomes U+FFFD, as with encoding/json.
func (v Value) Text() string {
	if v.node().kind == String {
		return unquote(v.Raw())
	}
	return string(v.Raw())
}

// NameSpan returns where the name of a member begins and ends, with its quotes. It
// is empty where the value is no member of an object.
func (v Value) NameSpan() (off, end int) {
	n := v.node()
	if n.name == n.off {
		return int(n.off), int(n.off)
	}
	return int(n.name), v.text.stringEnd(int(n.name))
}

// Name returns the name of a member, or "" where the value is no member of an
// object.
func (v Value) Name() string {
	off, end := v.NameSpan()
	if off == end {
		return ""
	}
	return unquote(v.text.data[off:end])
}

// Items yields the members or elements of the value, in their order. A scalar has
// none.
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

// All yields the value and all values in it, each before what is in it.
func (v Value) All() iter.Seq[Value] {
	return func(yield func(Value) bool) {
		for at := v.at; at < v.node().next; at++ {
			if !yield(Value{v.text, at}) {
				return
			}
		}
	}
}

// unquote returns the characters of a valid string with its quotes.
func unquote(raw []byte) string {
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

// Quote writes a text as a JSON string. Nothing is escaped for HTML.
func Quote(s string) []byte {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(s); err != nil {
		return []byte(`""`) // not reached: every string can be encoded
	}
	return bytes.TrimRight(b.Bytes(), "\n")
}
