package infer

import (
	"cmp"
	"strconv"
	"strings"

	"unwire/captures"
	"unwire/decode/fieldpath"
	"unwire/decode/kind"
	"unwire/decode/wire"
)

// maxChoices is the maximum number of fields of one method for which users chose a type.
const maxChoices = 1024

// chosenReadings are the types that users chose for fields of a method. The key is direction and field path:
// "up/1.2" maps to "string". They are stored and merged together with the evidence.
type chosenReadings map[string]string

// addChoices adds the choices for one direction. A choice for a single element of a list is ignored, because it
// does not apply to the whole field, and so is the type Auto.
func (cs chosenReadings) addChoices(dir captures.Direction, list []kind.Choice) {
	for _, c := range list {
		plain := c.Type != kind.Auto && len(c.Path) > 0
		// The index All stands for every element.
		for _, step := range c.Path {
			plain = plain && step.Index == fieldpath.All
		}
		if plain {
			cs.keepChoice(dir.String()+"/"+c.Path.String(), c.Type)
		}
	}
}

// keepChoice records the choice of the type typ for a field. If there are two for one field, the alphabetically
// smaller type wins, so that merging does not depend on the order.
func (cs chosenReadings) keepChoice(path, typ string) {
	if had, ok := cs[path]; ok && had <= typ || !ok && len(cs) >= maxChoices {
		return
	}
	cs[path] = typ
}

// of returns the types that users chose for messages in one direction, by field path.
func (cs chosenReadings) of(dir captures.Direction) map[string]kind.Choice {
	out := map[string]kind.Choice{}
	for at, typ := range cs {
		if path, ok := strings.CutPrefix(at, dir.String()+"/"); ok {
			if c, err := kind.ParseChoice(path + ":" + typ); err == nil {
				out[path] = c
			}
		}
	}
	return out
}

// chosenFor returns the users' choices for the fields of a root type (the type of whole messages), by field
// path. It returns nil if root is not the request or response type of a method.
func (e *Evidence) chosenFor(root string) map[string]kind.Choice {
	service, rpc, dir, ok := splitRoot(root)
	if m := e.methods[service+"/"+rpc]; ok && m != nil {
		return m.Choices.of(dir)
	}
	return nil
}

// childPath appends a field number to the path of a message: "1.2" and 3 give "1.2.3".
func childPath(path string, number int32) string {
	if path != "" {
		path += "."
	}
	return path + strconv.Itoa(int(number))
}

// judge decides which kind of values the field has. A user's choice wins if all payloads can be read that way;
// otherwise the evidence decides.
func (f *classField) judge() {
	f.judgement = kind.JudgeField(f.Field, f.messageCost)
	f.chosenFits = false
	c := f.chosen
	if c == nil {
		return
	}
	v := kind.Judgement{Kind: cmp.Or(c.Kind, f.judgement.Kind), P: 1, Odd: f.judgement.Odd}
	l := f.Len

	// Numbers and groups have their own wire types, so a choice can only confirm the kind. A bool must not have
	// had other values than 0 and 1.
	if l == nil {
		if v.Kind != f.judgement.Kind || c.Type == "bool" && (f.Varint.Max > 1 || f.Varint.Negative > 0) {
			return
		}
		f.judgement.P, f.chosenFits = 1, true
		return
	}

	typ := ""
	v.Kind, typ = c.For(wire.Len)
	switch typ {
	case "message":
		f.chosenFits = !l.NotMessage && f.childClass != nil
	case "string":
		f.chosenFits = !l.NotText
	case "bytes":
		f.chosenFits = true
	}

	switch v.Element = kind.ElementOf(typ); v.Element {
	case kind.PackedVarint:
		f.chosenFits = !l.NotVarints && (typ != "packed bool" || l.Elements.Max <= 1 && l.Elements.Lowest == 0)
	case kind.PackedFixed32:
		f.chosenFits = !l.NotFixed32
	case kind.PackedFixed64:
		f.chosenFits = !l.NotFixed64
	}

	if f.chosenFits {
		v.Odd = f.Occurs - l.N
		f.judgement = v
	}
}

// chosenType returns the type to declare because of the user's choice for numbers or packed numbers. It returns
// "" if there is no choice or if it does not fit the values.
func (f *classField) chosenType() string {
	if f.chosen == nil || !f.chosenFits {
		return ""
	}
	t := f.chosen.Type
	if f.Len != nil {
		_, packed := f.chosen.For(wire.Len)
		if t = kind.ElementType(packed); t == "varint" {
			// A choice of packed varints leaves the type of the elements open: the evidence decides it.
			return ""
		}
	}

	switch {
	case t == "enum":
		// The names and values of the enum are unknown, and an int32 reads the same bytes.
		return "int32"
	case strings.HasPrefix(t, "timestamp-"):
		switch f.judgement.Kind {
		case wire.KindFixed64:
			return "fixed64"
		case wire.KindFixed32:
			return "fixed32"
		}
		return "int64"
	default:
		return t
	}
}

// chosenNote returns a comment about the user's choice and whether it fits the values, or "".
func (f *classField) chosenNote() string {
	switch {
	case f.chosen == nil:
		return ""
	case f.chosenFits:
		return "chosen as " + f.chosen.Type
	}
	return "chosen as " + f.chosen.Type + ", which not all of its values can be"
}
