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

// A jsonShape is how protobuf's JSON writes a message.
type jsonShape uint8

const (
	jsonObject  jsonShape = iota // its fields as members
	jsonAny                      // the members of another message, and @type
	jsonAnyhow                   // any value
	jsonList                     // an array
	jsonStruct                   // an object of any members
	jsonWrapper                  // the value of its only field
	jsonTime                     // RFC 3339
	jsonSpan                     // seconds, and s
	jsonMask                     // names, with commas between them
)

// jsonShapeOf tells the messages that have a form of their own.
func jsonShapeOf(md protoreflect.MessageDescriptor) jsonShape {
	name, ok := strings.CutPrefix(string(md.FullName()), "google.protobuf.")
	if !ok {
		return jsonObject
	}
	switch name {
	case "Any":
		return jsonAny
	case "Value":
		return jsonAnyhow
	case "ListValue":
		return jsonList
	case "Struct":
		return jsonStruct
	case "Timestamp":
		return jsonTime
	case "Duration":
		return jsonSpan
	case "FieldMask":
		return jsonMask
	case "DoubleValue", "FloatValue", "Int64Value", "UInt64Value", "Int32Value", "UInt32Value", "BoolValue", "StringValue", "BytesValue":
		return jsonWrapper
	}
	return jsonObject
}

// wellKnown reads a message of a form of its own where no field holds it.
func (d *jsonCheck) wellKnown(md protoreflect.MessageDescriptor, form jsonShape, depth int) error {
	if form == jsonAny {
		return d.any(depth)
	}
	return d.skip()
}

// checkForm reads a value of the field f that has a form of its own.
func (d *jsonCheck) checkForm(m *messageInfo, f *fieldInfo, md protoreflect.MessageDescriptor, form jsonShape) error {
	var raw json.RawMessage
	if err := d.dec.Decode(&raw); err != nil {
		return err
	}
	k := d.info(md)
	k.seen++
	if !formFits(raw, md, form) {
		d.contradict(m, f, "JSON that is no "+string(md.FullName()))
	}
	return nil
}

// formFits reports whether a JSON value may stand for a message of that form.
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
	case jsonTime, jsonSpan, jsonMask:
		var s string
		if raw[0] != '"' || json.Unmarshal(raw, &s) != nil {
			return false
		}
		return form == jsonMask || form == jsonTime && isTime(s) || form == jsonSpan && isSpan(s)
	}
	return true
}

func isTime(s string) bool {
	_, err := time.Parse(time.RFC3339Nano, s)
	return err == nil
}

// isSpan reports whether s is seconds with at most nine digits behind the point.
func isSpan(s string) bool {
	s, ok := strings.CutSuffix(s, "s")
	if !ok {
		return false
	}
	whole, fraction, _ := strings.Cut(strings.TrimPrefix(s, "-"), ".")
	digits := func(s string) bool { return strings.Trim(s, "0123456789") == "" }
	return len(whole) > 0 && len(whole) <= 12 && digits(whole) && len(fraction) <= 9 && digits(fraction)
}

// any reads an Any, as the type that it names if that is known.
func (d *jsonCheck) any(depth int) error {
	var raw json.RawMessage
	if err := d.dec.Decode(&raw); err != nil {
		return err
	}
	var named struct {
		Type  string          `json:"@type"`
		Value json.RawMessage `json:"value"`
	}
	if json.Unmarshal(raw, &named) != nil || named.Type == "" {
		return nil
	}
	md := d.named(named.Type)
	if md == nil {
		return nil
	}
	inner := &jsonCheck{Checker: d.Checker, data: raw, inAny: true}
	if form := jsonShapeOf(md); form != jsonObject {
		if form != jsonAny && !formFits(named.Value, md, form) {
			recordFinding(d.contradicted, finding{message: string(md.FullName()), reason: "JSON that is no " + string(md.FullName())}, d.Checker)
		}
		return nil
	}
	inner.dec = json.NewDecoder(bytes.NewReader(raw))
	inner.dec.UseNumber()
	err := inner.message(md, depth+1)
	d.unexplained += inner.unexplained
	return err
}

// jsonRange says why a number cannot be of the declared type; "" for no reason.
func jsonRange(tok json.Token, fd protoreflect.FieldDescriptor) string {
	var text string
	switch v := tok.(type) {
	case json.Number:
		text = v.String()
	case string:
		if fd.Kind() == protoreflect.EnumKind {
			return "" // a name
		}
		text = v
	default:
		return ""
	}
	low, high, is := bounds(fd.Kind())
	if !is {
		return ""
	}
	if len(text) > 40 || strings.ContainsAny(text, "eE") && !shortExponent(text) {
		return fmt.Sprintf("%s with a value outside its range", fd.Kind())
	}
	v, ok := new(big.Rat).SetString(text)
	if !ok {
		return ""
	}
	switch {
	case !v.IsInt():
		return fmt.Sprintf("%s with a fraction", fd.Kind())
	case v.Num().Cmp(low) < 0 || v.Num().Cmp(high) > 0:
		return fmt.Sprintf("%s with a value outside its range", fd.Kind())
	case fd.Kind() == protoreflect.EnumKind && fd.Enum().Values().ByNumber(protoreflect.EnumNumber(v.Num().Int64())) == nil:
		return fmt.Sprintf("number %s has no name in %s", v.Num(), fd.Enum().FullName())
	}
	return ""
}

// shortExponent keeps 1e999999999 from being written out.
func shortExponent(text string) bool {
	i := strings.IndexAny(text, "eE")
	e, err := strconv.Atoi(strings.TrimPrefix(text[i+1:], "+"))
	return err != nil || e >= -40 && e <= 40
}

// bounds are those of an integer kind.
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

// jsonKeyFits reports whether a member's name may be a map's key.
func jsonKeyFits(key string, fd protoreflect.FieldDescriptor) bool {
	switch fd.Kind() {
	case protoreflect.StringKind:
		return true
	case protoreflect.BoolKind:
		return key == "true" || key == "false"
	}
	return jsonFits(key, fd) && jsonRange(key, fd) == ""
}
