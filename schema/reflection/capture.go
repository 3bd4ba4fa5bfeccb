package reflection

import (
	"context"
	"errors"
	"fmt"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"

	"unwire/captures"
	"unwire/decode"
	"unwire/schema/wellknown"
)

// FromCapture collects the file descriptors that servers returned by gRPC server reflection in a capture: in
// the exchange with the given number, or in all exchanges if it is 0. Responses that cannot be read are
// skipped.
//
// Errors: those of reading the capture, ErrLimit, and the context's. Finding no file is not an error.
func FromCapture(ctx context.Context, c captures.Capture, exchange int64) (*Files, error) {
	files := &Files{}
	for ex, err := range c.Exchanges(ctx) {
		if err != nil {
			return nil, err
		}
		if service, _ := decode.MethodOfURL(ex.Method, ex.URL); !IsService(service) || exchange != 0 && ex.ID != exchange {
			continue
		}
		decoded, err := decode.Decode(ctx, c, ex.ID, decode.Options{NoTrees: true})
		if err != nil {
			return nil, err
		}
		for i := range decoded.Frames {
			if err := files.addFrame(decoded.Codec, &decoded.Frames[i]); err != nil {
				return nil, fmt.Errorf("exchange %d: %w", ex.ID, err)
			}
		}
	}
	return files, ctx.Err()
}

// answerType is the message type of reflection responses. That of version v1alpha has the same fields.
const answerType = "grpc.reflection.v1.ServerReflectionResponse"

// addFrame adds the file descriptors in one response message. codec is its encoding.
func (f *Files) addFrame(codec string, frame *decode.Frame) error {
	if frame.Dir != captures.Down || frame.End != nil || frame.Err != nil || frame.Partial {
		return nil
	}
	answer := dynamicpb.NewMessage(wellknown.Schema().Message(answerType))
	var err error
	if codec == "json" {
		err = protojson.UnmarshalOptions{DiscardUnknown: true}.Unmarshal(frame.Data, answer)
	} else {
		err = proto.Unmarshal(frame.Data, answer)
	}
	if err != nil {
		return nil // it is no answer: what is in the others is not lost
	}
	for _, data := range descriptorsOf(answer) {
		file := &descriptorpb.FileDescriptorProto{}
		if proto.Unmarshal(data, file) != nil {
			continue
		}
		if err := f.Add(file); errors.Is(err, ErrLimit) {
			return err
		}
	}
	return nil
}

// descriptorsOf returns the serialized file descriptors in a reflection response.
func descriptorsOf(answer *dynamicpb.Message) [][]byte {
	field := answer.Descriptor().Fields().ByName("file_descriptor_response")
	if !answer.Has(field) {
		return nil
	}
	inner := answer.Get(field).Message()
	list := inner.Get(inner.Descriptor().Fields().ByName("file_descriptor_proto")).List()
	var all [][]byte
	for i := range list.Len() {
		all = append(all, list.Get(i).Bytes())
	}
	return all
}
