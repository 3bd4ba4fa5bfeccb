package check

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"

	"unwire/decode/wire"
	"unwire/schema/infer"
)

// maxJSONDepth is the nesting depth beyond which messages in JSON are not checked.
const maxJSONDepth = 100

// checkJSON checks a message of the type md in protobuf's JSON mapping: members are found by name, and the JSON
// types of their values are compared with the declared types. A member that the type lacks is an unknown field
// without a number. explained is the number of bytes outside of such members. ok is false if the JSON is
// malformed.
func (k *Checker) checkJSON(md protoreflect.MessageDescriptor, data []byte) (explained int64, ok bool) {
	d := &jsonCheck{Checker: k, dec: json.NewDecoder(bytes.NewReader(data)), data: data}
	d.dec.UseNumber()
	if len(bytes.TrimSpace(data)) == 0 {
		return 0, true
	}

	// Anything behind the first value is an error too.
	err := d.message(md, 0)
	if _, more := d.dec.Token(); err == nil && more != io.EOF {
		err = fmt.Errorf("the JSON has more than one value, at %#x", d.dec.InputOffset())
	}
	if err != nil {
		recordFinding(k.contradicted, findingKey{message: string(md.FullName()), reason: "malformed JSON: " + err.Error()}, k)
		return 0, false
	}
	return int64(len(data)) - d.unexplained, true
}

// A jsonCheck is the state of checking one JSON message. It reads token by token, so that repeated members are
// noticed and everything before a syntax error is checked.
type jsonCheck struct {
	// Checker receives the findings, and has the definitions against which the message is checked.
	*Checker
	// dec splits data into tokens.
	dec *json.Decoder
	// data is the JSON message.
	data []byte
	// unexplained is the number of bytes in unknown members so far.
	unexplained int64
	// inAny is set if the next object is the content of an Any, which has the additional member "@type".
	inAny bool
}

// message checks the next value as an object of the type md, which is nested in depth others.
func (d *jsonCheck) message(md protoreflect.MessageDescriptor, depth int) error {
	if depth > maxJSONDepth {
		return d.skip()
	}

	if form := jsonShapeOf(md); form != jsonObject {
		return d.checkTopLevelForm(md, form, depth)
	}
	inAny := d.inAny
	d.inAny = false
	tok, err := d.dec.Token()
	if err != nil {
		return err
	}

	// A null is allowed for every field.
	if tok == nil {
		return nil
	}
	if tok != json.Delim('{') {
		return fmt.Errorf("%s is not a JSON object", md.FullName())
	}

	m := d.info(md)
	m.seen++
	d.instance++
	instance := d.instance
	for d.dec.More() {
		start := d.dec.InputOffset()

		// A nested Any has a member that names its type.
		tok, err := d.dec.Token()
		if err != nil {
			return err
		}
		name, _ := tok.(string)
		if inAny && name == "@type" {
			if err := d.skip(); err != nil {
				return err
			}
			continue
		}
		// Readers accept both the JSON name and the name in the .proto file.
		fd := md.Fields().ByJSONName(name)
		if fd == nil {
			fd = md.Fields().ByTextName(name)
		}
		if fd == nil {
			kind, err := d.skipUnknown()
			if err != nil {
				return err
			}
			recordFinding(d.unknown, findingKey{message: m.name, name: name[:min(len(name), infer.MaxName)], reason: string(kind)}, d.Checker)
			d.unexplained += d.dec.InputOffset() - start
			continue
		}

		f := m.fields[int32(fd.Number())]
		f.seen++
		d.checkPresence(m, f, instance)
		if err := d.field(m, f, depth); err != nil {
			return err
		}
	}
	_, err = d.dec.Token()
	return err
}

// checkPresence records a contradiction if the field f occurs together with an earlier member of the same
// object: a repeated name, or another member of its oneof. instance is the number of the object.
func (d *jsonCheck) checkPresence(m *messageInfo, f *fieldInfo, instance int) {
	if f.last == instance {
		d.contradict(m, f, "the field occurs more than once in a JSON object")
	}
	f.last = instance
	// A null means that the field is absent.
	if o := f.oneof; o != nil && d.peek() != 'n' {
		if o.last == instance && o.member != f {
			d.contradict(m, f, fmt.Sprintf("the field occurs together with %s, which is in the same oneof %s", o.member.fd.Name(), o.name))
		}
		o.last, o.member = instance, f
	}
}

// field checks the value of field f of the message type m: a single value, a list or a map.
func (d *jsonCheck) field(m *messageInfo, f *fieldInfo, depth int) error {
	if f.single {
		return d.checkJSONValue(m, f, f.fd, depth)
	}

	// Lists are arrays, and maps are objects.
	open := json.Delim('[')
	element := f.fd
	if f.fd.IsMap() {
		open, element = '{', f.fd.MapValue()
	}

	tok, err := d.dec.Token()
	if err != nil || tok == nil {
		// null stands for an absent field.
		return err
	}
	if tok != open {
		d.contradict(m, f, fmt.Sprintf("the JSON value has the type %s, but the field is declared as %s", jsonType(tok), infer.LabelOfField(f.fd)))
		return d.skipRest(tok)
	}

	// Elements of a list, or keys and values of a map.
	for d.dec.More() {
		if f.fd.IsMap() {
			tok, err := d.dec.Token()
			if err != nil {
				return err
			}
			if key, _ := tok.(string); !jsonKeyFits(key, f.fd.MapKey()) {
				d.contradict(m, f, fmt.Sprintf("a key of the map is not a valid %s", f.fd.MapKey().Kind()))
			}
		}
		if err := d.checkJSONValue(m, f, element, depth); err != nil {
			return err
		}
	}
	_, err = d.dec.Token()
	return err
}

// checkJSONValue checks the next JSON value against the type of fd, which is the descriptor of f or, for a map,
// of its values.
func (d *jsonCheck) checkJSONValue(m *messageInfo, f *fieldInfo, fd protoreflect.FieldDescriptor, depth int) error {
	if md := fd.Message(); md != nil {
		if form := jsonShapeOf(md); form != jsonObject && form != jsonAny && d.peek() != 'n' {
			return d.checkForm(m, f, md, form)
		}
		if next := d.peek(); next == '{' || next == 'n' {
			return d.message(md, depth+1)
		}
	}

	tok, err := d.dec.Token()
	if err != nil {
		return err
	}
	if tok != nil && !jsonFits(tok, fd) {
		d.contradict(m, f, fmt.Sprintf("the JSON value has the type %s, but the field is declared as %s", jsonType(tok), fd.Kind()))
		return d.skipRest(tok)
	}

	// The JSON type fits, but the value may still be out of range or an unknown enum name.
	if reason := jsonRange(tok, fd); reason != "" {
		d.contradict(m, f, reason)
	}
	if name, isName := tok.(string); isName && fd.Kind() == protoreflect.EnumKind && fd.Enum().Values().ByName(protoreflect.Name(name)) == nil {
		d.contradict(m, f, fmt.Sprintf("the enum %s has no value named %q", fd.Enum().FullName(), name[:min(len(name), infer.MaxName)]))
	}
	return nil
}

// peek returns the first byte of the next JSON value without consuming it, or 0 at the end.
func (d *jsonCheck) peek() byte {
	rest := d.data[d.dec.InputOffset():]
	rest = bytes.TrimLeft(rest, " \t\r\n:,")
	if len(rest) == 0 {
		return 0
	}
	return rest[0]
}

// skipUnknown skips the value of an unknown member. It returns the kind of field that the value suggests.
func (d *jsonCheck) skipUnknown() (wire.Kind, error) {
	kind := wire.KindVarint
	switch c := d.peek(); c {
	case '"':
		kind = wire.KindString
	case '{', '[':
		kind = wire.KindMessage
	}
	return kind, d.skip()
}

// skip consumes one JSON value.
func (d *jsonCheck) skip() error {
	var raw json.RawMessage
	return d.dec.Decode(&raw)
}

// skipRest consumes the rest of a JSON value whose first token was tok.
func (d *jsonCheck) skipRest(tok json.Token) error {
	if tok != json.Delim('{') && tok != json.Delim('[') {
		return nil
	}
	for depth := 1; depth > 0; {
		tok, err := d.dec.Token()
		if err != nil {
			return err
		}
		switch tok {
		case json.Delim('{'), json.Delim('['):
			depth++
		case json.Delim('}'), json.Delim(']'):
			depth--
		}
	}
	return nil
}

// jsonType returns the name of a token's JSON type for an error text, such as "a number".
func jsonType(tok json.Token) string {
	switch v := tok.(type) {
	case json.Delim:
		if v == '{' {
			return "object"
		}
		return "array"
	case string:
		return "string"
	case bool:
		return "bool"
	}
	return "number"
}

// jsonFits reports whether a JSON value that begins with the token tok is allowed for the declared type of fd.
func jsonFits(tok json.Token, fd protoreflect.FieldDescriptor) bool {
	switch v := tok.(type) {
	case bool:
		return fd.Kind() == protoreflect.BoolKind
	case json.Number:
		switch fd.Kind() {
		case protoreflect.BoolKind, protoreflect.StringKind, protoreflect.BytesKind, protoreflect.MessageKind, protoreflect.GroupKind:
			return false
		}
		return true
	case string:
		switch fd.Kind() {
		case protoreflect.StringKind, protoreflect.EnumKind:
			return true
		case protoreflect.BytesKind:
			return isBase64(v)
		case protoreflect.BoolKind, protoreflect.MessageKind, protoreflect.GroupKind:
			return false
		}
		_, err := strconv.ParseFloat(v, 64)
		return err == nil && v != "" && !strings.ContainsAny(v, " _xXpP")
	}
	return false
}

// isBase64 reports whether s is base64. Like protobuf's parsers, it accepts both alphabets, with or without
// padding.
func isBase64(s string) bool {
	s = strings.NewReplacer("-", "+", "_", "/").Replace(strings.TrimRight(s, "="))
	_, err := base64.RawStdEncoding.DecodeString(s)
	return err == nil
}
