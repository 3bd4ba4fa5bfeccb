package bundle

import (
	"strings"

	"github.com/tdewolff/parse/v2/js"
	"google.golang.org/protobuf/types/descriptorpb"
)

const (
	formES1     = "protobuf-es 1"
	formConnect = "connect-es"
)

// es1 reads what protoc-gen-es 1 writes: calls of makeMessageType and makeEnum,
// and classes with static typeName and fields.
func (x *scan) es1() {
	s := x.script
	for _, at := range s.anchors[anchorEnumType] {
		x.es1Enum(at)
	}
	for _, at := range s.anchors[anchorMessageType] {
		if call := s.callOf(at); call != nil && len(call.kids) >= 3 {
			x.es1Message(at, call.kids[1], call.kids[2], []int32{call.at})
		}
	}
	owners := map[int32]*node{}
	for _, at := range s.anchors[anchorTypeName] {
		if value := s.assignedTo(at); value != nil {
			for _, id := range s.owner(at) {
				owners[id] = value
			}
		}
	}
	for _, at := range s.anchors[anchorFieldList] {
		call := s.callOf(at)
		if call == nil || len(call.kids) < 2 {
			continue
		}
		ids := s.owner(s.startOf(at) - 1)
		var name *node
		for _, id := range ids {
			if name == nil {
				name = owners[id]
			}
		}
		if name == nil {
			if list, _ := s.elements(call.kids[1]); len(list) > 0 && s.object(list[0]).get("no") != nil {
				x.unresolved("", at, "a list of fields without a typeName")
			}
			continue
		}
		x.es1Message(at, name, call.kids[1], ids)
	}
	for _, at := range s.anchors[anchorExtension] {
		x.es1Extension(at)
	}
	for _, at := range s.anchors[anchorTypeName] {
		x.connectService(at)
	}
}

// callOf returns the call of the function that a token names.
func (s *script) callOf(at int32) *node {
	open := at + 1
	if s.typ(open) == js.CloseParenToken { // (0, a.b)(…)
		open++
	}
	if s.typ(open) != js.OpenParenToken || s.typ(at-1) == js.FunctionToken {
		return nil
	}
	// a method's definition
	if s.typ(s.enclosingBracket(open).close+1) == js.OpenBraceToken {
		return nil
	}
	if n, ok := s.exprs[-open]; ok {
		return n
	}
	r := reader{script: s}
	close := s.enclosingBracket(open).close
	callee := &node{kind: nIdent, at: at, end: at + 1, str: s.text(at)}
	n := &node{kind: nCall, at: open, end: close + 1, kids: append([]*node{callee}, r.list(open+1, close)...)}
	s.exprs[-open] = n
	return n
}

// startOf returns where the chain of members begins that ends in a token.
func (s *script) startOf(at int32) int32 {
	for (s.typ(at-1) == js.DotToken || s.typ(at-1) == js.OptChainToken) && s.step(at) {
		at -= 2
		for t := s.typ(at); t == js.CloseParenToken || t == js.CloseBracketToken; t = s.typ(at) {
			at = s.enclosingBracket(at).open - 1
			if t := s.typ(at); !js.IsIdentifierName(t) && t != js.CloseParenToken && t != js.CloseBracketToken {
				return at + 1
			}
		}
	}
	return at
}

// assignedTo returns what a static member is given at its name: name = v,
// x.name = v, or f(x, "name", v).
func (s *script) assignedTo(at int32) *node {
	switch {
	case s.typ(at) == js.StringToken && s.typ(at+1) == js.CommaToken:
		return s.expr(at + 2)
	case s.typ(at) != js.StringToken && s.typ(at+1) == js.EqToken:
		return s.expr(at + 2)
	}
	return nil
}

// owner returns what stands for the class whose static member is named or
// given a value at a token: its name, the = after it, or a , before the value.
func (s *script) owner(at int32) []int32 {
	if s.typ(at) == js.EqToken || s.typ(at) == js.CommaToken {
		at--
	}
	switch {
	case at < 0:
	case s.typ(at-1) == js.DotToken:
		return s.idsOf(s.startOf(at))
	case s.typ(at) == js.StringToken:
		if b := s.enclosingBracket(at); b.kind == '(' {
			return s.idsOf(b.open + 1)
		}
	default:
		if class, ok := s.classes[s.tok(at).br]; ok {
			return s.classIDs(class)
		}
	}
	return nil
}

// idsOf returns all that stands for the value of the name at a token.
func (s *script) idsOf(at int32) []int32 {
	if s.typ(at) == js.ThisToken {
		for br := s.tok(at).br; br != 0 && s.step(at); br = s.brs[br].parent {
			if class, ok := s.classes[br]; ok {
				return s.classIDs(class)
			}
		}
		return nil
	}
	t := s.follow((&reader{script: s}).primary(at))
	if t.end != nil {
		return append(t.ids, t.end.at)
	}
	return t.ids
}

// classIDs are the class keyword and the names that the class is given.
func (s *script) classIDs(class int32) []int32 {
	ids := []int32{class}
	if js.IsIdentifier(s.typ(class + 1)) {
		ids = append(ids, class+1)
	}
	for at := class - 1; s.typ(at) == js.EqToken && js.IsIdentifier(s.typ(at-1)); at -= 2 {
		if s.typ(at-2) == js.DotToken {
			break
		}
		if b, ok := s.lookup(at-1, s.text(at-1)); ok {
			ids = append(ids, b.tok)
		}
	}
	return ids
}

// nameIDs are the names that the value of a call is given: const Foo = call.
func (s *script) nameIDs(at int32) []int32 {
	var ids []int32
	for at = s.startOf(at) - 1; ; at -= 2 {
		// (0, a.b)(…)
		if s.typ(at) == js.CommaToken && s.typ(at-2) == js.OpenParenToken {
			at -= 3
		}
		if s.typ(at) != js.EqToken || !js.IsIdentifier(s.typ(at-1)) || s.typ(at-2) == js.DotToken {
			return ids
		}
		if b, ok := s.lookup(at-1, s.text(at-1)); ok {
			ids = append(ids, b.tok)
		}
	}
}

func (x *scan) es1Message(at int32, name, fields *node, ids []int32) {
	s := x.script
	full, ok := s.str(name)
	if !ok {
		if !s.isParam(name) {
			x.unresolved("", at, "a message whose name is no constant")
		}
		return
	}
	m := &message{def: x.def(full, formES1, at, append(ids, s.nameIDs(at)...))}
	m.syntax = x.runtimeOf(at)
	list, ok := s.elements(fields)
	if v := s.value(fields); !ok && v != nil && v.kind != nArray && !(v.kind == nFunc && s.result(v) == nil) {
		x.unresolved(full, fields.at, "its fields are no constant list")
	}
	for _, f := range list {
		if o := s.object(f); o == nil {
			x.unresolved(full, f.at, "a field that is no constant object")
		} else if fd := x.es1Field(full, o); fd != nil {
			m.fields = append(m.fields, fd)
		}
	}
	x.messages = append(x.messages, m)
}

// isParam says whether an expression is a parameter: the runtime's own code.
func (s *script) isParam(n *node) bool {
	v := s.value(n)
	if v == nil || v.kind != nIdent {
		return v != nil && v.kind == nMember
	}
	b, ok := s.lookup(v.at, v.str)
	return !ok || b.kind == bindParam
}

// runtimeOf returns the syntax of the runtime on which a token's function is
// called: proto3.makeEnum, i.proto2.util.newFieldList, and of a mangled name
// what makeProtoRuntime("proto3", …) it stands for.
func (x *scan) runtimeOf(at int32) string {
	s := x.script
	start := s.startOf(at)
	for i := at; i >= start; i-- {
		if t := s.text(i); t == "proto3" || t == "proto2" {
			return t
		}
	}
	end := at - 1
	if s.is(end-1, "util") {
		end -= 2
	}
	n := (&reader{script: s}).primary(start)
	for i := start + 1; i < end && s.typ(i) == js.DotToken; i += 2 {
		n = &node{kind: nMember, at: i + 1, end: i + 2, str: s.text(i + 1), kids: []*node{n}}
	}
	v := s.value(n)
	if v != nil && v.kind == nCall {
		for _, arg := range v.kids[1:] {
			if arg.kind == nString && strings.HasPrefix(arg.str, "proto") {
				return arg.str
			}
		}
	}
	if v = s.object(n); v != nil {
		if text, ok := s.str(v.get("syntax")); ok {
			return text
		}
	}
	return ""
}

func (x *scan) es1Enum(at int32) {
	s := x.script
	call := s.callOf(at)
	if call == nil || len(call.kids) < 3 {
		return
	}
	args, ids := call.kids[1:], []int32{call.at}
	if s.is(at, "setEnumType") {
		t := s.follow(args[0])
		ids, args = append(ids, t.ids...), args[1:]
		if len(args) < 2 {
			return
		}
	}
	full, ok := s.str(args[0])
	if !ok {
		if !s.isParam(args[0]) {
			x.unresolved("", at, "an enum whose name is no constant")
		}
		return
	}
	e := &enum{def: x.def(full, formES1, at, append(ids, s.nameIDs(at)...))}
	e.syntax = x.runtimeOf(at)
	list, ok := s.elements(args[1])
	if !ok {
		x.unresolved(full, args[1].at, "its values are no constant list")
	}
	for _, v := range list {
		o := s.object(v)
		name, ok1 := s.str(o.get("name"))
		no, ok2 := s.integer(o.get("no"))
		if !ok1 || !ok2 {
			x.unresolved(full, v.at, "a value that is no constant")
			continue
		}
		e.values = append(e.values, enumValue{name, int32(no)})
	}
	x.enums = append(x.enums, e)
}

func (x *scan) es1Field(owner string, o *node) *field {
	s := x.script
	f := &field{place: x.place(o.at)}
	name, ok1 := s.str(o.get("name"))
	no, ok2 := s.integer(o.get("no"))
	kind, ok3 := s.str(o.get("kind"))
	if !ok1 || !ok2 || !ok3 {
		x.unresolved(owner, o.at, "a field whose name, number or kind is no constant")
		return nil
	}
	f.name, f.no = name, no
	f.json, _ = s.str(o.get("jsonName"))
	f.repeated = s.boolean(o.get("repeated"))
	f.required = s.boolean(o.get("req"))
	f.presence = s.boolean(o.get("opt"))
	f.group = s.boolean(o.get("delimited"))
	if p := o.get("packed"); p != nil {
		packed := s.boolean(p)
		f.packed = &packed
	}
	if p := o.get("oneof"); p != nil {
		f.oneof, _ = s.str(p)
	}
	if long, ok := s.integer(o.get("L")); ok && long == 1 {
		f.jsType = descriptorpb.FieldOptions_JS_STRING
	}
	if kind != "map" {
		x.es1Type(owner+"."+name, f, kind, o.get("T"))
		if d := o.get("default"); d != nil {
			x.es1Default(owner+"."+name, f, d)
		}
		return f
	}
	f.mapKey = x.scalarOf(owner+"."+name, o.get("K"), o.at)
	if v := s.object(o.get("V")); v != nil {
		kind, _ := s.str(v.get("kind"))
		x.es1Type(owner+"."+name, f, kind, v.get("T"))
	} else {
		x.unresolved(owner+"."+name, o.at, "a map whose values' type is no constant")
		f.scalar = descriptorpb.FieldDescriptorProto_TYPE_BYTES
	}
	return f
}

// es1Type sets a field's type from its kind and T.
func (x *scan) es1Type(element string, f *field, kind string, t *node) {
	s := x.script
	if t == nil {
		x.unresolved(element, 0, "a field without a type")
		f.scalar = descriptorpb.FieldDescriptorProto_TYPE_BYTES
		return
	}
	if kind == "scalar" {
		f.scalar = x.scalarOf(element, t, t.at)
		return
	}
	// T: Foo, T: () => Foo, T: proto3.getEnumType(Foo).
	if t.kind == nFunc {
		if r := s.result(t); r != nil {
			t = r
		}
	}
	if t.kind == nCall && len(t.kids) == 2 {
		t = t.kids[1]
	}
	f.ref = x.ref(t)
	f.ref.enum = kind == "enum"
}

// scalarNames are the names of the scalar types as codegens write them, by the
// type's number.
func scalarNames() map[string]int64 {
	names := map[string]int64{}
	for no, name := range descriptorpb.FieldDescriptorProto_Type_name {
		names[strings.TrimPrefix(name, "TYPE_")] = int64(no)
	}
	return names
}

func (x *scan) scalarOf(element string, n *node, at int32) descriptorpb.FieldDescriptorProto_Type {
	if n != nil {
		no, ok := x.script.integer(n)
		if !ok && n.kind == nMember {
			no, ok = x.scalars[n.str]
		}
		t := descriptorpb.FieldDescriptorProto_Type(no)
		if _, known := descriptorpb.FieldDescriptorProto_Type_name[int32(no)]; ok && known && no != 10 && no != 11 && no != 14 {
			return t
		}
	}
	x.unresolved(element, at, "its scalar type is no constant; it is declared as bytes")
	return descriptorpb.FieldDescriptorProto_TYPE_BYTES
}

func (x *scan) es1Extension(at int32) {
	s := x.script
	call := s.callOf(at)
	if call == nil || len(call.kids) < 4 {
		return
	}
	full, ok := s.str(call.kids[1])
	if !ok {
		return
	}
	o := call.kids[3]
	if o.kind == nFunc {
		o = s.result(o)
	}
	if o = s.object(o); o == nil {
		x.unresolved(full, at, "an extension that is no constant object")
		return
	}
	whole := *o
	whole.props = append([]prop{{name: "name", value: &node{kind: nString, at: at, str: full[strings.LastIndexByte(full, '.')+1:]}}}, o.props...)
	f := x.es1Field(full, &whole)
	if f == nil {
		return
	}
	f.full, f.extendee = full, x.ref(call.kids[2])
	x.extensions = append(x.extensions, f)
}
