package check

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"
	"time"

	"google.golang.org/protobuf/reflect/protoreflect"
)

// A jsonShape is the form in which protobuf's JSON mapping represents a message type.
type jsonShape uint8

const (
	// jsonObject is an object with the fields as members, as for ordinary messages.
	jsonObject jsonShape = iota
	// jsonAny is an object with the members of another message and the member "@type", for google.protobuf.Any.
	jsonAny
	// jsonAnyValue is any JSON value, for google.protobuf.Value.
	jsonAnyValue
	// jsonList is an array of any values, for google.protobuf.ListValue.
	jsonList
	// jsonStruct is an object with any members, for google.protobuf.Struct.
	jsonStruct
	// jsonWrapper is the value of the only field, for wrapper types such as google.protobuf.Int64Value.
	jsonWrapper
	// jsonTimestamp is a string with a time as in RFC 3339, for google.protobuf.Timestamp.
	jsonTimestamp
	// jsonDuration is a string with seconds and the suffix "s", for google.protobuf.Duration.
	jsonDuration
	// jsonFieldMask is a string with field names separated by commas, for google.protobuf.FieldMask.
	jsonFieldMask
)

// jsonShapeOf returns the JSON form of a message type.
func jsonShapeOf(md protoreflect.MessageDescriptor) jsonShape {
	name, ok := strings.CutPrefix(string(md.FullName()), "google.protobuf.")
	if !ok {
		return jsonObject
	}
	switch name {
	case "Any":
		return jsonAny
	case "Value":
		return jsonAnyValue
	case "ListValue":
		return jsonList
	case "Struct":
		return jsonStruct
	case "Timestamp":
		return jsonTimestamp
	case "Duration":
		return jsonDuration
	case "FieldMask":
		return jsonFieldMask
	case "DoubleValue", "FloatValue", "Int64Value", "UInt64Value", "Int32Value", "UInt32Value", "BoolValue", "StringValue", "BytesValue":
		return jsonWrapper
	}
	return jsonObject
}

// checkTopLevelForm checks a whole message, such as a request, whose type has a special JSON form, such
// as google.protobuf.Timestamp.
func (d *jsonCheck) checkTopLevelForm(md protoreflect.MessageDescriptor, form jsonShape, depth int) error {
	if form == jsonAny {
		return d.checkAny(depth)
	}
	return d.skip()
}

// checkForm checks the value of field f, whose message type md has a special JSON form, such as
// google.protobuf.Timestamp.
func (d *jsonCheck) checkForm(m *messageInfo, f *fieldInfo, md protoreflect.MessageDescriptor, form jsonShape) error {
	var raw json.RawMessage
	if err := d.dec.Decode(&raw); err != nil {
		return err
	}
	k := d.info(md)
	k.seen++
	if !formFits(raw, md, form) {
		d.contradict(m, f, "the JSON value is not a valid "+string(md.FullName()))
	}
	return nil
}

// formFits reports whether the JSON value raw has the form of the message type md.
func formFits(raw []byte, md protoreflect.MessageDescriptor, form jsonShape) bool {
	if len(raw) == 0 {
		return false
	}
	switch form {
	case jsonList:
		return raw[0] == '['
	case jsonStruct:
		return raw[0] == '{'
	case jsonWrapper:
		dec := json.NewDecoder(bytes.NewReader(raw))
		dec.UseNumber()
		tok, err := dec.Token()
		value := md.Fields().ByNumber(1)
		return err == nil && value != nil && jsonFits(tok, value) && jsonRange(tok, value) == ""
	case jsonTimestamp, jsonDuration, jsonFieldMask:
		var s string
		if raw[0] != '"' || json.Unmarshal(raw, &s) != nil {
			return false
		}
		return form == jsonFieldMask || form == jsonTimestamp && isTimestamp(s) || form == jsonDuration && isDuration(s)
	}
	return true
}

// isTimestamp reports whether s is a time in the format of RFC 3339.
func isTimestamp(s string) bool {
	_, err := time.Parse(time.RFC3339Nano, s)
	return err == nil
}

// isDuration reports whether s is a number of seconds with at most nine decimals and the suffix "s".
func isDuration(s string) bool {
	s, ok := strings.CutSuffix(s, "s")
	if !ok {
		return false
	}
	whole, fraction, _ := strings.Cut(strings.TrimPrefix(s, "-"), ".")
	digits := func(s string) bool { return strings.Trim(s, "0123456789") == "" }
	return len(whole) > 0 && len(whole) <= 12 && digits(whole) && len(fraction) <= 9 && digits(fraction)
}

// checkAny checks the next value, an Any, against the type that it names, if the definitions have that type.
func (d *jsonCheck) checkAny(depth int) error {
	var raw json.RawMessage
	if err := d.dec.Decode(&raw); err != nil {
		return err
	}

	// The value is read twice: the member @type may come last.
	var named struct {
		Type  string          `json:"@type"`
		Value json.RawMessage `json:"value"`
	}
	if json.Unmarshal(raw, &named) != nil || named.Type == "" {
		return nil
	}

	md := d.resolveType(named.Type)
	if md == nil {
		return nil
	}

	// A second reader is needed, because the members are in the object of the Any itself.
	inner := &jsonCheck{Checker: d.Checker, data: raw, inAny: true}
	if form := jsonShapeOf(md); form != jsonObject {
		if form != jsonAny && !formFits(named.Value, md, form) {
			recordFinding(d.contradicted, findingKey{message: string(md.FullName()), reason: "the JSON value is not a valid " + string(md.FullName())}, d.Checker)
		}
		return nil
	}
	inner.dec = json.NewDecoder(bytes.NewReader(raw))
	inner.dec.UseNumber()
	err := inner.message(md, depth+1)
	d.unexplained += inner.unexplained
	return err
}

// jsonRange returns the reason why the number tok is not allowed for the declared type of fd, or "".
func jsonRange(tok json.Token, fd protoreflect.FieldDescriptor) string {
	var text string
	switch v := tok.(type) {
	case json.Number:
		text = v.String()
	case string:
		if fd.Kind() == protoreflect.EnumKind {
			// A string is the name of an enum value.
			return ""
		}
		text = v
	default:
		return ""
	}

	low, high, is := bounds(fd.Kind())
	if !is {
		return ""
	}

	// big.Rat writes exponents out, so huge ones are rejected before.
	if len(text) > 40 || strings.ContainsAny(text, "eE") && !shortExponent(text) {
		return fmt.Sprintf("the field is declared as %s, but has a value outside the range of this type", fd.Kind())
	}
	v, ok := new(big.Rat).SetString(text)
	if !ok {
		return ""
	}

	switch {
	case !v.IsInt():
		return fmt.Sprintf("the field is declared as %s, but has a value with a fraction", fd.Kind())
	case v.Num().Cmp(low) < 0 || v.Num().Cmp(high) > 0:
		return fmt.Sprintf("the field is declared as %s, but has a value outside the range of this type", fd.Kind())
	case fd.Kind() == protoreflect.EnumKind && fd.Enum().Values().ByNumber(protoreflect.EnumNumber(v.Num().Int64())) == nil:
		return fmt.Sprintf("the enum %s has no value %s", fd.Enum().FullName(), v.Num())
	}
	return ""
}

// shortExponent reports whether the exponent of a number is small enough for big.Rat, which would need much
// memory for a number like 1e999999999.
func shortExponent(text string) bool {
	i := strings.IndexAny(text, "eE")
	e, err := strconv.Atoi(strings.TrimPrefix(text[i+1:], "+"))
	return err != nil || e >= -40 && e <= 40
}

// bounds returns the least and the greatest value of an integer type. ok is false for other types.
func bounds(k protoreflect.Kind) (low, high *big.Int, ok bool) {
	switch k {
	case protoreflect.Int32Kind, protoreflect.Sint32Kind, protoreflect.Sfixed32Kind, protoreflect.EnumKind:
		return big.NewInt(math.MinInt32), big.NewInt(math.MaxInt32), true
	case protoreflect.Int64Kind, protoreflect.Sint64Kind, protoreflect.Sfixed64Kind:
		return big.NewInt(math.MinInt64), big.NewInt(math.MaxInt64), true
	case protoreflect.Uint32Kind, protoreflect.Fixed32Kind:
		return new(big.Int), big.NewInt(math.MaxUint32), true
	case protoreflect.Uint64Kind, protoreflect.Fixed64Kind:
		return new(big.Int), new(big.Int).SetUint64(math.MaxUint64), true
	}
	return nil, nil, false
}

// jsonKeyFits reports whether the member name key is allowed as a key of a map whose key field is fd.
func jsonKeyFits(key string, fd protoreflect.FieldDescriptor) bool {
	switch fd.Kind() {
	case protoreflect.StringKind:
		return true
	case protoreflect.BoolKind:
		return key == "true" || key == "false"
	}
	return jsonFits(key, fd) && jsonRange(key, fd) == ""
}
