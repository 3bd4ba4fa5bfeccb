package bundle

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"google.golang.org/protobuf/types/descriptorpb"

	"unwire/schema/jsonname"
)

// index names every definition. Of those with one name that say the same, or of
// which one says all that the other says, one stays; of those that contradict
// each other the later ones are numbered.
func (b *builder) index() {
	messages, enums := map[string][]*message{}, map[string][]*enum{}
	b.membersElsewhere()
	var order []string
	for _, m := range b.Extractor.messages {
		if full, ok := b.named(&m.def); ok {
			messages[full] = append(messages[full], m)
			order = append(order, full)
		}
	}
	for _, e := range b.Extractor.enums {
		if full, ok := b.named(&e.def); ok {
			enums[full] = append(enums[full], e)
			b.isEnum[full] = true
			order = append(order, full)
		}
	}
	b.indexLocals()
	taken := map[string]bool{}
	for _, full := range order {
		taken[full] = true
	}
	done := map[string]bool{}
	for _, full := range order {
		if done[full] {
			continue
		}
		if b.ctx.Err() != nil {
			return
		}
		done[full] = true
		kept, same := choose(b.ctx, messages[full], b.covers)
		// protobuf's own declaration stands for all
		if isStandard(full) && len(kept) > 1 {
			for _, m := range kept[1:] {
				same[m] = kept[0]
			}
			kept = kept[:1]
		}
		for _, m := range kept {
			name := b.name(&m.def, full, taken)
			b.messages[name] = m
		}
		for m, of := range same {
			b.renamed[&m.def] = b.renamed[&of.def]
			if len(m.fields) < len(of.fields) && !isStandard(full) {
				b.notes[b.renamed[&of.def]] = fmt.Sprintf("The same source has a copy with %d of these %d fields.", len(m.fields), len(of.fields))
			}
		}
		values, equal := choose(b.ctx, enums[full], coversEnum)
		for _, e := range values {
			b.enums[b.name(&e.def, full, taken)] = e
		}
		for e, of := range equal {
			b.renamed[&e.def] = b.renamed[&of.def]
		}
	}
}

// membersElsewhere fills in the members of enums that another script exports.
func (b *builder) membersElsewhere() {
	for _, e := range b.Extractor.enums {
		if e.from == nil || len(e.values) > 0 {
			continue
		}
		o, _ := b.followImport(e.from)
		for _, v := range o.values {
			e.values = append(e.values, enumValue{e.prefix + v.name, v.no})
		}
		if len(e.values) == 0 {
			b.unresolved(strings.TrimPrefix(e.full, "."), e.place, "its values were not found")
		}
	}
}

// isStandard says whether a name is in the package of the types that come with protobuf.
func isStandard(full string) bool { return strings.HasPrefix(full, "google.protobuf.") }

// named returns a definition's full name, if it is one.
func (b *builder) named(d *def) (string, bool) {
	full := strings.TrimPrefix(d.full, ".")
	if !validFull(full) {
		b.unresolved(full, d.place, "its name is no protobuf name; it is left out")
		return "", false
	}
	return full, true
}

// name gives a definition its name, or the next that is free.
func (b *builder) name(d *def, full string, taken map[string]bool) string {
	name := full
	if b.messages[full] != nil || b.enums[full] != nil {
		for n := 2; taken[name]; n++ {
			name = fmt.Sprintf("%s_%d", full, n)
		}
		b.notes[name] = "Another shape of " + full + " in the same source."
		b.unresolved(full, d.place, "a second definition has another shape: it is kept as "+name)
	}
	taken[name] = true
	b.renamed[d] = name
	return name
}

// indexLocals notes by which words of the scripts a definition may be meant.
func (b *builder) indexLocals() {
	for _, d := range b.defs() {
		parts := strings.Split(strings.TrimPrefix(d.full, "."), ".")
		for n := 1; n <= len(parts) && n <= 6; n++ {
			local := strings.Join(parts[len(parts)-n:], "_")
			b.locals[local] = append(b.locals[local], d)
		}
		if d.local != "" {
			b.locals[d.local] = append(b.locals[d.local], d)
		}
	}
}

// choose returns those of a list that no other covers, and of each other one
// which of them it is that covers it. It ends with the context.
func choose[T comparable](ctx context.Context, list []T, covers func(a, b T) bool) (kept []T, same map[T]T) {
	same = map[T]T{}
	for _, m := range list {
		if ctx.Err() != nil {
			return kept, same
		}
		i := slices.IndexFunc(kept, func(k T) bool { return covers(k, m) })
		if i >= 0 {
			same[m] = kept[i]
			continue
		}
		i = slices.IndexFunc(kept, func(k T) bool { return covers(m, k) })
		if i < 0 {
			kept = append(kept, m)
			continue
		}
		rest := kept[:i+1]
		for _, k := range kept[i:] {
			if !covers(m, k) {
				rest = append(rest, k)
				continue
			}
			same[k] = m
			for old, of := range same {
				if of == k {
					same[old] = m
				}
			}
		}
		kept = rest
		kept[i] = m
	}
	return kept, same
}

// covers says whether a says all that b says, or the same with more detail.
func (b *builder) covers(x, y *message) bool {
	if x.syntax != "" && y.syntax != "" && x.syntax != y.syntax || len(x.fields) < len(y.fields) {
		return false
	}
	if len(x.fields) == len(y.fields) && detail(x.form) < detail(y.form) {
		return false
	}
	by := make(map[int64]*field, len(x.fields))
	for _, f := range x.fields {
		by[f.no] = f
	}
	for _, f := range y.fields {
		g := by[f.no]
		if g == nil || !b.sameField(g, x.syntax, f, y.syntax) {
			return false
		}
	}
	return true
}

// detail is how much a codegen's output tells.
func detail(form string) int {
	return slices.Index([]string{formTSProto, formJSPB, formGRPC, formPBJS, formPBTS, formReflection, formConnect, formES1}, form)
}

// sameField says whether f says all that g says.
func (b *builder) sameField(f *field, fSyntax string, g *field, gSyntax string) bool {
	if jsonname.Of(f.name) != jsonname.Of(g.name) || f.repeated != g.repeated || f.mapKey != g.mapKey || f.group != g.group {
		return false
	}
	if g.required && !f.required || g.presence && !f.presence && f.oneof == "" || g.oneof != "" && f.oneof != g.oneof {
		return false
	}
	if g.value != nil && (f.value == nil || *f.value != *g.value) || g.json != "" && f.json != g.json || g.valueRef != "" && f.valueRef != g.valueRef {
		return false
	}
	if f.repeated && f.mapKey == 0 && packable(f.scalar) && f.ref == nil && isPacked(f, fSyntax) != isPacked(g, gSyntax) {
		return false
	}
	if f.ref == nil || g.ref == nil {
		lost := f.ref != nil && (f.ref.enum || b.isEnum[b.target(f.ref)]) && g.scalar == descriptorpb.FieldDescriptorProto_TYPE_INT32
		return lost || f.ref == nil && g.ref == nil && f.scalar == g.scalar
	}
	fName, gName := b.target(f.ref), b.target(g.ref)
	// as far as it is known
	return gName == "" || fName == gName || strings.HasSuffix(fName, "."+gName)
}

func isPacked(f *field, syntax string) bool {
	if f.packed != nil {
		return *f.packed
	}
	return syntax != "proto2"
}

// target is the full name of what a reference refers to before the definitions
// are named, "" where it is not known.
func (b *builder) target(r *ref) string {
	if r.to != nil {
		return strings.TrimPrefix(r.to.full, ".")
	}
	if r.module != "" || r.loaded != "" {
		if o, ok := b.followImport(r); ok && o.to != nil {
			return strings.TrimPrefix(o.to.full, ".")
		}
	}
	if r.full != "" {
		return strings.TrimPrefix(r.full, ".")
	}
	name := ""
	for _, d := range b.locals[r.local] {
		full := strings.TrimPrefix(d.full, ".")
		if name != "" && name != full {
			return ""
		}
		name = full
	}
	return name
}

func coversEnum(x, y *enum) bool {
	if x.syntax != "" && y.syntax != "" && x.syntax != y.syntax {
		return false
	}
	for _, v := range y.values {
		if !slices.Contains(x.values, v) {
			return false
		}
	}
	return true
}
