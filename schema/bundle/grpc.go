package bundle

import (
	"strings"

	"github.com/tdewolff/parse/v2/js"
	"google.golang.org/protobuf/types/descriptorpb"
)

const formGRPC = "grpc"

// grpcMethods reads the methods of definitions for grpc-js and nice-grpc:
// {path: "/pkg.Svc/Get", requestStream: false, …} and {name: "Get",
// requestType: …, requestStream: false, …}, in the methods of {fullName: "…"}.
func (x *scan) grpcMethods() {
	s := x.script
	for _, at := range s.anchors[anchorRequestStream] {
		own := s.enclosingBracket(at)
		if s.typ(at+1) != js.ColonToken || own.kind != '{' || own.fn {
			continue
		}
		o := s.expr(own.open)
		if o.kind != nObject || o.get("responseStream") == nil {
			continue
		}
		m := &method{client: s.boolean(o.get("requestStream")), server: s.boolean(o.get("responseStream"))}
		full := ""
		if path, ok := s.str(o.get("path")); ok {
			var found bool
			full, m.name, found = strings.Cut(strings.TrimPrefix(path, "/"), "/")
			if !found {
				continue
			}
		} else if m.name, ok = s.str(o.get("name")); ok {
			full = x.enclosingDefinition(own.parent)
		}
		if full == "" {
			continue
		}
		m.in, m.out = x.payloadOf(o, "requestType", "requestDeserialize"), x.payloadOf(o, "responseType", "responseDeserialize")
		if m.in == nil || m.out == nil {
			x.unresolved(full+"."+m.name, at, "a method whose request or response is no constant")
			continue
		}
		if level, ok := s.str(s.object(o.get("options")).get("idempotencyLevel")); ok {
			m.idempotency = descriptorpb.MethodOptions_IdempotencyLevel(descriptorpb.MethodOptions_IdempotencyLevel_value[level])
		}
		x.addMethod(full, formGRPC, at, m)
	}
}

// enclosingDefinition returns the fullName of the definition whose methods are in
// a bracket.
func (x *scan) enclosingDefinition(br int32) string {
	s := x.script
	for n := 0; n < 2 && br != 0; n++ {
		if s.brs[br].kind == '{' && !s.brs[br].fn {
			if full, ok := s.str(s.expr(s.brs[br].open).get("fullName")); ok {
				return full
			}
		}
		br = s.brs[br].parent
	}
	return ""
}

// payloadOf returns the type of a method's request or response: as such, or as
// what it is deserialized by.
func (x *scan) payloadOf(o *node, typ, read string) *ref {
	s := x.script
	if t := o.get(typ); t != nil {
		r := x.ref(t)
		if space := x.moduleSpace(t); space != "" && t.kind == nMember { // pkg_pb.Foo
			r.full = dotted(space, chain(t))
		}
		return r
	}
	fn := s.value(orInvalid(o.get(read)))
	r := s.result(fn)
	if r == nil || r.kind != nCall {
		return nil
	}
	if callee := r.kids[0]; callee.kind == nMember {
		return x.ref(callee.kids[0])
	}
	return nil
}

func orInvalid(n *node) *node {
	if n == nil {
		return &node{kind: nBad}
	}
	return n
}
