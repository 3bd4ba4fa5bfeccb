package bundle

import (
	"slices"
	"strings"

	"github.com/tdewolff/parse/v2/js"
	"google.golang.org/protobuf/types/descriptorpb"

	"unwire/schema/bundle/lexer"
)

const formPBJS = "protobufjs"

// objectOf returns the expression whose member a token names.
func (s *script) objectOf(at int32) *node {
	start := s.startOf(at)
	n := (&reader{script: s}).primary(start)
	for n.end < at-1 && n.kind != nBad && s.typ(n.end) == js.DotToken {
		n = &node{kind: nMember, at: n.end + 1, end: n.end + 2, str: s.text(n.end + 1), kids: []*node{n}}
	}
	return n
}

// chain returns the names of an expression as $root.pkg.Foo without the first.
func chain(n *node) string {
	var parts []string
	for n != nil && n.kind == nMember {
		parts = append(parts, n.str)
		n = n.kids[0]
	}
	slices.Reverse(parts)
	return strings.Join(parts, ".")
}

// pathOf returns the names that the functions around a token are assigned to,
// from the outside: $root.pkg = (function () { … pkg.Foo = (function () {; or
// the parentheses that minifiers make of such: $root.pkg = (a = {}, a.Foo = ….
func (s *script) pathOf(at int32) string {
	var parts []string
	for br, n := s.tok(at).br, 0; br != 0 && n < maxNesting && s.step(at); br, n = s.brs[br].parent, n+1 {
		if s.isInlined(br) {
			parts = append(parts, s.text(s.brs[br].open-2))
		}
		if !s.brs[br].fn {
			continue
		}
		i := s.brs[br].open - 1
		if s.typ(i) == js.ArrowToken {
			i--
		}
		if s.typ(i) == js.CloseParenToken {
			i = s.enclosingBracket(i).open
		}
		for i--; s.typ(i) == js.FunctionToken || s.typ(i) == js.OpenParenToken || s.typ(i) == js.NotToken; i-- {
		}
		if s.typ(i) == js.EqToken && js.IsIdentifierName(s.typ(i-1)) && s.typ(i-2) == js.DotToken && (s.typ(s.brs[br].close+1) == js.CloseParenToken || s.typ(s.brs[br].close+1) == js.OpenParenToken) {
			parts = append(parts, s.text(i-1))
		}
	}
	if n := len(parts); n > 0 && parts[n-1] == "exports" { // module.exports = (…)
		parts = parts[:n-1]
	}
	slices.Reverse(parts)
	return strings.Join(parts, ".")
}

// isInlined says whether a bracket is the parenthesis of x.name = (…): what a
// minifier makes of a function that is called at once.
func (s *script) isInlined(br int32) bool {
	open := s.brs[br].open
	return s.brs[br].kind == '(' && s.typ(open-1) == js.EqToken && js.IsIdentifierName(s.typ(open-2)) && s.typ(open-3) == js.DotToken &&
		s.typ(s.brs[br].close+1) != js.OpenParenToken
}

// enclosingNamespace returns the function or the inlined one around a bracket.
func (s *script) enclosingNamespace(br int32) int32 {
	for n := 0; br != 0 && !s.brs[br].fn && !s.isInlined(br) && n < maxNesting; n++ {
		br = s.brs[br].parent
	}
	return br
}

// protobufJS reads the static code of protobufjs.
func (x *scan) protobufJS(list []*encoder) {
	s := x.script
	enums := map[int32]bool{}
	for i := range s.toks {
		at := int32(i)
		// values[valuesById[0] = "NAME"] = 0
		if s.typ(int32(i)) == js.OpenBracketToken && js.IsIdentifier(s.typ(at+1)) && s.typ(at+2) == js.OpenBracketToken &&
			s.typ(s.enclosingBracket(at+2).close+1) == js.EqToken && s.typ(s.enclosingBracket(at+2).close+2) == js.StringToken && s.typ(s.enclosingBracket(at).close+1) == js.EqToken {
			body := s.enclosingNamespace(s.enclosingBracket(at).parent)
			if !enums[body] && s.pathOf(at) != "" {
				enums[body] = true
				x.staticEnum(body, at)
			}
		}
	}
	refs, prototypes, byName := x.staticEnumRefs(), x.staticPrototypes(), map[string]*enum{}
	for _, e := range x.enums {
		byName[e.full] = e
	}
	for _, e := range list {
		full := s.pathOf(e.at)
		if full == "" || s.typ(e.at-1) != js.DotToken {
			continue
		}
		m := &message{def: x.def(full, formPBJS, e.at, nil)}
		oneofs, optional := x.staticOneofs(s.function(s.tok(e.at).br))
		for _, f := range e.fields {
			if f.ref != nil {
				f.ref.full = f.ref.chain
			}
			if enum := refs[full+"."+f.name]; enum != "" && f.scalar == descriptorpb.FieldDescriptorProto_TYPE_INT32 {
				f.scalar, f.ref = 0, &ref{full: enum, enum: true, place: f.place}
				x.refs = append(x.refs, f.ref)
			}
			f.oneof, f.presence = oneofs[f.name], optional[f.name]
			f.required = !f.repeated && f.mapKey == 0 && f.oneof == "" && x.unguarded(e, f.name)
			if at, ok := prototypes[full+"."+f.name]; ok {
				x.staticDefault(f, at, byName)
			}
			// message[".pkg.extension"]
			if ext, ok := strings.CutPrefix(f.name, "."); ok {
				f.full, f.name, f.required = ext, baseOf(ext), false
				f.extendee = &ref{full: full, place: f.place}
				x.refs = append(x.refs, f.extendee)
				x.extensions = append(x.extensions, f)
				continue
			}
			m.fields = append(m.fields, f)
		}
		m.restoreSnakeCase()
		x.messages = append(x.messages, m)
	}
	known := map[string]bool{}
	for _, m := range x.messages {
		known[m.full] = true
	}
	// of those without fields too
	for _, at := range slices.Concat(s.anchors[anchorTypeURL], s.anchors[anchorEncode]) {
		if s.typ(at-1) != js.DotToken || s.typ(at+1) != js.EqToken {
			continue
		}
		full := s.pathOf(at)
		if full == "" || known[full] || s.is(at, "encode") && (s.paramsOf(at+2) != 2 || !x.assignsSibling(at, "decode")) {
			continue
		}
		known[full] = true
		x.messages = append(x.messages, &message{def: x.def(full, formPBJS, at, nil)})
	}
	for _, at := range s.anchors[anchorRPCCall] {
		x.staticMethod(at)
	}
	// of those without methods too
	for _, at := range s.anchors[anchorRPCService] {
		full := ""
		if s.typ(at-1) == js.DotToken && s.is(at-2, "rpc") && s.is(at+2, "call") {
			full = s.pathOf(at)
		}
		if full != "" && !slices.ContainsFunc(x.services, func(svc *service) bool { return svc.full == full }) {
			x.services = append(x.services, &service{def: x.def(full, formPBJS, at, nil)})
		}
	}
}

// paramsOf counts the parameters of the function that begins at a token, in parentheses.
func (s *script) paramsOf(at int32) int {
	if s.typ(at) == js.FunctionToken {
		if at++; js.IsIdentifier(s.typ(at)) {
			at++
		}
	}
	if s.typ(at) != js.OpenParenToken {
		return -1
	}
	n, end := 0, s.enclosingBracket(at).close
	for i := at + 1; i < end; i = s.skip(i, end) + 1 {
		n++
	}
	return n
}

// assignsSibling says whether a member of a name is assigned to what the member at
// a token is: Foo.encode = …, Foo.decode = ….
func (x *scan) assignsSibling(at int32, name string) bool {
	s := x.script
	b := s.brs[s.tok(at).br]
	if !s.mayScan(s.tok(at).br) {
		return false
	}
	for i := b.open + 1; i < b.close; i = s.next(i) {
		if s.is(i, name) && s.typ(i-1) == js.DotToken && s.typ(i+1) == js.EqToken && s.text(i-2) == s.text(at-2) {
			return true
		}
	}
	return false
}

// unguarded says whether a field is written whatever it is: it is named once.
func (x *scan) unguarded(e *encoder, name string) bool {
	s, n := x.script, 0
	if !s.mayScan(e.body) {
		return false
	}
	for i := s.brs[e.body].open; i < s.brs[e.body].close; i++ {
		if s.is(i, e.param) && s.typ(i+1) == js.DotToken && s.is(i+2, name) {
			n++
		}
	}
	return n == 1
}

// staticEnum reads an enum from the function that makes it.
func (x *scan) staticEnum(body, at int32) {
	s := x.script
	e := &enum{def: x.def(s.pathOf(at), formPBJS, at, nil)}
	b := s.brs[body]
	if !s.mayScan(body) {
		return
	}
	for i := b.open; i < b.close; i++ {
		if s.typ(i) != js.EqToken {
			continue
		}
		no, ok := s.integer(s.expr(i + 1))
		if !ok {
			continue
		}
		switch {
		case s.typ(i-1) == js.CloseBracketToken: // ["NAME"] or [byId[0] = "NAME"]
			if last := i - 2; s.typ(last) == js.StringToken {
				e.values = append(e.values, enumValue{lexer.Unquote(s.text(last)), int32(no)})
			}
		case s.typ(i-2) == js.DotToken && js.IsIdentifierName(s.typ(i-1)):
			e.values = append(e.values, enumValue{s.text(i - 1), int32(no)})
		}
	}
	x.enums = append(x.enums, e)
}

// staticEnumRefs finds the enums of fields in toObject: o.x = options.enums ===
// String ? $root.pkg.Enum[m.x] …, by the message's and the field's name.
func (x *scan) staticEnumRefs() map[string]string {
	s := x.script
	refs := map[string]string{}
	for _, at := range s.anchors[anchorEnums] {
		i := at
		for n := 0; n < 8 && s.typ(i) != js.QuestionToken; n++ {
			i++
		}
		if s.typ(at-1) != js.DotToken || s.typ(i) != js.QuestionToken {
			continue
		}
		n := (&reader{script: s}).binary(i+1, 0)
		for n.kind == nBinary {
			if n.kids[1].kind == nIndex { // void 0 === x[y]
				n = n.kids[1]
				break
			}
			n = n.kids[0]
		}
		if n.kind != nIndex {
			continue
		}
		member := n.kids[1]
		for member.kind == nIndex {
			member = member.kids[0]
		}
		if enum := chain(n.kids[0]); enum != "" && member.kind == nMember {
			refs[s.pathOf(at)+"."+member.str] = enum
		}
	}
	return refs
}

// staticOneofs finds the oneofs of the message that is made in a function:
// defineProperty(Foo.prototype, "kind", { get: util.oneOfGetter(f = ["a"]) }).
func (x *scan) staticOneofs(body int32) (oneofs map[string]string, optional map[string]bool) {
	s := x.script
	oneofs, optional = map[string]string{}, map[string]bool{}
	if x.getters == nil {
		x.getters = map[int32][]int32{}
		for _, at := range s.anchors[anchorOneofGetter] {
			fn := s.function(s.tok(at).br)
			x.getters[fn] = append(x.getters[fn], at)
		}
	}
	for _, at := range x.getters[body] {
		call := s.callOf(at)
		object := s.enclosingBracket(at)
		if call == nil || len(call.kids) < 2 || s.typ(object.open-1) != js.CommaToken || s.typ(object.open-2) != js.StringToken {
			continue
		}
		name := lexer.Unquote(s.text(object.open - 2))
		members, _ := s.elements(call.kids[1])
		for _, m := range members {
			if member, ok := s.str(m); ok && strings.HasPrefix(name, "_") && len(members) == 1 {
				optional[member] = true
			} else if ok {
				oneofs[member] = name
			}
		}
	}
	return oneofs, optional
}

// staticMethod reads a method of a service that calls rpcCall.
func (x *scan) staticMethod(at int32) {
	s := x.script
	call := s.callOf(at)
	if s.is(at+2, "call") {
		call = s.callOf(at + 2)
	}
	if call == nil || len(call.kids) < 5 {
		return
	}
	args := call.kids[1:]
	if s.is(at+2, "call") && len(args) > 1 {
		args = args[1:] // this
	}
	own := s.pathOf(at)
	body := s.function(s.tok(at).br)
	in, out := chain(args[1]), chain(args[2])
	if in == "" || out == "" || own == "" {
		return
	}
	m := &method{in: &ref{full: in, place: x.place(at)}, out: &ref{full: out, place: x.place(at)}}
	x.refs = append(x.refs, m.in, m.out)
	m.unknown = true
	for i := s.brs[body].close + 1; i < s.brs[body].close+6 && m.name == ""; i++ {
		// …, "name", { value: "Cook" }) or …, { name: { value: "Cook" }, … })
		switch o := s.expr(i); {
		case o.get("value") != nil:
			m.name, _ = s.str(o.get("value"))
		case o.get("name") != nil:
			m.name, _ = s.str(o.get("name").get("value"))
			m.client = s.boolean(o.get("requestStream").get("value"))
			m.server = s.boolean(o.get("responseStream").get("value"))
			m.unknown = o.get("requestStream") == nil && o.get("path") == nil
		}
	}
	if m.name == "" {
		x.unresolved(own, at, "a method whose name is no constant")
		return
	}
	for _, svc := range x.services {
		if svc.full == own {
			svc.methods = append(svc.methods, m)
			return
		}
	}
	x.services = append(x.services, &service{def: x.def(own, formPBJS, at, nil), methods: []*method{m}})
}

// staticJS reads the code that writes and reads messages field by field.
func (x *scan) staticJS() {
	list := x.encoders()
	if len(list) > 0 {
		x.protobufJS(list)
	}
	x.tsProto(list)
}
