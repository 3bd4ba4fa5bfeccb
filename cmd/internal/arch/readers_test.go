package arch

import (
	"bufio"
	"go/ast"
	"go/token"
	"go/types"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// foreignTypes are the types of parameters by which bytes reach a function.
var foreignTypes = []string{
	"[]byte", "...[]byte", "[][]byte", "io.Reader", "io.ReaderAt", "io.ReadSeeker", "io.ReadCloser", "*bufio.Reader", "json.RawMessage", "net.Conn", "*os.File",
}

// A readerRow is a row of testdata/readers.txt.
type readerRow struct {
	name    string
	targets []string
	limits  []string

	// used is set when a function matches the row.
	used bool
}

// A readerTree has what the files of the tree declare, as package.Name.
type readerTree struct {
	// functions are all functions and methods, and takers those exported ones that take foreign bytes.
	functions, takers map[string]bool
	constants         map[string]bool
	// targets are the fuzz targets; the value is set for those with seeds in their code.
	targets map[string]bool
}

// TestReaders compares the list of readers of foreign bytes with the tree: each has a fuzz target with a kept corpus,
// and limits.
func TestReaders(t *testing.T) {
	t.Parallel()
	rows := readReaders(t)
	tree := readTree(t, "../../..")

	// Each function that takes foreign bytes has a row.
	for name := range tree.takers {
		if rowOf(rows, name) == nil {
			t.Errorf("%s takes foreign bytes and is not in testdata/readers.txt: add its fuzz target and its limits", name)
		}
	}
	for name := range tree.functions {
		if row := rowOf(rows, name); row != nil {
			row.used = true
		}
	}

	// Each row has a function, targets and limits.
	fuzzed := map[string]bool{}
	for _, row := range rows {
		pkg, _, _ := cutName(row.name)
		if !row.used {
			t.Errorf("testdata/readers.txt: %s is no function: remove the row", row.name)
		}
		if len(row.targets) > 0 && len(row.limits) == 0 {
			t.Errorf("testdata/readers.txt: %s has no limits", row.name)
		}
		for _, target := range row.targets {
			fuzzed[target] = true
			if _, ok := tree.targets[target]; !ok {
				t.Errorf("testdata/readers.txt: %s: there is no target %s", row.name, target)
			}
		}
		for _, limit := range row.limits {
			if !strings.Contains(limit, ".") {
				limit = pkg + "." + limit
			}
			if !tree.constants[limit] {
				t.Errorf("testdata/readers.txt: %s: there is no constant %s", row.name, limit)
			}
		}
	}

	// Each target has a reader, and a corpus: files, or seeds in its code.
	for target, seeded := range tree.targets {
		if !fuzzed[target] {
			t.Errorf("%s is not in testdata/readers.txt: name the reader that it covers", target)
		}
		pkg, name, _ := cutName(target)
		if files, err := os.ReadDir(filepath.Join("../../..", pkg, "testdata/fuzz", name)); !seeded && (err != nil || len(files) == 0) {
			t.Errorf("%s has neither a kept corpus nor seeds: run make fuzz-corpus", target)
		}
	}
}

// cutName parts package.Name.
func cutName(s string) (pkg, name string, ok bool) {
	slash := strings.LastIndexByte(s, '/') + 1
	dot := strings.IndexByte(s[slash:], '.')
	if dot < 0 {
		return s, "", false
	}
	return s[:slash+dot], s[slash+dot+1:], true
}

// readReaders reads testdata/readers.txt.
func readReaders(t *testing.T) []*readerRow {
	t.Helper()
	f, err := os.Open("testdata/readers.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var rows []*readerRow
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		line := lines.Text()
		if line == "" || line[0] == '#' {
			continue
		}
		columns := strings.Split(line, "\t")
		if len(columns) != 3 || columns[2] == "" {
			t.Fatalf("testdata/readers.txt: want three columns with tabs between them: %s", line)
		}
		row := &readerRow{name: columns[0]}
		if columns[1] != "-" {
			row.targets, row.limits = strings.Split(columns[1], ","), strings.Fields(columns[2])
		}
		if slices.ContainsFunc(rows, func(r *readerRow) bool { return r.name == row.name }) {
			t.Errorf("testdata/readers.txt: %s stands there twice", row.name)
		}
		rows = append(rows, row)
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return rows
}

// rowOf returns the row with the longest match, or nil.
func rowOf(rows []*readerRow, name string) *readerRow {
	var best *readerRow
	for _, row := range rows {
		prefix, any := strings.CutSuffix(row.name, "*")
		if (row.name == name || any && strings.HasPrefix(name, prefix)) && (best == nil || len(row.name) > len(best.name)) {
			best = row
		}
	}
	return best
}

// readTree reads the declarations of all files.
func readTree(t *testing.T, root string) *readerTree {
	t.Helper()
	tree := &readerTree{functions: map[string]bool{}, takers: map[string]bool{}, constants: map[string]bool{}, targets: map[string]bool{}}
	eachSource(t, root, func(pkg, path string, f *ast.File) { tree.addFile(pkg, f, strings.HasSuffix(path, "_test.go")) })
	return tree
}

// addFile adds the declarations of a file.
func (r *readerTree) addFile(pkg string, f *ast.File, test bool) {
	for _, decl := range f.Decls {
		switch d := decl.(type) {
		case *ast.FuncDecl:
			r.addFunction(pkg, d, test)
		case *ast.GenDecl:
			if d.Tok != token.CONST || test {
				continue
			}
			for _, spec := range d.Specs {
				for _, name := range spec.(*ast.ValueSpec).Names { //nolint:forcetypeassert // constants have values
					r.constants[pkg+"."+name.Name] = true
				}
			}
		}
	}
}

// addFunction adds a function or method.
func (r *readerTree) addFunction(pkg string, f *ast.FuncDecl, test bool) {
	name, exported := f.Name.Name, f.Name.IsExported()
	if test {
		if strings.HasPrefix(name, "Fuzz") && f.Recv == nil {
			r.targets[pkg+"."+name] = hasSeeds(f)
		}
		return
	}
	if f.Recv != nil {
		of := receiverTypeName(f.Recv.List[0].Type)
		name, exported = of+"."+name, exported && ast.IsExported(of)
	}
	r.functions[pkg+"."+name] = true
	if exported && slices.ContainsFunc(f.Type.Params.List, func(p *ast.Field) bool { return slices.Contains(foreignTypes, types.ExprString(p.Type)) }) {
		r.takers[pkg+"."+name] = true
	}
}

// hasSeeds reports whether a target calls f.Add.
func hasSeeds(f *ast.FuncDecl) (yes bool) {
	ast.Inspect(f.Body, func(n ast.Node) bool {
		if sel, ok := n.(*ast.SelectorExpr); ok && types.ExprString(sel) == f.Type.Params.List[0].Names[0].Name+".Add" {
			yes = true
		}
		return true
	})
	return yes
}

// receiverTypeName returns the name of a receiver's type.
func receiverTypeName(t ast.Expr) string {
	switch t := t.(type) {
	case *ast.StarExpr:
		return receiverTypeName(t.X)
	case *ast.IndexExpr:
		return receiverTypeName(t.X)
	case *ast.Ident:
		return t.Name
	}
	return ""
}
