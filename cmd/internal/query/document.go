package query

import (
	"unwire/cmd/internal/contract"
	"unwire/decode"
	"unwire/decode/fieldpath"
	"unwire/decode/kind"
	"unwire/decode/text"
	"unwire/decode/wire"
)

// A Misfit is a choice that fits no value of a document, and why not.
type Misfit struct {
	// Choice is the choice that does not fit, and Why the reason.
	Choice kind.Choice
	Why    error
}

// FitDocument finds the choices by which no value of a document's messages can be read.
//
// Errors: ChoiceError for a choice whose field no message has, with the misfits before
// it; damage of the document.
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

// ExplainDocument calls do with why the fields at a path of a document's messages are
// read as they are, for each message that has some. Messages is how many the view's
// evidence was drawn from.
//
// Errors: those of do, which end it.
func ExplainDocument(doc *text.Document, v decode.View, path fieldpath.Path, messages int, do func([]contract.Explanation) error) error {
	return eachMessage(doc, func(t *wire.Tree) error {
		if list := Explain(t, v, path, messages); len(list) > 0 {
			return do(list)
		}
		return nil
	})
}

// eachMessage parses the messages of a document; the tree is reused.
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
