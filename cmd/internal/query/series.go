package query

import (
	"context"
	"fmt"

	"google.golang.org/protobuf/reflect/protoreflect"

	"unwire/cmd/internal/contract"
	"unwire/decode"
	"unwire/decode/diff"
	"unwire/decode/kind"
	"unwire/decode/wire"
)

// maxSeries is the largest number of exchanges or messages in a series.
const maxSeries = 2000

// A Series describes how the values at each path vary over several messages, or over several exchanges of
// one method.
type Series struct {
	// Variations has one element for each path.
	Variations []diff.Variation

	// Length is the number of compared messages or exchanges.
	Length int

	// Unit is what the series consists of: "message" or "exchange".
	Unit string

	// names finds the field names of paths.
	names namer
}

// Field returns the definition of the field at a variation's path, and the path in field names; nil and
// "" if they are not known.
func (s *Series) Field(v *diff.Variation) (protoreflect.FieldDescriptor, string) {
	return s.names.field(v.Path)
}

// Lines returns the variations as objects for JSON output.
func (s *Series) Lines() []*contract.Variation {
	list := make([]*contract.Variation, len(s.Variations))
	for i := range list {
		_, name := s.Field(&s.Variations[i])
		list[i] = &contract.Variation{Variation: s.Variations[i], Name: name}
	}
	return list
}

// CompareSeries compares several frames, files of one message each, or exchanges. If a part is
// a capture, CompareSeries compares all of its exchanges of the given method.
//
// Limits: 2,000 messages or exchanges. Errors: DiffError, and those of Open and Read.
func CompareSeries(ctx context.Context, parts []string, method string, o DiffOptions) (*Series, error) {
	in := seriesInput{DiffOptions: o, method: method}
	for _, part := range parts {
		if err := in.addInput(ctx, part); err != nil {
			return nil, err
		}
	}
	s := &Series{Length: max(len(in.exchanges), len(in.messages)), Unit: "message"}
	// The arguments must be of one kind, and at least two.
	switch {
	case len(in.exchanges) > 0 && len(in.messages) > 0:
		return nil, &DiffError{Problem: Unlike, text: "--series cannot mix exchanges and single messages"}
	case s.Length == 0:
		return nil, &DiffError{Problem: NoExchange, text: "no exchange to compare"}
	case s.Length < 2:
		return nil, &DiffError{Problem: Unlike, text: "--series needs at least two messages or exchanges"}
	}

	var err error
	if s.names, err = o.namesOfMessages(in.messages...); err != nil {
		return nil, err
	}
	if len(in.exchanges) > 0 {
		s.Unit = "exchange"
		s.names.call = in.exchanges[0].Call
		s.Variations = diff.ExchangeSeries(in.exchanges)
		return s, nil
	}
	var trees []*wire.Tree
	var choices []kind.Choice
	for _, m := range in.messages {
		trees = append(trees, wire.Parse(m.Data, wire.Options{}))
		choices = append(choices, m.Choices...)
	}
	s.Variations = diff.TreeSeries(trees, choices)
	return s, nil
}

// A seriesInput collects what a series consists of: either exchanges or messages.
type seriesInput struct {
	// DiffOptions say how values are compared.
	DiffOptions

	// method selects the exchanges of captures.
	method string

	// exchanges are the exchanges added so far.
	exchanges []*decode.Exchange

	// messages are the messages added so far.
	messages []locatedMessage
}

// addInput adds the frame, exchange, capture or file that name names.
func (s *seriesInput) addInput(ctx context.Context, name string) error {
	at := ParseAddress(name)
	if len(s.exchanges)+len(s.messages) >= maxSeries {
		return &DiffError{Problem: Unlike, text: fmt.Sprintf("--series compares at most %d messages or exchanges", maxSeries)}
	}
	// An exchange, all calls of a capture, or a single message.
	switch {
	case at.Exchange != 0 && at.Frame < 0:
		ex, err := s.exchange(ctx, at)
		if err == nil {
			s.exchanges = append(s.exchanges, ex)
		}
		return err
	case at.Exchange == 0 && IsCapture(at.File):
		if s.method == "" {
			return &DiffError{Problem: NoMethod, At: at, text: fmt.Sprintf("%s is a whole capture, so --series also needs a method", name)}
		}
		return s.addCalls(ctx, at.File)
	}
	m, err := s.message(ctx, name)
	if err != nil {
		return err
	}
	if m.Several() {
		return &DiffError{Problem: SeveralMessages, text: fmt.Sprintf("%s contains several messages, but each argument of --series must be one message or one exchange", fileName(name))}
	}
	s.messages = append(s.messages, m)
	return nil
}

// addCalls adds the exchanges of the method in a capture.
func (s *seriesInput) addCalls(ctx context.Context, file string) error {
	c, err := s.Open(file)
	if err != nil {
		return err
	}
	defer c.Close()
	return diff.EachOfMethod(ctx, c, s.method, func(ex *decode.Exchange) {
		if len(s.exchanges) < maxSeries {
			s.exchanges = append(s.exchanges, ex)
		}
	})
}

// A DiffProblem is a reason for which inputs cannot be compared.
type DiffProblem int

const (
	// Unlike things, or too few or too many of them, cannot be compared.
	Unlike DiffProblem = iota
	// NoMethod says that a series is to be made of a capture, but not of which method.
	NoMethod
	// NoExchange says that a capture has no exchange of the method.
	NoExchange
	// SeveralMessages are in a file that is to be one part of a series.
	SeveralMessages
	// NoFrame says that an exchange does not have the frame of an address.
	NoFrame
	// UnknownType says that the definitions do not have the type that was given.
	UnknownType
)

// A DiffError reports that inputs cannot be compared.
type DiffError struct {
	// Problem is the reason.
	Problem DiffProblem

	// At is the address of the input that has the problem, if it is a single one.
	At Address

	// text is the error message.
	text string
}

// Error returns the text.
func (e *DiffError) Error() string { return e.text }
