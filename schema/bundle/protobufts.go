package bundle

import (
	"github.com/tdewolff/parse/v2/js"
	"google.golang.org/protobuf/types/descriptorpb"
)

const formPBTS = "protobuf-ts"

// A construction is super("pkg.X", […]) or new Y("pkg.X", […]): what may be a
// type of protobuf-ts.
type construction struct {
	at         int32
	name, list *node
	ids        []int32
	base       int32 // what its class extends, or what is constructed
	word       string
}

// protobufTS reads what the plugin of protobuf-ts writes: classes that extend
// MessageType and hand it their name and fields, and services. The names of the
// base classes do not survive minifiers; their use does.
func (x *scan) protobufTS() {
	s := x.script
	var empty []construction
	bases := map[int32]anchorKind{}
	for _, c := range x.constructions() {
		list, ok := s.elements(c.list)
		if !ok {
			continue
		}
		if len(list) == 0 {
			empty = append(empty, c)
			continue
		}
		switch o := s.object(list[0]); {
		case o.get("no") != nil && o.get("kind") != nil && o.get("name") != nil:
			x.tsMessage(c, list)
			bases[c.base] = anchorMessageType
		case o.get("I") != nil && o.get("O") != nil && o.get("name") != nil:
			x.tsService(c, list)
			bases[c.base] = anchorNested
		}
	}
	for _, c := range empty {
		switch {
		case c.word == "MessageType" || bases[c.base] == anchorMessageType:
			x.tsMessage(c, nil)
		case c.word == "ServiceType" || bases[c.base] == anchorNested:
			x.tsService(c, nil)
		}
	}
}

// constructions are what may be types: at super, at new, and at what compilers
// make of super where classes have to become functions.
func (x *scan) constructions() []construction {
	s := x.script
	var all []construction
	for _, kind := range []anchorKind{anchorSuper, anchorNew} {
		for _, at := range s.anchors[kind] {
			if c, ok := x.construction(at); ok {
				all = append(all, c)
			}
		}
	}
	for i := range s.toks {
		if s.typ(int32(i)) == js.ThisToken && s.typ(int32(i)+1) == js.CommaToken && s.typ(int32(i)-1) == js.OpenParenToken {
			if c, ok := x.functionClass(int32(i)); ok {
				all = append(all, c)
			}
		}
	}
	return all
}

// functionClass reads super of a class that is a function, _super.call(this,
// "pkg.X", […]) as TypeScript writes it and callSuper(this, X, ["pkg.X", […]]) as
// Babel does, within Y = function (_super) { function X() {…} … return X }(Base).
func (x *scan) functionClass(at int32) (construction, bool) {
	s := x.script
	text := func(at int32) bool {
		return (s.typ(at) == js.StringToken || s.typ(at) == js.TemplateToken) && s.typ(at+1) == js.CommaToken
	}
	open := s.enclosingBracket(at)
	switch {
	case text(at+2) && s.is(open.open-1, "call"):
	case js.IsIdentifier(s.typ(at+2)) && s.typ(at+4) == js.OpenBracketToken && text(at+5):
		open = s.enclosingBracket(at + 4)
	default:
		return construction{}, false
	}
	first := open.open + 1
	if open.kind == '(' {
		first = at + 2
	}
	r := reader{script: s}
	args := r.list(first, open.close)
	own := s.function(s.tok(at).br)
	outer := s.function(s.brs[own].parent)
	if len(args) < 2 || args[1].kind != nArray || own == 0 || outer == 0 {
		return construction{}, false
	}
	inside, around := s.functionAt(own), s.functionAt(outer)
	ids := []int32{inside, inside + 1, around}
	for s.typ(around-1) == js.OpenParenToken && s.typ(around-2) != js.CloseParenToken && !js.IsIdentifier(s.typ(around-2)) {
		around--
	}
	names, _ := s.boundNames(around)
	c := construction{at: at, name: args[0], list: args[1], ids: append(ids, names...), base: -1}
	if b, ok := s.lookup(s.brs[outer].open+1, s.param(outer, 0)); ok && b.kind == bindParam && b.scope == outer {
		if base := s.argument(b); base != nil {
			c.base, c.word = s.endOf(base), base.str
		}
	}
	return c, true
}

// construction reads what is constructed at super or new, if its arguments are
// a string and an array.
func (x *scan) construction(at int32) (construction, bool) {
	s := x.script
	open := at + 1
	if s.typ(at) == js.NewToken {
		for open < at+8 && (js.IsIdentifier(s.typ(open)) || s.typ(open) == js.DotToken) {
			open++
		}
	}
	if t := s.typ(open + 1); s.typ(open) != js.OpenParenToken || t != js.StringToken && t != js.TemplateToken && !js.IsIdentifier(t) {
		return construction{}, false
	}
	r := reader{script: s}
	args := r.list(open+1, s.enclosingBracket(open).close)
	if len(args) < 2 || args[1].kind != nArray {
		return construction{}, false
	}
	c := construction{at: at, name: args[0], list: args[1]}
	if s.typ(at) == js.NewToken {
		callee := r.construct(at).kids[0]
		c.base, c.ids, c.word = s.endOf(callee), append(s.nameIDs(at), at), callee.str
		return c, true
	}
	for br := s.tok(at).br; br != 0 && s.step(at); br = s.brs[br].parent {
		class, ok := s.classes[br]
		if !ok {
			continue
		}
		c.ids = s.classIDs(class)
		if n := s.expr(class); n.kind == nClass && n.kids[0] != nil {
			c.base, c.word = s.endOf(n.kids[0]), n.kids[0].str
		}
		return c, true
	}
	return construction{}, false
}

// endOf tells what an expression stands for from other things, as far as it is known.
func (s *script) endOf(n *node) int32 {
	t := s.follow(n)
	if len(t.ids) > 0 {
		return t.ids[len(t.ids)-1]
	}
	if t.end != nil && t.end.kind == nMember {
		if base := s.follow(t.end.kids[0]); len(base.ids) > 0 {
			return base.ids[0]
		}
	}
	return -1
}

func (x *scan) tsMessage(c construction, list []*node) {
	s := x.script
	full, ok := s.str(c.name)
	if !ok {
		x.unresolved("", c.at, "a message whose name is no constant")
		return
	}
	m := &message{def: x.def(full, formPBTS, c.at, c.ids)}
	for _, n := range list {
		o := s.object(n)
		if o == nil {
			x.unresolved(full, n.at, "a field that is no constant object")
			continue
		}
		f := x.es1Field(full, o)
		if f == nil {
			continue
		}
		f.jsType = 0 // L is how the generator was called
		f.oneof = snake(f.oneof)
		f.implicit = !f.presence
		if repeat, ok := x.constant(o.get("repeat"), "NO", "PACKED", "UNPACKED"); ok && repeat > 0 {
			f.repeated = true
			packed := repeat == 1
			f.packed = &packed
		}
		x.tsEnumOf(f, o)
		m.fields = append(m.fields, f)
	}
	x.messages = append(x.messages, m)
}

// tsEnumOf reads the enum of a field: T: () => ["pkg.Enum", Enum, "PREFIX_"].
func (x *scan) tsEnumOf(f *field, o *node) {
	s := x.script
	if f.ref == nil || !f.ref.enum {
		return
	}
	t := o.get("T")
	if v := s.object(o.get("V")); v != nil {
		t = v.get("T")
	}
	list, ok := s.elements(t)
	if !ok || len(list) < 2 {
		return
	}
	full, ok := s.str(list[0])
	if !ok {
		return
	}
	f.ref.full = full
	if x.tsEnums[full] {
		return
	}
	x.tsEnums[full] = true
	prefix := ""
	if len(list) > 2 {
		prefix, _ = s.str(list[2])
	}
	e := &enum{def: x.def(full, formPBTS, list[1].at, nil)}
	e.values = s.enumValues(list[1])
	kept := e.values[:0]
	for _, v := range e.values {
		// made up for an enum without 0, as only proto2 has
		if v.name == "UNSPECIFIED$" {
			e.syntax = "proto2"
			continue
		}
		v.name = prefix + v.name
		kept = append(kept, v)
	}
	e.values = kept
	if len(e.values) == 0 && !isStandard(full) {
		e.from, e.prefix = x.ref(list[1]), prefix
	}
	x.enums = append(x.enums, e)
}

// enumValues returns the members of an enum of TypeScript as it is compiled, (function (E)
// { E[E["A"] = 0] = "A"; … })(E || (E = {})), or of an object of numbers.
func (s *script) enumValues(n *node) []enumValue {
	t := s.follow(n)
	if t.end != nil && t.end.kind == nObject && len(t.end.props) > 0 {
		return s.numbersIn(t.end)
	}
	for _, id := range t.ids {
		name := s.text(id)
		if !js.IsIdentifier(s.typ(id)) {
			continue
		}
		b, ok := s.lookup(id, name)
		if !ok || b.kind != bindVar {
			continue
		}
		places := s.values(b)
		if b.init >= 0 {
			places = append([]int32{b.init}, places...)
			if v := last(s.expr(b.init)); v.kind == nCall {
				if list := s.membersOf(last(v.kids[0])); len(list) > 0 {
					return list
				}
			}
		}
		for _, at := range places {
			for br := s.tok(at).br; br != 0 && s.step(at); br = s.brs[br].parent {
				open := s.brs[br].open
				if s.brs[br].kind != '(' || s.typ(open-1) != js.CloseParenToken && s.typ(open-1) != js.CloseBraceToken {
					continue
				}
				body := s.tok(open - 1).br
				if s.typ(open-1) == js.CloseParenToken && s.typ(open-2) == js.CloseBraceToken {
					body = s.tok(open - 2).br
				}
				if list := s.membersIn(s.brs[body].open, s.brs[body].close); len(list) > 0 {
					return list
				}
			}
		}
	}
	return nil
}

// numbersIn returns the members of an object that are numbers.
func (s *script) numbersIn(o *node) []enumValue {
	var list []enumValue
	for _, p := range o.props {
		if no, ok := s.integer(p.value); ok && p.name != "" && (p.name[0] < '0' || p.name[0] > '9') && p.name[0] != '-' {
			list = append(list, enumValue{p.name, int32(no)})
		}
	}
	return list
}

// membersOf is membersIn for a function.
func (s *script) membersOf(fn *node) []enumValue {
	switch {
	case fn.kind != nFunc:
		return nil
	case len(fn.kids) > 0:
		return s.membersIn(fn.at, fn.end)
	}
	return s.membersIn(s.brs[fn.body].open, s.brs[fn.body].close)
}

// membersIn returns the members that are given numbers in a function's body:
// E[E.A = 0] = "A", or E["A"] = 0 of an object that maps both ways.
func (s *script) membersIn(from, to int32) []enumValue {
	var list []enumValue
	if !s.mayScanSpan(from, to) {
		return nil
	}
	r := reader{script: s}
	for i := from; i < to; i++ {
		if s.typ(i) != js.OpenBracketToken {
			continue
		}
		n := r.assign(i + 1)
		if n.kind != nAssign || n.kids[0].kind != nMember || n.end != s.enclosingBracket(i).close {
			continue
		}
		if no, ok := s.integer(n.kids[1]); ok {
			list = append(list, enumValue{n.kids[0].str, int32(no)})
		}
	}
	return list
}

func (x *scan) tsService(c construction, list []*node) {
	s := x.script
	full, ok := s.str(c.name)
	if !ok {
		x.unresolved("", c.at, "a service whose name is no constant")
		return
	}
	svc := &service{def: x.def(full, formPBTS, c.at, nil)}
	for _, n := range list {
		o := s.object(n)
		name, ok := s.str(o.get("name"))
		if !ok || o.get("I") == nil || o.get("O") == nil {
			x.unresolved(full, n.at, "a method without a constant name, I or O")
			continue
		}
		m := &method{name: name, in: x.ref(o.get("I")), out: x.ref(o.get("O"))}
		m.client, m.server = s.boolean(o.get("clientStreaming")), s.boolean(o.get("serverStreaming"))
		if level, ok := s.str(o.get("idempotency")); ok {
			m.idempotency = descriptorpb.MethodOptions_IdempotencyLevel(descriptorpb.MethodOptions_IdempotencyLevel_value[level])
		}
		svc.methods = append(svc.methods, m)
	}
	x.services = append(x.services, svc)
}
