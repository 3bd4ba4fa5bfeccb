package arch

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/scanner"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// The limits on sizes. Test files do not count. Only lines of code count, so that the limits
// never discourage comments and empty lines.
const (
	maxFiles      = 25   // in a package
	maxLines      = 4000 // in a package
	maxFileLines  = 500
	maxFuncLines  = 60
	maxComplexity = 20 // decisions in a function, plus one
	maxColumns    = 80 // of a line that ends in a comment
)

// sizes has the measurements that need no type information, by package, file or function.
type sizes struct {
	files, lines    map[string]int
	fileLines       map[string]int
	funcLines       map[string]int
	complexity      map[string]int
	trailingComment map[string]int
}

// mayExceed are the packages that may exceed a limit, up to the numbers in the ratchet,
// until they are rebuilt: each is one algorithm over shared state.
var mayExceed = []string{"decode/kind", "decode/text", "decode/transcript", "schema/bundle", "schema/bundle/jstree"}

// TestLimits measures packages, files and functions.
func TestLimits(t *testing.T) {
	s := measureTree(t, "../../..")
	r := readRatchet(t)
	r.checkExceptions(t)
	r.check(t, "package-files", maxFiles, s.files)
	r.check(t, "package-lines", maxLines, s.lines)
	r.check(t, "file-lines", maxFileLines, s.fileLines)
	r.check(t, "function-lines", maxFuncLines, s.funcLines)
	r.check(t, "complexity", maxComplexity, s.complexity)
	r.check(t, "long-trailing-comments", 0, s.trailingComment)
	cycles, exports := measureTypes(t)
	r.check(t, "file-cycle", maxCycle, cycles)
	r.check(t, "unused-exports", 0, exports)
	r.write(t)
}

func measureTree(t *testing.T, root string) *sizes {
	t.Helper()
	s := &sizes{
		files: map[string]int{}, lines: map[string]int{}, fileLines: map[string]int{},
		funcLines: map[string]int{}, complexity: map[string]int{}, trailingComment: map[string]int{},
	}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && slices.Contains([]string{"testdata", "node_modules", ".git"}, d.Name()):
			return filepath.SkipDir
		case d.IsDir() || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		name, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		s.measureFile(t, filepath.ToSlash(name), data)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *sizes) measureFile(t *testing.T, name string, data []byte) {
	t.Helper()
	set := token.NewFileSet()
	f, err := parser.ParseFile(set, name, data, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	pkg, code := filepath.Dir(name), codeLines(set, data)
	s.files[pkg]++
	s.lines[pkg] += countLines(code, 1, len(code)-1)
	s.fileLines[name] = countLines(code, 1, len(code)-1)
	s.trailingComment[pkg] += longTrailingComments(set, f, data)
	for _, d := range f.Decls {
		fn, ok := d.(*ast.FuncDecl)
		if !ok || fn.Body == nil {
			continue
		}
		of := name + ":" + functionName(fn)
		s.funcLines[of] = countLines(code, set.Position(fn.Pos()).Line, set.Position(fn.End()).Line)
		s.complexity[of] = complexity(fn.Body)
	}
}

// codeLines reports, by line number, which lines have code: all but empty lines and
// lines with nothing but a comment.
func codeLines(set *token.FileSet, data []byte) []bool {
	file := set.AddFile("", -1, len(data))
	var sc scanner.Scanner
	sc.Init(file, data, nil, 0)

	code := make([]bool, bytes.Count(data, []byte("\n"))+2)
	for {
		pos, tok, text := sc.Scan()
		switch {
		case tok == token.EOF:
			return code
		case tok == token.SEMICOLON && text == "\n":
			continue // the scanner inserts it at the end of a line
		}
		// A raw string may have several lines.
		first := file.Line(pos)
		for i := range strings.Count(text, "\n") + 1 {
			code[first+i] = true
		}
	}
}

// countLines counts the lines of code from first to last.
func countLines(code []bool, first, last int) (n int) {
	for _, isCode := range code[first : last+1] {
		if isCode {
			n++
		}
	}
	return n
}

// functionName is the name of a function, with its receiver's type if it has one.
func functionName(fn *ast.FuncDecl) string {
	if fn.Recv == nil {
		return fn.Name.Name
	}
	typ := fn.Recv.List[0].Type
	for {
		switch x := typ.(type) {
		case *ast.StarExpr:
			typ = x.X
		case *ast.IndexExpr:
			typ = x.X
		case *ast.IndexListExpr:
			typ = x.X
		case *ast.Ident:
			return x.Name + "." + fn.Name.Name
		default:
			return fn.Name.Name
		}
	}
}

// complexity is McCabe's cyclomatic complexity: the branches and one more.
func complexity(n ast.Node) int {
	c := 1
	ast.Inspect(n, func(n ast.Node) bool {
		switch x := n.(type) {
		case *ast.IfStmt, *ast.ForStmt, *ast.RangeStmt, *ast.CaseClause, *ast.CommClause:
			c++
		case *ast.BinaryExpr:
			if x.Op == token.LAND || x.Op == token.LOR {
				c++
			}
		}
		return true
	})
	return c
}

// longTrailingComments counts comments behind code on lines longer than maxColumns.
func longTrailingComments(set *token.FileSet, f *ast.File, data []byte) int {
	n := 0
	lines := bytes.Split(data, []byte("\n"))
	for _, group := range f.Comments {
		for _, c := range group.List {
			p := set.Position(c.Pos())
			line := lines[p.Line-1]
			code := bytes.TrimSpace(line[:p.Column-1])
			if len(code) > 0 && utf8.RuneCount(line) > maxColumns {
				n++
			}
		}
	}
	return n
}
