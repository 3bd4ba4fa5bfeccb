package probe

import (
	"fmt"
	"slices"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"

	"unwire/schema/compare"
)

// maxExpectations limits the number of fields that are verified.
const maxExpectations = 3000

// A Definition is a request's protobuf definition as a list of expectations about the server's parser,
// which its responses confirm or contradict.
type Definition struct {
	// Fields are all fields of the request, including nested ones; a message precedes its fields.
	Fields []*Expectation

	// Messages are the request and the nested messages that are verified; each type occurs once.
	Messages []*ExpectedMessage

	// truncated means that there are more than maxExpectations fields.
	truncated bool
}

// An ExpectedMessage is the request, or a message nested in it, with the fields that its definition
// declares.
type ExpectedMessage struct {
	// Path are the field numbers that lead to the message; empty for the request.
	Path []int32

	// Above is the field that contains the message; nil for the request.
	Above *Expectation

	// Fields are the fields of the message, sorted by number.
	Fields []*Expectation
}

// An Expectation is a field of a definition, with the result of verifying it against the server's
// parser.
type Expectation struct {
	// verifiedField has the declaration of the field and the verdict about it.
	verifiedField
	// Descriptor is the descriptor of the field.
	Descriptor protoreflect.FieldDescriptor

	// Class is the class of types, as parsers distinguish them, of the declared type.
	Class Class

	// IsMessage is set for messages except groups, IsText for strings, IsList for repeated fields, and
	// IsNumber for numbers and lists of numbers.
	IsMessage, IsText, IsList, IsNumber bool

	// OpenType describes what the wire format cannot reveal about a number's type, such as whether it
	// is signed.
	OpenType string

	// In is the message that has the field.
	In *ExpectedMessage

	// Below is the message that the field contains; nil if that is not verified or the field is not a
	// message.
	Below *ExpectedMessage

	// Hint has the wire types of the field in requests that the server accepted.
	Hint Hint

	// Doubted means that the server does not parse the field as declared, and its actual type is not
	// known yet. Decided means that Verdict and Concluded are set.
	Doubted, Decided bool
}

// Definition returns the fields of the request and of the messages in it, down to Options.Depth. A
// message type is listed once, at its first occurrence.
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

// newExpectation returns the expectation for the declared field fd of the message in.
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
		e.Decide(Undecided, "unwire does not test groups")
	}
	return e
}

// classOf returns the class of a field of kind k.
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

// openTypes describes, for each class, what the wire format cannot reveal about a number's type.
var openTypes = map[Class]string{
	Varint:  "which varint type it is, such as int32, sint64, bool or an enum",
	Fixed32: "whether it is fixed32, sfixed32 or float",
	Fixed64: "whether it is fixed64, sfixed64 or double",
}

// isGroup reports whether the field is declared as a group.
func (e *Expectation) isGroup() bool { return e.Descriptor.Kind() == protoreflect.GroupKind }

// Cite adds a formatted quotation of the server, from its response to the request with this number.
func (e *Expectation) Cite(request int, format string, args ...any) {
	e.Said = append(e.Said, fmt.Sprintf("unwire's request %d: ", request)+fmt.Sprintf(format, args...))
}

// Decide sets the verdict about the field, and its reason, formatted as by fmt.Sprintf.
func (e *Expectation) Decide(verdict Verdict, format string, args ...any) {
	e.Doubted, e.Decided = false, true
	e.Verdict, e.Concluded = verdict, fmt.Sprintf(format, args...)
	if verdict != Confirmed {
		e.Open = ""
	}
}

// Leave adds a remark about something that stays unknown although the field is confirmed.
func (e *Expectation) Leave(open string) {
	if e.Open != "" {
		open = e.Open + "; " + open
	}
	e.Open = open
}

// Settle replaces the remark open, which Leave added, by another; "" removes it.
func (e *Expectation) Settle(open, by string) {
	e.Open = strings.Replace(e.Open, open, by, 1)
	e.Open = strings.TrimSuffix(strings.TrimSpace(e.Open), ";")
}

// Reachable reports whether all messages around the field may be as declared, so that the field can be
// tested.
func (e *Expectation) Reachable() bool {
	for above := e.In.Above; above != nil; above = above.In.Above {
		if above.Doubted || above.Decided && above.Verdict != Confirmed {
			return false
		}
	}
	return true
}

// Pending reports whether the field can and must still be tested.
func (e *Expectation) Pending() bool { return !e.Doubted && !e.Decided && e.Reachable() }
