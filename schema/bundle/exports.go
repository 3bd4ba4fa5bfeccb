package bundle

import (
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/tdewolff/parse/v2/js"

	"unwire/schema/bundle/lexer"
)

// An outlet is what a script exports under a name: a definition, the members of
// an enum, or what another module exports under a name.
type outlet struct {
	to     *def
	values []enumValue
	module string // path of a file
	loaded string // key of one of webpack's modules, in another script
	name   string // there
}

// outlets are what a script exports, by name. Modules of which all is exported
// again are listed under starred.
type outlets struct {
	named   map[string]outlet
	starred []string
	modules map[string]map[string]outlet // of webpack's, by key
}

// empty says whether nothing is exported.
func (o outlets) empty() bool { return len(o.named)+len(o.starred)+len(o.modules) == 0 }

// reexports says whether a script hands on what others export.
func (s *script) reexports() bool {
	for i := range s.toks {
		at := int32(i)
		if s.typ(int32(i)) != js.FromToken || s.typ(at+1) != js.StringToken {
			continue
		}
		if s.typ(at-1) == js.MulToken && s.typ(at-2) == js.ExportToken ||
			s.typ(at-1) == js.CloseBraceToken && s.typ(s.enclosingBracket(at-1).open-1) == js.ExportToken {
			return true
		}
	}
	return false
}

// gather collects what a script exports, before the script is let go. by are its
// definitions, by what stands for them.
func (x *scan) gather(by map[int32]*def) outlets {
	s := x.script
	out := outlets{named: map[string]outlet{}}
	enter := func(name string, n *node) {
		if _, there := out.named[name]; there || name == "" || n == nil {
			return
		}
		if o, ok := x.outletOf(n, by); ok {
			out.named[name] = o
		}
	}
	for i := range s.toks {
		if s.typ(int32(i)) != js.ExportToken || s.typ(int32(i)-1) == js.DotToken {
			continue
		}
		at := int32(i) + 1
		switch s.typ(at) {
		case js.OpenBraceToken:
			x.gatherClause(s.enclosingBracket(at), out.named, enter)
		case js.MulToken:
			if s.typ(at+1) == js.FromToken && s.typ(at+2) == js.StringToken {
				out.starred = append(out.starred, lexer.Unquote(s.text(at+2)))
			}
		case js.DefaultToken:
			enter("default", s.expr(at+1))
		case js.ClassToken, js.FunctionToken, js.VarToken, js.LetToken, js.ConstToken:
			if js.IsIdentifier(s.typ(at + 1)) {
				enter(s.text(at+1), &node{kind: nIdent, at: at + 1, end: at + 2, str: s.text(at + 1)})
			}
		}
	}
	if len(out.named) == 0 { // CommonJS
		table := s.exportTable(0)
		for _, name := range slices.Sorted(maps.Keys(table)) {
			enter(name, table[name])
		}
	}
	out.modules = x.gatherModules(by)
	return out
}

// gatherModules collects what webpack's modules export to other chunks, by the
// modules' keys: of those that hold a definition or that define exports.
func (x *scan) gatherModules(by map[int32]*def) map[string]map[string]outlet {
	s := x.script
	keys := map[int32]string{}
	for key, bodies := range s.moduleTable() {
		for _, body := range bodies {
			keys[body] = key
		}
	}
	out := map[string]map[string]outlet{}
	done := map[int32]bool{}
	within := func(tok int32) {
		for br, n := s.tok(tok).br, 0; br != 0 && n < maxNesting && !done[br]; br, n = s.brs[br].parent, n+1 {
			done[br] = true
			key, ok := keys[br]
			if !ok {
				continue
			}
			table := s.exportTable(br)
			for _, name := range slices.Sorted(maps.Keys(table)) {
				o, ok := x.outletOf(table[name], by)
				if !ok {
					continue
				}
				if out[key] == nil {
					out[key] = map[string]outlet{}
				}
				out[key][name] = o
			}
		}
	}
	for _, ns := range s.spaces {
		within(ns.name)
	}
	for _, tok := range slices.Sorted(maps.Keys(by)) {
		within(tok)
	}
	return out
}

// loads returns the key of webpack's module that is loaded for a member
// expression and that is in another script, and the member's name; or "".
func (x *scan) loads(n *node) (key, name string) {
	if n == nil || n.kind != nMember {
		return "", ""
	}
	call := x.value(n.kids[0])
	if call == nil || call.kind != nCall || len(call.kids) != 2 {
		return "", ""
	}
	switch arg := call.kids[1]; arg.kind {
	case nNumber:
		key = strconv.FormatFloat(arg.num, 'f', -1, 64)
	case nString:
		key = arg.str
	}
	if key == "" || call.kids[0].str == "require" {
		return "", ""
	}
	return key, n.str
}

// gatherClause enters the names of export { a as b } and of export { a as b }
// from "./c.js".
func (x *scan) gatherClause(b bracket, named map[string]outlet, enter func(string, *node)) {
	s, module := x.script, ""
	if s.typ(b.close+1) == js.FromToken && s.typ(b.close+2) == js.StringToken {
		module = lexer.Unquote(s.text(b.close + 2))
	}
	for at := b.open + 1; at < b.close; at = s.skip(at, b.close) + 1 {
		own := s.text(at)
		name := own
		if s.typ(at+1) == js.AsToken {
			name = s.text(at + 2)
		}
		if module == "" {
			enter(name, &node{kind: nIdent, at: at, end: at + 1, str: own})
		} else if _, there := named[name]; !there {
			named[name] = outlet{module: module, name: own}
		}
	}
}

// outletOf returns what an exported expression stands for, if that is of use to
// other scripts.
func (x *scan) outletOf(n *node, by map[int32]*def) (outlet, bool) {
	t := x.follow(n)
	ids := t.ids
	if t.end != nil {
		ids = append(ids, t.end.at)
	}
	for _, id := range ids {
		if d := by[id]; d != nil {
			return outlet{to: d}, true
		}
	}
	for _, v := range []*node{n, t.end} {
		if v == nil || v.kind != nIdent && v.kind != nMember {
			continue
		}
		word := v.str
		if b, ok := x.lookup(v.at, v.str); ok && v.kind == nIdent && b.kind == bindImport {
			word = x.text(b.arg)
		}
		if module, name := x.imported(v, word); module != "" {
			return outlet{module: module, name: name}, true
		}
		if key, name := x.loads(v); key != "" {
			return outlet{loaded: key, name: name}, true
		}
	}
	if x.forms[formPBTS] {
		if values := x.enumValues(n); len(values) > 0 {
			return outlet{values: values}, true
		}
	}
	return outlet{}, false
}

// followImport follows a name that a file imports from a module to what is exported
// there, over modules that export it again.
func (b *builder) followImport(r *ref) (outlet, bool) {
	hops := maxHops
	if r.loaded != "" {
		return b.followModule(r.place.File, r.loaded, r.local, &hops)
	}
	return b.followFile(r.place.File, r.module, r.local, &hops)
}

// followModule is followImport for a module of webpack's. Where several builds have
// one of its key, those in the same folder count.
func (b *builder) followModule(file, key, name string, hops *int) (outlet, bool) {
	if b.keyed == nil {
		b.keyed = map[string][]string{}
		for _, script := range slices.Sorted(maps.Keys(b.outlets)) {
			for key := range b.outlets[script].modules {
				b.keyed[key] = append(b.keyed[key], script)
			}
		}
	}
	var found []outlet
	for _, beside := range []bool{true, false} {
		for _, script := range b.keyed[key] {
			if (path.Dir(script) == path.Dir(file)) != beside {
				continue
			}
			o, ok := b.outlets[script].modules[key][name]
			if ok {
				o, ok = b.followOutlet(script, o, hops)
			}
			if ok && !slices.ContainsFunc(found, func(f outlet) bool { return f.to == o.to }) {
				found = append(found, o)
			}
		}
		if len(found) > 0 {
			break
		}
	}
	if len(found) != 1 {
		return outlet{}, false
	}
	return found[0], true
}

// followOutlet follows an outlet that another script's stands for.
func (b *builder) followOutlet(file string, o outlet, hops *int) (outlet, bool) {
	if *hops--; *hops < 0 {
		return outlet{}, false
	}
	switch {
	case o.module != "":
		return b.followFile(file, o.module, o.name, hops)
	case o.loaded != "":
		return b.followModule(file, o.loaded, o.name, hops)
	}
	return o, true
}

func (b *builder) followFile(file, module, name string, hops *int) (outlet, bool) {
	if *hops--; *hops < 0 || !strings.HasPrefix(module, ".") {
		return outlet{}, false
	}
	target, there := b.moduleFile(path.Join(path.Dir(file), module))
	if !there {
		return outlet{}, false
	}
	if o, ok := b.outlets[target].named[name]; ok {
		return b.followOutlet(target, o, hops)
	}
	for _, again := range b.outlets[target].starred {
		if o, ok := b.followFile(target, again, name, hops); ok {
			return o, true
		}
	}
	return outlet{}, false
}

// moduleFile returns the script that a module's path leads to.
func (b *builder) moduleFile(name string) (string, bool) {
	for _, ending := range []string{"", ".js", ".mjs", ".cjs", "/index.js", "/index.mjs", "/index.cjs"} {
		if _, ok := b.outlets[name+ending]; ok {
			return name + ending, true
		}
	}
	return "", false
}
