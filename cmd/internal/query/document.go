package query

import (
	"unwire/cmd/internal/contract"
	"unwire/decode"
	"unwire/decode/fieldpath"
	"unwire/decode/kind"
	"unwire/decode/text"
	"unwire/decode/wire"
)

// A Misfit is a choice of a field's type that fits none of the field's values in a document.
type Misfit struct {
	// Choice is the type that the user chose, with the path of the field.
	Choice kind.Choice
	// Why is the reason for which the field's first value cannot have the chosen type.
	Why error
}

// FitDocument returns the choices of field types that fit no value in a document's messages.
//
// Errors: ChoiceError for a choice whose field no message has, with the misfits found before; a damaged
// document.
func FitDocument(doc *text.Document, choices []kind.Choice) ([]Misfit, error) {
	// A choice fits if it fits one message of the document; the reason of the first misfit is kept.
	has, fits, why := make([]bool, len(choices)), make([]bool, len(choices)), make([]error, len(choices))
	err := eachMessage(doc, func(t *wire.Tree) error {
		for i, c := range choices {
			if fits[i] {
				continue
			}
			here, unfit := fitMessage(t, c)
			has[i], fits[i] = has[i] || here, here && unfit == nil
			if why[i] == nil {
				why[i] = unfit
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}

	var misfits []Misfit
	for i, c := range choices {
		switch {
		case !has[i]:
			return misfits, &ChoiceError{Choice: c}
		case !fits[i]:
			misfits = append(misfits, Misfit{c, why[i]})
		}
	}
	return misfits, nil
}

// ExplainDocument calls do with the evidence for the types of the fields at a path, for each message of a
// document that has such a field. messages is the number of messages from which the evidence in v was
// collected.
//
// Errors: those of do, which stop it.
func ExplainDocument(doc *text.Document, v decode.View, path fieldpath.Path, messages int, do func([]contract.Explanation) error) error {
	return eachMessage(doc, func(t *wire.Tree) error {
		if list := Explain(t, v, path, messages); len(list) > 0 {
			return do(list)
		}
		return nil
	})
}

// eachMessage calls do with each protobuf message of a document. The tree is reused for the next message.
func eachMessage(doc *text.Document, do func(*wire.Tree) error) error {
	tree := new(wire.Tree)
	return doc.Parts(func(p text.Part) error {
		if p.Kind != "message" {
			return nil
		}
		tree.Reset(p.Data, wire.Options{})
		return do(tree)
	})
}
