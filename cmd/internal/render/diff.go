package render

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"unwire/cmd/internal/app"
	"unwire/cmd/internal/query"
	"unwire/cmd/internal/term"
	"unwire/decode/diff"
	"unwire/decode/transcript/ident"
)

// Limits of printed differences.
const (
	// sideWidth is the width in columns of side-by-side output if stdout is not a terminal.
	sideWidth = 120

	// mostHex is the largest number of bytes that --hex prints of a value.
	mostHex = 256

	// mostValue is the largest number of characters printed of a value without a counterpart.
	mostValue = 400

	// mostColumn is the largest number of lines of a value in one column.
	mostColumn = 12
	hexPerLine = 16

	// littleAlike is the least share of two texts that must be common for their changed words to be
	// marked.
	littleAlike = 0.3
)

// DiffOptions choose what is printed about differences, and how.
type DiffOptions struct {
	// Format is "inline", "side" or "tsv". Default: "inline".
	Format string

	// A and B name the compared sides in words such as "only in A". Default: "A" and "B".
	A, B string

	// All also prints differences that are ignored by default.
	All bool

	// Hex also prints the differing bytes in hex.
	Hex bool

	// Context is the number of unchanged words or lines that are printed around a change in a long
	// text.
	Context int
}

// Differences prints the differences of a list of comparisons.
func Differences(out *term.Output, list []query.Comparison, o DiffOptions) error {
	o.A, o.B = cmp.Or(o.A, "A"), cmp.Or(o.B, "B")
	p := diffPrinter{o: o, w: bufio.NewWriter(out), out: out}
	for i := range list {
		titled := o.Format == "tsv" || list[i].Call == ""
		for _, c := range list[i].Changes {
			if c.Ignored != "" && !o.All {
				continue
			}
			if !titled {
				p.title(list[i].Call)
				titled = true
			}
			p.change(&list[i], c)
		}
	}
	return p.finish()
}

// OpText returns a kind of difference in words.
func (o *DiffOptions) OpText(op diff.Op) string {
	switch op {
	case diff.Add:
		return "only in " + o.B
	case diff.Remove:
		return "only in " + o.A
	case diff.Move:
		return "moved"
	}
	return "changed"
}

// InlineMarks explains the marks in the format "inline".
const InlineMarks = "marks: - only in A, + only in B, ~ changed, > moved"

// DifferenceCount returns a phrase with the number of differences, such as "2 differences".
func DifferenceCount(list []query.Comparison) string {
	found, ignored := query.CountChanges(list)
	text := fmt.Sprintf("%s, %d ignored", app.Counted(found, "difference"), ignored)
	if ignored == 0 {
		return text
	}
	text += " (--show-ignored lists them"
	// Times differ in every run, but they may also be the content.
	if n := ignoredTimes(list); n > 0 {
		are := "of them is a time, which --volatile does not ignore"
		if n > 1 {
			are = "of them are times, which --volatile does not ignore"
		}
		text += fmt.Sprintf("; %d %s", n, are)
	}
	return text + ")"
}

// ignoredTimes returns the number of changes that are ignored because they are times.
func ignoredTimes(list []query.Comparison) (n int) {
	for _, c := range list {
		for i := range c.Changes {
			if c.Changes[i].Ignored == "volatile "+string(ident.Time) {
				n++
			}
		}
	}
	return n
}

// A diffPrinter prints differences as text.
type diffPrinter struct {
	// o are the options.
	o DiffOptions

	// w buffers the output.
	w *bufio.Writer

	// out is the output, with its colours and width.
	out *term.Output

	// rows are the rows of the table that is printed at the end, for the format tsv.
	rows [][]string

	// titled means that a title has been printed, so that the next one follows an empty line.
	titled bool
}

// finish prints the table of the format tsv, and flushes the output.
func (p *diffPrinter) finish() error {
	if err := p.w.Flush(); err != nil {
		return err
	}
	if len(p.rows) == 0 {
		return nil
	}
	legend := ""
	if slices.ContainsFunc(p.rows, func(row []string) bool { return strings.Contains(row[0], severalFrames) }) {
		legend = severalLegend
	}
	return p.out.Table(term.Table{Rows: p.rows, Legend: legend, Columns: []term.Column{
		{Name: "PLACE", Shorten: term.Middle, Min: 34},
		{Name: "DIFFERENCE"},
		{Name: "IN " + strings.ToUpper(p.o.A), Shorten: term.End, Min: 11},
		{Name: "IN " + strings.ToUpper(p.o.B), Shorten: term.End, Min: 11},
		{Name: "IGNORED", Drop: 2},
		{Name: "NAME", Shorten: term.Name, Min: 12, Drop: 1},
	}})
}

// severalLegend explains places such as "several server frames, field 1.2".
const severalLegend = "(several frames: pieces of one text or count, joined before the comparison)"

// title prints the name of a compared pair of calls.
func (p *diffPrinter) title(s string) {
	if p.titled {
		fmt.Fprintln(p.w)
	}
	p.titled = true
	// The nth call of a name in both captures has the title NAME[N], where N counts from 0.
	if at := strings.LastIndexByte(s, '['); at > 0 {
		if n, err := strconv.Atoi(strings.TrimSuffix(s[at+1:], "]")); err == nil {
			s = fmt.Sprintf("Call %d of %s:", n+1, s[:at])
		}
	}
	fmt.Fprintln(p.w, p.out.Bold(term.Clean(s)))
}

// change prints one difference of a comparison.
func (p *diffPrinter) change(of *query.Comparison, c diff.Change) {
	c, fd, name := of.Describe(c)
	def := definition{fd, of.Message(&c)}
	if p.o.Format == "tsv" {
		path := strings.TrimSpace(of.Call + " " + Place(c.Path))
		p.rows = append(p.rows, []string{path, p.o.OpText(c.Op), ValueText(c.Old), ValueText(c.New), c.Ignored, name})
		return
	}
	p.heading(c, name)
	if p.o.Format == "side" {
		p.side(c, def)
	} else {
		p.inline(c, def)
	}
	if p.o.Hex {
		p.bytes("-", c.OldBytes, c.NewBytes, p.out.Red)
		p.bytes("+", c.NewBytes, c.OldBytes, p.out.Green)
	}
}

// heading prints the line above a difference: a mark for its kind, its path, and the field name.
func (p *diffPrinter) heading(c diff.Change, name string) {
	mark := map[diff.Op]string{diff.Add: p.out.Green("+"), diff.Remove: p.out.Red("-"), diff.Modify: "~", diff.Move: ">"}[c.Op]
	line := mark + " " + p.out.Bold(term.Clean(p.o.subject(&c)))
	switch to := term.Clean(Place(c.To)); {
	case c.To == "":
	case c.Op == diff.Move:
		line += p.out.Dim(" (moved to " + to + ")")
	default:
		line += p.out.Dim(" (in " + p.o.B + ": " + to + ")")
	}
	if name != "" {
		line += "  " + p.out.Dim(name)
	}
	if c.Ignored != "" {
		line += "  " + p.out.Dim("(ignored: "+c.Ignored+")")
	}
	fmt.Fprintln(p.w, line)
}

// isWholeCall reports whether a change stands for a whole call that only one of two captures has.
func isWholeCall(c *diff.Change) bool {
	return c.Path == "" && (c.Op == diff.Add || c.Op == diff.Remove) && c.Old == nil && c.New == nil
}

// subject returns what has changed in words: the place of the change (see placeText) or, if its path is empty or ends
// in a dot, a phrase.
func (o *DiffOptions) subject(c *diff.Change) string {
	if in, ok := strings.CutSuffix(c.Path, "."); ok {
		return Place(in) + " (bytes that do not parse as a field)"
	}
	if c.Path != "" {
		return Place(c.Path)
	}
	if isWholeCall(c) {
		return o.OpText(c.Op)
	}
	if _, isBytes := c.Old.([]byte); isBytes || c.Old == nil {
		if _, isBytes = c.New.([]byte); isBytes || c.New == nil {
			return "(bytes that do not parse as fields)"
		}
	}
	return "(whole message)"
}

// inline prints the old value above the new one; similar texts are printed once, with the changed words
// marked.
func (p *diffPrinter) inline(c diff.Change, def definition) {
	old, isOld := c.Old.(string)
	now, isNew := c.New.(string)
	switch {
	case c.Op == diff.Move:
		fmt.Fprintf(p.w, "    moved from %v to %v\n", c.Old, c.New)
	case c.Op == diff.Modify && isOld && isNew && (strings.Contains(old, "\n") || strings.Contains(now, "\n")):
		p.lines(diff.Words(old, now, true))
	case c.Op == diff.Modify && isOld && isNew:
		list := diff.Words(old, now, false)
		if !isMostlyOther(list) {
			fmt.Fprintln(p.w, "    "+p.words(list, p.o.Context, ""))
			return
		}
		p.value("-", c.Old, def, p.out.Red)
		p.value("+", c.New, def, p.out.Green)
	default:
		p.value("-", c.Old, def, p.out.Red)
		p.value("+", c.New, def, p.out.Green)
	}
}

// isMostlyOther reports whether two texts have so little in common that marking changed words is useless.
func isMostlyOther(list []diff.Segment) bool {
	common, all := 0, 0
	for _, s := range list {
		all += len(s.Text)
		if s.Op == "" {
			common += len(s.Text)
		}
	}
	return float64(common) < littleAlike*float64(all)
}

// value prints a value in a colour, with mark ("-" or "+") before each line; nil prints nothing.
func (p *diffPrinter) value(mark string, v any, def definition, colour func(string) string) {
	if v == nil {
		return
	}
	for _, line := range valueLines(v, def, mostValue) {
		fmt.Fprintf(p.w, "    %s\n", colour(mark+" "+line))
	}
}

// words returns a text with its changed words marked. side is "-" to include only the words of the old
// version, "+" for those of the new one. Unchanged words are omitted if they are more than context
// words away from a change.
func (p *diffPrinter) words(list []diff.Segment, context int, side string) string {
	var b strings.Builder
	for i, s := range list {
		text := term.Clean(s.Text)
		switch {
		case s.Op == "":
			b.WriteString(elide(text, context, i > 0, i < len(list)-1))
		case s.Op == diff.Remove && side != "+":
			b.WriteString(p.mark("[-", text, "-]", p.out.Red, side))
		case s.Op == diff.Add && side != "-":
			b.WriteString(p.mark("{+", text, "+}", p.out.Green, side))
		}
	}
	return b.String()
}

// mark marks changed words by a colour or, without colours, by the brackets open and shut.
func (p *diffPrinter) mark(open, s, shut string, colour func(string) string, side string) string {
	if p.out.Color {
		return colour(s)
	}
	if side != "" && s == "" {
		return ""
	}
	return open + s + shut
}

// elide replaces the middle of an unchanged text by "…". context words are kept at its beginning if a
// change precedes it (after), and at its end if one follows (before).
func elide(s string, context int, after, before bool) string {
	words := wordSpan.FindAllStringIndex(s, -1)
	first, last := 0, len(words) // what is left out
	if after {
		first = context
	}
	if before {
		last -= context
	}
	if last-first < 3 { // not worth a mark
		return s
	}

	// Cut at word boundaries, so that the remaining context is readable.
	head, tail := 0, len(s)
	if first > 0 {
		head = words[first-1][1]
	}
	if last < len(words) {
		tail = words[last][0]
	}
	b := s[:head]
	if first > 0 {
		b += " "
	}
	b += "…"
	if last < len(words) || tail == len(s) && before {
		b += " "
	}
	return b + s[tail:]
}

// wordSpan matches a word with adjacent punctuation.
var wordSpan = regexp.MustCompile(`\S+`)

// lines prints the changes of a multi-line text line by line, with some unchanged lines around each
// change.
func (p *diffPrinter) lines(list []diff.Segment) {
	for i, s := range list {
		lines := strings.SplitAfter(s.Text, "\n")
		if n := len(lines); n > 0 && lines[n-1] == "" {
			lines = lines[:n-1]
		}
		mark, colour := "  ", func(s string) string { return s }
		switch s.Op {
		case diff.Remove:
			mark, colour = "- ", p.out.Red
		case diff.Add:
			mark, colour = "+ ", p.out.Green
		}
		for k, line := range lines {
			fromStart, fromEnd := k, len(lines)-1-k
			near := s.Op != "" || i > 0 && fromStart < p.o.Context || i < len(list)-1 && fromEnd < p.o.Context
			if near {
				fmt.Fprintln(p.w, "    "+colour(mark+term.Clean(strings.TrimSuffix(line, "\n"))))
			} else if k == 0 || i > 0 && k == p.o.Context {
				fmt.Fprintln(p.w, "    "+p.out.Dim("…"))
			}
		}
	}
}

// side prints the old value in the left column and the new one in the right column.
func (p *diffPrinter) side(c diff.Change, def definition) {
	width := p.out.Width
	if width < 40 {
		width = sideWidth
	}

	// Seven columns are needed for the indentation and the separator.
	column := (width - 7) / 2
	var left, right []string
	if c.Op == diff.Move {
		left, right = []string{fmt.Sprintf("at %v", c.Old)}, []string{fmt.Sprintf("at %v", c.New)}
	} else {
		if c.Old != nil {
			left = valueLines(c.Old, def, column*mostColumn)
		}
		if c.New != nil {
			right = valueLines(c.New, def, column*mostColumn)
		}
	}

	// Two texts are compared word by word, unless they have little in common.
	old, isOld := c.Old.(string)
	now, isNew := c.New.(string)
	if c.Op == diff.Modify && isOld && isNew {
		if list := diff.Words(old, now, false); !isMostlyOther(list) {
			plain := diffPrinter{o: p.o, out: &term.Output{Writer: io.Discard}}
			left, right = []string{plain.words(list, p.o.Context, "-")}, []string{plain.words(list, p.o.Context, "+")}
		}
	}

	// Both columns are padded to the longer one, so that rows stay side by side.
	l, r := columnLines(left, column), columnLines(right, column)
	for i := range max(len(l), len(r)) {
		a, b := "", ""
		if i < len(l) {
			a = l[i]
		}
		if i < len(r) {
			b = r[i]
		}
		pad := strings.Repeat(" ", max(0, column-term.Cells(a)))
		fmt.Fprintf(p.w, "  %s%s | %s\n", p.out.Red(a), pad, p.out.Green(b))
	}
}

// columnLines breaks lines to a width in columns. Continuation lines get the same indentation.
func columnLines(lines []string, width int) []string {
	var out []string
	for _, s := range lines {
		indent := s[:min(len(s)-len(strings.TrimLeft(s, " ")), width/2)]
		for s != "" {
			head := term.FirstCells(s, width)
			if head == "" {
				head = s // one character, wider than the column
			}
			out = append(out, head)
			if s = s[len(head):]; s != "" {
				s = indent + s
			}
		}
	}
	return out
}

// bytes prints the bytes b of one side of a difference as a hex dump. Bytes that differ from the other
// side are coloured.
func (p *diffPrinter) bytes(mark string, b, other diff.Bytes, colour func(string) string) {
	if len(b.Data) == 0 {
		return
	}
	// Find the common beginning and end; only what differs is coloured.
	head := 0
	for head < min(len(b.Data), len(other.Data)) && b.Data[head] == other.Data[head] {
		head++
	}
	tail := 0
	for tail < min(len(b.Data), len(other.Data))-head && b.Data[len(b.Data)-1-tail] == other.Data[len(other.Data)-1-tail] {
		tail++
	}
	shown := min(len(b.Data), mostHex)
	for at := 0; at < shown; at += hexPerLine {
		end := min(at+hexPerLine, shown)
		var hexes, chars strings.Builder
		for i := at; i < end; i++ {
			// Mark a byte by colour in both columns, hex and text.
			h, ch := fmt.Sprintf("%02x", b.Data[i]), "."
			if b.Data[i] >= 0x20 && b.Data[i] < 0x7f {
				ch = string(rune(b.Data[i]))
			}
			if i >= head && i < len(b.Data)-tail {
				h, ch = colour(h), colour(ch)
			}
			hexes.WriteString(h + " ")
			chars.WriteString(ch)
		}
		fmt.Fprintf(p.w, "    %s %s  %s%s |%s|\n", mark, p.out.Dim(fmt.Sprintf("%06x", b.Off+at)), hexes.String(), strings.Repeat("   ", hexPerLine-(end-at)), chars.String())
	}
	if shown < len(b.Data) {
		fmt.Fprintf(p.w, "    %s %s\n", mark, p.out.Dim(fmt.Sprintf("… %d bytes in total", len(b.Data))))
	}
}
