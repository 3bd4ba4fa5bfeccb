package infer

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"

	"unwire/captures"
	"unwire/decode/kind"
	"unwire/decode/wire"
)

// A writer writes one file of definitions and the judgements of its fields.
type writer struct {
	*plan
	strings.Builder
	classes map[string]*class // by root
	queue   []*class
	in      *Inferred
	imports map[string]bool
	habit   habit
	texts   vocabulary
	hide    *hider
}

// file returns the definitions of everything that is reached from the roots.
func (w *writer) file() string {
	for _, s := range w.services {
		w.service(s)
	}
	for _, root := range w.roots {
		if c := w.classes[root]; c != nil {
			w.queue = append(w.queue, c)
		} else {
			fmt.Fprintf(w, "// Never seen.\nmessage %s {}\n\n", w.names[root])
		}
		for len(w.queue) > 0 {
			c := w.queue[0]
			w.queue = w.queue[1:]
			w.message(c)
		}
	}
	return w.head() + strings.TrimSuffix(w.String(), "\n")
}

// head is what stands above the definitions.
func (w *writer) head() string {
	var b strings.Builder
	b.WriteString("// Inferred from traffic by unwire. Field names are not on the wire; numbers are.\n// Of each field: in how many of its type's messages it was seen, and how sure its reading is.\nsyntax = \"proto3\";\n\n")
	if w.pkg != "" {
		fmt.Fprintf(&b, "package %s;\n\n", w.pkg)
	}
	for _, file := range slices.Sorted(maps.Keys(w.imports)) {
		fmt.Fprintf(&b, "import %q;\n", file)
	}
	if len(w.imports) > 0 {
		b.WriteByte('\n')
	}
	return b.String()
}

func (w *writer) service(s *service) {
	if full := strings.TrimPrefix(w.pkg+"."+s.name, "."); full != s.full {
		fmt.Fprintf(w, "// On the wire: %q.\n", s.full)
	}
	fmt.Fprintf(w, "service %s {\n", s.name)
	for _, m := range s.methods {
		var notes []string
		for _, name := range slices.Sorted(maps.Keys(m.evidence.Protocols)) {
			notes = append(notes, fmt.Sprintf("%d %s", m.evidence.Protocols[name], commentText(name)))
		}
		if len(notes) > 0 {
			fmt.Fprintf(w, "  // Calls: %s. At most %d messages up, %d down.\n", strings.Join(notes, ", "), m.evidence.MostUp, m.evidence.MostDown)
		}
		client, server := m.evidence.streaming()
		fmt.Fprintf(w, "  rpc %s(%s%s) returns (%s%s);\n", m.name,
			streamWord(client), w.qualified(w.names[m.root[captures.Up]]),
			streamWord(server), w.qualified(w.names[m.root[captures.Down]]))
	}
	w.WriteString("}\n\n")
}

func streamWord(is bool) string {
	if is {
		return "stream "
	}
	return ""
}

// qualified is a message's name as it resolves from anywhere.
func (w *writer) qualified(name string) string {
	if w.pkg == "" {
		return "." + name
	}
	return "." + w.pkg + "." + name
}

// reference is a message's name as a field's type. Types that begin in upper
// case cannot be mistaken for a field, a oneof or a keyword.
func (w *writer) reference(name string) string {
	if name[0] >= 'A' && name[0] <= 'Z' {
		return name
	}
	return w.qualified(name)
}

// typeOf names the class of a field of parent, as it stands in the file and in
// full, and how sure that is. It sees to it that it is written, or imported.
func (w *writer) typeOf(c, parent *class, number int32) (text, full string, p float64) {
	c = c.find()
	if c.known.written() {
		w.imports[c.known.file] = true
		return "." + c.known.name, c.known.name, c.known.p
	}
	if c.name == "" {
		c.name = w.uniqueName(typeName(parent.name, number))
		w.queue = append(w.queue, c)
	}
	return w.reference(c.name), strings.TrimPrefix(w.qualified(c.name), "."), 1
}

// typeName names the type of a field without a name.
func typeName(parent string, number int32) string {
	return UpperFirst(fmt.Sprintf("%sField%d", parent, number))
}

// A declared field is what is written of a field, and the judgement of it.
type declared struct {
	FieldEvidence
	number   int32
	typeText string // as it stands in the file
	unpacked bool
	skip     string // why it cannot be declared
	comment  []string
}

// message writes the definition of a type.
func (w *writer) message(c *class) {
	fields, oneofs := w.declareFields(c)
	w.messageHead(c)
	fmt.Fprintf(w, "message %s {\n", c.name)
	w.fields(fields, oneofs)
	w.WriteString("}\n\n")
}

// declareFields decides how the fields of c are declared, and which are of oneofs.
func (w *writer) declareFields(c *class) ([]*declared, []choice) {
	fields := make([]*declared, 0, len(c.numbers))
	for _, n := range c.numbers {
		fields = append(fields, w.declare(c, n))
	}
	boundPresence(fields)
	byNumber := map[int32]*declared{}
	var eligible []int32
	for _, d := range fields {
		byNumber[d.number] = d
		if d.skip == "" && (d.Label == Singular || d.Label == Optional) {
			eligible = append(eligible, d.number)
		}
	}

	oneofs := choices(c, eligible, w.habit)
	for i := range oneofs {
		for _, n := range oneofs[i].numbers {
			d := byNumber[n]
			d.Oneof = oneofs[i].name()
			d.Label, d.LabelP = Singular, round(max(d.LabelP, oneofs[i].p))
		}
		oneofs[i].settleMembers(byNumber)
	}

	// Only now it is known what is said of each.
	for _, d := range fields {
		if d.Oneof == "" {
			d.alsoSettle(d.settleLabel(c.fields[d.number]))
		}
		d.comment = append(d.describe(c.fields[d.number].judgement), d.comment...)
	}
	return fields, oneofs
}

// messageHead writes the comment above a definition.
func (w *writer) messageHead(c *class) {
	fmt.Fprintf(w, "// %s.\n", Plural(c.samples, "message"))
	if c.known.note != "" {
		fmt.Fprintf(w, "// %s\n", c.known.note)
	}
	if c.deep && len(c.numbers) == 0 {
		fmt.Fprintf(w, "// What is inside was not looked into: it is %d levels down.\n", kind.MaxDepth)
		w.in.Deep = true
	}
	if m := c.mixture(); m != nil {
		m.Message = strings.TrimPrefix(w.pkg+"."+c.name, ".")
		w.in.Mixtures = append(w.in.Mixtures, *m)
		fmt.Fprintf(w, "// %s.\n", UpperFirst(m.String()))
	}
}

// fields writes the fields of a definition, those of a oneof with its first one.
func (w *writer) fields(fields []*declared, oneofs []choice) {
	byNumber := map[int32]*declared{}
	for _, d := range fields {
		byNumber[d.number] = d
	}
	written := map[string]bool{}
	for _, d := range fields {
		w.in.Fields = append(w.in.Fields, d.FieldEvidence)
		if d.Oneof == "" {
			w.field(d, "  ")
			continue
		}
		if written[d.Oneof] {
			continue
		}
		written[d.Oneof] = true
		i := slices.IndexFunc(oneofs, func(o choice) bool { return o.name() == d.Oneof })
		fmt.Fprintf(w, "  // Never two of these together; p %.2f.\n  oneof %s {\n", oneofs[i].p, d.Oneof)
		for _, n := range oneofs[i].numbers {
			w.field(byNumber[n], "    ")
		}
		w.WriteString("  }\n")
	}
}

// maxPresence bounds the product of a message's fields and of those among them that
// are declared optional, for which compilers take time: two thousand of each.
const maxPresence = 5_000_000

// boundPresence takes the word optional off where there are too many; it is told in
// a comment then.
func boundPresence(fields []*declared) {
	left := maxPresence / max(len(fields), 1)
	for _, d := range fields {
		if d.Label != Optional {
			continue
		}
		if left--; left < 0 {
			d.Label = Singular
			d.comment = append(d.comment, "Zeros were written; it is not declared optional, for there are so many fields.")
		}
	}
}

func (w *writer) field(d *declared, indent string) {
	for _, line := range d.comment {
		fmt.Fprintf(w, "%s// %s\n", indent, line)
	}
	if d.skip != "" {
		fmt.Fprintf(w, "%s// Field %d is left out: %s.\n", indent, d.number, d.skip)
		return
	}
	label := ""
	if d.Oneof == "" {
		switch d.Label {
		case Repeated:
			label = "repeated "
		case Optional:
			label = "optional "
		}
	}
	option := ""
	if d.unpacked {
		option = " [packed = false]"
	}
	fmt.Fprintf(w, "%s%s%s field_%d = %d%s;\n", indent, label, d.typeText, d.number, d.number, option)
}

// declare decides how a field of c is declared.
func (w *writer) declare(c *class, number int32) *declared {
	f := c.fields[number]
	v := f.judgement
	full := strings.TrimPrefix(w.pkg+"."+c.name, ".")
	d := &declared{number: number, FieldEvidence: FieldEvidence{
		Message: full, Number: number, Samples: c.samples, Seen: f.Seen, Occurrences: f.Occurs,
		Kind: v.Kind, P: v.P, TypeP: 1, Alternatives: v.Others,
	}}
	if d.Alternatives == nil {
		d.Alternatives = []kind.Alternative{}
	}
	d.Label, d.LabelP = labelOf(f.Field, v, c.fresh(), w.habit)
	switch v.Kind {
	case wire.KindMessage:
		if !w.declareMap(d, f) {
			d.typeText, d.Type, d.TypeP = w.typeOf(f.kid, c, number)
			d.Known = f.kid.knownType()
		}
		d.Settle = settleMessage(f)
	case wire.KindString, wire.KindBytes:
		d.typeText, d.Type = string(v.Kind), string(v.Kind)
		d.Settle = settlePayload(f, v)
		d.Note = w.payloadNote(f.Len)
	case wire.KindGroup:
		d.skip, d.Type, d.typeText = "groups cannot be declared in proto3", "group", "group"
	default:
		t := c.numberType(number)
		d.typeText, d.Type, d.TypeP, d.Note, d.Settle = t.Name, t.Name, t.P, t.Note, t.Settle
		if few := fewValues(f.Varint); few != "" && v.Kind == wire.KindVarint && t.Name != "bool" {
			d.Note += ", " + few
		}
		if chosen := f.chosenType(); chosen != "" {
			d.typeText, d.Type, d.TypeP, d.Settle = chosen, chosen, 1, ""
		}
		d.unpacked = v.Kind != wire.KindPacked && d.Label == Repeated
	}
	if protowire.Number(number) >= protowire.FirstReservedNumber && protowire.Number(number) <= protowire.LastReservedNumber {
		d.skip = "the numbers 19000 to 19999 are reserved to protobuf itself"
	}
	if note := f.chosenNote(); note != "" {
		if d.Note != "" {
			d.Note += "; "
		}
		d.Note += note
	}
	if f.chosenFits {
		d.Settle = ""
	}
	return d
}

// numberType is the type of a field of numbers, within its message.
func (c *class) numberType(number int32) kind.TypeEstimate {
	f := c.fields[number]
	if c.known.name == timestampType && number == 2 {
		return kind.TypeEstimate{Name: "int32", P: c.known.p, Note: fmt.Sprintf("%d to %d", f.Varint.Min, f.Varint.Max), Settle: "a time that is no whole second"}
	}
	return kind.NumberType(f.Field, f.judgement, kind.Use{Number: number, Fresh: c.fresh()})
}

// Below these a field's comment says what would settle the doubt.
const (
	doubtfulKind = 0.95
	doubtfulType = 0.5
	// The same for how often it is in a message.
	doubtfulLabel = 0.8
)

// describe writes the field's comment.
func (d *declared) describe(v kind.Judgement) []string {
	line := fmt.Sprintf("Seen in %d of %d", d.Seen, d.Samples)
	if d.Occurrences > d.Seen {
		line += fmt.Sprintf(", %d times", d.Occurrences)
	}
	if d.Note != "" {
		line += "; " + d.Note
	}
	line += fmt.Sprintf("; %s %.2f", d.Kind, d.P)
	if d.TypeP < 1 && d.Kind != wire.KindMessage {
		line += fmt.Sprintf(" (%s %.2f)", d.Type, d.TypeP)
	}
	for i, a := range d.Alternatives {
		if i < 3 && a.P >= 0.01 {
			line += fmt.Sprintf(", or %s %.2f", a.Kind, a.P)
		}
	}
	if d.Label == Map {
		line += fmt.Sprintf("; a map, not a list, %.2f", d.LabelP)
	} else if d.LabelP < doubtfulLabel {
		line += fmt.Sprintf("; %s %.2f", d.Label, d.LabelP)
	}
	list := []string{line + "."}
	if d.Settle != "" && (d.P < doubtfulKind || d.TypeP < doubtfulType || d.LabelP < doubtfulLabel) {
		list = append(list, fmt.Sprintf("In doubt; what would tell: %s.", d.Settle))
	}
	if v.Odd > 0 {
		list = append(list, fmt.Sprintf("%s with another wire type, which this declaration does not read.", Plural(v.Odd, "occurrence")))
	}
	return list
}

// Plural returns a count with its noun: "1 message", "2 messages".
func Plural(n int64, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// payloadNote says what text or bytes have in common, and some of them.
func (w *writer) payloadNote(l *kind.Payloads) string {
	if l == nil {
		return ""
	}
	size := fmt.Sprintf("%d to %d bytes", l.Shortest, l.Longest)
	if l.Shortest == l.Longest {
		size = fmt.Sprintf("%d bytes", l.Longest)
	}
	if form := l.Forms.Of(l.N); form != "" {
		return size + ", always " + form
	}
	if examples := w.hide.examples(l); examples != "" {
		return size + ", " + examples
	}
	if len(l.Values.Items) > 2 && len(l.Prefix) > 2 && len(l.Prefix) < kind.PrefixLen && utf8.Valid(l.Prefix) {
		size += fmt.Sprintf(", all begin %q", l.Prefix)
	}
	return size
}

func settleMessage(f *classField) string {
	switch {
	case f.Len.Empty == f.Len.N:
		return "a payload that is not empty"
	case f.judgement.P < 0.95:
		return "a payload that is no message, or more samples"
	}
	return ""
}

func settlePayload(f *classField, v kind.Judgement) string {
	switch {
	case v.Kind == wire.KindString:
		return "a payload that is no UTF-8 would make it bytes"
	case !f.Len.NotText:
		return "payloads that are text"
	}
	return ""
}

// commentText makes foreign text safe to stand in a comment's line.
func commentText(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r == utf8.RuneError {
			return '?'
		}
		return r
	}, s[:min(len(s), MaxName)])
}
