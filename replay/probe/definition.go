package probe

import (
	"fmt"
	"slices"

	"google.golang.org/protobuf/reflect/protoreflect"

	"unwire/schema/compare"
)

// maxExpectations is how many fields are verified; each takes up to three canaries.
const maxExpectations = 3000

// A Definition is what definitions say of a request: the fields that a server's
// answers confirm or contradict.
type Definition struct {
	// Fields are the fields, those above before those below.
	Fields []*Expectation

	// Messages are the request, and those below it that are followed.
	Messages []*ExpectedMessage

	// truncated says that there are more fields than are verified at once.
	truncated bool
}

// An ExpectedMessage is a message of a request with the fields that it is said to
// have.
type ExpectedMessage struct {
	Path []int32

	// Above is the field that it is; nil for the request.
	Above *Expectation

	// Fields are in the order of their numbers.
	Fields []*Expectation
}

// An Expectation is a field of a definition, with what came of asking for it.
type Expectation struct {
	verifiedField
	Descriptor protoreflect.FieldDescriptor

	// Class is how a parser consumes the field, if it is as the definitions say.
	Class Class

	// IsMessage says that it is a message, and no group; IsText that it is a string;
	// IsList that it is repeated; IsNumber that it is a number, or a list of them.
	IsMessage, IsText, IsList, IsNumber bool

	// OpenType is what the wire does not show of a number's type.
	OpenType string

	// In is the message that has the field, and below the message that it is; nil
	// where that is not followed.
	In    *ExpectedMessage
	Below *ExpectedMessage

	// Hint is what accepted requests show of it.
	Hint Hint

	// Doubted says that the server does not read it as expected, and not yet how
	// it does; decided that Verdict and Concluded are set.
	Doubted, Decided bool
}

// Definition lists the fields of a request and of the messages in it, down to
// Options.Depth. A message type is listed once, where it is found first.
func (o *VerifyOptions) Definition() *Definition {
	seen := map[protoreflect.FullName]bool{o.Request.FullName(): true}
	d := &Definition{Messages: []*ExpectedMessage{{Path: o.Path}}}
	types := []protoreflect.MessageDescriptor{o.Request}
	for i := 0; i < len(d.Messages); i++ {
		m, md := d.Messages[i], types[i]
		for k := range md.Fields().Len() {
			if len(d.Fields) >= maxExpectations {
				d.truncated = true
				return d
			}
			e := newExpectation(m, md.Fields().Get(k))
			e.Hint = o.Seen[e.Path]
			d.Fields, m.Fields = append(d.Fields, e), append(m.Fields, e)
			sub := e.Descriptor.Message()
			if sub == nil || e.Descriptor.IsMap() || e.isGroup() || seen[sub.FullName()] || len(m.Path)-len(o.Path) >= o.Depth {
				continue
			}
			seen[sub.FullName()] = true
			e.Below = &ExpectedMessage{Path: append(slices.Clone(m.Path), e.Number), Above: e}
			d.Messages, types = append(d.Messages, e.Below), append(types, sub)
		}
		slices.SortFunc(m.Fields, func(a, b *Expectation) int { return int(a.Number) - int(b.Number) })
	}
	return d
}

func newExpectation(in *ExpectedMessage, fd protoreflect.FieldDescriptor) *Expectation {
	e := &Expectation{Descriptor: fd, In: in, verifiedField: verifiedField{
		Message: string(fd.ContainingMessage().FullName()), Number: int32(fd.Number()), Name: string(fd.Name()),
		Type: compare.TypeOf(fd), Label: "singular", Verdict: Undecided, Said: []string{},
	}}
	e.Path = PathText(append(slices.Clone(in.Path), e.Number))
	e.Class = classOf(fd.Kind())
	e.IsMessage, e.IsText, e.IsList = fd.Kind() == protoreflect.MessageKind, fd.Kind() == protoreflect.StringKind, fd.IsList()
	e.OpenType, e.IsNumber = openTypes[e.Class], e.Class != Len && e.Class != Message
	switch {
	case fd.IsMap():
		e.Label = "map"
	case fd.IsList():
		e.Label = "repeated"
	}
	if e.isGroup() {
		e.Decide(Undecided, "groups are not asked about")
	}
	return e
}

// classOf is how a parser consumes a field of a kind.
func classOf(k protoreflect.Kind) Class {
	switch k {
	case protoreflect.StringKind, protoreflect.BytesKind:
		return Len
	case protoreflect.MessageKind, protoreflect.GroupKind:
		return Message
	case protoreflect.Fixed32Kind, protoreflect.Sfixed32Kind, protoreflect.FloatKind:
		return Fixed32
	case protoreflect.Fixed64Kind, protoreflect.Sfixed64Kind, protoreflect.DoubleKind:
		return Fixed64
	}
	return Varint
}

// openTypes are what the wire does not show of a number's type, by its class.
var openTypes = map[Class]string{
	Varint:  "which of the kinds that are a varint",
	Fixed32: "fixed32, sfixed32 or float",
	Fixed64: "fixed64, sfixed64 or double",
}

func (e *Expectation) isGroup() bool { return e.Descriptor.Kind() == protoreflect.GroupKind }

// Cite adds what the server said in its answer to a request.
func (e *Expectation) Cite(request int, format string, args ...any) {
	e.Said = append(e.Said, fmt.Sprintf("request %d: ", request)+fmt.Sprintf(format, args...))
}

// Decide sets the verdict, and the reason for it.
func (e *Expectation) Decide(verdict Verdict, format string, args ...any) {
	e.Doubted, e.Decided = false, true
	e.Verdict, e.Concluded = verdict, fmt.Sprintf(format, args...)
	if verdict != Confirmed {
		e.Open = ""
	}
}

// Reachable reports whether all messages that lead to a field may still be what
// the definitions say.
func (e *Expectation) Reachable() bool {
	for above := e.In.Above; above != nil; above = above.In.Above {
		if above.Doubted || above.Decided && above.Verdict != Confirmed {
			return false
		}
	}
	return true
}

// Pending reports whether there is something to ask of a field.
func (e *Expectation) Pending() bool { return !e.Doubted && !e.Decided && e.Reachable() }
