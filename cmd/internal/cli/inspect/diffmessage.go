package inspect

import (
	"context"
	"encoding/json"
	"fmt"

	"unwire/captures"
	"unwire/cmd/internal/app"
	"unwire/cmd/internal/query"
	"unwire/decode"
	"unwire/decode/conversation"
	"unwire/decode/envelope"
	"unwire/decode/kind"
	"unwire/decode/text"
	"unwire/decode/wire"
)

// A comparedMessage is one message of those that are compared.
type comparedMessage struct {
	data    []byte
	of      *decode.Exchange // nil of a file
	choices []kind.Choice    // what its capture remembers

	stream  []decode.Frame // of a file of several messages; data is nil then
	records bool           // they are delimited messages, not envelopes
}

// maxCompared is how many fields are compared of a file of several messages.
const maxCompared = 1_000_000

// readMessage reads a frame's data if name is the address of a frame, else a file: of
// one message or several, in whatever way it is written, or of JSON.
func readMessage(ctx context.Context, a *app.App, name string) (comparedMessage, error) {
	addr := query.ParseAddress(name)
	if addr.Exchange == 0 {
		data, err := a.ReadInput(name)
		if err != nil {
			return comparedMessage{}, err
		}
		doc, err := text.Decode(data, text.Options{})
		if err != nil {
			return comparedMessage{}, err
		}
		if as := doc.As; as == "frames" || as == "delimited" {
			frames, err := framesOf(doc)
			if err != nil {
				return comparedMessage{}, fmt.Errorf("%s: %w", app.InputName(name), err)
			}
			return comparedMessage{stream: frames, records: as == "delimited"}, nil
		}
		return comparedMessage{data: doc.Data}, nil
	}
	store, err := app.OpenCapture(addr.File)
	if err != nil {
		return comparedMessage{}, err
	}
	defer store.Close()
	ex, err := conversation.Resolve(ctx, store, addr.Exchange, addr.Part)
	if err != nil {
		return comparedMessage{}, err
	}
	frame, err := frameAt(ex.Exchange, addr)
	if err != nil {
		return comparedMessage{}, err
	}
	return comparedMessage{data: frame.Data, of: ex.Exchange, choices: ex.Choices[frame.Dir&1]}, nil
}

// framesOf are the messages of a document, as frames of a stream.
func framesOf(doc *text.Document) ([]decode.Frame, error) {
	var frames []decode.Frame
	fields := 0
	err := doc.Parts(func(p text.Part) error {
		f := decode.Frame{Seq: len(frames), Frame: envelope.Frame{Raw: p.Raw, Data: p.Data}}
		if p.Kind == "message" {
			f.Tree = wire.Parse(p.Data, wire.Options{MaxNodes: maxCompared})
			fields += len(f.Tree.Nodes)
		}
		if fields > maxCompared {
			return fmt.Errorf("more than %d fields in its messages: too many to compare", maxCompared)
		}
		frames = append(frames, f)
		return nil
	})
	return frames, err
}

// exchange is the message, or the messages, as what a client sent.
func (m comparedMessage) exchange() *decode.Exchange {
	frames := m.stream
	if frames == nil {
		frames = []decode.Frame{{Frame: envelope.Frame{Raw: m.data, Data: m.data}}}
		if !json.Valid(m.data) {
			frames[0].Tree = wire.Parse(m.data, wire.Options{MaxNodes: maxCompared})
		}
	}
	ex := &decode.Exchange{Frames: frames}
	ex.Choices[captures.Up&1] = m.choices
	return ex
}
