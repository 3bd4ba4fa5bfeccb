// Package codec has the codecs of the stand-in: Connect's, with the same bytes for the
// same message each time.
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

// Binary is connect-go's "proto" with one difference: fields are written in
// order. A message that is built from a descriptor keeps its fields in a map,
// and would otherwise look different each time.
type Binary struct{}

var _ connect.Codec = Binary{}

// Name returns "proto".
func (Binary) Name() string { return "proto" }

func (Binary) Marshal(v any) ([]byte, error) {
	m, ok := v.(proto.Message)
	if !ok {
		return nil, fmt.Errorf("%T doesn't implement proto.Message", v)
	}
	return proto.MarshalOptions{Deterministic: true}.Marshal(m)
}

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

// JSON is connect-go's "json" without the spaces that protojson strews in
// so that nobody relies on its bytes.
type JSON struct {
	// Form is the name under which connect knows it: json, or json with a charset.
	Form string
}

// Name returns Form.
func (c JSON) Name() string { return c.Form }

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

// GoType is the name that the message's generated Go type would have, which is
// what a connect-go server's parse errors show.
func GoType(m proto.Message) string {
	d := m.ProtoReflect().Descriptor()
	segments := strings.Split(string(d.ParentFile().Package()), ".")
	name := strings.TrimPrefix(string(d.FullName()), string(d.ParentFile().Package())+".")
	return "*" + strings.Join(segments[max(0, len(segments)-2):], "") + "." + strings.ReplaceAll(name, ".", "_")
}
