package text

import (
	"bytes"
	"cmp"
	"fmt"
	"strconv"
	"unicode/utf8"

	"google.golang.org/protobuf/reflect/protoreflect"

	"unwire/decode/kind"
	"unwire/decode/wire"
)

// Readings less likely than this are left out of a comment.
const leastShown = 0.005

// declaredKind is the kind and type that its declaration gives a length-delimited node,
// unless its bytes refute that, or its reading was chosen.
func declaredKind(r *kind.Reader, t *wire.Tree, c int32, fd protoreflect.FieldDescriptor) (is wire.Kind, typ string) {
	if fd == nil || t.Node(c).Type != wire.Len || contradicts(t, c, fd) {
		return "", ""
	}
	if chosen, _ := r.Chosen(c); chosen {
		return "", ""
	}
	switch fd.Kind() {
	case protoreflect.MessageKind:
		is = wire.KindMessage
	case protoreflect.StringKind:
		is = wire.KindString
	case protoreflect.BytesKind:
		is = wire.KindBytes
	default:
		if declaredWire(fd.Kind()) == wire.Varint && !kind.IsPackedVarint(t.Payload(c)) {
			return "", "" // JSON has no place for how long the varints are
		}
		return wire.KindPacked, packedOf(fd, t.Payload(c))
	}
	return is, string(is)
}

// packedOf is the type of a packed list as fd declares it, or one that data is.
func packedOf(fd protoreflect.FieldDescriptor, data []byte) string {
	typ := "packed " + fd.Kind().String()
	if fd.Kind() == protoreflect.BoolKind && bytes.ContainsFunc(data, func(r rune) bool { return r > 1 }) {
		return "packed varint"
	}
	return typ
}

// declaredWire is that of a declared number.
func declaredWire(k protoreflect.Kind) wire.Type {
	switch k {
	case protoreflect.Fixed32Kind, protoreflect.Sfixed32Kind, protoreflect.FloatKind:
		return wire.I32
	case protoreflect.Fixed64Kind, protoreflect.Sfixed64Kind, protoreflect.DoubleKind:
		return wire.I64
	}
	return wire.Varint
}

// remark ends a line: with the field's name and type where a schema has it, what
// contradicts that, the readings where they are in doubt, and what the value looks
// like where that is not seen at once.
func (p *printer) remark(c int32, fd protoreflect.FieldDescriptor) {
	n := p.t.Node(c)
	sep := "  # "
	say := func(s string) {
		p.w.WriteString(sep)
		p.w.WriteString(s)
		sep = ", "
	}
	isChosen, unfit := p.r.Chosen(c)
	if fd != nil {
		s := string(fd.Name()) + ": " + declaration(fd)
		if fd.Enum() != nil && n.Type == wire.Varint {
			if v := fd.Enum().Values().ByNumber(protoreflect.EnumNumber(int32(p.t.Uint(c)))); v != nil {
				s += " " + string(v.Name())
			}
		}
		say(s)
		if !isChosen && contradicts(&p.t, c, fd) {
			say("! but not so on the wire")
		}
	}
	if n.Err != nil {
		say("! " + printable(wire.ErrorText(n.Err, p.base)))
	}
	if unfit != nil {
		say("! " + printable(unfit.Error()))
	}
	is, typ, prob := p.r.Best(c)
	if isChosen {
		say(typ + " as chosen")
	} else if fd == nil {
		if s := p.doubt(c, typ, prob); s != "" {
			say(s)
		}
	}
	if k, t := declaredKind(p.r, &p.t, c, fd); k != "" {
		is, typ = k, t
	} else if fd != nil {
		typ = ""
	}
	if n.Type == wire.Varint && typ == "sint64" {
		say(strconv.FormatInt(unzigzag(p.t.Uint(c)), 10))
	}
	if s := remarkText(p.r.Remark(c, is, typ), fd != nil); s != "" {
		say(s)
	}
	p.w.WriteByte('\n')
}

// doubt is the readings of a node without a declaration, where they are in doubt, and
// of a varint the type that says more than the number.
func (p *printer) doubt(c int32, typ string, prob float64) string {
	n := p.t.Node(c)
	switch {
	case n.Type == wire.Varint && telling(typ) && prob >= 0.5:
		if prob < surely {
			return fmt.Sprintf("%s %.2f", typ, prob)
		}
		return typ
	case n.Type != wire.Varint && n.Val < n.End && prob < surely:
		return p.readings(c)
	}
	return ""
}

// readings are those of a node, with their probabilities.
func (p *printer) readings(c int32) string {
	var buf [80]byte
	s := buf[:0]
	for _, r := range p.r.Readings(c) {
		if r.P < leastShown {
			break
		}
		if len(s) > 0 {
			s = append(s, ' ')
		}
		s = append(append(s, cmp.Or(r.Type, string(r.Kind))...), ' ')
		s = strconv.AppendFloat(s, r.P, 'f', 2, 64)
	}
	return string(s)
}

// telling reports a type of varints that says another number than the one written.
func telling(typ string) bool {
	switch typ {
	case "sint64", "timestamp-s", "timestamp-ms", "timestamp-us", "timestamp-ns":
		return true
	}
	return false
}

func unzigzag(v uint64) int64 { return int64(v>>1) ^ -int64(v&1) }

// remarkText is a remark in a comment; a form that is seen at once is left out, and
// so is a shape where a declaration says more.
func remarkText(r kind.Remark, declared bool) string {
	if r == (kind.Remark{}) {
		return ""
	}
	s := ""
	switch r.Form {
	case "":
	case "json", "url", "data-url", "path", "semver", "email", "ip":
		return "" // are seen at once
	default:
		if s = r.Form; r.Note != "" {
			return printable(s + ": " + r.Note)
		}
		if r.Form == "number" || r.Form == "date" {
			return ""
		}
		return s
	}
	if r.Shape != "" && !declared {
		if s = r.Shape; r.Doubtful() {
			s = fmt.Sprintf("perhaps %s (%.2f)", s, r.P)
		}
	}
	if r.Note != "" {
		if s != "" {
			s += ": "
		}
		s += r.Note
	}
	return printable(s)
}

// contradicts reports whether node c cannot be what fd declares.
func contradicts(t *wire.Tree, c int32, fd protoreflect.FieldDescriptor) bool {
	n := t.Node(c)
	switch fd.Kind() {
	case protoreflect.MessageKind:
		return n.Type != wire.Len || !t.IsMessage(c)
	case protoreflect.StringKind:
		return n.Type != wire.Len || !utf8.Valid(t.Payload(c))
	case protoreflect.BytesKind:
		return n.Type != wire.Len
	case protoreflect.GroupKind:
		return n.Type != wire.StartGroup
	}
	want := declaredWire(fd.Kind())
	if n.Type != wire.Len || !fd.IsList() {
		return n.Type != want
	}
	data := t.Payload(c)
	switch want {
	case wire.I32:
		return len(data)%4 != 0
	case wire.I64:
		return len(data)%8 != 0
	}
	for len(data) > 0 {
		_, size := wire.ConsumeVarint(data)
		if size <= 0 {
			return true
		}
		data = data[size:]
	}
	return false
}
