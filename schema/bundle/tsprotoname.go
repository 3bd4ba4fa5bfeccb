package bundle

import (
	"fmt"
	"hash/fnv"
	"strings"

	"unwire/schema/bundle/jstree"

	"unwire/schema/bundle/model"

	"unwire/schema/bundle/protoname"

	"github.com/tdewolff/parse/v2/js"
)

// An origin is the name under which a declaration is exported, with its protobuf package.
type origin struct {
	// name is the name under which the declaration is exported.
	name string
	// pkg is the protobuf package; "" if unknown.
	pkg string
}

// inventedName returns a name for a message whose name is lost. It depends on the fields only, so that it is
// the same in the next version of a bundle.
func (x *scan) inventedName(m *model.Message) string {
	var shape strings.Builder
	for _, f := range m.Fields {
		fmt.Fprintln(&shape, f.Number, f.Name, f.Scalar, f.Repeated)
	}
	name := placeholder("Message", shape.String())
	x.nameless[m.Full+name]++
	if n := x.nameless[m.Full+name]; n > 1 {
		return fmt.Sprintf("%s_%d", name, n)
	}
	return name
}

// placeholder returns an invented name for a definition of a kind such as "Message". shape describes the
// definition's content, and its hash is part of the name.
func placeholder(kind, shape string) string {
	h := fnv.New32a()
	h.Write([]byte(shape))
	return fmt.Sprintf("%s_%08x", kind, h.Sum32())
}

// origins returns the names under which declarations are exported, by the token of the declaration. The package
// is that of the constant protobufPackage exported together with it.
func (x *scan) origins() map[int32]origin {
	s := x.Script
	out := map[int32]origin{}
	var spaces []*jstree.Node
	for _, ns := range s.Spaces {
		spaces = append(spaces, s.Definition(ns.Object))
	}

	// A frozen object can be a namespace too.
	for _, at := range s.Anchors[jstree.AnchorFrozen] {
		if s.Typ(at+1) == js.ColonToken && s.Typ(at-1) == js.OpenBraceToken {
			spaces = append(spaces, s.Expr(at-1))
		}
	}

	for _, o := range spaces {
		pkg, _ := s.Str(s.Property(o, "protobufPackage"))
		for _, p := range o.Props {
			v := s.Property(o, p.Name)
			if v == nil || v.Kind != jstree.IdentNode {
				continue
			}
			if b, ok := s.Lookup(v.At, v.Str); ok {
				// The first name that has a package counts.
				if old := out[b.Tok]; old.pkg == "" {
					out[b.Tok] = origin{p.Name, pkg}
				}
			}
		}
	}

	// This is export { a as Foo }.
	for i := range s.Toks {
		if s.Typ(int32(i)) != js.ExportToken || s.Typ(int32(i)+1) != js.OpenBraceToken {
			continue
		}
		x.exportClause(s.EnclosingBracket(int32(i)+1), out)
	}
	return out
}

// exportClause adds the names in export { a as Foo, b as protobufPackage } to out. b is the bracket.
func (x *scan) exportClause(b jstree.Bracket, out map[int32]origin) {
	s, pkg := x.Script, ""
	var list []jstree.Binding
	names := map[int32]string{}
	for at := b.Open + 1; at < b.Close; at = s.Skip(at, b.Close) + 1 {
		name := s.Text(at)
		if s.Typ(at+1) == js.AsToken {
			name = s.Text(at + 2)
		}
		to, ok := s.Lookup(at, s.Text(at))
		if !ok {
			continue
		}
		if name == jstree.PackageWord && to.Kind == jstree.BindVar && to.Init >= 0 {
			pkg, _ = s.Str(s.Expr(to.Init))
		}
		list, names[to.Tok] = append(list, to), name
	}
	for _, to := range list {
		if out[to.Tok].name == "" {
			out[to.Tok] = origin{names[to.Tok], pkg}
		}
	}
}

// tsProtoName returns the full name of the ts-proto message that the object literal o represents. known is set
// if its package is known, and written if the script contains the full name literally.
func (x *scan) tsProtoName(o *jstree.Node, ids []int32, words []string, origins map[int32]origin) (full string, known, written bool) {
	s := x.Script
	word, pkg := x.exportedName(ids, words, origins)
	for _, name := range []string{"$type", "typeUrl"} {
		full, ok := s.Str(o.Get(name))
		if full = strings.TrimPrefix(full, "/"); !ok || !protoname.ValidFull(full) {
			continue
		}
		// The script writes Foo3_6 as Foo36.
		whole := strings.HasSuffix(protoname.Folded(full), protoname.Folded(word))
		// The full name lacks the enclosing message.
		if !whole && strings.HasSuffix(word, "_"+protoname.Base(full)) {
			return protoname.Join(protoname.Package(full), word), true, false
		}
		return full, true, true
	}
	if pkg == "" {
		pkg = x.packageBefore(o.At)
	}
	if !protoname.Valid(word) || len(word) <= 2 && s.Minified() {
		return protoname.Join(pkg, ""), false, false
	}
	return protoname.Join(pkg, word), pkg != "", false
}

// exportedName returns the name under which a value is exported (or else its name in the script), and the
// package next to the export. ids are the tokens that declare variables with the value, and words its names as
// a member.
func (x *scan) exportedName(ids []int32, words []string, origins map[int32]origin) (word, pkg string) {
	own := ""
	for _, id := range ids {
		if from := origins[id]; from.name != "" {
			word, pkg = from.name, from.pkg
		} else if own == "" && js.IsIdentifier(x.Typ(id)) {
			own = x.Text(id)
		}
	}
	for _, w := range words {
		// Very short names are those of a minifier.
		if word == "" || len(word) <= 2 {
			word = w
		}
	}
	if word == "" || len(word) <= 2 && len(own) > 2 {
		word = own
	}
	if bare, n, ok := strings.Cut(word, "$"); ok && strings.Trim(n, "0123456789") == "" && protoname.Valid(bare) {
		// Bundlers call the second Foo Foo$1.
		word = bare
	}
	return word, pkg
}

// packageBefore returns the value of the last constant protobufPackage before the token with index at. Bundlers
// concatenate modules, so it belongs to the same module.
func (x *scan) packageBefore(at int32) string {
	s, pkg := x.Script, ""
	for _, i := range s.Anchors[jstree.AnchorPackage] {
		if i > at {
			break
		}
		if s.Typ(i+1) == js.EqToken {
			if text, ok := s.Str(s.Expr(i + 2)); ok {
				pkg = text
			}
		}
	}
	return pkg
}
