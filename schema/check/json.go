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

// maxJSONDepth bounds the nesting that is followed in JSON messages.
const maxJSONDepth = 100

// checkJSON checks a message in protobuf's JSON: its members by name, and the
// JSON type of their values. Members that the type has not are unknown fields
// without a number; their bytes are not explained, all others are.
func (k *Checker) checkJSON(md protoreflect.MessageDescriptor, data []byte) (explained int64, ok bool) {
	d := &jsonCheck{Checker: k, dec: json.NewDecoder(bytes.NewReader(data)), data: data}
	d.dec.UseNumber()
	if len(bytes.TrimSpace(data)) == 0 {
		return 0, true
	}
	err := d.message(md, 0)
	if _, more := d.dec.Token(); err == nil && more != io.EOF {
		err = fmt.Errorf("more than one value, at %#x", d.dec.InputOffset())
	}
	if err != nil {
		recordFinding(k.contradicted, finding{message: string(md.FullName()), reason: "malformed: JSON: " + err.Error()}, k)
		return 0, false
	}
	return int64(len(data)) - d.unexplained, true
}

// A jsonCheck reads one JSON message, token by token: a message is read once, in the
// order that it has, and what precedes a syntax error is checked and counted.
type jsonCheck struct {
	*Checker
	dec         *json.Decoder
	data        []byte
	unexplained int64
	inAny       bool // the next object has the member @type beside its own
}

// message reads an object as md.
func (d *jsonCheck) message(md protoreflect.MessageDescriptor, depth int) error {
	if depth > maxJSONDepth {
		return d.skip()
	}
	if form := jsonShapeOf(md); form != jsonObject {
		return d.wellKnown(md, form, depth)
	}
	inAny := d.inAny
	d.inAny = false
	tok, err := d.dec.Token()
	if err != nil {
		return err
	}
	if tok == nil {
		return nil
	}
	if tok != json.Delim('{') {
		return fmt.Errorf("%s is no object", md.FullName())
	}
	m := d.info(md)
	m.seen++
	d.instance++
	instance := d.instance
	for d.dec.More() {
		start := d.dec.InputOffset()
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
		fd := md.Fields().ByJSONName(name)
		if fd == nil {
			fd = md.Fields().ByTextName(name)
		}
		if fd == nil {
			kind, err := d.kind()
			if err != nil {
				return err
			}
			recordFinding(d.unknown, finding{message: m.name, name: name[:min(len(name), infer.MaxName)], reason: string(kind)}, d.Checker)
			d.unexplained += d.dec.InputOffset() - start
			continue
		}
		f := m.fields[int32(fd.Number())]
		f.seen++
		d.place(m, f, instance)
		if err := d.field(m, f, depth); err != nil {
			return err
		}
	}
	_, err = d.dec.Token()
	return err
}

// place checks what may not stand beside the member f in one object.
func (d *jsonCheck) place(m *messageInfo, f *fieldInfo, instance int) {
	if f.last == instance {
		d.contradict(m, f, "more than once in an object")
	}
	f.last = instance
	if o := f.oneof; o != nil && d.peek() != 'n' {
		if o.last == instance && o.member != f {
			d.contradict(m, f, fmt.Sprintf("together with %s of the same oneof %s", o.member.fd.Name(), o.name))
		}
		o.last, o.member = instance, f
	}
}

// field reads the value of a member, a list or a map of them.
func (d *jsonCheck) field(m *messageInfo, f *fieldInfo, depth int) error {
	if f.single {
		return d.value(m, f, f.fd, depth)
	}
	open := json.Delim('[')
	element := f.fd
	if f.fd.IsMap() {
		open, element = '{', f.fd.MapValue()
	}
	tok, err := d.dec.Token()
	if err != nil || tok == nil {
		return err
	}
	if tok != open {
		d.contradict(m, f, fmt.Sprintf("JSON %s, declared %s", jsonType(tok), infer.LabelOfField(f.fd)))
		return d.skipRest(tok)
	}
	for d.dec.More() {
		if f.fd.IsMap() {
			tok, err := d.dec.Token()
			if err != nil {
				return err
			}
			if key, _ := tok.(string); !jsonKeyFits(key, f.fd.MapKey()) {
				d.contradict(m, f, fmt.Sprintf("key that is no %s", f.fd.MapKey().Kind()))
			}
		}
		if err := d.value(m, f, element, depth); err != nil {
			return err
		}
	}
	_, err = d.dec.Token()
	return err
}

// value reads one value of the type of fd, which is f's or that of f's map.
func (d *jsonCheck) value(m *messageInfo, f *fieldInfo, fd protoreflect.FieldDescriptor, depth int) error {
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
		d.contradict(m, f, fmt.Sprintf("JSON %s, declared %s", jsonType(tok), fd.Kind()))
		return d.skipRest(tok)
	}
	if reason := jsonRange(tok, fd); reason != "" {
		d.contradict(m, f, reason)
	}
	if name, isName := tok.(string); isName && fd.Kind() == protoreflect.EnumKind && fd.Enum().Values().ByName(protoreflect.Name(name)) == nil {
		d.contradict(m, f, fmt.Sprintf("name %q is not in %s", name[:min(len(name), infer.MaxName)], fd.Enum().FullName()))
	}
	return nil
}

// peek returns the first byte of the next value.
func (d *jsonCheck) peek() byte {
	rest := d.data[d.dec.InputOffset():]
	rest = bytes.TrimLeft(rest, " \t\r\n:,")
	if len(rest) == 0 {
		return 0
	}
	return rest[0]
}

// kind skips a value of no known type and says what it would be.
func (d *jsonCheck) kind() (wire.Kind, error) {
	kind := wire.KindVarint
	switch c := d.peek(); c {
	case '"':
		kind = wire.KindString
	case '{', '[':
		kind = wire.KindMessage
	}
	return kind, d.skip()
}

// skip reads over one value.
func (d *jsonCheck) skip() error {
	var raw json.RawMessage
	return d.dec.Decode(&raw)
}

// skipRest reads to the end of a value whose first token was tok.
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

// jsonFits reports whether a token may stand for a value declared as fd.
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

// isBase64 takes both alphabets, padded or not, as readers of protobuf's JSON do.
func isBase64(s string) bool {
	s = strings.NewReplacer("-", "+", "_", "/").Replace(strings.TrimRight(s, "="))
	_, err := base64.RawStdEncoding.DecodeString(s)
	return err == nil
}
