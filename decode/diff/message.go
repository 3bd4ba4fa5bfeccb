package diff

import (
	"encoding/json"
	"fmt"

	"unwire/captures"
	"unwire/decode"
	"unwire/decode/envelope"
	kinds "unwire/decode/kind"
	document "unwire/decode/text"
	"unwire/decode/wire"
)

// A Message is one side of a comparison: a message in protobuf or JSON, or all messages of a file.
type Message struct {
	// Data is the encoded message; nil if the input contains several messages.
	Data []byte

	// Choices are the types that users chose for fields.
	Choices []kinds.Choice

	// several are the messages of an input that contains more than one.
	several []decode.Frame

	// delimited means that each message is preceded by its length as a varint, not by an envelope.
	delimited bool
}

// maxFieldsRead is the maximum number of fields that are parsed in a file of several messages.
const maxFieldsRead = 1_000_000

// ReadDocument returns the message or the messages in a file.
//
// Limits: one million fields in several messages.
func ReadDocument(doc *document.Document) (Message, error) {
	as := doc.As
	if as != "frames" && as != "delimited" {
		return Message{Data: doc.Data}, nil
	}
	m := Message{delimited: as == "delimited"}
	fields := 0
	err := doc.Parts(func(p document.Part) error {
		f := decode.Frame{Seq: len(m.several), Frame: envelope.Frame{Raw: p.Raw, Data: p.Data}}
		if p.Kind == "message" {
			f.Tree = wire.Parse(p.Data, wire.Options{MaxNodes: maxFieldsRead})
			fields += len(f.Tree.Nodes)
		}
		if fields > maxFieldsRead {
			return fmt.Errorf("the messages have more than %d fields, which are too many to compare", maxFieldsRead)
		}
		m.several = append(m.several, f)
		return nil
	})
	return m, err
}

// Several reports whether the input contains several messages.
func (m *Message) Several() bool { return m.several != nil }

// Compare compares two messages. If one side has several, both are compared like frames of a stream. Deltas of a
// text are joined across envelopes, but not across delimited messages.
func Compare(a, b Message, o Options) []Change {
	if a.Several() || b.Several() {
		o.records = a.delimited || b.delimited
		return Exchanges(a.exchange(), b.exchange(), o)
	}
	o.choices = append(a.Choices[:len(a.Choices):len(a.Choices)], b.Choices...)
	return compareMessages(a.Data, b.Data, o)
}

// exchange returns an artificial exchange in which the client sent the messages, so that they can be compared like
// frames.
func (m *Message) exchange() *decode.Exchange {
	frames := m.several
	if frames == nil {
		frames = []decode.Frame{{Frame: envelope.Frame{Raw: m.Data, Data: m.Data}}}
		if !json.Valid(m.Data) {
			frames[0].Tree = wire.Parse(m.Data, wire.Options{MaxNodes: maxFieldsRead})
		}
	}
	ex := &decode.Exchange{Frames: frames}
	ex.Choices[captures.Up&1] = m.Choices
	return ex
}
