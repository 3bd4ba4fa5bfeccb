package model

import (
	"fmt"
	"slices"
	"strings"

	"google.golang.org/protobuf/types/descriptorpb"

	"unwire/schema/bundle/choice"
	"unwire/schema/bundle/protoname"
	"unwire/schema/jsonname"
)

// index assigns the final full names. If several definitions have the same name, one that includes all others
// is kept. Contradicting definitions are kept with a number appended to the name.
func (b *builder) index() {
	// Bundles often contain several copies of a type, under one full name.
	messages, enums := map[string][]*Message{}, map[string][]*Enum{}
	b.membersElsewhere()
	var order []string
	for _, m := range b.Definitions.Messages {
		if full, ok := b.named(&m.Def); ok {
			messages[full] = append(messages[full], m)
			order = append(order, full)
		}
	}
	for _, e := range b.Definitions.Enums {
		if full, ok := b.named(&e.Def); ok {
			enums[full] = append(enums[full], e)
			b.isEnum[full] = true
			order = append(order, full)
		}
	}

	// Comparing definitions needs the references in them, which need the names.
	b.indexLocals()

	taken := map[string]bool{}
	for _, full := range order {
		taken[full] = true
	}

	// Report each name once, in the order of the sources.
	done := map[string]bool{}
	for _, full := range order {
		if done[full] {
			continue
		}
		if b.ctx.Err() != nil {
			return
		}
		done[full] = true
		b.chooseMessages(full, messages[full], taken)
		values := choice.Of(b.ctx, enums[full], coversEnum)
		for _, e := range values.Kept {
			b.enums[b.name(&e.Def, full, taken)] = e
		}
		for e, of := range values.Same {
			b.renamed[&e.Def] = b.renamed[&of.Def]
		}
		if len(values.Dropped) > 0 {
			b.dropShapes(full, values.Dropped[0].Place, len(values.Dropped))
		}
	}
}

// chooseMessages chooses among the messages in list, which have the same name, and assigns the final names.
// taken has the names already in use.
func (b *builder) chooseMessages(full string, list []*Message, taken map[string]bool) {
	c := choice.Of(b.ctx, list, b.covers)
	// protobuf's own declaration replaces all copies.
	if protoname.IsStandard(full) && len(c.Kept) > 1 {
		for _, m := range slices.Concat(c.Kept[1:], c.Dropped) {
			c.Same[m] = c.Kept[0]
		}
		c.Kept, c.Dropped = c.Kept[:1], nil
		c.Flatten()
	}
	for _, m := range c.Kept {
		name := b.name(&m.Def, full, taken)
		b.messages[name] = m
	}
	if len(c.Dropped) > 0 {
		b.dropShapes(full, c.Dropped[0].Place, len(c.Dropped))
	}
	for m, of := range c.Same {
		b.renamed[&m.Def] = b.renamed[&of.Def]
		if len(m.Fields) < len(of.Fields) && !protoname.IsStandard(full) {
			b.notes[b.renamed[&of.Def]] = fmt.Sprintf("The same source has a copy with %d of these %d fields.", len(m.Fields), len(of.Fields))
		}
	}
}

// membersElsewhere fills in the values of enums whose values are defined in another script.
func (b *builder) membersElsewhere() {
	for _, e := range b.Definitions.Enums {
		if e.From == nil || len(e.Values) > 0 {
			continue
		}
		o, _ := b.followImport(e.From)
		for _, v := range o.Values {
			e.Values = append(e.Values, EnumValue{e.Prefix + v.Name, v.Number})
		}
		if len(e.Values) == 0 {
			b.unresolved(strings.TrimPrefix(e.Full, "."), e.Place, "the values of the enum were not found")
		}
	}
}

// named returns the full name of a definition. ok is false if it is not a valid protobuf name; this is
// reported.
func (b *builder) named(d *Def) (string, bool) {
	full := strings.TrimPrefix(d.Full, ".")
	if !protoname.ValidFull(full) {
		b.unresolved(full, d.Place, "its name is not valid in protobuf, so extract left it out")
		return "", false
	}
	return full, true
}

// name assigns the final name to a definition: full, with a number appended if that name is in use.
func (b *builder) name(d *Def, full string, taken map[string]bool) string {
	name := full
	if b.messages[full] != nil || b.enums[full] != nil {
		for n := 2; taken[name]; n++ {
			name = fmt.Sprintf("%s_%d", full, n)
		}
		b.notes[name] = "Another shape of " + full + " in the same source."
		b.unresolved(full, d.Place, "another definition with this name has other fields, so extract named this one "+name)
	}
	taken[name] = true
	b.renamed[d] = name
	return name
}

// dropShapes reports that n contradicting definitions of the type full were left out. first is the place of one
// of them.
func (b *builder) dropShapes(full string, first Place, n int) {
	b.unresolved(full, first, fmt.Sprintf("it has more than %d definitions that contradict each other; extract left %d out", choice.Max, n))
}

// indexLocals collects the names by which scripts may refer to each definition.
func (b *builder) indexLocals() {
	for _, d := range b.Defs() {
		parts := strings.Split(strings.TrimPrefix(d.Full, "."), ".")
		// A script may call a nested type Inner, Outer_Inner, and so on.
		for n := 1; n <= len(parts) && n <= 6; n++ {
			local := strings.Join(parts[len(parts)-n:], "_")
			b.locals[local] = append(b.locals[local], d)
		}
		if d.Local != "" {
			b.locals[d.Local] = append(b.locals[d.Local], d)
		}
	}
}

// covers reports whether the message x declares everything that y declares, so that y is not needed.
func (b *builder) covers(x, y *Message) bool {
	if x.Syntax != "" && y.Syntax != "" && x.Syntax != y.Syntax || len(x.Fields) < len(y.Fields) {
		return false
	}
	// Of two equal copies, the one with more detail is kept.
	if len(x.Fields) == len(y.Fields) && detail(x.Form) < detail(y.Form) {
		return false
	}
	by := make(map[int64]*Field, len(x.Fields))
	for _, f := range x.Fields {
		by[f.Number] = f
	}
	for _, f := range y.Fields {
		g := by[f.Number]
		if g == nil || !b.sameField(g, x.Syntax, f, y.Syntax) {
			return false
		}
	}
	return true
}

// sameField reports whether f declares everything that g declares. The syntaxes decide about defaults.
func (b *builder) sameField(f *Field, fSyntax string, g *Field, gSyntax string) bool {
	if !sameShape(f, g) || !sameOptions(f, fSyntax, g, gSyntax) {
		return false
	}
	// Code that shows an enum as int32 does not contradict the enum.
	if f.Ref == nil || g.Ref == nil {
		lost := f.Ref != nil && (f.Ref.Enum || b.isEnum[b.target(f.Ref)]) && g.Scalar == descriptorpb.FieldDescriptorProto_TYPE_INT32
		return lost || f.Ref == nil && g.Ref == nil && f.Scalar == g.Scalar
	}
	fName, gName := b.target(f.Ref), b.target(g.Ref)
	// An unknown type may be the same.
	return gName == "" || fName == gName || strings.HasSuffix(fName, "."+gName)
}

// sameShape reports whether two fields have the same name and cardinality, as far as g's code generator shows
// the cardinality.
func sameShape(f, g *Field) bool {
	if jsonname.Of(f.Name) != jsonname.Of(g.Name) || f.Repeated != g.Repeated || f.MapKey != g.MapKey || f.Group != g.Group {
		return false
	}
	presence := !g.Presence || f.Presence || f.Oneof != ""
	oneof := g.Oneof == "" || f.Oneof == g.Oneof
	return presence && oneof && (!g.Required || f.Required)
}

// sameOptions reports whether f has the same default value, JSON name and packing as g, as far as g's code
// generator shows them.
func sameOptions(f *Field, fSyntax string, g *Field, gSyntax string) bool {
	value := g.Value == nil || f.Value != nil && *f.Value == *g.Value
	valueRef := g.ValueRef == "" || f.ValueRef == g.ValueRef
	name := g.JSONName == "" || f.JSONName == g.JSONName
	list := f.Repeated && f.MapKey == 0 && Packable(f.Scalar) && f.Ref == nil
	return value && valueRef && name && (!list || isPacked(f, fSyntax) == isPacked(g, gSyntax))
}

// isPacked reports whether a repeated field is packed, explicitly or by the default of its syntax.
func isPacked(f *Field, syntax string) bool {
	if f.Packed != nil {
		return *f.Packed
	}
	return syntax != "proto2"
}

// target returns the full name, as in the script, of the type that a reference refers to, or "" if it is
// unknown. It can be used before the final names are assigned.
func (b *builder) target(r *Ref) string {
	if r.To != nil {
		return strings.TrimPrefix(r.To.Full, ".")
	}
	if r.Module != "" || r.Loaded != "" {
		if o, ok := b.followImport(r); ok && o.To != nil {
			return strings.TrimPrefix(o.To.Full, ".")
		}
	}
	if r.Full != "" {
		return strings.TrimPrefix(r.Full, ".")
	}
	name := ""
	for _, d := range b.locals[r.Local] {
		full := strings.TrimPrefix(d.Full, ".")
		if name != "" && name != full {
			return ""
		}
		name = full
	}
	return name
}

// coversEnum reports whether the enum x has all values of y.
func coversEnum(x, y *Enum) bool {
	if x.Syntax != "" && y.Syntax != "" && x.Syntax != y.Syntax {
		return false
	}
	for _, v := range y.Values {
		if !slices.Contains(x.Values, v) {
			return false
		}
	}
	return true
}
