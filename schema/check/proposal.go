package check

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"unwire/decode/wire"
	"unwire/schema/infer"
)

// A Proposal is a field that traffic has and definitions have not.
//
// Shape: a field of a type that is new itself follows the field whose type it
// is; Element then begins with the name that the type is proposed to have.
type Proposal struct {
	// full name of the field to be
	Element string    `json:"element"`
	Message string    `json:"message"`
	Number  int32     `json:"number"`
	Kind    wire.Kind `json:"kind"`
	Type    string    `json:"type"`
	Label   string    `json:"label"`
	Oneof   string    `json:"oneof,omitempty"`

	// the message is not in the definitions either
	New    bool    `json:"new"`
	P      float64 `json:"p"`
	TypeP  float64 `json:"type_p"`
	LabelP float64 `json:"label_p"`
	Seen   int64   `json:"seen"`
	Note   string  `json:"note,omitempty"`

	// addresses, the first of them; of the field that leads to a new type
	Frames []string `json:"frames"`
}

// Proposals infers the unknown fields of what was checked.
//
// Errors: those of Infer.
func (k *Checker) Proposals() ([]Proposal, error) {
	in, err := infer.Infer(k.evidence, infer.Options{Package: proposalPackage, Profile: k.o.Profile})
	if err != nil {
		return nil, err
	}
	known := map[string]string{} // inferred name of an existing type: its own
	for root, full := range in.Roots {
		known[full] = root
	}
	frames := map[string][]string{}
	list := []Proposal{}
	for _, f := range in.Fields {
		message, isNew := knownName(known, f.Message)
		typ := f.Type
		if strings.HasPrefix(typ, proposalPackage+".") {
			typ, _ = knownName(known, typ)
		} else if i := strings.Index(typ, proposalPackage+"."); i >= 0 && f.Label == infer.Map {
			value, _ := knownName(known, strings.TrimSuffix(typ[i:], ">"))
			typ = typ[:i] + value + ">"
		}
		p := Proposal{
			Element: fmt.Sprintf("%s.field_%d", message, f.Number), Message: message, Number: f.Number, Kind: f.Kind, Type: typ, Label: f.Label,
			Oneof: f.Oneof, New: isNew, P: f.P, TypeP: f.TypeP, LabelP: f.LabelP, Seen: f.Seen, Note: f.Note, Frames: []string{},
		}
		if at := k.unknownAt(message, f.Number); at != nil {
			p.Frames = at.frames
		} else if from, ok := frames[message]; ok {
			p.Frames = from
		}
		if f.Kind == "message" {
			frames[strings.TrimSuffix(typ[strings.LastIndexByte(typ, ' ')+1:], ">")] = p.Frames
		}
		list = append(list, p)
	}
	slices.SortStableFunc(list, func(a, b Proposal) int {
		return cmp.Or(strings.Compare(a.Message, b.Message), cmp.Compare(a.Number, b.Number))
	})
	return list, nil
}

// proposalPackage holds what is inferred until it has the names of what exists.
const proposalPackage = "unwire_proposal"

// knownName is the name in the definitions of a type that was inferred: of one
// that is new, its place below the type that leads to it.
func knownName(known map[string]string, full string) (name string, isNew bool) {
	if own, ok := known[full]; ok {
		return own, false
	}
	full = strings.TrimPrefix(full, proposalPackage+".")
	best, at := "", 0
	// a type's name begins in upper case, whatever the message's does
	for inferred, own := range known {
		stem := infer.UpperFirst(strings.TrimPrefix(inferred, proposalPackage+".")) + "Field"
		if strings.HasPrefix(full, stem) && len(stem) > at {
			best, at = own, len(stem)
		}
	}
	if best == "" {
		return full, true
	}
	return best + "Field" + full[at:], true
}

func (k *Checker) unknownAt(message string, number int32) *found {
	for at, f := range k.unknown {
		if at.message == message && at.number == number {
			return f
		}
	}
	return nil
}
