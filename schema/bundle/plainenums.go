package bundle

import (
	"fmt"
	"strings"

	"unwire/schema/bundle/jstree"

	"github.com/tdewolff/parse/v2/js"

	"unwire/schema/bundle/model"
	"unwire/schema/bundle/protoname"
)

// plainEnums extracts enums that code generators write as objects of numbers next to messages: Color = {RED: 0,
// BLUE: 5}. Objects of numbers are common, so they count only if all names are in capitals and the object is
// directly in one of modules, the function bodies (0 for the script) in which messages were found.
func (x *scan) plainEnums(form string, modules map[int32]bool, origins map[int32]origin) {
	s := x.Script
	if !s.MayScanSpan(0, int32(len(s.Toks))) {
		return
	}
	for i := range s.Toks {
		at := int32(i)
		if s.Typ(at) != js.OpenBraceToken || s.Typ(at-1) != js.EqToken || !modules[s.Function(s.Tok(at-1).Bracket)] {
			continue
		}
		values := x.plainValues(s.Expr(at))
		if len(values) == 0 {
			continue
		}
		ids, words := s.BoundNames(at)
		word, _ := x.exportedName(ids, words, origins)

		// Item.Kind = {…} is nested in Item.
		if s.Typ(at-3) == js.DotToken {
			if key, ok := s.KeyOf(s.ObjectOf(at - 2)); ok && x.isMessageWord(s.Text(key.Root)+key.Path) {
				word = s.Text(key.Root) + key.Path + "." + s.Text(at-2)
			}
		}
		if len(word) <= 2 && s.Minified() {
			word = placeholder("Enum", fmt.Sprint(values))
		}
		if !protoname.ValidFull(word) {
			continue
		}
		x.Enums = append(x.Enums, &model.Enum{Def: x.def(word, form, at, append(ids, at)), Values: values})
	}
}

// isMessageWord reports whether a message with that full name was found in the script.
func (x *scan) isMessageWord(name string) bool {
	if !x.MayScanSpan(0, int32(len(x.Messages))) {
		return false
	}
	for _, m := range x.Messages {
		if m.Full == name {
			return true
		}
	}
	return false
}

// plainValues returns the values of an enum object. It returns nil unless all members have upper-case names and
// a number as their value, or (pbf 3) an object with such a number.
func (x *scan) plainValues(o *jstree.Node) []model.EnumValue {
	if o.Kind != jstree.ObjectNode || len(o.Props) == 0 {
		return nil
	}
	var list []model.EnumValue
	for _, p := range o.Props {
		value := p.Value
		if inner := value.Get("value"); inner != nil {
			value = inner
		}
		number, ok := x.Integer(value)
		if !ok || number != int64(int32(number)) || !protoname.Valid(p.Name) || p.Name != strings.ToUpper(p.Name) {
			return nil
		}
		list = append(list, model.EnumValue{Name: p.Name, Number: int32(number)})
	}
	return list
}
