package arch

import (
	"bufio"
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// contractPackage has types whose members the JSON reference documents: a test of that package requires a
// meaning for each.
const contractPackage = "cmd/internal/contract"

// leastComments is the share of the lines inside functions that must be comments, in per mille.
const leastComments = 28

// banned are phrases that readers had to read twice, with what to write instead. They are
// looked for in comments, in the strings of programs (help, errors, output) and in documents.
var banned = []struct {
	phrase  *regexp.Regexp
	instead string
}{
	{phrase(`(that|which|it) is none`), "is not one; there is none"},
	{phrase(`, of whose`), "whose"},
	{phrase(`in the making`), "name the thing under construction"},
	{phrase(`hushed|musing|an asking`), "the term of the field"},
	{phrase(`told (by|apart)`), "recognised by, distinguished"},
	{phrase(`(is|are|was|were|be|been) told`), "reported; name who tells whom"},
	{phrase(`tells? (itself|themselves|apart)`), "identifies itself, distinguishes"},
	{phrase(`(says?|said|tells?) (of|itself)`), "says about, reports"},
	{phrase(`goes by (its|the)`), "is identified by"},
	{phrase(`has no room`), "does not fit; is full"},
	{phrase(`held for an?`), "is treated as"},
	{phrase(`in so many words`), "explicitly"},
	{phrase(`(made|make|makes|written|compressed) anew`), "again"},
	{regexp.MustCompile(`(^|[.;:] )Of (what|which|those|all) `), "name the subject: the fields that …"},
	{phrase(`what (came|comes|becomes|became) of`), "the result of, the outcome of"},
	{phrase(`stands? (in front|behind|beside)`), "precedes, follows"},
	{phrase(`lets? go of|is let go`), "releases"},
	{phrase(`a line (a|an) [a-z]+`), "one line for each"},
	{phrase(`nothing (is|was) told`), "decides nothing"},
	{phrase(`we concluded`), "name the evidence"},
}

func phrase(p string) *regexp.Regexp { return regexp.MustCompile(`(?i)\b(?:` + p + `)\b`) }

// TestEnglish measures how the tree reads: names without a comment, banned phrases, and
// comments inside functions. The numbers of today are in the ratchet, and only become smaller.
func TestEnglish(t *testing.T) {
	e := &english{undocumented: map[string]int{}, banned: map[string]int{}, places: map[string][]string{}}
	for _, name := range trackedFiles(t) {
		data, err := os.ReadFile(filepath.Join("../../..", name))
		if os.IsNotExist(err) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		e.measure(t, name, data)
	}
	r := readRatchet(t)
	r.check(t, "undocumented-names", 0, e.undocumented)
	r.check(t, "banned-phrases", 0, e.banned)
	if t.Failed() {
		for _, of := range []map[string]int{e.undocumented, e.banned} {
			for pkg := range of {
				for _, place := range e.places[pkg] {
					t.Log(place)
				}
			}
		}
	}
	if share := 1000 * e.commentLines / e.bodyLines; share < leastComments {
		t.Errorf("%d of %d lines inside functions are comments, %d per mille and not %d: say why the code is as it is", e.commentLines, e.bodyLines, share, leastComments)
	}
	r.write(t)
}

// An english holds what is measured of the tree's texts, by folder.
type english struct {
	undocumented, banned map[string]int

	// places are the findings of a folder, as FILE:LINE: TEXT.
	places map[string][]string

	// commentLines and bodyLines count lines inside functions.
	commentLines, bodyLines int
}

// trackedFiles lists the files whose texts people read: programs, documents and scripts,
// without tests, test data and generated references.
func trackedFiles(t *testing.T) (files []string) {
	t.Helper()
	out, err := exec.Command("git", "-C", "../../..", "ls-files", "--cached", "--others", "--exclude-standard").Output()
	if err != nil {
		t.Fatal(err)
	}
	for name := range strings.Lines(string(out)) {
		name = strings.TrimSpace(name)
		if strings.Contains(name, "testdata/") || strings.HasSuffix(name, "_test.go") || strings.HasPrefix(name, "cmd/unwire/docs/man/") {
			continue
		}
		if slices.Contains([]string{".go", ".md", ".sh", ".cjs", ".mjs"}, path.Ext(name)) || path.Base(name) == "Makefile" {
			files = append(files, name)
		}
	}
	if len(files) < 500 {
		t.Fatalf("only %d files are tracked", len(files))
	}
	return files
}

// measure adds the findings in one file.
func (e *english) measure(t *testing.T, name string, data []byte) {
	t.Helper()
	pkg := path.Dir(name)
	e.undocumented[pkg] += 0
	e.banned[pkg] += 0
	if path.Ext(name) != ".go" {
		e.findBanned(pkg, name, 1, string(data))
		return
	}
	set := token.NewFileSet()
	f, err := parser.ParseFile(set, name, data, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}

	for _, group := range f.Comments {
		e.findBanned(pkg, name, set.Position(group.Pos()).Line, group.Text())
	}
	ast.Inspect(f, func(n ast.Node) bool {
		if s, ok := n.(*ast.BasicLit); ok && s.Kind == token.STRING {
			// Patterns and templates are not texts.
			if text, err := strconv.Unquote(s.Value); err == nil && strings.Contains(text, " ") {
				e.findBanned(pkg, name, set.Position(s.Pos()).Line, text)
			}
		}
		return true
	})
	for _, place := range undocumented(set, f) {
		if pkg == contractPackage {
			continue
		}
		e.undocumented[pkg]++
		e.places[pkg] = append(e.places[pkg], place+" has no comment")
	}
	body, comments := commentedLines(set, f, data)
	e.bodyLines += body
	e.commentLines += comments
}

// findBanned counts the banned phrases in a text that starts at a line.
func (e *english) findBanned(pkg, name string, first int, text string) {
	// A phrase may be broken over two lines.
	joined := strings.Join(strings.Fields(text), " ")
	for _, b := range banned {
		for _, found := range b.phrase.FindAllString(joined, -1) {
			e.banned[pkg]++
			e.places[pkg] = append(e.places[pkg], name+":"+strconv.Itoa(first)+": \""+found+"\": write: "+b.instead)
		}
	}
}

// obvious are methods whose meaning their interface defines.
var obvious = []string{"Error", "String", "Unwrap", "Is", "Read", "Write", "Close", "Len", "Less", "Swap", "Push", "Pop", "RoundTrip"}

// undocumented returns the exported names and fields of a file that have no comment. The
// comment of a field or constant may also be the one above an earlier line of its block, if
// that names it or the block as a whole has one.
func undocumented(set *token.FileSet, f *ast.File) (places []string) {
	add := func(name string, pos token.Pos) {
		p := set.Position(pos)
		places = append(places, p.Filename+":"+strconv.Itoa(p.Line)+": "+name)
	}
	for _, d := range f.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Name.IsExported() && d.Doc == nil && !slices.Contains(obvious, d.Name.Name) && ast.IsExported(receiverOf(d)) {
				add(d.Name.Name, d.Pos())
			}
		case *ast.GenDecl:
			above := "" // the last comment of the block
			for _, s := range d.Specs {
				switch s := s.(type) {
				case *ast.TypeSpec:
					if s.Name.IsExported() && s.Doc == nil && d.Doc == nil {
						add(s.Name.Name, s.Pos())
					}
					if s.Name.IsExported() {
						undocumentedFields(s, s.Doc.Text()+d.Doc.Text(), add)
					}
				case *ast.ValueSpec:
					if s.Doc != nil {
						above = s.Doc.Text()
					}
					for _, n := range s.Names {
						if n.IsExported() && s.Doc == nil && s.Comment == nil && d.Doc == nil && !names(above, n.Name) {
							add(n.Name, n.Pos())
						}
					}
				}
			}
		}
	}
	return places
}

// receiverOf is the name of a method's type; of a function, a name that is exported.
func receiverOf(d *ast.FuncDecl) string {
	name := functionName(d)
	if typ, _, ok := strings.Cut(name, "."); ok {
		return typ
	}
	return "Function"
}

// names reports whether a comment names something.
func names(comment, name string) bool {
	return regexp.MustCompile(`\b` + name + `\b`).MatchString(comment)
}

// undocumentedFields adds the exported fields and methods of a type that have no comment, and
// that neither the comment of an earlier field nor that of the type, which is above, names.
func undocumentedFields(s *ast.TypeSpec, above string, add func(name string, pos token.Pos)) {
	var list *ast.FieldList
	switch typ := s.Type.(type) {
	case *ast.StructType:
		list = typ.Fields
	case *ast.InterfaceType:
		list = typ.Methods
	default:
		return
	}
	for _, f := range list.List {
		if f.Doc != nil {
			above = f.Doc.Text()
		}
		for _, n := range f.Names {
			if n.IsExported() && f.Doc == nil && f.Comment == nil && !names(above, n.Name) {
				add(s.Name.Name+"."+n.Name, n.Pos())
			}
		}
	}
}

// commentedLines counts the lines inside the functions of a file, and those that have
// nothing but a comment.
func commentedLines(set *token.FileSet, f *ast.File, data []byte) (body, comments int) {
	var lines []string
	for sc := bufio.NewScanner(bytes.NewReader(data)); sc.Scan(); {
		lines = append(lines, strings.TrimSpace(sc.Text()))
	}
	for _, d := range f.Decls {
		fn, ok := d.(*ast.FuncDecl)
		if !ok || fn.Body == nil {
			continue
		}
		first, last := set.Position(fn.Body.Lbrace).Line, set.Position(fn.Body.Rbrace).Line
		for n := first; n < last-1; n++ {
			body++
			if strings.HasPrefix(lines[n], "//") {
				comments++
			}
		}
	}
	return body, comments
}

// TestEnglishFinds: the checks of TestEnglish find what they are for.
func TestEnglishFinds(t *testing.T) {
	source := `package p

// A T has fields.
type T struct {
	// A and B are documented.
	A int
	B int
	C int
	D int // of bytes
}

// Values that belong together.
const (
	X = 1
	Y = 2
)

var Z = "the server is told nothing" // which is none

func F() {
	// because
	_ = 1
}

func (T) String() string { return "" }
`
	e := &english{undocumented: map[string]int{}, banned: map[string]int{}, places: map[string][]string{}}
	e.measure(t, "p/p.go", []byte(source))
	if e.undocumented["p"] != 2 || e.banned["p"] != 2 {
		t.Errorf("%d names without a comment and %d phrases, want 2 and 2: %q", e.undocumented["p"], e.banned["p"], e.places["p"])
	}
	if e.commentLines != 1 || e.bodyLines != 2 {
		t.Errorf("%d of %d lines inside functions are comments, want 1 of 2", e.commentLines, e.bodyLines)
	}
	e.measure(t, "p/README.md", []byte("What is sent\nis told by the client.\n"))
	if e.banned["p"] != 4 {
		t.Errorf("%d phrases after the document, want 4: %q", e.banned["p"], e.places["p"])
	}
}
