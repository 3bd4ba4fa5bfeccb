package bundle

import (
	"github.com/tdewolff/parse/v2/js"
	"unwire/schema/bundle/jstree"

	"unwire/schema/bundle/model"
	"unwire/schema/bundle/protoname"
)

// protons extracts definitions from the output of protons: namespaces with codec = () => message((obj, w, opts)
// => …, (reader, length, opts) => …). The second function has one case for each field.
func (x *scan) protons() {
	s := x.Script
	var spaces *tsSpaces
	done := map[int32]bool{}
	for _, at := range s.Anchors[jstree.AnchorLengthDelimited] {
		encoder := s.Function(s.Tok(at).Bracket)
		if done[encoder] || encoder == 0 || s.Typ(at-1) != js.DotToken && s.Typ(at-1) != js.OptChainToken {
			continue
		}
		done[encoder] = true

		// Both functions are arguments of one call.
		own := s.Brackets[s.Brackets[encoder].Parent]
		if own.Kind != '(' {
			continue
		}
		r := jstree.Reader{Script: s}
		args := r.List(own.Open+1, own.Close)
		if len(args) < 2 || args[0].Kind != jstree.FuncNode || args[0].Body != encoder || args[1].Kind != jstree.FuncNode || len(args[1].Kids) > 0 {
			continue
		}
		if spaces == nil {
			spaces = x.tsSpaces()
		}
		spaces.protonsMessage(at, encoder, args[1].Body)
	}
	if spaces != nil {
		spaces.protonsEnums()
	}
}

// protonsMessage extracts a message from the bodies of the functions that encode and decode it. at is the token
// for the place in reports.
func (t *tsSpaces) protonsMessage(at, encoder, decoder int32) {
	s := t.Script
	full, ids := t.enclosing(at)
	m := &model.Message{Def: t.def(full, model.FormProtons, at, ids)}
	b := s.Brackets[decoder]
	object, initial := s.NewObject(decoder)
	packed := false
	for _, c := range s.SwitchCases(b.Open, b.Close) {
		target, ok := s.TargetOfCase(c, object)
		if !ok {
			t.unresolved(full, c.From, "a case reads no field")
			continue
		}
		f := &model.Field{Number: c.Number, Name: target.Name, Repeated: target.Repeated, Place: t.place(target.At)}
		t.protonsType(f, c, target, s.Param(decoder, 0))
		if f.Scalar == 0 && f.Ref == nil {
			t.unresolved(protoname.Join(full, f.Name), target.At, "the type of the field was not found, so extract left it out")
			continue
		}
		// The encoder writes each element with its tag.
		if f.Repeated && (f.Ref != nil && f.Ref.Enum || f.Ref == nil && model.Packable(f.Scalar)) {
			f.Packed = &packed
		}
		// A member that a new object lacks has explicit presence.
		f.Presence = !f.Repeated && !f.Entry && (f.Scalar != 0 || f.Ref.Enum) && initial.Get(f.Name) == nil
		m.Fields = append(m.Fields, f)
	}

	t.protonsOneofs(m, encoder)
	m.RestoreSnakeCase()
	if !protoname.ValidFull(full) {
		m.Full = t.inventedName(m)
		t.unresolved(m.Full, at, "a minifier removed its name, so extract made one up")
	}
	t.Messages = append(t.Messages, m)
}

// protonsType sets the type of a field from the call in the case c that reads it: reader.string(),
// Item.codec().decode(reader, reader.uint32()) for a message, Color.codec().decode(reader) for an enum.
func (t *tsSpaces) protonsType(f *model.Field, c jstree.FieldCase, target jstree.CaseTarget, reader string) {
	s := t.Script
	for i := c.From; i < c.To; i++ {
		if s.Typ(i-1) != js.DotToken || s.Typ(i+1) != js.OpenParenToken {
			continue
		}
		if s.Is(i, "decode") && s.Is(i+2, reader) {
			codec := s.ObjectOf(i)
			if codec.Kind != jstree.MemberNode || codec.Str != "codec" {
				continue
			}
			f.Ref = t.typeRef(codec.Kids[0])
			f.Ref.Enum = s.Typ(i+3) == js.CloseParenToken
			f.Entry = target.Keyed
			return
		}
		if s.Is(i-2, reader) && i > target.At {
			if f.Scalar = t.scalarNamed(s.Text(i)); f.Scalar != 0 {
				return
			}
		}
	}
}

// protonsOneofs finds the oneofs of a message. The encoder writes only one member of each, so it begins with if
// (obj.b != null) { obj.a = undefined }. The output lacks the names of oneofs, so they are derived from a
// member.
func (t *tsSpaces) protonsOneofs(m *model.Message, encoder int32) {
	s := t.Script
	object := s.Param(encoder, 0)
	by := map[string]*model.Field{}
	for _, f := range m.Fields {
		by[f.Name] = f
	}
	b := s.Brackets[encoder]
	for i := b.Open; i < b.Close; i++ {
		// obj.a = undefined, which minifiers write as void 0
		if !s.Is(i, object) || s.Typ(i+1) != js.DotToken || s.Typ(i+3) != js.EqToken || s.Typ(i+4) != js.VoidToken && !s.Is(i+4, "undefined") {
			continue
		}
		kept, dropped := by[s.ComparedBefore(object, b.Open, i)], by[s.Text(i+2)]
		if kept == nil || dropped == nil || kept == dropped {
			continue
		}
		name := kept.Oneof + dropped.Oneof
		switch {
		case name == "":
			name = protoname.Snake(kept.Name) + "_oneof"
		case kept.Oneof != "":
			name = kept.Oneof
		}
		kept.Oneof, dropped.Oneof = name, name
		kept.Presence, dropped.Presence = false, false
	}
}

// protonsEnums extracts enums: namespaces with codec = () => enumeration(values).
func (t *tsSpaces) protonsEnums() {
	s := t.Script
	done := map[string]bool{}
	for _, body := range t.bodies {
		full := t.path(body)
		if full != "" && done[full] || !s.MayScan(body) {
			continue
		}
		for i := s.Brackets[body].Open; i < s.Brackets[body].Close; i++ {
			if !s.Is(i, "codec") || s.Typ(i+1) != js.EqToken || s.Typ(i-1) != js.DotToken || s.Function(s.Tok(i).Bracket) != body {
				continue
			}
			call := s.Result(s.Expr(i + 2))
			if call == nil || call.Kind != jstree.CallNode || len(call.Kids) != 2 {
				continue
			}
			if values := enumValues(s, call.Kids[1]); len(values) > 0 {
				done[full] = true
				t.addEnum(full, model.FormProtons, i, t.ids[body], values)
			}
		}
	}
}
