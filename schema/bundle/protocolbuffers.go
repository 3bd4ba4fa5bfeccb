package bundle

import (
	"strings"

	"unwire/schema/bundle/jstree"

	"github.com/tdewolff/parse/v2/js"
	"google.golang.org/protobuf/types/descriptorpb"

	"unwire/schema/bundle/model"
	"unwire/schema/bundle/protoname"
)

// compactTypes maps the encodings of the npm package protocol-buffers-encodings to scalar types. Unsigned
// integers share one encoding, so the wider type is used.
var compactTypes = map[string]descriptorpb.FieldDescriptorProto_Type{
	"varint":   descriptorpb.FieldDescriptorProto_TYPE_UINT64,
	"int32":    descriptorpb.FieldDescriptorProto_TYPE_INT32,
	"int64":    descriptorpb.FieldDescriptorProto_TYPE_INT64,
	"sint64":   descriptorpb.FieldDescriptorProto_TYPE_SINT64,
	"bool":     descriptorpb.FieldDescriptorProto_TYPE_BOOL,
	"string":   descriptorpb.FieldDescriptorProto_TYPE_STRING,
	"bytes":    descriptorpb.FieldDescriptorProto_TYPE_BYTES,
	"float":    descriptorpb.FieldDescriptorProto_TYPE_FLOAT,
	"double":   descriptorpb.FieldDescriptorProto_TYPE_DOUBLE,
	"fixed32":  descriptorpb.FieldDescriptorProto_TYPE_FIXED32,
	"sfixed32": descriptorpb.FieldDescriptorProto_TYPE_SFIXED32,
	"fixed64":  descriptorpb.FieldDescriptorProto_TYPE_FIXED64,
	"sfixed64": descriptorpb.FieldDescriptorProto_TYPE_SFIXED64,
}

// A compactFile is the state of extracting messages from a script with output of the npm package
// protocol-buffers.
type compactFile struct {
	// scan is the state of extracting definitions from the script, to which this type adds facts about
	// protocol-buffers code.
	*scan
	// origins maps the tokens of declarations to the names under which they are exported.
	origins map[int32]origin
	// byID maps the tokens that refer to a message to that message.
	byID map[int32]*model.Message
	// modules has the bodies of the functions that contain messages; 0 stands for the top level of the script.
	modules map[int32]bool
}

// compact extracts definitions from the output of the npm package protocol-buffers: objects {buffer: true,
// encodingLength: null, …}, to which a function assigns encode and decode.
func (x *scan) compact() {
	s := x.Script
	c := &compactFile{scan: x, byID: map[int32]*model.Message{}, modules: map[int32]bool{}}
	for _, at := range s.Anchors[jstree.AnchorEncodingLength] {
		own := s.EnclosingBracket(at)
		if s.Typ(at+1) != js.ColonToken || own.Kind != '{' || own.Fn {
			continue
		}
		if o := s.Expr(own.Open); o.Kind == jstree.ObjectNode && o.Get("buffer") != nil && o.Get("decode") != nil {
			c.declare(own.Open)
		}
	}
	if len(c.byID) == 0 {
		return
	}

	// Foo.decode = decode follows Foo.encodingLength = encodingLength.
	for _, at := range s.Anchors[jstree.AnchorEncodingLength] {
		if s.Typ(at+1) != js.EqToken || s.Typ(at-1) != js.DotToken {
			continue
		}
		if m := c.messageOf(s.ObjectOf(at)); m != nil && len(m.Fields) == 0 {
			c.fields(m, at)
		}
	}
	x.plainEnums(model.FormCompact, c.modules, c.origins)
}

// declare adds the message whose object literal begins at the token with index at.
func (c *compactFile) declare(at int32) {
	s := c.Script
	if c.origins == nil {
		c.origins = c.scan.origins()
	}
	ids, words := s.BoundNames(at)
	word, _ := c.exportedName(ids, words, c.origins)

	// Item.Inner = {…} is nested in Item.
	for i := at - 1; s.Typ(i) == js.EqToken; i = s.StartOf(i-1) - 1 {
		if s.Typ(i-2) != js.DotToken {
			continue
		}
		if outer := c.messageOf(s.ObjectOf(i - 1)); outer != nil {
			word = outer.Full + "." + s.Text(i-1)
		}
	}

	ids = append(ids, at)
	m := &model.Message{Def: c.def(word, model.FormCompact, at, ids)}
	if !protoname.ValidFull(word) {
		m.Full = placeholder("Message", s.Name+word)
		c.unresolved(m.Full, at, "a minifier removed its name, so extract made one up")
	}
	for _, id := range ids {
		c.byID[id] = m
	}
	c.modules[s.Function(s.Tok(at-1).Bracket)] = true
	c.Messages = append(c.Messages, m)
}

// messageOf returns the message that an expression refers to, or nil.
func (c *compactFile) messageOf(n *jstree.Node) *model.Message {
	t := c.Follow(n)
	for _, id := range t.IDs {
		if m := c.byID[id]; m != nil {
			return m
		}
	}
	if t.End != nil {
		return c.byID[t.End.At]
	}
	return nil
}

// fields extracts the fields of a message from the function that is assigned to decode. at is the token
// encodingLength of the preceding assignment.
func (c *compactFile) fields(m *model.Message, at int32) {
	s := c.Script
	object := s.Text(s.StartOf(at))
	var fn *jstree.Node
	for i := at; i < s.EnclosingBracket(at).Close && s.Step(i); i = s.Next(i) {
		if s.Is(i, "decode") && s.Typ(i+1) == js.EqToken && s.Typ(i-1) == js.DotToken && s.Is(i-2, object) {
			fn = s.Value(s.Expr(i + 2))
			break
		}
	}
	if fn == nil || fn.Kind != jstree.FuncNode || len(fn.Kids) > 0 {
		c.unresolved(m.Full, at, "the function that decodes it was not found")
		return
	}

	b := s.Brackets[fn.Body]
	name, initial := s.NewObject(fn.Body)
	required := c.required(m, s.EnclosingBracket(at))
	for _, part := range s.SwitchCases(b.Open, b.Close) {
		f := c.field(part, name)
		if f == nil {
			c.unresolved(m.Full, part.From, "a case reads no field")
			continue
		}
		if f.Required = required[f.Name]; f.Required {
			m.Syntax = "proto2"
		}
		c.setDefault(f, initial.Get(f.Name))
		m.Fields = append(m.Fields, f)
	}
	c.oneofs(m, s.EnclosingBracket(at))
}

// field extracts a field from one case of a decoding function. object is the name of the decoded object.
func (c *compactFile) field(part jstree.FieldCase, object string) *model.Field {
	s := c.Script
	t, ok := s.TargetOfCase(part, object)
	if !ok {
		return nil
	}
	f := &model.Field{Number: part.Number, Name: t.Name, Repeated: t.Repeated, Place: c.place(t.At)}

	// The value is that of a call of decode: in the assignment itself, or before it for the entry of a map.
	from, to := t.At, part.To
	if t.Keyed {
		from, to = part.From, t.At
	}
	for i := from; i < to; i++ {
		if !s.Is(i, "decode") || s.Typ(i-1) != js.DotToken || s.Typ(i+1) != js.OpenParenToken {
			continue
		}
		codec := s.ObjectOf(i)
		if m := c.messageOf(codec); m != nil {
			f.Ref = c.ref(codec)
			f.Entry = t.Keyed
			return f
		}

		// A variable may stand for the codec.
		if v := s.Value(codec); t.Keyed || v == nil || v.Kind != jstree.MemberNode && codec.Kind != jstree.MemberNode {
			continue
		} else if v.Kind == jstree.MemberNode {
			codec = v
		}
		if f.Scalar = compactTypes[codec.Str]; f.Scalar == 0 && codec.Str == "enum" {
			f.Scalar = descriptorpb.FieldDescriptorProto_TYPE_INT32
		}
		if f.Scalar == 0 {
			f.Ref = c.ref(codec)
			return f
		}

		// Whether a list is packed shows only in the loop that reads it.
		if f.Repeated && model.Packable(f.Scalar) {
			packed := c.inLoop(i, part)
			f.Packed = &packed
		}
		return f
	}
	return nil
}

// inLoop reports whether the token with index at, which is in the case part, is inside a loop that reads the
// elements of a packed field.
func (c *compactFile) inLoop(at int32, part jstree.FieldCase) bool {
	for i := part.From; i < at; i++ {
		if t := c.Typ(i); t == js.WhileToken || t == js.ForToken {
			return true
		}
	}
	return false
}

// required returns the names of the required fields, found in code such as throw new Error("x is required"). b
// is the function with the message's code.
func (c *compactFile) required(m *model.Message, b jstree.Bracket) map[string]bool {
	const suffix = " is required"
	list := map[string]bool{}
	c.errorTexts(m, b, func(text string, _ int32) {
		if name, ok := strings.CutSuffix(text, suffix); ok {
			list[name] = true
		}
	})
	return list
}

// oneofs sets the oneofs of a message's fields, which are found in the errors for setting several members of a
// oneof. b is the function with the message's code.
func (c *compactFile) oneofs(m *model.Message, b jstree.Bracket) {
	s := c.Script
	const prefix, suffix = "only one of the properties defined in oneof ", " can be set"
	byName := map[string]*model.Field{}
	for _, f := range m.Fields {
		byName[f.Name] = f
	}
	c.errorTexts(m, b, func(text string, at int32) {
		rest, ok := strings.CutPrefix(text, prefix)
		name, ok2 := strings.CutSuffix(rest, suffix)
		if !ok || !ok2 || !protoname.Valid(name) {
			return
		}
		// The condition in front of the error names the members: defined(o.a) + defined(o.b) > 1.
		for i := at; i > b.Open && s.Typ(i) != js.IfToken && s.Typ(i) != js.SemicolonToken && s.Step(i); i-- {
			if f := byName[s.Text(i)]; f != nil && s.Typ(i-1) == js.DotToken {
				f.Oneof = name
			}
		}
	})
}

// errorTexts calls visit with each string literal and its token in the function b, except in the functions of
// nested messages. Error messages contain field names.
func (c *compactFile) errorTexts(m *model.Message, b jstree.Bracket, visit func(text string, at int32)) {
	s := c.Script
	if !s.MayScanSpan(b.Open, b.Close) {
		return
	}
	for i := b.Open + 1; i < b.Close; i++ {
		// Nested messages have a function of their own.
		if own := s.EnclosingBracket(i); own.Fn && own.Open == i && c.definesOther(own, m) {
			i = own.Close
			continue
		}
		if s.Typ(i) == js.StringToken && s.Typ(i-1) == js.OpenParenToken {
			if text, ok := s.Str(s.Expr(i)); ok {
				visit(text, i)
			}
		}
	}
}

// definesOther reports whether the function b has the code of a message other than m.
func (c *compactFile) definesOther(b jstree.Bracket, m *model.Message) bool {
	anchors := c.Anchors[jstree.AnchorEncodingLength]
	if !c.MayScanSpan(0, int32(len(anchors))) {
		return false
	}
	for _, at := range anchors {
		if at > b.Open && at < b.Close && c.Typ(at+1) == js.EqToken {
			if other := c.messageOf(c.ObjectOf(at)); other != nil && other != m {
				return true
			}
		}
	}
	return false
}

// setDefault sets the default value of a field to the value that its member has in a new object. Zero and empty
// values are not explicit defaults.
func (c *compactFile) setDefault(f *model.Field, initial *jstree.Node) {
	if initial == nil || f.Repeated || f.Ref != nil || f.Scalar == descriptorpb.FieldDescriptorProto_TYPE_BYTES {
		return
	}
	text, ok := c.literal(initial, f.Scalar)
	if ok && text != "" && text != "0" && text != "false" && initial.Kind != jstree.NullNode {
		f.Value = &text
	}
}
