package bundle

import (
	"strings"

	"unwire/schema/bundle/jstree"

	"unwire/schema/bundle/model"

	"unwire/schema/bundle/protoname"

	"github.com/tdewolff/parse/v2/js"
	"google.golang.org/protobuf/types/descriptorpb"
)

// tsProto extracts definitions from the output of ts-proto: objects with encode and decode. list are the
// functions that encode messages.
func (x *scan) tsProto(list []*encoder) {
	s := x.Script
	var origins map[int32]origin
	enums := map[int32]bool{}
	for _, e := range list {
		object := s.EnclosingBracket(e.at)
		if object.Kind != '{' || object.Fn || s.Typ(e.at-1) == js.DotToken {
			continue
		}
		o := s.Expr(object.Open)
		if o.Kind != jstree.ObjectNode || o.Get("decode") == nil {
			continue
		}
		if origins == nil {
			origins = x.origins()
			x.tsProtoEnums(origins)
		}
		x.tsProtoMessage(o, e, origins, enums)
	}
	if origins == nil {
		if len(s.Anchors[jstree.AnchorPackage]) == 0 {
			return
		}
		// The script may have only enums and messages without fields.
		origins = x.origins()
		x.tsProtoEnums(origins)
	}

	seen := map[int32]bool{}
	for _, e := range list {
		seen[s.Tok(e.at).Bracket] = true
	}

	// Messages without fields write no tags, so they are not in list.
	for _, at := range s.Anchors[jstree.AnchorEncode] {
		object := s.EnclosingBracket(at)
		if seen[s.Tok(at).Bracket] || object.Kind != '{' || object.Fn || s.Typ(at-1) == js.DotToken {
			continue
		}
		if o := s.Expr(object.Open); o.Kind == jstree.ObjectNode && o.Get("decode") != nil && (o.Get("fromPartial") != nil || o.Get("fromJSON") != nil) {
			x.tsProtoMessage(o, &encoder{at: at}, origins, enums)
		}
	}

	x.packageOfEnums()
	for _, at := range s.Anchors[jstree.AnchorRPCRequest] {
		x.tsProtoCall(at)
	}
}

// packageOfServices sets the package of a script's definitions that lack one to that of its services, because a
// .proto file has only one package.
func (x *scan) packageOfServices() {
	pkg := ""
	for _, svc := range x.Services {
		if own := protoname.Package(svc.Full); pkg == "" {
			pkg = own
		} else if own != pkg {
			return
		}
	}

	var list []*model.Def
	for _, d := range x.Defs() {
		switch {
		case d.Form == model.FormTSProto && protoname.Package(d.Full) == "":
			list = append(list, d)
		case d.Form == model.FormTSProto && protoname.Package(d.Full) != pkg:
			return
		}
	}
	for _, d := range list {
		d.Full = protoname.Join(pkg, d.Full)
	}
}

// tsProtoMessage extracts one ts-proto message from its object literal o and its function encode. origins maps
// declarations to exported names.
func (x *scan) tsProtoMessage(o *jstree.Node, e *encoder, origins map[int32]origin, enums map[int32]bool) {
	s := x.Script
	ids, words := s.BoundNames(o.At)
	ids = append(ids, o.At)
	full, known, written := x.tsProtoName(o, ids, words, origins)
	m := &model.Message{Def: x.def(full, model.FormTSProto, o.At, ids)}
	m.Local, _ = x.exportedName(ids, words, origins)
	m.Whole = written

	// Code shows enums as int32; the function that reads the field from JSON reveals them.
	for _, f := range e.fields {
		switch {
		case f.Scalar == descriptorpb.FieldDescriptorProto_TYPE_INT32:
			if fn := x.enumReader(o, f.Name, f.Oneof); fn != nil {
				f.Scalar, f.Ref = 0, x.tsProtoEnum(fn, origins, enums)
			}
		case f.Ref != nil && f.Ref.Full == "":
			f.Ref.Chain = ""
		}
		f.Presence = f.Oneof == "" && !f.Repeated && !f.Entry && (f.Scalar != 0 || f.Ref != nil && f.Ref.Enum) && x.comparedWithUndefined(e, f.Name)
		m.Fields = append(m.Fields, f)
	}

	m.RestoreSnakeCase()

	// The message gets a name that is derived from its fields.
	if full == "" || strings.HasSuffix(full, ".") {
		m.Full, m.Whole = m.Full+x.inventedName(m), true
		x.unresolved(m.Full, o.At, "a minifier removed its name, so extract made one up")
	} else if !known && protoname.Package(full) == "" && !x.unpacked {
		x.unpacked = true
		x.unresolved(full, o.At, "the script declares no package for it; extract puts it into no package, unless a service reveals the package")
	}
	x.Messages = append(x.Messages, m)
}

// comparedWithUndefined reports whether a field is written if it is not undefined, i.e. has explicit presence.
// Other fields are written if they are not zero.
func (x *scan) comparedWithUndefined(e *encoder, name string) bool {
	s := x.Script
	if !s.MayScan(e.body) {
		return false
	}
	for i := s.Brackets[e.body].Open; i < s.Brackets[e.body].Close; i++ {
		if !s.Is(i, e.param) || s.Typ(i+1) != js.DotToken || !s.Is(i+2, name) {
			continue
		}
		// The comparison may have either order, and undefined may be written as void 0.
		after := s.Typ(i+3) == js.NotEqEqToken || s.Typ(i+3) == js.NotEqToken
		before := s.Typ(i-1) == js.NotEqEqToken || s.Typ(i-1) == js.NotEqToken
		return after && (s.Typ(i+4) == js.VoidToken || s.Is(i+4, "undefined")) || before && (s.Typ(i-3) == js.VoidToken || s.Is(i-2, "undefined"))
	}
	return false
}

// fromJSON is the suffix of the names of ts-proto's functions that convert JSON to an enum.
const fromJSON = "FromJSON"

// enumReader returns the function that converts JSON to the enum of a field, or nil if the field is not an
// enum. o is the message's object, whose method fromJSON is searched. oneof is the name of the field's oneof,
// or "".
func (x *scan) enumReader(o *jstree.Node, name, oneof string) *jstree.Node {
	s := x.Script
	fn := o.Get("fromJSON")
	if fn == nil || fn.Kind != jstree.FuncNode {
		return nil
	}
	member, only := name, ""
	if oneof != "" {
		member, only = oneof, name
	}
	if len(fn.Kids) == 0 {
		if call := x.enumReaderIn(s.AssignedMember(fn.Body, member), only); call != nil {
			return call
		}
	}
	return x.enumReaderIn(s.Object(s.Result(fn)).Get(member), only)
}

// enumReaderIn returns the function for converting JSON to an enum that the expression v calls, or nil. If only
// is not "", the call's argument must be the member with that name.
func (x *scan) enumReaderIn(v *jstree.Node, only string) *jstree.Node {
	s := x.Script
	if v == nil {
		return nil
	}
	for i := v.At; i < v.End; i++ {
		called := s.Typ(i+1) == js.OpenParenToken || s.Typ(i+1) == js.CloseParenToken && s.Typ(i+2) == js.OpenParenToken
		if !js.IsIdentifier(s.Typ(i)) || !called {
			continue
		}
		// The call has the form f(o.x) or (0, m.f)(o.x).
		if arg := i + 2; only != "" && !(js.IsIdentifier(s.Typ(arg)) && s.Is(arg+2, only) || s.Is(arg+3, only)) {
			continue
		}
		call := &jstree.Node{Kind: jstree.IdentNode, At: i, End: i + 1, Str: s.Text(i)}
		if s.Typ(i-1) == js.DotToken {
			call = &jstree.Node{Kind: jstree.MemberNode, At: i, End: i + 1, Str: s.Text(i), Kids: []*jstree.Node{s.ObjectOf(i)}}
		}
		switch f := s.Value(call); {
		case f != nil && f.Kind == jstree.FuncNode:
			if len(f.Kids) == 0 && s.Switches(f.Body) {
				return call
			}
		case strings.HasSuffix(call.Str, fromJSON) && len(call.Str) > len(fromJSON):
			if module, _ := x.imported(call, ""); module != "" {
				return call
			}
		}
	}

	return nil
}

// foldEntries converts fields whose message type is a map entry to maps, and drops the entry types. It is
// called after references were linked.
func (x *scan) foldEntries() {
	// The entries of maps are messages in this code, but must not be declared as such.
	by := map[*model.Def]*model.Message{}
	named := map[string]*model.Def{}
	for _, m := range x.Messages {
		by[&m.Def] = m
		named[m.Full] = &m.Def
	}
	entries := map[*model.Def]bool{}
	for _, m := range x.Messages {
		for _, f := range m.Fields {
			if !f.Entry || f.Ref == nil {
				continue
			}
			if f.Ref.To == nil {
				f.Ref.To = named[f.Ref.Full]
			}
			if entry := f.Ref.To; by[entry] != nil && foldEntry(f, by[entry].Fields) {
				entries[entry] = true
			}
		}
	}

	kept := x.Messages[:0]
	for _, m := range x.Messages {
		if !entries[&m.Def] {
			kept = append(kept, m)
		}
	}
	x.Messages = kept

	// An underscore in a name separates nested types if the part before it is a message.
	names := map[string]bool{}
	for _, m := range x.Messages {
		names[m.Full] = m.Form == model.FormTSProto
	}

	// Outer.Inner, as $type has it, is also called Outer_Inner.
	for _, m := range x.Messages {
		if flat := protoname.Package(m.Full); names[m.Full] && names[flat] {
			for names[protoname.Package(flat)] {
				flat = protoname.Package(flat)
			}
			names[flat+strings.ReplaceAll(m.Full[len(flat):], ".", "_")] = true
		}
	}

	words := map[string]string{}
	for _, m := range x.Messages {
		if pkg, ok := protoname.PackageIn(m.Full, m.Local); ok && m.Form == model.FormTSProto {
			words[protoname.Join(pkg, m.Local)] = m.Full
		}
	}
	for _, d := range x.Defs() {
		if d.Form == model.FormTSProto && !d.Whole {
			d.Full = protoname.Nested(protoname.Unflatten(d.Full, words), names)
		}
	}
}

// foldEntry makes a field a map if the fields of its message type, entry, are a key and a value. It reports
// whether it did.
func foldEntry(f *model.Field, entry []*model.Field) bool {
	var key, value *model.Field
	for _, p := range entry {
		switch p.Number {
		case 1:
			key = p
		case 2:
			value = p
		}
	}
	if key == nil || value == nil || key.Scalar == 0 {
		return false
	}
	f.MapKey, f.Scalar, f.Ref, f.Repeated, f.Packed = key.Scalar, value.Scalar, value.Ref, false, nil
	return true
}

// tsProtoCall extracts a method from the client of a service: this.rpc.request(this.service, "Get", data). Its
// types are those that the method encodes and decodes. at is the token of the called method.
func (x *scan) tsProtoCall(at int32) {
	// The call has four arguments: the service, the method, and two more.
	s := x.Script
	call := s.CallOf(at)
	if call == nil || len(call.Kids) < 4 || !s.Is(at-2, "rpc") {
		return
	}
	name, ok := s.Str(call.Kids[2])
	if !ok {
		return
	}
	m := &model.Method{Name: name}
	switch s.Text(at) {
	case "clientStreamingRequest":
		m.Client = true
	case "serverStreamingRequest":
		m.Server = true
	case "bidirectionalStreamingRequest":
		m.Client, m.Server = true, true
	}

	// The body of the method is the outermost function inside the class.
	class, body := int32(-1), int32(0)
	for br, n := s.Tok(at).Bracket, 0; br != 0 && class < 0 && n < jstree.MaxNesting; br, n = s.Brackets[br].Parent, n+1 {
		if s.Brackets[br].Fn {
			body = br
		}
		if _, ok := s.Classes[br]; ok {
			class = br
		}
	}
	if class < 0 || !s.MayScan(class) {
		return
	}

	// The types are those whose encode and decode methods the body uses.
	for i := s.Brackets[body].Open; i < s.Brackets[body].Close; i++ {
		switch {
		case s.Typ(i-1) != js.DotToken:
		case s.Is(i, "encode") && m.In == nil:
			m.In = x.ref(s.ObjectOf(i))
		case s.Is(i, "decode") && m.Out == nil:
			m.Out = x.ref(s.ObjectOf(i))
		}
	}

	// The service is "pkg.Service" or this.service.
	full, _ := s.Str(call.Kids[1])
	for i := s.Brackets[class].Open; i < s.Brackets[class].Close && full == ""; i++ {
		if s.Is(i, "service") && s.Typ(i-1) == js.DotToken && s.Typ(i+1) == js.EqToken {
			v := s.Expr(i + 2)
			if v.Kind == jstree.BinaryNode {
				v = v.Kids[1]
			}
			full, _ = s.Str(v)
		}
	}
	if full == "" || m.In == nil || m.Out == nil {
		x.unresolved(name, at, "a service call has a name or types that are not constants")
		return
	}
	x.addMethod(full, model.FormTSProto, at, m)
}

// addMethod adds a method to the service with the given full name, which is created if needed. form is the code
// generator, and at the token of the method.
func (x *scan) addMethod(full, form string, at int32, m *model.Method) {
	if !x.MayScanSpan(0, int32(len(x.Services))) {
		return
	}
	for _, svc := range x.Services {
		if svc.Full == full && svc.Form == form {
			if !x.MayScanSpan(0, int32(len(svc.Methods))) {
				return
			}
			for _, old := range svc.Methods {
				// ts-proto generates a service for each RPC library.
				if old.Name == m.Name {
					return
				}
			}
			svc.Methods = append(svc.Methods, m)
			return
		}
	}
	x.Services = append(x.Services, &model.Service{Def: x.def(full, form, at, nil), Methods: []*model.Method{m}})
}
