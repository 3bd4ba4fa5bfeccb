package bundle

import (
	"strings"

	"unwire/schema/bundle/jstree"

	"unwire/schema/bundle/model"

	"github.com/tdewolff/parse/v2/js"
	"google.golang.org/protobuf/types/descriptorpb"
)

// connectService extracts a service from the output of connect-es 1: {typeName: "pkg.Svc", methods: {x: {name,
// I, O, kind, idempotency}}}. at is the index of the token typeName.
func (x *scan) connectService(at int32) {
	s := x.Script
	b := s.EnclosingBracket(at)

	// typeName must be a key of an object literal.
	if s.Typ(at+1) != js.ColonToken || b.Kind != '{' || b.Fn {
		return
	}
	o := s.Expr(b.Open)
	if o.Kind != jstree.ObjectNode {
		return
	}

	methods := s.Object(o.Get("methods"))
	full, ok := s.Str(o.Get("typeName"))
	if methods == nil || !ok {
		return
	}
	svc := &model.Service{Def: x.def(full, model.FormConnect, at, nil)}
	for _, p := range methods.Props {
		m := s.Object(p.Value)
		if m == nil {
			x.unresolved(full, p.At, "a method is not a constant object")
			continue
		}
		name, ok := s.Str(m.Get("name"))
		if !ok || m.Get("I") == nil || m.Get("O") == nil {
			x.unresolved(full, p.At, "a method lacks a constant name, I or O")
			continue
		}
		md := &model.Method{Name: name, In: x.ref(m.Get("I")), Out: x.ref(m.Get("O"))}
		// The kind may be written as a number or as a member of an enum.
		kind, known := x.constant(m.Get("kind"), "Unary", "ServerStreaming", "ClientStreaming", "BiDiStreaming")
		if !known {
			x.unresolved(full+"."+name, p.At, "the streaming kind is not a constant; declared as unary")
		}
		md.Server = kind == 1 || kind == 3
		md.Client = kind == 2 || kind == 3
		if i := m.Get("idempotency"); i != nil {
			level, known := x.constant(i, "", "NoSideEffects", "Idempotent")
			if !known {
				x.unresolved(full+"."+name, p.At, "the idempotency is not a constant")
			}
			md.Idempotency = descriptorpb.MethodOptions_IdempotencyLevel(level)
		}
		svc.Methods = append(svc.Methods, md)
	}
	x.Services = append(x.Services, svc)
}

// constant returns the number of an enum member, which is written as a number or as Enum.Name. names are the
// names of the members, whose indices are the numbers. ok is false for anything else.
func (x *scan) constant(n *jstree.Node, names ...string) (int64, bool) {
	if v, ok := x.Script.Integer(n); ok {
		return v, v >= 0 && v < int64(len(names))
	}
	if n != nil && n.Kind == jstree.MemberNode {
		for i, name := range names {
			if name != "" && strings.EqualFold(n.Str, name) {
				return int64(i), true
			}
		}
	}
	return 0, false
}
