package bundle

import (
	"strconv"
	"strings"

	"github.com/tdewolff/parse/v2/js"
	"google.golang.org/protobuf/types/descriptorpb"
)

const formReflection = "protobufjs reflection"

// reflection reads what protobufjs loads its types from: Root.fromJSON({nested:
// {…}}), root.addJSON({…}), and such JSON in a string.
func (x *scan) reflection() {
	s := x.script
	inside := map[int32]bool{} // objects that have a member nested
	for _, at := range s.anchors[anchorNested] {
		if s.typ(at+1) == js.ColonToken && s.enclosingBracket(at).kind == '{' {
			inside[s.tok(at).br] = true
		}
	}
	done := map[int32]bool{}
	for _, at := range s.anchors[anchorAddJSON] {
		if call := s.callOf(at); call != nil && len(call.kids) == 2 {
			if o := s.object(call.kids[1]); o != nil {
				done[s.tok(o.at).br] = true
				x.namespaces(o, o.get("nested") != nil)
			}
		}
	}
	for _, at := range s.anchors[anchorNested] {
		br := s.tok(at).br
		top, within := br, false
		for b := br; inside[br]; b = s.brs[b].parent {
			within = within || done[b]
			if inside[b] {
				top = b
			}
			if open := s.brs[b].open; s.typ(open-1) != js.ColonToken || s.brs[s.brs[b].parent].kind != '{' {
				break
			}
		}
		if !inside[br] || within || done[top] {
			continue
		}
		done[top] = true
		if o := s.expr(s.brs[top].open); o.kind == nObject {
			x.namespaces(o, true)
		}
	}
	for _, at := range s.anchors[anchorJSON] {
		x.jsonText(at)
	}
}

// jsonText reads reflection JSON out of a string.
func (x *scan) jsonText(at int32) {
	text, ok := x.str(x.expr(at))
	if !ok || !strings.HasPrefix(strings.TrimSpace(text), "{") {
		return
	}
	sub := tokenize(x.ctx, x.name, []byte("("+text+")"))
	if !x.claimMemory(at, tokenMemory*len(sub.toks)) {
		return
	}
	tokens := len(sub.toks)
	sub.budget = x.budget
	sub.tokens += tokens
	sub.bind()
	place := x.place(at)
	y := &scan{script: sub, scalars: x.scalars, forms: x.forms, tsEnums: x.tsEnums, fixed: &place}
	if o := sub.object(sub.expr(0)); o.get("nested") != nil {
		y.namespaces(o, true)
	}
	y.link()
	if x.short == nil && sub.short != nil {
		sub.short.at = at
	}
	x.budget = sub.budget
	x.messages = append(x.messages, y.messages...)
	x.enums = append(x.enums, y.enums...)
	x.services = append(x.services, y.services...)
	x.extensions = append(x.extensions, y.extensions...)
	x.refs = append(x.refs, y.refs...)
	x.open = append(x.open, y.open...)
}

// A tree is a tree of reflection JSON.
type tree struct {
	*scan
	types  map[string]bool
	groups map[string]bool // of the types
	proper bool            // names that are not as in the .proto file say so
}

// namespaces reads a tree whose root is a namespace, or the members of one.
func (x *scan) namespaces(o *node, isRoot bool) {
	t := &tree{scan: x, types: map[string]bool{}, groups: map[string]bool{}}
	if !isRoot {
		o = &node{kind: nObject, at: o.at, props: []prop{{name: "nested", at: o.at, value: o}}}
	}
	t.collect("", o, 0)
	t.walk("", "proto3", o, 0)
}

// collect finds the names of all types.
func (t *tree) collect(full string, o *node, depth int) {
	if depth > maxDepth || !t.claimMemory(o.at, propertyMemory+len(full)) {
		return
	}
	if t.object(o.get("fields")) != nil || o.get("values") != nil {
		t.types[full], t.groups[full] = true, t.boolean(o.get("group"))
	}
	if fields := t.object(o.get("fields")); fields != nil {
		for _, p := range fields.props {
			t.proper = t.proper || t.object(p.value).get("protoName") != nil
		}
	}
	if nested := t.object(o.get("nested")); nested != nil {
		for _, p := range nested.props {
			if kid := t.object(p.value); kid != nil {
				t.collect(dotted(full, p.name), kid, depth+1)
			}
		}
	}
}

func dotted(full, name string) string {
	if full == "" {
		return name
	}
	return full + "." + name
}

func (t *tree) walk(full, syntax string, o *node, depth int) {
	if depth > maxDepth {
		return
	}
	if edition, ok := t.str(o.get("edition")); ok {
		syntax = edition
	}
	switch {
	case t.object(o.get("fields")) != nil:
		t.message(full, syntax, o)
	case t.object(o.get("values")) != nil:
		t.enum(full, syntax, o)
		return
	case t.object(o.get("methods")) != nil:
		t.service(full, o)
	case o.get("extend") != nil && o.get("id") != nil:
		t.extension(full, o)
		return
	}
	nested := t.object(o.get("nested"))
	if nested == nil {
		return
	}
	for _, p := range nested.props {
		if kid := t.object(p.value); kid != nil {
			t.walk(dotted(full, p.name), syntax, kid, depth+1)
		}
	}
}

// protoSyntax is the syntax that an edition of protobufjs stands for.
func protoSyntax(edition string) string {
	if edition == "proto2" {
		return edition
	}
	return "proto3"
}

func (t *tree) message(full, syntax string, o *node) {
	m := &message{def: t.def(full, formReflection, o.at, nil)}
	m.syntax = protoSyntax(syntax)
	oneofs := map[string]string{}
	if list := t.object(o.get("oneofs")); list != nil {
		for _, p := range list.props {
			names, _ := t.elements(t.object(p.value).get("oneof"))
			for _, n := range names {
				if name, ok := t.str(n); ok {
					oneofs[name] = p.name
				}
			}
		}
	}
	exact := t.proper // names of fields
	for _, p := range t.object(o.get("fields")).props {
		f := t.field(full, p.name, t.object(p.value), p.at)
		if f == nil {
			continue
		}
		if f.required || f.group {
			m.syntax = "proto2"
		}
		if !f.presence {
			f.oneof = oneofs[p.name]
		}
		exact = exact || t.object(p.value).get("protoName") != nil
		m.fields = append(m.fields, f)
	}
	if !exact {
		m.restoreSnakeCase()
	}
	for _, f := range m.fields {
		f.oneof = snake(f.oneof)
	}
	t.messages = append(t.messages, m)
}

func (t *tree) field(owner, name string, o *node, at int32) *field {
	no, ok := t.integer(o.get("id"))
	typ, ok2 := t.str(o.get("type"))
	if !ok || !ok2 {
		t.unresolved(dotted(owner, name), at, "a field whose number or type is no constant")
		return nil
	}
	f := &field{name: name, no: no, place: t.place(at)}
	if proper, ok := t.str(o.get("protoName")); ok {
		f.name = proper
	}
	rule, _ := t.str(o.get("rule"))
	f.repeated, f.required = rule == "repeated", rule == "required"
	f.json, _ = t.str(o.get("jsonName"))
	opts := t.object(o.get("options"))
	if f.json == "" {
		f.json, _ = t.str(opts.get("json_name"))
	}
	f.presence = t.boolean(opts.get("proto3_optional"))
	if p := opts.get("packed"); p != nil {
		packed := t.boolean(p)
		f.packed = &packed
	}
	f.deprecated = t.boolean(opts.get("deprecated"))
	if key, ok := t.str(o.get("keyType")); ok {
		f.mapKey = t.scalarNamed(key)
	}
	if f.scalar = t.scalarNamed(typ); f.scalar == 0 {
		full := t.resolveType(owner, typ)
		f.ref = &ref{full: full, local: typ, place: t.place(at)}
		f.group = t.groups[full]
		t.refs = append(t.refs, f.ref)
	}
	if d := opts.get("default"); d != nil {
		t.fieldDefault(dotted(owner, f.name), f, d)
	}
	return f
}

func (x *scan) scalarNamed(name string) descriptorpb.FieldDescriptorProto_Type {
	no := x.scalars[strings.ToUpper(name)]
	if no == 10 || no == 11 || no == 14 || strings.ToLower(name) != name {
		return 0
	}
	return descriptorpb.FieldDescriptorProto_Type(no)
}

// resolveType finds a type by a name as a .proto file may write it, from the
// inside of a scope to the outside.
func (t *tree) resolveType(scope, name string) string {
	if rest, ok := strings.CutPrefix(name, "."); ok {
		return rest
	}
	for {
		if full := dotted(scope, name); t.types[full] {
			return full
		}
		if scope == "" {
			return name
		}
		scope = packageOf(scope)
	}
}

func (t *tree) fieldDefault(element string, f *field, d *node) {
	if f.ref != nil {
		if name, ok := t.str(d); ok {
			f.valueRef = name
		} else if no, ok := t.integer(d); ok {
			f.valueRef = strconv.FormatInt(no, 10)
		}
		return
	}
	if f.scalar == descriptorpb.FieldDescriptorProto_TYPE_BYTES {
		if text, ok := t.str(d); ok {
			escaped := escapeBytes([]rune(text))
			f.value = &escaped
		}
		return
	}
	if text, ok := t.literal(d, f.scalar); ok {
		f.value = &text
	} else {
		t.unresolved(element, d.at, "its default is no constant")
	}
}

func (t *tree) enum(full, syntax string, o *node) {
	e := &enum{def: t.def(full, formReflection, o.at, nil)}
	e.syntax = protoSyntax(syntax)
	for _, p := range t.object(o.get("values")).props {
		no, ok := t.integer(p.value)
		if !ok {
			t.unresolved(full, p.at, "a value that is no constant")
			continue
		}
		e.values = append(e.values, enumValue{p.name, int32(no)})
	}
	t.enums = append(t.enums, e)
}

func (t *tree) service(full string, o *node) {
	svc := &service{def: t.def(full, formReflection, o.at, nil)}
	for _, p := range t.object(o.get("methods")).props {
		md := t.object(p.value)
		in, ok1 := t.str(md.get("requestType"))
		out, ok2 := t.str(md.get("responseType"))
		if !ok1 || !ok2 {
			t.unresolved(full, p.at, "a method without a constant request or response")
			continue
		}
		m := &method{name: p.name}
		m.in = &ref{full: t.resolveType(full, in), local: in, place: t.place(p.at)}
		m.out = &ref{full: t.resolveType(full, out), local: out, place: t.place(p.at)}
		t.refs = append(t.refs, m.in, m.out)
		m.client, m.server = t.boolean(md.get("requestStream")), t.boolean(md.get("responseStream"))
		if level, ok := t.str(t.object(md.get("options")).get("idempotency_level")); ok {
			m.idempotency = descriptorpb.MethodOptions_IdempotencyLevel(descriptorpb.MethodOptions_IdempotencyLevel_value[level])
		}
		svc.methods = append(svc.methods, m)
	}
	t.services = append(t.services, svc)
}

func (t *tree) extension(full string, o *node) {
	f := t.field(packageOf(full), baseOf(full), o, o.at)
	target, ok := t.str(o.get("extend"))
	if f == nil || !ok {
		return
	}
	if !t.proper && o.get("protoName") == nil && !keepsCase(f.name) {
		f.name = snake(f.name)
	}
	f.full = dotted(packageOf(full), f.name)
	f.extendee = &ref{full: t.resolveType(packageOf(full), target), local: target, place: t.place(o.at)}
	t.refs = append(t.refs, f.extendee)
	t.scan.extensions = append(t.scan.extensions, f)
}
