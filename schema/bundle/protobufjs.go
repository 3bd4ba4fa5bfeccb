package bundle

import (
	"slices"
	"strings"

	"unwire/schema/bundle/jstree"

	"unwire/schema/bundle/model"

	"github.com/tdewolff/parse/v2/js"
	"google.golang.org/protobuf/types/descriptorpb"

	"unwire/schema/bundle/lexer"
	"unwire/schema/bundle/protoname"
)

// chain returns the names of a member expression without the first: pkg.Foo for $root.pkg.Foo.
func chain(n *jstree.Node) string {
	var parts []string
	for n != nil && n.Kind == jstree.MemberNode {
		parts = append(parts, n.Str)
		n = n.Kids[0]
	}
	slices.Reverse(parts)
	return strings.Join(parts, ".")
}

// protobufJS extracts definitions from the static code of protobufjs. list are the functions that encode
// messages.
func (x *scan) protobufJS(list []*encoder) {
	s := x.Script
	enums := map[int32]bool{}
	for i := range s.Toks {
		at := int32(i)
		// Enums have the form values[valuesById[0] = "NAME"] = 0.
		if s.Typ(int32(i)) == js.OpenBracketToken && js.IsIdentifier(s.Typ(at+1)) && s.Typ(at+2) == js.OpenBracketToken &&
			s.Typ(s.EnclosingBracket(at+2).Close+1) == js.EqToken && s.Typ(s.EnclosingBracket(at+2).Close+2) == js.StringToken && s.Typ(s.EnclosingBracket(at).Close+1) == js.EqToken {
			body := s.EnclosingNamespace(s.EnclosingBracket(at).Parent)
			if !enums[body] && s.PathOf(at) != "" {
				enums[body] = true
				x.staticEnum(body, at)
			}
		}
	}

	refs, prototypes, byName := x.staticEnumRefs(), x.staticPrototypes(), map[string]*model.Enum{}
	for _, e := range x.Enums {
		byName[e.Full] = e
	}

	for _, e := range list {
		full := s.PathOf(e.at)
		if full == "" || s.Typ(e.at-1) != js.DotToken {
			continue
		}
		m := &model.Message{Def: x.def(full, model.FormPBJS, e.at, nil)}
		oneofs, optional := x.staticOneofs(s.Function(s.Tok(e.at).Bracket))
		for _, f := range e.fields {
			if f.Ref != nil {
				f.Ref.Full = f.Ref.Chain
			}
			if enum := refs[full+"."+f.Name]; enum != "" && f.Scalar == descriptorpb.FieldDescriptorProto_TYPE_INT32 {
				f.Scalar, f.Ref = 0, &model.Ref{Full: enum, Enum: true, Place: f.Place}
				x.Refs = append(x.Refs, f.Ref)
			}
			f.Oneof, f.Presence = oneofs[f.Name], optional[f.Name]
			f.Required = !f.Repeated && f.MapKey == 0 && f.Oneof == "" && x.unguarded(e, f.Name)
			if at, ok := prototypes[full+"."+f.Name]; ok {
				x.staticDefault(f, at, byName)
			}
			// An extension has the form message[".pkg.extension"].
			if ext, ok := strings.CutPrefix(f.Name, "."); ok {
				f.Full, f.Name, f.Required = ext, protoname.Base(ext), false
				f.Extendee = &model.Ref{Full: full, Place: f.Place}
				x.Refs = append(x.Refs, f.Extendee)
				x.Extensions = append(x.Extensions, f)
				continue
			}
			m.Fields = append(m.Fields, f)
		}
		m.RestoreSnakeCase()
		x.Messages = append(x.Messages, m)
	}

	known := map[string]bool{}
	for _, m := range x.Messages {
		known[m.Full] = true
	}

	// Messages without fields have other functions.
	for _, at := range slices.Concat(s.Anchors[jstree.AnchorTypeURL], s.Anchors[jstree.AnchorEncode]) {
		if s.Typ(at-1) != js.DotToken || s.Typ(at+1) != js.EqToken {
			continue
		}
		full := s.PathOf(at)
		if full == "" || known[full] || s.Is(at, "encode") && (s.ParamsOf(at+2) != 2 || !x.assignsSibling(at, "decode")) {
			continue
		}
		known[full] = true
		x.Messages = append(x.Messages, &model.Message{Def: x.def(full, model.FormPBJS, at, nil)})
	}
	for _, at := range s.Anchors[jstree.AnchorRPCCall] {
		x.staticMethod(at)
	}

	// Services without methods are declared as well.
	for _, at := range s.Anchors[jstree.AnchorRPCService] {
		full := ""
		if s.Typ(at-1) == js.DotToken && s.Is(at-2, "rpc") && s.Is(at+2, "call") {
			full = s.PathOf(at)
		}
		if full != "" && !slices.ContainsFunc(x.Services, func(svc *model.Service) bool { return svc.Full == full }) {
			x.Services = append(x.Services, &model.Service{Def: x.def(full, model.FormPBJS, at, nil)})
		}
	}
}

// assignsSibling reports whether the member called name is assigned in the same bracket and to the same object
// as the member at the token with index at: Foo.encode = …, Foo.decode = ….
func (x *scan) assignsSibling(at int32, name string) bool {
	s := x.Script
	b := s.Brackets[s.Tok(at).Bracket]
	if !s.MayScan(s.Tok(at).Bracket) {
		return false
	}
	for i := b.Open + 1; i < b.Close; i = s.Next(i) {
		if s.Is(i, name) && s.Typ(i-1) == js.DotToken && s.Typ(i+1) == js.EqToken && s.Text(i-2) == s.Text(at-2) {
			return true
		}
	}
	return false
}

// unguarded reports whether the function e writes a field without checking its value, i.e. names it only once.
// Such a field is required.
func (x *scan) unguarded(e *encoder, name string) bool {
	s, n := x.Script, 0
	if !s.MayScan(e.body) {
		return false
	}
	for i := s.Brackets[e.body].Open; i < s.Brackets[e.body].Close; i++ {
		if s.Is(i, e.param) && s.Typ(i+1) == js.DotToken && s.Is(i+2, name) {
			n++
		}
	}
	return n == 1
}

// staticEnum extracts a protobufjs enum from the function that creates it. body is the function's body.
func (x *scan) staticEnum(body, at int32) {
	s := x.Script
	e := &model.Enum{Def: x.def(s.PathOf(at), model.FormPBJS, at, nil)}
	b := s.Brackets[body]
	if !s.MayScan(body) {
		return
	}
	for i := b.Open; i < b.Close; i++ {
		if s.Typ(i) != js.EqToken {
			continue
		}
		no, ok := s.Integer(s.Expr(i + 1))
		if !ok {
			continue
		}
		switch {
		// The name is in ["NAME"] or in [byId[0] = "NAME"].
		case s.Typ(i-1) == js.CloseBracketToken:
			if last := i - 2; s.Typ(last) == js.StringToken {
				e.Values = append(e.Values, model.EnumValue{Name: lexer.Unquote(s.Text(last)), Number: int32(no)})
			}
		// Minifiers write values.NAME instead of values["NAME"].
		case s.Typ(i-2) == js.DotToken && js.IsIdentifierName(s.Typ(i-1)):
			e.Values = append(e.Values, model.EnumValue{Name: s.Text(i - 1), Number: int32(no)})
		}
	}
	x.Enums = append(x.Enums, e)
}

// staticEnumRefs returns the full names of the enums of fields. The key is the full name of the field. They are
// in toObject: o.x = options.enums === String ? $root.pkg.Enum[m.x] ….
func (x *scan) staticEnumRefs() map[string]string {
	s := x.Script
	refs := map[string]string{}
	for _, at := range s.Anchors[jstree.AnchorEnums] {
		i := at

		// The question mark follows within a few tokens, if at all.
		for n := 0; n < 8 && s.Typ(i) != js.QuestionToken; n++ {
			i++
		}
		if s.Typ(at-1) != js.DotToken || s.Typ(i) != js.QuestionToken {
			continue
		}
		n := (&jstree.Reader{Script: s}).Binary(i+1, 0)
		for n.Kind == jstree.BinaryNode {
			// The condition is void 0 === x[y].
			if n.Kids[1].Kind == jstree.IndexNode {
				n = n.Kids[1]
				break
			}
			n = n.Kids[0]
		}
		if n.Kind != jstree.IndexNode {
			continue
		}

		// The member's key names the field, and the object behind the index names the enum.
		member := n.Kids[1]
		for member.Kind == jstree.IndexNode {
			member = member.Kids[0]
		}
		if enum := chain(n.Kids[0]); enum != "" && member.Kind == jstree.MemberNode {
			refs[s.PathOf(at)+"."+member.Str] = enum
		}
	}
	return refs
}

// staticOneofs finds the oneofs of the message that a function creates: defineProperty(Foo.prototype, "kind", {
// get: util.oneOfGetter(f = ["a"]) }). oneofs maps fields to oneofs, and optional are the fields in synthetic
// oneofs.
func (x *scan) staticOneofs(body int32) (oneofs map[string]string, optional map[string]bool) {
	s := x.Script
	oneofs, optional = map[string]string{}, map[string]bool{}
	if x.getters == nil {
		x.getters = map[int32][]int32{}
		for _, at := range s.Anchors[jstree.AnchorOneofGetter] {
			fn := s.Function(s.Tok(at).Bracket)
			x.getters[fn] = append(x.getters[fn], at)
		}
	}

	for _, at := range x.getters[body] {
		call := s.CallOf(at)
		object := s.EnclosingBracket(at)
		if call == nil || len(call.Kids) < 2 || s.Typ(object.Open-1) != js.CommaToken || s.Typ(object.Open-2) != js.StringToken {
			continue
		}
		name := lexer.Unquote(s.Text(object.Open - 2))
		members, _ := s.Elements(call.Kids[1])
		for _, m := range members {
			if member, ok := s.Str(m); ok && strings.HasPrefix(name, "_") && len(members) == 1 {
				optional[member] = true
			} else if ok {
				oneofs[member] = name
			}
		}
	}

	return oneofs, optional
}

// staticMethod extracts a method of a service. at is the token rpcCall in the method's function.
func (x *scan) staticMethod(at int32) {
	s := x.Script
	call := s.CallOf(at)
	if s.Is(at+2, "call") {
		call = s.CallOf(at + 2)
	}
	if call == nil || len(call.Kids) < 5 {
		return
	}
	args := call.Kids[1:]
	if s.Is(at+2, "call") && len(args) > 1 {
		// The first argument is this.
		args = args[1:]
	}
	own := s.PathOf(at)
	body := s.Function(s.Tok(at).Bracket)
	in, out := chain(args[1]), chain(args[2])
	if in == "" || out == "" || own == "" {
		return
	}
	m := &model.Method{In: &model.Ref{Full: in, Place: x.place(at)}, Out: &model.Ref{Full: out, Place: x.place(at)}}
	x.Refs = append(x.Refs, m.In, m.Out)
	m.Unknown = true

	// The name follows the function, as an argument or as a property.
	for i := s.Brackets[body].Close + 1; i < s.Brackets[body].Close+6 && m.Name == ""; i++ {
		// It has the form …, "name", { value: "Cook" }) or …, { name: { value: "Cook" }, … }).
		switch o := s.Expr(i); {
		case o.Get("value") != nil:
			m.Name, _ = s.Str(o.Get("value"))
		case o.Get("name") != nil:
			m.Name, _ = s.Str(o.Get("name").Get("value"))
			m.Client = s.Boolean(o.Get("requestStream").Get("value"))
			m.Server = s.Boolean(o.Get("responseStream").Get("value"))
			m.Unknown = o.Get("requestStream") == nil && o.Get("path") == nil
		}
	}
	if m.Name == "" {
		x.unresolved(own, at, "a method has a name that is not a constant")
		return
	}

	for _, svc := range x.Services {
		if svc.Full == own {
			svc.Methods = append(svc.Methods, m)
			return
		}
	}
	x.Services = append(x.Services, &model.Service{Def: x.def(own, model.FormPBJS, at, nil), Methods: []*model.Method{m}})
}

// staticJS extracts definitions from code that encodes messages field by field: static protobufjs code and
// ts-proto.
func (x *scan) staticJS() {
	list := x.encoders()
	if len(list) > 0 {
		x.protobufJS(list)
	}
	x.tsProto(list)
}
