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

// maxChoices bounds the readings that were chosen for one method.
const maxChoices = 1024

// choosings are the readings that somebody chose for fields of a method, by
// direction and path: "up/1.2" is "string". Part of the evidence, they merge.
type choosings map[string]string

// addChoices notes the choices about a direction. Those about one element of a list
// are not about the field, and left out.
func (cs choosings) addChoices(dir captures.Direction, list []kind.Choice) {
	for _, c := range list {
		plain := c.Type != kind.Auto && len(c.Path) > 0
		for _, step := range c.Path {
			plain = plain && step.Index == fieldpath.All
		}
		if plain {
			cs.keepChoice(dir.String()+"/"+c.Path.String(), c.Type)
		}
	}
}

// keepChoice keeps one of two choices about a field: which, does not depend on their order.
func (cs choosings) keepChoice(path, typ string) {
	if had, ok := cs[path]; ok && had <= typ || !ok && len(cs) >= maxChoices {
		return
	}
	cs[path] = typ
}

// of returns the choices about one direction, by path.
func (cs choosings) of(dir captures.Direction) map[string]kind.Choice {
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

// chosenFor are the choices about a root's fields.
func (e *Evidence) chosenFor(root string) map[string]kind.Choice {
	service, rpc, dir, ok := splitRoot(root)
	if m := e.methods[service+"/"+rpc]; ok && m != nil {
		return m.Choices.of(dir)
	}
	return nil
}

// below is the path of a field of the message at path.
func below(path string, number int32) string {
	if path != "" {
		path += "."
	}
	return path + strconv.Itoa(int(number))
}

// judge judges the field: as was chosen where all payloads can be read
// so, else by the evidence.
func (f *classField) judge() {
	f.judgement = kind.JudgeField(f.Field, f.messageCost)
	f.chosenFits = false
	c := f.chosen
	if c == nil {
		return
	}
	v := kind.Judgement{Kind: cmp.Or(c.Kind, f.judgement.Kind), P: 1, Odd: f.judgement.Odd}
	l := f.Len
	if l == nil { // numbers and groups: the wire says which
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
		f.chosenFits = !l.NotMessage && f.kid != nil
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

// chosenType is the type of a number as it was chosen, or "".
func (f *classField) chosenType() string {
	if f.chosen == nil || !f.chosenFits {
		return ""
	}
	t := f.chosen.Type
	if f.Len != nil {
		_, packed := f.chosen.For(wire.Len)
		if t = kind.ElementType(packed); t == "varint" {
			return "" // of which type, the evidence says
		}
	}
	switch {
	case t == "enum":
		return "int32" // whose names and numbers nobody knows; it reads alike
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

// chosenNote says what was chosen, and where that cannot be.
func (f *classField) chosenNote() string {
	switch {
	case f.chosen == nil:
		return ""
	case f.chosenFits:
		return "chosen as " + f.chosen.Type
	}
	return "chosen as " + f.chosen.Type + ", which not all of its values can be"
}
