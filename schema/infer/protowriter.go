package infer

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"maps"
	"regexp"
	"slices"
	"strings"

	"unwire/captures"
	"unwire/decode/kind"
	"unwire/decode/wire"
	"unwire/schema/infer/layout"
	"unwire/schema/infer/vocabulary"
)

// A writer writes one .proto file and records the inferred declaration of each field.
type writer struct {
	// filePlan says what is written: the package, the services and the message types of the file.
	*filePlan

	// Builder collects the text of the file; its Write methods append to it.
	strings.Builder
	// classes are the classes (inferred message types) of the root types, by the name of the root.
	classes map[string]*class
	// queue has the classes that are used as types of fields and still have to be written.
	queue []*class
	// in is the result to which the declarations are added.
	in *Inferred
	// imports are the files that the written file imports.
	imports map[string]bool
	// conventions describe how the programs that wrote the messages encode them, e.g. whether zeros are
	// written.
	conventions conventions
	// keyTexts has the texts that may be keys of maps, which is evidence for or against maps.
	keyTexts keyTexts

	// verbose adds the probabilities and the evidence to the comment of every field, not only of doubtful ones.
	verbose bool
	// hide replaces secrets in examples of values.
	hide *exampleRedactor
}

// file returns the text of the file: the services, and all messages that are used by the root types.
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

		// Each type follows the first type that refers to it, as a reader expects.
		for len(w.queue) > 0 {
			c := w.queue[0]
			w.queue = w.queue[1:]
			w.message(c)
		}
	}
	return w.head() + strings.TrimSuffix(w.String(), "\n")
}

// head returns the beginning of the file: syntax, package and imports.
func (w *writer) head() string {
	var b strings.Builder
	b.WriteString("// Inferred from traffic by unwire. Traffic contains field numbers, but no field names.\n" +
		"// Comments say in how many messages a field was seen, and which other types it may have.\n" +
		"syntax = \"proto3\";\n\n")
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

// service writes a service with its methods.
func (w *writer) service(s *service) {
	if full := strings.TrimPrefix(w.pkg+"."+s.name, "."); full != s.full {
		w.comment("", fmt.Sprintf("On the wire: %q.", s.full))
	}
	fmt.Fprintf(w, "service %s {\n", s.name)
	for _, m := range s.methods {
		var notes []string
		for _, name := range slices.Sorted(maps.Keys(m.evidence.Protocols)) {
			notes = append(notes, fmt.Sprintf("%d %s", m.evidence.Protocols[name], commentText(name)))
		}
		if len(notes) > 0 {
			w.comment("  ", fmt.Sprintf("Calls: %s. At most %s from the client and %d from the server in one call.", strings.Join(notes, ", "), Plural(int64(m.evidence.MostUp), "message"), m.evidence.MostDown))
		}
		client, server := m.evidence.streaming()
		w.WriteString(layout.Declaration("  ",
			fmt.Sprintf("rpc %s(%s%s)", m.name, streamWord(client), w.qualified(w.names[m.root[captures.Up]])),
			fmt.Sprintf("returns (%s%s);", streamWord(server), w.qualified(w.names[m.root[captures.Down]]))))
	}
	w.WriteString("}\n\n")
}

// comment writes text as a comment in lines of limited length.
func (w *writer) comment(indent, text string) { w.WriteString(layout.Comment(indent, text)) }

// streamWord returns the keyword "stream " if is is set, and "" otherwise.
func streamWord(is bool) string {
	if is {
		return "stream "
	}
	return ""
}

// qualified returns the absolute name of a message, which resolves to it in any scope.
func (w *writer) qualified(name string) string {
	if w.pkg == "" {
		return "." + name
	}
	return "." + w.pkg + "." + name
}

// reference returns the shortest name of a message that is safe as the type of a field. A name that begins in
// upper case cannot be mistaken for a field, a oneof or a keyword; one that begins with Field could be an enum
// in the message.
func (w *writer) reference(name string) string {
	if name[0] >= 'A' && name[0] <= 'Z' && !strings.HasPrefix(name, "Field") {
		return name
	}
	return w.qualified(name)
}

// typeOf returns the type of field number of the class parent, whose payloads are of the class c: text as
// written in the file, the full name, and the probability p that it is right. It queues the class to be
// written, or imports the file of a well-known type.
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

// maxTypeName is the length in bytes above which the name of a message type gets a hash in place of its path.
const maxTypeName = 48

// nestedType matches the end of a name that typeName generated.
var nestedType = regexp.MustCompile(`Field[0-9]+(F[0-9]+)*$`)

// typeName returns the name of a message type, derived from the field that contains it: EventField3 for field 3
// of Event, EventField3F1 for field 1 of that. It depends on the path alone, so that more recorded messages do
// not change names.
func typeName(parent string, number int32) string {
	name := fmt.Sprintf("%sField%d", parent, number)
	if nestedType.MatchString(parent) {
		name = fmt.Sprintf("%sF%d", parent, number)
	}
	if len(name) > maxTypeName && nestedType.MatchString(parent) {
		h := fnv.New32a()
		_, _ = h.Write([]byte(name))
		root := name[:strings.LastIndex(name, "Field")]
		name = fmt.Sprintf("%sField%d", root[:min(len(root), maxTypeName/2)], h.Sum32())
	}
	return UpperFirst(name)
}

// A declared is a field as it is written to the .proto file, with the evidence for its declaration.
type declared struct {
	// FieldEvidence is the inferred declaration of the field as it is reported, with its type, confidence and
	// examples.
	FieldEvidence
	// number is the field number.
	number int32
	// typeText is the type as written in the .proto file.
	typeText string
	// unpacked is set if the elements of a repeated number were not packed.
	unpacked bool
	// skip is the reason why the field cannot be declared, or "".
	skip string
	// example describes typical values in a few words, or is "".
	example string
	// enum has the values of a small closed set, in ascending order, or nil.
	enum []int64
	// remark is set if the comment must contain Note even if the field is certain.
	remark bool
	// couldBe is a remark about another possible type with the reason, or "".
	couldBe string
	// comment are the comment lines above the field.
	comment []string
}

// message writes the declaration of the message type that a class stands for.
func (w *writer) message(c *class) {
	fields, oneofs := w.declareFields(c)
	w.messageHead(c)
	fmt.Fprintf(w, "message %s {\n", c.name)
	for _, d := range fields {
		if d.enum != nil && d.skip == "" {
			w.enum(d)
		}
	}
	w.fields(fields, oneofs)
	w.WriteString("}\n\n")
}

// enum writes an enum type for a field with a small closed set of values. Enums of proto3 are open: parsers
// accept other values, too. The first value is zero, as proto3 requires, whether it occurred or not.
func (w *writer) enum(d *declared) {
	fmt.Fprintf(w, "  enum %s {\n", d.typeText)
	if d.enum[0] != 0 {
		fmt.Fprintf(w, "    FIELD%d_UNSPECIFIED = 0;\n", d.number)
	}
	for _, v := range d.enum {
		fmt.Fprintf(w, "    FIELD%d_VALUE_%d = %d;\n", d.number, v, v)
	}
	w.WriteString("  }\n")
}

// Limits for declaring a number as an enum.
const (
	// mostEnum is the maximum number of distinct values, and maxEnum the maximum value.
	mostEnum, maxEnum = 8, 64
	// timesEach is how often each value must occur on average.
	timesEach = 6
)

// closedSet returns the distinct values of a number, in ascending order, if they are few enough to be an enum;
// otherwise nil. typ is the type of the numbers.
func closedSet(s *kind.Varints, typ string) []int64 {
	if typ != "int32" || s.Negative > 0 || s.Max > maxEnum || s.Max < 2 || s.Values == nil || s.Values.Full {
		return nil
	}
	n := int64(len(s.Values.Items))
	if n < 2 || n > mostEnum || s.N < timesEach*n {
		return nil
	}
	var list []int64
	for _, it := range s.Values.Items {
		list = append(list, int64(it.Value))
	}
	slices.Sort(list)
	return list
}

// shape returns the name of a known message structure, such as KeyValue or google.protobuf.Timestamp, that the
// messages of the class have, or "". It is used for naming fields.
func (c *class) shape() string {
	if c.keyed {
		return vocabulary.KeyValue
	}
	return c.known.name
}

// declareFields decides how the fields of the message type c are declared, and which of them are oneofs.
func (w *writer) declareFields(c *class) ([]*declared, []oneof) {
	fields := make([]*declared, 0, len(c.numbers))
	for _, n := range c.numbers {
		fields = append(fields, w.declare(c, n))
	}
	boundPresence(fields)

	// Repeated fields and maps cannot be members of a oneof.
	byNumber := map[int32]*declared{}
	var eligible []int32
	for _, d := range fields {
		byNumber[d.number] = d
		if d.skip == "" && (d.Label == Singular || d.Label == Optional) {
			eligible = append(eligible, d.number)
		}
	}

	// Weak candidates are only mentioned in comments; the others are declared.
	oneofs := findOneofs(c, eligible, w.conventions)
	for _, o := range oneofs {
		if o.candidate {
			c.candidates = append(c.candidates, o)
		}
	}
	oneofs = slices.DeleteFunc(oneofs, func(o oneof) bool { return o.candidate })
	for i := range oneofs {
		for _, n := range oneofs[i].numbers {
			d := byNumber[n]
			d.Oneof = oneofs[i].name()
			d.Label, d.LabelP = Singular, round(max(d.LabelP, oneofs[i].p))
		}
		oneofs[i].settleMembers(byNumber)
	}

	// The comments come last because they describe all decisions.
	for _, d := range fields {
		if d.Oneof == "" {
			d.alsoSettle(d.settleLabel(c.fields[d.number]))
		}
		d.comment = append(d.describe(c.fields[d.number].judgement, w.verbose), d.comment...)
	}
	return fields, oneofs
}

// messageHead writes the comment above the declaration of a message.
func (w *writer) messageHead(c *class) {
	w.comment("", "Inferred from "+Plural(c.samples, "message")+".")
	w.comment("", c.known.note)
	for _, o := range c.candidates {
		w.comment("", fmt.Sprintf("No message has two of the fields %s; probability of a oneof: %.2f. A message with two of them would refute it; "+
			"the client's source code would decide.", numberList(o.numbers), o.p))
	}
	if m := c.mixture(); m != nil {
		m.Message = strings.TrimPrefix(w.pkg+"."+c.name, ".")
		w.in.Mixtures = append(w.in.Mixtures, *m)
		w.comment("", UpperFirst(m.String())+".")
	}
}

// fields writes the fields of a message. A oneof is written where its first member is, unless recorded messages
// show another order of the oneofs.
func (w *writer) fields(fields []*declared, oneofs []oneof) {
	byNumber := map[int32]*declared{}
	for _, d := range fields {
		byNumber[d.number] = d
	}
	written := map[string]bool{}
	inPlace := slices.IsSortedFunc(oneofs, func(a, b oneof) int { return cmp.Compare(a.numbers[0], b.numbers[0]) })
	for _, d := range fields {
		w.in.Fields = append(w.in.Fields, d.FieldEvidence)
		if d.Oneof == "" {
			w.field(d, "  ")
			continue
		}
		if written[d.Oneof] || !inPlace {
			continue
		}
		written[d.Oneof] = true
		i := slices.IndexFunc(oneofs, func(o oneof) bool { return o.name() == d.Oneof })
		w.oneof(&oneofs[i], byNumber)
	}
	// The order of oneofs is that of the samples if it is not that of their numbers.
	if !inPlace {
		for i := range oneofs {
			w.oneof(&oneofs[i], byNumber)
		}
	}
}

// oneof writes a oneof with its members.
func (w *writer) oneof(o *oneof, byNumber map[int32]*declared) {
	if len(o.numbers) == 1 {
		w.comment("  ", "The field follows fields with greater numbers, as Go encodes members of a oneof; no other member occurs.")
	} else {
		w.comment("  ", fmt.Sprintf("No message has two of these fields; probability of a oneof: %.2f.", o.p))
	}
	fmt.Fprintf(w, "  oneof %s {\n", o.name())
	for _, n := range o.numbers {
		w.field(byNumber[n], "    ")
	}
	w.WriteString("  }\n")
}

// maxPresence is the maximum of the number of fields of a message times the number of those with explicit
// presence, because compilers take time in proportion to the product. 5,000,000 allows about 2,000 of each.
const maxPresence = 5_000_000

// boundPresence changes optional fields to singular, with a comment, if maxPresence is exceeded.
func boundPresence(fields []*declared) {
	left := maxPresence / max(len(fields), 1)
	for _, d := range fields {
		if d.Label != Optional {
			continue
		}
		if left--; left < 0 {
			d.Label = Singular
			d.comment = append(d.comment, "Zero values occur on the wire, but the field is not declared optional, because the message has too many fields.")
		}
	}
}

// field writes the declaration of one field, or a comment if it cannot be declared.
func (w *writer) field(d *declared, indent string) {
	for _, line := range d.comment {
		w.comment(indent, line)
	}
	if d.skip != "" {
		w.comment(indent, fmt.Sprintf("Field %d is left out: %s.", d.number, d.skip))
		return
	}
	// A oneof's members have no label.
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
	w.WriteString(layout.Declaration(indent, label+d.typeText, fmt.Sprintf("field_%d = %d%s;", d.number, d.number, option)))
}

// declare decides how the field called number is declared, except whether it is in a oneof.
func (w *writer) declare(c *class, number int32) *declared {
	f := c.fields[number]
	v := f.judgement
	full := strings.TrimPrefix(w.pkg+"."+c.name, ".")
	d := &declared{number: number, FieldEvidence: FieldEvidence{
		Message: full, Number: number, Samples: c.samples, Seen: f.Seen, Occurrences: f.Occurs,
		Kind: v.Kind, P: v.P, TypeP: 1, Alternatives: v.Others,
	}}

	// An empty list, since JSON must have [] and not null.
	if d.Alternatives == nil {
		d.Alternatives = []kind.Alternative{}
	}
	d.Label, d.LabelP = labelOf(f.Field, v, c.distinctShare(), w.conventions)

	// The kind decides which evidence determines the type.
	switch v.Kind {
	case wire.KindMessage:
		if !w.declareMap(d, f) {
			d.typeText, d.Type, d.TypeP = w.typeOf(f.childClass, c, number)
			d.Known = f.childClass.knownType()
		}
		if d.Known != nil {
			d.Suggested = vocabulary.Known(d.Known.Name)
		}
		d.Settle = settleMessage(f)
	case wire.KindString, wire.KindBytes:
		d.typeText, d.Type = string(v.Kind), string(v.Kind)
		d.Settle = settlePayload(f, v)
		d.Note = w.payloadNote(f.Len)
		d.example = w.payloadExample(f.Len)
		if texts, _ := f.Len.Examples(); v.Kind == wire.KindString {
			d.Suggested = vocabulary.Text(texts)
		}
	case wire.KindGroup:
		d.skip, d.Type, d.typeText = "groups cannot be declared in proto3", "group", "group"
	default:
		t := c.numberType(number)
		d.typeText, d.Type, d.TypeP, d.Note, d.Settle = t.Name, t.Name, t.P, t.Note, t.ResolvedBy
		if few := fewValues(f.Varint); few != "" && v.Kind == wire.KindVarint && t.Name != "bool" {
			d.Note += ", " + few
			d.example = few
			if d.enum = closedSet(f.Varint, t.Name); d.enum != nil {
				d.typeText = fmt.Sprintf("Field%d", number)
				d.Type = full + "." + d.typeText
				d.example = ""
			}
		}

		// A type chosen by the user replaces every estimate.
		if chosen := f.chosenType(); chosen != "" {
			d.typeText, d.Type, d.TypeP, d.Settle, d.enum = chosen, chosen, 1, "", nil
		}
		d.unpacked = v.Kind != wire.KindPacked && d.Label == Repeated
	}

	w.override(c, f, d)
	return d
}

// override changes the declaration d where something has precedence over the evidence: numbers that definitions
// must not use, names of fields in known message structures, and the user's choice.
func (w *writer) override(c *class, f *classField, d *declared) {
	if isReserved(d.number) {
		d.skip = "the numbers 19000 to 19999 are reserved to protobuf itself"
	}
	for _, note := range []string{f.notMessage, f.chosenNote()} {
		if note == "" {
			continue
		}
		d.remark = true
		if d.Note != "" {
			d.Note += "; "
		}
		d.Note += note
	}
	if names := vocabulary.Message(c.shape()); names != nil {
		d.Suggested = names[d.number]
	}
	if f.chosenFits {
		d.Settle = ""
	}
}

// numberType returns the numeric type of a field with its probability. If the message is like
// google.protobuf.Timestamp, field 2 (nanos) is an int32, as in that type.
func (c *class) numberType(number int32) kind.TypeEstimate {
	f := c.fields[number]
	if c.known.name == timestampType && number == 2 {
		return kind.TypeEstimate{Name: "int32", P: c.known.p, Note: fmt.Sprintf("%d to %d", f.Varint.Min, f.Varint.Max), ResolvedBy: "a time with a fraction of a second"}
	}
	return kind.NumberType(f.Field, f.judgement, kind.Use{Number: number, Fresh: c.distinctShare()})
}
