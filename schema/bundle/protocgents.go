package bundle

import (
	"fmt"
	"slices"
	"strings"

	"unwire/schema/bundle/jstree"

	"github.com/tdewolff/parse/v2/js"
	"google.golang.org/protobuf/types/descriptorpb"

	"unwire/schema/bundle/lexer"
	"unwire/schema/bundle/model"
	"unwire/schema/bundle/protoname"
)

// A genTSClass is the state of extracting one message from its class in the output of protoc-gen-ts.
type genTSClass struct {
	// tsSpaces are the TypeScript namespaces of the script that contains the class.
	*tsSpaces
	// message is the extracted message.
	message *model.Message
	// region is the bracket with the members of the class: its body, or in ES5 code the function around it.
	region jstree.Bracket
	// types maps the numbers of message and enum fields to the expressions that name their types.
	types map[int64]*jstree.Node
	// oneofs maps field numbers to the names of their oneofs.
	oneofs map[int64]string
}

// genTS extracts definitions from the output of protoc-gen-ts: classes inside namespaces, with methods
// serialize and deserialize.
func (x *scan) genTS() {
	s := x.Script
	var spaces *tsSpaces
	done := map[int32]bool{}
	for _, at := range s.Anchors[jstree.AnchorResultBuffer] {
		body := s.Function(s.Tok(at).Bracket)
		if done[body] || body == 0 || s.Typ(at-1) != js.DotToken || !s.Is(s.NameOf(body), "serialize") {
			continue
		}
		done[body] = true
		if spaces == nil {
			spaces = x.tsSpaces()
		}
		spaces.genTSMessage(body, s.Text(at-2))
	}
	if spaces == nil {
		return
	}

	// Enums are namespaces whose members are numbers.
	for _, body := range spaces.bodies {
		if values := membersIn(s, s.Brackets[body].Open, s.Brackets[body].Close); len(values) > 0 && ownMembers(s, body) {
			spaces.addEnum(spaces.path(body), model.FormGenTS, s.Brackets[body].Open, spaces.ids[body], values)
		}
	}
}

// ownMembers reports whether the first statement of a function assigns members of its parameter, as in a
// function that creates an enum. body is the function's body.
func ownMembers(s *jstree.Script, body int32) bool {
	open := s.Brackets[body].Open
	return s.Is(open+1, s.Param(body, 0)) && s.Typ(open+2) == js.OpenBracketToken
}

// genTSMessage extracts the message from the body of its method serialize. writer is the name of the
// writer in that method.
func (t *tsSpaces) genTSMessage(body int32, writer string) {
	s := t.Script
	c := &genTSClass{tsSpaces: t, types: map[int64]*jstree.Node{}, oneofs: map[int64]string{}}
	ids, ok := c.class(body)
	if !ok {
		return
	}
	full := ""

	// A class can have several names; the first one inside a namespace is the full name.
	for _, id := range ids {
		if key, ok := t.members[id]; ok && full == "" {
			full = t.memberPath(key)
		}
	}
	if full == "" {
		full, _ = t.exportedName(ids, nil, t.origins)
		space, _ := t.enclosing(s.Brackets[body].Open)
		full = protoname.Join(space, full)
	}
	c.message = &model.Message{Def: t.def(full, model.FormGenTS, s.Brackets[body].Open, ids)}
	c.findTypes()

	j := &jspbFile{scan: t.scan}
	b := s.Brackets[body]

	// Each call of a write method writes one field.
	for i := b.Open; i < b.Close; i++ {
		word, ok := strings.CutPrefix(s.Text(i), "write")
		if !ok || word == "" || s.Typ(i-1) != js.DotToken || s.Typ(i+1) != js.OpenParenToken || !s.Is(i-2, writer) {
			continue
		}
		if f := c.field(j, i); f != nil {
			c.message.Fields = append(c.message.Fields, f)
		}
		// The function that writes an entry of a map belongs to the field.
		i = s.EnclosingBracket(i + 1).Close
	}
	if !protoname.ValidFull(full) {
		c.message.Full = t.inventedName(c.message)
		t.unresolved(c.message.Full, b.Open, "a minifier removed its name, so extract made one up")
	}
	t.Messages = append(t.Messages, c.message)
}

// class finds the class of the method with the given body and sets c.region. It returns the tokens that refer
// to the class.
func (c *genTSClass) class(body int32) (ids []int32, ok bool) {
	s := c.Script
	for br, n := s.Brackets[body].Parent, 0; br != 0 && n < jstree.MaxNesting; br, n = s.Brackets[br].Parent, n+1 {
		if class, is := s.Classes[br]; is {
			c.region = s.Brackets[br]
			return s.ClassIDs(class), s.MayScan(br)
		}
	}

	// ES5 assigns the methods: Item.prototype.serialize = function, inside Item = (function (_super) { … }(Message))
	name := s.NameOf(body)
	outer := s.Function(s.Brackets[body].Parent)
	if outer == 0 || !s.Is(name-2, "prototype") || !s.MayScan(outer) {
		return nil, false
	}
	b, bound := s.Lookup(name-4, s.Text(name-4))
	if !bound {
		return nil, false
	}
	c.region = s.Brackets[outer]
	around := s.FunctionAt(outer)
	for s.Typ(around-1) == js.OpenParenToken && !js.IsIdentifier(s.Typ(around-2)) {
		around--
	}
	names, _ := s.BoundNames(around)
	return append([]int32{b.Tok}, names...), true
}

// findTypes fills in c.types and c.oneofs from other members of the class: Item.Sub.deserialize(reader) in case
// 18, getFieldWithDefault(this, 7, Color.RED), and computeOneofCase(this, [17, 18]).
func (c *genTSClass) findTypes() {
	s := c.Script
	for _, part := range s.SwitchCases(c.region.Open, c.region.Close) {
		for i := part.From; i < part.To; i++ {
			if s.Is(i, "deserialize") && s.Typ(i-1) == js.DotToken && s.Typ(i+1) == js.OpenParenToken {
				c.types[part.Number] = s.ObjectOf(i)
				break
			}
		}
	}
	for i := c.region.Open; i < c.region.Close; i++ {
		if s.Typ(i-1) != js.DotToken || s.Typ(i+1) != js.OpenParenToken {
			continue
		}
		switch s.Text(i) {
		case "getFieldWithDefault":
			call := s.CallOf(i)
			if call == nil || len(call.Kids) != 4 || call.Kids[3].Kind != jstree.MemberNode {
				continue
			}
			if number, ok := s.Integer(call.Kids[2]); ok && c.types[number] == nil {
				c.types[number] = call.Kids[3].Kids[0]
			}
		case "computeOneofCase":
			c.oneof(i)
		}
	}
}

// oneof records the oneof whose getter calls computeOneofCase at the token with index at.
func (c *genTSClass) oneof(at int32) {
	s := c.Script
	call := s.CallOf(at)
	if call == nil || len(call.Kids) != 3 {
		return
	}
	members, _ := s.Elements(call.Kids[2])
	own := s.Function(s.Tok(at).Bracket)
	token := s.NameOf(own)
	name := s.Text(token)

	// ES5 has Object.defineProperty(Item.prototype, "choice", {get: function () {…}}).
	if around := s.EnclosingBracket(token); around.Kind == '{' && !around.Fn && s.Typ(around.Open-1) == js.CommaToken && s.Typ(around.Open-2) == js.StringToken {
		name = lexer.Unquote(s.Text(around.Open - 2))
	}
	for _, m := range members {
		if number, ok := s.Integer(m); ok {
			c.oneofs[number] = name
		}
	}
}

// field extracts the field that a call of the writer writes: writer.writeString(1, this.x). at is the token of
// the method's name. j interprets the names of methods.
func (c *genTSClass) field(j *jspbFile, at int32) *model.Field {
	s := c.Script
	call := s.CallOf(at)
	if call == nil || len(call.Kids) < 3 {
		return nil
	}
	f := j.field(s.Text(at), call)
	if f == nil {
		return nil
	}
	f.Place = c.place(at)

	// Minified code can lack the name, but always has the number.
	if f.Name = call.Kids[2].Str; call.Kids[2].Kind != jstree.MemberNode || !protoname.Valid(f.Name) {
		f.Name = fmt.Sprint("field_", f.Number)
	}

	if len(call.Kids) > 3 {
		c.mapTypes(j, f, call.Kids[3])
	}
	if f.Ref != nil && f.Ref.Full == "" {
		isEnum := f.Ref.Enum
		if n := c.types[f.Number]; n != nil {
			f.Ref = c.typeRef(n)
			f.Ref.Enum = isEnum
			c.enumBehind(f.Ref, n)
		} else {
			f.Ref.Local, f.Ref.Place = "of "+f.Name, f.Place
		}
	}
	// The oneof of an optional field has the name of the field behind an underscore.
	switch oneof := c.oneofs[f.Number]; {
	case oneof == "_"+f.Name:
		f.Presence = true
	case protoname.Valid(oneof):
		f.Oneof = oneof
	}
	return f
}

// enumBehind adds the enum that r refers to, if the function that creates it has no braces and so is not found
// as a namespace: (e => (e[e.RED = 0] = "RED", e))(Color ||= {}). n is the expression of the reference.
func (c *genTSClass) enumBehind(r *model.Ref, n *jstree.Node) {
	if !r.Enum || r.Full == "" || !c.MayScanSpan(0, int32(len(c.Enums))) {
		return
	}
	if slices.ContainsFunc(c.Enums, func(e *model.Enum) bool { return e.Full == r.Full }) {
		return
	}
	for _, body := range c.bodies {
		if c.paths[body] == r.Full {
			return
		}
	}
	if values := enumValues(c.Script, n); len(values) > 0 {
		c.addEnum(r.Full, model.FormGenTS, n.At, nil, values)
	}
}

// mapTypes makes a field a map if fn, the function that writes its content, writes a key and a value.
func (c *genTSClass) mapTypes(j *jspbFile, f *model.Field, fn *jstree.Node) {
	s := c.Script
	if fn.Kind != jstree.FuncNode || len(fn.Kids) > 0 || !s.MayScan(fn.Body) {
		return
	}
	var parts []*model.Field
	for i := s.Brackets[fn.Body].Open; i < s.Brackets[fn.Body].Close; i++ {
		if strings.HasPrefix(s.Text(i), "write") && s.Typ(i-1) == js.DotToken && s.Typ(i+1) == js.OpenParenToken {
			if call := s.CallOf(i); call != nil {
				if part := j.field(s.Text(i), call); part != nil {
					parts = append(parts, part)
				}
			}
		}
	}
	key := slices.IndexFunc(parts, func(p *model.Field) bool { return p.Number == 1 && p.Scalar != 0 })
	value := slices.IndexFunc(parts, func(p *model.Field) bool { return p.Number == 2 })
	if key < 0 || value < 0 {
		return
	}
	f.MapKey, f.Scalar, f.Ref, f.Repeated, f.Packed = parts[key].Scalar, parts[value].Scalar, parts[value].Ref, false, nil
	if f.MapKey == descriptorpb.FieldDescriptorProto_TYPE_BYTES {
		f.MapKey = descriptorpb.FieldDescriptorProto_TYPE_STRING
	}
}
