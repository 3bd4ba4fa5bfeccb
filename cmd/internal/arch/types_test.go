package arch

import (
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/tools/go/packages"
)

// maxCycle is how many files of a package may depend on each other in a circle.
const maxCycle = 10

// measureTypes returns the largest cycle of files in each package, and how many
// exported names of each package no other package uses outside tests.
func measureTypes(t *testing.T) (cycles, unusedExports map[string]int) {
	t.Helper()
	list, err := packages.Load(&packages.Config{
		Mode: packages.NeedName | packages.NeedFiles | packages.NeedImports | packages.NeedTypes | packages.NeedTypesInfo | packages.NeedSyntax,
		Dir:  "../../..",
	}, "./...")
	if err != nil {
		t.Fatal(err)
	}
	if packages.PrintErrors(list) > 0 {
		t.Fatal("the tree has errors")
	}

	cycles, unusedExports = map[string]int{}, map[string]int{}
	used := namesUsedElsewhere(list)
	maps.Copy(used, helpersUsedByTests(t, "../../.."))
	maps.Copy(used, namesUsedByModules(t, "../../.."))
	for _, p := range list {
		name := strings.TrimPrefix(p.PkgPath, module)
		cycles[name] = largestCycle(fileDependencies(p))
		unusedExports[name] = countUnused(p, used)
	}
	return cycles, unusedExports
}

// A declared names a package-level object, a method or a field. Packages are loaded
// one by one, so objects of the same declaration differ, but their names do not.
type declared struct{ pkg, name string }

func declaredName(o types.Object) (declared, bool) {
	if o.Pkg() == nil {
		return declared{}, false
	}
	name := o.Name()
	if f, ok := o.(*types.Func); ok {
		if recv := f.Signature().Recv(); recv != nil {
			name = receiverName(recv.Type()) + "." + name
		}
	}
	return declared{o.Pkg().Path(), name}, true
}

func receiverName(t types.Type) string {
	if p, ok := t.(*types.Pointer); ok {
		t = p.Elem()
	}
	if n, ok := t.(*types.Named); ok {
		return n.Obj().Name()
	}
	return ""
}

// namesUsedElsewhere returns what packages other than its own name, and the types
// of which they have values: a result's type need not be named to be used.
func namesUsedElsewhere(list []*packages.Package) map[declared]bool {
	used := map[declared]bool{}
	for _, p := range list {
		for _, o := range p.TypesInfo.Uses {
			if f, ok := o.(*types.Func); ok {
				o = f.Origin()
			}
			if name, ok := declaredName(o); ok && name.pkg != p.PkgPath {
				used[name] = true
			}
		}
		for _, value := range p.TypesInfo.Types {
			if name, ok := typeName(value.Type); ok && name.pkg != p.PkgPath {
				used[name] = true
			}
		}
	}
	return used
}

// typeName returns the name of a type, or of what it points to.
func typeName(typ types.Type) (declared, bool) {
	if p, ok := typ.(*types.Pointer); ok {
		typ = p.Elem()
	}
	if n, ok := typ.(*types.Named); ok {
		return declaredName(n.Obj())
	}
	return declared{}, false
}

// eachSource calls do with every Go file below root, except in folders named testdata and node_modules. pkg is the path of its folder below
// root, with slashes.
func eachSource(t *testing.T, root string, do func(pkg, path string, f *ast.File)) {
	t.Helper()
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if slices.Contains([]string{"testdata", "node_modules", ".git"}, d.Name()) {
				return filepath.SkipDir
			}
			return nil
		}
		if filepath.Ext(path) != ".go" {
			return nil
		}
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		pkg, err := filepath.Rel(root, filepath.Dir(path))
		if err != nil {
			return err
		}
		do(filepath.ToSlash(pkg), path, f)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// helpersUsedByTests returns the names that test files use of packages that are
// written for tests: those that import testing themselves.
func helpersUsedByTests(t *testing.T, root string) map[declared]bool {
	t.Helper()
	helpers, used := map[string]bool{}, map[declared]bool{}
	production, tests := map[string]bool{}, map[string][]*ast.File{}
	eachSource(t, root, func(pkg, path string, f *ast.File) {
		if strings.HasSuffix(path, "_test.go") {
			tests[pkg] = append(tests[pkg], f)
			return
		}
		production[pkg] = true
		if importsTesting(f) {
			helpers[module+pkg] = true
		}
	})
	for dir, files := range tests {
		for _, f := range files {
			addUsedNames(used, f, func(path string) bool { return helpers[path] || !production[dir] })
		}
	}
	return used
}

// otherModules are the folders of Go modules of their own, which ./... does not reach.
var otherModules = []string{"schema/pipeline"}

// namesUsedByModules returns the names of this module that the other modules use.
func namesUsedByModules(t *testing.T, root string) map[declared]bool {
	t.Helper()
	used := map[declared]bool{}
	for _, dir := range otherModules {
		eachSource(t, filepath.Join(root, dir), func(_, path string, f *ast.File) {
			if !strings.HasSuffix(path, "_test.go") {
				addUsedNames(used, f, func(path string) bool { return strings.HasPrefix(path, module) })
			}
		})
	}
	return used
}

func importsTesting(f *ast.File) bool {
	return slices.ContainsFunc(f.Imports, func(s *ast.ImportSpec) bool { return s.Path.Value == `"testing"` })
}

// addUsedNames adds the names that a file uses of the packages that count, which it
// imports under their own names.
func addUsedNames(used map[declared]bool, f *ast.File, counts func(path string) bool) {
	imported := map[string]string{}
	for _, s := range f.Imports {
		path, _ := strconv.Unquote(s.Path.Value)
		if s.Name == nil && counts(path) {
			imported[filepath.Base(path)] = path
		}
	}
	ast.Inspect(f, func(n ast.Node) bool {
		if sel, ok := n.(*ast.SelectorExpr); ok {
			if x, ok := sel.X.(*ast.Ident); ok && imported[x.Name] != "" {
				used[declared{imported[x.Name], sel.Sel.Name}] = true
			}
		}
		return true
	})
}

// countUnused counts the exported functions, types, variables and constants of a
// package that no other package uses. Methods are left out: an interface may need
// them.
func countUnused(p *packages.Package, used map[declared]bool) int {
	n := 0
	scope := p.Types.Scope()
	for _, name := range scope.Names() {
		if o := scope.Lookup(name); o.Exported() && !used[declared{p.PkgPath, name}] {
			n++
		}
	}
	return n
}

// fileDependencies are the files whose declarations each file of a package uses.
func fileDependencies(p *packages.Package) map[string]map[string]bool {
	depends := map[string]map[string]bool{}
	for id, o := range p.TypesInfo.Uses {
		if o.Pkg() != p.Types || !belongsToPackage(p, o) {
			continue
		}
		from, to := filepath.Base(p.Fset.Position(id.Pos()).Filename), filepath.Base(p.Fset.Position(o.Pos()).Filename)
		if from == to {
			continue
		}
		if depends[from] == nil {
			depends[from] = map[string]bool{}
		}
		depends[from][to] = true
	}
	return depends
}

// belongsToPackage reports whether o is declared at package level, or is a method
// or a field.
func belongsToPackage(p *packages.Package, o types.Object) bool {
	switch o := o.(type) {
	case *types.Func:
		return true
	case *types.Var:
		return o.IsField() || o.Parent() == p.Types.Scope()
	}
	return o.Parent() == p.Types.Scope()
}

// largestCycle is the size of the largest strongly connected component of a graph,
// found with Tarjan's algorithm; it is 1 without cycles.
func largestCycle(edges map[string]map[string]bool) int {
	var (
		index, low = map[string]int{}, map[string]int{}
		onStack    = map[string]bool{}
		stack      []string
		largest    = 1
		visit      func(string)
	)
	visit = func(v string) {
		index[v] = len(index) + 1
		low[v] = index[v]
		stack = append(stack, v)
		onStack[v] = true
		for w := range edges[v] {
			if index[w] == 0 {
				visit(w)
				low[v] = min(low[v], low[w])
			} else if onStack[w] {
				low[v] = min(low[v], index[w])
			}
		}
		if low[v] != index[v] {
			return
		}

		// v is the root of a component: all above it on the stack belongs to it.
		size := 0
		for {
			w := stack[len(stack)-1]
			stack = stack[:len(stack)-1]
			onStack[w] = false
			size++
			if w == v {
				break
			}
		}
		largest = max(largest, size)
	}
	for v := range edges {
		if index[v] == 0 {
			visit(v)
		}
	}
	return largest
}

func TestLargestCycle(t *testing.T) {
	to := func(names ...string) map[string]bool {
		set := map[string]bool{}
		for _, n := range names {
			set[n] = true
		}
		return set
	}
	for _, c := range []struct {
		want  int
		edges map[string]map[string]bool
	}{
		{1, map[string]map[string]bool{"a": to("b"), "b": to("c")}},
		{2, map[string]map[string]bool{"a": to("b"), "b": to("a", "c"), "c": to("d")}},
		{4, map[string]map[string]bool{"a": to("b"), "b": to("c"), "c": to("a", "d"), "d": to("b", "e"), "e": to("f"), "f": to("e")}},
	} {
		if got := largestCycle(c.edges); got != c.want {
			t.Errorf("%v: %d, want %d", c.edges, got, c.want)
		}
	}
}
