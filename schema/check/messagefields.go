package check

import (
	"fmt"
	"math"
	"strings"
	"unicode/utf8"

	"google.golang.org/protobuf/reflect/protoreflect"

	"unwire/decode/wire"
)

// checkMessage checks the message at index at of t against the type m. explained is the number of bytes that
// the definitions explain; ok reports whether all fields are well-formed.
//
// All fields of the message are checked before the messages nested in it: fieldInfo.last would otherwise be
// overwritten by a nested message of the same type.
func (k *Checker) checkMessage(t *wire.Tree, at int32, m *messageInfo) (explained int64, ok bool) {
	k.instance++
	m.seen++
	instance := k.instance
	own := k.checkFields(t, at, m)
	for _, f := range m.required {
		if f.last != instance {
			k.contradict(m, f, "the field is missing, but is declared as required")
		}
	}

	if m.any {
		more, fine := k.checkAny(t, at, m)
		return own.explained + more, own.ok && fine
	}
	if !own.messages {
		return own.explained, own.ok
	}
	if own.maps {
		k.checkMapKeys(t, at, m)
	}
	more, fine := k.submessages(t, at, m)
	return own.explained + more, own.ok && fine
}

// checkedFields is the result of checking the fields of one message, without its nested messages.
type checkedFields struct {
	// explained is the number of bytes in declared fields with plausible values.
	explained int64

	// ok is set if all fields of the message are well-formed.
	ok bool

	// messages is set if the message has nested messages, and maps if some of them are map entries.
	messages, maps bool
}

// checkFields checks the fields of the message at index at, but not the content of nested messages.
func (k *Checker) checkFields(t *wire.Tree, at int32, m *messageInfo) checkedFields {
	r := checkedFields{ok: true}
	instance := k.instance
	unknown := k.scratch[:0]
	for c := range t.Children(at) {
		n := &t.Nodes[c]
		// The parser marks bytes that are no field, and continues behind them.
		if n.Type == wire.Garbage || n.Number > maxFieldNumber || n.Number == 0 {
			r.ok = false
			recordFinding(k.contradicted, findingKey{m.name, 0, "", "malformed: " + malformed(t.Fault(n))}, k)
			continue
		}
		f := m.fields[int32(n.Number)]
		if f == nil {
			recordFinding(k.unknown, findingKey{message: m.name, number: int32(n.Number)}, k)
			unknown = append(unknown, t.Data[n.Off:n.End]...)
			continue
		}

		f.seen++
		if f.oneof != nil || f.single && f.last == instance {
			k.checkTogether(m, f)
		}
		f.last = instance
		if f.message != nil && n.Type == f.wire {
			r.messages = true
			r.maps = r.maps || f.isMap
			continue
		}
		reason := k.checkValue(t, c, f)
		if reason != "" {
			k.contradict(m, f, reason)
		}
		// A value of the right wire type counts as explained even if it is out of range.
		if reason == "" || f.wire == n.Type {
			r.explained += int64(n.End - n.Off)
		}
	}

	k.scratch = unknown
	if len(unknown) > 0 {
		// The bytes of the unknown fields form a message by themselves, which is added to the evidence for the
		// type. Beyond the limits of the evidence the fields are counted only.
		_ = k.evidence.Add(m.name, unknown)
	}
	return r
}

// checkTogether records a contradiction if the field f must not occur with an earlier field of the current
// message: a singular field that occurs again, or a second member of a oneof.
func (k *Checker) checkTogether(m *messageInfo, f *fieldInfo) {
	if f.single && f.last == k.instance && f.message == nil {
		k.contradict(m, f, "the field occurs more than once in a message, but is declared as singular")
	}
	if o := f.oneof; o != nil {
		if o.last == k.instance && o.member != f {
			k.contradict(m, f, fmt.Sprintf("the field occurs together with %s, which is in the same oneof %s", o.member.fd.Name(), o.name))
		}
		o.last, o.member = k.instance, f
	}
}

// submessages checks the messages nested in the message at index at. explained and ok are as in checkMessage.
func (k *Checker) submessages(t *wire.Tree, at int32, m *messageInfo) (explained int64, ok bool) {
	ok = true
	for c := range t.Children(at) {
		n := &t.Nodes[c]
		if n.Type != wire.Len && n.Type != wire.StartGroup || n.Number > maxFieldNumber {
			continue
		}
		f := m.fields[int32(n.Number)]
		if f == nil || f.message == nil || f.wire != n.Type {
			continue
		}
		if !t.IsMessage(c) {
			// Otherwise it was not parsed because of a limit, which is no contradiction.
			if n.Sound() {
				k.contradict(m, f, "the payload does not parse as a message")
			}
			ok = false
			continue
		}

		if f.child == nil {
			f.child = k.info(f.message)
		}
		inner, fine := k.checkMessage(t, c, f.child)
		ok = ok && fine
		// The tag and the length of the field belong to this message and are explained; inner covers the rest.
		own := n.Val - n.Off
		if n.Type == wire.StartGroup {
			own += n.End - t.EndTag(c)
		}
		explained += int64(own) + inner
	}
	return explained, ok
}

// malformed returns the text of a parse error without the offset, so that equal errors are counted as one
// finding.
func malformed(err error) string {
	if err == nil {
		return "the field number is out of range"
	}
	s := err.Error()
	if i := strings.LastIndex(s, ": "); i >= 0 {
		s = s[i+2:]
	}
	return s
}

// checkValue checks the value at index i of t against the definition of its field. It returns a description of
// the contradiction, or "".
func (k *Checker) checkValue(t *wire.Tree, i int32, f *fieldInfo) string {
	n := &t.Nodes[i]
	if n.Type != f.wire {
		if n.Type == wire.Len && f.packable {
			return packed(t.Payload(i), f)
		}
		return fmt.Sprintf("the wire type is %s, but the field is declared as %s", n.Type, f.kind)
	}
	switch n.Type {
	case wire.Varint:
		return number(t.Uint(i), f)
	case wire.Len:
		if f.kind == protoreflect.StringKind && !utf8.Valid(t.Payload(i)) {
			return "the string is not valid UTF-8"
		}
	}
	return ""
}

// packed checks the elements of a packed field with the payload p. It returns a description of the
// contradiction, or "".
func packed(p []byte, f *fieldInfo) string {
	if width := f.wire.FixedLen(); width > 0 {
		if len(p)%width != 0 {
			return fmt.Sprintf("the size of the packed payload is not a multiple of %d", width)
		}
		return ""
	}
	for len(p) > 0 {
		v, n := wire.ConsumeVarint(p)
		if n <= 0 {
			return "the packed payload does not parse as varints"
		}
		if reason := number(v, f); reason != "" {
			return reason
		}
		p = p[n:]
	}
	return ""
}

// number checks the varint v against the declared type. It returns a description of the contradiction, or "".
func number(v uint64, f *fieldInfo) string {
	outside := false
	switch f.kind {
	case protoreflect.BoolKind:
		if v > 1 {
			return "the field is declared as bool, but has a value above 1"
		}
	case protoreflect.Int32Kind, protoreflect.EnumKind:
		outside = int64(v) < math.MinInt32 || int64(v) > math.MaxInt32
	case protoreflect.Uint32Kind, protoreflect.Sint32Kind:
		outside = v > math.MaxUint32
	}
	if outside {
		return fmt.Sprintf("the field is declared as %s, but has a value outside 32 bits", f.kind)
	}
	if f.kind == protoreflect.EnumKind && f.fd.Enum().Values().ByNumber(protoreflect.EnumNumber(int32(v))) == nil {
		return fmt.Sprintf("the enum %s has no value %d", f.fd.Enum().FullName(), int32(v))
	}
	return ""
}
