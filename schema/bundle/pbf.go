package bundle

import (
	"slices"
	"strings"

	"unwire/schema/bundle/jstree"

	"github.com/tdewolff/parse/v2/js"
	"google.golang.org/protobuf/types/descriptorpb"

	"unwire/schema/bundle/model"
	"unwire/schema/bundle/protoname"
)

// pbfTypes maps the methods of pbf's readers and writers to scalar types. The names are without read, write,
// Packed and Field. The methods do not distinguish 32 from 64 bits, so the wider type is used, which can
// represent both.
var pbfTypes = map[string]descriptorpb.FieldDescriptorProto_Type{
	"Varint":   descriptorpb.FieldDescriptorProto_TYPE_UINT64,
	"SVarint":  descriptorpb.FieldDescriptorProto_TYPE_SINT64,
	"Boolean":  descriptorpb.FieldDescriptorProto_TYPE_BOOL,
	"String":   descriptorpb.FieldDescriptorProto_TYPE_STRING,
	"Bytes":    descriptorpb.FieldDescriptorProto_TYPE_BYTES,
	"Float":    descriptorpb.FieldDescriptorProto_TYPE_FLOAT,
	"Double":   descriptorpb.FieldDescriptorProto_TYPE_DOUBLE,
	"Fixed32":  descriptorpb.FieldDescriptorProto_TYPE_FIXED32,
	"SFixed32": descriptorpb.FieldDescriptorProto_TYPE_SFIXED32,
	"Fixed64":  descriptorpb.FieldDescriptorProto_TYPE_FIXED64,
	"SFixed64": descriptorpb.FieldDescriptorProto_TYPE_SFIXED64,
}

// A pbfFile is the state of extracting messages from a script that uses the library pbf.
type pbfFile struct {
	// scan is the state of extracting definitions from the script, to which this type adds facts about pbf code.
	*scan
	// origins maps the tokens of declarations to the names under which they are exported.
	origins map[int32]origin
	// values maps members to the tokens of the values assigned to them. Versions of pbf before 4 assign
	// functions to members.
	values map[jstree.MemberKey]int32
	// byKey has the messages found so far, by the object or function that reads and writes them.
	byKey map[jstree.MemberKey]*model.Message
	// modules has the bodies of the functions that contain message definitions; 0 stands for the top level of
	// the script.
	modules map[int32]bool
}

// pbf extracts messages from the output of pbf, and from similar code written by people: readFields(function
// (tag, o, pbf) { if (tag === 1) o.x = pbf.readString(); … }, {…}), while (field = pbf.nextField(end)) …, and
// functions that call pbf.writeStringField(1, o.x). It uses both reading and writing functions, because
// bundlers drop those that are not called.
func (x *scan) pbf() {
	s := x.Script
	if len(s.Anchors[jstree.AnchorReadFields]) == 0 && len(s.Anchors[jstree.AnchorPBFWrite]) == 0 {
		return
	}
	f := &pbfFile{scan: x, origins: x.origins(), values: s.MemberValues(), byKey: map[jstree.MemberKey]*model.Message{}, modules: map[int32]bool{}}
	for _, at := range s.Anchors[jstree.AnchorReadFields] {
		f.readFunction(at)
	}

	done := map[int32]bool{}
	for _, at := range s.Anchors[jstree.AnchorPBFWrite] {
		body := s.Function(s.Tok(at).Bracket)
		if done[body] || body == 0 || s.Typ(at+1) != js.OpenParenToken || s.Typ(at-1) != js.DotToken {
			continue
		}
		done[body] = true
		f.writeFunction(body)
	}
	if len(f.byKey) > 0 {
		x.plainEnums(model.FormPBF, f.modules, f.origins)
	}
}

// readFunction extracts a message from the function that decodes it. at is the token nextField or readFields in
// that function.
func (f *pbfFile) readFunction(at int32) {
	s := f.Script
	own := s.Function(s.Tok(at).Bracket)
	if s.Typ(at-1) != js.DotToken || s.Typ(at+1) != js.OpenParenToken || own == 0 {
		return
	}
	pbf, object, tag, body := s.Text(at-2), "", "", own
	if s.Is(at, "nextField") {
		// The loop is while ((field = pbf.nextField(end))).
		start := s.StartOf(at)
		if s.Typ(start-1) == js.EqToken {
			tag = s.Text(start - 2)
		}
		object, _ = s.NewObject(own)
	} else {
		call := s.CallOf(at)
		if call == nil || len(call.Kids) < 3 {
			return
		}
		fn := f.functionOf(call.Kids[1])
		if fn == nil || len(fn.Kids) > 0 {
			return
		}
		body = fn.Body
		tag, object, pbf = s.Param(body, 0), s.Param(body, 1), s.Param(body, 2)
	}
	if object == "" {
		return
	}

	m := &model.Message{}
	for _, c := range s.ComparedCases(tag, s.Brackets[body].Open, s.Brackets[body].Close) {
		if field := f.readField(c, object, pbf); field != nil {
			m.Fields = append(m.Fields, field)
		} else {
			f.unresolved("", c.From, "the code that reads this field is not generated, so extract left it out")
		}
	}
	if len(m.Fields) > 0 || s.Is(at, "nextField") {
		f.declare(m, own, at)
	}
}

// functionOf returns the function that an expression evaluates to, or nil.
func (f *pbfFile) functionOf(n *jstree.Node) *jstree.Node {
	if v := f.Value(n); v != nil && v.Kind == jstree.FuncNode {
		return v
	}
	if key, ok := f.KeyOf(n); ok {
		if at, ok := f.values[key]; ok {
			if v := f.Expr(at); v.Kind == jstree.FuncNode {
				return v
			}
		}
	}
	return nil
}

// readField extracts a field from one case of a function that decodes messages. object and pbf are the names of
// the decoded object and of the reader. It returns nil if it finds none.
func (f *pbfFile) readField(c jstree.FieldCase, object, pbf string) *model.Field {
	s := f.Script
	t, ok := s.TargetOfCase(c, object)
	if !ok {
		return nil
	}
	field := &model.Field{Number: c.Number, Name: t.Name, Repeated: t.Repeated, Place: f.place(t.At)}
	f.readType(field, c, t, pbf)
	if field.Scalar == 0 && field.Ref == nil {
		return nil
	}
	field.Oneof = f.choiceOf(c, t, object)
	return field
}

// readType sets the type of a field from the call that reads it in the case c: pbf.readString(), or a function
// that reads a message. pbf is the name of the reader.
func (f *pbfFile) readType(field *model.Field, c jstree.FieldCase, t jstree.CaseTarget, pbf string) {
	s := f.Script
	for i := c.From; i < c.To; i++ {
		if s.Typ(i+1) != js.OpenParenToken || !js.IsIdentifierName(s.Typ(i)) {
			continue
		}

		// A message is read by a function that gets the reader and the end: read(pbf, pbf.readVarint() + pbf.pos).
		if s.Is(i+2, pbf) && s.Typ(i+3) == js.CommaToken && s.Is(i+6, "readVarint") {
			field.Ref, field.Entry = f.messageRef(i), t.Keyed
			return
		}
		word, ok := strings.CutPrefix(s.Text(i), "read")
		if !ok || s.Typ(i-1) != js.DotToken || !s.Is(i-2, pbf) {
			continue
		}
		word, packed := strings.CutPrefix(word, "Packed")
		if field.Scalar = pbfTypes[word]; field.Scalar == 0 {
			continue
		}
		// The last argument is true for signed numbers.
		if call := s.CallOf(i); word == "Varint" && call != nil && len(call.Kids) > 1 && s.Boolean(call.Kids[len(call.Kids)-1]) {
			field.Scalar = descriptorpb.FieldDescriptorProto_TYPE_INT64
		}
		if field.Repeated && model.Packable(field.Scalar) {
			field.Packed = &packed
		}
		return
	}
}

// choiceOf returns the name of the oneof that contains a field, or "". In the generated code it is the member
// that is set to the name of the field, as in o.choice = "x".
func (f *pbfFile) choiceOf(c jstree.FieldCase, t jstree.CaseTarget, object string) string {
	s := f.Script
	for i := t.At; i < c.To; i++ {
		if s.Is(i, object) && s.Typ(i+1) == js.DotToken && s.Typ(i+3) == js.EqToken && s.Typ(i+4) == js.StringToken {
			if name, ok := s.Str(s.Expr(i + 4)); ok && name == t.Name {
				return s.Text(i + 2)
			}
		}
	}
	return ""
}

// messageRef returns a reference to the message that a function reads or writes. at is the last token of the
// function's name.
func (f *pbfFile) messageRef(at int32) *model.Ref {
	n := f.ObjectOf(at)
	if f.Typ(at-1) != js.DotToken {
		n = &jstree.Node{Kind: jstree.IdentNode, At: at, End: at + 1, Str: f.Text(at)}
	} else if key, ok := f.KeyOf(n); ok && f.values[jstree.MemberKey{Root: key.Root, Path: key.Path + "." + f.Text(at)}] > 0 {
		// The functions are members of the message: Item.read.
		r := &model.Ref{Local: strings.TrimPrefix(key.Path, "."), Place: f.place(at)}
		r.IDs = []int32{f.values[jstree.MemberKey{Root: key.Root, Path: key.Path + "." + f.Text(at)}]}
		f.Refs = append(f.Refs, r)
		return r
	}
	r := f.ref(n)
	r.Local, _ = pbfMessageName(r.Local)
	return r
}

// pbfMessageName returns the message name in the name of a function such as readItem or writeItem. ok is false
// if the function's name does not have that form.
func pbfMessageName(function string) (name string, ok bool) {
	for _, prefix := range []string{"read", "write"} {
		if rest, ok := strings.CutPrefix(function, prefix); ok && rest != "" {
			return rest, true
		}
	}
	return function, false
}

// declare adds the message that a function reads or writes, unless it was already added because of its other
// function. body is the function's body, and at the token for the place in reports.
func (f *pbfFile) declare(m *model.Message, body, at int32) {
	s := f.Script
	full, key, ids := f.messageName(body)
	if old := f.byKey[key]; old != nil && full != "" {
		old.IDs = append(old.IDs, ids...)
		return
	}
	m.Def = f.def(full, model.FormPBF, at, ids)
	if !protoname.ValidFull(full) {
		m.Full = f.inventedName(m)
		f.unresolved(m.Full, at, "a minifier removed its name, so extract made one up")
	}
	f.byKey[key] = m
	f.modules[s.Function(s.Brackets[body].Parent)] = true
	f.Messages = append(f.Messages, m)
}

// messageName returns facts about the function with the given body: the full name of the message that it reads
// or writes ("" if minification removed it), the key that both functions of the message share, and the tokens
// that refer to the function.
func (f *pbfFile) messageName(body int32) (full string, key jstree.MemberKey, ids []int32) {
	s := f.Script
	start := s.FunctionAt(body)
	ids = []int32{start}
	key = jstree.MemberKey{Root: start}
	name := s.NameOf(body)
	if s.Typ(start) == js.FunctionToken && js.IsIdentifier(s.Typ(start+1)) {
		name = start + 1
	}
	if name < 0 {
		return "", key, ids
	}

	// The functions are members of the message, or of the exports: Item.read, exports.readItem.
	if s.Typ(name-1) == js.DotToken {
		ids = append(ids, name+2)
		if rest, ok := pbfMessageName(s.Text(name)); ok {
			return rest, jstree.MemberKey{Path: "." + rest}, ids
		}
		var ok bool
		if key, ok = s.KeyOf(s.ObjectOf(name)); ok {
			full = f.nameOfKey(key)
		}
		return full, key, ids
	}

	if b, ok := s.Lookup(name, s.Text(name)); ok {
		ids = append(ids, b.Tok)
	}
	_, words := s.BoundNames(start)
	word, _ := f.exportedName(ids[1:], words, f.origins)
	full, ok := pbfMessageName(word)
	if !ok && (len(word) <= 2 || s.Minified()) {
		return "", key, ids
	}
	return full, jstree.MemberKey{Root: s.Function(s.Brackets[body].Parent), Path: "." + full}, ids
}

// readBefore reports whether a message with the same fields was found before. The function that writes m, which
// has no name, then belongs to that message.
func (f *pbfFile) readBefore(m *model.Message) bool {
	if !f.MayScanSpan(0, int32(len(f.Messages))) {
		return false
	}
	return slices.ContainsFunc(f.Messages, func(o *model.Message) bool {
		return o.Form == model.FormPBF && slices.EqualFunc(o.Fields, m.Fields, func(a, b *model.Field) bool {
			return a.Number == b.Number && a.Name == b.Name
		})
	})
}

// nameOfKey returns the full name of the message whose functions are members of an object. key identifies the
// object.
func (f *pbfFile) nameOfKey(key jstree.MemberKey) string {
	s := f.Script
	b, ok := s.Lookup(key.Root, s.Text(key.Root))
	word := s.Text(key.Root)
	if ok && b.Init >= 0 {
		// var t = exports.Item = {}
		value := s.Expr(b.Init)
		for value.Kind == jstree.AssignNode {
			value = value.Kids[1]
		}
		ids, words := s.BoundNames(value.At)
		word, _ = f.exportedName(append(ids, b.Tok), words, f.origins)
	}
	return word + key.Path
}

// writeFunction extracts a message from the function that encodes it, whose body is the given bracket.
func (f *pbfFile) writeFunction(body int32) {
	s := f.Script
	e := &encoder{body: body, param: s.Param(body, 0)}
	pbf := s.Param(body, 1)
	b := s.Brackets[body]
	if pbf == "" || !s.MayScan(body) {
		return
	}

	m := &model.Message{}
	for i := b.Open; i < b.Close; i++ {
		if s.Typ(i) == js.DotToken && s.Is(i-1, pbf) && s.Typ(i+2) == js.OpenParenToken {
			if field := f.writtenPBF(e, i+1); field != nil {
				m.Fields = append(m.Fields, field)
			}
		}
	}
	if len(m.Fields) > 0 && (f.functionName(body) != "" || !f.readBefore(m)) {
		f.declare(m, body, b.Open)
	}
}

// functionName returns the name of the message that is in the name of its function (readItem, Item.read or
// Item.write), or "" if minification removed it.
func (f *pbfFile) functionName(body int32) string {
	name, _, _ := f.messageName(body)
	return name
}

// writtenPBF extracts the field that a call writes: pbf.writeStringField(1, o.x), pbf.writePackedVarint(2, o.x)
// or pbf.writeMessage(3, write, o.x). at is the token of the method's name. It returns nil for other calls.
func (f *pbfFile) writtenPBF(e *encoder, at int32) *model.Field {
	s := f.Script
	word, ok := strings.CutPrefix(s.Text(at), "write")
	call := s.CallOf(at)
	if !ok || call == nil || len(call.Kids) < 3 {
		return nil
	}
	number, ok := s.Integer(call.Kids[1])
	if !ok {
		return nil
	}
	field := &model.Field{Number: number, Place: f.place(at)}
	value := call.Kids[2]
	switch word, packed := strings.CutPrefix(word, "Packed"); {
	case word == "Message" && len(call.Kids) > 3:
		value = call.Kids[3]
		field.Entry = value.Get("key") != nil
		// Writers of google-protobuf have a method of this name with other arguments.
		name := call.Kids[2]
		if name.Kind != jstree.IdentNode && name.Kind != jstree.MemberNode || value.Kind == jstree.MemberNode && !f.isMemberOf(e, value) {
			return nil
		}
		field.Ref = f.messageRef(name.End - 1)
	case packed && f.isMemberOf(e, value):
		field.Scalar, field.Repeated, field.Packed = pbfTypes[word], true, &packed
	case strings.HasSuffix(word, "Field"):
		field.Scalar = pbfTypes[strings.TrimSuffix(word, "Field")]
	}
	if field.Scalar == 0 && field.Ref == nil {
		return nil
	}

	if f.isMemberOf(e, value) {
		field.Name = value.Str
	} else {
		f.writtenPart(e, field, at)
	}
	if field.Name == "" {
		return nil
	}
	return field
}

// writtenPart sets the name of a repeated or map field whose elements are written one by one. The name is the
// member over which the loop around the call at the token with index at iterates.
func (f *pbfFile) writtenPart(e *encoder, field *model.Field, at int32) {
	s := f.Script
	close := s.EnclosingBracket(at + 1).Close
	field.Name = memberAfter(s, e, s.Skip(at+2, close), close)
	if field.Name == "" {
		field.Name = memberBefore(s, e, at)
	}
	field.Repeated = !field.Entry
	if field.Repeated && field.Scalar != 0 && model.Packable(field.Scalar) {
		field.Packed = new(bool)
	}
}

// isMemberOf reports whether an expression is a member of the message that the function e writes.
func (f *pbfFile) isMemberOf(e *encoder, n *jstree.Node) bool {
	return n.Kind == jstree.MemberNode && f.Is(n.At-2, e.param)
}
