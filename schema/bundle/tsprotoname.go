package bundle

import (
	"bytes"
	"fmt"
	"hash/fnv"
	"strings"

	"github.com/tdewolff/parse/v2/js"
)

// An origin is where a name of a script comes from.
type origin struct {
	name string // as it is exported
	pkg  string
}

// inventedName is a name for a message that has none, by its fields, so that it is
// the same in the next version of a bundle.
func (x *scan) inventedName(m *message) string {
	var shape strings.Builder
	for _, f := range m.fields {
		fmt.Fprintln(&shape, f.no, f.name, f.scalar, f.repeated)
	}
	name := placeholder("Message", shape.String())
	x.nameless[m.full+name]++
	if n := x.nameless[m.full+name]; n > 1 {
		return fmt.Sprintf("%s_%d", name, n)
	}
	return name
}

// placeholder is a name made of a hash of what has none.
func placeholder(kind, shape string) string {
	h := fnv.New32a()
	h.Write([]byte(shape))
	return fmt.Sprintf("%s_%08x", kind, h.Sum32())
}

// boundNames are the names that the value at a token is given: bindings of names,
// and the words of members, exports.Foo = Foo = {…}.
func (s *script) boundNames(at int32) (ids []int32, words []string) {
	for at--; s.typ(at) == js.EqToken && js.IsIdentifierName(s.typ(at-1)); at-- {
		if s.typ(at-2) == js.DotToken {
			words = append(words, s.text(at-1))
		} else if b, ok := s.lookup(at-1, s.text(at-1)); ok {
			ids = append(ids, b.tok)
		}
		at = s.startOf(at - 1)
	}
	return ids, words
}

// origins finds the names under which the bindings of a script are exported,
// and the package of each by the protobufPackage beside it.
func (x *scan) origins() map[int32]origin {
	s := x.script
	out := map[int32]origin{}
	var spaces []*node
	for _, ns := range s.spaces {
		spaces = append(spaces, s.definition(ns.object))
	}
	for _, at := range s.anchors[anchorFrozen] {
		if s.typ(at+1) == js.ColonToken && s.typ(at-1) == js.OpenBraceToken {
			spaces = append(spaces, s.expr(at-1))
		}
	}
	for _, o := range spaces {
		pkg, _ := s.str(s.property(o, "protobufPackage"))
		for _, p := range o.props {
			v := s.property(o, p.name)
			if v == nil || v.kind != nIdent {
				continue
			}
			if b, ok := s.lookup(v.at, v.str); ok {
				if old := out[b.tok]; old.pkg == "" {
					out[b.tok] = origin{p.name, pkg}
				}
			}
		}
	}
	for i := range s.toks { // export { a as Foo }
		if s.typ(int32(i)) != js.ExportToken || s.typ(int32(i)+1) != js.OpenBraceToken {
			continue
		}
		x.exportClause(s.enclosingBracket(int32(i)+1), out)
	}
	return out
}

// exportClause enters the names of export { a as Foo, b as protobufPackage }.
func (x *scan) exportClause(b bracket, out map[int32]origin) {
	s, pkg := x.script, ""
	var list []binding
	names := map[int32]string{}
	for at := b.open + 1; at < b.close; at = s.skip(at, b.close) + 1 {
		name := s.text(at)
		if s.typ(at+1) == js.AsToken {
			name = s.text(at + 2)
		}
		to, ok := s.lookup(at, s.text(at))
		if !ok {
			continue
		}
		if name == packageWord && to.kind == bindVar && to.init >= 0 {
			pkg, _ = s.str(s.expr(to.init))
		}
		list, names[to.tok] = append(list, to), name
	}
	for _, to := range list {
		if out[to.tok].name == "" {
			out[to.tok] = origin{names[to.tok], pkg}
		}
	}
}

// tsProtoName returns the full name of the message that an object stands for,
// whether that is known, and whether it is written out.
func (x *scan) tsProtoName(o *node, ids []int32, words []string, origins map[int32]origin) (full string, known, written bool) {
	s := x.script
	word, pkg := x.exportedName(ids, words, origins)
	for _, name := range []string{"$type", "typeUrl"} {
		full, ok := s.str(o.get(name))
		if full = strings.TrimPrefix(full, "/"); !ok || !validFull(full) {
			continue
		}
		// Foo3_6 is Foo36 in the script
		whole := strings.HasSuffix(folded(full), folded(word))
		// without what it is nested in
		if !whole && strings.HasSuffix(word, "_"+baseOf(full)) {
			return dotted(packageOf(full), word), true, false
		}
		return full, true, true
	}
	if pkg == "" {
		pkg = x.packageBefore(o.at)
	}
	if !validName(word) || len(word) <= 2 && s.minified() {
		return dotted(pkg, ""), false, false
	}
	return dotted(pkg, word), pkg != "", false
}

// folded is a name without what codegens change of it.
func folded(name string) string {
	return strings.ToLower(strings.NewReplacer(".", "", "_", "").Replace(name))
}

// minified says whether a script's lines are longer than a person's.
func (s *script) minified() bool {
	const longLine = 300 // bytes, on average
	return bytes.Count(s.src, []byte("\n")) < len(s.src)/longLine
}

// exportedName returns the name by which a value is exported, or else what it is
// called in its script, and the package beside it.
func (x *scan) exportedName(ids []int32, words []string, origins map[int32]origin) (word, pkg string) {
	own := ""
	for _, id := range ids {
		if from := origins[id]; from.name != "" {
			word, pkg = from.name, from.pkg
		} else if own == "" && js.IsIdentifier(x.typ(id)) {
			own = x.text(id)
		}
	}
	for _, w := range words {
		if word == "" || len(word) <= 2 {
			word = w
		}
	}
	if word == "" || len(word) <= 2 && len(own) > 2 {
		word = own
	}
	if bare, n, ok := strings.Cut(word, "$"); ok && strings.Trim(n, "0123456789") == "" && validName(bare) {
		word = bare // Foo$1, as bundlers call the second Foo
	}
	return word, pkg
}

// packageBefore returns the package of the last protobufPackage before a token:
// bundlers put modules one after the other.
func (x *scan) packageBefore(at int32) string {
	s, pkg := x.script, ""
	for _, i := range s.anchors[anchorPackage] {
		if i > at {
			break
		}
		if s.typ(i+1) == js.EqToken {
			if text, ok := s.str(s.expr(i + 2)); ok {
				pkg = text
			}
		}
	}
	return pkg
}

// nestedName writes pkg.Outer_Inner as pkg.Outer.Inner where Outer is known.
func nestedName(full string, names map[string]bool) string {
	out := full
	for i := len(packageOf(full)) + 1; i < len(full); i++ {
		if full[i] == '_' && names[full[:i]] {
			out = out[:i] + "." + out[i+1:]
		}
	}
	return out
}

// packageInName returns the package in which a word of a script is a full name: pkg for
// pkg.Foo3_6.Bar and Foo36_Bar.
func packageInName(full, word string) (pkg string, ok bool) {
	for at := len(full); at > 0 && len(word) > 0; {
		at = strings.LastIndexByte(full[:at], '.')
		if folded(full[at+1:]) == folded(word) {
			return full[:max(at, 0)], !strings.HasSuffix(full, word)
		}
	}
	return "", false
}

// unflatten writes pkg.Foo36_Bar as pkg.Foo3_6.Bar where pkg.Foo36 stands for
// pkg.Foo3_6.
func unflatten(full string, words map[string]string) string {
	for at := strings.LastIndexByte(full, '_'); at > 0; at = strings.LastIndexByte(full[:at], '_') {
		if outer := words[full[:at]]; outer != "" {
			return outer + "." + full[at+1:]
		}
	}
	return full
}
