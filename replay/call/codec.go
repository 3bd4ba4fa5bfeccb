package call

import (
	"bytes"
	"encoding/json"
	"fmt"

	"google.golang.org/protobuf/proto"

	"unwire/schema/protoform"
)

// A frame is a message in its encoded form; connect-go is used without generated types.
type frame struct {
	// data is the message in the codec of the call.
	data []byte
}

// A rawCodec is a connect-go codec that passes frames through unchanged. Protobuf messages are also
// supported, because connect-go parses the gRPC status with the codec named "proto".
type rawCodec struct {
	// name is "proto" or "json".
	name string
}

// Name returns the codec's name, "proto" or "json".
func (c rawCodec) Name() string { return c.name }

// Marshal returns the bytes of a *frame, or the encoding of a proto.Message.
func (rawCodec) Marshal(m any) ([]byte, error) {
	switch m := m.(type) {
	case *frame:
		return m.data, nil
	case proto.Message:
		return proto.Marshal(m)
	}
	return nil, fmt.Errorf("unexpected message type %T", m)
}

// Unmarshal stores a copy of data in a *frame, or decodes it into a proto.Message.
func (rawCodec) Unmarshal(data []byte, m any) error {
	switch m := m.(type) {
	case *frame:
		m.data = bytes.Clone(data)
		return nil
	case proto.Message:
		return proto.Unmarshal(data, m)
	}
	return fmt.Errorf("unexpected message type %T", m)
}

// encode converts a request message from JSON to the call's codec.
//
// Errors: ErrMessage.
func (o *Options) encode(text []byte) ([]byte, error) {
	md := o.Method.Input()
	data, err := protoform.Parse(protoform.JSON, text, md, o.Find)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrMessage, err)
	}
	if o.Codec != JSON {
		return data, nil
	}
	printed, err := protoform.Print(protoform.JSON, data, false, md, o.Find)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrMessage, err)
	}
	return oneLine(printed.Data)
}

// empty returns the encoding of a message without fields in the call's codec.
func (o *Options) empty() []byte {
	if o.Codec == JSON {
		return []byte("{}")
	}
	return nil
}

// decode converts a response message to a line of JSON. lost are the paths of fields that the JSON
// lacks because the definitions do not contain them.
func (o *Options) decode(data []byte) (text []byte, lost []string, err error) {
	isJSON := o.Codec == JSON
	if isJSON && len(bytes.TrimSpace(data)) == 0 {
		data = []byte("{}")
	}
	printed, err := protoform.Print(protoform.JSON, data, isJSON, o.Method.Output(), o.Find)
	if err != nil {
		return nil, nil, fmt.Errorf("the answer cannot be decoded: %w", err)
	}
	text, err = oneLine(printed.Data)
	return text, printed.Lost, err
}

// oneLine returns JSON without insignificant white space.
func oneLine(text []byte) ([]byte, error) {
	var b bytes.Buffer
	err := json.Compact(&b, text)
	return b.Bytes(), err
}
