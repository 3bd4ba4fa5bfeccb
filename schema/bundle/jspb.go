package bundle

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"unwire/schema/bundle/jstree"

	"unwire/schema/bundle/model"

	"github.com/tdewolff/parse/v2/js"
	"google.golang.org/protobuf/types/descriptorpb"

	"unwire/schema/bundle/lexer"
	"unwire/schema/bundle/protoname"
)

// A jspbFile has facts from the output of protoc-gen-js (JSPB) that are not in the functions that write
// messages: names of fields, oneofs and enums.
type jspbFile struct {
	// scan is the state of extracting definitions from the script, to which this type adds facts about JSPB code.
	*scan
	// names has the names of fields. The key is the full message name, a space, and the field number.
	names map[string]string
	// types has the full names of the enums of fields, as far as comments mention them. The keys are those of
	// names.
	types map[string]string
	// oneofs has the lists of field numbers of the oneofs in each message.
	oneofs map[string][][]int64
	// enums are the object literals with enum values, by full name.
	enums map[string]*jstree.Node
}

// jspb extracts definitions from the output of protoc-gen-js: proto.pkg.Foo.serializeBinaryToWriter = function
// (message, writer) { … writer.writeString(1, f) … }.
func (x *scan) jspb() {
	s := x.Script
	var j *jspbFile
	for _, at := range s.Anchors[jstree.AnchorWriter] {
		if s.Typ(at-1) != js.DotToken || s.Typ(at+1) != js.EqToken {
			continue
		}
		fn := s.Expr(at + 2)
		full := chain(s.ObjectOf(at))
		if fn.Kind != jstree.FuncNode || len(fn.Kids) > 0 || full == "" {
			continue
		}
		if j == nil {
			j = x.jspbFacts(x.jspbRoots())
		}
		j.message(full, fn.Body, at)
	}

	// The file may have enums only.
	for _, at := range s.Anchors[jstree.AnchorExportSymbol] {
		if j == nil && s.Typ(at-1) == js.DotToken && s.Typ(at+1) == js.OpenParenToken && s.Typ(at+2) == js.StringToken {
			root, _, _ := strings.Cut(lexer.Unquote(s.Text(at+2)), ".")
			j = x.jspbFacts(map[string]bool{root: true})
		}
	}

	if j != nil {
		for _, full := range slices.Sorted(maps.Keys(j.enums)) {
			values := numbersIn(s, j.enums[full])
			// This enum has the cases of a oneof.
			if len(values) == 0 || strings.HasSuffix(values[0].Name, "_NOT_SET") {
				continue
			}
			e := &model.Enum{Def: x.def(full, model.FormJSPB, j.enums[full].At, nil), Values: values}
			x.Enums = append(x.Enums, e)
		}
	}

	for _, at := range s.Anchors[jstree.AnchorGRPCWeb] {
		x.grpcWeb(at)
	}
}

// jspbRoots returns identifiers (see rootAt) of the variables that stand for the root namespace "proto" in a
// script.
func (x *scan) jspbRoots() map[string]bool {
	roots := map[string]bool{}
	for _, at := range x.Anchors[jstree.AnchorWriter] {
		if x.Typ(at-1) == js.DotToken && x.Typ(at+1) == js.EqToken {
			roots[x.rootAt(at)] = true
		}
	}
	return roots
}

// rootAt identifies the first name of the member expression that ends at the token with index at. It returns
// the index of the token that declares the name, because minified names are not unique, or the name itself if
// it is not declared.
func (x *scan) rootAt(at int32) string {
	first := x.StartOf(at)
	if b, ok := x.Lookup(first, x.Text(first)); ok {
		return fmt.Sprint(b.Tok)
	}
	return x.Text(first)
}

// jspbFacts collects names of fields, oneofs and enums from the assignments in the script. roots are the root
// namespaces (see jspbRoots).
func (x *scan) jspbFacts(roots map[string]bool) *jspbFile {
	s := x.Script
	j := &jspbFile{scan: x, names: map[string]string{}, types: map[string]string{}, oneofs: map[string][][]int64{}, enums: map[string]*jstree.Node{}}
	comment := regexp.MustCompile(`@type \{(?:!?Array<)?!?\w+\.([\w.]+)>?\}`)
	for i := range s.Toks {
		at := int32(i)
		if s.Typ(int32(i)) != js.EqToken || !js.IsIdentifierName(s.Typ(at-1)) || s.Typ(at-2) != js.DotToken {
			continue
		}
		name := s.Text(at - 1)

		// An assignment to a prototype's getter, to the list of oneofs, or to an object of numbers.
		switch {
		case s.Is(at-3, "prototype") && strings.HasPrefix(name, "get") && s.Typ(at+1) == js.FunctionToken:
			fn := s.Expr(at + 1)
			full := strings.TrimSuffix(chain(s.ObjectOf(at-1)), ".prototype")
			// The type of an enum is in the comment that describes the result.
			if no, ok := j.numberIn(fn); ok && full != "" && !strings.Contains(name, "_as") {
				key := fmt.Sprint(full, " ", no)
				j.names[key] = name[len("get"):]
				src := s.Src[s.Tok(at).Start:s.Tok(fn.End).Start]
				if m := comment.FindSubmatch(src); m != nil {
					j.types[key] = string(m[1])
				}
			}
		// Each group is the list of a oneof's field numbers.
		case name == "oneofGroups_" && s.Typ(at+1) == js.OpenBracketToken:
			groups, _ := s.Elements(s.Expr(at + 1))
			full := chain(s.ObjectOf(at - 1))
			for _, g := range groups {
				members, _ := s.Elements(g)
				var list []int64
				for _, m := range members {
					if no, ok := s.Integer(m); ok {
						list = append(list, no)
					}
				}
				j.oneofs[full] = append(j.oneofs[full], list)
			}
		// An enum is an object of numbers in the namespace of the script.
		case s.Typ(at+1) == js.OpenBraceToken && roots[x.rootAt(at-1)]:
			o := s.Expr(at + 1)
			if values := numbersIn(s, o); len(values) > 0 && len(values) == len(o.Props) {
				j.enums[chain(s.ObjectOf(at-1))+"."+name] = o
			}
		}
	}
	return j
}

// numberIn returns the field number that a getter function reads: the first number among the arguments of a
// call whose first argument is this.
func (j *jspbFile) numberIn(fn *jstree.Node) (int64, bool) {
	s := j.Script
	if fn.Kind != jstree.FuncNode || len(fn.Kids) > 0 {
		return 0, false
	}
	b := s.Brackets[fn.Body]
	if !s.MayScan(fn.Body) {
		return 0, false
	}
	for i := b.Open; i < b.Close; i++ {
		if s.Typ(i) != js.OpenParenToken || s.Typ(i+1) != js.ThisToken || s.Typ(i+2) != js.CommaToken {
			continue
		}
		r := jstree.Reader{Script: s}
		for _, arg := range r.List(i+3, s.EnclosingBracket(i).Close) {
			if arg.Kind == jstree.NumberNode {
				return s.Integer(arg)
			}
		}
	}
	return 0, false
}

// message extracts the message whose fields are written by the function whose body is the bracket body. at is
// the token where the message begins.
func (j *jspbFile) message(full string, body, at int32) {
	s := j.Script
	m := &model.Message{Def: j.def(full, model.FormJSPB, at, nil)}
	writer := s.Param(body, 1)
	b := s.Brackets[body]
	if !s.MayScan(body) {
		return
	}

	// Each call of a write method in serializeBinaryToWriter is a field.
	for i := b.Open; i < b.Close; i++ {
		if s.Typ(i+1) != js.OpenParenToken || s.Typ(i-1) != js.DotToken {
			continue
		}
		var f *model.Field
		word := s.Text(i)
		switch {
		case strings.HasPrefix(word, "write") && s.Is(i-2, writer):
			f = j.field(word, s.CallOf(i))
		case word == "serializeBinary":
			f = j.mapField(s.CallOf(i), 0)
		case word == "serializeMapToBinary":
			f = j.mapField(s.CallOf(i), 1)
		}
		if f == nil {
			continue
		}
		f.Place = j.place(i)
		j.complete(full, f, body, i)
		m.Fields = append(m.Fields, f)
	}
	j.Messages = append(j.Messages, m)
}

// field extracts a field from a call such as writer.writeString(1, f). word is the method's name. It returns
// nil if the number is not constant.
func (j *jspbFile) field(word string, call *jstree.Node) *model.Field {
	if call == nil || len(call.Kids) < 3 {
		return nil
	}
	no, ok := j.Integer(call.Kids[1])
	if !ok {
		return nil
	}
	f := &model.Field{Number: no}
	word = strings.TrimPrefix(word, "write")
	// The name of the method has the form writePackedInt32 or writeRepeatedMessage.
	packed, repeated := strings.CutPrefix(word, "Packed")
	if repeated {
		yes := true
		f.Repeated, f.Packed, word = true, &yes, packed
	} else if rest, ok := strings.CutPrefix(word, "Repeated"); ok {
		f.Repeated, word = true, rest
	}
	j.setTypeOf(f, word, call.Kids[3:])
	if f.Packed == nil && f.Repeated && (f.Ref != nil && f.Ref.Enum || f.Scalar != 0 && model.Packable(f.Scalar)) {
		no := false
		f.Packed = &no
	}
	return f
}

// setTypeOf sets the type of a field. word is the name of the writer's method without "write", and rest are the
// call's arguments after number and value.
func (j *jspbFile) setTypeOf(f *model.Field, word string, rest []*jstree.Node) {
	switch word {
	case "Message", "Group":
		f.Group = word == "Group"
		f.Ref = &model.Ref{}
		if len(rest) > 0 {
			f.Ref.Full = strings.TrimSuffix(chain(rest[0]), ".serializeBinaryToWriter")
			// The type may be of another module: any_pb.Any.
			f.Ref.Local = strings.ReplaceAll(f.Ref.Full, ".", "_")
			f.Ref.Module, _ = j.imported(rest[0], "")
			if pkg := j.moduleSpace(rest[0]); pkg != "" {
				f.Ref.Full = protoname.Join(pkg, f.Ref.Full)
			}
			f.Ref.Place = j.place(rest[0].At)
		}
		j.Refs = append(j.Refs, f.Ref)
	case "Enum":
		f.Ref = &model.Ref{Enum: true}
		j.Refs = append(j.Refs, f.Ref)
	default:
		if f.Scalar = j.scalarNamed(strings.ToLower(word)); f.Scalar == 0 {
			// The method is writeInt64String, which represents numbers as strings.
			f.Scalar = j.scalarNamed(strings.ToLower(strings.TrimSuffix(word, "String")))
			if f.Scalar == 0 {
				f.Scalar = descriptorpb.FieldDescriptorProto_TYPE_BYTES
			} else {
				f.JSType = descriptorpb.FieldOptions_JS_STRING
			}
		}
	}
}

// moduleSpace returns the protobuf namespace of the JavaScript module that the first name of an expression
// refers to, i.e. proto.pkg in goog.object.extend(exports, proto.pkg), or "".
func (x *scan) moduleSpace(n *jstree.Node) string {
	s := x.Script

	// The leftmost name of a.b.c is the variable that holds the module.
	for n.Kind == jstree.MemberNode {
		n = n.Kids[0]
	}
	t := jstree.Trail{}
	v := s.Deref(n, &t)
	body, ok := s.ModuleOf(v, &t)

	// This is requireFoo() of Rollup.
	if !ok && v != nil && v.Kind == jstree.CallNode && len(v.Kids) == 1 {
		if fn := s.Deref(v.Kids[0], &t); fn != nil && fn.Kind == jstree.FuncNode && len(fn.Kids) == 0 {
			body, ok = fn.Body, true
		}
	}
	if !ok {
		return ""
	}
	space, known := x.exported[body]
	if known {
		return space
	}

	// Very large modules are not scanned, to bound the time.
	b := s.Brackets[body]
	if !s.MayScan(body) {
		return ""
	}
	for i := b.Open; i < b.Close && space == ""; i++ {
		if s.Is(i, "extend") && s.Typ(i+1) == js.OpenParenToken {
			if call := s.CallOf(i); call != nil && len(call.Kids) == 3 {
				space = chain(call.Kids[2])
			}
		}
	}
	x.exported[body] = space
	return space
}

// mapField extracts a map field from the call f.serializeBinary(1, writer, writeKey, writeValue, fn). skip is
// the number of arguments before these. It returns nil for other calls.
func (j *jspbFile) mapField(call *jstree.Node, skip int) *model.Field {
	if call == nil || len(call.Kids) < 5+skip {
		return nil
	}
	args := call.Kids[1+skip:]
	no, ok := j.Integer(args[0])
	if !ok || args[2].Kind != jstree.MemberNode || args[3].Kind != jstree.MemberNode {
		return nil
	}
	f := &model.Field{Number: no}
	f.MapKey = j.scalarNamed(strings.ToLower(strings.TrimPrefix(args[2].Str, "write")))
	j.setTypeOf(f, strings.TrimPrefix(args[3].Str, "write"), args[4:])
	return f
}

// complete sets the name of a field of the message full, and the properties that other parts of the script
// show: oneof, enum type, presence. body is the function that writes the message, and at the token of the write
// call.
func (j *jspbFile) complete(full string, f *model.Field, body, at int32) {
	key := fmt.Sprint(full, " ", f.Number)

	// A $ was appended to names that JavaScript reserves.
	name := strings.TrimSuffix(j.names[key], "$")
	switch {
	case f.MapKey != 0:
		name = strings.TrimSuffix(name, "Map")
	case f.Repeated:
		name = strings.TrimSuffix(name, "List")
	}
	f.Name = protoname.Snake(name)
	if name == "" {
		f.Name = fmt.Sprint("field_", f.Number)
		j.unresolved(full+"."+f.Name, at, "its name was not found, so extract made one up")
	}

	if f.Ref != nil && f.Ref.Enum {
		f.Ref.Full, f.Ref.Place = j.types[key], f.Place
		if f.Ref.Full == "" {
			f.Ref.Local = "of " + f.Name
		}
	}

	for _, members := range j.oneofs[full] {
		for _, no := range members {
			if no == f.Number {
				f.Oneof = j.oneofName(full, members)
			}
		}
	}

	// getField(message, 1) returns null for an absent field, so it shows explicit presence; other getters return
	// a default.
	s := j.Script
	for i := at; i > s.Brackets[body].Open && i > at-24 && f.Oneof == "" && !f.Repeated; i-- {
		if s.Typ(i) == js.EqToken && i < at-4 {
			for k := i; k < at; k++ {
				f.Presence = f.Presence || s.Is(k, "getField")
			}
			break
		}
	}
}

// oneofName returns the name of the oneof of the message full with these field numbers. It is derived from the
// object of its cases, such as KIND_NOT_SET: 0, or made up.
func (j *jspbFile) oneofName(full string, members []int64) string {
	if !j.MayScanSpan(0, int32(len(j.enums))) {
		return fmt.Sprint("oneof_", members[0])
	}
	for name, o := range j.enums {
		if protoname.Package(name) != full {
			continue
		}
		values := numbersIn(j.Script, o)
		if len(values) != len(members)+1 || len(values) < 2 {
			continue
		}
		word, ok := strings.CutSuffix(values[0].Name, "_NOT_SET")
		if ok && int64(values[1].Number) == members[0] {
			return strings.ToLower(word)
		}
	}
	return fmt.Sprint("oneof_", members[0])
}

// grpcWeb extracts a method from new grpc.web.MethodDescriptor("/pkg.Svc/Get", grpc.web.MethodType.UNARY,
// proto.pkg.Request, proto.pkg.Response, …).
func (x *scan) grpcWeb(at int32) {
	s := x.Script
	call := s.CallOf(at)
	if call == nil || len(call.Kids) < 5 {
		return
	}
	path, ok := s.Str(call.Kids[1])
	full, name, found := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	if !ok || !found {
		return
	}
	m := &model.Method{Name: name, In: x.ref(call.Kids[3]), Out: x.ref(call.Kids[4])}

	// The message classes may be declared under the full name already.
	for _, r := range []*model.Ref{m.In, m.Out} {
		if !s.MayScanSpan(0, int32(len(x.Messages))) {
			break
		}
		for _, msg := range x.Messages {
			if msg.Full == r.Chain {
				r.Full = r.Chain
			}
		}
	}

	if kind := call.Kids[2]; kind.Kind == jstree.MemberNode {
		m.Server = kind.Str == "SERVER_STREAMING"
	} else if word, ok := s.Str(kind); ok {
		m.Server = word == "server_streaming"
	}
	x.addMethod(full, model.FormGRPC, at, m)
}
