// Package compare finds the differences between two versions of definitions, and searches one version.
//
// Diff returns the Changes, each with the incompatibility that it causes: in the binary format, in JSON or in
// source code.
//
//	for _, c := range compare.Diff(before, after) {
//	    fmt.Println(c) // renamed field chat.Send.text: text -> body (breaks json)
//	}
//
// Types are matched by name first, and then by similarity of their fields, so that a renamed message is a rename
// rather than a removal and an addition. Outdated finds the changes that a third version has not adopted.
// TouchedExchanges finds the exchanges of a capture that contain changed elements.
//
// In one version, Lookup finds an element by its full name, Find searches names and comments for words, and Refs
// lists the uses of a type. The commands schema diff, schema find and schema print use this package, and package
// update does.
package compare

import (
	"fmt"
	"strconv"

	"google.golang.org/protobuf/reflect/protoreflect"

	"unwire/schema"
	"unwire/schema/infer"
)

// Diff returns the differences between two versions of definitions.
//
// Renames are found by structure: a field keeps its number, an enum value as well, and a type keeps its fields
// and the places where it is used. A type that was renamed or moved is a single change, whatever it contains.
// The fields of a new message are not listed separately, but the methods of a new service are. Files, comments,
// options and the order of declarations do not matter.
//
// Shape: methods first, then services, messages, enums, oneofs, fields and enum values.
// Limits: the time is proportional to the size of the definitions, plus the product of the numbers of types that
// only one version has and that share fields.
// Source: schema/README.md#versions-of-definitions
func Diff(before, after *schema.Schema) []Change {
	d := differ{types: matchTypes(before, after)}
	d.compat = compat{types: d.types, done: map[[2]protoreflect.FullName]Break{}}

	d.services(before, after)
	for _, m := range d.types.oldMessages {
		d.message(m)
	}

	for _, m := range d.types.newMessages {
		// A new type inside a new message is part of that change.
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

// A differ collects the changes between two versions of definitions.
type differ struct {
	// types maps the types of the old version to those of the new one.
	types *typeMatch
	// compat decides what a change of a field's type or label breaks.
	compat compat
	// found are the changes found so far.
	found []Change
}

// addChange adds a change to the result.
func (d *differ) addChange(c Change) { d.found = append(d.found, c) }

// name returns the full name of d. For an enum value this includes the name of the enum, although protobuf puts
// values in the scope around the enum.
func name(d protoreflect.Descriptor) string {
	if v, ok := d.(protoreflect.EnumValueDescriptor); ok {
		return string(v.Parent().FullName()) + "." + string(v.Name())
	}
	return string(d.FullName())
}

// counted formats a number with its noun, such as "1 field" or "2 fields".
func counted(n int, thing string) string { return infer.Plural(int64(n), thing) }

// sizeOf returns how many fields a message has, in words.
func sizeOf(m protoreflect.MessageDescriptor) string { return counted(m.Fields().Len(), "field") }

// enumSize returns how many values an enum has, in words.
func enumSize(e protoreflect.EnumDescriptor) string { return counted(e.Values().Len(), "value") }

// rename returns c with Renamed set to the full name of after, the new version of the element, if that differs.
func rename(c Change, after protoreflect.Descriptor) Change {
	if n := name(after); n != c.Element {
		c.Renamed = n
	}
	return c
}

// typeRenamed adds a change if a type or service has another name in the new version, unless only its parent
// was renamed. breaks is what the renaming breaks.
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

// sameParent reports whether two elements are in the same package, or in the two versions of the same message.
func (d *differ) sameParent(before, after protoreflect.Descriptor) bool {
	if m, ok := before.(protoreflect.MessageDescriptor); ok {
		return d.types.messages[m.FullName()] == after
	}
	if _, ok := after.(protoreflect.FileDescriptor); !ok {
		return false
	}
	// Both are files: compare their packages.
	return before.FullName() == after.FullName()
}

// message compares a message of the old version with its counterpart in the new version, if it has one.
func (d *differ) message(m protoreflect.MessageDescriptor) {
	now := d.types.messages[m.FullName()]
	if now == nil {
		// The removal of the parent covers the removal of a nested message.
		if p, ok := m.Parent().(protoreflect.MessageDescriptor); !ok || d.types.messages[p.FullName()] != nil {
			d.addChange(Change{Change: Removed, Kind: MessageElement, Element: name(m), Old: sizeOf(m), Breaks: BreaksSource})
		}
		return
	}
	d.typeRenamed(MessageElement, m, now, BreaksSource)
	d.fields(m, now)
	d.oneofs(m, now)
}

// fields compares the fields of both versions of a message.
func (d *differ) fields(before, after protoreflect.MessageDescriptor) {
	mates := d.matchFields(before, after)

	// New fields that are a version of an old one.
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
			c.Breaks, c.Note = BreaksWire, "required: parsers reject messages without it"
		}
		d.addChange(c)
	}
}

// fieldRemoved adds the removal of field f. It breaks the binary format if another field of the new version,
// after, uses the number.
func (d *differ) fieldRemoved(f protoreflect.FieldDescriptor, after protoreflect.MessageDescriptor) {
	c := Change{Change: Removed, Kind: FieldElement, Element: name(f), Old: declaration(f), Breaks: BreaksSource}
	switch now := after.Fields().ByNumber(f.Number()); {
	case now != nil:
		c.Note = fmt.Sprintf("%s now has this number", now.Name())
		c.Breaks = BreaksWire
	case f.Cardinality() == protoreflect.Required:
		c.Breaks, c.Note = BreaksWire, "required: parsers reject messages without it"
	case after.ReservedRanges().Has(f.Number()):
		c.Note = "reserved"
	}
	d.addChange(c)
}

// field compares the old version f of a field with the new version now.
func (d *differ) field(f, now protoreflect.FieldDescriptor) {
	at := func(c Change) { c.Kind, c.Element = FieldElement, name(f); d.addChange(rename(c, now)) }
	switch {
	case f.Name() != now.Name():
		c := Change{Change: renamed, Old: string(f.Name()), New: string(now.Name()), Breaks: BreaksJSON}
		if f.JSONName() == now.JSONName() {
			c.Breaks, c.Note = BreaksSource, "the JSON name is unchanged"
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
		at(Change{Change: relabelled, Old: packing(f), New: packing(now), Note: "parsers accept both names"})
	}

	if b, note, same := d.compat.field(f, now); !same {
		at(Change{Change: retyped, Old: TypeOf(f), New: TypeOf(now), Breaks: b, Note: note})
	}
	d.member(f, now)
}

// digits formats a field number.
func digits(n protoreflect.FieldNumber) string { return strconv.Itoa(int(n)) }

// packing returns "packed" or "unpacked" for a repeated field.
func packing(f protoreflect.FieldDescriptor) string {
	if f.IsPacked() {
		return "packed"
	}
	return "unpacked"
}

// member compares the oneofs that contain the old version f and the new version now of a field.
func (d *differ) member(f, now protoreflect.FieldDescriptor) {
	was, is := realOneof(f), realOneof(now)
	// The same oneof, or none in both versions.
	if was == nil && is == nil || was != nil && is != nil && d.counterpartOneof(was, f.ContainingMessage(), now.ContainingMessage()) == is {
		return
	}
	c := Change{Change: relabelled, Kind: FieldElement, Element: name(f), Old: oneofWord(was), New: oneofWord(is), Breaks: BreaksSource}
	if was == nil && labelWord(f) != infer.Singular || is == nil && labelWord(now) != infer.Singular {
		c.Old, c.New = wordOr(oneofWord(was), labelWord(f)), wordOr(oneofWord(is), labelWord(now))
		// The label changed as well: both are one change.
		if len(d.found) > 0 {
			if last := &d.found[len(d.found)-1]; last.Element == c.Element && last.Change == relabelled {
				last.Old, last.New, last.Breaks = c.Old, c.New, worse(last.Breaks, c.Breaks)
				return
			}
		}
	}
	// Only a oneof with several members loses values: setting one member clears the others.
	if is != nil && is.Fields().Len() > 1 {
		c.Breaks, c.Note = BreaksWire, "if a message contains several members, parsers keep only one"
	} else if was != nil && was.Fields().Len() > 1 {
		c.Breaks, c.Note = BreaksWire, "old parsers keep only one of several members"
	}
	d.addChange(rename(c, now))
}

// wordOr returns word; if word is "singular", other.
func wordOr(word, other string) string {
	if word == infer.Singular {
		return other
	}
	return word
}

// oneofWord returns "oneof NAME" for a field in the oneof o, or "singular" if o is nil.
func oneofWord(o protoreflect.OneofDescriptor) string {
	if o == nil {
		return infer.Singular
	}
	return "oneof " + string(o.Name())
}

// realOneof returns the oneof of a field that is declared in the source, or nil. Synthetic oneofs, which
// compilers add for optional fields, do not count.
func realOneof(f protoreflect.FieldDescriptor) protoreflect.OneofDescriptor {
	if o := f.ContainingOneof(); o != nil && !o.IsSynthetic() {
		return o
	}
	return nil
}

// counterpartOneof returns the new version of a oneof: the one with the same name, or the one with a new name
// that has most of its members.
func (d *differ) counterpartOneof(o protoreflect.OneofDescriptor, before, after protoreflect.MessageDescriptor) protoreflect.OneofDescriptor {
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

// oneofs adds a change for each renamed oneof of a message. Added and removed oneofs are reported as changes of
// their members.
func (d *differ) oneofs(before, after protoreflect.MessageDescriptor) {
	for i := range before.Oneofs().Len() {
		o := before.Oneofs().Get(i)
		if o.IsSynthetic() {
			continue
		}
		if now := d.counterpartOneof(o, before, after); now != nil && now.Name() != o.Name() {
			d.addChange(Change{
				Change: renamed, Kind: OneofElement, Element: name(o), Old: string(o.Name()), New: string(now.Name()),
				Renamed: name(now), Breaks: BreaksSource,
			})
		}
	}
}

// enum compares an enum of the old version with its counterpart in the new version, if it has one.
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

// values compares the values of both versions of an enum. They are matched by name, and those without a match
// by number.
func (d *differ) values(before, after protoreflect.EnumDescriptor) {
	taken := map[protoreflect.Name]bool{}
	var left []protoreflect.EnumValueDescriptor
	named, numbered := byName(after.Values()), byNumber(after.Values())
	for i := range before.Values().Len() {
		v := before.Values().Get(i)
		now := named[v.Name()]
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

	// unmatched returns the value with a number that no old value has matched so far. Several values can have
	// the same number.
	unmatched := func(n protoreflect.EnumNumber) protoreflect.EnumValueDescriptor {
		for _, v := range numbered[n] {
			if !taken[v.Name()] {
				return v
			}
		}
		return nil
	}

	for _, v := range left {
		now := unmatched(v.Number())
		if now == nil {
			c := Change{Change: Removed, Kind: ValueElement, Element: name(v), Old: strconv.Itoa(int(v.Number())), Breaks: BreaksJSON}
			if others := numbered[v.Number()]; len(others) > 0 {
				c.Note = fmt.Sprintf("%s still has this number", others[0].Name())
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
