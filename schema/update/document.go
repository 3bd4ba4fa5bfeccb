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

// A span is a range of byte offsets in a text.
type span struct {
	// start is the offset of the first byte of the range.
	start int

	// end is the offset after the last byte of the range.
	end int
}

// An edit replaces a range of a document's text.
type edit struct {
	// span is the range that is replaced; it is empty for an insertion.
	span
	// text is inserted in place of the range.
	text string
}

// A document is the text of a .proto file with the positions of its declarations. Edits refer to the original
// text, so their order does not matter.
type document struct {
	// name is the path of the file, and text its original content.
	name, text string

	// original converts an offset in the text that the parser read (see schema.FoldLongLines) to one in text.
	original func(offset int) int
	// node is the syntax tree of the file, as parsed.
	node *ast.FileNode
	// pkg is the package that the file declares.
	pkg string

	// syntax is "proto2", "proto3" or "editions".
	syntax string
	// eol is the line end that the file uses, and indentUnit the text of one level of indentation.
	eol, indentUnit string

	// hasBOM is set if the file begins with a byte order mark.
	hasBOM bool

	// isNew is set if the file does not exist yet.
	isNew bool
	// root is the block of the file as a whole.
	root *block

	// blocks are the messages, enums, services and oneofs of the file, by full name.
	blocks map[string]*block
	// imports are the paths of the imported files.
	imports []string
	// edits are the replacements to be made in text.
	edits []edit
	// added has the declarations to be inserted, by position.
	added map[insertionPoint][]addition
}

// A declKind is a kind of declaration, which decides where others are inserted.
type declKind int

// The kinds of declarations that declKind distinguishes.
const (
	// The value 0 is any declaration that is not listed below.
	_ declKind = iota
	// fieldDecl is a field, map or group, or a oneof with the numbers of its members.
	fieldDecl
	// valueDecl is an enum value.
	valueDecl
	// methodDecl is an RPC method.
	methodDecl
	// typeDecl is a message or an enum.
	typeDecl
	// serviceDecl is a service.
	serviceDecl
	// importDecl is an import statement.
	importDecl
	// headDecl is the syntax or package statement.
	headDecl
)

// rank returns the position of a kind among declarations that are inserted at the same point: imports come
// first.
func (k declKind) rank() int {
	if k == importDecl {
		return -1
	}
	return int(k)
}

// A block is the text of a message, enum, service or oneof, or of a file as a whole.
type block struct {
	// doc is the file that contains the block.
	doc *document
	// start is the offset of the beginning of the declaration.
	start int
	// open and close are the offsets of the braces; for a file, -1 and the size of the text.
	open, close int
	// name is the range of the declared name in the text.
	name span
	// decls are the declarations directly inside the block.
	decls []decl
}

// A decl is the text of one declaration inside a block, such as a field.
type decl struct {
	// kind is the kind of the declaration.
	kind declKind
	// span is the range of the declaration in the text, including the final semicolon or brace.
	span
	// min and max are the number of a field or enum value, or the lowest and highest number in a oneof.
	min, max int
	// fullName is the full name of the declared element, or the path of an import.
	fullName string
	// oneof is the block of a oneof; nil for other declarations.
	oneof *block
	// label to semicolon are the ranges of the parts of a field, enum value or method.
	label, typ, name, equals, number, semicolon span
	// node is the declaration in the syntax tree.
	node ast.Node
}

// byteOrderMark is the UTF-8 encoding of U+FEFF.
const byteOrderMark = "\ufeff"

// parse parses the text of a .proto file, which must compile, and finds the positions of its declarations.
func parse(name, text string) (*document, error) {
	// The parser does not count the byte order mark in offsets.
	text, marked := strings.CutPrefix(text, byteOrderMark)
	folded, original := schema.FoldLongLines(text)
	node, err := parser.Parse(name, strings.NewReader(folded), reporter.NewHandler(nil))
	if err != nil {
		return nil, fmt.Errorf("update: %w", err)
	}
	d := &document{
		name: name, text: text, original: original, node: node, syntax: "proto2", eol: "\n", indentUnit: "  ",
		blocks: map[string]*block{}, added: map[insertionPoint][]addition{}, hasBOM: marked,
	}

	switch {
	case node.Syntax != nil:
		d.syntax = node.Syntax.Syntax.AsString()
	case node.Edition != nil:
		d.syntax = "editions"
	}

	// The line end is that of most lines.
	if strings.Count(text, "\r\n")*2 > strings.Count(text, "\n") {
		d.eol = "\r\n"
	}
	for _, e := range node.Decls {
		if p, ok := e.(*ast.PackageNode); ok {
			d.pkg = string(p.Name.AsIdentifier())
		}
	}
	d.readFile()
	d.indentUnit = d.findUnit()
	return d, nil
}

// spanOf returns the range of a syntax node in the original text.
func (d *document) spanOf(n ast.Node) span {
	info := d.node.NodeInfo(n)
	start := info.Start().Offset
	return span{d.original(start), d.original(start + len(info.RawText()))}
}

// brace returns the offset of a brace in the original text.
func (d *document) brace(n *ast.RuneNode) int { return d.spanOf(n).start }

// readFile collects the text positions of the file's declarations in d.root and d.blocks.
func (d *document) readFile() {
	b := &block{doc: d, start: 0, open: -1, close: len(d.text)}
	d.root = b
	if d.node.Syntax != nil {
		b.addDecl(decl{kind: headDecl, span: d.spanOf(d.node.Syntax)})
	}
	if d.node.Edition != nil {
		b.addDecl(decl{kind: headDecl, span: d.spanOf(d.node.Edition)})
	}

	for _, e := range d.node.Decls {
		switch e := e.(type) {
		case *ast.PackageNode:
			b.addDecl(decl{kind: headDecl, span: d.spanOf(e)})
		case *ast.ImportNode:
			b.addDecl(decl{kind: importDecl, span: d.spanOf(e), fullName: e.Name.AsString(), node: e})
			d.imports = append(d.imports, e.Name.AsString())
		case *ast.MessageNode:
			b.addDecl(d.message(d.pkg, e))
		case *ast.EnumNode:
			b.addDecl(d.enum(d.pkg, e))
		case *ast.ServiceNode:
			b.addDecl(d.service(e))
		default:
			// Options and extensions are kept as they are.
			d.extend(d.pkg, e)
			b.addDecl(decl{span: d.spanOf(e), node: e})
		}
	}
}

// extend collects the text positions of groups inside an extend declaration, which are message types as well.
func (d *document) extend(scope string, n ast.Node) {
	if x, ok := n.(*ast.ExtendNode); ok {
		for _, e := range x.Decls {
			if g, ok := e.(*ast.GroupNode); ok {
				d.group(scope, g)
			}
		}
	}
}

// addDecl appends a declaration to the block.
func (b *block) addDecl(d decl) { b.decls = append(b.decls, d) }

// join appends a name to a scope, with a dot between them. The scope may be empty.
func join(scope, name string) string { return strings.TrimPrefix(scope+"."+name, ".") }

// newBlock creates the block of the declaration n with the full name full; open and close are its braces.
func (d *document) newBlock(full string, n ast.Node, name ast.Node, open, close *ast.RuneNode) *block {
	b := &block{doc: d, start: d.spanOf(n).start, name: d.spanOf(name), open: d.brace(open), close: d.brace(close)}
	d.blocks[full] = b
	return b
}

// message collects the text positions of a message and everything inside it. scope is the full name of its
// parent.
func (d *document) message(scope string, n *ast.MessageNode) decl {
	full := join(scope, n.Name.Val)
	d.body(full, d.newBlock(full, n, n.Name, n.OpenBrace, n.CloseBrace), n.Decls)
	return decl{kind: typeDecl, span: d.spanOf(n), fullName: full, node: n}
}

// body collects the text positions of the declarations inside a message or group, whose block is b.
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
			b.addDecl(decl{span: d.spanOf(e), node: e})
		}
	}
}

// oneof collects the text positions of a oneof and its members. scope is the full name of the message.
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
			o.addDecl(decl{span: d.spanOf(e), node: e})
		}
	}

	// The oneof is sorted by the numbers of its members.
	dd := decl{kind: fieldDecl, span: d.spanOf(n), fullName: full, oneof: o, node: n, min: 1 << 30}
	for _, f := range o.decls {
		if f.kind == fieldDecl {
			dd.min, dd.max = min(dd.min, f.min), max(dd.max, f.max)
		}
	}
	return dd
}

// field collects the text positions of a field. scope is the full name of the message.
func (d *document) field(scope string, n *ast.FieldNode) decl {
	f := decl{
		kind: fieldDecl, span: d.spanOf(n), fullName: join(scope, n.Name.Val), min: int(n.Tag.Val), max: int(n.Tag.Val), node: n,
		typ: d.spanOf(n.FldType), name: d.spanOf(n.Name), equals: d.spanOf(n.Equals), number: d.spanOf(n.Tag),
	}
	// A field without a label has no node for it.
	if n.Label.KeywordNode != nil {
		f.label = d.spanOf(n.Label.KeywordNode)
	}
	f.semicolon = span{f.end - 1, f.end}
	return f
}

// mapField collects the text positions of a map field. scope is the full name of the message.
func (d *document) mapField(scope string, n *ast.MapFieldNode) decl {
	f := decl{
		kind: fieldDecl, span: d.spanOf(n), fullName: join(scope, n.Name.Val), min: int(n.Tag.Val), max: int(n.Tag.Val), node: n,
		typ: d.spanOf(n.MapType), name: d.spanOf(n.Name), equals: d.spanOf(n.Equals), number: d.spanOf(n.Tag),
	}
	f.semicolon = span{f.end - 1, f.end}
	return f
}

// group collects the text positions of a group, which declares a field and a message at once. scope is the full
// name of the message.
func (d *document) group(scope string, n *ast.GroupNode) decl {
	full := join(scope, n.Name.Val)
	d.body(full, d.newBlock(full, n, n.Name, n.OpenBrace, n.CloseBrace), n.Decls)
	open := d.spanOf(n.OpenBrace)
	return decl{kind: fieldDecl, span: d.spanOf(n), fullName: full, min: int(n.Tag.Val), max: int(n.Tag.Val), node: n, semicolon: open}
}

// enum collects the text positions of an enum and its values. scope is the full name of its parent.
func (d *document) enum(scope string, n *ast.EnumNode) decl {
	full := join(scope, n.Name.Val)
	b := d.newBlock(full, n, n.Name, n.OpenBrace, n.CloseBrace)
	for _, e := range n.Decls {
		v, ok := e.(*ast.EnumValueNode)
		if !ok {
			b.addDecl(decl{span: d.spanOf(e), node: e})
			continue
		}
		number, _ := ast.AsInt32(v.Number, -1<<31, 1<<31-1)
		dd := decl{
			kind: valueDecl, span: d.spanOf(v), fullName: join(full, v.Name.Val), min: int(number), max: int(number), node: v,
			name: d.spanOf(v.Name), equals: d.spanOf(v.Equals), number: d.spanOf(v.Number),
		}
		dd.semicolon = span{dd.end - 1, dd.end}
		b.addDecl(dd)
	}
	return decl{kind: typeDecl, span: d.spanOf(n), fullName: full, node: n}
}

// service collects the text positions of a service and its methods.
func (d *document) service(n *ast.ServiceNode) decl {
	full := join(d.pkg, n.Name.Val)
	b := d.newBlock(full, n, n.Name, n.OpenBrace, n.CloseBrace)
	for _, e := range n.Decls {
		r, ok := e.(*ast.RPCNode)
		if !ok {
			b.addDecl(decl{span: d.spanOf(e), node: e})
			continue
		}
		dd := decl{kind: methodDecl, span: d.spanOf(r), fullName: join(full, r.Name.Val), name: d.spanOf(r.Name), node: r}
		dd.semicolon = span{dd.end - 1, dd.end}
		if r.OpenBrace != nil {
			dd.semicolon = d.spanOf(r.OpenBrace)
		}
		b.addDecl(dd)
	}
	return decl{kind: serviceDecl, span: d.spanOf(n), fullName: full, node: n}
}

// find returns the declaration in the block of a field by its number, or of an enum value or method by its full
// name; nil if there is none.
func (b *block) find(kind declKind, number int, full string) *decl {
	for i := range b.decls {
		dd := &b.decls[i]
		if dd.kind != kind {
			continue
		}
		// The members of a oneof are fields of the message.
		if dd.oneof != nil {
			if f := dd.oneof.find(kind, number, full); f != nil {
				return f
			}
			continue
		}
		if full != "" && dd.fullName == full || full == "" && dd.min == number {
			return dd
		}
	}
	return nil
}

// replace records that a range of the text is to be replaced by text.
func (d *document) replace(s span, text string) { d.edits = append(d.edits, edit{s, text}) }

// apply returns the text of the file with all edits and additions.
func (d *document) apply() string {
	d.render()
	slices.SortStableFunc(d.edits, func(a, b edit) int { return a.start - b.start })
	var b strings.Builder
	if d.hasBOM {
		b.WriteString(byteOrderMark)
	}
	// Edits do not overlap, so the text between them is copied.
	at := 0
	for _, e := range d.edits {
		b.WriteString(d.text[at:e.start])
		b.WriteString(e.text)
		at = e.end
	}
	b.WriteString(d.text[at:])
	return b.String()
}

// findUnit returns the text of one level of the file's indentation, taken from the first indented declaration.
// Default: two spaces.
func (d *document) findUnit() string {
	for _, dd := range d.root.decls {
		b := d.blocks[dd.fullName]
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

// indentAt returns the text between the beginning of the line and offset. alone is set if this is only white
// space.
func (d *document) indentAt(offset int) (string, bool) {
	line := strings.LastIndexByte(d.text[:offset], '\n') + 1
	before := d.text[line:offset]
	blank := before[:len(before)-len(strings.TrimLeft(before, " \t"))]
	return blank, blank == before
}

// indent returns the indentation of the declarations in the block.
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
	return base + b.doc.indentUnit
}

// comments returns the text of all comments on a declaration: above, inside and after it.
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
