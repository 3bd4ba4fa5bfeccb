package help

import (
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"unwire/cmd/internal/options"
)

const (
	minWidth = 40  // of a terminal; help is never narrower
	maxWidth = 100 // lines that are longer are hard to read
	noWidth  = 80  // where there is no terminal

	// maxName is the longest name, in columns, that has its description on the same line.
	maxName = 28
)

// Style marks up headings in a help text. Its zero value is plain text.
type Style struct {
	// Bold formats a heading; nil leaves it plain.
	Bold func(string) string
}

// Text writes the page as text, wrapped to a width in columns; 0 means that there is no terminal.
func (p *Page) Text(w io.Writer, width int, style Style) error {
	if width <= 0 {
		width = noWidth
	}
	width = min(max(width, minWidth), maxWidth)
	bold := style.Bold
	if bold == nil {
		bold = func(s string) string { return s }
	}

	// The order is that in which readers need it: what, usage, examples, flags, and the prose last.
	var b strings.Builder
	b.WriteString(wrap(p.Short, width, "", "") + "\n")
	heading := func(title string) { b.WriteString("\n" + bold(title+":") + "\n") }
	if len(p.Usage) > 0 {
		heading("Usage")
		for _, line := range p.Usage {
			b.WriteString(wrap(line, width, "  ", "      ") + "\n")
		}
	}
	if len(p.Aliases) > 0 {
		heading("Aliases")
		b.WriteString("  " + strings.Join(p.Aliases, ", ") + "\n")
	}
	if len(p.Arguments) > 0 {
		heading("Arguments")
		writeRows(&b, p.Arguments, width)
	}
	if len(p.Examples) > 0 {
		heading("Examples")
		for _, line := range p.Examples {
			b.WriteString(wrapExample(line, width) + "\n")
		}
	}
	for _, s := range p.sections() {
		heading(s.Title)
		writeRows(&b, s.Rows, width)
	}
	if len(p.Reads) > 0 {
		heading("Environment")
		rows := make([]row, len(p.Reads))
		for i, v := range p.Reads {
			rows[i] = row{v.Name, v.Meaning}
		}
		writeRows(&b, rows, width)
	}
	if p.Long != "" {
		b.WriteString("\n" + wrapProse(p.Long, width) + "\n")
	}
	if len(p.Groups) > 0 {
		fmt.Fprintf(&b, "\n'%s COMMAND --help' prints the help of a command.\n", p.Path)
	}
	if !strings.Contains(p.Path, " ") {
		fmt.Fprintf(&b, "'%s help %s' lists the environment variables.\n", p.Path, environmentTopic)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// sections returns the lists of commands, of flags, and of the values of flags.
func (p *Page) sections() []section {
	list := slices.Concat(p.Groups, p.Flags)
	if len(p.Values) > 0 {
		// The flags of all commands stay last.
		last := len(list)
		if last > 0 && list[last-1].Title == options.TopicGlobal {
			last--
		}
		list = slices.Insert(list, last, section{"Values of flags", p.Values})
	}
	return list
}

// writeRows writes commands or flags with their descriptions in a second column. The description of a
// long name begins on the next line.
func writeRows(b *strings.Builder, rows []row, width int) {
	column := 0
	for _, r := range rows {
		if n := utf8.RuneCountInString(r.Name); n <= maxName {
			column = max(column, n)
		}
	}
	column = min(column, width/3) + 4
	indent := strings.Repeat(" ", column)
	for _, r := range rows {
		first := "  " + r.Name
		if n := utf8.RuneCountInString(first); n+2 <= column {
			first += strings.Repeat(" ", column-n)
		} else {
			b.WriteString(strings.TrimRight(first, " ") + "\n")
			first = indent
		}
		b.WriteString(wrap(r.Text, width, first, indent) + "\n")
	}
}

// tableRow matches an indented line with two columns: a name, at least two spaces, and a description.
var tableRow = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^( +\S+(?: \S+)* {2,})(\S.*)$`) })

// wrapProse wraps paragraphs to width. Indented lines are kept as lines, and folded only if they are too wide. If
// such a line has two columns, the second one is folded: it may continue on further lines that are indented as
// far as the column.
func wrapProse(text string, width int) string {
	var out, paragraph []string
	flush := func() {
		if len(paragraph) > 0 {
			out = append(out, wrap(strings.Join(paragraph, " "), width, "", ""))
			paragraph = nil
		}
	}
	lines := strings.Split(text, "\n")
	for i := 0; i < len(lines); i++ {
		line := lines[i]
		trimmed := strings.TrimLeft(line, " ")
		row := tableRow().FindStringSubmatch(line)
		switch {
		case trimmed == "":
			flush()
			out = append(out, "")
		case row != nil && utf8.RuneCountInString(row[1]) <= width/2:
			flush()
			indent := strings.Repeat(" ", utf8.RuneCountInString(row[1]))
			for i+1 < len(lines) && strings.HasPrefix(lines[i+1], indent) {
				i++
				row[2] += " " + strings.TrimSpace(lines[i])
			}
			out = append(out, wrap(row[2], width, row[1], indent))
		case trimmed != line:
			flush()
			out = append(out, foldLine(line, width))
		default:
			paragraph = append(paragraph, line)
		}
	}
	flush()
	return strings.Join(out, "\n")
}

// foldLine wraps a line that is wider than width. Continuation lines are indented by two more columns
// than the line itself.
func foldLine(line string, width int) string {
	if utf8.RuneCountInString(line) <= width {
		return line
	}
	indent := len(line) - len(strings.TrimLeft(line, " "))
	return wrap(line[indent:], width, line[:indent], line[:indent]+"  ")
}

// wrap breaks text between words into lines of at most width columns; a longer word is not broken. The
// first line is prefixed with first, all others with rest.
func wrap(text string, width int, first, rest string) string {
	var b strings.Builder
	b.WriteString(first)
	at, empty := utf8.RuneCountInString(first), true
	for word := range strings.FieldsSeq(text) {
		n := utf8.RuneCountInString(word)
		switch {
		case empty:
		case at+1+n > width:
			b.WriteString("\n" + rest)
			at = utf8.RuneCountInString(rest)
		default:
			b.WriteByte(' ')
			at++
		}
		b.WriteString(word)
		at += n
		empty = false
	}
	return b.String()
}

// wrapExample breaks a line of the examples, so that it can still be copied into a shell: a comment into several
// comments, because a backslash does not continue a comment, and a command with backslashes.
func wrapExample(line string, width int) string {
	if comment, ok := strings.CutPrefix(line, "#"); ok {
		return wrap(comment, width, "  # ", "  # ")
	}
	return wrapShell(line, width)
}

// wrapShell breaks a command line between words with backslashes. It does not break quoted text, and keeps a flag with
// its value, and > with the name of the file.
func wrapShell(line string, width int) string {
	const first, rest = "  ", "      "
	if utf8.RuneCountInString(first+line) <= width {
		return first + line
	}

	// Join the words that stay together. A flag without a value also stays with the word after it.
	var units []string
	for _, word := range shellWords(line) {
		last := len(units) - 1
		if last >= 0 && !strings.ContainsAny(word[:1], "-|&<>") && staysWithNext(units[last]) {
			units[last] += " " + word
		} else {
			units = append(units, word)
		}
	}

	var b strings.Builder
	b.WriteString(first)
	at := len(first)
	for i, unit := range units {
		n := utf8.RuneCountInString(unit)
		switch {
		case i == 0:
		case at+1+n > width-2:
			b.WriteString(" \\\n" + rest)
			at = len(rest)
		default:
			b.WriteByte(' ')
			at++
		}
		b.WriteString(unit)
		at += n
	}
	return b.String()
}

// staysWithNext reports whether word is a flag or a redirection, which are hard to read if a line ends after them.
func staysWithNext(word string) bool {
	return word == ">" || word == "<" || strings.HasPrefix(word, "-") && word != "-" && word != "--" && !strings.ContainsAny(word, "= ")
}

// shellWords splits a command line at spaces outside quotes.
func shellWords(line string) []string {
	quote := rune(0)
	return strings.FieldsFunc(line, func(r rune) bool {
		switch {
		case quote != 0:
			if r == quote {
				quote = 0
			}
		case r == '\'' || r == '"':
			quote = r
		default:
			return r == ' '
		}
		return false
	})
}
