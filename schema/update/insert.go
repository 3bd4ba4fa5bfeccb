package update

import (
	"cmp"
	"slices"
	"strings"
)

// A slot is a place for additions: behind a declaration of a block, or with
// after -1 behind its opening brace.
type slot struct {
	b     *block
	after int
}

// An addition is a declaration to be written.
type addition struct {
	kind   declKind
	number int
	spaced bool // a blank line before it
	text   string
}

// insert puts a declaration into b where it belongs: by its number where the
// declarations are in that order, else behind the last of its kind.
func (b *block) insert(a addition) {
	after, spaced := b.predecessor(a)
	a.spaced = a.spaced || spaced
	s := slot{b, after}
	b.doc.added[s] = append(b.doc.added[s], a)
}

// predecessor returns the index of the declaration behind which an addition
// belongs, -1 for the block's beginning, and whether a blank line goes before it.
func (b *block) predecessor(a addition) (after int, spaced bool) {
	like := b.siblings(a)
	if like.last < 0 {
		return len(b.decls) - 1, len(b.decls) > 0
	}
	spaced = like.gaps > 0 && like.blank*2 > like.gaps
	numbered := a.kind == fieldDecl || a.kind == valueDecl
	switch {
	case !numbered:
		return like.last, spaced || like.gaps == 0 && (a.kind == typeDecl || a.kind == serviceDecl)
	// the first value may have to be zero
	case !like.ordered, like.lower < 0 && a.kind == valueDecl:
		return like.last, spaced
	case like.lower < 0:
		return like.first - 1, spaced || like.first > 0
	}
	return like.lower, spaced
}

// siblings are the declarations of a block that are of an addition's kind, by
// their indices; -1 is none.
type siblings struct {
	first, last int

	// the last whose number is lower than the addition's; an alias stands behind
	// the number's name
	lower int

	// their numbers ascend
	ordered bool

	// between them, and those with a blank line
	gaps, blank int
}

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

func (d *document) blankBetween(from, to int) bool {
	return strings.Contains(strings.NewReplacer("\r", "", " ", "", "\t", "").Replace(d.text[from:to]), "\n\n")
}

// render turns additions into edits.
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
		d.renderSlot(s, list)
	}
	d.added = map[slot][]addition{}
}

// lines is the text of additions, a line end behind each.
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

func (d *document) renderSlot(s slot, list []addition) {
	text := d.lines(list)
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
	if s.b.open < 0 && s.after < 0 {
		if d.text != "" {
			text += d.eol
		}
		d.replace(span{0, 0}, text)
		return
	}
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

func (d *document) blankIf(spaced bool) string {
	if spaced {
		return d.eol
	}
	return ""
}

// renderLines puts text on lines of its own behind the line that t ends. A
// comment that belongs to what precedes it keeps doing so.
func (d *document) renderLines(s slot, t tail, list []addition, text string) {
	before, after := d.blankIf(list[0].spaced && s.after >= 0), ""
	if s.after < 0 && s.b.open >= 0 {
		before = ""
	}
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

// A tail is what follows a declaration on its line.
type tail struct {
	at         int  // the next line's start, or the file's end
	comment    bool // there is one on the line
	commentEnd int
	inline     bool // something else follows on the line
	next       int  // where
	eof        bool
}

func (d *document) tail(pos int) tail {
	t := tail{commentEnd: pos}
	for pos < len(d.text) {
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

// commentBelow finds a comment that begins on the line at pos and belongs to
// what stands above it, because nothing stands directly below.
func (d *document) commentBelow(pos int) (end int, detached, eof bool) {
	at, any := pos, false
	for at < len(d.text) {
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

// addImport adds an import statement, in order where they are in order.
func (d *document) addImport(file string) {
	last, best, ordered := -1, -1, true
	for i, dd := range d.root.decls {
		if dd.kind != importDecl {
			continue
		}
		if last >= 0 && d.root.decls[last].at > dd.at {
			ordered = false
		}
		if dd.at < file {
			best = i
		}
		last = i
	}
	s := slot{d.root, last}
	if ordered && best >= 0 {
		s.after = best
	}
	spaced := false
	if last < 0 {
		spaced = true
		for i, dd := range d.root.decls {
			if dd.kind == headDecl {
				s.after = i
			}
		}
	}
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
