package bundle

import (
	"strconv"
	"strings"

	"unwire/schema/bundle/jstree"

	"unwire/schema/bundle/model"

	"unwire/schema/bundle/protoname"

	"github.com/tdewolff/parse/v2/js"
	"google.golang.org/protobuf/types/descriptorpb"
)

// reflection extracts definitions from the JSON that protobufjs loads: Root.fromJSON({nested: {…}}),
// root.addJSON({…}), and such JSON in a string.
func (x *scan) reflection() {
	s := x.Script

	// inside has the brackets of objects with a member nested.
	inside := map[int32]bool{}
	for _, at := range s.Anchors[jstree.AnchorNested] {
		if s.Typ(at+1) == js.ColonToken && s.EnclosingBracket(at).Kind == '{' {
			inside[s.Tok(at).Bracket] = true
		}
	}

	done := map[int32]bool{}
	for _, at := range s.Anchors[jstree.AnchorAddJSON] {
		if call := s.CallOf(at); call != nil && len(call.Kids) == 2 {
			if o := s.Object(call.Kids[1]); o != nil {
				done[s.Tok(o.At).Bracket] = true
				x.namespaces(o, o.Get("nested") != nil)
			}
		}
	}

	// Find the outermost object of each tree.
	if len(inside) > 0 {
		x.outermostObjects(inside, done)
	}

	for _, at := range s.Anchors[jstree.AnchorJSON] {
		x.jsonText(at)
	}
}

// outermostObjects extracts definitions from the objects that have a member "nested" and are not inside another
// such object. inside are the brackets of candidates; done are those already read.
func (x *scan) outermostObjects(inside, done map[int32]bool) {
	s := x.Script
	top, within := make([]int32, len(s.Brackets)), make([]bool, len(s.Brackets))
	for i, b := range s.Brackets {
		if b.Parent < int32(i) && s.Typ(b.Open-1) == js.ColonToken && s.Brackets[b.Parent].Kind == '{' {
			top[i], within[i] = top[b.Parent], within[b.Parent]
		}
		if top[i] == 0 && inside[int32(i)] {
			top[i] = int32(i)
		}
		within[i] = within[i] || done[int32(i)]
	}
	for _, at := range s.Anchors[jstree.AnchorNested] {
		br := s.Tok(at).Bracket
		if !inside[br] || within[br] || done[top[br]] {
			continue
		}
		done[top[br]] = true
		if o := s.Expr(s.Brackets[top[br]].Open); o.Kind == jstree.ObjectNode {
			x.namespaces(o, true)
		}
	}
}

// jsonText extracts definitions from the string literal at the token with index at, if it contains protobufjs
// reflection JSON.
func (x *scan) jsonText(at int32) {
	text, ok := x.Str(x.Expr(at))
	if !ok || !strings.HasPrefix(strings.TrimSpace(text), "{") {
		return
	}
	sub := jstree.Tokenize(x.Ctx, x.Name, []byte("("+text+")"))
	if !x.ClaimMemory(at, jstree.TokenMemory*len(sub.Toks)) {
		return
	}

	// The string's tokens count against the budget of the script.
	tokens := len(sub.Toks)
	sub.Budget = x.Budget
	sub.Tokens += tokens
	sub.Bind()
	place := x.place(at)
	y := &scan{Script: sub, scalars: x.scalars, forms: x.forms, tsEnums: x.tsEnums, fixed: &place, meter: x.meter}
	if o := sub.Object(sub.Expr(0)); o.Get("nested") != nil {
		y.namespaces(o, true)
	}
	y.link()
	if x.Short == nil && sub.Short != nil {
		sub.Short.At = at
	}
	x.Budget = sub.Budget

	// The meter has counted the definitions of both.
	if !x.meter.ClaimFields(&y.Found) || !x.meter.ClaimFields(&x.Found) {
		x.Stop()
	}
	defer x.SkipCounted()
	x.Messages = append(x.Messages, y.Messages...)
	x.Enums = append(x.Enums, y.Enums...)
	x.Services = append(x.Services, y.Services...)
	x.Extensions = append(x.Extensions, y.Extensions...)
	x.Refs = append(x.Refs, y.Refs...)
	x.Open = append(x.Open, y.Open...)
}

// A tree is the state of extracting definitions from one object of protobufjs reflection JSON.
type tree struct {
	// scan is the state of extracting definitions from the script that contains the JSON; it receives the
	// definitions.
	*scan
	// types has the full names of all types in the JSON.
	types map[string]bool
	// groups has the full names of all proto2 groups in the JSON.
	groups map[string]bool
	// proper is set if the JSON has the original names of fields (option protoName), so that they need not be
	// restored.
	proper bool
}

// namespaces extracts all definitions from the object o. It is a namespace if isRoot; otherwise its members are
// those of a namespace.
func (x *scan) namespaces(o *jstree.Node, isRoot bool) {
	t := &tree{scan: x, types: map[string]bool{}, groups: map[string]bool{}}
	// The members of a namespace are wrapped, so that one function reads both.
	if !isRoot {
		o = &jstree.Node{Kind: jstree.ObjectNode, At: o.At, Props: []jstree.Prop{{Name: "nested", At: o.At, Value: o}}}
	}
	t.collect("", o, 0)
	t.walk("", "proto3", o, 0)
}

// collect finds the full names of all types, recursively, so that references can be resolved. full is the full
// name of o.
func (t *tree) collect(full string, o *jstree.Node, depth int) {
	if depth > jstree.MaxDepth || !t.ClaimMemory(o.At, jstree.PropertyMemory+len(full)) {
		return
	}
	if t.Object(o.Get("fields")) != nil || o.Get("values") != nil {
		t.types[full], t.groups[full] = true, t.Boolean(o.Get("group"))
	}
	if fields := t.Object(o.Get("fields")); fields != nil {
		for _, p := range fields.Props {
			t.proper = t.proper || t.Object(p.Value).Get("protoName") != nil
		}
	}
	if nested := t.Object(o.Get("nested")); nested != nil {
		for _, p := range nested.Props {
			if kid := t.Object(p.Value); kid != nil {
				t.collect(protoname.Join(full, p.Name), kid, depth+1)
			}
		}
	}
}

// walk extracts the types in a namespace, recursively. full is its full name, and syntax the syntax in effect.
func (t *tree) walk(full, syntax string, o *jstree.Node, depth int) {
	if depth > jstree.MaxDepth {
		return
	}
	if edition, ok := t.Str(o.Get("edition")); ok {
		syntax = edition
	}
	switch {
	case t.Object(o.Get("fields")) != nil:
		t.message(full, syntax, o)
	case t.Object(o.Get("values")) != nil:
		t.enum(full, syntax, o)
		return
	case t.Object(o.Get("methods")) != nil:
		t.service(full, o)
	case o.Get("extend") != nil && o.Get("id") != nil:
		t.extension(full, o)
		return
	}

	nested := t.Object(o.Get("nested"))
	if nested == nil {
		return
	}
	for _, p := range nested.Props {
		if kid := t.Object(p.Value); kid != nil {
			t.walk(protoname.Join(full, p.Name), syntax, kid, depth+1)
		}
	}
}

// protoSyntax returns "proto2" or "proto3" for an edition in protobufjs JSON.
func protoSyntax(edition string) string {
	if edition == "proto2" {
		return edition
	}
	return "proto3"
}

// message extracts the message full from its JSON object.
func (t *tree) message(full, syntax string, o *jstree.Node) {
	m := &model.Message{Def: t.def(full, model.FormReflection, o.At, nil)}
	m.Syntax = protoSyntax(syntax)
	oneofs := map[string]string{}
	if list := t.Object(o.Get("oneofs")); list != nil {
		for _, p := range list.Props {
			names, _ := t.Elements(t.Object(p.Value).Get("oneof"))
			for _, n := range names {
				if name, ok := t.Str(n); ok {
					oneofs[name] = p.Name
				}
			}
		}
	}

	// exact is set if the names of the fields are the original ones.
	exact := t.proper
	for _, p := range t.Object(o.Get("fields")).Props {
		f := t.field(full, p.Name, t.Object(p.Value), p.At)
		if f == nil {
			continue
		}
		if f.Required || f.Group {
			m.Syntax = "proto2"
		}
		if !f.Presence {
			f.Oneof = oneofs[p.Name]
		}
		exact = exact || t.Object(p.Value).Get("protoName") != nil
		m.Fields = append(m.Fields, f)
	}

	// protobufjs converts names to camel case unless an option disables it.
	if !exact {
		m.RestoreSnakeCase()
	}
	for _, f := range m.Fields {
		f.Oneof = protoname.Snake(f.Oneof)
	}
	t.Messages = append(t.Messages, m)
}

// field extracts a field from its JSON object. owner is the full name of its message, and at its token.
func (t *tree) field(owner, name string, o *jstree.Node, at int32) *model.Field {
	no, ok := t.Integer(o.Get("id"))
	typ, ok2 := t.Str(o.Get("type"))
	if !ok || !ok2 {
		t.unresolved(protoname.Join(owner, name), at, "a field has a number or type that is not a constant")
		return nil
	}
	f := &model.Field{Name: name, Number: no, Place: t.place(at)}

	// name is in lowerCamelCase; protoName is the name in the definition.
	if proper, ok := t.Str(o.Get("protoName")); ok {
		f.Name = proper
	}
	rule, _ := t.Str(o.Get("rule"))
	f.Repeated, f.Required = rule == "repeated", rule == "required"
	f.JSONName, _ = t.Str(o.Get("jsonName"))

	opts := t.Object(o.Get("options"))
	if f.JSONName == "" {
		f.JSONName, _ = t.Str(opts.Get("json_name"))
	}
	f.Presence = t.Boolean(opts.Get("proto3_optional"))

	// Without this option, the default of the syntax applies.
	if p := opts.Get("packed"); p != nil {
		packed := t.Boolean(p)
		f.Packed = &packed
	}
	f.Deprecated = t.Boolean(opts.Get("deprecated"))

	if key, ok := t.Str(o.Get("keyType")); ok {
		f.MapKey = t.scalarNamed(key)
	}

	// A type that is no scalar is the name of a message or an enum.
	if f.Scalar = t.scalarNamed(typ); f.Scalar == 0 {
		full := t.resolveType(owner, typ)
		f.Ref = &model.Ref{Full: full, Local: typ, Place: t.place(at)}
		f.Group = t.groups[full]
		t.Refs = append(t.Refs, f.Ref)
	}
	if d := opts.Get("default"); d != nil {
		t.fieldDefault(protoname.Join(owner, f.Name), f, d)
	}
	return f
}

// scalarNamed returns the scalar type with the given name in lower case, or 0.
func (x *scan) scalarNamed(name string) descriptorpb.FieldDescriptorProto_Type {
	no := x.scalars[strings.ToUpper(name)]
	if no == 10 || no == 11 || no == 14 || strings.ToLower(name) != name {
		return 0
	}
	return descriptorpb.FieldDescriptorProto_Type(no)
}

// resolveType returns the full name of the type that name refers to in scope, searching from the inner to the
// outer scopes as in a .proto file.
func (t *tree) resolveType(scope, name string) string {
	if rest, ok := strings.CutPrefix(name, "."); ok {
		return rest
	}
	for {
		if full := protoname.Join(scope, name); t.types[full] {
			return full
		}
		if scope == "" {
			return name
		}
		scope = protoname.Package(scope)
	}
}

// fieldDefault sets the default value of a field from its expression d. element is the field's full name.
func (t *tree) fieldDefault(element string, f *model.Field, d *jstree.Node) {
	if f.Ref != nil {
		if name, ok := t.Str(d); ok {
			f.ValueRef = name
		} else if no, ok := t.Integer(d); ok {
			f.ValueRef = strconv.FormatInt(no, 10)
		}
		return
	}
	if f.Scalar == descriptorpb.FieldDescriptorProto_TYPE_BYTES {
		if text, ok := t.Str(d); ok {
			escaped := escapeBytes([]rune(text))
			f.Value = &escaped
		}
		return
	}
	if text, ok := t.literal(d, f.Scalar); ok {
		f.Value = &text
	} else {
		t.unresolved(element, d.At, "the default is not a constant")
	}
}

// enum extracts the enum full from its JSON object.
func (t *tree) enum(full, syntax string, o *jstree.Node) {
	e := &model.Enum{Def: t.def(full, model.FormReflection, o.At, nil)}
	e.Syntax = protoSyntax(syntax)
	for _, p := range t.Object(o.Get("values")).Props {
		no, ok := t.Integer(p.Value)
		if !ok {
			t.unresolved(full, p.At, "a value is not a constant")
			continue
		}
		e.Values = append(e.Values, model.EnumValue{Name: p.Name, Number: int32(no)})
	}
	t.Enums = append(t.Enums, e)
}

// service extracts the service full from its JSON object.
func (t *tree) service(full string, o *jstree.Node) {
	svc := &model.Service{Def: t.def(full, model.FormReflection, o.At, nil)}
	for _, p := range t.Object(o.Get("methods")).Props {
		md := t.Object(p.Value)
		in, ok1 := t.Str(md.Get("requestType"))
		out, ok2 := t.Str(md.Get("responseType"))
		if !ok1 || !ok2 {
			t.unresolved(full, p.At, "a method lacks a constant request or response")
			continue
		}
		m := &model.Method{Name: p.Name}
		m.In = &model.Ref{Full: t.resolveType(full, in), Local: in, Place: t.place(p.At)}
		m.Out = &model.Ref{Full: t.resolveType(full, out), Local: out, Place: t.place(p.At)}
		t.Refs = append(t.Refs, m.In, m.Out)
		m.Client, m.Server = t.Boolean(md.Get("requestStream")), t.Boolean(md.Get("responseStream"))
		if level, ok := t.Str(t.Object(md.Get("options")).Get("idempotency_level")); ok {
			m.Idempotency = descriptorpb.MethodOptions_IdempotencyLevel(descriptorpb.MethodOptions_IdempotencyLevel_value[level])
		}
		svc.Methods = append(svc.Methods, m)
	}
	t.Services = append(t.Services, svc)
}

// extension extracts the extension full from its JSON object.
func (t *tree) extension(full string, o *jstree.Node) {
	f := t.field(protoname.Package(full), protoname.Base(full), o, o.At)
	target, ok := t.Str(o.Get("extend"))
	if f == nil || !ok {
		return
	}
	if !t.proper && o.Get("protoName") == nil && !protoname.KeepsCase(f.Name) {
		f.Name = protoname.Snake(f.Name)
	}
	f.Full = protoname.Join(protoname.Package(full), f.Name)
	f.Extendee = &model.Ref{Full: t.resolveType(protoname.Package(full), target), Local: target, Place: t.place(o.At)}
	t.Refs = append(t.Refs, f.Extendee)
	t.scan.Extensions = append(t.scan.Extensions, f)
}
