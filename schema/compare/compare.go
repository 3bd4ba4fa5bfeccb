// Package compare finds what changed between two versions of definitions, and looks
// things up in one version.
//
// Diff returns Changes, each with the compatibility that it breaks: on the wire, in JSON
// or in source code. Types are matched by name first and after that by likeness, which
// their fields decide; fields and services are matched within them. So a renamed message
// is a rename and not a removal and an addition. Outdated finds the changes that a third
// version lacks. A Toucher finds the touched exchanges: those of a capture that hold what
// changed.
//
// In one version, Lookup finds an element by its full name, Find is a search for names
// like a word, and Refs lists the references to an element. TypeOf writes the type of a
// declaration.
package compare

import (
	"fmt"
	"strconv"

	"google.golang.org/protobuf/reflect/protoreflect"

	"unwire/schema"
	"unwire/schema/infer"
)

// Diff compares two versions of definitions.
//
// Renames are found by structure: a field keeps its number, an enum value too,
// and a type keeps its fields and the places where it is used. A type that was
// renamed or moved is one change, whatever it holds. What a new message or enum
// holds is not listed apart; the methods of a new service are.
//
// In which file something stands, and comments, options and the order of
// declarations are no difference.
//
// Shape: new methods first, then services, messages, enums, oneofs, fields and
// enum values.
// Limits: time is proportional to the definitions, and to the product of the
// types that only one of them has where those have fields in common.
// Source: schema/README.md#versions-of-definitions
func Diff(before, after *schema.Schema) []Change {
	d := differ{types: matchTypes(before, after)}
	d.compat = compat{types: d.types, done: map[[2]protoreflect.FullName]Break{}}
	d.services(before, after)
	for _, m := range d.types.oldMessages {
		d.message(m)
	}
	for _, m := range d.types.newMessages {
		if d.types.isNew(m) && !d.types.isNew(m.Parent()) {
			d.addChange(Change{Change: Added, Kind: MessageElement, Element: name(m), New: sizeOf(m)})
		}
	}
	for _, e := range d.types.oldEnums {
		d.enum(e)
	}
	for _, e := range d.types.newEnums {
		if d.types.isNew(e) && !d.types.isNew(e.Parent()) {
			d.addChange(Change{Change: Added, Kind: EnumElement, Element: name(e), New: enumSize(e)})
		}
	}
	sortChanges(d.found)
	return d.found
}

// A differ collects changes.
type differ struct {
	types  *typeMatch
	compat compat
	found  []Change
}

func (d *differ) addChange(c Change) { d.found = append(d.found, c) }

// name is the full name of d; of an enum value below its enum, though the
// language has it beside it.
func name(d protoreflect.Descriptor) string {
	if v, ok := d.(protoreflect.EnumValueDescriptor); ok {
		return string(v.Parent().FullName()) + "." + string(v.Name())
	}
	return string(d.FullName())
}

// counted is a number of things in words.
func counted(n int, thing string) string { return infer.Plural(int64(n), thing) }

func sizeOf(m protoreflect.MessageDescriptor) string { return counted(m.Fields().Len(), "field") }
func enumSize(e protoreflect.EnumDescriptor) string  { return counted(e.Values().Len(), "value") }
func rename(c Change, after protoreflect.Descriptor) Change {
	if n := name(after); n != c.Element {
		c.Renamed = n
	}
	return c
}

// typeRenamed reports that a type or service has another name now, unless its
// parent's new name is all the reason.
func (d *differ) typeRenamed(kind ElementKind, before, after protoreflect.Descriptor, breaks Break) {
	same := before.Name() == after.Name()
	if same && d.sameParent(before.Parent(), after.Parent()) {
		return
	}
	c := Change{Change: renamed, Kind: kind, Element: name(before), Old: name(before), New: name(after), Renamed: name(after), Breaks: breaks}
	if same {
		c.Change = moved
	} else if !d.sameParent(before.Parent(), after.Parent()) {
		c.Note = "and moved"
	}
	d.addChange(c)
}

func (d *differ) sameParent(before, after protoreflect.Descriptor) bool {
	if m, ok := before.(protoreflect.MessageDescriptor); ok {
		return d.types.messages[m.FullName()] == after
	}
	if _, ok := after.(protoreflect.FileDescriptor); !ok {
		return false
	}
	return before.FullName() == after.FullName() // the packages
}

func (d *differ) message(m protoreflect.MessageDescriptor) {
	now := d.types.messages[m.FullName()]
	if now == nil {
		if p, ok := m.Parent().(protoreflect.MessageDescriptor); !ok || d.types.messages[p.FullName()] != nil {
			d.addChange(Change{Change: Removed, Kind: MessageElement, Element: name(m), Old: sizeOf(m), Breaks: BreaksSource})
		}
		return
	}
	d.typeRenamed(MessageElement, m, now, BreaksSource)
	d.fields(m, now)
	d.oneofs(m, now)
}

func (d *differ) fields(before, after protoreflect.MessageDescriptor) {
	mates := d.matchFields(before, after)
	taken := map[protoreflect.FieldDescriptor]bool{}
	for i := range before.Fields().Len() {
		f := before.Fields().Get(i)
		now := mates[f]
		if now == nil {
			d.fieldRemoved(f, after)
			continue
		}
		taken[now] = true
		d.field(f, now)
	}
	for i := range after.Fields().Len() {
		f := after.Fields().Get(i)
		if taken[f] {
			continue
		}
		c := Change{Change: Added, Kind: FieldElement, Element: name(f), New: declaration(f)}
		if f.Cardinality() == protoreflect.Required {
			c.Breaks, c.Note = BreaksWire, "required: what lacks it is refused"
		}
		d.addChange(c)
	}
}

func (d *differ) fieldRemoved(f protoreflect.FieldDescriptor, after protoreflect.MessageDescriptor) {
	c := Change{Change: Removed, Kind: FieldElement, Element: name(f), Old: declaration(f), Breaks: BreaksSource}
	switch now := after.Fields().ByNumber(f.Number()); {
	case now != nil:
		c.Note = fmt.Sprintf("its number is %s's now", now.Name())
		c.Breaks = BreaksWire
	case f.Cardinality() == protoreflect.Required:
		c.Breaks, c.Note = BreaksWire, "required: what lacks it is refused"
	case after.ReservedRanges().Has(f.Number()):
		c.Note = "reserved"
	}
	d.addChange(c)
}

// field compares two versions of a field.
func (d *differ) field(f, now protoreflect.FieldDescriptor) {
	at := func(c Change) { c.Kind, c.Element = FieldElement, name(f); d.addChange(rename(c, now)) }
	switch {
	case f.Name() != now.Name():
		c := Change{Change: renamed, Old: string(f.Name()), New: string(now.Name()), Breaks: BreaksJSON}
		if f.JSONName() == now.JSONName() {
			c.Breaks, c.Note = BreaksSource, "the JSON name stays"
		}
		at(c)
	case f.JSONName() != now.JSONName():
		at(Change{Change: renamed, Old: f.JSONName(), New: now.JSONName(), Breaks: BreaksJSON, Note: "the JSON name"})
	}
	if f.Number() != now.Number() {
		at(Change{Change: renumbered, Old: digits(f.Number()), New: digits(now.Number()), Breaks: BreaksWire})
	}
	if was, is := labelWord(f), labelWord(now); was != is {
		b, note := d.compat.label(f, now)
		at(Change{Change: relabelled, Old: was, New: is, Breaks: b, Note: note})
	} else if f.IsPacked() != now.IsPacked() && isPackable(f) && isPackable(now) {
		at(Change{Change: relabelled, Old: packing(f), New: packing(now), Note: "parsers take both"})
	}
	if b, note, same := d.compat.field(f, now); !same {
		at(Change{Change: retyped, Old: TypeOf(f), New: TypeOf(now), Breaks: b, Note: note})
	}
	d.member(f, now)
}

func digits(n protoreflect.FieldNumber) string { return strconv.Itoa(int(n)) }

func packing(f protoreflect.FieldDescriptor) string {
	if f.IsPacked() {
		return "packed"
	}
	return "unpacked"
}

// member compares which oneof a field is in.
func (d *differ) member(f, now protoreflect.FieldDescriptor) {
	was, is := realOneof(f), realOneof(now)
	if was == nil && is == nil || was != nil && is != nil && d.oneofMate(was, f.ContainingMessage(), now.ContainingMessage()) == is {
		return
	}
	c := Change{Change: relabelled, Kind: FieldElement, Element: name(f), Old: oneofWord(was), New: oneofWord(is), Breaks: BreaksSource}
	if was == nil && labelWord(f) != infer.Singular || is == nil && labelWord(now) != infer.Singular {
		c.Old, c.New = wordOr(oneofWord(was), labelWord(f)), wordOr(oneofWord(is), labelWord(now))
		if len(d.found) > 0 { // the label's own change says the same
			if last := &d.found[len(d.found)-1]; last.Element == c.Element && last.Change == relabelled {
				last.Old, last.New, last.Breaks = c.Old, c.New, worse(last.Breaks, c.Breaks)
				return
			}
		}
	}
	if is != nil && is.Fields().Len() > 1 {
		c.Breaks, c.Note = BreaksWire, "of several members that were sent, one is kept"
	} else if was != nil && was.Fields().Len() > 1 {
		c.Breaks, c.Note = BreaksWire, "an old reader keeps one of several"
	}
	d.addChange(rename(c, now))
}

func wordOr(word, other string) string {
	if word == infer.Singular {
		return other
	}
	return word
}

func oneofWord(o protoreflect.OneofDescriptor) string {
	if o == nil {
		return infer.Singular
	}
	return "oneof " + string(o.Name())
}

func realOneof(f protoreflect.FieldDescriptor) protoreflect.OneofDescriptor {
	if o := f.ContainingOneof(); o != nil && !o.IsSynthetic() {
		return o
	}
	return nil
}

// oneofMate returns what became of a oneof: the one of that name, or else the
// one, new by name, that has most of its members.
func (d *differ) oneofMate(o protoreflect.OneofDescriptor, before, after protoreflect.MessageDescriptor) protoreflect.OneofDescriptor {
	if now := after.Oneofs().ByName(o.Name()); now != nil && !now.IsSynthetic() {
		return now
	}
	votes := map[protoreflect.OneofDescriptor]int{}
	var best protoreflect.OneofDescriptor
	for i := range o.Fields().Len() {
		f := after.Fields().ByNumber(o.Fields().Get(i).Number())
		if f == nil {
			continue
		}
		if is := realOneof(f); is != nil && before.Oneofs().ByName(is.Name()) == nil {
			votes[is]++
			if best == nil || votes[is] > votes[best] {
				best = is
			}
		}
	}
	return best
}

// oneofs reports renamed oneofs; one that came or went is said of its members.
func (d *differ) oneofs(before, after protoreflect.MessageDescriptor) {
	for i := range before.Oneofs().Len() {
		o := before.Oneofs().Get(i)
		if o.IsSynthetic() {
			continue
		}
		if now := d.oneofMate(o, before, after); now != nil && now.Name() != o.Name() {
			d.addChange(Change{
				Change: renamed, Kind: OneofElement, Element: name(o), Old: string(o.Name()), New: string(now.Name()),
				Renamed: name(now), Breaks: BreaksSource,
			})
		}
	}
}

func (d *differ) enum(e protoreflect.EnumDescriptor) {
	now := d.types.enums[e.FullName()]
	if now == nil {
		if p, ok := e.Parent().(protoreflect.MessageDescriptor); !ok || d.types.messages[p.FullName()] != nil {
			d.addChange(Change{Change: Removed, Kind: EnumElement, Element: name(e), Old: enumSize(e), Breaks: BreaksSource})
		}
		return
	}
	d.typeRenamed(EnumElement, e, now, BreaksSource)
	d.values(e, now)
}

// values compares enum values: by name first, what is left by number.
func (d *differ) values(before, after protoreflect.EnumDescriptor) {
	taken := map[protoreflect.Name]bool{}
	var left []protoreflect.EnumValueDescriptor
	for i := range before.Values().Len() {
		v := before.Values().Get(i)
		now := after.Values().ByName(v.Name())
		if now == nil {
			left = append(left, v)
			continue
		}
		taken[now.Name()] = true
		if v.Number() != now.Number() {
			d.addChange(rename(Change{
				Change: renumbered, Kind: ValueElement, Element: name(v), Breaks: BreaksWire,
				Old: strconv.Itoa(int(v.Number())), New: strconv.Itoa(int(now.Number())),
			}, now))
		}
	}
	free := func(n protoreflect.EnumNumber) protoreflect.EnumValueDescriptor {
		for i := range after.Values().Len() {
			if v := after.Values().Get(i); v.Number() == n && !taken[v.Name()] {
				return v
			}
		}
		return nil
	}
	for _, v := range left {
		now := free(v.Number())
		if now == nil {
			c := Change{Change: Removed, Kind: ValueElement, Element: name(v), Old: strconv.Itoa(int(v.Number())), Breaks: BreaksJSON}
			if other := after.Values().ByNumber(v.Number()); other != nil {
				c.Note = fmt.Sprintf("its number is still %s's", other.Name())
			}
			d.addChange(c)
			continue
		}
		taken[now.Name()] = true
		d.addChange(Change{
			Change: renamed, Kind: ValueElement, Element: name(v), Old: string(v.Name()), New: string(now.Name()),
			Renamed: name(now), Breaks: BreaksJSON,
		})
	}
	for i := range after.Values().Len() {
		if v := after.Values().Get(i); !taken[v.Name()] {
			d.addChange(Change{Change: Added, Kind: ValueElement, Element: name(v), New: strconv.Itoa(int(v.Number()))})
		}
	}
}
