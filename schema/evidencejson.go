package schema

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"
)

// evidenceFormat is the version of Evidence's own JSON. It is not that of the
// contract's evidence list, which is made of verdicts (Inferred.EvidenceJSON).
const evidenceFormat = 1

// maxEvidenceBytes bounds the JSON that ReadEvidence takes; 100,000 fields need a tenth of it.
const maxEvidenceBytes = 512 << 20

// maxCount bounds every number read from JSON, so that merging thousands of
// such files does not overflow.
const maxCount = 1 << 52

type evidenceDoc struct {
	Format  int                        `json:"unwire_evidence"`
	Roots   map[string]*messageDoc     `json:"roots"`
	Methods map[string]*methodEvidence `json:"methods,omitempty"`
	Cut     *cutDoc                    `json:"cut,omitempty"`
}

type cutDoc struct {
	Path []int32 `json:"path"`
	Root string  `json:"root"`
}

type messageDoc struct {
	Samples int64               `json:"samples"`
	Fields  map[int32]*fieldDoc `json:"fields,omitempty"`
}

type fieldDoc struct {
	Seen    int64        `json:"seen"`
	Occurs  int64        `json:"occurs"`
	Most    int64        `json:"most"`
	Before  []int32      `json:"before,omitempty"`
	Varint  *varintStats `json:"varint,omitempty"`
	Fixed32 *fixedStats  `json:"fixed32,omitempty"`
	Fixed64 *fixedStats  `json:"fixed64,omitempty"`
	Len     *lenStats    `json:"len,omitempty"`
	Child   *messageDoc  `json:"message,omitempty"`
	Group   *messageDoc  `json:"group,omitempty"`
	Groups  int64        `json:"groups,omitempty"`
}

// Write writes the evidence as JSON that ReadEvidence reads back. The same
// evidence is the same bytes.
func (e *Evidence) Write(w io.Writer) error {
	doc := evidenceDoc{Format: evidenceFormat, Roots: map[string]*messageDoc{}, Methods: e.methods}
	for name, m := range e.roots {
		doc.Roots[name] = m.doc()
	}
	if e.cut != nil {
		doc.Cut = &cutDoc{e.cut.path, e.cut.root}
	}
	b, err := json.Marshal(&doc)
	if err != nil {
		return fmt.Errorf("schema: evidence: %w", err)
	}
	if _, err := w.Write(append(b, '\n')); err != nil {
		return fmt.Errorf("schema: evidence: %w", err)
	}
	return nil
}

func (m *message) doc() *messageDoc {
	if m == nil {
		return nil
	}
	d := &messageDoc{Samples: m.samples, Fields: map[int32]*fieldDoc{}}
	for _, n := range m.numbers() {
		f := m.get(n)
		d.Fields[n] = &fieldDoc{
			Seen: f.seen, Occurs: f.occurs, Most: f.most, Before: f.before.list(),
			Varint: f.varint, Fixed32: f.fixed32, Fixed64: f.fixed64, Len: f.len,
			Child: f.child.doc(), Group: f.group.doc(), Groups: f.groups,
		}
	}
	return d
}

// ReadEvidence reads what Write wrote, perhaps by another program.
//
// Limits: 512 MiB, and those of Evidence.
// Errors: names the field whose numbers no traffic can have left.
func ReadEvidence(r io.Reader) (*Evidence, error) {
	b, err := io.ReadAll(io.LimitReader(r, maxEvidenceBytes+1))
	if err != nil {
		return nil, fmt.Errorf("schema: evidence: %w", err)
	}
	if len(b) > maxEvidenceBytes {
		return nil, fmt.Errorf("schema: evidence: more than %d bytes", maxEvidenceBytes)
	}
	var doc evidenceDoc
	if err := json.Unmarshal(b, &doc); err != nil {
		return nil, fmt.Errorf("schema: evidence: %w", err)
	}
	if doc.Format != evidenceFormat {
		return nil, fmt.Errorf("schema: evidence: format %d, this program reads %d", doc.Format, evidenceFormat)
	}
	e, err := doc.evidence()
	if err != nil {
		return nil, fmt.Errorf("schema: evidence: %w", err)
	}
	return e, nil
}

func (doc *evidenceDoc) evidence() (*Evidence, error) {
	e := NewEvidence()
	if len(doc.Roots) > maxRoots || len(doc.Methods) > maxRoots {
		return nil, fmt.Errorf("more than %d roots or methods", maxRoots)
	}
	for name, m := range doc.Methods {
		if m == nil || !countsValid(m.Calls, m.MostUp, m.MostDown, m.Streams) || len(m.Protocols) > maxProtocols {
			return nil, fmt.Errorf("method %q: counts out of range", name)
		}
		c := m.clone()
		if c.Protocols == nil {
			c.Protocols = map[string]int64{}
		}
		for _, n := range c.Protocols {
			if !countsValid(n) {
				return nil, fmt.Errorf("method %q: counts out of range", name)
			}
		}
		e.methods[name] = c
	}
	if c := doc.Cut; c != nil {
		if len(c.Path) > maxEvidenceDepth {
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

func (d *messageDoc) message(e *Evidence, path []int32) (*message, *placeError) {
	if d == nil || !countsValid(d.Samples) {
		return nil, &placeError{reason: "samples out of range"}
	}
	m := &message{samples: d.Samples}
	for n, fd := range d.Fields {
		if e.count++; e.count > 2*maxEvidenceFields {
			return nil, &placeError{reason: fmt.Sprintf("more than %d fields in all", 2*maxEvidenceFields)}
		}
		if n < 1 || n > int32(protowire.MaxValidNumber) || len(path) >= maxEvidenceDepth {
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

func (d *fieldDoc) field(e *Evidence, path []int32) (*field, *placeError) {
	bad := func(what string) (*field, *placeError) { return nil, &placeError{reason: what + " out of range"} }
	if d == nil || !countsValid(d.Seen, d.Occurs, d.Most, d.Groups) || d.Most > d.Occurs || d.Seen > d.Occurs || d.Seen == 0 {
		return bad("counts")
	}
	f := &field{seen: d.Seen, occurs: d.Occurs, most: d.Most, groups: d.Groups}
	for _, n := range d.Before {
		if n < 1 || n >= lowNumbers {
			return bad("before")
		}
		f.before.set(n)
	}
	var sum int64
	if f.varint = d.Varint; f.varint != nil {
		if !f.varint.valid() || f.varint.N == 0 {
			return bad("varint")
		}
		sum += f.varint.N
	}
	if f.fixed32 = d.Fixed32; f.fixed32 != nil {
		if !f.fixed32.valid() {
			return bad("fixed32")
		}
		sum += f.fixed32.N
	}
	if f.fixed64 = d.Fixed64; f.fixed64 != nil {
		if !f.fixed64.valid() {
			return bad("fixed64")
		}
		sum += f.fixed64.N
	}
	if f.len = d.Len; f.len != nil {
		if !f.len.valid() || f.len.NotMessage != (d.Child == nil) {
			return bad("len")
		}
		sum += f.len.N
	} else if d.Child != nil {
		return bad("message")
	}
	if sum += f.groups; sum != f.occurs || (f.groups > 0) != (d.Group != nil) {
		return bad("occurrences")
	}
	var err *placeError
	if d.Child != nil {
		if f.child, err = d.Child.message(e, path); err != nil {
			return nil, err
		}
	}
	if d.Group != nil {
		f.group, err = d.Group.message(e, path)
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

func (s *varintStats) valid() bool {
	sum := int64(0)
	for _, n := range s.Bits {
		if !countsValid(n) {
			return false
		}
		sum += n
	}
	return countsValid(s.N, s.Zero, s.Overlong, s.Negative, s.Odd, s.Epoch, s.Nanos, s.Micros) && sum == s.N &&
		max(s.Zero, s.Overlong, s.Negative, s.Odd, s.Epoch, s.Nanos, s.Micros) <= s.N &&
		s.Lowest <= 0 && int64(s.Max) >= 0 && s.Values.valid()
}

func (s *fixedStats) valid() bool {
	return s.N > 0 && countsValid(s.N, s.Zero, s.Float, s.Int, s.Small) && s.Zero <= s.N && s.Small <= s.N && s.Values.valid()
}

func (l *lenStats) valid() bool {
	return l.N > 0 && countsValid(l.N, l.Empty, l.Overlong, l.Bytes, l.Shortest, l.Longest, l.Raw, l.Text, l.Control,
		l.Varints, l.Float32, l.Int32, l.Float64, l.Int64, l.Ascending, l.Descending) &&
		l.Empty <= l.N && l.Overlong <= l.N && l.Control <= l.N && l.Shortest <= l.Longest &&
		len(l.Prefix) <= prefixLen && l.Values.valid() && l.Elements != nil && l.Elements.valid()
}

func (s *sketch) valid() bool {
	if s == nil || len(s.Items) > sketchSize {
		return false
	}
	for i, it := range s.Items {
		if it.Count < 1 || it.Count > maxCount || i > 0 && s.Items[i-1].Hash >= it.Hash {
			return false
		}
	}
	return true
}
