// Package codec has the codecs of the stand-in. They are Connect's, but deterministic:
// equal messages have equal bytes.
package codec

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
)

// Binary is a replacement for connect-go's "proto" codec that encodes fields sorted by number. Messages
// that are built from a descriptor store their fields in a map, so their order would otherwise be
// random.
type Binary struct{}

var _ connect.Codec = Binary{}

// Name returns "proto", the name of Connect's binary codec.
func (Binary) Name() string { return "proto" }

// Marshal encodes a proto.Message in the binary format.
func (Binary) Marshal(v any) ([]byte, error) {
	m, ok := v.(proto.Message)
	if !ok {
		return nil, fmt.Errorf("%T doesn't implement proto.Message", v)
	}
	return proto.MarshalOptions{Deterministic: true}.Marshal(m)
}

// Unmarshal decodes a proto.Message from the binary format.
func (Binary) Unmarshal(data []byte, v any) error {
	m, ok := v.(proto.Message)
	if !ok {
		return fmt.Errorf("%T doesn't implement proto.Message", v)
	}
	if err := proto.Unmarshal(data, m); err != nil {
		return fmt.Errorf("unmarshal into %s: %w", GoType(m), err)
	}
	return nil
}

// A JSON is a replacement for connect-go's "json" codec without the spaces that protojson inserts at
// random.
type JSON struct {
	// Form is the name of the codec in the content type: json, or json with a charset.
	Form string
}

// Name returns the name of the codec, such as "json".
func (c JSON) Name() string { return c.Form }

// Marshal encodes a proto.Message as JSON, always to the same bytes.
func (JSON) Marshal(v any) ([]byte, error) {
	m, ok := v.(proto.Message)
	if !ok {
		return nil, fmt.Errorf("%T doesn't implement proto.Message", v)
	}
	data, err := protojson.Marshal(m)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	if err := json.Compact(&out, data); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// Unmarshal decodes a proto.Message from JSON.
func (JSON) Unmarshal(data []byte, v any) error {
	m, ok := v.(proto.Message)
	if !ok {
		return fmt.Errorf("%T doesn't implement proto.Message", v)
	}
	if len(data) == 0 {
		return fmt.Errorf("zero-length payload is not a valid JSON object")
	}
	if err := (protojson.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(data, m); err != nil {
		return fmt.Errorf("unmarshal into %s: %w", GoType(m), err)
	}
	return nil
}

// GoType returns the name that the message's generated Go type would have, because the parse errors of
// connect-go servers contain it.
func GoType(m proto.Message) string {
	d := m.ProtoReflect().Descriptor()
	segments := strings.Split(string(d.ParentFile().Package()), ".")
	name := strings.TrimPrefix(string(d.FullName()), string(d.ParentFile().Package())+".")
	return "*" + strings.Join(segments[max(0, len(segments)-2):], "") + "." + strings.ReplaceAll(name, ".", "_")
}
