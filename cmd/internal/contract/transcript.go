package contract

import (
	"strings"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/dynamicpb"

	"unwire/decode/envelope"
	"unwire/decode/text"
	"unwire/decode/transcript"
	"unwire/decode/wire"
	"unwire/schema"
)

// Transcript is the output of `unwire chat`: the conversation with a model that was found in an exchange.
type Transcript struct {
	// version adds the member v, the version number of the JSON format.
	version

	// Exchange is the number of the exchange.
	Exchange int64 `json:"exchange"`
	// Transcript is the conversation; its fields become members of the JSON object.
	*transcript.Transcript

	// Error is the error of the exchange. It replaces the member of the embedded transcript, since its
	// details are decoded.
	Error *callError `json:"error,omitempty"`
}

// NewTranscript builds the JSON object for the conversation of an exchange. It decodes the details of the
// error by defs, which may be nil.
func NewTranscript(exchange int64, tr *transcript.Transcript, defs *schema.Schema) *Transcript {
	return &Transcript{Exchange: exchange, Transcript: tr, Error: newCallError(tr.Error, defs)}
}

// A callError is the error with which an exchange ended.
type callError struct {
	// Failure is the error as the transcript has it; its fields become members of the JSON object.
	*transcript.Failure

	// Details replaces the member of the embedded failure, with decoded messages.
	Details []errorDetail `json:"details,omitempty"`
}

// An errorDetail is one detail message of an error.
type errorDetail struct {
	// Detail is the detail message as it was received; its fields become members of the JSON object.
	envelope.Detail

	// Text is the detail as JSON or text. It is decoded by the definitions, by the types that this program
	// contains, by the server, or without a definition.
	Text string `json:"text"`
}

// newCallError builds the JSON object for an error; nil for none. It decodes the details by defs, which
// may be nil.
func newCallError(f *transcript.Failure, defs *schema.Schema) *callError {
	if f == nil {
		return nil
	}
	out := &callError{Failure: f}
	for _, d := range f.Details {
		out.Details = append(out.Details, errorDetail{d, detailText(d, defs)})
	}
	return out
}

// detailText returns a detail message of an error as JSON or text.
func detailText(d envelope.Detail, defs *schema.Schema) string {
	name := d.Type[strings.LastIndexByte(d.Type, '/')+1:]
	var m proto.Message
	if defs != nil {
		if md := defs.Message(name); md != nil {
			m = dynamicpb.NewMessage(md)
		}
	}
	if m == nil {
		if t, err := protoregistry.GlobalTypes.FindMessageByName(protoreflect.FullName(name)); err == nil {
			m = t.New().Interface()
		}
	}
	if m != nil && proto.Unmarshal(d.Value, m) == nil {
		if b, err := protojson.Marshal(m); err == nil {
			return string(b)
		}
	}
	if len(d.Debug) > 0 {
		return string(d.Debug)
	}
	return strings.TrimSpace(text.Format(wire.Parse(d.Value, wire.Options{}), nil))
}

// AnswerDelta is a part of a model's answer in an exchange that is being recorded.
type AnswerDelta struct {
	// version adds the member v, the version number of the JSON format.
	version

	// Event is "delta" if Delta continues the answer, and "reset" if what was printed before was not the
	// answer and Delta replaces it.
	Event string `json:"event"`

	// Exchange is the number of the exchange.
	Exchange int64 `json:"exchange"`

	// Delta is the text.
	Delta string `json:"delta"`
}

// Weights are the weights with which transcripts are scored, in the format of a weights file.
type Weights struct {
	// version adds the member v, the version number of the JSON format.
	version
	*transcript.Weights // which writes the version itself
}

// WeightsFit says how well fitted weights predict the labels that they were fitted to.
type WeightsFit struct {
	// version adds the member v, the version number of the JSON format.
	version
	// FitReport says how well the weights predict the labels; its fields become members of the JSON object.
	*transcript.FitReport
}
