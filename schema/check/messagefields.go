package check

import (
	"fmt"
	"math"
	"strings"
	"unicode/utf8"

	"google.golang.org/protobuf/reflect/protoreflect"

	"unwire/decode/wire"
)

// message checks the fields of node at against a type, and returns how many of
// the bytes are explained and whether all of them are well-formed.
//
// The fields are checked before what is below any of them is, so that the
// marks of this instance are not mixed with those of one of its own type below.
func (k *Checker) message(t *wire.Tree, at int32, m *messageInfo) (explained int64, ok bool) {
	k.instance++
	m.seen++
	instance := k.instance
	own := k.fields(t, at, m)
	for _, f := range m.required {
		if f.last != instance {
			k.contradict(m, f, "missing, declared required")
		}
	}

	if m.any {
		more, fine := k.any(t, at, m)
		return own.explained + more, own.ok && fine
	}
	if !own.messages {
		return own.explained, own.ok
	}
	if own.maps {
		k.keys(t, at, m)
	}
	more, fine := k.submessages(t, at, m)
	return own.explained + more, own.ok && fine
}

// checkedFields is what a message's fields were found to be, without what is in
// those that are messages.
type checkedFields struct {
	explained int64

	// all of them are well-formed
	ok bool

	// there are messages, and maps among them
	messages, maps bool
}

// fields checks the fields of node at, but not what is in those that are messages.
func (k *Checker) fields(t *wire.Tree, at int32, m *messageInfo) checkedFields {
	r := checkedFields{ok: true}
	instance := k.instance
	unknown := k.scratch[:0]
	for c := range t.Children(at) {
		n := &t.Nodes[c]
		if n.Type == wire.Garbage || n.Number > maxFieldNumber || n.Number == 0 {
			r.ok = false
			recordFinding(k.contradicted, finding{m.name, 0, "", "malformed: " + malformed(n.Err)}, k)
			continue
		}
		f := m.fields[int32(n.Number)]
		if f == nil {
			recordFinding(k.unknown, finding{message: m.name, number: int32(n.Number)}, k)
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
		reason := k.value(t, c, f)
		if reason != "" {
			k.contradict(m, f, reason)
		}
		// What contradicts its declaration by its value alone is explained all the same.
		if reason == "" || f.wire == n.Type {
			r.explained += int64(n.End - n.Off)
		}
	}

	k.scratch = unknown
	if len(unknown) > 0 {
		// What is unknown is a message by itself; its evidence is pooled by type.
		// Beyond the bounds of evidence it is only counted.
		_ = k.evidence.Add(m.name, unknown)
	}
	return r
}

// checkTogether contradicts if the message that is checked has had f before, or
// another field of the same oneof.
func (k *Checker) checkTogether(m *messageInfo, f *fieldInfo) {
	if f.single && f.last == k.instance && f.message == nil {
		k.contradict(m, f, "more than once in a message, declared singular")
	}
	if o := f.oneof; o != nil {
		if o.last == k.instance && o.member != f {
			k.contradict(m, f, fmt.Sprintf("together with %s of the same oneof %s", o.member.fd.Name(), o.name))
		}
		o.last, o.member = k.instance, f
	}
}

// submessages checks what is in the fields of node at that are messages.
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
			if n.Err == nil { // not followed for a limit otherwise
				k.contradict(m, f, "payload is no message")
			}
			ok = false
			continue
		}

		if f.below == nil {
			f.below = k.info(f.message)
		}
		inner, fine := k.message(t, c, f.below)
		ok = ok && fine
		own := n.Val - n.Off
		if n.Type == wire.StartGroup {
			own += n.End - t.EndTag(c)
		}
		explained += int64(own) + inner
	}
	return explained, ok
}

// malformed is the reason of garbage without its offset, so that equal ones are one finding.
func malformed(err error) string {
	if err == nil {
		return "field number out of range"
	}
	s := err.Error()
	if i := strings.LastIndex(s, ": "); i >= 0 {
		s = s[i+2:]
	}
	return s
}

// value checks one value against its declaration; "" is no contradiction.
func (k *Checker) value(t *wire.Tree, i int32, f *fieldInfo) string {
	n := &t.Nodes[i]
	if n.Type != f.wire {
		if n.Type == wire.Len && f.packable {
			return packed(t.Payload(i), f)
		}
		return fmt.Sprintf("wire type %s, declared %s", n.Type, f.kind)
	}
	switch n.Type {
	case wire.Varint:
		return number(t.Uint(i), f)
	case wire.Len:
		if f.kind == protoreflect.StringKind && !utf8.Valid(t.Payload(i)) {
			return "text that is not UTF-8"
		}
	}
	return ""
}

// packed checks the elements of a packed list.
func packed(p []byte, f *fieldInfo) string {
	if width := f.wire.FixedLen(); width > 0 {
		if len(p)%width != 0 {
			return fmt.Sprintf("packed payload whose size is no multiple of %d", width)
		}
		return ""
	}
	for len(p) > 0 {
		v, n := wire.ConsumeVarint(p)
		if n <= 0 {
			return "packed payload that is no list of varints"
		}
		if reason := number(v, f); reason != "" {
			return reason
		}
		p = p[n:]
	}
	return ""
}

// number checks a varint against the declared type.
func number(v uint64, f *fieldInfo) string {
	outside := false
	switch f.kind {
	case protoreflect.BoolKind:
		if v > 1 {
			return "bool with a value above 1"
		}
	case protoreflect.Int32Kind, protoreflect.EnumKind:
		outside = int64(v) < math.MinInt32 || int64(v) > math.MaxInt32
	case protoreflect.Uint32Kind, protoreflect.Sint32Kind:
		outside = v > math.MaxUint32
	}
	if outside {
		return fmt.Sprintf("%s with a value outside 32 bits", f.kind)
	}
	if f.kind == protoreflect.EnumKind && f.fd.Enum().Values().ByNumber(protoreflect.EnumNumber(int32(v))) == nil {
		return fmt.Sprintf("number %d has no name in %s", int32(v), f.fd.Enum().FullName())
	}
	return ""
}
