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

// A Message is one side of a comparison: one message in protobuf or JSON, or all those
// of a file.
type Message struct {
	// Data is the message; nil if there are several.
	Data []byte

	// Choices are the readings that somebody chose for its fields.
	Choices []kinds.Choice

	several   []decode.Frame
	delimited bool // several are preceded by their lengths, not in envelopes
}

// maxFieldsRead bounds the fields of a file of several messages.
const maxFieldsRead = 1_000_000

// ReadDocument reads the message of a file, or its messages, in whatever way they are
// written.
//
// Limits: a million fields in several messages.
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
			return fmt.Errorf("more than %d fields in its messages: too many to compare", maxFieldsRead)
		}
		m.several = append(m.several, f)
		return nil
	})
	return m, err
}

// Several reports whether m has several messages.
func (m *Message) Several() bool { return m.several != nil }

// Compare compares two messages. If one side has several, both are compared as the
// frames of a stream; a text is joined over frames, but not over delimited messages.
func Compare(a, b Message, o Options) []Change {
	if a.Several() || b.Several() {
		o.records = a.delimited || b.delimited
		return Exchanges(a.exchange(), b.exchange(), o)
	}
	o.choices = append(a.Choices[:len(a.Choices):len(a.Choices)], b.Choices...)
	return compareMessages(a.Data, b.Data, o)
}

// exchange is the message, or the messages, as what a client sent.
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
