// Package event is the first of three steps that read a conversation from what the wire itself marks: the frames of
// an exchange become events with named members. Package piece finds the pieces of texts and calls in events, and
// package part joins them.
//
// A decode.Exchange goes in, and Events come out, in the order of the frames:
//
//	for _, e := range event.Read(ex) {
//		fmt.Println(e.Name, e.Root.Member("type").Text)
//	}
//
// An event is a JSON value: a server-sent event, a line, an element of an array, a message of a WebSocket, or a
// unary body. JSON inside of a JSON string or of base64 is opened where services wrap their events in it. Text that is
// not JSON is a string. Messages of protobuf have no names, so they are no events.
package event

import (
	"bytes"
	"encoding/base64"
	"strings"
	"unicode/utf8"

	"unwire/captures"
	"unwire/decode"
	"unwire/decode/jsontree"
	"unwire/decode/transcript/naming"
)

// Limits of reading events.
const (
	// maxDepth is the maximum nesting of values. Deeper values are left out.
	maxDepth = 100

	// maxNodes is the maximum number of JSON values that are read from an exchange. Later events are left out.
	maxNodes = 1 << 21

	// maxWrapped is the maximum nesting depth of a string that is parsed because it contains JSON.
	maxWrapped = 3
)

// An Event is one message of an exchange that is not protobuf: a JSON value, or a text.
type Event struct {
	// Frame is the index of the frame in the exchange, counted over both directions.
	Frame int

	// Seq is the number of the frame in its direction, from 0.
	Seq int

	// Dir is the direction of the frame.
	Dir captures.Direction

	// Name is the name of the server-sent event, or a label before the JSON value; "" if there is none or if it is
	// "message".
	Name string

	// Coded means that Name is a label before the JSON value, which may be only a code such as "0".
	Coded bool

	// Bare means that the events of this name are plain text, so that Root is a string even if it looks like JSON.
	Bare bool

	// Root is the event's JSON value.
	Root *Node
}

// A Node is a JSON value.
type Node struct {
	// Kind is the kind of the value.
	Kind jsontree.Kind

	// Name is the name of the member as sent, and Fold the name in lower case without separators. Both are "" for
	// an element of an array.
	Name, Fold string

	// Text is the value of a string, or the text of a number or a bool.
	Text string

	// Items are the members of an object or the elements of an array.
	Items []*Node

	// Raw is the JSON text of the value.
	Raw []byte
}

// Member returns the first member of n with the folded name, or nil.
func (n *Node) Member(fold string) *Node {
	if n == nil || n.Kind != jsontree.Object {
		return nil
	}
	for _, m := range n.Items {
		if m.Fold == fold {
			return m
		}
	}
	return nil
}

// String returns the text of the member of n with the folded name if that is a string, or "".
func (n *Node) String(fold string) string {
	if m := n.Member(fold); m != nil && m.Kind == jsontree.String {
		return m.Text
	}
	return ""
}

// Is reports whether n has a member with the folded name whose value is true.
func (n *Node) Is(fold string) bool {
	m := n.Member(fold)
	return m != nil && m.Kind == jsontree.Bool && m.Text == "true"
}

// A reader builds the nodes of events, and counts them for the limit.
type reader struct {
	// nodes is the number of nodes built so far.
	nodes int

	// folded caches folded names.
	folded map[string]string
}

// Read returns the events of an exchange: the messages in its frames that are JSON or text.
func Read(ex *decode.Exchange) []Event {
	r := &reader{folded: make(map[string]string)}
	bare := bareText(ex)
	var out []Event
	for i := range ex.Frames {
		f := &ex.Frames[i]
		if f.End != nil || r.nodes > maxNodes || f.Tree == nil && len(f.Inner) > 0 {
			continue
		}
		e := Event{Frame: i, Seq: f.Seq, Dir: f.Dir}
		if f.Tree != nil {
			if v, ok := carriedJSON(f); ok {
				out = r.appendEvents(out, e, v)
			}
			continue
		}
		if f.Event != "message" && naming.IsKind(f.Event) {
			e.Name = f.Event
		}
		if f.Dir == captures.Down && bare[f.Event] {
			e.Root, e.Bare = &Node{Kind: jsontree.String, Text: string(f.Data)}, true
			out = append(out, e)
			continue
		}
		for _, v := range Values(f) {
			e := e
			if v.Label != "" {
				e.Name, e.Coded = v.Label, true
			}
			if v.Text != "" {
				e.Root = &Node{Kind: jsontree.String, Text: v.Text}
				out = append(out, e)
				continue
			}
			out = r.appendEvents(out, e, v.JSON)
		}
	}
	return out
}

// appendEvents appends event e with the value v, or several if v is an array of objects that the server sent.
func (r *reader) appendEvents(out []Event, e Event, v jsontree.Value) []Event {
	root := r.node(v, 0)
	if root == nil {
		return out
	}
	roots := []*Node{root}
	if e.Dir == captures.Down && root.Kind == jsontree.Array && len(root.Items) > 0 && root.Items[0].Kind == jsontree.Object {
		roots = root.Items
	}
	for _, e.Root = range roots {
		out = append(out, e)
	}
	return out
}

// node converts a JSON value to a Node, or returns nil if a limit is reached. depth is its nesting.
func (r *reader) node(v jsontree.Value, depth int) *Node {
	if r.nodes++; r.nodes > maxNodes || depth > maxDepth {
		return nil
	}
	n := &Node{Kind: v.Kind(), Raw: v.Raw()}
	switch n.Kind {
	case jsontree.Object:
		for m := range v.Items() {
			if item := r.node(m, depth+1); item != nil {
				item.Name = m.Name()
				item.Fold = r.fold(item.Name)
				n.Items = append(n.Items, r.opened(item, depth+1))
			}
		}
	case jsontree.Array:
		for e := range v.Items() {
			if item := r.node(e, depth+1); item != nil {
				n.Items = append(n.Items, item)
			}
		}
	case jsontree.String, jsontree.Number, jsontree.Bool:
		n.Text = v.Text()
	}
	return n
}

// fold returns a name in lower case without separators.
func (r *reader) fold(name string) string {
	f, ok := r.folded[name]
	if !ok {
		f = naming.Fold(name)
		r.folded[name] = f
	}
	return f
}

// wrappers are the folded names of members in which services wrap an event as text or base64.
var wrappers = map[string]bool{"bytes": true, "data": true, "payload": true, "chunk": true, "body": true, "event": true, "message": true}

// opened returns the parsed JSON object inside n if n is a string that wraps an event, and otherwise n.
func (r *reader) opened(n *Node, depth int) *Node {
	if n.Kind != jsontree.String || depth > maxWrapped || !wrappers[n.Fold] {
		return n
	}
	data := []byte(n.Text)
	// The first is the base64 of {".
	if strings.HasPrefix(n.Text, "eyJ") || n.Fold == "bytes" {
		if b, err := base64.StdEncoding.DecodeString(n.Text); err == nil {
			data = b
		}
	}
	if !bytes.HasPrefix(data, []byte("{")) {
		if n.Fold == "bytes" && utf8.Valid(data) {
			n.Text = string(data)
		}
		return n
	}
	v, err := jsontree.Parse(data)
	if err != nil || v.Kind() != jsontree.Object {
		return n
	}
	inner := r.node(v, depth)
	if inner == nil {
		return n
	}
	inner.Name, inner.Fold = n.Name, n.Fold
	return inner
}

// Open converts a JSON value that was found inside a text to a Node.
func Open(v jsontree.Value) *Node {
	r := &reader{folded: make(map[string]string)}
	if n := r.node(v, 0); n != nil {
		return n
	}
	return &Node{Kind: jsontree.Null}
}
