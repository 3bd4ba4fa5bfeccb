package query

import (
	"math"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/reflect/protoreflect"

	"unwire/cmd/internal/contract"
	"unwire/decode"
	"unwire/decode/fieldpath"
	"unwire/decode/kind"
	"unwire/decode/wire"
)

// Explain returns the evidence for the types of the fields at a path of a message. messages is the number
// of messages from which the evidence in v was collected.
func Explain(t *wire.Tree, v decode.View, path fieldpath.Path, messages int) []contract.Explanation {
	// with what was chosen, and without
	r, evidence := v.Reader(t), v.Evidence.NewReader(t)
	if v.Evidence == nil {
		messages = 1
	}

	var out []contract.Explanation
	done := map[*kind.Field]bool{}
	for _, i := range t.Find(path) {
		f := r.Field(i)
		if i == 0 || f == nil || done[f] && f.Occurs > 1 {
			continue // the evidence of one field is that of all its values
		}
		done[f] = true
		e := contract.Explanation{
			Path: t.PathOf(i).String(), Off: t.Node(i).Off, Messages: messages,
			Seen: f.Seen, Occurs: f.Occurs, Most: f.Most, Declared: declarationText(declarationAt(v.Type, t.FieldPath(i))),
		}
		var unfit error
		if e.Chosen, unfit = r.Chosen(i); unfit != nil {
			e.Error = unfit.Error()
		}

		list := evidence.Readings(i)
		for _, g := range list {
			why := g.Why
			if why == nil {
				why = []kind.Feature{}
			}
			e.Readings = append(e.Readings, contract.ExplainedReading{Kind: string(g.Kind), Type: g.Type, P: math.Round(g.P*1e4) / 1e4, Why: why})
		}
		e.Settle = kind.ResolvingEvidence(f, list)
		is, typ, _ := r.Best(i)
		if e.Chosen {
			e.Type = typ
		}
		m := r.Remark(i, is, typ)
		e.Form, e.Shape, e.Note = m.Form, m.Shape, m.Note
		out = append(out, e)
	}
	return out
}

// declarationText returns the full name and the type of a field definition, such as "shop.v1.Item.name:
// string"; "" for nil.
func declarationText(fd protoreflect.FieldDescriptor) string {
	switch {
	case fd == nil:
		return ""
	case fd.Message() != nil:
		return string(fd.FullName()) + ": " + string(fd.Message().FullName())
	}
	return string(fd.FullName()) + ": " + fd.Kind().String()
}

// declarationAt returns the field that the message type md declares at a path; nil if there is none.
func declarationAt(md protoreflect.MessageDescriptor, path fieldpath.Path) protoreflect.FieldDescriptor {
	var fd protoreflect.FieldDescriptor
	for _, s := range path {
		number, ok := s.Number()
		if md == nil || !ok || number > uint64(protowire.MaxValidNumber) {
			return nil
		}
		if fd = md.Fields().ByNumber(protowire.Number(number)); fd == nil {
			return nil
		}
		md = fd.Message()
	}
	return fd
}
