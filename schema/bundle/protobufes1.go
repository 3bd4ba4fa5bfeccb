package bundle

import (
	"strings"

	"unwire/schema/bundle/jstree"

	"unwire/schema/bundle/model"

	"unwire/schema/bundle/protoname"

	"github.com/tdewolff/parse/v2/js"
	"google.golang.org/protobuf/types/descriptorpb"
)

// es1 extracts definitions from the output of protoc-gen-es 1: calls of makeMessageType and makeEnum, and
// classes with static members typeName and fields.
func (x *scan) es1() {
	s := x.Script
	for _, at := range s.Anchors[jstree.AnchorEnumType] {
		x.es1Enum(at)
	}
	for _, at := range s.Anchors[jstree.AnchorMessageType] {
		if call := s.CallOf(at); call != nil && len(call.Kids) >= 3 {
			x.es1Message(at, call.Kids[1], call.Kids[2], []int32{call.At}, x.localName(call))
		}
	}

	// The name of each class by the tokens that stand for the class.
	owners := map[int32]*jstree.Node{}
	for _, at := range s.Anchors[jstree.AnchorTypeName] {
		if value := s.AssignedTo(at); value != nil {
			for _, id := range s.Owner(at) {
				owners[id] = value
			}
		}
	}

	// The fields of a class are found apart from its name, so both are joined by the class.
	for _, at := range s.Anchors[jstree.AnchorFieldList] {
		call := s.CallOf(at)
		if call == nil || len(call.Kids) < 2 {
			continue
		}
		ids := s.Owner(s.StartOf(at) - 1)
		var name *jstree.Node
		for _, id := range ids {
			if name == nil {
				name = owners[id]
			}
		}
		if name == nil {
			if list, _ := s.Elements(call.Kids[1]); len(list) > 0 && s.Object(list[0]).Get("no") != nil {
				x.unresolved("", at, "a list of fields has no typeName")
			}
			continue
		}
		x.es1Message(at, name, call.Kids[1], ids, "")
	}

	for _, at := range s.Anchors[jstree.AnchorExtension] {
		x.es1Extension(at)
	}
	for _, at := range s.Anchors[jstree.AnchorTypeName] {
		x.connectService(at)
	}
}

// localName returns the name, in the script, of the class that a call of makeMessageType creates: Outer_Inner
// for a nested message. If it is not the last part of the full name, it is an option of the call.
func (x *scan) localName(call *jstree.Node) string {
	s := x.Script
	if len(call.Kids) > 3 {
		if name, ok := s.Str(s.Object(call.Kids[3]).Get("localName")); ok {
			return name
		}
		return ""
	}
	full, _ := s.Str(call.Kids[1])
	return protoname.Base(full)
}

// es1Message extracts a message. name and fields are the expressions of its full name and its fields; ids the
// tokens that refer to it, and local its name in the script, or "".
func (x *scan) es1Message(at int32, name, fields *jstree.Node, ids []int32, local string) {
	s := x.Script
	full, ok := s.Str(name)
	if !ok {
		if !s.IsParam(name) {
			x.unresolved("", at, "the name of a message is not a constant")
		}
		return
	}
	m := &model.Message{Def: x.def(full, model.FormES1, at, append(ids, s.NameIDs(at)...))}
	m.Syntax, m.Local = x.runtimeOf(at), local
	list, ok := s.Elements(fields)
	if v := s.Value(fields); !ok && v != nil && v.Kind != jstree.ArrayNode && !(v.Kind == jstree.FuncNode && s.Result(v) == nil) {
		x.unresolved(full, fields.At, "its fields are not a constant list")
	}
	for _, f := range list {
		if o := s.Object(f); o == nil {
			x.unresolved(full, f.At, "a field is not a constant object")
		} else if fd := x.es1Field(full, o); fd != nil {
			m.Fields = append(m.Fields, fd)
		}
	}
	x.Messages = append(x.Messages, m)
}

// runtimeOf returns the syntax, "proto2" or "proto3", of the runtime whose function is called at the token with
// index at: proto3.makeEnum, i.proto2.util.newFieldList, or a minified name that refers to
// makeProtoRuntime("proto3", …).
func (x *scan) runtimeOf(at int32) string {
	s := x.Script
	start := s.StartOf(at)

	// Usually the name of the runtime survives minification.
	for i := at; i >= start; i-- {
		if t := s.Text(i); t == "proto3" || t == "proto2" {
			return t
		}
	}

	end := at - 1
	if s.Is(end-1, "util") {
		end -= 2
	}
	n := (&jstree.Reader{Script: s}).Primary(start)
	for i := start + 1; i < end && s.Typ(i) == js.DotToken; i += 2 {
		n = &jstree.Node{Kind: jstree.MemberNode, At: i + 1, End: i + 2, Str: s.Text(i + 1), Kids: []*jstree.Node{n}}
	}

	v := s.Value(n)
	if v != nil && v.Kind == jstree.CallNode {
		for _, arg := range v.Kids[1:] {
			if arg.Kind == jstree.StringNode && strings.HasPrefix(arg.Str, "proto") {
				return arg.Str
			}
		}
	}
	if v = s.Object(n); v != nil {
		if text, ok := s.Str(v.Get("syntax")); ok {
			return text
		}
	}
	return ""
}

// es1Enum extracts an enum from the call of protobuf-es 1 at the token with index at.
func (x *scan) es1Enum(at int32) {
	s := x.Script
	call := s.CallOf(at)
	if call == nil || len(call.Kids) < 3 {
		return
	}
	args, ids := call.Kids[1:], []int32{call.At}

	// The enum itself is the first argument.
	if s.Is(at, "setEnumType") {
		t := s.Follow(args[0])
		ids, args = append(ids, t.IDs...), args[1:]
		if len(args) < 2 {
			return
		}
	}

	full, ok := s.Str(args[0])
	if !ok {
		if !s.IsParam(args[0]) {
			x.unresolved("", at, "an enum has a name that is not a constant")
		}
		return
	}
	e := &model.Enum{Def: x.def(full, model.FormES1, at, append(ids, s.NameIDs(at)...))}
	e.Syntax = x.runtimeOf(at)

	list, ok := s.Elements(args[1])
	if !ok {
		x.unresolved(full, args[1].At, "the values are not a constant list")
	}
	for _, v := range list {
		o := s.Object(v)
		name, ok1 := s.Str(o.Get("name"))
		no, ok2 := s.Integer(o.Get("no"))
		if !ok1 || !ok2 {
			x.unresolved(full, v.At, "a value is not a constant")
			continue
		}
		e.Values = append(e.Values, model.EnumValue{Name: name, Number: int32(no)})
	}
	x.Enums = append(x.Enums, e)
}

// es1Field extracts a field from its object literal in the output of protobuf-es 1. owner is the full name of
// its message.
func (x *scan) es1Field(owner string, o *jstree.Node) *model.Field {
	s := x.Script
	f := &model.Field{Place: x.place(o.At)}
	name, ok1 := s.Str(o.Get("name"))
	no, ok2 := s.Integer(o.Get("no"))
	kind, ok3 := s.Str(o.Get("kind"))
	if !ok1 || !ok2 || !ok3 {
		x.unresolved(owner, o.At, "the name, number or kind of a field is not a constant")
		return nil
	}

	f.Name, f.Number = name, no
	f.JSONName, _ = s.Str(o.Get("jsonName"))
	f.Repeated = s.Boolean(o.Get("repeated"))
	f.Required = s.Boolean(o.Get("req"))
	f.Presence = s.Boolean(o.Get("opt"))
	f.Group = s.Boolean(o.Get("delimited"))
	if p := o.Get("packed"); p != nil {
		packed := s.Boolean(p)
		f.Packed = &packed
	}
	if p := o.Get("oneof"); p != nil {
		f.Oneof, _ = s.Str(p)
	}
	if long, ok := s.Integer(o.Get("L")); ok && long == 1 {
		f.JSType = descriptorpb.FieldOptions_JS_STRING
	}

	if kind != "map" {
		x.es1Type(owner+"."+name, f, kind, o.Get("T"))
		if d := o.Get("default"); d != nil {
			x.es1Default(owner+"."+name, f, d)
		}
		return f
	}
	f.MapKey = x.scalarOf(owner+"."+name, o.Get("K"), o.At)
	if v := s.Object(o.Get("V")); v != nil {
		kind, _ := s.Str(v.Get("kind"))
		x.es1Type(owner+"."+name, f, kind, v.Get("T"))
	} else {
		x.unresolved(owner+"."+name, o.At, "a map has a value type that is not a constant")
		f.Scalar = descriptorpb.FieldDescriptorProto_TYPE_BYTES
	}
	return f
}

// es1Type sets the type of a field from its properties kind and T in the output of protobuf-es 1. element is
// the field's full name.
func (x *scan) es1Type(element string, f *model.Field, kind string, t *jstree.Node) {
	s := x.Script
	if t == nil {
		x.unresolved(element, 0, "a field has no type")
		f.Scalar = descriptorpb.FieldDescriptorProto_TYPE_BYTES
		return
	}
	if kind == "scalar" {
		f.Scalar = x.scalarOf(element, t, t.At)
		return
	}
	// T has the form Foo, () => Foo, or proto3.getEnumType(Foo).
	if t.Kind == jstree.FuncNode {
		if r := s.Result(t); r != nil {
			t = r
		}
	}
	if t.Kind == jstree.CallNode && len(t.Kids) == 2 {
		t = t.Kids[1]
	}
	f.Ref = x.ref(t)
	f.Ref.Enum = kind == "enum"
}

// scalarNames maps the names of the scalar types, as code generators use them, to their numbers.
func scalarNames() map[string]int64 {
	names := map[string]int64{}
	for no, name := range descriptorpb.FieldDescriptorProto_Type_name {
		names[strings.TrimPrefix(name, "TYPE_")] = int64(no)
	}
	return names
}

// scalarOf returns the scalar type that n names or numbers, or 0. Groups, messages and enums are not scalars.
// element is the field's full name, and at its token, for reports.
func (x *scan) scalarOf(element string, n *jstree.Node, at int32) descriptorpb.FieldDescriptorProto_Type {
	if n != nil {
		no, ok := x.Script.Integer(n)
		if !ok && n.Kind == jstree.MemberNode {
			no, ok = x.scalars[n.Str]
		}
		t := descriptorpb.FieldDescriptorProto_Type(no)
		if _, known := descriptorpb.FieldDescriptorProto_Type_name[int32(no)]; ok && known && no != 10 && no != 11 && no != 14 {
			return t
		}
	}
	x.unresolved(element, at, "the scalar type is not a constant; declared as bytes")
	return descriptorpb.FieldDescriptorProto_TYPE_BYTES
}

// es1Extension extracts an extension from the call of protobuf-es 1 at the token with index at.
func (x *scan) es1Extension(at int32) {
	s := x.Script
	call := s.CallOf(at)
	if call == nil || len(call.Kids) < 4 {
		return
	}
	full, ok := s.Str(call.Kids[1])
	if !ok {
		return
	}
	o := call.Kids[3]
	if o.Kind == jstree.FuncNode {
		o = s.Result(o)
	}
	if o = s.Object(o); o == nil {
		x.unresolved(full, at, "an extension is not a constant object")
		return
	}

	// An extension is described like a field, except that its name is in the call.
	whole := *o
	whole.Props = append([]jstree.Prop{{Name: "name", Value: &jstree.Node{Kind: jstree.StringNode, At: at, Str: full[strings.LastIndexByte(full, '.')+1:]}}}, o.Props...)
	f := x.es1Field(full, &whole)
	if f == nil {
		return
	}
	f.Full, f.Extendee = full, x.ref(call.Kids[2])
	x.Extensions = append(x.Extensions, f)
}
