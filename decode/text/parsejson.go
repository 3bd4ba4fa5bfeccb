package text

import (
	"bytes"
	"encoding/json"
	"fmt"

	"unwire/decode/envelope"
	"unwire/decode/field"
	"unwire/decode/nested"
)

// delimitedJSON is the JSON form of a delimited message (one preceded by its length), or of the bytes after the
// last one.
type delimitedJSON struct {
	// Len is ignored, because the length follows from the fields.
	Len ignored `json:"len"`

	// LongLen is the number of bytes by which the length's varint is longer than necessary.
	LongLen int `json:"long_len"`

	// Fields are the fields of the message.
	Fields []*field.Field `json:"fields"`

	// Rest are the bytes after the last valid message.
	Rest []byte `json:"rest"`
}

// append appends the message with its length prefix, or Rest.
func (m *delimitedJSON) append(dst []byte) ([]byte, error) {
	if m.Rest != nil {
		return append(dst, m.Rest...), nil
	}
	payload, err := field.AppendFields(nil, m.Fields, rewrapEdited)
	if err != nil {
		return dst, err
	}
	if dst, err = field.AppendLong(dst, uint64(len(payload)), m.LongLen); err != nil {
		return dst, fmt.Errorf("long_len: %w", err)
	}
	return append(dst, payload...), nil
}

// frameJSON is the JSON form of an envelope.
type frameJSON struct {
	// Flags is the envelope's first byte.
	Flags uint8 `json:"flags"`

	// Len is the length to write into the envelope; nil means the actual length.
	Len *uint32 `json:"len"`

	// Encoding is the compression to apply to the payload, such as "gzip"; "" for none.
	Encoding string `json:"encoding"`

	// Of is the hash of the data from which the sender made Raw. If the payload has another hash, it was edited.
	Of string `json:"of"`

	// Raw is the sender's compressed payload. It is used instead of compressing again if the payload is unedited.
	Raw []byte `json:"raw"`

	// Text is the payload, if it is text; otherwise nil.
	Text *string `json:"text"`

	// Bytes is the payload, if it is neither text nor a message; JSON has it in base64.
	Bytes []byte `json:"bytes"`

	// Fields are the fields of the payload, if it is a protobuf message.
	Fields []*field.Field `json:"fields"`

	// Rest are the bytes after the last valid envelope.
	Rest []byte `json:"rest"`
}

// ignored is the type of a JSON member whose value is not used.
type ignored struct{}

// UnmarshalJSON accepts and discards any value.
func (*ignored) UnmarshalJSON([]byte) error { return nil }

// appendContent appends the payload, which is given as text, raw bytes or fields, whichever is present.
func appendContent(dst []byte, text *string, raw []byte, fields []*field.Field) ([]byte, error) {
	if text != nil {
		dst = append(dst, *text...)
	}
	return field.AppendFields(append(dst, raw...), fields, rewrapEdited)
}

// append appends the encoded envelope, or Rest.
func (f *frameJSON) append(dst []byte) ([]byte, error) {
	if f.Rest != nil {
		return append(dst, f.Rest...), nil
	}
	payload, err := appendContent(nil, f.Text, f.Bytes, f.Fields)
	if err != nil {
		return dst, err
	}
	if f.Encoding != "" {
		if _, err := envelope.Compress(f.Encoding, nil); err != nil {
			return dst, err
		}
	}
	head := frameForm{flags: f.Flags, length: -1, encoding: f.Encoding, hash: f.Of, raw: f.Raw}
	if f.Len != nil {
		head.length = int64(*f.Len)
	}
	return head.append(dst, payload)
}

// innerJSON is the JSON form of the decoded content of a value.
type innerJSON struct {
	// Form names the kind of the content for human readers, and is ignored when encoding.
	Form ignored `json:"form"`

	// Encoding names the encodings of the content for human readers, and is ignored when encoding.
	Encoding ignored `json:"encoding"`

	// Layers are the encodings (such as gzip) around the content.
	Layers []nested.Layer `json:"layers"`

	// Check is the checksum of the unedited content. Without it, the content cannot be edited.
	Check string `json:"check"`

	// Fields are the fields of the content, if it is a protobuf message.
	Fields []*field.Field `json:"fields"`

	// Frames are the frames of the content, if it is a sequence of envelopes.
	Frames []frameJSON `json:"frames"`

	// Text is the content, if it is text; otherwise nil.
	Text *string `json:"text"`

	// Bytes is the content, if it is other bytes; JSON has them in base64.
	Bytes []byte `json:"bytes"`

	// Value is the content, if it is JSON.
	Value json.RawMessage `json:"value"`
}

// rewrapEdited returns the payload that f.Inner describes if f.Inner was edited, and otherwise payload unchanged.
func rewrapEdited(f *field.Field, payload []byte) ([]byte, error) {
	// A list is the output of show, which does not support edits.
	if len(f.Inner) == 0 || f.Inner[0] != '{' {
		return payload, nil
	}
	var in innerJSON
	dec := json.NewDecoder(bytes.NewReader(f.Inner))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&in); err != nil {
		return nil, fmt.Errorf("the edited inner value is invalid: %w", err)
	}
	if in.Check == "" {
		return payload, nil
	}

	// Encode the content, and compare it with the payload and the checksum.
	data, err := in.data()
	if err != nil {
		return nil, fmt.Errorf("the edited inner value is invalid: %w", err)
	}
	out, edited, err := rewrap(payload, data, in.Layers, in.Check)
	if err != nil {
		return nil, fmt.Errorf("the edited inner value is invalid: %w", err)
	}
	if !edited {
		return payload, nil
	}
	return out, nil
}

// data encodes the content, without the layers around it.
func (in *innerJSON) data() ([]byte, error) {
	if in.Value != nil {
		return nested.Unwrap([]nested.Layer{nested.JSONCompact}, in.Value)
	}
	out, err := appendContent(nil, in.Text, in.Bytes, in.Fields)
	for i := range in.Frames {
		if err != nil {
			return nil, err
		}
		out, err = in.Frames[i].append(out)
	}
	return out, err
}
