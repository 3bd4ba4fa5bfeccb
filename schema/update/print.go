package update

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"

	"unwire/schema"
	"unwire/schema/check"
	"unwire/schema/compare"
	"unwire/schema/jsonname"
)

// A printer formats declarations of the source as .proto text, in the style of the block in the user's file
// into which they are inserted.
type printer struct {
	// m is the update pass to which the printer belongs.
	m *updatePass
	// doc is the document into which the text is inserted.
	doc *document
	// scope is the full name of the message or service into which the text is inserted.
	scope protoreflect.FullName
	// b is the block whose style is used; nil inside a new type.
	b *block
	// pad is the current indentation.
	pad string
}

// printer returns a printer for insertions into block b. scope is the block's full name.
func (m *updatePass) printer(d *document, scope protoreflect.FullName, b *block) *printer {
	return &printer{m: m, doc: d, scope: scope, b: b, pad: b.indent()}
}

// addConflict records that the declaration d could not be written, with the reason.
func (p *printer) addConflict(d protoreflect.Descriptor, why string) {
	number := int32(0)
	if f, ok := d.(protoreflect.FieldDescriptor); ok {
		number = int32(f.Number())
	}
	p.m.addChange(Change{Op: Conflict, Element: string(p.scope.Append(d.Name())), Kind: kindOf(d), Number: number, Note: why, File: p.doc.name})
}

// field returns the text of a field's declaration. inOneof is set if it is inside a oneof. ok is false if it
// cannot be written.
func (p *printer) field(w protoreflect.FieldDescriptor, inOneof bool) (string, bool) {
	typ, ok := p.typeOf(w, inOneof)
	if !ok {
		return "", false
	}
	b := p.b
	if b == nil {
		b = &block{doc: p.doc}
	}
	line := b.aligned(p.pad, typ, string(w.Name()), itoa(int(w.Number())), p.fieldOptions(w, inOneof))
	if text := p.m.src.Comments[string(w.FullName())]; text != "" {
		// A block comment, since something may follow on the line.
		end := len(strings.TrimRight(line, "\r\n"))
		line = line[:end] + " /* " + text + " */" + line[end:]
	}
	return line, true
}

// confirm records in the evidence file that the source confirms a written field.
func (p *printer) confirm(f protoreflect.FieldDescriptor) {
	p.m.log.confirm(string(p.scope.Append(f.Name())), compare.FieldElement, int32(f.Number()), p.m.src, "")
}

// typeOf returns the label and the type of a field as text. ok is false if the type cannot be written.
func (p *printer) typeOf(w protoreflect.FieldDescriptor, inOneof bool) (string, bool) {
	if w.Kind() == protoreflect.GroupKind && p.doc.syntax != "editions" {
		p.addConflict(w, "unwire does not add groups")
		return "", false
	}
	if w.IsMap() {
		value, ok := p.singleType(w.MapValue(), w)
		return "map<" + w.MapKey().Kind().String() + ", " + value + ">", ok
	}

	typ, ok := p.singleType(w, w)
	switch {
	case inOneof:
	case w.IsList():
		typ = "repeated " + typ
	case p.doc.syntax == "proto2" && w.Cardinality() == protoreflect.Required:
		typ = "required " + typ
	case p.doc.syntax == "proto2", p.doc.syntax == "proto3" && w.HasOptionalKeyword(),
		p.doc.syntax == "proto3" && w.HasPresence() && w.Message() == nil && w.ContainingOneof() == nil:
		typ = "optional " + typ
	}
	return typ, ok
}

// singleType returns the type of w without its label. If it cannot be written, ok is false and a conflict is
// recorded for the field at.
func (p *printer) singleType(w, at protoreflect.FieldDescriptor) (string, bool) {
	switch {
	case w.Message() != nil:
		return p.ref(w.Message(), at)
	case w.Enum() != nil:
		return p.ref(w.Enum(), at)
	}
	return w.Kind().String(), true
}

// fieldOptions returns the options of a field as text, separated by commas.
func (p *printer) fieldOptions(w protoreflect.FieldDescriptor, inOneof bool) string {
	var list []string
	if o, ok := w.Options().(*descriptorpb.FieldOptions); ok && o.GetDeprecated() {
		list = append(list, "deprecated = true")
	}
	if w.JSONName() != jsonname.Of(string(w.Name())) && w.JSONName() != "" {
		list = append(list, "json_name = "+strconv.Quote(w.JSONName()))
	}
	list = append(list, p.encodingOptions(w, inOneof)...)
	if w.HasDefault() && p.doc.syntax != "proto3" && w.Enum() == nil {
		list = append(list, "default = "+defaultText(w))
	}
	return strings.Join(list, ", ")
}

// encodingOptions returns the options that are needed for the same encoding if the file's syntax has another
// default than that of the source.
func (p *printer) encodingOptions(w protoreflect.FieldDescriptor, inOneof bool) []string {
	var list []string
	if check.Packable(w) {
		switch {
		case p.doc.syntax == "proto2" && w.IsPacked():
			list = append(list, "packed = true")
		case p.doc.syntax == "proto3" && !w.IsPacked():
			list = append(list, "packed = false")
		case p.doc.syntax == "editions" && !w.IsPacked():
			list = append(list, "features.repeated_field_encoding = EXPANDED")
		}
	}
	if p.doc.syntax == "editions" {
		if !w.HasPresence() && !w.IsList() && !w.IsMap() && !inOneof {
			list = append(list, "features.field_presence = IMPLICIT")
		}
		if w.Kind() == protoreflect.GroupKind {
			list = append(list, "features.message_encoding = DELIMITED")
		}
	}
	return list
}

// defaultText returns the default value of a field as in a .proto file.
func defaultText(w protoreflect.FieldDescriptor) string {
	v := w.Default()
	switch w.Kind() {
	case protoreflect.StringKind:
		return quoted([]byte(v.String()))
	case protoreflect.BytesKind:
		return quoted(v.Bytes())
	case protoreflect.FloatKind, protoreflect.DoubleKind:
		switch f := v.Float(); {
		case math.IsInf(f, 1):
			return "inf"
		case math.IsInf(f, -1):
			return "-inf"
		case math.IsNaN(f):
			return "nan"
		}
	}
	return v.String()
}

// quoted returns a string literal of a .proto file for any bytes.
func quoted(data []byte) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, c := range data {
		switch {
		case c == '"' || c == '\\':
			b.WriteByte('\\')
			b.WriteByte(c)
		case c < ' ' || c >= 0x7f:
			fmt.Fprintf(&b, `\%03o`, c)
		default:
			b.WriteByte(c)
		}
	}
	b.WriteByte('"')
	return b.String()
}

// valueOptions returns the options of an enum value as text.
func valueOptions(v protoreflect.EnumValueDescriptor) string {
	if o, ok := v.Options().(*descriptorpb.EnumValueOptions); ok && o.GetDeprecated() {
		return "deprecated = true"
	}
	return ""
}

// oneof returns the text of a oneof's declaration, and the lowest number of its members. ok is false if no
// member can be written.
func (p *printer) oneof(o protoreflect.OneofDescriptor) (text string, least int, ok bool) {
	// Members are indented by one step and have no neighbours to align with.
	inner := *p
	inner.pad, inner.b = p.pad+p.doc.indentUnit, nil
	var b strings.Builder
	least = math.MaxInt
	for i := range o.Fields().Len() {
		f := o.Fields().Get(i)
		line, ok := inner.field(f, true)
		if !ok {
			continue
		}
		inner.confirm(f)
		b.WriteString(line + "\n")
		least = min(least, int(f.Number()))
	}
	if b.Len() == 0 {
		return "", 0, false
	}
	return p.pad + "oneof " + string(o.Name()) + " {\n" + b.String() + p.pad + "}", least, true
}

// method returns the text of a method's declaration. ok is false if it cannot be written.
func (p *printer) method(w protoreflect.MethodDescriptor) (string, bool) {
	side := func(stream bool, d protoreflect.MessageDescriptor) (string, bool) {
		name, ok := p.ref(d, w)
		if stream {
			name = "stream " + name
		}
		return "(" + name + ")", ok
	}

	// Both types must be known to the file, or the method is left out.
	in, ok := side(w.IsStreamingClient(), w.Input())
	out, ok2 := side(w.IsStreamingServer(), w.Output())
	if !ok || !ok2 {
		return "", false
	}

	text := p.pad + "rpc " + string(w.Name()) + in + " returns " + out
	var options []string
	if o, ok := w.Options().(*descriptorpb.MethodOptions); ok {
		if o.GetDeprecated() {
			options = append(options, "deprecated = true")
		}
		if o != nil && o.IdempotencyLevel != nil {
			options = append(options, "idempotency_level = "+o.GetIdempotencyLevel().String())
		}
	}

	// A method without options ends with a semicolon instead of a block.
	if len(options) == 0 {
		return text + ";", true
	}
	text += " {\n"
	for _, o := range options {
		text += p.pad + p.doc.indentUnit + "option " + o + ";\n"
	}
	return text + p.pad + "}", true
}

// enum returns the text of an enum's declaration.
func (p *printer) enum(w protoreflect.EnumDescriptor) string {
	var b strings.Builder
	inner := p.pad + p.doc.indentUnit
	b.WriteString(p.pad + "enum " + string(w.Name()) + " {\n")
	numbers, alias, hasZero := map[protoreflect.EnumNumber]bool{}, false, false
	values := make([]protoreflect.EnumValueDescriptor, w.Values().Len())
	for i := range values {
		values[i] = w.Values().Get(i)

		// Two values with one number need allow_alias.
		alias = alias || numbers[values[i].Number()]
		numbers[values[i].Number()] = true
		hasZero = hasZero || values[i].Number() == 0
	}

	if alias {
		b.WriteString(inner + "option allow_alias = true;\n")
	}
	if o, ok := w.Options().(*descriptorpb.EnumOptions); ok && o.GetDeprecated() {
		b.WriteString(inner + "option deprecated = true;\n")
	}

	// The first value of an open enum must be zero.
	if p.doc.syntax != "proto2" && hasZero && values[0].Number() != 0 {
		slices.SortStableFunc(values, func(a, b protoreflect.EnumValueDescriptor) int {
			zero := func(v protoreflect.EnumValueDescriptor) int {
				if v.Number() == 0 {
					return 0
				}
				return 1
			}
			return zero(a) - zero(b)
		})
	}

	// A proto3 enum without a zero is invalid, so one is added.
	if p.doc.syntax != "proto2" && !hasZero {
		b.WriteString(inner + zeroName(w) + " = 0;\n")
	}

	plain := &block{doc: p.doc}
	for _, v := range values {
		p.m.log.confirm(string(p.scope.Append(w.Name()))+"."+string(v.Name()), compare.ValueElement, int32(v.Number()), p.m.src, "")
		b.WriteString(plain.aligned(inner, "", string(v.Name()), itoa(int(v.Number())), valueOptions(v)) + "\n")
	}
	p.reserved(&b, inner, enumRanges(w), w.ReservedNames())
	return b.String() + p.pad + "}"
}

// zeroName returns a name for the value 0, which proto3 requires, of an enum that lacks it.
func zeroName(w protoreflect.EnumDescriptor) string {
	var b strings.Builder
	for i, c := range string(w.Name()) {
		if i > 0 && c >= 'A' && c <= 'Z' {
			b.WriteByte('_')
		}
		b.WriteString(strings.ToUpper(string(c)))
	}
	return b.String() + "_UNSPECIFIED"
}

// message returns the text of a new message's declaration with everything inside it. full is its full name in
// the user's files.
func (p *printer) message(w protoreflect.MessageDescriptor, full protoreflect.FullName) string {
	// Nested declarations are indented by one more step.
	inner := &printer{m: p.m, doc: p.doc, scope: full, pad: p.pad + p.doc.indentUnit}
	var b strings.Builder
	if o, ok := w.Options().(*descriptorpb.MessageOptions); ok && o.GetDeprecated() {
		b.WriteString(inner.pad + "option deprecated = true;\n")
	}

	p.reserved(&b, inner.pad, messageRanges(w.ReservedRanges()), w.ReservedNames())
	if p.doc.syntax != "proto3" {
		for _, r := range messageRanges(w.ExtensionRanges()) {
			b.WriteString(inner.pad + "extensions " + r + ";\n")
		}
	}

	// A nested type may have been placed elsewhere in the files.
	for i := range w.Enums().Len() {
		if p.m.isPlacedIn(w.Enums().Get(i), full) {
			b.WriteString(inner.enum(w.Enums().Get(i)) + "\n\n")
		}
	}
	for i := range w.Messages().Len() {
		if n := w.Messages().Get(i); p.m.isPlacedIn(n, full) {
			b.WriteString(inner.message(n, full.Append(n.Name())) + "\n\n")
		}
	}

	// The members of a oneof are written at the place of its first member.
	for i := range w.Fields().Len() {
		f := w.Fields().Get(i)
		if !schema.InOneof(f) {
			if line, ok := inner.field(f, false); ok {
				inner.confirm(f)
				b.WriteString(line + "\n")
			}
			continue
		}
		if o := f.ContainingOneof(); o.Fields().Get(0) == f {
			if text, _, ok := inner.oneof(o); ok {
				b.WriteString(text + "\n")
			}
		}
	}

	// A message without content fits on one line.
	if b.Len() == 0 {
		p.m.log.confirm(string(full), compare.MessageElement, 0, p.m.src, "")
		return p.pad + "message " + string(full.Name()) + " {}"
	}
	return p.pad + "message " + string(full.Name()) + " {\n" + strings.TrimRight(b.String(), "\n") + "\n" + p.pad + "}"
}

// reserved writes the statements for reserved numbers and names to b.
func (p *printer) reserved(b *strings.Builder, pad string, ranges []string, names protoreflect.Names) {
	if len(ranges) > 0 {
		b.WriteString(pad + "reserved " + strings.Join(ranges, ", ") + ";\n")
	}
	var list []string
	for i := range names.Len() {
		name := string(names.Get(i))
		if p.doc.syntax != "editions" {
			name = strconv.Quote(name)
		}
		list = append(list, name)
	}
	if len(list) > 0 {
		b.WriteString(pad + "reserved " + strings.Join(list, ", ") + ";\n")
	}
}

// messageRanges returns ranges of field numbers, whose end is exclusive, as text.
func messageRanges(r protoreflect.FieldRanges) []string {
	var list []string
	for i := range r.Len() {
		list = append(list, rangeText(int64(r.Get(i)[0]), int64(r.Get(i)[1])-1, 1<<29-1))
	}
	return list
}

// enumRanges returns the reserved ranges of an enum, whose end is inclusive, as text.
func enumRanges(w protoreflect.EnumDescriptor) []string {
	var list []string
	for i := range w.ReservedRanges().Len() {
		r := w.ReservedRanges().Get(i)
		list = append(list, rangeText(int64(r[0]), int64(r[1]), math.MaxInt32))
	}
	return list
}

// rangeText returns a range with an inclusive end as text. If to is most, it is written as "max".
func rangeText(from, to, most int64) string {
	switch {
	case from == to:
		return strconv.FormatInt(from, 10)
	case to >= most:
		return fmt.Sprintf("%d to max", from)
	}
	return fmt.Sprintf("%d to %d", from, to)
}

// addType inserts the declaration of a new type at its place.
func (m *updatePass) addType(pl *placement) {
	if pl.parent == nil {
		// It is written as a part of the type that encloses it.
		return
	}
	p := m.printer(pl.doc, pl.fullName.Parent(), pl.parent)
	text := ""
	switch w := pl.want.(type) {
	case protoreflect.EnumDescriptor:
		text = p.enum(w)
	case protoreflect.MessageDescriptor:
		text = p.message(w, pl.fullName)
	}
	pl.parent.insert(addition{kind: typeDecl, text: text, spaced: true})
	m.addChange(Change{Op: opAdd, Element: string(pl.fullName), Kind: kindOf(pl.want), New: sizeText(pl.want), File: pl.doc.name})
}

// addService inserts the declaration of a new service.
func (m *updatePass) addService(w protoreflect.ServiceDescriptor) {
	if m.usedNames[w.FullName()] {
		m.addChange(Change{Op: Conflict, Element: string(w.FullName()), Kind: compare.ServiceElement, Note: "another element has this name"})
		return
	}
	d := m.fileFor(w, "")
	if d == nil {
		return
	}

	p := &printer{m: m, doc: d, scope: w.FullName(), pad: d.indentUnit}
	var b strings.Builder
	for i := range w.Methods().Len() {
		if text, ok := p.method(w.Methods().Get(i)); ok {
			b.WriteString(text + "\n")
			m.log.confirm(string(w.Methods().Get(i).FullName()), compare.MethodElement, 0, m.src, "")
		}
	}
	if w.Methods().Len() == 0 {
		m.log.confirm(string(w.FullName()), compare.ServiceElement, 0, m.src, "")
	}
	d.root.insert(addition{kind: serviceDecl, text: "service " + string(w.Name()) + " {\n" + b.String() + "}", spaced: true})
	m.addChange(Change{Op: opAdd, Element: string(w.FullName()), Kind: compare.ServiceElement, New: sizeText(w), File: d.name})
}
