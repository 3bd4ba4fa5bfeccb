package bundle

import (
	"strings"

	"github.com/tdewolff/parse/v2/js"
	"google.golang.org/protobuf/types/descriptorpb"
)

// connectService reads the service of connect-es 1 whose typeName is at a
// token: {typeName: "pkg.Svc", methods: {x: {name, I, O, kind, idempotency}}}.
func (x *scan) connectService(at int32) {
	s := x.script
	b := s.enclosingBracket(at)
	if s.typ(at+1) != js.ColonToken || b.kind != '{' || b.fn {
		return
	}
	o := s.expr(b.open)
	if o.kind != nObject {
		return
	}
	methods := s.object(o.get("methods"))
	full, ok := s.str(o.get("typeName"))
	if methods == nil || !ok {
		return
	}
	svc := &service{def: x.def(full, formConnect, at, nil)}
	for _, p := range methods.props {
		m := s.object(p.value)
		if m == nil {
			x.unresolved(full, p.at, "a method that is no constant object")
			continue
		}
		name, ok := s.str(m.get("name"))
		if !ok || m.get("I") == nil || m.get("O") == nil {
			x.unresolved(full, p.at, "a method without a constant name, I or O")
			continue
		}
		md := &method{name: name, in: x.ref(m.get("I")), out: x.ref(m.get("O"))}
		kind, known := x.constant(m.get("kind"), "Unary", "ServerStreaming", "ClientStreaming", "BiDiStreaming")
		if !known {
			x.unresolved(full+"."+name, p.at, "its streaming kind is no constant; it is declared as unary")
		}
		md.server = kind == 1 || kind == 3
		md.client = kind == 2 || kind == 3
		if i := m.get("idempotency"); i != nil {
			level, known := x.constant(i, "", "NoSideEffects", "Idempotent")
			if !known {
				x.unresolved(full+"."+name, p.at, "its idempotency is no constant")
			}
			md.idempotency = descriptorpb.MethodOptions_IdempotencyLevel(level)
		}
		svc.methods = append(svc.methods, md)
	}
	x.services = append(x.services, svc)
}

// constant returns the number of an enum's member, which may be written as the
// number or as Enum.Name.
func (x *scan) constant(n *node, names ...string) (int64, bool) {
	if v, ok := x.script.integer(n); ok {
		return v, v >= 0 && v < int64(len(names))
	}
	if n != nil && n.kind == nMember {
		for i, name := range names {
			if name != "" && strings.EqualFold(n.str, name) {
				return int64(i), true
			}
		}
	}
	return 0, false
}
