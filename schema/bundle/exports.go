package bundle

import (
	"maps"
	"slices"
	"strconv"

	"unwire/schema/bundle/jstree"

	"unwire/schema/bundle/model"

	"github.com/tdewolff/parse/v2/js"

	"unwire/schema/bundle/lexer"
)

// gather collects what a script exports, so that other scripts can refer to its definitions. by maps tokens to
// the definitions that they refer to.
func (x *scan) gather(by map[int32]*model.Def) model.Outlets {
	s := x.Script
	out := model.Outlets{Named: map[string]model.Outlet{}}
	enter := func(name string, n *jstree.Node) {
		if _, there := out.Named[name]; there || name == "" || n == nil {
			return
		}
		if o, ok := x.outletOf(n, by); ok {
			out.Named[name] = o
		}
	}
	for i := range s.Toks {
		if s.Typ(int32(i)) != js.ExportToken || s.Typ(int32(i)-1) == js.DotToken {
			continue
		}
		at := int32(i) + 1
		switch s.Typ(at) {
		// A clause in braces names several exports.
		case js.OpenBraceToken:
			x.gatherClause(s.EnclosingBracket(at), out.Named, enter)
		case js.MulToken:
			if s.Typ(at+1) == js.FromToken && s.Typ(at+2) == js.StringToken {
				out.Starred = append(out.Starred, lexer.Unquote(s.Text(at+2)))
			}
		case js.DefaultToken:
			enter("default", s.Expr(at+1))
		case js.ClassToken, js.FunctionToken, js.VarToken, js.LetToken, js.ConstToken:
			if js.IsIdentifier(s.Typ(at + 1)) {
				enter(s.Text(at+1), &jstree.Node{Kind: jstree.IdentNode, At: at + 1, End: at + 2, Str: s.Text(at + 1)})
			}
		}
	}

	// Without export statements, it may be a CommonJS module.
	if len(out.Named) == 0 {
		table := s.ExportTable(0)
		for _, name := range slices.Sorted(maps.Keys(table)) {
			enter(name, table[name])
		}
	}
	out.Modules = x.gatherModules(by)
	return out
}

// gatherModules collects the exports of webpack modules by module key and export name. It includes modules that
// contain a definition or define exports. by maps tokens to definitions.
func (x *scan) gatherModules(by map[int32]*model.Def) map[string]map[string]model.Outlet {
	s := x.Script
	keys := map[int32]string{}

	// The table maps keys to bodies; here the reverse is needed.
	for key, bodies := range s.ModuleTable() {
		for _, body := range bodies {
			keys[body] = key
		}
	}

	out := map[string]map[string]model.Outlet{}
	done := map[int32]bool{}
	within := func(tok int32) {
		// Climb to the module that contains the token.
		for br, n := s.Tok(tok).Bracket, 0; br != 0 && n < jstree.MaxNesting && !done[br]; br, n = s.Brackets[br].Parent, n+1 {
			done[br] = true
			key, ok := keys[br]
			if !ok {
				continue
			}
			table := s.ExportTable(br)
			for _, name := range slices.Sorted(maps.Keys(table)) {
				o, ok := x.outletOf(table[name], by)
				if !ok {
					continue
				}
				if out[key] == nil {
					out[key] = map[string]model.Outlet{}
				}
				out[key][name] = o
			}
		}
	}

	for _, ns := range s.Spaces {
		within(ns.Name)
	}
	for _, tok := range slices.Sorted(maps.Keys(by)) {
		within(tok)
	}
	return out
}

// loads returns, for a member expression such as n(123).Foo, the key of the webpack module that it loads from
// another script, and the name of the member. Both are "" for other expressions.
func (x *scan) loads(n *jstree.Node) (key, name string) {
	if n == nil || n.Kind != jstree.MemberNode {
		return "", ""
	}
	call := x.Value(n.Kids[0])
	if call == nil || call.Kind != jstree.CallNode || len(call.Kids) != 2 {
		return "", ""
	}
	switch arg := call.Kids[1]; arg.Kind {
	case jstree.NumberNode:
		key = strconv.FormatFloat(arg.Num, 'f', -1, 64)
	case jstree.StringNode:
		key = arg.Str
	}
	if key == "" || call.Kids[0].Str == "require" {
		return "", ""
	}
	return key, n.Str
}

// gatherClause adds the exports of the clause in bracket b, as in export { a as b } or export { a as b } from
// "./c.js". Re-exports are added to named, others are passed to enter.
func (x *scan) gatherClause(b jstree.Bracket, named map[string]model.Outlet, enter func(string, *jstree.Node)) {
	s, module := x.Script, ""
	if s.Typ(b.Close+1) == js.FromToken && s.Typ(b.Close+2) == js.StringToken {
		module = lexer.Unquote(s.Text(b.Close + 2))
	}
	for at := b.Open + 1; at < b.Close; at = s.Skip(at, b.Close) + 1 {
		own := s.Text(at)
		name := own
		if s.Typ(at+1) == js.AsToken {
			name = s.Text(at + 2)
		}
		if module == "" {
			enter(name, &jstree.Node{Kind: jstree.IdentNode, At: at, End: at + 1, Str: own})
		} else if _, there := named[name]; !there {
			named[name] = model.Outlet{Module: module, Name: own}
		}
	}
}

// outletOf returns the definition that an exported expression refers to. by maps tokens to definitions. ok is
// false if the export is of no use to other scripts.
func (x *scan) outletOf(n *jstree.Node, by map[int32]*model.Def) (model.Outlet, bool) {
	t := x.Follow(n)
	ids := t.IDs
	if t.End != nil {
		ids = append(ids, t.End.At)
	}

	// The expression can pass through several variables; any of them may be the known one.
	for _, id := range ids {
		if d := by[id]; d != nil {
			return model.Outlet{To: d}, true
		}
	}
	for _, v := range []*jstree.Node{n, t.End} {
		if v == nil || v.Kind != jstree.IdentNode && v.Kind != jstree.MemberNode {
			continue
		}
		word := v.Str
		if b, ok := x.Lookup(v.At, v.Str); ok && v.Kind == jstree.IdentNode && b.Kind == jstree.BindImport {
			word = x.Text(b.Arg)
		}
		if module, name := x.imported(v, word); module != "" {
			return model.Outlet{Module: module, Name: name}, true
		}
		if key, name := x.loads(v); key != "" {
			return model.Outlet{Loaded: key, Name: name}, true
		}
	}

	// The enums of protobuf-ts are plain objects that other scripts refer to.
	if x.forms[model.FormPBTS] {
		if values := enumValues(x.Script, n); len(values) > 0 {
			return model.Outlet{Values: values}, true
		}
	}
	return model.Outlet{}, false
}
