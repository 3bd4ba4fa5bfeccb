package kind

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"
)

// maxCount bounds every number read from JSON, so that merging thousands of
// such files does not overflow.
const maxCount = 1 << 52

// A Doc is Evidence as it is written in JSON.
type Doc struct {
	Roots map[string]*messageDoc `json:"roots"`
	Cut   *cutDoc                `json:"cut,omitempty"`
}

// A cutDoc is the last field that was kept, where fields were forgotten.
type cutDoc struct {
	Path []int32 `json:"path"`
	Root string  `json:"root"`
}

// A messageDoc is a Message in JSON.
type messageDoc struct {
	Samples int64               `json:"samples"`
	Fields  map[int32]*fieldDoc `json:"fields,omitempty"`
}

// A fieldDoc is a Field in JSON.
type fieldDoc struct {
	Seen    int64       `json:"seen"`
	Occurs  int64       `json:"occurs"`
	Most    int64       `json:"most"`
	Before  []int32     `json:"before,omitempty"`
	Varint  *Varints    `json:"varint,omitempty"`
	Fixed32 *fixeds     `json:"fixed32,omitempty"`
	Fixed64 *fixeds     `json:"fixed64,omitempty"`
	Len     *Payloads   `json:"len,omitempty"`
	Child   *messageDoc `json:"message,omitempty"`
	Group   *messageDoc `json:"group,omitempty"`
	Groups  int64       `json:"groups,omitempty"`
}

// Doc returns the evidence for JSON. The same evidence is the same bytes.
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

// Evidence returns what Doc was made of, perhaps by another program.
//
// Limits: those of Evidence.
// Errors: names the field whose numbers no traffic can have left.
func (doc *Doc) Evidence() (*Evidence, error) {
	e := NewEvidence()
	if len(doc.Roots) > maxRoots {
		return nil, fmt.Errorf("more than %d roots", maxRoots)
	}
	if c := doc.Cut; c != nil {
		if len(c.Path) > MaxDepth {
			return nil, errors.New("cut is deeper than fields can be")
		}
		e.cut = &key{slices.Clone(c.Path), c.Root}
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

// A placeError is an error of one field; the field's ancestors prepend themselves.
type placeError struct {
	path   []int32
	reason string
}

func (p *placeError) Error() string {
	var b strings.Builder
	for i := len(p.path) - 1; i >= 0; i-- {
		fmt.Fprintf(&b, ".%d", p.path[i])
	}
	return b.String() + ": " + p.reason
}

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

func (d *fieldDoc) field(e *Evidence, path []int32) (*Field, *placeError) {
	bad := func(what string) (*Field, *placeError) { return nil, &placeError{reason: what + " out of range"} }
	if d == nil || !countsValid(d.Seen, d.Occurs, d.Most, d.Groups) || d.Most > d.Occurs || d.Seen > d.Occurs || d.Seen == 0 {
		return bad("counts")
	}
	f := &Field{Seen: d.Seen, Occurs: d.Occurs, Most: d.Most, Groups: d.Groups}
	for _, n := range d.Before {
		if n < 1 || n >= LowNumbers {
			return bad("before")
		}
		f.Before.Set(n)
	}
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

func countsValid(list ...int64) bool {
	for _, n := range list {
		if n < 0 || n > maxCount {
			return false
		}
	}
	return true
}

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

func (s *fixeds) valid() bool {
	return s.N > 0 && countsValid(s.N, s.Zero, s.Float, s.Int, s.Small) && s.Zero <= s.N && s.Small <= s.N && s.Values.valid()
}

func (l *Payloads) valid() bool {
	return l.N > 0 && countsValid(l.N, l.Empty, l.Overlong, l.Bytes, l.Skipped, l.Shortest, l.Longest, l.Ascending, l.Descending) &&
		l.costSums.valid() && (l.N == l.Empty || l.summed(&l.costSums)) && l.levelsValid() &&
		l.Forms.Valid(l.N) && l.Empty <= l.N && l.Overlong <= l.N && l.Control <= l.N && l.Shortest <= l.Longest &&
		len(l.Prefix) <= PrefixLen && len(l.Ones) <= maskLen && len(l.Ones) == len(l.Anys) && l.Values.valid()
}

// summed: what is not refuted has been summed up, and what is has not.
func (l *Payloads) summed(s *costSums) bool {
	return (s.Elements != nil) == !l.NotVarints && (s.Tops32 != nil) == !l.NotFixed32 && (s.Tops64 != nil) == !l.NotFixed64
}

func (s *sketch) valid() bool {
	if s == nil || len(s.Items) > sketchSize || !s.Texts.valid(len(s.Items)) {
		return false
	}
	for i, it := range s.Items {
		if it.Count < 1 || it.Count > maxCount || i > 0 && s.Items[i-1].Hash >= it.Hash {
			return false
		}
	}
	return true
}
