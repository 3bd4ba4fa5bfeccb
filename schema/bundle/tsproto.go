package bundle

import (
	"strings"

	"github.com/tdewolff/parse/v2/js"
	"google.golang.org/protobuf/types/descriptorpb"
)

const formTSProto = "ts-proto"

// tsProto reads the objects with encode and decode that ts-proto writes.
func (x *scan) tsProto(list []*encoder) {
	s := x.script
	var origins map[int32]origin
	enums := map[int32]bool{}
	for _, e := range list {
		object := s.enclosingBracket(e.at)
		if object.kind != '{' || object.fn || s.typ(e.at-1) == js.DotToken {
			continue
		}
		o := s.expr(object.open)
		if o.kind != nObject || o.get("decode") == nil {
			continue
		}
		if origins == nil {
			origins = x.origins()
			x.tsProtoEnums(origins)
		}
		x.tsProtoMessage(o, e, origins, enums)
	}
	if origins == nil {
		if len(s.anchors[anchorPackage]) == 0 {
			return
		}
		origins = x.origins() // messages without fields, and enums
		x.tsProtoEnums(origins)
	}
	seen := map[int32]bool{}
	for _, e := range list {
		seen[s.tok(e.at).br] = true
	}
	for _, at := range s.anchors[anchorEncode] { // of messages without fields
		object := s.enclosingBracket(at)
		if seen[s.tok(at).br] || object.kind != '{' || object.fn || s.typ(at-1) == js.DotToken {
			continue
		}
		if o := s.expr(object.open); o.kind == nObject && o.get("decode") != nil && (o.get("fromPartial") != nil || o.get("fromJSON") != nil) {
			x.tsProtoMessage(o, &encoder{at: at}, origins, enums)
		}
	}
	x.packageOfEnums()
	for _, at := range s.anchors[anchorRPCRequest] {
		x.tsProtoCall(at)
	}
}

// packageOfServices gives the definitions of a script that names no package that
// of its services, if these have one: a file has one package.
func (x *scan) packageOfServices() {
	pkg := ""
	for _, svc := range x.services {
		if own := packageOf(svc.full); pkg == "" {
			pkg = own
		} else if own != pkg {
			return
		}
	}
	var list []*def
	for _, d := range x.defs() {
		switch {
		case d.form == formTSProto && packageOf(d.full) == "":
			list = append(list, d)
		case d.form == formTSProto && packageOf(d.full) != pkg:
			return
		}
	}
	for _, d := range list {
		d.full = dotted(pkg, d.full)
	}
}

// tsProtoMessage reads one message.
func (x *scan) tsProtoMessage(o *node, e *encoder, origins map[int32]origin, enums map[int32]bool) {
	s := x.script
	ids, words := s.boundNames(o.at)
	ids = append(ids, o.at)
	full, known, written := x.tsProtoName(o, ids, words, origins)
	m := &message{def: x.def(full, formTSProto, o.at, ids)}
	m.local, _ = x.exportedName(ids, words, origins)
	m.whole = written
	for _, f := range e.fields {
		switch {
		case f.scalar == descriptorpb.FieldDescriptorProto_TYPE_INT32:
			if fn := x.enumReader(o, f.name, f.oneof); fn != nil {
				f.scalar, f.ref = 0, x.tsProtoEnum(fn, origins, enums)
			}
		case f.ref != nil && f.ref.full == "":
			f.ref.chain = ""
		}
		f.presence = f.oneof == "" && !f.repeated && !f.entry && (f.scalar != 0 || f.ref != nil && f.ref.enum) && x.comparedWithUndefined(e, f.name)
		m.fields = append(m.fields, f)
	}
	m.restoreSnakeCase()
	if full == "" || strings.HasSuffix(full, ".") {
		m.full, m.whole = m.full+x.inventedName(m), true
		x.unresolved(m.full, o.at, "its name did not survive minification; it is one that was made up")
	} else if !known && packageOf(full) == "" && !x.unpacked {
		x.unpacked = true
		x.unresolved(full, o.at, "no package stands beside it: it, and others of this script, are declared without one if no service tells it")
	}
	x.messages = append(x.messages, m)
}

// comparedWithUndefined says whether a field is written if it is not undefined:
// what is written unless it is zero has no presence.
func (x *scan) comparedWithUndefined(e *encoder, name string) bool {
	s := x.script
	if !s.mayScan(e.body) {
		return false
	}
	for i := s.brs[e.body].open; i < s.brs[e.body].close; i++ {
		if !s.is(i, e.param) || s.typ(i+1) != js.DotToken || !s.is(i+2, name) {
			continue
		}
		after := s.typ(i+3) == js.NotEqEqToken || s.typ(i+3) == js.NotEqToken
		before := s.typ(i-1) == js.NotEqEqToken || s.typ(i-1) == js.NotEqToken
		return after && (s.typ(i+4) == js.VoidToken || s.is(i+4, "undefined")) || before && (s.typ(i-3) == js.VoidToken || s.is(i-2, "undefined"))
	}
	return false
}

// fromJSON is how ts-proto ends the names of the functions that read enums.
const fromJSON = "FromJSON"

// enumReader returns the function by which fromJSON of an object reads a field
// that is an enum, or nil.
func (x *scan) enumReader(o *node, name, oneof string) *node {
	s := x.script
	fn := o.get("fromJSON")
	if fn == nil || fn.kind != nFunc {
		return nil
	}
	member, only := name, ""
	if oneof != "" {
		member, only = oneof, name
	}
	if len(fn.kids) == 0 {
		if call := x.enumReaderIn(s.assignedMember(fn.body, member), only); call != nil {
			return call
		}
	}
	return x.enumReaderIn(s.object(s.result(fn)).get(member), only)
}

// enumReaderIn returns the function of an enum that an expression calls, with the
// member of a name if one is given, or nil.
func (x *scan) enumReaderIn(v *node, only string) *node {
	s := x.script
	if v == nil {
		return nil
	}
	for i := v.at; i < v.end; i++ {
		called := s.typ(i+1) == js.OpenParenToken || s.typ(i+1) == js.CloseParenToken && s.typ(i+2) == js.OpenParenToken
		if !js.IsIdentifier(s.typ(i)) || !called {
			continue
		}
		// f(o.x), (0, m.f)(o.x)
		if arg := i + 2; only != "" && !(js.IsIdentifier(s.typ(arg)) && s.is(arg+2, only) || s.is(arg+3, only)) {
			continue
		}
		call := &node{kind: nIdent, at: i, end: i + 1, str: s.text(i)}
		if s.typ(i-1) == js.DotToken {
			call = &node{kind: nMember, at: i, end: i + 1, str: s.text(i), kids: []*node{s.objectOf(i)}}
		}
		switch f := s.value(call); {
		case f != nil && f.kind == nFunc:
			if len(f.kids) == 0 && s.switches(f.body) {
				return call
			}
		case strings.HasSuffix(call.str, fromJSON) && len(call.str) > len(fromJSON):
			if module, _ := x.imported(call, ""); module != "" {
				return call
			}
		}
	}
	return nil
}

// assignedMember returns what a member of a name is given in a function: o.x = v.
func (s *script) assignedMember(body int32, name string) *node {
	if !s.mayScan(body) {
		return nil
	}
	for i := s.brs[body].open; i < s.brs[body].close; i++ {
		if s.typ(i) == js.EqToken && s.is(i-1, name) && s.typ(i-2) == js.DotToken {
			n := *s.expr(i + 1)
			n.at = i + 1 // of a call it is the parenthesis
			return &n
		}
	}
	return nil
}

// switches says whether a function's body begins with a switch.
func (s *script) switches(body int32) bool {
	return s.typ(s.brs[body].open+1) == js.SwitchToken
}

// foldEntries makes maps of the fields whose type is an entry, after references
// have been linked, and drops the entries.
func (x *scan) foldEntries() {
	by := map[*def]*message{}
	for _, m := range x.messages {
		by[&m.def] = m
	}
	entries := map[*def]bool{}
	for _, m := range x.messages {
		for _, f := range m.fields {
			if !f.entry || f.ref == nil || by[f.ref.to] == nil {
				continue
			}
			var key, value *field
			for _, p := range by[f.ref.to].fields {
				switch p.no {
				case 1:
					key = p
				case 2:
					value = p
				}
			}
			if key == nil || value == nil || key.scalar == 0 {
				continue
			}
			entries[f.ref.to] = true
			f.mapKey, f.scalar, f.ref, f.repeated, f.packed = key.scalar, value.scalar, value.ref, false, nil
		}
	}
	kept := x.messages[:0]
	for _, m := range x.messages {
		if !entries[&m.def] {
			kept = append(kept, m)
		}
	}
	x.messages = kept
	// Names with _ are of nested types, if what is before it is a message.
	names := map[string]bool{}
	for _, m := range x.messages {
		names[m.full] = m.form == formTSProto
	}
	// Outer.Inner, as $type says, is Outer_Inner too
	for _, m := range x.messages {
		if flat := packageOf(m.full); names[m.full] && names[flat] {
			for names[packageOf(flat)] {
				flat = packageOf(flat)
			}
			names[flat+strings.ReplaceAll(m.full[len(flat):], ".", "_")] = true
		}
	}
	words := map[string]string{}
	for _, m := range x.messages {
		if pkg, ok := packageInName(m.full, m.local); ok && m.form == formTSProto {
			words[dotted(pkg, m.local)] = m.full
		}
	}
	for _, d := range x.defs() {
		if d.form == formTSProto && !d.whole {
			d.full = nestedName(unflatten(d.full, words), names)
		}
	}
}

// tsProtoCall reads a method of a client: this.rpc.request(this.service, "Get",
// data), with the types that the method encodes and decodes.
func (x *scan) tsProtoCall(at int32) {
	s := x.script
	call := s.callOf(at)
	if call == nil || len(call.kids) < 4 || !s.is(at-2, "rpc") {
		return
	}
	name, ok := s.str(call.kids[2])
	if !ok {
		return
	}
	m := &method{name: name}
	switch s.text(at) {
	case "clientStreamingRequest":
		m.client = true
	case "serverStreamingRequest":
		m.server = true
	case "bidirectionalStreamingRequest":
		m.client, m.server = true, true
	}
	// The method's body is the outermost function within the class.
	class, body := int32(-1), int32(0)
	for br, n := s.tok(at).br, 0; br != 0 && class < 0 && n < maxNesting; br, n = s.brs[br].parent, n+1 {
		if s.brs[br].fn {
			body = br
		}
		if _, ok := s.classes[br]; ok {
			class = br
		}
	}
	if class < 0 || !s.mayScan(class) {
		return
	}
	for i := s.brs[body].open; i < s.brs[body].close; i++ {
		switch {
		case s.typ(i-1) != js.DotToken:
		case s.is(i, "encode") && m.in == nil:
			m.in = x.ref(s.objectOf(i))
		case s.is(i, "decode") && m.out == nil:
			m.out = x.ref(s.objectOf(i))
		}
	}
	full, _ := s.str(call.kids[1]) // "pkg.Service", or this.service
	for i := s.brs[class].open; i < s.brs[class].close && full == ""; i++ {
		if s.is(i, "service") && s.typ(i-1) == js.DotToken && s.typ(i+1) == js.EqToken {
			v := s.expr(i + 2)
			if v.kind == nBinary {
				v = v.kids[1]
			}
			full, _ = s.str(v)
		}
	}
	if full == "" || m.in == nil || m.out == nil {
		x.unresolved(name, at, "a call of a service whose name or types are no constants")
		return
	}
	x.addMethod(full, formTSProto, at, m)
}

// addMethod adds a method to the service of a name.
func (x *scan) addMethod(full, form string, at int32, m *method) {
	if !x.mayScanSpan(0, int32(len(x.services))) {
		return
	}
	for _, svc := range x.services {
		if svc.full == full && svc.form == form {
			if !x.mayScanSpan(0, int32(len(svc.methods))) {
				return
			}
			for _, old := range svc.methods {
				if old.name == m.name { // ts-proto writes a service for each library
					return
				}
			}
			svc.methods = append(svc.methods, m)
			return
		}
	}
	x.services = append(x.services, &service{def: x.def(full, form, at, nil), methods: []*method{m}})
}
