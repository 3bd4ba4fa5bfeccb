package update

import (
	"fmt"
	"slices"
	"strings"

	"github.com/bufbuild/protocompile/ast"
	"github.com/bufbuild/protocompile/parser"
	"github.com/bufbuild/protocompile/reporter"

	"unwire/schema"
)

// A span is a piece of a text.
type span struct{ start, end int }

// An edit replaces a span of a document.
type edit struct {
	span
	text string
}

// A document is a .proto file with where its declarations stand in the text.
type document struct {
	name, text string

	// Where an offset of the node, which is of the folded text, is in text.
	original func(offset int) int
	node     *ast.FileNode
	pkg      string

	// proto2, proto3 or editions
	syntax    string
	eol, unit string

	// begins with a byte order mark
	marked bool

	// is not in the tree yet
	fresh bool
	root  *block

	// messages, enums, services and oneofs by full name
	blocks  map[string]*block
	imports []string
	edits   []edit
	added   map[slot][]addition
}

type declKind int

const (
	otherDecl declKind = iota
	fieldDecl          // fields, maps, groups, and oneofs by their members
	valueDecl
	methodDecl
	typeDecl // messages and enums
	serviceDecl
	importDecl
	headDecl // syntax, package
)

// rank orders kinds that are added at the same place: imports come before all others.
func (k declKind) rank() int {
	if k == importDecl {
		return -1
	}
	return int(k)
}

// A block is what stands between braces, or the file as a whole.
type block struct {
	doc         *document
	start       int // of the declaration
	open, close int // offsets of the braces; -1 and the file's end
	name        span
	decls       []decl
}

// A decl is a declaration in a block.
type decl struct {
	kind     declKind
	span            // to past its semicolon or brace
	min, max int    // field or value numbers
	at       string // what it declares: a full name
	oneof    *block
	// Of a field, a value or a method:
	label, typ, name, equals, number, semicolon span
	node                                        ast.Node
}

const byteOrderMark = "\ufeff"

// parse reads a file that compiles.
func parse(name, text string) (*document, error) {
	// the parser does not count it
	text, marked := strings.CutPrefix(text, byteOrderMark)
	folded, original := schema.Fold(text)
	node, err := parser.Parse(name, strings.NewReader(folded), reporter.NewHandler(nil))
	if err != nil {
		return nil, fmt.Errorf("update: %w", err)
	}
	d := &document{
		name: name, text: text, original: original, node: node, syntax: "proto2", eol: "\n", unit: "  ",
		blocks: map[string]*block{}, added: map[slot][]addition{}, marked: marked,
	}
	switch {
	case node.Syntax != nil:
		d.syntax = node.Syntax.Syntax.AsString()
	case node.Edition != nil:
		d.syntax = "editions"
	}
	if strings.Count(text, "\r\n")*2 > strings.Count(text, "\n") {
		d.eol = "\r\n"
	}
	for _, e := range node.Decls {
		if p, ok := e.(*ast.PackageNode); ok {
			d.pkg = string(p.Name.AsIdentifier())
		}
	}
	d.readFile()
	d.unit = d.findUnit()
	return d, nil
}

func (d *document) at(n ast.Node) span {
	info := d.node.NodeInfo(n)
	start := info.Start().Offset
	return span{d.original(start), d.original(start + len(info.RawText()))}
}

func (d *document) brace(n *ast.RuneNode) int { return d.at(n).start }

func (d *document) readFile() {
	b := &block{doc: d, start: 0, open: -1, close: len(d.text)}
	d.root = b
	if d.node.Syntax != nil {
		b.addDecl(decl{kind: headDecl, span: d.at(d.node.Syntax)})
	}
	if d.node.Edition != nil {
		b.addDecl(decl{kind: headDecl, span: d.at(d.node.Edition)})
	}
	for _, e := range d.node.Decls {
		switch e := e.(type) {
		case *ast.PackageNode:
			b.addDecl(decl{kind: headDecl, span: d.at(e)})
		case *ast.ImportNode:
			b.addDecl(decl{kind: importDecl, span: d.at(e), at: e.Name.AsString(), node: e})
			d.imports = append(d.imports, e.Name.AsString())
		case *ast.MessageNode:
			b.addDecl(d.message(d.pkg, e))
		case *ast.EnumNode:
			b.addDecl(d.enum(d.pkg, e))
		case *ast.ServiceNode:
			b.addDecl(d.service(e))
		default:
			d.extend(d.pkg, e)
			b.addDecl(decl{span: d.at(e), node: e})
		}
	}
}

// extend reads the groups that extensions declare.
func (d *document) extend(scope string, n ast.Node) {
	if x, ok := n.(*ast.ExtendNode); ok {
		for _, e := range x.Decls {
			if g, ok := e.(*ast.GroupNode); ok {
				d.group(scope, g)
			}
		}
	}
}

func (b *block) addDecl(d decl) { b.decls = append(b.decls, d) }

func join(scope, name string) string { return strings.TrimPrefix(scope+"."+name, ".") }

func (d *document) newBlock(full string, n ast.Node, name ast.Node, open, close *ast.RuneNode) *block {
	b := &block{doc: d, start: d.at(n).start, name: d.at(name), open: d.brace(open), close: d.brace(close)}
	d.blocks[full] = b
	return b
}

func (d *document) message(scope string, n *ast.MessageNode) decl {
	full := join(scope, n.Name.Val)
	d.body(full, d.newBlock(full, n, n.Name, n.OpenBrace, n.CloseBrace), n.Decls)
	return decl{kind: typeDecl, span: d.at(n), at: full, node: n}
}

func (d *document) body(full string, b *block, decls []ast.MessageElement) {
	for _, e := range decls {
		switch e := e.(type) {
		case *ast.MessageNode:
			b.addDecl(d.message(full, e))
		case *ast.EnumNode:
			b.addDecl(d.enum(full, e))
		case *ast.OneofNode:
			b.addDecl(d.oneof(full, e))
		case *ast.FieldNode:
			b.addDecl(d.field(full, e))
		case *ast.MapFieldNode:
			b.addDecl(d.mapField(full, e))
		case *ast.GroupNode:
			b.addDecl(d.group(full, e))
		default:
			d.extend(full, e)
			b.addDecl(decl{span: d.at(e), node: e})
		}
	}
}

func (d *document) oneof(scope string, n *ast.OneofNode) decl {
	full := join(scope, n.Name.Val)
	o := d.newBlock(full, n, n.Name, n.OpenBrace, n.CloseBrace)
	for _, e := range n.Decls {
		switch e := e.(type) {
		case *ast.FieldNode:
			o.addDecl(d.field(scope, e))
		case *ast.GroupNode:
			o.addDecl(d.group(scope, e))
		default:
			o.addDecl(decl{span: d.at(e), node: e})
		}
	}
	dd := decl{kind: fieldDecl, span: d.at(n), at: full, oneof: o, node: n, min: 1 << 30}
	for _, f := range o.decls {
		if f.kind == fieldDecl {
			dd.min, dd.max = min(dd.min, f.min), max(dd.max, f.max)
		}
	}
	return dd
}

func (d *document) field(scope string, n *ast.FieldNode) decl {
	f := decl{
		kind: fieldDecl, span: d.at(n), at: join(scope, n.Name.Val), min: int(n.Tag.Val), max: int(n.Tag.Val), node: n,
		typ: d.at(n.FldType), name: d.at(n.Name), equals: d.at(n.Equals), number: d.at(n.Tag),
	}
	if n.Label.KeywordNode != nil {
		f.label = d.at(n.Label.KeywordNode)
	}
	f.semicolon = span{f.end - 1, f.end}
	return f
}

func (d *document) mapField(scope string, n *ast.MapFieldNode) decl {
	f := decl{
		kind: fieldDecl, span: d.at(n), at: join(scope, n.Name.Val), min: int(n.Tag.Val), max: int(n.Tag.Val), node: n,
		typ: d.at(n.MapType), name: d.at(n.Name), equals: d.at(n.Equals), number: d.at(n.Tag),
	}
	f.semicolon = span{f.end - 1, f.end}
	return f
}

func (d *document) group(scope string, n *ast.GroupNode) decl {
	full := join(scope, n.Name.Val)
	d.body(full, d.newBlock(full, n, n.Name, n.OpenBrace, n.CloseBrace), n.Decls)
	open := d.at(n.OpenBrace)
	return decl{kind: fieldDecl, span: d.at(n), at: full, min: int(n.Tag.Val), max: int(n.Tag.Val), node: n, semicolon: open}
}

func (d *document) enum(scope string, n *ast.EnumNode) decl {
	full := join(scope, n.Name.Val)
	b := d.newBlock(full, n, n.Name, n.OpenBrace, n.CloseBrace)
	for _, e := range n.Decls {
		v, ok := e.(*ast.EnumValueNode)
		if !ok {
			b.addDecl(decl{span: d.at(e), node: e})
			continue
		}
		number, _ := ast.AsInt32(v.Number, -1<<31, 1<<31-1)
		dd := decl{
			kind: valueDecl, span: d.at(v), at: join(full, v.Name.Val), min: int(number), max: int(number), node: v,
			name: d.at(v.Name), equals: d.at(v.Equals), number: d.at(v.Number),
		}
		dd.semicolon = span{dd.end - 1, dd.end}
		b.addDecl(dd)
	}
	return decl{kind: typeDecl, span: d.at(n), at: full, node: n}
}

func (d *document) service(n *ast.ServiceNode) decl {
	full := join(d.pkg, n.Name.Val)
	b := d.newBlock(full, n, n.Name, n.OpenBrace, n.CloseBrace)
	for _, e := range n.Decls {
		r, ok := e.(*ast.RPCNode)
		if !ok {
			b.addDecl(decl{span: d.at(e), node: e})
			continue
		}
		dd := decl{kind: methodDecl, span: d.at(r), at: join(full, r.Name.Val), name: d.at(r.Name), node: r}
		dd.semicolon = span{dd.end - 1, dd.end}
		if r.OpenBrace != nil {
			dd.semicolon = d.at(r.OpenBrace)
		}
		b.addDecl(dd)
	}
	return decl{kind: serviceDecl, span: d.at(n), at: full, node: n}
}

// find returns the declaration of a field by its number, or of a value or a
// method by its name.
func (b *block) find(kind declKind, number int, full string) *decl {
	for i := range b.decls {
		dd := &b.decls[i]
		if dd.kind != kind {
			continue
		}
		if dd.oneof != nil {
			if f := dd.oneof.find(kind, number, full); f != nil {
				return f
			}
			continue
		}
		if full != "" && dd.at == full || full == "" && dd.min == number {
			return dd
		}
	}
	return nil
}

func (d *document) replace(s span, text string) { d.edits = append(d.edits, edit{s, text}) }

// apply returns the text with all edits and additions in it.
func (d *document) apply() string {
	d.render()
	slices.SortStableFunc(d.edits, func(a, b edit) int { return a.start - b.start })
	var b strings.Builder
	if d.marked {
		b.WriteString(byteOrderMark)
	}
	at := 0
	for _, e := range d.edits {
		b.WriteString(d.text[at:e.start])
		b.WriteString(e.text)
		at = e.end
	}
	b.WriteString(d.text[at:])
	return b.String()
}

// findUnit is the indentation of a step, as the file has it.
func (d *document) findUnit() string {
	for _, dd := range d.root.decls {
		b := d.blocks[dd.at]
		if b == nil {
			continue
		}
		for _, inner := range b.decls {
			if indent, ok := d.indentAt(inner.start); ok && len(indent) > 0 {
				base, _ := d.indentAt(b.start)
				if unit, ok := strings.CutPrefix(indent, base); ok && unit != "" {
					return unit
				}
			}
		}
	}
	return "  "
}

// indentAt returns what stands before offset on its line, if that is nothing
// but blanks.
func (d *document) indentAt(offset int) (string, bool) {
	line := strings.LastIndexByte(d.text[:offset], '\n') + 1
	before := d.text[line:offset]
	blank := before[:len(before)-len(strings.TrimLeft(before, " \t"))]
	return blank, blank == before
}

// indent is the indentation of the declarations in b.
func (b *block) indent() string {
	if b.open < 0 {
		return ""
	}
	for _, dd := range b.decls {
		if indent, alone := b.doc.indentAt(dd.start); alone {
			return indent
		}
	}
	base, _ := b.doc.indentAt(b.start)
	return base + b.doc.unit
}

// comments is the text of a declaration's comments: above it, within, and behind.
func (d *document) comments(dd *decl) string {
	info := d.node.NodeInfo(dd.node)
	var b strings.Builder
	lead := info.LeadingComments()
	for i := range lead.Len() {
		b.WriteString(lead.Index(i).RawText() + "\n")
	}
	end := dd.end
	if dd.semicolon.end > 0 {
		end = dd.semicolon.end
	}
	b.WriteString(d.text[dd.start:end])
	t := d.tail(dd.end)
	stop := t.at
	if t.inline {
		stop = t.next
	}
	b.WriteString(d.text[end:max(end, stop)])
	return b.String()
}
