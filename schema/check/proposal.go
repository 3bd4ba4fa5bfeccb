package check

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"unwire/decode/wire"
	"unwire/schema/infer"
)

// A Proposal is a declaration that should be added to the definitions: the field occurs in traffic, but the
// definitions lack it.
//
// Shape: the fields of a new message type follow the field of that type. Their Element begins with the name that
// is proposed for the type.
type Proposal struct {
	// Element is the full name of the proposed field.
	Element string `json:"element"`
	// Message is the full name of the message type to which the field is added.
	Message string `json:"message"`
	// Number is the field number.
	Number int32 `json:"number"`
	// Kind is the most probable kind of the field's values.
	Kind wire.Kind `json:"kind"`
	// Type is the proposed type as in a .proto file.
	Type string `json:"type"`
	// Label is one of infer.Singular, infer.Optional, infer.Repeated and infer.Map.
	Label string `json:"label"`
	// Oneof is the name of the proposed oneof, or "".
	Oneof string `json:"oneof,omitempty"`

	// New is set if the message type of Message is not in the definitions either.
	New bool `json:"new"`
	// P is the probability of Kind, from 0 to 1.
	P float64 `json:"p"`
	// TypeP is the probability of Type, from 0 to 1.
	TypeP float64 `json:"type_p"`
	// LabelP is the probability of Label, from 0 to 1.
	LabelP float64 `json:"label_p"`
	// Seen is the number of messages that contain the field.
	Seen int64 `json:"seen"`
	// Note describes the values, for example their range; it may be "".
	Note string `json:"note,omitempty"`

	// Frames has the addresses of the first frames that contain the field. For a field of a new type, they are
	// those of the field whose type it is.
	Frames []string `json:"frames"`
}

// Proposals infers declarations for the unknown fields from their values.
//
// Errors: those of infer.Infer.
func (k *Checker) Proposals() ([]Proposal, error) {
	in, err := infer.Infer(k.evidence, infer.Options{Package: proposalPackage, Profile: k.o.Profile})
	if err != nil {
		return nil, err
	}

	// Inference has its own name
	// The names of declared types by their inferred names.
	known := map[string]string{}
	for root, full := range in.Roots {
		known[full] = root
	}
	frames := map[string][]string{}
	list := []Proposal{}

	for _, f := range in.Fields {
		message, isNew := knownName(known, f.Message)
		typ := f.Type
		if strings.HasPrefix(typ, proposalPackage+".") {
			// The inferred type of a field may be a new type, or a map of them.
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

// proposalPackage is the package of inferred types until they get the names of declared ones.
const proposalPackage = "unwire_proposal"

// knownName returns the final name of an inferred type. known maps inferred names to those in the definitions.
// A type that is not in known is new, and its name is derived from the path of fields that leads to it.
func knownName(known map[string]string, full string) (name string, isNew bool) {
	if own, ok := known[full]; ok {
		return own, false
	}
	full = strings.TrimPrefix(full, proposalPackage+".")
	best, at := "", 0
	// Inference derives the name of a type from the message and the number of the field: MessageField3. The name
	// begins in upper case even if the message's does not.
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

// unknownAt returns the finding about the unknown field of a message type with this number, or nil.
func (k *Checker) unknownAt(message string, number int32) *finding {
	for at, f := range k.unknown {
		if at.message == message && at.number == number {
			return f
		}
	}
	return nil
}
