package bundle

import (
	"slices"
	"strings"

	"github.com/tdewolff/parse/v2/js"
	"google.golang.org/protobuf/types/descriptorpb"
)

const formPBJS = "protobufjs"

// An encoder is a function that writes a message with protobufjs' Writer, as
// protobufjs' static code and ts-proto have it.
type encoder struct {
	body   int32  // bracket
	param  string // the message
	at     int32  // the word encode
	fields []*field

	looked, cases bool // for oneofs as unions
}

// encoders finds the functions that write tags and reads their fields.
func (x *scan) encoders() []*encoder {
	s := x.script
	by := map[int32]*encoder{}
	var list []*encoder
	s.encodeArrows()
	consumed := map[int32]bool{}
	for _, at := range s.anchors[anchorUint32] {
		if consumed[at] || s.typ(at-1) != js.DotToken || s.typ(at+1) != js.OpenParenToken || !js.IsNumeric(s.typ(at+2)) {
			continue
		}
		body, word := s.encodeAround(at)
		if body == 0 {
			continue
		}
		e := by[body]
		if e == nil {
			e = &encoder{body: body, at: word, param: s.param(body, 0)}
			by[body], list = e, append(list, e)
		}
		if f := x.written(e, at, consumed); f != nil {
			e.fields = append(e.fields, f)
		}
	}
	return list
}

// encodeAround returns the body of the function called encode around a token,
// and its name's token.
func (s *script) encodeAround(at int32) (body, word int32) {
	for br, n := s.toks[at].br, 0; br != 0 && n < maxNesting; br, n = s.brs[br].parent, n+1 {
		if !s.brs[br].fn {
			continue
		}
		word = s.nameOf(br)
		if s.is(word, "encode") {
			return br, word
		}
	}
	i, found := slices.BinarySearchFunc(s.arrows, at, func(br, at int32) int { return int(s.brs[br].open - at) })
	if !found {
		i--
	}
	if i >= 0 && s.brs[s.arrows[i]].open <= at && at < s.brs[s.arrows[i]].close {
		return s.arrows[i], s.nameOf(s.arrows[i])
	}
	return 0, 0
}

// encodeArrows gives encode: (m, w) => expression a bracket of its own, as if
// its body were in braces.
func (s *script) encodeArrows() {
	for _, at := range s.anchors[anchorEncode] {
		if s.typ(at+1) != js.ColonToken {
			continue
		}
		if fn := s.expr(at + 2); fn.kind == nFunc && len(fn.kids) == 1 {
			s.arrows = append(s.arrows, int32(len(s.brs)))
			open := at + 3
			for s.typ(open-1) != js.ArrowToken && open < fn.end {
				open = s.next(open)
			}
			s.brs = append(s.brs, bracket{open: open, close: fn.end, parent: s.toks[at].br, kind: '{', fn: true})
		}
	}
}

// nameOf returns the token of the name that a function with a body has or is
// given: f(…) {…}, f: function (…) {…}, x.f = function g(…) {…}; or -1.
func (s *script) nameOf(body int32) int32 {
	at := s.brs[body].open - 1
	if s.typ(at) == js.ArrowToken {
		at--
	}
	if s.typ(at) == js.CloseParenToken {
		at = s.around(at).open
	}
	at--
	if js.IsIdentifier(s.typ(at)) && s.typ(at-1) == js.FunctionToken {
		at--
	} else if js.IsIdentifier(s.typ(at)) {
		return at
	}
	if s.typ(at) == js.FunctionToken {
		at--
	}
	if s.typ(at) == js.EqToken || s.typ(at) == js.ColonToken {
		return at - 1
	}
	return -1
}

// param returns a parameter's name.
func (s *script) param(body int32, index int32) string {
	at := s.brs[body].open - 1
	if s.typ(at) == js.ArrowToken {
		at--
	}
	if s.typ(at) != js.CloseParenToken {
		return s.text(at)
	}
	open := s.around(at).open
	for i := open + 1; i < at; i = s.skip(i, at) + 1 {
		if index == 0 {
			return s.text(i)
		}
		index--
	}
	return ""
}

// written reads the field whose tag is written at a token:
//
//	w.uint32(10).string(m.x)
//	T.encode(m.x, w.uint32(18).fork()).ldelim()
//	w.uint32(26).fork(); for (…) w.int32(m.x[i]); w.ldelim()
//	w.uint32(34).fork().uint32(8).int32(k).uint32(18).string(v).ldelim()
func (x *scan) written(e *encoder, at int32, consumed map[int32]bool) *field {
	s := x.script
	tag, ok := s.integer((&reader{script: s}).primary(at + 2))
	next := s.around(at+1).close + 1
	if !ok || tag < 8 || tag&7 == 4 {
		return nil
	}
	f := &field{no: tag >> 3, place: x.place(at)}
	end := s.brs[e.body].close
	word := ""
	if s.typ(next) == js.DotToken {
		word = s.text(next + 1)
	}
	own := s.around(at)
	open := next + 2
	switch {
	case own.kind == '(' && s.is(own.open-1, "encode"):
		f.group = tag&7 == 3
		f.ref = x.ref(s.objectOf(own.open - 1))
		f.entry = s.typ(own.open+1) == js.OpenBraceToken && s.is(own.open+2, "key")
		f.name, f.repeated = x.written1(e, own.open+1, at)
	case word == "fork" && s.typ(open+2) == js.DotToken && s.is(open+3, "uint32"):
		x.writtenMap(e, f, open+3, consumed)
		f.name, _ = x.written1(e, at, at)
	case word == "fork":
		for i := open; i < end; i++ {
			if s.typ(i) == js.DotToken && (s.is(i+1, "ldelim") || s.is(i+1, "join")) {
				end = i
				break
			}
			if t, _ := x.writerMethod(s.text(i + 1)); s.typ(i) == js.DotToken && t != 0 && s.typ(i+2) == js.OpenParenToken {
				f.scalar = t
			}
		}
		packed := true
		f.repeated, f.packed = true, &packed
		if f.name = s.memberAfter(e, open, end); f.name == "" {
			f.name = s.memberBefore(e, at)
		}
	default:
		t, many := x.writerMethod(word)
		if t == 0 {
			return nil
		}
		f.scalar = t
		f.name, f.repeated = x.written1(e, open+1, at)
		if many {
			packed := true
			f.repeated, f.packed = true, &packed
		} else if f.repeated && packable(t) {
			packed := false
			f.packed = &packed
		}
	}
	if f.name == "" {
		x.unresolved("", at, "a tag is written, but not of what field")
		return nil
	}
	x.union(e, f, at)
	return f
}

// written1 returns the name of the field that is written from a token on, and
// whether one element of it is: m.x[i], or the variable of a loop over m.x.
func (x *scan) written1(e *encoder, from, at int32) (name string, repeated bool) {
	s := x.script
	close := s.around(from - 1).close
	if from == at { // a map: its name is in the loop
		return s.memberBefore(e, at), false
	}
	for i := from; i < close; i++ {
		if s.is(i, e.param) && s.typ(i+1) == js.DotToken && s.typ(i-1) != js.DotToken {
			return s.text(i + 2), s.typ(i+3) == js.OpenBracketToken
		}
		if s.is(i, e.param) && s.typ(i+1) == js.OpenBracketToken && s.typ(i+2) == js.StringToken {
			return unquote(s.text(i + 2)), s.typ(i+4) == js.OpenBracketToken
		}
	}
	return s.memberBefore(e, at), true
}

// memberAfter returns the member of the message that is named first between two
// tokens.
func (s *script) memberAfter(e *encoder, from, end int32) string {
	for i := from; i < end; i++ {
		if s.is(i, e.param) && s.typ(i-1) != js.DotToken {
			switch {
			case s.typ(i+1) == js.DotToken:
				return s.text(i + 2)
			case s.typ(i+1) == js.OpenBracketToken && s.typ(i+2) == js.StringToken:
				return unquote(s.text(i + 2))
			}
		}
	}
	return ""
}

// memberBefore returns the member of the message that is named last before a
// token.
func (s *script) memberBefore(e *encoder, at int32) string {
	for i := at; i > s.brs[e.body].open; i-- {
		if s.typ(i) == js.DotToken && s.is(i-1, e.param) && s.typ(i-2) != js.DotToken {
			return s.text(i + 1)
		}
		if s.typ(i) == js.OpenBracketToken && s.is(i-1, e.param) && s.typ(i+1) == js.StringToken {
			return unquote(s.text(i + 1))
		}
	}
	return ""
}

// writtenMap reads the key and the value of a map whose key's tag is at a token.
func (x *scan) writtenMap(e *encoder, f *field, at int32, consumed map[int32]bool) {
	s := x.script
	consumed[at] = true
	next := s.around(at+1).close + 1 // .int32(key)
	f.mapKey, _ = x.writerMethod(s.text(next + 1))
	if f.mapKey == 0 {
		f.mapKey = descriptorpb.FieldDescriptorProto_TYPE_STRING
	}
	after := s.around(next+2).close + 1 // .uint32(18)
	if s.typ(after) == js.DotToken && s.is(after+1, "uint32") {
		consumed[after+1] = true
		value := s.around(after+2).close + 1
		if f.scalar, _ = x.writerMethod(s.text(value + 1)); f.scalar != 0 {
			return
		}
	}
	// T.encode(m.x[k], w.uint32(18).fork()).ldelim(): its tag is the next one.
	end := s.brs[e.body].close
	for i := next; i < end; i++ {
		if s.is(i, "uint32") && s.typ(i-1) == js.DotToken {
			consumed[i] = true
			if own := s.around(i); own.kind == '(' && s.is(own.open-1, "encode") {
				f.ref = x.ref(s.objectOf(own.open - 1))
				return
			}
		}
	}
	f.scalar = descriptorpb.FieldDescriptorProto_TYPE_BYTES
}

// objectOf returns the expression whose member a token names.
func (s *script) objectOf(at int32) *node {
	start := s.startOf(at)
	n := (&reader{script: s}).primary(start)
	for n.end < at-1 && n.kind != nBad && s.typ(n.end) == js.DotToken {
		n = &node{kind: nMember, at: n.end + 1, end: n.end + 2, str: s.text(n.end + 1), kids: []*node{n}}
	}
	return n
}

// writerMethod returns the type that a method of Writer writes, and whether it
// writes a packed list of them.
func (x *scan) writerMethod(name string) (descriptorpb.FieldDescriptorProto_Type, bool) {
	if t := x.scalarNamed(name); t != 0 {
		return t, false
	}
	if one, ok := strings.CutSuffix(name, "s"); ok {
		if t := x.scalarNamed(one); t != 0 && packable(t) {
			return t, true
		}
	}
	return 0, false
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
	for br, n := s.toks[at].br, 0; br != 0 && n < maxNesting; br, n = s.brs[br].parent, n+1 {
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
			i = s.around(i).open
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

// namespaceAround returns the function or the inlined one around a bracket.
func (s *script) namespaceAround(br int32) int32 {
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
		if s.toks[i].typ == js.OpenBracketToken && js.IsIdentifier(s.typ(at+1)) && s.typ(at+2) == js.OpenBracketToken &&
			s.typ(s.around(at+2).close+1) == js.EqToken && s.typ(s.around(at+2).close+2) == js.StringToken && s.typ(s.around(at).close+1) == js.EqToken {
			body := s.namespaceAround(s.around(at).parent)
			if !enums[body] && s.pathOf(at) != "" {
				enums[body] = true
				x.staticEnum(body, at)
			}
		}
	}
	refs := x.staticEnumRefs()
	for _, e := range list {
		full := s.pathOf(e.at)
		if full == "" || s.typ(e.at-1) != js.DotToken {
			continue
		}
		m := &message{def: x.def(full, formPBJS, e.at, nil)}
		oneofs, optional := x.staticOneofs(s.function(s.toks[e.at].br))
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
			if ext, ok := strings.CutPrefix(f.name, "."); ok { // message[".pkg.extension"]
				f.full, f.name, f.required = ext, baseOf(ext), false
				f.extendee = &ref{full: full, place: f.place}
				x.refs = append(x.refs, f.extendee)
				x.extensions = append(x.extensions, f)
				continue
			}
			f.name = snake(f.name)
			m.fields = append(m.fields, f)
		}
		x.messages = append(x.messages, m)
	}
	for _, at := range s.anchors[anchorTypeURL] { // of those without fields too
		full := s.pathOf(at)
		if full != "" && s.typ(at-1) == js.DotToken && s.typ(at+1) == js.EqToken && !slices.ContainsFunc(x.messages, func(m *message) bool { return m.full == full }) {
			x.messages = append(x.messages, &message{def: x.def(full, formPBJS, at, nil)})
		}
	}
	for _, at := range s.anchors[anchorRPCCall] {
		x.staticMethod(at)
	}
	for _, at := range s.anchors[anchorRPCService] { // of those without methods too
		full := ""
		if s.typ(at-1) == js.DotToken && s.is(at-2, "rpc") && s.is(at+2, "call") {
			full = s.pathOf(at)
		}
		if full != "" && !slices.ContainsFunc(x.services, func(svc *service) bool { return svc.full == full }) {
			x.services = append(x.services, &service{def: x.def(full, formPBJS, at, nil)})
		}
	}
}

// unguarded says whether a field is written whatever it is: it is named once.
func (x *scan) unguarded(e *encoder, name string) bool {
	s, n := x.script, 0
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
				e.values = append(e.values, enumValue{unquote(s.text(last)), int32(no)})
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
	for _, at := range s.anchors[anchorOneofGetter] {
		if at < s.brs[body].open || at > s.brs[body].close || s.function(s.toks[at].br) != body {
			continue
		}
		call := s.callOf(at)
		object := s.around(at)
		if call == nil || len(call.kids) < 2 || s.typ(object.open-1) != js.CommaToken || s.typ(object.open-2) != js.StringToken {
			continue
		}
		name := unquote(s.text(object.open - 2))
		members, _ := s.elements(call.kids[1])
		for _, m := range members {
			if member, ok := s.str(m); ok && strings.HasPrefix(name, "_") && len(members) == 1 {
				optional[member] = true
			} else if ok {
				oneofs[member] = snake(name)
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
	body := s.function(s.toks[at].br)
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
