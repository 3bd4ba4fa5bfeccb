package text

import (
	"bytes"
	"encoding/json"
	"fmt"

	"unwire/decode/envelope"
	"unwire/decode/field"
	"unwire/decode/nested"
)

// delimitedJSON is a message behind its length.
type delimitedJSON struct {
	Len     ignored        `json:"len"` // it is what the fields make
	LongLen int            `json:"long_len"`
	Fields  []*field.Field `json:"fields"`
	Rest    []byte         `json:"rest"` // bytes that are no such message
}

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

type frameJSON struct {
	Flags    uint8          `json:"flags"`
	Len      *uint32        `json:"len"` // to claim
	Encoding string         `json:"encoding"`
	Of       string         `json:"of"`
	Raw      []byte         `json:"raw"`
	Text     *string        `json:"text"`
	Bytes    []byte         `json:"bytes"`
	Fields   []*field.Field `json:"fields"`
	Rest     []byte         `json:"rest"` // bytes that are no frame
}

// ignored is a member that is read over.
type ignored struct{}

// UnmarshalJSON takes anything.
func (*ignored) UnmarshalJSON([]byte) error { return nil }

func appendContent(dst []byte, text *string, raw []byte, fields []*field.Field) ([]byte, error) {
	if text != nil {
		dst = append(dst, *text...)
	}
	return field.AppendFields(append(dst, raw...), fields, rewrapEdited)
}

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
	head := frameForm{flags: f.Flags, length: -1, encoding: f.Encoding, of: f.Of, raw: f.Raw}
	if f.Len != nil {
		head.length = int64(*f.Len)
	}
	return head.append(dst, payload)
}

// innerJSON is what a value holds in another form.
type innerJSON struct {
	Form     ignored         `json:"form"`
	Encoding ignored         `json:"encoding"`
	Layers   []nested.Layer  `json:"layers"`
	Check    string          `json:"check"`
	Fields   []*field.Field  `json:"fields"`
	Frames   []frameJSON     `json:"frames"`
	Text     *string         `json:"text"`
	Bytes    []byte          `json:"bytes"`
	Value    json.RawMessage `json:"value"`
}

// rewrapEdited is payload, or what it is made anew of where its inner was edited.
func rewrapEdited(f *field.Field, payload []byte) ([]byte, error) {
	// A list is what show writes: it is only to be read.
	if len(f.Inner) == 0 || f.Inner[0] != '{' {
		return payload, nil
	}
	var in innerJSON
	dec := json.NewDecoder(bytes.NewReader(f.Inner))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&in); err != nil {
		return nil, fmt.Errorf("inner: %w", err)
	}
	if in.Check == "" {
		return payload, nil
	}
	data, err := in.data()
	if err != nil {
		return nil, fmt.Errorf("inner: %w", err)
	}
	out, edited, err := rewrap(payload, data, in.Layers, in.Check)
	if err != nil {
		return nil, fmt.Errorf("inner: %w", err)
	}
	if !edited {
		return payload, nil
	}
	return out, nil
}

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
