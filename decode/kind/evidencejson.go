package kind

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"
)

// maxCount bounds every count that is read from JSON, so that merging thousands of files does not overflow.
const maxCount = 1 << 52

// A Doc is the JSON form of Evidence.
type Doc struct {
	// Roots maps the names of root types to their messages.
	Roots map[string]*messageDoc `json:"roots" pb:"3"`

	// Cut is the last field that is kept, if fields were dropped because of the limits; otherwise nil.
	Cut *cutDoc `json:"cut,omitempty" pb:"4"`
}

// A cutDoc identifies the last field that is kept, by the field numbers that lead to it and by its root type.
type cutDoc struct {
	// Path are the field numbers from the root message to the field.
	Path []int32 `json:"path" pb:"1"`

	// Root is the name of the type of the root (top-level) message.
	Root string `json:"root" pb:"2"`
}

// A messageDoc is the JSON form of a Message.
type messageDoc struct {
	// Samples is the number of messages that were counted.
	Samples int64 `json:"samples" pb:"1"`

	// Fields maps each field number of the message to the statistics of the field.
	Fields map[int32]*fieldDoc `json:"fields,omitempty" pb:"2"`
}

// A fieldDoc is the JSON form of a Field.
type fieldDoc struct {
	// Seen is the number of messages that contain the field.
	Seen int64 `json:"seen" pb:"1"`

	// Occurs is the number of occurrences of the field in all messages.
	Occurs int64 `json:"occurs" pb:"2"`

	// Most is the largest number of occurrences of the field in one message.
	Most int64 `json:"most" pb:"3"`

	// Before are the numbers of the fields that preceded this one in some message, ascending.
	Before []int32 `json:"before,omitempty" pb:"4"`

	// Varint has the statistics of the field's varint values; nil if there are none.
	Varint *Varints `json:"varint,omitempty" pb:"5"`

	// Fixed32 has the statistics of the field's values of wire type I32 (4 bytes); nil if there are none.
	Fixed32 *fixeds `json:"fixed32,omitempty" pb:"6"`

	// Fixed64 has the statistics of the field's values of wire type I64 (8 bytes); nil if there are none.
	Fixed64 *fixeds `json:"fixed64,omitempty" pb:"7"`

	// Len has the statistics of the field's length-delimited values; nil if there are none.
	Len *Payloads `json:"len,omitempty" pb:"8"`

	// Child has the statistics of the length-delimited values as messages; nil if some value is not a message.
	Child *messageDoc `json:"message,omitempty" pb:"9"`

	// Group has the statistics of the messages in the field's groups (wire types SGROUP and EGROUP); nil if there
	// are none.
	Group *messageDoc `json:"group,omitempty" pb:"10"`

	// Groups is the number of the field's groups.
	Groups int64 `json:"groups,omitempty" pb:"11"`
}

// Doc returns the JSON form. Equal evidence yields equal bytes.
func (e *Evidence) Doc() Doc {
	doc := Doc{Roots: map[string]*messageDoc{}}
	for name, m := range e.roots {
		doc.Roots[name] = m.doc()
	}
	if e.cut != nil {
		doc.Cut = &cutDoc{e.cut.path, e.cut.root}
	}
	return doc
}

// doc returns the JSON form of a message; nil for nil.
func (m *Message) doc() *messageDoc {
	if m == nil {
		return nil
	}
	d := &messageDoc{Samples: m.Samples, Fields: map[int32]*fieldDoc{}}
	for _, n := range m.Numbers() {
		f := m.Field(n)
		d.Fields[n] = &fieldDoc{
			Seen: f.Seen, Occurs: f.Occurs, Most: f.Most, Before: f.Before.List(),
			Varint: f.Varint, Fixed32: f.Fixed32, Fixed64: f.Fixed64, Len: f.Len,
			Child: f.Child.doc(), Group: f.Group.doc(), Groups: f.Groups,
		}
	}
	return d
}

// Evidence validates a Doc, which may come from another program, and converts it to an Evidence, whose
// limits apply.
//
// Errors: the error names the first field whose counts are impossible.
func (doc *Doc) Evidence() (*Evidence, error) {
	e := NewEvidence()
	if len(doc.Roots) > maxRoots {
		return nil, fmt.Errorf("the evidence has more than %d root types", maxRoots)
	}
	if c := doc.Cut; c != nil {
		if len(c.Path) > MaxDepth {
			return nil, errors.New("the path in \"cut\" is longer than fields can be nested")
		}
		e.cut = &fieldKey{slices.Clone(c.Path), c.Root}
	}
	for name, d := range doc.Roots {
		m, err := d.message(e, nil)
		if err != nil {
			return nil, fmt.Errorf("%s%w", name, err)
		}
		e.roots[name] = m
	}
	return e, nil
}

// A placeError is an error in one field of a Doc. Enclosing messages append their field numbers to path, so that it
// is in reverse order.
type placeError struct {
	// path are the field numbers that lead to the field, innermost first.
	path []int32

	// reason is the text of the error.
	reason string
}

// Error formats the error with the path of the field.
func (p *placeError) Error() string {
	var b strings.Builder
	for i := len(p.path) - 1; i >= 0; i-- {
		fmt.Fprintf(&b, ".%d", p.path[i])
	}
	return b.String() + ": " + p.reason
}

// message validates and converts the statistics of a message type with its fields. path are the field numbers that
// lead to it.
func (d *messageDoc) message(e *Evidence, path []int32) (*Message, *placeError) {
	if d == nil || !countsValid(d.Samples) {
		return nil, &placeError{reason: "samples out of range"}
	}
	m := &Message{Samples: d.Samples}
	for n, fd := range d.Fields {
		if e.count++; e.count > 2*maxFields {
			return nil, &placeError{reason: fmt.Sprintf("more than %d fields in all", 2*maxFields)}
		}
		if n < 1 || n > int32(protowire.MaxValidNumber) || len(path) >= MaxDepth {
			return nil, &placeError{path: []int32{n}, reason: "field number or depth out of range"}
		}
		f, err := fd.field(e, append(path, n))
		if err != nil {
			err.path = append(err.path, n)
			return nil, err
		}
		m.set(n, f)
	}
	return m, nil
}

// field validates and converts the counts of a field, and everything below it.
func (d *fieldDoc) field(e *Evidence, path []int32) (*Field, *placeError) {
	bad := func(what string) (*Field, *placeError) { return nil, &placeError{reason: what + " out of range"} }
	if d == nil || !countsValid(d.Seen, d.Occurs, d.Most, d.Groups) || d.Most > d.Occurs || d.Seen > d.Occurs || d.Seen == 0 {
		return bad("counts")
	}
	f := &Field{Seen: d.Seen, Occurs: d.Occurs, Most: d.Most, Groups: d.Groups}

	// Only small field numbers are tracked, in a bit set of fixed size.
	for _, n := range d.Before {
		if n < 1 || n >= LowNumbers {
			return bad("before")
		}
		f.Before.Add(n)
	}

	// The occurrences by wire type must add up.
	var sum int64
	if f.Varint = d.Varint; f.Varint != nil {
		if !f.Varint.valid() || !f.Varint.Values.valid() || f.Varint.N == 0 {
			return bad("varint")
		}
		sum += f.Varint.N
	}
	if f.Fixed32 = d.Fixed32; f.Fixed32 != nil {
		if !f.Fixed32.valid() {
			return bad("fixed32")
		}
		sum += f.Fixed32.N
	}
	if f.Fixed64 = d.Fixed64; f.Fixed64 != nil {
		if !f.Fixed64.valid() {
			return bad("fixed64")
		}
		sum += f.Fixed64.N
	}
	if f.Len = d.Len; f.Len != nil {
		if !f.Len.valid() || f.Len.NotMessage != (d.Child == nil) {
			return bad("len")
		}
		sum += f.Len.N
	} else if d.Child != nil {
		return bad("message")
	}
	if sum += f.Groups; sum != f.Occurs || (f.Groups > 0) != (d.Group != nil) {
		return bad("occurrences")
	}

	// The children are read last, so that a damaged parent fails before a deep recursion.
	var err *placeError
	if d.Child != nil {
		if f.Child, err = d.Child.message(e, path); err != nil {
			return nil, err
		}
	}
	if d.Group != nil {
		f.Group, err = d.Group.message(e, path)
	}
	return f, err
}

// countsValid reports whether all counts are from 0 to maxCount.
func countsValid(list ...int64) bool {
	for _, n := range list {
		if n < 0 || n > maxCount {
			return false
		}
	}
	return true
}

// valid reports whether the statistics, which were read from a file, are consistent.
func (s *Varints) valid() bool {
	sum := int64(0)
	for _, n := range s.Bits {
		if !countsValid(n) {
			return false
		}
		sum += n
	}
	return countsValid(s.N, s.Zero, s.Overlong, s.Negative, s.Odd, s.Twos, s.Small, s.Epoch, s.Nanos, s.Micros) && sum == s.N &&
		max(s.Zero, s.Overlong, s.Negative, s.Odd, s.Twos, s.Small, s.Epoch, s.Nanos, s.Micros) <= s.N &&
		s.Lowest <= 0 && int64(s.Max) >= 0
}

// valid reports whether the statistics, which were read from a file, are consistent.
func (s *fixeds) valid() bool {
	return s.N > 0 && countsValid(s.N, s.Zero, s.Float, s.Int, s.Small) && s.Zero <= s.N && s.Small <= s.N && s.Values.valid()
}

// valid reports whether the statistics, which were read from a file, are consistent.
func (l *Payloads) valid() bool {
	return l.N > 0 && countsValid(l.N, l.Empty, l.Overlong, l.Bytes, l.Skipped, l.Shortest, l.Longest, l.Ascending, l.Descending) &&
		l.costSums.valid() && (l.N == l.Empty || l.summed(&l.costSums)) && l.levelsValid() &&
		l.Forms.Valid(l.N) && l.Empty <= l.N && l.Overlong <= l.N && l.Control <= l.N && l.Shortest <= l.Longest &&
		len(l.Prefix) <= PrefixLen && len(l.Ones) <= maskLen && len(l.Ones) == len(l.Anys) && l.Values.valid() && l.KeyOrders.Valid()
}

// summed reports whether s has sums for exactly those hypotheses that the payloads do not refute.
func (l *Payloads) summed(s *costSums) bool {
	return (s.Elements != nil) == !l.NotVarints && (s.Tops32 != nil) == !l.NotFixed32 && (s.Tops64 != nil) == !l.NotFixed64
}

// valid reports whether the sketch, which was read from a file, is consistent: its hashes
// ascend without repetition.
func (s *sketch) valid() bool {
	if s == nil || len(s.Items) > sketchSize || !s.Texts.Valid(len(s.Items)) {
		return false
	}
	for i, it := range s.Items {
		if it.Count < 1 || it.Count > maxCount || i > 0 && s.Items[i-1].Hash >= it.Hash {
			return false
		}
	}
	return true
}
