package bundle

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/tdewolff/parse/v2/js"
	"google.golang.org/protobuf/types/descriptorpb"

	"unwire/schema/bundle/lexer"
)

const formJSPB = "google-protobuf"

// A jspbFile is what one script of google-protobuf's generator tells beside the
// functions that write: names of fields, oneofs and enums, by message.
type jspbFile struct {
	*scan
	names  map[string]string    // message and number: name
	types  map[string]string    // message and number: enum, where a comment tells
	oneofs map[string][][]int64 // message: members
	enums  map[string]*node
}

// jspb reads the code of protoc-gen-js: proto.pkg.Foo.serializeBinaryToWriter =
// function (message, writer) { … writer.writeString(1, f) … }.
func (x *scan) jspb() {
	s := x.script
	var j *jspbFile
	for _, at := range s.anchors[anchorWriter] {
		if s.typ(at-1) != js.DotToken || s.typ(at+1) != js.EqToken {
			continue
		}
		fn := s.expr(at + 2)
		full := chain(s.objectOf(at))
		if fn.kind != nFunc || len(fn.kids) > 0 || full == "" {
			continue
		}
		if j == nil {
			j = x.jspbFacts(x.jspbRoots())
		}
		j.message(full, fn.body, at)
	}
	for _, at := range s.anchors[anchorExportSymbol] { // a file of enums alone
		if j == nil && s.typ(at-1) == js.DotToken && s.typ(at+1) == js.OpenParenToken && s.typ(at+2) == js.StringToken {
			root, _, _ := strings.Cut(lexer.Unquote(s.text(at+2)), ".")
			j = x.jspbFacts(map[string]bool{root: true})
		}
	}
	if j != nil {
		for _, full := range slices.Sorted(maps.Keys(j.enums)) {
			values := s.numbersIn(j.enums[full])
			// cases of a oneof
			if len(values) == 0 || strings.HasSuffix(values[0].name, "_NOT_SET") {
				continue
			}
			e := &enum{def: x.def(full, formJSPB, j.enums[full].at, nil), values: values}
			x.enums = append(x.enums, e)
		}
	}
	for _, at := range s.anchors[anchorGRPCWeb] {
		x.grpcWeb(at)
	}
}

// jspbRoots are the names that proto has in the modules of a script.
func (x *scan) jspbRoots() map[string]bool {
	roots := map[string]bool{}
	for _, at := range x.anchors[anchorWriter] {
		if x.typ(at-1) == js.DotToken && x.typ(at+1) == js.EqToken {
			roots[x.rootAt(at)] = true
		}
	}
	return roots
}

// rootAt is what the first name of a member expression stands for: a binding by
// its token, so that a minifier's short names are told apart, else the name.
func (x *scan) rootAt(at int32) string {
	first := x.startOf(at)
	if b, ok := x.lookup(first, x.text(first)); ok {
		return fmt.Sprint(b.tok)
	}
	return x.text(first)
}

// jspbFacts collects what stands beside the functions that write.
func (x *scan) jspbFacts(roots map[string]bool) *jspbFile {
	s := x.script
	j := &jspbFile{scan: x, names: map[string]string{}, types: map[string]string{}, oneofs: map[string][][]int64{}, enums: map[string]*node{}}
	comment := regexp.MustCompile(`@type \{(?:!?Array<)?!?\w+\.([\w.]+)>?\}`)
	for i := range s.toks {
		at := int32(i)
		if s.typ(int32(i)) != js.EqToken || !js.IsIdentifierName(s.typ(at-1)) || s.typ(at-2) != js.DotToken {
			continue
		}
		name := s.text(at - 1)
		switch {
		case s.is(at-3, "prototype") && strings.HasPrefix(name, "get") && s.typ(at+1) == js.FunctionToken:
			fn := s.expr(at + 1)
			full := strings.TrimSuffix(chain(s.objectOf(at-1)), ".prototype")
			if no, ok := j.numberIn(fn); ok && full != "" && !strings.Contains(name, "_as") {
				key := fmt.Sprint(full, " ", no)
				j.names[key] = name[len("get"):]
				src := s.src[s.tok(at).start:s.tok(fn.end).start]
				if m := comment.FindSubmatch(src); m != nil {
					j.types[key] = string(m[1])
				}
			}
		case name == "oneofGroups_" && s.typ(at+1) == js.OpenBracketToken:
			groups, _ := s.elements(s.expr(at + 1))
			full := chain(s.objectOf(at - 1))
			for _, g := range groups {
				members, _ := s.elements(g)
				var list []int64
				for _, m := range members {
					if no, ok := s.integer(m); ok {
						list = append(list, no)
					}
				}
				j.oneofs[full] = append(j.oneofs[full], list)
			}
		case s.typ(at+1) == js.OpenBraceToken && roots[x.rootAt(at-1)]:
			o := s.expr(at + 1)
			if values := s.numbersIn(o); len(values) > 0 && len(values) == len(o.props) {
				j.enums[chain(s.objectOf(at-1))+"."+name] = o
			}
		}
	}
	return j
}

// numberIn returns the number of the field that a getter reads: the first that
// stands alone among the arguments of a call whose first is this.
func (j *jspbFile) numberIn(fn *node) (int64, bool) {
	s := j.script
	if fn.kind != nFunc || len(fn.kids) > 0 {
		return 0, false
	}
	b := s.brs[fn.body]
	if !s.mayScan(fn.body) {
		return 0, false
	}
	for i := b.open; i < b.close; i++ {
		if s.typ(i) != js.OpenParenToken || s.typ(i+1) != js.ThisToken || s.typ(i+2) != js.CommaToken {
			continue
		}
		r := reader{script: s}
		for _, arg := range r.list(i+3, s.enclosingBracket(i).close) {
			if arg.kind == nNumber {
				return s.integer(arg)
			}
		}
	}
	return 0, false
}

func (j *jspbFile) message(full string, body, at int32) {
	s := j.script
	m := &message{def: j.def(full, formJSPB, at, nil)}
	writer := s.param(body, 1)
	b := s.brs[body]
	if !s.mayScan(body) {
		return
	}
	for i := b.open; i < b.close; i++ {
		if s.typ(i+1) != js.OpenParenToken || s.typ(i-1) != js.DotToken {
			continue
		}
		var f *field
		word := s.text(i)
		switch {
		case strings.HasPrefix(word, "write") && s.is(i-2, writer):
			f = j.field(word, s.callOf(i))
		case word == "serializeBinary":
			f = j.mapField(s.callOf(i), 0)
		case word == "serializeMapToBinary":
			f = j.mapField(s.callOf(i), 1)
		}
		if f == nil {
			continue
		}
		f.place = j.place(i)
		j.complete(full, f, body, i)
		m.fields = append(m.fields, f)
	}
	j.messages = append(j.messages, m)
}

// field reads writer.writeString(1, f) and its like.
func (j *jspbFile) field(word string, call *node) *field {
	if call == nil || len(call.kids) < 3 {
		return nil
	}
	no, ok := j.integer(call.kids[1])
	if !ok {
		return nil
	}
	f := &field{no: no}
	word = strings.TrimPrefix(word, "write")
	packed, repeated := strings.CutPrefix(word, "Packed")
	if repeated {
		yes := true
		f.repeated, f.packed, word = true, &yes, packed
	} else if rest, ok := strings.CutPrefix(word, "Repeated"); ok {
		f.repeated, word = true, rest
	}
	j.setTypeOf(f, word, call.kids[3:])
	if f.packed == nil && f.repeated && (f.ref != nil && f.ref.enum || f.scalar != 0 && packable(f.scalar)) {
		no := false
		f.packed = &no
	}
	return f
}

// setTypeOf sets a field's type by what a method of the writer is called.
func (j *jspbFile) setTypeOf(f *field, word string, rest []*node) {
	switch word {
	case "Message", "Group":
		f.group = word == "Group"
		f.ref = &ref{}
		if len(rest) > 0 {
			f.ref.full = strings.TrimSuffix(chain(rest[0]), ".serializeBinaryToWriter")
			// of another module: any_pb.Any
			f.ref.local = strings.ReplaceAll(f.ref.full, ".", "_")
			f.ref.module, _ = j.imported(rest[0], "")
			if pkg := j.moduleSpace(rest[0]); pkg != "" {
				f.ref.full = dotted(pkg, f.ref.full)
			}
			f.ref.place = j.place(rest[0].at)
		}
		j.refs = append(j.refs, f.ref)
	case "Enum":
		f.ref = &ref{enum: true}
		j.refs = append(j.refs, f.ref)
	default:
		if f.scalar = j.scalarNamed(strings.ToLower(word)); f.scalar == 0 {
			// writeInt64String
			f.scalar = j.scalarNamed(strings.ToLower(strings.TrimSuffix(word, "String")))
			if f.scalar == 0 {
				f.scalar = descriptorpb.FieldDescriptorProto_TYPE_BYTES
			} else {
				f.jsType = descriptorpb.FieldOptions_JS_STRING
			}
		}
	}
}

// moduleSpace returns what the module that an expression's first name stands for
// exports: goog.object.extend(exports, proto.pkg), or "".
func (x *scan) moduleSpace(n *node) string {
	s := x.script
	for n.kind == nMember {
		n = n.kids[0]
	}
	t := trail{}
	v := s.deref(n, &t)
	body, ok := s.moduleOf(v, &t)
	// Rollup's requireFoo()
	if !ok && v != nil && v.kind == nCall && len(v.kids) == 1 {
		if fn := s.deref(v.kids[0], &t); fn != nil && fn.kind == nFunc && len(fn.kids) == 0 {
			body, ok = fn.body, true
		}
	}
	if !ok {
		return ""
	}
	space, known := x.exported[body]
	if known {
		return space
	}
	b := s.brs[body]
	if !s.mayScan(body) {
		return ""
	}
	for i := b.open; i < b.close && space == ""; i++ {
		if s.is(i, "extend") && s.typ(i+1) == js.OpenParenToken {
			if call := s.callOf(i); call != nil && len(call.kids) == 3 {
				space = chain(call.kids[2])
			}
		}
	}
	x.exported[body] = space
	return space
}

// mapField reads f.serializeBinary(1, writer, writeKey, writeValue, fn), with
// so many arguments before those.
func (j *jspbFile) mapField(call *node, skip int) *field {
	if call == nil || len(call.kids) < 5+skip {
		return nil
	}
	args := call.kids[1+skip:]
	no, ok := j.integer(args[0])
	if !ok || args[2].kind != nMember || args[3].kind != nMember {
		return nil
	}
	f := &field{no: no}
	f.mapKey = j.scalarNamed(strings.ToLower(strings.TrimPrefix(args[2].str, "write")))
	j.setTypeOf(f, strings.TrimPrefix(args[3].str, "write"), args[4:])
	return f
}

// complete names a field, and says what else is known of it.
func (j *jspbFile) complete(full string, f *field, body, at int32) {
	key := fmt.Sprint(full, " ", f.no)
	// of one that JavaScript reserves
	name := strings.TrimSuffix(j.names[key], "$")
	switch {
	case f.mapKey != 0:
		name = strings.TrimSuffix(name, "Map")
	case f.repeated:
		name = strings.TrimSuffix(name, "List")
	}
	f.name = snake(name)
	if name == "" {
		f.name = fmt.Sprint("field_", f.no)
		j.unresolved(full+"."+f.name, at, "its name was not found; it is one that was made up")
	}
	if f.ref != nil && f.ref.enum {
		f.ref.full, f.ref.place = j.types[key], f.place
		if f.ref.full == "" {
			f.ref.local = "of " + f.name
		}
	}
	for _, members := range j.oneofs[full] {
		for _, no := range members {
			if no == f.no {
				f.oneof = j.oneofName(full, members)
			}
		}
	}
	// getField(message, 1) is null where there is none; others have a default.
	s := j.script
	for i := at; i > s.brs[body].open && i > at-24 && f.oneof == "" && !f.repeated; i-- {
		if s.typ(i) == js.EqToken && i < at-4 {
			for k := i; k < at; k++ {
				f.presence = f.presence || s.is(k, "getField")
			}
			break
		}
	}
}

// oneofName finds a oneof's name by its cases, KIND_NOT_SET: 0 and so on.
func (j *jspbFile) oneofName(full string, members []int64) string {
	if !j.mayScanSpan(0, int32(len(j.enums))) {
		return fmt.Sprint("oneof_", members[0])
	}
	for name, o := range j.enums {
		if packageOf(name) != full {
			continue
		}
		values := j.numbersIn(o)
		if len(values) != len(members)+1 || len(values) < 2 {
			continue
		}
		word, ok := strings.CutSuffix(values[0].name, "_NOT_SET")
		if ok && int64(values[1].no) == members[0] {
			return strings.ToLower(word)
		}
	}
	return fmt.Sprint("oneof_", members[0])
}

// grpcWeb reads new grpc.web.MethodDescriptor("/pkg.Svc/Get",
// grpc.web.MethodType.UNARY, proto.pkg.Request, proto.pkg.Response, …).
func (x *scan) grpcWeb(at int32) {
	s := x.script
	call := s.callOf(at)
	if call == nil || len(call.kids) < 5 {
		return
	}
	path, ok := s.str(call.kids[1])
	full, name, found := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	if !ok || !found {
		return
	}
	m := &method{name: name, in: x.ref(call.kids[3]), out: x.ref(call.kids[4])}
	for _, r := range []*ref{m.in, m.out} {
		if !s.mayScanSpan(0, int32(len(x.messages))) {
			break
		}
		for _, msg := range x.messages {
			if msg.full == r.chain {
				r.full = r.chain
			}
		}
	}
	if kind := call.kids[2]; kind.kind == nMember {
		m.server = kind.str == "SERVER_STREAMING"
	} else if word, ok := s.str(kind); ok {
		m.server = word == "server_streaming"
	}
	x.addMethod(full, formGRPC, at, m)
}
