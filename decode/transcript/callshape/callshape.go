// Package callshape finds calls of tools, and their results, in messages of protobuf without names, by their shape
// alone: a message that has the name of a tool next to its arguments, which are a google.protobuf.Struct or a string
// of JSON; and a message that has the identifier of such a call next to a text.
//
// A decode.Exchange goes in, and Pieces of package keyed come out, which package part joins and pairs:
//
//	calls := part.Join(&keyed.Pieces{List: callshape.Find(ex)}).Calls
//
// A definition of a tool has the shape of a call, too, but its JSON is a schema. A response of a function has a name
// and a Struct like its call: the role next to it, or the order of the two, tells them apart.
package callshape

import (
	"bytes"
	"cmp"
	"encoding/json"
	"strings"
	"unicode"
	"unicode/utf8"

	"unwire/captures"
	"unwire/decode"
	"unwire/decode/transcript/ident"
	"unwire/decode/transcript/keyed"
	"unwire/decode/transcript/naming"
	"unwire/decode/wire"
)

const (
	// maxShaped is the maximum number of calls and results that are found in an exchange.
	maxShaped = 4096

	// maxFields is the maximum number of fields of a message that may be a call of a tool.
	maxFields = 12

	// leastID and mostID are the minimum and maximum length in bytes of an identifier of a call.
	leastID = 6
	mostID  = 128
)

// A finder finds calls of tools in the protobuf messages of an exchange, frame by frame.
type finder struct {
	// out are the pieces of calls and results found so far.
	out []keyed.Piece

	// ids are the identifiers of the tool calls found so far, and names the names of the tools.
	ids, names map[string]bool

	// callPath is the path (field numbers joined by dots) of the first tool call; "" if none was found yet.
	callPath string

	// begun are the calls whose arguments may follow in further messages.
	begun []*begunCall

	// frame is the frame that is being searched.
	frame *decode.Frame

	// at is the index of frame in the exchange.
	at int

	// tree is the parsed protobuf message in frame.
	tree *wire.Tree
}

// Find returns the calls of tools and their results in the protobuf messages of an exchange. They are recognised by
// their structure: a message with a name and arguments.
func Find(ex *decode.Exchange) []keyed.Piece {
	f := &finder{ids: make(map[string]bool), names: make(map[string]bool)}
	for i := range ex.Frames {
		frame := &ex.Frames[i]
		if frame.Tree == nil || frame.End != nil {
			continue
		}
		f.frame, f.at, f.tree = frame, i, frame.Tree
		f.visitMessage(0, -1, keyed.Nobody)
	}
	f.addBegun()
	return f.out
}

// visitMessage finds calls and results in the message at node i, which is inside the message at node up (-1 for the
// root). speaker is the role that an enclosing message names.
func (f *finder) visitMessage(i, up int32, speaker keyed.Speaker) {
	if len(f.out) >= maxShaped {
		return
	}
	if s := f.speaker(i); s != keyed.Nobody {
		speaker = s
	}
	if f.proceed(i) || f.addCall(i, up, speaker) || f.begin(i, up, speaker) || f.addResult(i) || f.addNamedResult(i) {
		return
	}
	for c := range f.tree.Children(i) {
		if f.tree.IsMessage(c) {
			f.visitMessage(c, i, speaker)
		}
	}
}

// speaker returns the role, such as User, that a field of the message at node i names, or Nobody.
func (f *finder) speaker(i int32) keyed.Speaker {
	for c := range f.tree.Children(i) {
		if f.tree.Node(c).Type != wire.Len {
			continue
		}
		if p := f.tree.Payload(c); len(p) > 3 && len(p) < 16 {
			if s := keyed.SpeakerOf(string(p)); s != keyed.Nobody {
				return s
			}
		}
	}
	return keyed.Nobody
}

// A callShape has those fields of a message that may be parts of a call of a tool: name, arguments and identifier.
type callShape struct {
	// name is the tool's name, args are the arguments as JSON, and id is the identifier; "" if the message has
	// none.
	name, args, id string

	// nameAt and argsAt are the nodes of the name and the arguments.
	nameAt, argsAt int32

	// isStruct means that the arguments are a Struct, rows that the same field has another one, empty that a field is empty, prose that another field is text
	// of several words, and role that one is the role of a speaker, which messages have and calls do not.
	isStruct, rows, empty, prose, role bool

	// fields is the number of fields.
	fields int
}

// shapeOf examines the fields of the message at node i.
func (f *finder) shapeOf(i int32) callShape {
	s := callShape{nameAt: -1, argsAt: -1}
	for c := range f.tree.Children(i) {
		if s.fields++; f.tree.Node(c).Type == wire.Len {
			s.addField(f.tree.Payload(c), c)
		}
	}
	return s
}

// addField decides whether a length-delimited field, which is node at, is the call's name, arguments or identifier.
func (s *callShape) addField(payload []byte, at int32) {
	text := string(payload)
	switch {
	case text == "":
		s.empty = true
	case isObject(payload):
		if s.args == "" {
			s.args, s.argsAt = text, at
		}
	case isID(text) && s.id == "":
		s.id = text
	case ident.Of(text) != "":
		// A further identifier is not the name of a tool.
	case keyed.SpeakerOf(text) != keyed.Nobody:
		s.role = true
	case naming.IsTool(text) && s.name == "":
		s.name, s.nameAt = text, at
	case isText(text) && strings.ContainsAny(text, " \n"):
		// Prose next to a name and arguments: a definition of a tool, or an intent with its answer.
		s.prose = true
	default:
		if o, ok := appendStruct(nil, payload, 0); ok {
			s.rows = s.rows || s.isStruct
			if s.args == "" {
				s.args, s.argsAt, s.isStruct = string(o), at, true
			}
		}
	}
}

// addCall adds the message at node i as a call of a tool, or as the result of one, if its fields look like that.
// Otherwise it returns false. up is the enclosing message.
func (f *finder) addCall(i, up int32, speaker keyed.Speaker) bool {
	s := f.shapeOf(i)
	if s.fields > maxFields || s.name == "" || s.prose || s.role || s.rows {
		return false
	}
	path := f.tree.FieldPath(i).String()
	if s.args == "" && f.lacksArguments(&s, path, speaker) {
		s.args, s.argsAt, s.isStruct = "{}", s.nameAt, true
	}
	if s.args == "" || isSchema(s.args) || !s.isStruct && f.frame.Dir == captures.Up && s.fields > 4 {
		return false
	}
	// The identifier is often next to the function that is called.
	if s.id == "" && up > 0 {
		s.id = f.idIn(up, i)
	}
	p := keyed.Piece{
		Frame: f.at, Event: f.at, Seq: f.frame.Seq, Dir: f.frame.Dir, Path: f.tree.FieldPath(s.argsAt).String(), Channel: keyed.Call, Message: len(f.out) + 1,
		Name: s.name, ID: s.id, Text: s.args, Object: true, Whole: s.isStruct, Tier: 1,
	}
	if f.isResponse(&s, path, speaker) {
		p.Channel = keyed.Result
	} else {
		f.callPath, f.names[s.name] = cmp.Or(f.callPath, path), true
		if s.id != "" {
			f.ids[s.id] = true
		}
	}
	f.out = append(f.out, p)
	return true
}

// lacksArguments reports whether a message with the name of a tool is a call without arguments: another message at
// its path is a call, or its Struct of arguments is empty.
func (f *finder) lacksArguments(s *callShape, path string, speaker keyed.Speaker) bool {
	if f.callPath != "" && strings.HasSuffix(path, lastSteps(f.callPath)) && s.fields <= 2 {
		return f.frame.Dir == captures.Down || speaker == keyed.Assistant
	}
	return s.empty && s.fields == 2 && speaker == keyed.Assistant
}

// isResponse reports whether a message with the fields of a call is the result of one: another speaker than the
// assistant sent it, or it is at another path than the calls.
func (f *finder) isResponse(s *callShape, path string, speaker keyed.Speaker) bool {
	if !s.isStruct && (f.frame.Dir == captures.Down || !f.names[s.name]) {
		return false
	}
	if speaker == keyed.User || speaker == keyed.Tool {
		return true
	}
	return f.callPath != "" && path != f.callPath && f.frame.Dir == captures.Up && speaker != keyed.Assistant
}

// lastSteps returns the last two steps of a path.
func lastSteps(path string) string {
	at := strings.LastIndexByte(path, '.')
	if at > 0 {
		at = strings.LastIndexByte(path[:at], '.')
	}
	return path[at+1:]
}

// idIn returns the value that looks like an identifier among the fields of the message at node i, except for field
// node skip.
func (f *finder) idIn(i, skip int32) string {
	for c := range f.tree.Children(i) {
		if c != skip && f.tree.Node(c).Type == wire.Len {
			if s := string(f.tree.Payload(c)); isID(s) {
				return s
			}
		}
	}
	return ""
}

// addResult adds the message at node i as the result of a call if it contains the identifier of an earlier call and
// a text. Otherwise it returns false.
func (f *finder) addResult(i int32) bool {
	if len(f.ids) == 0 {
		return false
	}
	// Without a call that was seen before, an identifier says nothing.
	id := ""
	for c := range f.tree.Children(i) {
		if f.tree.Node(c).Type == wire.Len && f.ids[string(f.tree.Payload(c))] {
			id = string(f.tree.Payload(c))
		}
	}
	if id == "" {
		return false
	}
	text, at := f.longest(i, id, 0)
	if at < 0 {
		return false
	}
	f.out = append(f.out, keyed.Piece{
		Frame: f.at, Event: f.at, Seq: f.frame.Seq, Dir: f.frame.Dir, Path: f.tree.FieldPath(at).String(), Channel: keyed.Result, Message: len(f.out) + 1,
		ID: id, Text: text, Tier: 1,
	})
	return true
}

// addNamedResult adds the message at node i as the result of a call if the client sent it with only the name of a tool
// that was called before and a text. Otherwise it returns false.
func (f *finder) addNamedResult(i int32) bool {
	if f.frame.Dir != captures.Up || len(f.names) == 0 {
		return false
	}
	s := f.shapeOf(i)
	text, at := f.longest(i, s.name, 0)
	if s.fields != 2 || !f.names[s.name] || at < 0 {
		return false
	}
	f.out = append(f.out, keyed.Piece{
		Frame: f.at, Event: f.at, Seq: f.frame.Seq, Dir: f.frame.Dir, Path: f.tree.FieldPath(at).String(), Channel: keyed.Result, Message: len(f.out) + 1,
		Name: s.name, Text: text, Tier: 1,
	})
	return true
}

// maxResultDepth is the maximum number of nested messages in which the text of a result is searched.
const maxResultDepth = 5

// longest returns the longest text in the message at node i or in messages inside it, and its node, or -1. The
// identifier id does not count. depth is the number of messages entered so far.
func (f *finder) longest(i int32, id string, depth int) (text string, at int32) {
	at = -1
	for c := range f.tree.Children(i) {
		n := f.tree.Node(c)
		if n.Type != wire.Len {
			continue
		}
		s, node := string(f.tree.Payload(c)), c
		isMessage := f.tree.IsMessage(c)
		if isMessage && depth < maxResultDepth && !isText(s) {
			s, node = f.longest(c, id, depth+1)
		} else if isMessage && depth < maxResultDepth {
			// Text that also parses as a message: a text inside is longer than nothing.
			if inner, innerAt := f.longest(c, id, depth+1); innerAt >= 0 && len(inner) >= len(s)-3 {
				s, node = inner, innerAt
			}
		}
		// The identifier of a message may be longer than a short result.
		if node >= 0 && s != id && isText(s) && (at < 0 || isID(text) && !isID(s) || isID(text) == isID(s) && len(s) > len(text)) {
			text, at = s, node
		}
	}
	return text, at
}

// isText reports whether s is text: valid, and without control characters except for white space.
func isText(s string) bool {
	return s != "" && utf8.ValidString(s) && strings.IndexFunc(s, func(r rune) bool { return unicode.IsControl(r) && !unicode.IsSpace(r) }) < 0
}

// isObject reports whether a payload is a JSON object.
func isObject(p []byte) bool {
	return len(p) > 1 && p[0] == '{' && p[len(p)-1] == '}' && json.Valid(p)
}

// isSchema reports whether s is a JSON schema of a tool's arguments and not arguments themselves.
func isSchema(s string) bool {
	var o map[string]json.RawMessage
	if json.Unmarshal([]byte(s), &o) != nil {
		return false
	}
	if _, ok := o["properties"]; ok {
		return true
	}
	return bytes.Equal(o["type"], []byte(`"object"`)) || o["$schema"] != nil
}

// isID reports whether s may be the identifier of a call: one word of leastID to mostID bytes with digits.
func isID(s string) bool {
	if len(s) < leastID || len(s) > mostID {
		return false
	}
	digits, letters := 0, 0
	for i := range len(s) {
		switch c := s[i]; {
		case c >= '0' && c <= '9':
			digits++
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z':
			letters++
		case c != '_' && c != '-' && c != ':' && c != '.':
			return false
		}
	}
	return digits > 1 && digits+letters > 4
}

// IsCertain reports whether a piece is a call of the server that cannot be a word and a message with a text: its name
// has several words, or its arguments are a Struct with several members or a value that is not a string.
func IsCertain(p keyed.Piece) bool {
	if p.Dir != captures.Down || p.Channel != keyed.Call || !p.Whole {
		return false
	}
	if strings.ContainsAny(p.Name, "_-.") || strings.IndexFunc(p.Name[1:], unicode.IsUpper) >= 0 {
		return true
	}
	var o map[string]json.RawMessage
	if json.Unmarshal([]byte(p.Text), &o) != nil {
		return false
	}
	for _, v := range o {
		if v[0] != '"' {
			return true
		}
	}
	return len(o) > 1
}
