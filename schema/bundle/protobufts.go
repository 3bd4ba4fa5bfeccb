package bundle

import (
	"unwire/schema/bundle/jstree"
	"unwire/schema/bundle/model"
	"unwire/schema/bundle/protoname"

	"github.com/tdewolff/parse/v2/js"
	"google.golang.org/protobuf/types/descriptorpb"
)

// A construction is an expression super("pkg.X", […]) or new Y("pkg.X", […]), which may create a message type
// or a service of protobuf-ts.
type construction struct {
	// at is the index of the token super or new.
	at int32
	// name and list are the arguments of the constructor: the type's name and its members.
	name, list *jstree.Node
	// ids are the indices of the tokens that refer to the type.
	ids []int32
	// base is the token that identifies the base class, or the class that is constructed; -1 if unknown.
	base int32
	// word is the name of the constructed class in the script.
	word string
}

// protobufTS extracts definitions from the output of protobuf-ts: classes that extend MessageType and pass
// their name and fields to it, and services. Minification changes the names of the base classes, so they are
// recognized by how they are used.
func (x *scan) protobufTS() {
	s := x.Script
	var empty []construction
	bases := map[int32]jstree.AnchorKind{}
	for _, c := range x.constructions() {
		list, ok := s.Elements(c.list)
		if !ok {
			continue
		}
		if len(list) == 0 {
			empty = append(empty, c)
			continue
		}
		// The first element shows whether these are fields or methods.
		switch o := s.Object(list[0]); {
		case o.Get("no") != nil && o.Get("kind") != nil && o.Get("name") != nil:
			x.tsMessage(c, list)
			bases[c.base] = jstree.AnchorMessageType
		case o.Get("I") != nil && o.Get("O") != nil && o.Get("name") != nil:
			x.tsService(c, list)
			bases[c.base] = jstree.AnchorNested
		}
	}

	// A type without fields or methods is recognised by a base class that others use.
	for _, c := range empty {
		switch {
		case c.word == "MessageType" || bases[c.base] == jstree.AnchorMessageType:
			x.tsMessage(c, nil)
		case c.word == "ServiceType" || bases[c.base] == jstree.AnchorNested:
			x.tsService(c, nil)
		}
	}
}

// constructions returns all expressions that may create a type: super, new, and the calls that compilers
// generate for super if classes are compiled to functions.
func (x *scan) constructions() []construction {
	s := x.Script
	var all []construction
	for _, kind := range []jstree.AnchorKind{jstree.AnchorSuper, jstree.AnchorNew} {
		for _, at := range s.Anchors[kind] {
			if c, ok := x.construction(at); ok {
				all = append(all, c)
			}
		}
	}
	for i := range s.Toks {
		if s.Typ(int32(i)) == js.ThisToken && s.Typ(int32(i)+1) == js.CommaToken && s.Typ(int32(i)-1) == js.OpenParenToken {
			if c, ok := x.functionClass(int32(i)); ok {
				all = append(all, c)
			}
		}
	}
	return all
}

// functionClass returns the construction in a class that was compiled to a function: _super.call(this, "pkg.X",
// […]) of TypeScript and callSuper(this, X, ["pkg.X", […]]) of Babel, inside Y = function (_super) { function
// X() {…} … return X }(Base). at is the token this. ok is false for other code.
func (x *scan) functionClass(at int32) (construction, bool) {
	s := x.Script

	// The type's name is a string constant, followed by further arguments.
	text := func(at int32) bool {
		return (s.Typ(at) == js.StringToken || s.Typ(at) == js.TemplateToken) && s.Typ(at+1) == js.CommaToken
	}
	open := s.EnclosingBracket(at)
	switch {
	case text(at+2) && s.Is(open.Open-1, "call"):
	case js.IsIdentifier(s.Typ(at+2)) && s.Typ(at+4) == js.OpenBracketToken && text(at+5):
		open = s.EnclosingBracket(at + 4)
	default:
		return construction{}, false
	}

	first := open.Open + 1
	if open.Kind == '(' {
		first = at + 2
	}

	// The second argument lists the fields.
	r := jstree.Reader{Script: s}
	args := r.List(first, open.Close)
	own := s.Function(s.Tok(at).Bracket)
	outer := s.Function(s.Brackets[own].Parent)
	if len(args) < 2 || args[1].Kind != jstree.ArrayNode || own == 0 || outer == 0 {
		return construction{}, false
	}

	// ES5 code has functions in place of classes.
	inside, around := s.FunctionAt(own), s.FunctionAt(outer)

	// The inner function, its name, and the outer function stand for the class.
	ids := []int32{inside, inside + 1, around}
	for s.Typ(around-1) == js.OpenParenToken && s.Typ(around-2) != js.CloseParenToken && !js.IsIdentifier(s.Typ(around-2)) {
		around--
	}
	names, _ := s.BoundNames(around)
	c := construction{at: at, name: args[0], list: args[1], ids: append(ids, names...), base: -1}

	// The parameter of the outer function is the base class.
	if b, ok := s.Lookup(s.Brackets[outer].Open+1, s.Param(outer, 0)); ok && b.Kind == jstree.BindParam && b.Scope == outer {
		if base := s.Argument(b); base != nil {
			c.base, c.word = s.EndOf(base), base.Str
		}
	}
	return c, true
}

// construction returns the construction at the token super or new. ok is false unless its arguments are a
// string and an array.
func (x *scan) construction(at int32) (construction, bool) {
	s := x.Script
	open := at + 1
	if s.Typ(at) == js.NewToken {
		// The callee may be a member of a module, such as runtime.MessageType.
		for open < at+8 && (js.IsIdentifier(s.Typ(open)) || s.Typ(open) == js.DotToken) {
			open++
		}
	}
	if t := s.Typ(open + 1); s.Typ(open) != js.OpenParenToken || t != js.StringToken && t != js.TemplateToken && !js.IsIdentifier(t) {
		return construction{}, false
	}

	r := jstree.Reader{Script: s}
	args := r.List(open+1, s.EnclosingBracket(open).Close)
	if len(args) < 2 || args[1].Kind != jstree.ArrayNode {
		return construction{}, false
	}
	c := construction{at: at, name: args[0], list: args[1]}
	if s.Typ(at) == js.NewToken {
		callee := r.Construct(at).Kids[0]
		c.base, c.ids, c.word = s.EndOf(callee), append(s.NameIDs(at), at), callee.Str
		return c, true
	}

	// super: the enclosing class is the type.
	for br := s.Tok(at).Bracket; br != 0 && s.Step(at); br = s.Brackets[br].Parent {
		class, ok := s.Classes[br]
		if !ok {
			continue
		}
		c.ids = s.ClassIDs(class)
		if n := s.Expr(class); n.Kind == jstree.ClassNode && n.Kids[0] != nil {
			c.base, c.word = s.EndOf(n.Kids[0]), n.Kids[0].Str
		}
		return c, true
	}
	return construction{}, false
}

// tsMessage extracts a message of protobuf-ts from the construction of its type. list are the fields.
func (x *scan) tsMessage(c construction, list []*jstree.Node) {
	s := x.Script
	full, ok := s.Str(c.name)
	if !ok {
		x.unresolved("", c.at, "the name of a message is not a constant")
		return
	}
	m := &model.Message{Def: x.def(full, model.FormPBTS, c.at, c.ids)}
	for _, n := range list {
		o := s.Object(n)
		if o == nil {
			x.unresolved(full, n.At, "a field is not a constant object")
			continue
		}
		f := x.es1Field(full, o)
		if f == nil {
			continue
		}
		// L depends on an option of the generator and not on the definition.
		f.JSType = 0
		f.Oneof = protoname.Snake(f.Oneof)
		f.Implicit = !f.Presence
		if repeat, ok := x.constant(o.Get("repeat"), "NO", "PACKED", "UNPACKED"); ok && repeat > 0 {
			f.Repeated = true
			packed := repeat == 1
			f.Packed = &packed
		}
		x.tsEnumOf(f, o)
		m.Fields = append(m.Fields, f)
	}
	x.Messages = append(x.Messages, m)
}

// tsEnumOf extracts the enum type of a field: T: () => ["pkg.Enum", Enum, "PREFIX_"]. o is the field's object
// literal.
func (x *scan) tsEnumOf(f *model.Field, o *jstree.Node) {
	s := x.Script
	if f.Ref == nil || !f.Ref.Enum {
		return
	}

	// The value type of a map is one level deeper.
	t := o.Get("T")
	if v := s.Object(o.Get("V")); v != nil {
		t = v.Get("T")
	}
	list, ok := s.Elements(t)
	if !ok || len(list) < 2 {
		return
	}

	full, ok := s.Str(list[0])
	if !ok {
		return
	}
	f.Ref.Full = full

	// Each field repeats the enum that it refers to; the first one declares it.
	if x.tsEnums[full] {
		return
	}
	x.tsEnums[full] = true
	prefix := ""
	if len(list) > 2 {
		prefix, _ = s.Str(list[2])
	}

	e := &model.Enum{Def: x.def(full, model.FormPBTS, list[1].At, nil)}
	e.Values = enumValues(s, list[1])
	kept := e.Values[:0]
	for _, v := range e.Values {
		// The generator adds this value to an enum without 0, which only proto2 allows.
		if v.Name == "UNSPECIFIED$" {
			e.Syntax = "proto2"
			continue
		}
		v.Name = prefix + v.Name
		kept = append(kept, v)
	}
	e.Values = kept
	if len(e.Values) == 0 && !protoname.IsStandard(full) {
		e.From, e.Prefix = x.ref(list[1]), prefix
	}
	x.Enums = append(x.Enums, e)
}

// enumValues returns the values of an enum in the form that TypeScript generates, (function (E) { E[E["A"] = 0]
// = "A"; … })(E || (E = {})), or of an object of numbers.
func enumValues(s *jstree.Script, n *jstree.Node) []model.EnumValue {
	t := s.Follow(n)
	if t.End != nil && t.End.Kind == jstree.ObjectNode && len(t.End.Props) > 0 {
		return numbersIn(s, t.End)
	}
	for _, id := range t.IDs {
		name := s.Text(id)
		if !js.IsIdentifier(s.Typ(id)) {
			continue
		}
		b, ok := s.Lookup(id, name)
		if !ok || b.Kind != jstree.BindVar {
			continue
		}

		places := s.Values(b)
		if b.Init >= 0 {
			places = append([]int32{b.Init}, places...)
			if v := jstree.Last(s.Expr(b.Init)); v.Kind == jstree.CallNode {
				if list := membersOf(s, jstree.Last(v.Kids[0])); len(list) > 0 {
					return list
				}
			}
		}
		// The values are assigned in a function to which the enum is passed.
		for _, at := range places {
			for br := s.Tok(at).Bracket; br != 0 && s.Step(at); br = s.Brackets[br].Parent {
				open := s.Brackets[br].Open
				// The argument list of an immediate call follows the function.
				if s.Brackets[br].Kind != '(' || s.Typ(open-1) != js.CloseParenToken && s.Typ(open-1) != js.CloseBraceToken {
					continue
				}
				body := s.Tok(open - 1).Bracket
				if s.Typ(open-1) == js.CloseParenToken && s.Typ(open-2) == js.CloseBraceToken {
					body = s.Tok(open - 2).Bracket
				}
				if list := membersIn(s, s.Brackets[body].Open, s.Brackets[body].Close); len(list) > 0 {
					return list
				}
			}
		}
	}
	return nil
}

// numbersIn returns the properties of an object literal whose values are numbers.
func numbersIn(s *jstree.Script, o *jstree.Node) []model.EnumValue {
	var list []model.EnumValue
	for _, p := range o.Props {
		if no, ok := s.Integer(p.Value); ok && p.Name != "" && (p.Name[0] < '0' || p.Name[0] > '9') && p.Name[0] != '-' {
			list = append(list, model.EnumValue{Name: p.Name, Number: int32(no)})
		}
	}
	return list
}

// membersOf is membersIn for the body of a function.
func membersOf(s *jstree.Script, fn *jstree.Node) []model.EnumValue {
	switch {
	case fn.Kind != jstree.FuncNode:
		return nil
	case len(fn.Kids) > 0:
		return membersIn(s, fn.At, fn.End)
	}
	return membersIn(s, s.Brackets[fn.Body].Open, s.Brackets[fn.Body].Close)
}

// membersIn returns the members that are assigned numbers between two token indices: E[E.A = 0] = "A", or
// E["A"] = 0 for an object that maps both ways.
func membersIn(s *jstree.Script, from, to int32) []model.EnumValue {
	var list []model.EnumValue
	if !s.MayScanSpan(from, to) {
		return nil
	}
	r := jstree.Reader{Script: s}
	for i := from; i < to; i++ {
		if s.Typ(i) != js.OpenBracketToken {
			continue
		}
		n := r.Assign(i + 1)
		if n.Kind != jstree.AssignNode || n.Kids[0].Kind != jstree.MemberNode || n.End != s.EnclosingBracket(i).Close {
			continue
		}
		if no, ok := s.Integer(n.Kids[1]); ok {
			list = append(list, model.EnumValue{Name: n.Kids[0].Str, Number: int32(no)})
		}
	}
	return list
}

// tsService extracts a service of protobuf-ts from its construction. list are the methods.
func (x *scan) tsService(c construction, list []*jstree.Node) {
	s := x.Script
	full, ok := s.Str(c.name)
	if !ok {
		x.unresolved("", c.at, "a service has a name that is not a constant")
		return
	}
	svc := &model.Service{Def: x.def(full, model.FormPBTS, c.at, nil)}
	for _, n := range list {
		o := s.Object(n)
		name, ok := s.Str(o.Get("name"))
		if !ok || o.Get("I") == nil || o.Get("O") == nil {
			x.unresolved(full, n.At, "a method lacks a constant name, I or O")
			continue
		}
		m := &model.Method{Name: name, In: x.ref(o.Get("I")), Out: x.ref(o.Get("O"))}
		m.Client, m.Server = s.Boolean(o.Get("clientStreaming")), s.Boolean(o.Get("serverStreaming"))
		if level, ok := s.Str(o.Get("idempotency")); ok {
			m.Idempotency = descriptorpb.MethodOptions_IdempotencyLevel(descriptorpb.MethodOptions_IdempotencyLevel_value[level])
		}
		svc.Methods = append(svc.Methods, m)
	}
	x.Services = append(x.Services, svc)
}
