package update

import (
	"cmp"
	"slices"
	"strings"
)

// An insertionPoint is a position in a file where declarations are inserted: after the declaration with the
// index after in block b, or after the opening brace if after is -1.
type insertionPoint struct {
	// b is the block into which declarations are inserted.
	b *block
	// after is the index in b of the declaration before the insertion, or -1.
	after int
}

// An addition is a declaration that is to be inserted into a block.
type addition struct {
	// kind and number determine the position in the block.
	kind declKind
	// number is the number of the field or enum value.
	number int
	// spaced is set if a blank line is to precede the declaration.
	spaced bool
	// text is the declaration, with indentation and line feeds.
	text string
}

// insert records that a is to be inserted into b: by its number if the existing declarations are ordered by
// number, and otherwise after the last one of the same kind.
func (b *block) insert(a addition) {
	after, spaced := b.predecessor(a)
	a.spaced = a.spaced || spaced
	s := insertionPoint{b, after}
	b.doc.added[s] = append(b.doc.added[s], a)
}

// predecessor returns the index of the declaration after which a is to be inserted, or -1 for the beginning of
// the block. spaced is set if a blank line is to precede it.
func (b *block) predecessor(a addition) (after int, spaced bool) {
	// Without siblings, the addition goes to the end of the block.
	like := b.siblings(a)
	if like.last < 0 {
		return len(b.decls) - 1, len(b.decls) > 0
	}
	spaced = like.gaps > 0 && like.blank*2 > like.gaps
	numbered := a.kind == fieldDecl || a.kind == valueDecl
	switch {
	case !numbered:
		return like.last, spaced || like.gaps == 0 && (a.kind == typeDecl || a.kind == serviceDecl)
	// proto3 requires that the first value of an enum is zero, so no value is inserted before it.
	case !like.ordered, like.lower < 0 && a.kind == valueDecl:
		return like.last, spaced
	case like.lower < 0:
		return like.first - 1, spaced || like.first > 0
	}
	return like.lower, spaced
}

// siblings describes the declarations in a block that have the same kind as an addition. They are given by
// index; -1 means none.
type siblings struct {
	// first and last are the indices of the first and the last of these declarations.
	first, last int

	// lower is the index of the last one with a lower number than the addition. For enum values also an equal
	// number, because an alias follows the first name for its number.
	lower int

	// ordered is set if the numbers of these declarations are ascending.
	ordered bool

	// gaps is the number of gaps between these declarations, and blank the number of those that contain a blank
	// line.
	gaps, blank int
}

// siblings examines the declarations in b that have the kind of a.
func (b *block) siblings(a addition) siblings {
	s := siblings{first: -1, last: -1, lower: -1, ordered: true}
	for i, dd := range b.decls {
		if dd.kind != a.kind {
			continue
		}
		if s.first < 0 {
			s.first = i
		} else {
			s.gaps++
			if b.doc.blankBetween(b.decls[s.last].end, dd.start) {
				s.blank++
			}
			// Numbers ascend; only enum aliases repeat one.
			before := b.decls[s.last].min
			s.ordered = s.ordered && (before < dd.min || a.kind == valueDecl && before == dd.min)
		}
		if dd.min < a.number || a.kind == valueDecl && dd.min == a.number {
			s.lower = i
		}
		s.last = i
	}
	return s
}

// blankBetween reports whether a blank line is between two offsets.
func (d *document) blankBetween(from, to int) bool {
	return strings.Contains(strings.NewReplacer("\r", "", " ", "", "\t", "").Replace(d.text[from:to]), "\n\n")
}

// render converts all additions to edits of the text.
func (d *document) render() {
	for s, list := range d.added {
		slices.SortStableFunc(list, func(a, b addition) int {
			if a.kind != b.kind {
				return cmp.Compare(a.kind.rank(), b.kind.rank())
			}
			if a.kind == fieldDecl || a.kind == valueDecl {
				return cmp.Compare(a.number, b.number)
			}
			return 0
		})
		d.renderInsertion(s, list)
	}
	d.added = map[insertionPoint][]addition{}
}

// lines returns the text of additions, each followed by a line end.
func (d *document) lines(list []addition) string {
	var b strings.Builder
	for i, a := range list {
		if i > 0 && (a.spaced || list[i-1].kind != a.kind) {
			b.WriteString(d.eol)
		}
		b.WriteString(strings.ReplaceAll(a.text, "\n", d.eol) + d.eol)
	}
	return b.String()
}

// renderInsertion converts the additions at one insertion point to edits.
func (d *document) renderInsertion(s insertionPoint, list []addition) {
	text := d.lines(list)

	// An empty block on a single line is expanded to several lines.
	if s.b.open >= 0 && len(s.b.decls) == 0 && !strings.Contains(d.text[s.b.open:s.b.close], "\n") {
		inner := strings.TrimRight(d.text[s.b.open+1:s.b.close], " \t")
		base, _ := d.indentAt(s.b.start)
		if line := strings.LastIndexByte(d.text[:s.b.start], '\n') + 1; base == "" {
			before := d.text[line:s.b.start]
			base = before[:len(before)-len(strings.TrimLeft(before, " \t"))]
		}
		d.replace(span{s.b.open + 1 + len(inner), s.b.close}, d.eol+text+base)
		return
	}
	end := s.b.open + 1
	if s.after >= 0 {
		end = s.b.decls[s.after].end
	}

	// The beginning of the file has no line to insert behind.
	if s.b.open < 0 && s.after < 0 {
		if d.text != "" {
			text += d.eol
		}
		d.replace(span{0, 0}, text)
		return
	}

	// Something may follow the insertion point on its line: code, a comment, or the end of the file.
	t := d.tail(end)
	switch {
	case t.inline && t.comment && d.text[t.next] == '}':
		d.replace(span{t.commentEnd, t.commentEnd}, d.eol+strings.TrimSuffix(text, d.eol))
	case t.inline:
		inline := strings.TrimSpace(text)
		d.replace(span{end, end}, " "+inline)
	case t.eof:
		d.replace(span{t.at, t.at}, d.eol+d.blankIf(list[0].spaced)+strings.TrimSuffix(text, d.eol))
	default:
		d.renderLines(s, t, list, text)
	}
}

// blankIf returns a line end if spaced is set, and "" otherwise.
func (d *document) blankIf(spaced bool) string {
	if spaced {
		return d.eol
	}
	return ""
}

// renderLines inserts text on separate lines after t, the end of the line with the insertion point. A comment
// that belongs to the preceding declaration remains directly after that.
func (d *document) renderLines(s insertionPoint, t lineTail, list []addition, text string) {
	before, after := d.blankIf(list[0].spaced && s.after >= 0), ""
	if s.after < 0 && s.b.open >= 0 {
		before = ""
	}

	// The comment belongs to the declaration above, so the text goes behind it.
	if end, detached, eof := d.commentBelow(t.at); detached {
		if t.comment {
			after = d.eol
		} else {
			t.at, before = end, d.eol
			if eof {
				before, text = d.eol+d.eol, strings.TrimSuffix(text, d.eol)
			}
		}
	}

	if s.after >= 0 && s.after+1 < len(s.b.decls) && list[0].spaced && after == "" {
		if rest := strings.TrimLeft(d.text[t.at:], " \t"); !strings.HasPrefix(rest, "\n") && !strings.HasPrefix(rest, "\r\n") {
			after = d.eol
		}
	}
	if s.after < 0 && len(s.b.decls) > 0 && list[0].spaced && after == "" {
		after = d.eol
	}
	d.replace(span{t.at, t.at}, before+text+after)
}

// A lineTail describes the text that follows a declaration on its line.
type lineTail struct {
	// at is the offset of the beginning of the next line, or of the end of the file.
	at int
	// comment is set if a comment follows the declaration on its line.
	comment bool
	// commentEnd is the offset of the end of the last block comment.
	commentEnd int
	// inline is set if code follows on the line, at the offset next.
	inline bool
	// next is the offset of the code that follows the declaration.
	next int
	// eof is set if the file ends on this line.
	eof bool
}

// tail describes the text from offset pos to the end of the line, including block comments that extend over
// several lines.
func (d *document) tail(pos int) lineTail {
	t := lineTail{commentEnd: pos}
	for pos < len(d.text) {
		// A block comment may contain line ends; the line continues behind it.
		switch rest := d.text[pos:]; {
		case rest[0] == '\n':
			t.at = pos + 1
			return t
		case strings.ContainsRune(" \t\r\f\v", rune(rest[0])):
			pos++
		case strings.HasPrefix(rest, "//"):
			t.comment = true
			if i := strings.IndexByte(rest, '\n'); i >= 0 {
				pos += i
			} else {
				pos = len(d.text)
			}
		case strings.HasPrefix(rest, "/*"):
			t.comment = true
			i := strings.Index(rest[2:], "*/")

			// An unterminated comment is left to the compiler's error.
			if i < 0 {
				t.inline, t.next = true, pos
				return t
			}
			pos += i + 4
			t.commentEnd = pos
		default:
			t.inline, t.next = true, pos
			return t
		}
	}
	t.at, t.eof = pos, true
	return t
}

// commentBelow looks for a comment that begins on the line at pos and belongs to the declaration above, because
// a blank line or a brace follows it. detached is set if there is one; end is its end, and eof is set if the
// file ends there.
func (d *document) commentBelow(pos int) (end int, detached, eof bool) {
	at, any := pos, false
	for at < len(d.text) {
		// Follow the comment line by line, until something else shows what it belongs to.
		line, _, more := strings.Cut(d.text[at:], "\n")
		trimmed := strings.TrimSpace(line)
		switch {
		case strings.HasPrefix(trimmed, "//"):
			any = true
			if !more {
				return len(d.text), true, true
			}
			at += len(line) + 1
		case strings.HasPrefix(trimmed, "/*"):
			// A block comment may end on a later line.
			open := at + strings.Index(line, "/*")
			i := strings.Index(d.text[open+2:], "*/")
			if i < 0 {
				return pos, false, false
			}
			any = true
			t := d.tail(open + i + 4)
			if t.inline {
				return pos, any && d.text[t.next] == '}', false
			}
			if t.eof {
				return len(d.text), true, true
			}
			at = t.at
		case trimmed == "" || strings.HasPrefix(trimmed, "}"):
			return at, any, false
		default:
			return pos, false, false
		}
	}

	return at, any, false
}

// addImport adds an import statement: in alphabetical order if the existing imports are.
func (d *document) addImport(file string) {
	last, best, ordered := -1, -1, true
	for i, dd := range d.root.decls {
		if dd.kind != importDecl {
			continue
		}

		// If the imports are sorted, the new one goes to its place; otherwise behind the last one.
		if last >= 0 && d.root.decls[last].fullName > dd.fullName {
			ordered = false
		}
		if dd.fullName < file {
			best = i
		}
		last = i
	}
	s := insertionPoint{d.root, last}
	if ordered && best >= 0 {
		s.after = best
	}

	// The first import follows the syntax and package statements, with a blank line.
	spaced := false
	if last < 0 {
		spaced = true
		for i, dd := range d.root.decls {
			if dd.kind == headDecl {
				s.after = i
			}
		}
	}

	// Several additions can have the same place, so they are sorted among themselves.
	list := append(d.added[s], addition{kind: importDecl, text: "import \"" + file + "\";", spaced: spaced && len(d.added[s]) == 0})
	slices.SortStableFunc(list, func(a, b addition) int {
		if a.kind == importDecl && b.kind == importDecl {
			return strings.Compare(a.text, b.text)
		}
		return cmp.Compare(a.kind.rank(), b.kind.rank())
	})
	for i := range list {
		if list[i].kind == importDecl {
			list[i].spaced = spaced && i == 0
		}
	}
	d.added[s] = list
}
