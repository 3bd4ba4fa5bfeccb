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

// leastShown is the probability below which possible types are omitted from comments.
const leastShown = 0.005

// declaredKind returns the kind and the type that fd declares for a length-delimited node. It returns "" if the
// bytes contradict fd, or if a user chose a type. r may be nil.
func declaredKind(r *kind.Reader, t *wire.Tree, c int32, fd protoreflect.FieldDescriptor) (is wire.Kind, typ string) {
	if fd == nil || t.Node(c).Type != wire.Len || contradicts(t, c, fd) {
		return "", ""
	}
	if r != nil {
		if chosen, _ := r.Chosen(c); chosen {
			return "", ""
		}
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
			// JSON has no place for the lengths of overlong varints in a list.
			return "", ""
		}
		return wire.KindPacked, packedOf(fd, t.Payload(c))
	}
	return is, string(is)
}

// packedOf returns the type of a packed list as fd declares it. A list of bools with numbers above 1 becomes a list
// of varints, because bools would lose the numbers.
func packedOf(fd protoreflect.FieldDescriptor, data []byte) string {
	typ := "packed " + fd.Kind().String()
	if fd.Kind() == protoreflect.BoolKind && bytes.ContainsFunc(data, func(r rune) bool { return r > 1 }) {
		return "packed varint"
	}
	return typ
}

// declaredWire returns the wire type with which a number of the declared kind k is encoded.
func declaredWire(k protoreflect.Kind) wire.Type {
	switch k {
	case protoreflect.Fixed32Kind, protoreflect.Sfixed32Kind, protoreflect.FloatKind:
		return wire.I32
	case protoreflect.Fixed64Kind, protoreflect.Sfixed64Kind, protoreflect.DoubleKind:
		return wire.I64
	}
	return wire.Varint
}

// remark ends the line of node c with a comment about what is not obvious from the value: name and type in the
// schema, contradictions to the schema, possible types if the type is ambiguous, and the format of the value. best is
// the result of p.best.
func (p *printer) remark(c int32, fd protoreflect.FieldDescriptor, best reading) {
	n := p.t.Node(c)
	sep := "  # "
	add := func(s string) {
		p.w.WriteString(sep)
		p.w.WriteString(s)
		sep = ", "
	}

	// The declaration, and contradictions.
	isChosen, mismatch := p.chosen(c)
	if fd != nil {
		add(p.declared(c, fd))
		if !isChosen && contradicts(&p.t, c, fd) {
			add("! the bytes contradict this type")
		}
	}
	if !n.Sound() {
		p.offsets++
		add("! " + printable(wire.ErrorText(p.t.Fault(n), p.base)))
	}
	if p.plain {
		p.w.WriteByte('\n')
		return
	}
	if mismatch != nil {
		add("! " + printable(mismatch.Error()))
	}

	// The reading, if it is not declared.
	is, typ := best.kind, best.typ
	if isChosen {
		add("read as " + typ + ", chosen with --as")
	} else if fd == nil {
		if s := p.doubtText(c, typ, best.p); s != "" {
			add(s)
		}
	}

	// The remark refers to the reading by which the value is printed.
	if k, t := declaredKind(p.r, &p.t, c, fd); k != "" {
		is, typ = k, t
	} else if fd != nil {
		typ = ""
	}
	if n.Type == wire.Varint && typ == "sint64" {
		add(strconv.FormatInt(unzigzag(p.t.Uint(c)), 10))
	}
	if s := remarkText(p.r.Remark(c, is, typ), fd != nil); s != "" {
		add(s)
	}
	p.w.WriteByte('\n')
}

// chosen reports whether a user chose the type of node c, and why the choice does not fit the bytes.
func (p *printer) chosen(c int32) (bool, error) {
	if p.plain {
		return false, nil
	}
	return p.r.Chosen(c)
}

// declared returns the name and the type that fd declares for node c, and the name of its enum value.
func (p *printer) declared(c int32, fd protoreflect.FieldDescriptor) string {
	s := string(fd.Name()) + ": " + declaration(fd)
	if fd.Enum() != nil && p.t.Node(c).Type == wire.Varint {
		if v := fd.Enum().Values().ByNumber(protoreflect.EnumNumber(int32(p.t.Uint(c)))); v != nil {
			s += " " + string(v.Name())
		}
	}
	return s
}

// A reading is how a node is printed.
type reading struct {
	// kind and typ are the kind and the type as which the node is printed.
	kind wire.Kind
	typ  string

	// p is the probability of the type, or 1 if it is certain.
	p float64
}

// best returns how node c is printed.
func (p *printer) best(c int32) (best reading) {
	best.p = 1
	n := p.t.Node(c)
	switch {
	case !p.plain && p.r.IsClearlyText(c):
		best.kind, best.typ = wire.KindString, string(wire.KindString)
	case !p.plain:
		best.kind, best.typ, best.p = p.r.Best(c)
	case n.Type != wire.Len, n.Val == n.End:
	case isPlain(p.t.Payload(c)) && (n.End-n.Val > 1 || p.t.Data[n.Val] >= ' '):
		best.kind = wire.KindString
	case p.t.IsMessage(c):
		best.kind = wire.KindMessage
	default:
		best.kind = wire.KindBytes
	}
	return best
}

// doubtText returns a comment with the possible types of node c if its type is ambiguous, or ""; typ and prob are
// the most probable type and its probability. For a varint it also names the type if the number would be a
// different one in that type.
func (p *printer) doubtText(c int32, typ string, prob float64) string {
	n := p.t.Node(c)
	switch {
	case n.Type == wire.Varint && changesNumber(typ) && prob >= 0.5:
		if prob < certain {
			var buf [40]byte
			s := append(append(append(buf[:0], "probably "...), typ...), " ("...)
			return string(append(strconv.AppendFloat(s, prob, 'f', 2, 64), ')'))
		}
		return typ
	case n.Type != wire.Varint && n.Val < n.End && prob < certain:
		return p.readings(c)
	}
	return ""
}

// readings lists the possible types of node c with their probabilities, the most probable one first.
func (p *printer) readings(c int32) string {
	var buf [80]byte
	s := buf[:0]
	for _, r := range p.r.Types(c) {
		if r.P < leastShown {
			break
		}
		before := ", or "
		if len(s) == 0 {
			before = "probably "
		}
		s = append(append(append(s, before...), cmp.Or(r.Type, string(r.Kind))...), " ("...)
		s = append(strconv.AppendFloat(s, r.P, 'f', 2, 64), ')')
	}
	return string(s)
}

// changesNumber reports whether a varint of type typ represents another number than its int64 value, as
// sint64 does.
func changesNumber(typ string) bool {
	switch typ {
	case "sint64", "timestamp-s", "timestamp-ms", "timestamp-us", "timestamp-ns":
		return true
	}
	return false
}

// unzigzag decodes a zigzag-encoded number.
func unzigzag(v uint64) int64 { return int64(v>>1) ^ -int64(v&1) }

// remarkText formats a remark for a comment. It omits formats that are obvious from the text and, if declared is
// true (the schema has the field), the resemblance to a well-known type.
func remarkText(r kind.Remark, declared bool) string {
	if r.Form == "" && r.Shape == "" && r.Note == "" {
		return ""
	}
	s := ""
	switch r.Form {
	case "":
	case "json", "url", "data-url", "path", "semver", "email", "ip":
		// These are obvious.
		return ""
	default:
		if r.Note != "" && (r.Form == "hex" || r.Form == "base64") {
			return printable(r.Note) + " in " + r.Form
		}
		if s = r.Form; r.Note != "" {
			return printable(s + ": " + r.Note)
		}
		if r.Form == "number" || r.Form == "date" {
			return ""
		}
		return s
	}

	// A well-known type that was inferred, then the remark itself.
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

// contradicts reports whether node c cannot have the type that fd declares.
func contradicts(t *wire.Tree, c int32, fd protoreflect.FieldDescriptor) bool {
	n := t.Node(c)

	// These kinds have one possible wire type, and their payloads have a format.
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

	// A packed field must divide into elements.
	data := t.Payload(c)
	switch want {
	case wire.I32:
		return len(data)%4 != 0
	case wire.I64:
		return len(data)%8 != 0
	}

	// Varints have no fixed size, so each one must be read.
	for len(data) > 0 {
		_, size := wire.ConsumeVarint(data)
		if size <= 0 {
			return true
		}
		data = data[size:]
	}
	return false
}
