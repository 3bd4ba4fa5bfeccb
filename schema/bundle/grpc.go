package bundle

import (
	"strings"

	"unwire/schema/bundle/jstree"

	"unwire/schema/bundle/model"

	"unwire/schema/bundle/protoname"

	"github.com/tdewolff/parse/v2/js"
	"google.golang.org/protobuf/types/descriptorpb"
)

// grpcMethods extracts methods from service definitions for grpc-js, such as {path: "/pkg.Svc/Get",
// requestStream: false, …}, and for nice-grpc: {name: "Get", requestType: …, requestStream: false, …} inside
// the methods of {fullName: "…"}.
func (x *scan) grpcMethods() {
	s := x.Script
	for _, at := range s.Anchors[jstree.AnchorRequestStream] {
		own := s.EnclosingBracket(at)
		if s.Typ(at+1) != js.ColonToken || own.Kind != '{' || own.Fn {
			continue
		}
		o := s.Expr(own.Open)
		// Only method definitions have both words.
		if o.Kind != jstree.ObjectNode || o.Get("responseStream") == nil {
			continue
		}
		m := &model.Method{Client: s.Boolean(o.Get("requestStream")), Server: s.Boolean(o.Get("responseStream"))}

		// The path has the full name; otherwise the enclosing definition has the name of the service.
		full := ""
		if path, ok := s.Str(o.Get("path")); ok {
			var found bool
			full, m.Name, found = strings.Cut(strings.TrimPrefix(path, "/"), "/")
			if !found {
				continue
			}
		} else if m.Name, ok = s.Str(o.Get("name")); ok {
			full = x.enclosingDefinition(own.Parent)
		}
		if full == "" {
			continue
		}

		m.In, m.Out = x.payloadOf(o, "requestType", "requestDeserialize"), x.payloadOf(o, "responseType", "responseDeserialize")
		if m.In == nil || m.Out == nil {
			x.unresolved(full+"."+m.Name, at, "the request or response type of a method is not a constant")
			continue
		}
		if level, ok := s.Str(s.Object(o.Get("options")).Get("idempotencyLevel")); ok {
			m.Idempotency = descriptorpb.MethodOptions_IdempotencyLevel(descriptorpb.MethodOptions_IdempotencyLevel_value[level])
		}
		x.addMethod(full, model.FormGRPC, at, m)
	}
}

// enclosingDefinition returns the property fullName of the service definition around the bracket br, or "".
func (x *scan) enclosingDefinition(br int32) string {
	s := x.Script
	for n := 0; n < 2 && br != 0; n++ {
		if s.Brackets[br].Kind == '{' && !s.Brackets[br].Fn {
			if full, ok := s.Str(s.Expr(s.Brackets[br].Open).Get("fullName")); ok {
				return full
			}
		}
		br = s.Brackets[br].Parent
	}
	return ""
}

// payloadOf returns the message type of a method's request or response, or nil. o is the method's object
// literal, typ the property with the type, and read the property with a deserializing function that is used
// instead.
func (x *scan) payloadOf(o *jstree.Node, typ, read string) *model.Ref {
	s := x.Script
	if t := o.Get(typ); t != nil {
		r := x.ref(t)
		// The type is of another module: pkg_pb.Foo.
		if space := x.moduleSpace(t); space != "" && t.Kind == jstree.MemberNode {
			r.Full = protoname.Join(space, chain(t))
		}
		return r
	}
	fn := s.Value(orInvalid(o.Get(read)))
	r := s.Result(fn)
	if r == nil || r.Kind != jstree.CallNode {
		return nil
	}
	if callee := r.Kids[0]; callee.Kind == jstree.MemberNode {
		return x.ref(callee.Kids[0])
	}
	return nil
}

// orInvalid returns n; if n is nil, an invalid node.
func orInvalid(n *jstree.Node) *jstree.Node {
	if n == nil {
		return &jstree.Node{Kind: jstree.BadNode}
	}
	return n
}
