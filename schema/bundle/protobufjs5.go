package bundle

import (
	"github.com/tdewolff/parse/v2/js"
	"unwire/schema/bundle/jstree"

	"unwire/schema/bundle/model"
	"unwire/schema/bundle/protoname"
)

// builderJSON extracts definitions from the JSON that protobufjs up to version 5 loads:
// newBuilder().import({package: "pkg", messages: [{name: "Item", fields: […]}]}).
func (x *scan) builderJSON() {
	s := x.Script
	read := int32(-1) // the token up to which objects were read
	for _, at := range s.Anchors[jstree.AnchorMessages] {
		own := s.EnclosingBracket(at)
		if at < read || s.Typ(at+1) != js.ColonToken || s.Typ(at+2) != js.OpenBracketToken || own.Kind != '{' || own.Fn {
			continue
		}
		o := s.Expr(own.Open)
		if o.Kind != jstree.ObjectNode || !x.isBuilderJSON(o) {
			continue
		}
		read = own.Close
		pkg, _ := s.Str(o.Get("package"))
		syntax, _ := s.Str(o.Get("syntax"))
		t := &builderTree{tree{scan: x, types: map[string]bool{}, groups: map[string]bool{}}}
		t.collect(pkg, o, 0)
		t.walk(pkg, syntax, o, 0)
		for _, v := range t.list(o, "services") {
			t.service(pkg, v)
		}
	}
}

// isBuilderJSON reports whether an object has a member messages that is a list of message definitions: the
// first element has a name and fields.
func (x *scan) isBuilderJSON(o *jstree.Node) bool {
	list, _ := x.Elements(o.Get("messages"))
	if len(list) == 0 {
		return false
	}
	first := x.Object(list[0])
	_, named := x.Str(orInvalid(first.Get("name")))
	_, extends := x.Str(orInvalid(first.Get("ref")))
	_, ok := x.Elements(first.Get("fields"))
	return ok && (named || extends)
}

// A builderTree extracts definitions from the JSON of protobufjs up to version 5. It embeds tree, the state of
// extracting definitions from protobufjs JSON of any version, and adds methods for the older form.
type builderTree struct{ tree }

// list returns the objects in the array-valued property called name.
func (t *builderTree) list(o *jstree.Node, name string) []*jstree.Node {
	var out []*jstree.Node
	list, _ := t.Elements(o.Get(name))
	for _, v := range list {
		if v = t.Object(v); v != nil {
			out = append(out, v)
		}
	}
	return out
}

// name returns the full name of the type o, which is nested in scope, or "" if it is an extension.
func (t *builderTree) name(scope string, o *jstree.Node) string {
	name, ok := t.Str(orInvalid(o.Get("name")))
	if !ok {
		return ""
	}
	return protoname.Join(scope, name)
}

// collect finds the full names of all types, recursively, so that references can be resolved. scope is the full
// name of o.
func (t *builderTree) collect(scope string, o *jstree.Node, depth int) {
	if depth > jstree.MaxDepth || !t.ClaimMemory(o.At, jstree.PropertyMemory+len(scope)) {
		return
	}
	for _, v := range t.list(o, "enums") {
		t.types[t.name(scope, v)] = true
	}
	for _, v := range t.list(o, "messages") {
		if full := t.name(scope, v); full != "" {
			t.types[full], t.groups[full] = true, t.Boolean(v.Get("isGroup"))
			t.collect(full, v, depth+1)
		}
	}
}

// walk extracts the types nested in a package or message, recursively. scope is its full name, and syntax the
// syntax in effect.
func (t *builderTree) walk(scope, syntax string, o *jstree.Node, depth int) {
	if depth > jstree.MaxDepth {
		return
	}
	for _, v := range t.list(o, "enums") {
		t.enum(scope, syntax, v)
	}
	for _, v := range t.list(o, "messages") {
		own := syntax
		if s, ok := t.Str(orInvalid(v.Get("syntax"))); ok {
			own = s
		}
		if full := t.name(scope, v); full != "" {
			t.message(full, own, v)
			t.walk(full, own, v, depth+1)
		} else if target, ok := t.Str(orInvalid(v.Get("ref"))); ok {
			t.extensions(scope, target, v)
		}
	}
}

// message extracts a message from its JSON object.
func (t *builderTree) message(full, syntax string, o *jstree.Node) {
	m := &model.Message{Def: t.def(full, model.FormBuilder, o.At, nil)}
	m.Syntax = protoSyntax(syntax)
	for _, v := range t.list(o, "fields") {
		f := t.field(full, v)
		if f == nil {
			continue
		}
		if f.Required || f.Group {
			m.Syntax = "proto2"
		}
		f.Oneof, _ = t.Str(orInvalid(v.Get("oneof")))
		m.Fields = append(m.Fields, f)
	}
	t.Messages = append(t.Messages, m)
}

// field extracts a field from its JSON object. scope is the full name of its message.
func (t *builderTree) field(scope string, o *jstree.Node) *model.Field {
	name, ok := t.Str(orInvalid(o.Get("name")))
	number, ok2 := t.Integer(o.Get("id"))
	typ, ok3 := t.Str(orInvalid(o.Get("type")))
	if !ok || !ok2 || !ok3 {
		t.unresolved(protoname.Join(scope, name), o.At, "a field has a name, number or type that is not a constant")
		return nil
	}
	rule, _ := t.Str(orInvalid(o.Get("rule")))
	f := &model.Field{Name: name, Number: number, Place: t.place(o.At), Repeated: rule == "repeated", Required: rule == "required"}
	if key, ok := t.Str(orInvalid(o.Get("keytype"))); ok && rule == "map" {
		f.MapKey = t.scalarNamed(key)
	}
	opts := t.Object(o.Get("options"))
	if p := opts.Get("packed"); p != nil && f.Repeated {
		packed := t.Boolean(p)
		f.Packed = &packed
	}
	f.Deprecated = t.Boolean(opts.Get("deprecated"))
	if f.Scalar = t.scalarNamed(typ); f.Scalar == 0 {
		full := t.resolveType(scope, typ)
		f.Ref = &model.Ref{Full: full, Local: typ, Place: t.place(o.At)}
		f.Group = t.groups[full]
		t.Refs = append(t.Refs, f.Ref)
	}
	if d := opts.Get("default"); d != nil {
		t.fieldDefault(protoname.Join(scope, name), f, d)
	}
	return f
}

// enum extracts an enum from its JSON object. scope is the full name of its parent.
func (t *builderTree) enum(scope, syntax string, o *jstree.Node) {
	e := &model.Enum{Def: t.def(t.name(scope, o), model.FormBuilder, o.At, nil)}
	if s, ok := t.Str(orInvalid(o.Get("syntax"))); ok {
		syntax = s
	}
	e.Syntax = protoSyntax(syntax)
	for _, v := range t.list(o, "values") {
		name, ok := t.Str(orInvalid(v.Get("name")))
		number, ok2 := t.Integer(v.Get("id"))
		if !ok || !ok2 {
			t.unresolved(e.Full, v.At, "a value is not a constant")
			continue
		}
		e.Values = append(e.Values, model.EnumValue{Name: name, Number: int32(number)})
	}
	t.Enums = append(t.Enums, e)
}

// extensions extracts the fields in o that extend the message target.
func (t *builderTree) extensions(scope, target string, o *jstree.Node) {
	for _, v := range t.list(o, "fields") {
		f := t.field(scope, v)
		if f == nil {
			continue
		}
		f.Full = protoname.Join(scope, f.Name)
		f.Extendee = &model.Ref{Full: t.resolveType(scope, target), Local: target, Place: t.place(o.At)}
		t.Refs = append(t.Refs, f.Extendee)
		t.scan.Extensions = append(t.scan.Extensions, f)
	}
}

// service extracts a service from its JSON object.
func (t *builderTree) service(pkg string, o *jstree.Node) {
	svc := &model.Service{Def: t.def(t.name(pkg, o), model.FormBuilder, o.At, nil)}
	for _, p := range t.Object(o.Get("rpc")).Props {
		rpc := t.Object(p.Value)
		in, ok := t.Str(orInvalid(rpc.Get("request")))
		out, ok2 := t.Str(orInvalid(rpc.Get("response")))
		if !ok || !ok2 {
			t.unresolved(svc.Full, p.At, "a method lacks a constant request or response")
			continue
		}
		m := &model.Method{Name: p.Name}
		m.In = &model.Ref{Full: t.resolveType(pkg, in), Local: in, Place: t.place(p.At)}
		m.Out = &model.Ref{Full: t.resolveType(pkg, out), Local: out, Place: t.place(p.At)}
		t.Refs = append(t.Refs, m.In, m.Out)
		m.Client, m.Server = t.Boolean(rpc.Get("request_stream")), t.Boolean(rpc.Get("response_stream"))
		svc.Methods = append(svc.Methods, m)
	}
	t.Services = append(t.Services, svc)
}
