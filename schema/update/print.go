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

// A printer writes declarations of the source for a place in a document.
type printer struct {
	m     *merge
	doc   *document
	scope protoreflect.FullName // of the message or service that they stand in
	b     *block                // whose style they take; nil in a new type
	pad   string                // the indentation
}

func (m *merge) printer(d *document, scope protoreflect.FullName, b *block) *printer {
	return &printer{m: m, doc: d, scope: scope, b: b, pad: b.indent()}
}

// addConflict lists what could not be written.
func (p *printer) addConflict(d protoreflect.Descriptor, why string) {
	number := int32(0)
	if f, ok := d.(protoreflect.FieldDescriptor); ok {
		number = int32(f.Number())
	}
	p.m.addChange(Change{Op: Conflict, Element: string(p.scope.Append(d.Name())), Kind: kindOf(d), Number: number, Note: why, File: p.doc.name})
}

func (p *printer) field(w protoreflect.FieldDescriptor, inOneof bool) (string, bool) {
	typ, ok := p.typeOf(w, inOneof)
	if !ok {
		return "", false
	}
	b := p.b
	if b == nil {
		b = &block{doc: p.doc}
	}
	return b.aligned(p.pad, typ, string(w.Name()), itoa(int(w.Number())), p.fieldOptions(w, inOneof)), true
}

// confirm enters a field that was written into the evidence.
func (p *printer) confirm(f protoreflect.FieldDescriptor) {
	p.m.log.confirm(string(p.scope.Append(f.Name())), compare.FieldElement, int32(f.Number()), p.m.src, "")
}

// typeOf is the label and the type of a field.
func (p *printer) typeOf(w protoreflect.FieldDescriptor, inOneof bool) (string, bool) {
	if w.Kind() == protoreflect.GroupKind && p.doc.syntax != "editions" {
		p.addConflict(w, "a group is not added")
		return "", false
	}
	if w.IsMap() {
		value, ok := p.plain(w.MapValue(), w)
		return "map<" + w.MapKey().Kind().String() + ", " + value + ">", ok
	}
	typ, ok := p.plain(w, w)
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

// plain is the type of a field of one value; at is the field to complain about.
func (p *printer) plain(w, at protoreflect.FieldDescriptor) (string, bool) {
	switch {
	case w.Message() != nil:
		return p.ref(w.Message(), at)
	case w.Enum() != nil:
		return p.ref(w.Enum(), at)
	}
	return w.Kind().String(), true
}

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

// encodingOptions are the options by which the bytes of a field differ from those
// of its syntax's default.
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

// quoted is a string literal of any bytes.
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

func valueOptions(v protoreflect.EnumValueDescriptor) string {
	if o, ok := v.Options().(*descriptorpb.EnumValueOptions); ok && o.GetDeprecated() {
		return "deprecated = true"
	}
	return ""
}

func (p *printer) oneof(o protoreflect.OneofDescriptor) (text string, least int, ok bool) {
	inner := *p
	inner.pad, inner.b = p.pad+p.doc.unit, nil
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

func (p *printer) method(w protoreflect.MethodDescriptor) (string, bool) {
	side := func(stream bool, d protoreflect.MessageDescriptor) (string, bool) {
		name, ok := p.ref(d, w)
		if stream {
			name = "stream " + name
		}
		return "(" + name + ")", ok
	}
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
	if len(options) == 0 {
		return text + ";", true
	}
	text += " {\n"
	for _, o := range options {
		text += p.pad + p.doc.unit + "option " + o + ";\n"
	}
	return text + p.pad + "}", true
}

func (p *printer) enum(w protoreflect.EnumDescriptor) string {
	var b strings.Builder
	inner := p.pad + p.doc.unit
	b.WriteString(p.pad + "enum " + string(w.Name()) + " {\n")
	numbers, alias, hasZero := map[protoreflect.EnumNumber]bool{}, false, false
	values := make([]protoreflect.EnumValueDescriptor, w.Values().Len())
	for i := range values {
		values[i] = w.Values().Get(i)
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
	// an open enum's first value is zero
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

// zeroName names a zero value for an enum that has none.
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

// message writes a new message with all that is in it.
func (p *printer) message(w protoreflect.MessageDescriptor, full protoreflect.FullName) string {
	inner := &printer{m: p.m, doc: p.doc, scope: full, pad: p.pad + p.doc.unit}
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
	if b.Len() == 0 {
		p.m.log.confirm(string(full), compare.MessageElement, 0, p.m.src, "")
		return p.pad + "message " + string(full.Name()) + " {}"
	}
	return p.pad + "message " + string(full.Name()) + " {\n" + strings.TrimRight(b.String(), "\n") + "\n" + p.pad + "}"
}

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

func messageRanges(r protoreflect.FieldRanges) []string {
	var list []string
	for i := range r.Len() {
		list = append(list, rangeText(int64(r.Get(i)[0]), int64(r.Get(i)[1])-1, 1<<29-1))
	}
	return list
}

func enumRanges(w protoreflect.EnumDescriptor) []string {
	var list []string
	for i := range w.ReservedRanges().Len() {
		r := w.ReservedRanges().Get(i)
		list = append(list, rangeText(int64(r[0]), int64(r[1]), math.MaxInt32))
	}
	return list
}

func rangeText(from, to, most int64) string {
	switch {
	case from == to:
		return strconv.FormatInt(from, 10)
	case to >= most:
		return fmt.Sprintf("%d to max", from)
	}
	return fmt.Sprintf("%d to %d", from, to)
}

// addType writes a new type where it was placed.
func (m *merge) addType(pl *place) {
	if pl.parent == nil {
		return // with what it stands in
	}
	p := m.printer(pl.doc, pl.full.Parent(), pl.parent)
	text := ""
	switch w := pl.want.(type) {
	case protoreflect.EnumDescriptor:
		text = p.enum(w)
	case protoreflect.MessageDescriptor:
		text = p.message(w, pl.full)
	}
	pl.parent.insert(addition{kind: typeDecl, text: text, spaced: true})
	m.addChange(Change{Op: opAdd, Element: string(pl.full), Kind: kindOf(pl.want), New: counted(pl.want), File: pl.doc.name})
}

func (m *merge) addService(w protoreflect.ServiceDescriptor) {
	if m.haveAll[w.FullName()] {
		m.addChange(Change{Op: Conflict, Element: string(w.FullName()), Kind: compare.ServiceElement, Note: "the name is taken there"})
		return
	}
	d := m.fileFor(w, "")
	if d == nil {
		return
	}
	p := &printer{m: m, doc: d, scope: w.FullName(), pad: d.unit}
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
	m.addChange(Change{Op: opAdd, Element: string(w.FullName()), Kind: compare.ServiceElement, New: counted(w), File: d.name})
}
