package call

import (
	"bytes"
	"encoding/json"
	"fmt"

	"google.golang.org/protobuf/proto"

	"unwire/schema/protoform"
)

// A frame is an encoded message.
type frame struct{ data []byte }

// A rawCodec passes messages through unchanged. connect-go also parses the status of gRPC with the
// codec named proto.
type rawCodec struct{ name string }

func (c rawCodec) Name() string { return c.name }

func (rawCodec) Marshal(m any) ([]byte, error) {
	switch m := m.(type) {
	case *frame:
		return m.data, nil
	case proto.Message:
		return proto.Marshal(m)
	}
	return nil, fmt.Errorf("a message of type %T", m)
}

func (rawCodec) Unmarshal(data []byte, m any) error {
	switch m := m.(type) {
	case *frame:
		m.data = bytes.Clone(data)
		return nil
	case proto.Message:
		return proto.Unmarshal(data, m)
	}
	return fmt.Errorf("a message of type %T", m)
}

// encode converts a message from JSON to the call's codec.
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

// empty returns the encoding of a message without fields.
func (o *Options) empty() []byte {
	if o.Codec == JSON {
		return []byte("{}")
	}
	return nil
}

// decode decodes an answer to JSON. lost are the paths of fields that the definitions lack.
func (o *Options) decode(data []byte) (text []byte, lost []string, err error) {
	isJSON := o.Codec == JSON
	if isJSON && len(bytes.TrimSpace(data)) == 0 {
		data = []byte("{}")
	}
	printed, err := protoform.Print(protoform.JSON, data, isJSON, o.Method.Output(), o.Find)
	if err != nil {
		return nil, nil, fmt.Errorf("the answer is %w", err)
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
