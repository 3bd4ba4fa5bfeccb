package bundle

import (
	"fmt"
	"strings"

	"unwire/schema/bundle/jstree"

	"github.com/tdewolff/parse/v2/js"

	"unwire/schema/bundle/model"
	"unwire/schema/bundle/protoname"
)

// tsSpaces are the TypeScript namespaces and enums in a script, in the form that compilers generate: (function
// (Item) { … })(Item = v1.Item || (v1.Item = {})). The names of the members survive minification.
type tsSpaces struct {
	// scan is the state of extracting definitions from the script that contains the namespaces.
	*scan
	// origins maps the tokens of declarations to the names under which they are exported.
	origins map[int32]origin
	// paths caches the full name of each namespace by the body of its function; "" for functions that are not
	// namespaces.
	paths map[int32]string
	// ids has the tokens that refer to each namespace (those that declare its variables and its parameter), by
	// the body of its function.
	ids map[int32][]int32
	// bodies are the function bodies of the namespaces in the order of the script.
	bodies []int32
	// parameters maps the token that declares a namespace's parameter to the body of the function.
	parameters map[int32]int32
	// members maps the tokens that refer to a value to the member of a namespace to which it is assigned.
	members map[int32]jstree.MemberKey
}

// tsSpaces finds all TypeScript namespaces of the script.
func (x *scan) tsSpaces() *tsSpaces {
	s := x.Script
	t := &tsSpaces{scan: x, origins: x.origins(), paths: map[int32]string{}, ids: map[int32][]int32{}, parameters: map[int32]int32{}}
	if !s.MayScanSpan(0, int32(len(s.Brackets))) {
		return t
	}
	for i := range s.Brackets {
		if body := int32(i); s.Brackets[i].Fn && body != 0 {
			t.path(body)
			if len(t.ids[body]) > 0 {
				t.bodies = append(t.bodies, body)
			}
		}
	}
	t.members = s.AssignedMembers(t.parameters)
	return t
}

// path returns the full name of the namespace whose function has the given body; "" if the function is not a
// namespace.
func (t *tsSpaces) path(body int32) string {
	if full, ok := t.paths[body]; ok {
		return full
	}
	// A namespace that leads to itself has no name.
	t.paths[body] = ""
	s := t.Script
	b, ok := s.Lookup(s.Brackets[body].Open+1, s.Param(body, 0))
	if !ok || b.Kind != jstree.BindParam || b.Scope != body {
		return ""
	}
	arg := s.Argument(b)
	target := spaceTarget(arg)
	if target == nil {
		return ""
	}
	t.parameters[b.Tok] = body
	t.ids[body] = []int32{b.Tok}
	// Both a and b stand for the namespace: b = a || (a = {})
	for _, n := range []*jstree.Node{arg, target} {
		if n.Kind == jstree.AssignNode {
			n = n.Kids[0]
		}
		t.ids[body] = append(t.ids[body], s.TargetOf(n)...)
	}
	t.paths[body] = t.pathOf(target)
	return t.paths[body]
}

// spaceTarget returns the variable to which a TypeScript namespace is assigned. arg is the argument of its
// function and has one of the forms a || (a = {}), a ||= {}, a || (exports.a = a = {}), b = a || {}; for others
// the result is nil.
func spaceTarget(arg *jstree.Node) *jstree.Node {
	for arg != nil && arg.Kind == jstree.AssignNode && arg.Op == js.EqToken {
		arg = jstree.Last(arg.Kids[1])
	}
	if arg == nil || len(arg.Kids) != 2 {
		return nil
	}
	target, value := arg.Kids[0], jstree.Last(arg.Kids[1])
	switch {
	case arg.Kind == jstree.AssignNode && (arg.Op == js.OrEqToken || arg.Op == js.NullishEqToken):
	case arg.Kind == jstree.BinaryNode && (arg.Op == js.OrToken || arg.Op == js.NullishToken):
		if value.Kind == jstree.AssignNode {
			target = value.Kids[0]
		}
		for value.Kind == jstree.AssignNode {
			value = jstree.Last(value.Kids[1])
		}
	default:
		return nil
	}
	if value.Kind != jstree.ObjectNode || len(value.Props) > 0 || target.Kind != jstree.IdentNode && target.Kind != jstree.MemberNode {
		return nil
	}
	return target
}

// pathOf returns the full name of the namespace or type that an expression such as v1.Item refers to, or "" if
// it is imported or unknown.
func (t *tsSpaces) pathOf(n *jstree.Node) string {
	s := t.Script
	switch {
	case n == nil:
		return ""
	case n.Kind == jstree.MemberNode:
		// exports.a is the namespace a of this script; a.b is in namespace a. A $ separates a map's entry.
		word := strings.ReplaceAll(n.Str, "$", "_")
		if s.IsExports(n.Kids[0]) {
			return word
		}
		return protoname.Join(t.pathOf(n.Kids[0]), word)
	case n.Kind != jstree.IdentNode:
		return ""
	}

	b, ok := s.Lookup(n.At, n.Str)
	switch {
	case !ok || b.Kind == jstree.BindImport:
		return ""
	case b.Kind == jstree.BindParam:
		return t.path(b.Scope)
	}
	// Inside a namespace, a name may stand for a member: let Inner; (function (Inner) …)(Inner = Item.Inner || …)
	for _, at := range s.Values(b) {
		if target := spaceTarget(s.Expr(at + 2)); target != nil && target.Kind == jstree.MemberNode {
			return t.pathOf(target)
		}
	}
	if key, ok := t.members[b.Tok]; ok && b.Kind == jstree.BindClass {
		return t.memberPath(key)
	}
	word, _ := t.exportedName([]int32{b.Tok}, nil, t.origins)
	if !protoname.Valid(word) || len(word) <= 2 && s.Minified() {
		return ""
	}
	return word
}

// memberPath returns the full protobuf name of a member of a TypeScript namespace.
func (t *tsSpaces) memberPath(key jstree.MemberKey) string {
	return protoname.Join(t.paths[t.parameters[key.Root]], key.Path[1:])
}

// enclosing returns the full name of the innermost namespace that contains the token with index at ("" if there
// is none, or its name is unknown), and the tokens that refer to that namespace.
func (t *tsSpaces) enclosing(at int32) (full string, ids []int32) {
	s := t.Script
	for body, n := s.Function(s.Tok(at).Bracket), 0; body != 0 && n < jstree.MaxNesting; body, n = s.Function(s.Brackets[body].Parent), n+1 {
		if ids := t.ids[body]; len(ids) > 0 {
			return t.path(body), ids
		}
	}
	return "", nil
}

// addEnum adds an enum. If full is invalid because minification removed the name, the enum gets an invented
// one.
func (t *tsSpaces) addEnum(full, form string, at int32, ids []int32, values []model.EnumValue) {
	e := &model.Enum{Def: t.def(full, form, at, ids), Values: values}
	if !protoname.ValidFull(full) {
		e.Full = placeholder("Enum", fmt.Sprint(values))
		t.unresolved(e.Full, at, "a minifier removed its name, so extract made one up")
	}
	t.Enums = append(t.Enums, e)
}

// typeRef returns a reference to the type that an expression such as v1.Item refers to.
func (t *tsSpaces) typeRef(n *jstree.Node) *model.Ref {
	r := t.ref(n)
	if full := t.pathOf(n); full != "" {
		r.Full = full
	}
	return r
}
