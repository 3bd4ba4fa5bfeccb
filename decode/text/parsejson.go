package text

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"

	"unwire/decode/envelope"
	"unwire/decode/nested"
	"unwire/decode/wire"
)

// delimitedJSON is a message behind its length.
type delimitedJSON struct {
	Len     ignored `json:"len"` // it is what the fields make
	LongLen int     `json:"long_len"`
	Fields  []*node `json:"fields"`
	Rest    []byte  `json:"rest"` // bytes that are no such message
}

func (m *delimitedJSON) append(dst []byte) ([]byte, error) {
	if m.Rest != nil {
		return append(dst, m.Rest...), nil
	}
	payload, err := appendFields(nil, m.Fields)
	if err != nil {
		return dst, err
	}
	if dst, err = appendLong(dst, uint64(len(payload)), m.LongLen); err != nil {
		return dst, fmt.Errorf("long_len: %w", err)
	}
	return append(dst, payload...), nil
}

type frame struct {
	Flags    uint8   `json:"flags"`
	Len      *uint32 `json:"len"` // to claim
	Encoding string  `json:"encoding"`
	Of       string  `json:"of"`
	Raw      []byte  `json:"raw"`
	Text     *string `json:"text"`
	Bytes    []byte  `json:"bytes"`
	Fields   []*node `json:"fields"`
	Rest     []byte  `json:"rest"` // bytes that are no frame
}

func appendContent(dst []byte, text *string, raw []byte, fields []*node) ([]byte, error) {
	if text != nil {
		dst = append(dst, *text...)
	}
	return appendFields(append(dst, raw...), fields)
}

func (f *frame) append(dst []byte) ([]byte, error) {
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
	head := frameHead{flags: f.Flags, length: -1, encoding: f.Encoding, of: f.Of, raw: f.Raw}
	if f.Len != nil {
		head.length = int64(*f.Len)
	}
	return head.append(dst, payload)
}

func appendFields(dst []byte, fields []*node) ([]byte, error) {
	for i := range fields {
		if fields[i] == nil {
			return dst, fmt.Errorf("fields[%d]: null", i)
		}
		var err error
		if dst, err = fields[i].append(dst); err != nil {
			return dst, fmt.Errorf("fields[%d]: %w", i, err)
		}
	}
	return dst, nil
}

func (n *node) append(dst []byte) ([]byte, error) {
	if n.Wire == wire.Garbage.String() {
		b, err := base64Value(n.Value)
		return append(dst, b...), err
	}
	typ, ok := wireNames[n.Wire]
	if !ok {
		return dst, fmt.Errorf("wire %.20q: want varint, i64, len, group, i32 or garbage", n.Wire)
	}
	if n.N >= 1<<61 {
		return dst, fmt.Errorf("n %d: want 0 to 2^61-1", n.N)
	}
	tag := n.N<<3 | uint64(typ)
	dst, err := appendLong(dst, tag, n.LongTag)
	if err != nil {
		return dst, fmt.Errorf("long_tag: %w", err)
	}
	switch typ {
	case wire.Varint, wire.I32, wire.I64:
		return appendScalar(dst, n.Type, typ, n.Value, n.LongValue)
	case wire.StartGroup:
		if dst, err = appendFields(dst, n.Fields); err != nil || n.Open {
			return dst, err
		}
		if dst, err = appendLong(dst, n.N<<3|uint64(wire.EndGroup), n.LongEnd); err != nil {
			return dst, fmt.Errorf("long_end: %w", err)
		}
		return dst, nil
	}
	payload, err := n.payload()
	if err == nil {
		payload, err = n.rewrapped(payload)
	}
	if err != nil {
		return dst, err
	}
	if dst, err = appendLong(dst, uint64(len(payload)), n.LongLen); err != nil {
		return dst, fmt.Errorf("long_len: %w", err)
	}
	return append(dst, payload...), nil
}

// innerJSON is what a value holds in another form.
type innerJSON struct {
	Form     ignored         `json:"form"`
	Encoding ignored         `json:"encoding"`
	Layers   []nested.Layer  `json:"layers"`
	Check    string          `json:"check"`
	Fields   []*node         `json:"fields"`
	Frames   []frame         `json:"frames"`
	Text     *string         `json:"text"`
	Bytes    []byte          `json:"bytes"`
	Value    json.RawMessage `json:"value"`
}

// rewrapped is payload, or what it is made anew of where its inner was edited.
func (n *node) rewrapped(payload []byte) ([]byte, error) {
	if len(n.Inner) == 0 || n.Inner[0] != '{' { // show's is a list, to be read
		return payload, nil
	}
	var in innerJSON
	dec := json.NewDecoder(bytes.NewReader(n.Inner))
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

var wireNames = map[string]wire.Type{"varint": wire.Varint, "i64": wire.I64, "len": wire.Len, "group": wire.StartGroup, "i32": wire.I32}

// payload is the value of a length-delimited node.
func (n *node) payload() ([]byte, error) {
	switch wire.Kind(n.Kind) {
	case wire.KindMessage:
		return appendFields(nil, n.Fields)
	case wire.KindString:
		var s string
		if err := json.Unmarshal(n.Value, &s); err != nil {
			return nil, fmt.Errorf("value: %w", err)
		}
		return []byte(s), nil
	case wire.KindBytes:
		return base64Value(n.Value)
	case wire.KindPacked:
		return packedBytes(strings.TrimPrefix(n.Type, "packed "), n.Value)
	}
	return nil, fmt.Errorf("kind %.20q: want message, string, bytes or packed", n.Kind)
}

func packedBytes(element string, value json.RawMessage) (out []byte, err error) {
	var list []json.RawMessage
	if err := json.Unmarshal(value, &list); err != nil {
		return nil, fmt.Errorf("value: %w", err)
	}
	typ := wire.Varint
	switch element {
	case "fixed32", "sfixed32", "float":
		typ = wire.I32
	case "fixed64", "sfixed64", "double":
		typ = wire.I64
	}
	for i, v := range list {
		if out, err = appendScalar(out, element, typ, v, 0); err != nil {
			return out, fmt.Errorf("value[%d]: %w", i, err)
		}
	}
	return out, nil
}

func base64Value(v json.RawMessage) ([]byte, error) {
	var s string
	if err := json.Unmarshal(v, &s); err != nil {
		return nil, fmt.Errorf("value: %w", err)
	}
	b, err := base64.StdEncoding.DecodeString(s)
	if err != nil {
		return nil, fmt.Errorf("value: %w", err)
	}
	return b, nil
}

func appendLong(dst []byte, v uint64, extra int) ([]byte, error) {
	width := wire.SizeVarint(v) + extra
	if extra < 0 || width > 10 {
		return dst, fmt.Errorf("%d more bytes than need be: a varint has 1 to 10", extra)
	}
	return wire.AppendVarintWidth(dst, v, width), nil
}

// appendScalar appends a number of JSON as typ, which name says how to read.
func appendScalar(dst []byte, name string, typ wire.Type, value json.RawMessage, long int) ([]byte, error) {
	s := string(value)
	if strings.HasPrefix(s, `"`) {
		// NaN and the infinities have no number in JSON.
		if err := json.Unmarshal(value, &s); err != nil {
			return dst, fmt.Errorf("value: %w", err)
		}
	}
	bits, err := scalarBits(name, typ, s)
	if err != nil {
		return dst, fmt.Errorf("value %.40s: want a number that fits %s", s, typ)
	}
	switch typ {
	case wire.I32:
		return binary.LittleEndian.AppendUint32(dst, uint32(bits)), nil
	case wire.I64:
		return binary.LittleEndian.AppendUint64(dst, bits), nil
	}
	if dst, err = appendLong(dst, bits, long); err != nil {
		return dst, fmt.Errorf("long_value: %w", err)
	}
	return dst, nil
}

// floatBits are the bits of a float: a number, a word, or 0x and the bits in hex.
func floatBits(s string, width int, nan uint64) (uint64, error) {
	if strings.EqualFold(s, "nan") {
		return nan, nil
	}
	if digits, ok := strings.CutPrefix(s, "0x"); ok && !strings.ContainsAny(s, ".pP") {
		return strconv.ParseUint(digits, 16, width)
	}
	f, err := strconv.ParseFloat(s, width)
	if width == 32 {
		return uint64(math.Float32bits(float32(f))), err
	}
	return math.Float64bits(f), err
}

func scalarBits(name string, typ wire.Type, s string) (uint64, error) {
	switch {
	case s == "true":
		return 1, nil
	case s == "false":
		return 0, nil
	case name == "float" && typ == wire.I32:
		return floatBits(s, 32, nan32)
	case name == "double" && typ == wire.I64:
		return floatBits(s, 64, nan64)
	}
	size := 64
	if typ == wire.I32 {
		size = 32
	}
	if !strings.HasPrefix(s, "-") {
		v, err := strconv.ParseUint(s, 10, size)
		if err == nil && (name == "sint32" || name == "sint64") {
			return v << 1, nil
		}
		return v, err
	}
	v, err := strconv.ParseInt(s, 10, size)
	if name == "sint32" || name == "sint64" {
		return uint64(v)<<1 ^ uint64(v>>63), err
	}
	return uint64(v), err
}
