package clientprobe

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"unicode/utf8"

	"unwire/captures/profile"
	"unwire/decode"
	"unwire/decode/envelope"
	"unwire/decode/fieldpath"
	"unwire/decode/jsontree"
	"unwire/decode/transcript/shape"
	"unwire/decode/wire"
	"unwire/replay/edit"
	"unwire/replay/mock"
)

// A profilePath is the path of a field in a profile, i.e. in a description of an API that the user supplies.
type profilePath = []profile.Step

// An Op is a way to edit a field of the server's responses, in order to see how the client reacts.
type Op string

// The ways to edit a field.
const (
	// opRemove removes the field.
	opRemove Op = "remove"
	// opChange gives the field another value of its type.
	opChange Op = "change"
	// opRetype gives the field a value of another type.
	opRetype Op = "retype"
	// opControl adds a field that no client can know. It is used once, to see whether unknown fields
	// have an effect.
	opControl Op = "control"
)

// controlNumber and controlName are the protobuf field number and the JSON name of the field that
// opControl adds. No definition has the number: it is in the range that protobuf reserves for its
// implementations.
const (
	controlNumber = 19_081
	controlName   = "unwire_probe_control"
)

// A change edits all occurrences of one field in the responses of a run.
type change struct {
	// Target is the field to edit; its zero value for opControl, which applies to every message.
	Target *Target

	// Op is how the field is edited.
	Op Op
}

// A place is one occurrence of a field in a message.
type place struct {
	// path is the field's path without list indexes.
	path string
	// kind is the apparent type of the value (see Target.Kind).
	kind string
	// value is the value for display.
	value string

	// json is the field's value in a JSON text; unset for protobuf.
	json jsontree.Value

	// within is the JSON object that contains the field.
	within jsontree.Value

	// at is the index of the field in that object, from 0.
	at int

	// hasMembers means that the value is a message, object or array, or an empty field that may be a message.
	hasMembers bool
}

// changes returns the ways in which the field can be edited: a value with members is only removed or replaced by
// another type.
func (p *place) changes() []Op {
	if p.hasMembers {
		return []Op{opRemove, opRetype}
	}
	return []Op{opRemove, opChange, opRetype}
}

// placesOf returns all fields of a message, including nested ones, in the order of their bytes. s has statistics
// about all messages of the method; by these it decides which length-delimited fields are messages, since short texts
// can be parsed as messages too.
func placesOf(f *decode.Frame, s *shape.Shape) []place {
	if f.Tree != nil {
		return protoPlaces(f.Tree, 0, s, s.Locate(f.Tree, nil, false))
	}
	root, err := jsontree.Parse(f.Data)
	if err != nil || root.Kind() != jsontree.Object && root.Kind() != jsontree.Array {
		return nil
	}
	return jsonPlaces(root, nil)
}

// protoPlaces returns the fields below the node parent of a decoded protobuf message t, including nested ones. s has
// statistics about all messages of the method, and at are the positions of the nodes in s.
func protoPlaces(t *wire.Tree, parent int32, s *shape.Shape, at []shape.Path) (out []place) {
	for c := range t.Children(parent) {
		n := t.Node(c)
		if n.Type == wire.Garbage {
			continue
		}
		p := place{path: t.FieldPath(c).String()}
		switch {
		case n.Type == wire.Varint, n.Type == wire.I32, n.Type == wire.I64:
			p.kind, p.value = numberKinds[n.Type], strconv.FormatUint(t.Uint(c), 10)
		case n.Type == wire.Len && len(t.Payload(c)) == 0:
			// It may be an empty message or an empty text.
			p.kind, p.value, p.hasMembers = "empty", "0 bytes", true
		case s.IsMessage(t, c, at[c]):
			p.kind, p.value, p.hasMembers = "message", fmt.Sprintf("%d bytes", len(t.Payload(c))), true
		case isText(t.Payload(c)):
			p.kind, p.value = "text", strconv.Quote(string(t.Payload(c)[:min(len(t.Payload(c)), 200)]))
		default:
			p.kind, p.value = "bytes", fmt.Sprintf("%d bytes", len(t.Payload(c)))
		}
		out = append(out, p)
		if p.hasMembers {
			out = append(out, protoPlaces(t, c, s, at)...)
		}
	}
	return out
}

// numberKinds are the names of the numeric wire types for Target.Kind.
var numberKinds = map[wire.Type]string{wire.Varint: "varint", wire.I32: "i32", wire.I64: "i64"}

// isText reports whether bytes are UTF-8 without control characters other than white space.
func isText(b []byte) bool {
	return utf8.Valid(b) && !slices.ContainsFunc([]rune(string(b)), func(r rune) bool { return r < ' ' && r != '\n' && r != '\t' && r != '\r' })
}

// jsonPlaces returns the members of a JSON value, including nested ones. path is the path of the value.
func jsonPlaces(v jsontree.Value, path fieldpath.Path) (out []place) {
	at := -1
	for item := range v.Items() {
		at++
		if v.Kind() == jsontree.Array {
			// Elements have the path of their array.
			out = append(out, jsonPlaces(item, path)...)
			continue
		}
		here := append(path[:len(path):len(path)], fieldpath.Step{Name: item.Name(), Index: fieldpath.All})
		p := place{path: here.String(), kind: jsonKind(item), value: string(item.Raw()), json: item, within: v, at: at}
		p.hasMembers = item.Kind() == jsontree.Object || item.Kind() == jsontree.Array
		out = append(out, p)
		if p.hasMembers {
			out = append(out, jsonPlaces(item, here)...)
		}
	}
	return out
}

// jsonKind returns the name of a JSON value's type for Target.Kind.
func jsonKind(v jsontree.Value) string {
	switch v.Kind() {
	case jsontree.Object:
		return "object"
	case jsontree.Array:
		return "array"
	case jsontree.String:
		return "string"
	case jsontree.Number:
		return "number"
	case jsontree.Bool:
		return "bool"
	}
	return "null"
}

// edit applies a change to a message that the mock server is about to send. id is the recorded exchange
// of the message. It returns false if the message does not have the field or must not be edited.
func (p *Probe) edit(c *change, id int64, f *decode.Frame) ([]byte, bool) {
	if f.Err != nil {
		return nil, false
	}
	// The exchange is one that was played, so it was read before.
	ex, err := p.Mock.Recorded(context.Background(), id)
	if err != nil || !p.AllowExecute && p.executes(ex, f) {
		return nil, false
	}
	if c.Op == opControl {
		return addControl(f)
	}
	if mock.MethodOf(&ex.Exchange) != c.Target.Method {
		return nil, false
	}

	if f.Tree != nil {
		return c.applyProto(f.Tree)
	}
	return c.applyJSON(f)
}

// maxOccurrences limits how many occurrences of a field in one message are changed.
const maxOccurrences = 1000

// applyProto returns a protobuf message with up to maxOccurrences occurrences of the field edited; false if it does
// not have the field.
func (c *change) applyProto(t *wire.Tree) ([]byte, bool) {
	path, rest, err := fieldpath.Cut(c.Target.Path)
	if err != nil || rest != "" {
		return nil, false
	}
	var edits []wire.Edit
	for _, node := range t.Find(path) {
		if len(edits) >= maxOccurrences {
			break
		}
		n := t.Node(node)
		e := wire.Edit{Node: node, Op: wire.Delete}
		switch {
		case c.Op == opChange:
			e.Op, e.Data = wire.SetValue, c.otherValue(t, node)
		case c.Op == opRetype && (n.Type == wire.Len || n.Type == wire.StartGroup):
			e.Op, e.Data = wire.Replace, edit.AppendField(nil, n.Number, wire.Varint, wire.AppendVarint(nil, 7))
		case c.Op == opRetype:
			e.Op, e.Data = wire.Replace, edit.AppendField(nil, n.Number, wire.Len, []byte("seven"))
		}
		edits = append(edits, e)
	}
	out, err := wire.Splice(t, edits)
	return out, err == nil && len(edits) > 0
}

// otherValue returns the encoding, in the same wire type, of a value that differs from the one of the node.
func (c *change) otherValue(t *wire.Tree, node int32) []byte {
	v := t.Uint(node)
	switch t.Node(node).Type {
	case wire.Varint:
		return wire.AppendVarint(nil, v+1)
	case wire.I32:
		// The next bits of a float are nearly the same number.
		if x := float64(math.Float32frombits(uint32(v))); isPlausible(x) {
			return binary.LittleEndian.AppendUint32(nil, math.Float32bits(float32(2*x+1)))
		}
		return binary.LittleEndian.AppendUint32(nil, uint32(v)+1)
	case wire.I64:
		if x := math.Float64frombits(v); isPlausible(x) {
			return binary.LittleEndian.AppendUint64(nil, math.Float64bits(2*x+1))
		}
		return binary.LittleEndian.AppendUint64(nil, v+1)
	}

	// A longer text stays readable; other bytes keep their length, which may have a meaning.
	b := bytes.Clone(t.Payload(node))
	if isText(b) {
		return append(b, '~')
	}
	b[len(b)-1] ^= 1
	return b
}

// isPlausible reports whether x, the bits of a number read as floating point, has a magnitude that is
// usual in programs; otherwise the bits are probably an integer.
func isPlausible(x float64) bool { return math.Abs(x) > 1e-9 && math.Abs(x) < 1e15 }

// applyJSON returns a JSON message with up to maxOccurrences occurrences of the field edited. It edits the last one
// first, so that the positions of the others stay valid.
func (c *change) applyJSON(f *decode.Frame) (data []byte, changed bool) {
	data = f.Data
	for n := range maxOccurrences {
		var places []place
		for _, at := range placesOf(&decode.Frame{Frame: envelope.Frame{Data: data}}, nil) {
			if at.path == c.Target.Path {
				places = append(places, at)
			}
		}

		// What was removed is not found again.
		last := len(places) - 1
		if c.Op != opRemove {
			last -= n
		}
		if last < 0 {
			break
		}
		out, err := places[last].applyJSON(c.Op)
		if err != nil {
			break
		}
		data, changed = out, true
	}
	return data, changed
}

// applyJSON returns the JSON text in which this occurrence of the field is edited in the way op.
func (p *place) applyJSON(op Op) ([]byte, error) {
	switch op {
	case opRemove:
		return p.within.Delete(p.at), nil
	case opRetype:
		if p.json.Kind() == jsontree.String {
			return p.json.Replace([]byte("7")), nil
		}
		return p.json.Replace([]byte(`"seven"`)), nil
	}
	switch p.json.Kind() {
	case jsontree.String:
		return p.json.Replace(jsontree.Quote(p.json.Text() + "~")), nil
	case jsontree.Bool:
		return p.json.Replace([]byte(strconv.FormatBool(p.json.Text() != "true"))), nil
	case jsontree.Number:
		var x float64
		if err := json.Unmarshal(p.json.Raw(), &x); err != nil {
			return nil, err
		}
		return p.json.Replace([]byte(strconv.FormatFloat(x+1, 'f', -1, 64))), nil
	}
	return p.json.Replace([]byte(`"~"`)), nil
}

// addControl returns a message with a field added that no client can know; false if the message is neither protobuf
// nor a JSON object.
func addControl(f *decode.Frame) ([]byte, bool) {
	if f.Tree != nil {
		return edit.AppendField(bytes.Clone(f.Data), controlNumber, wire.Len, []byte("control")), true
	}
	root, err := jsontree.Parse(f.Data)
	if err != nil || root.Kind() != jsontree.Object {
		return nil, false
	}
	return root.Insert(0, append(append(jsontree.Quote(controlName), ':'), jsontree.Quote("control")...)), true
}
