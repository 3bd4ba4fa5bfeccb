package probe

import (
	"fmt"
	"slices"
	"unwire/schema/compare"

	"google.golang.org/protobuf/reflect/protoreflect"
)

// maxExpectations is how many fields are verified; each takes up to three canaries.
const maxExpectations = 3000

// A Definition is what definitions say of a request: the fields that a server's
// answers confirm or contradict.
type Definition struct {
	// all are the fields, those above before those below.
	all []*Expectation

	// messages are the request, and those below it that are followed.
	messages []*ExpectedMessage

	// truncated says that there are more fields than are verified at once.
	truncated bool
}

// An ExpectedMessage is a message of a request with the fields that it is said to
// have.
type ExpectedMessage struct {
	path []int32

	// above is the field that it is; nil for the request.
	above *Expectation

	// fields are in the order of their numbers.
	fields []*Expectation
}

// An Expectation is a field of a definition, with what came of asking for it.
type Expectation struct {
	VerifiedField
	descriptor protoreflect.FieldDescriptor

	// in is the message that has the field, and below the message that it is; nil
	// where that is not followed.
	in    *ExpectedMessage
	below *ExpectedMessage

	// hint is what accepted requests show of it.
	hint Hint

	// doubted says that the server does not read it as expected, and not yet how
	// it does; decided that Verdict and Concluded are set.
	doubted, decided bool
}

// Definition lists the fields of a request and of the messages in it, down to
// Options.Depth. A message type is listed once, where it is found first.
func (o *VerifyOptions) Definition() *Definition {
	seen := map[protoreflect.FullName]bool{o.Request.FullName(): true}
	d := &Definition{messages: []*ExpectedMessage{{path: o.Path}}}
	types := []protoreflect.MessageDescriptor{o.Request}
	for i := 0; i < len(d.messages); i++ {
		m, md := d.messages[i], types[i]
		for k := range md.Fields().Len() {
			if len(d.all) >= maxExpectations {
				d.truncated = true
				return d
			}
			e := newExpectation(m, md.Fields().Get(k))
			e.hint = o.Seen[e.Path]
			d.all, m.fields = append(d.all, e), append(m.fields, e)
			sub := e.descriptor.Message()
			if sub == nil || e.descriptor.IsMap() || e.isGroup() || seen[sub.FullName()] || len(m.path)-len(o.Path) >= o.Depth {
				continue
			}
			seen[sub.FullName()] = true
			e.below = &ExpectedMessage{path: append(slices.Clone(m.path), e.Number), above: e}
			d.messages, types = append(d.messages, e.below), append(types, sub)
		}
		slices.SortFunc(m.fields, func(a, b *Expectation) int { return int(a.Number) - int(b.Number) })
	}
	return d
}

func newExpectation(in *ExpectedMessage, fd protoreflect.FieldDescriptor) *Expectation {
	e := &Expectation{descriptor: fd, in: in, VerifiedField: VerifiedField{
		Message: string(fd.ContainingMessage().FullName()), Number: int32(fd.Number()), Name: string(fd.Name()),
		Type: compare.TypeOf(fd), Label: "singular", Verdict: Undecided, Said: []string{},
	}}
	e.Path = pathText(append(slices.Clone(in.path), e.Number))
	switch {
	case fd.IsMap():
		e.Label = "map"
	case fd.IsList():
		e.Label = "repeated"
	}
	if e.isGroup() {
		e.decide(Undecided, "groups are not asked about")
	}
	return e
}

// class is how a parser consumes the field, if it is as the definitions say.
func (e *Expectation) class() Class {
	switch k := e.descriptor.Kind(); k {
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

func (e *Expectation) isGroup() bool   { return e.descriptor.Kind() == protoreflect.GroupKind }
func (e *Expectation) isMessage() bool { return e.descriptor.Kind() == protoreflect.MessageKind }
func (e *Expectation) isList() bool    { return e.descriptor.IsList() }
func (e *Expectation) isText() bool    { return e.descriptor.Kind() == protoreflect.StringKind }

// isNumber reports whether it is a number, of which there may be lists.
func (e *Expectation) isNumber() bool {
	switch e.class() {
	case Varint, Fixed32, Fixed64:
		return true
	}
	return false
}

// openType says what the wire does not show of a number's type.
func (e *Expectation) openType() string {
	switch e.class() {
	case Varint:
		return "which of the kinds that are a varint"
	case Fixed32:
		return "fixed32, sfixed32 or float"
	case Fixed64:
		return "fixed64, sfixed64 or double"
	}
	return ""
}

// cite adds what the server said in its answer to a request.
func (e *Expectation) cite(request int, format string, args ...any) {
	e.Said = append(e.Said, fmt.Sprintf("request %d: ", request)+fmt.Sprintf(format, args...))
}

// decide sets the verdict, and the reason for it.
func (e *Expectation) decide(verdict Verdict, format string, args ...any) {
	e.doubted, e.decided = false, true
	e.Verdict, e.Concluded = verdict, fmt.Sprintf(format, args...)
	if verdict != Confirmed {
		e.Open = ""
	}
}

// reachable reports whether all messages that lead to a field may still be what
// the definitions say.
func (e *Expectation) reachable() bool {
	for above := e.in.above; above != nil; above = above.in.above {
		if above.doubted || above.decided && above.Verdict != Confirmed {
			return false
		}
	}
	return true
}

// pending reports whether there is something to ask of a field.
func (e *Expectation) pending() bool { return !e.doubted && !e.decided && e.reachable() }
