// Package check compares decoded traffic with definitions: it counts what they
// explain, and reports unknown fields and contradictions with the frames that show
// them.
//
// A Checker takes frames, exchanges or a capture one by one; Report returns the result
// so far.
//
// Protobuf messages are checked field by field, each value against its declared wire
// type. The message inside a google.protobuf.Any is checked as the type that it names,
// and so are the error details at the end of a call. The keys of a map must differ.
// JSON is checked as it is read; well-known types have a JSON shape of their own, such
// as a string for a Timestamp.
//
// An Allowance is a file of known findings, which a report does not count. A Proposal is a
// field to add to the definitions, inferred from what was seen of an unknown one.
//
// The package changes no definitions: package update does.
package check

import (
	"fmt"
	"math"
	"strings"
	"unicode/utf8"

	"google.golang.org/protobuf/reflect/protoreflect"

	"unwire/captures/profile"
	"unwire/decode"
	"unwire/decode/wire"
	"unwire/schema"
	"unwire/schema/infer"
)

// CheckOptions tunes a check. The zero value is the default.
type CheckOptions struct {
	// Profile has secrets that examples must not show; nil has none.
	Profile *profile.Profile
	// Address names a frame in the report; part says that it is the call's own, and
	// not its conversation's. Default: "#1/down/2".
	Address func(ex *decode.Exchange, f *decode.Frame, part bool) string
	// MaxFrames bounds the addresses listed for one finding. Default: 20.
	MaxFrames int
	// MaxFindings bounds the unknown and the contradicted fields. Default: 10,000.
	MaxFindings int
}

// A Checker compares messages with their declared types, and collects how
// traffic and definitions fit.
//
// Limits: those of CheckOptions; memory does not grow with traffic.
type Checker struct {
	schema   *schema.Schema
	o        CheckOptions
	infos    map[protoreflect.MessageDescriptor]*messageInfo
	methods  map[[3]string]*methodRow
	evidence *infer.Evidence // of unknown fields, a root for each message type
	scratch  []byte
	mapKeys  []mapKey

	unknown        map[finding]*found
	contradicted   map[finding]*found
	unknownMethods map[[2]string]*found
	unknownTypes   map[string]*found

	jsonFrames, brokenFrames int
	details, detailsDecoded  int

	// part says that frames are a call's own, whose conversation was checked before.
	part bool

	frame    func() string // the address of the frame that is being read
	instance int           // messages read so far
}

// A finding is what makes two findings one.
type finding struct {
	message string
	number  int32
	name    string
	reason  string
}

// found is where a finding was made.
type found struct {
	seen   int
	frames []string
}

type methodRow struct{ MethodCoverage }

// A messageInfo is a message type with what was seen of it.
type messageInfo struct {
	name     string
	seen     int
	fields   map[int32]*fieldInfo
	required []*fieldInfo
	any      bool // it is google.protobuf.Any
}

type fieldInfo struct {
	fd       protoreflect.FieldDescriptor
	kind     protoreflect.Kind
	wire     wire.Type
	packable bool
	single   bool // neither list nor map
	isMap    bool
	message  protoreflect.MessageDescriptor
	below    *messageInfo // of message; nil until it is first met
	oneof    *oneofInfo
	seen     int
	last     int // the instance that it was last seen in
}

// A oneofInfo is a oneof with the member that was seen last.
type oneofInfo struct {
	name   protoreflect.Name
	last   int // the instance
	member *fieldInfo
}

// NewChecker returns a Checker against s.
func NewChecker(s *schema.Schema, o CheckOptions) *Checker {
	if o.Address == nil {
		o.Address = func(ex *decode.Exchange, f *decode.Frame, _ bool) string {
			return fmt.Sprintf("#%d/%s/%d", ex.ID, f.Dir, f.Seq)
		}
	}
	if o.MaxFrames <= 0 {
		o.MaxFrames = 20
	}
	if o.MaxFindings <= 0 {
		o.MaxFindings = 10_000
	}
	return &Checker{
		schema: s, o: o, infos: map[protoreflect.MessageDescriptor]*messageInfo{}, methods: map[[3]string]*methodRow{}, evidence: infer.NewEvidence(),
		unknown: map[finding]*found{}, contradicted: map[finding]*found{}, unknownMethods: map[[2]string]*found{},
		unknownTypes: map[string]*found{},
	}
}

// Add checks the messages of an exchange. One that is no RPC has none.
func (k *Checker) Add(ex *decode.Exchange) {
	if ex.Service == "" || ex.RPC == "" {
		return
	}
	for i := range ex.Frames {
		f := &ex.Frames[i]
		k.frame = func() string { return k.o.Address(ex, f, k.part) }
		if ex.IsControl(f) {
			k.addEnd(f.End)
			continue
		}
		k.addFrame(ex, f)
	}
	k.addStatus(ex)
}

func (k *Checker) addFrame(ex *decode.Exchange, f *decode.Frame) {
	md := k.schema.FrameType(ex.Call, f.Dir)
	id := [3]string{ex.Service, ex.RPC, f.Dir.String()}
	row := k.methods[id]
	if row == nil {
		row = &methodRow{MethodCoverage{Service: ex.Service, RPC: ex.RPC, Dir: f.Dir.String()}}
		if md != nil {
			row.Type = string(md.FullName())
		}
		k.methods[id] = row
	}
	row.Frames++
	row.Bytes += int64(len(f.Data))
	switch {
	case f.Partial || f.Err != nil:
		k.brokenFrames++
	case md == nil:
		recordFinding(k.unknownMethods, [2]string{ex.Service, ex.RPC}, k)
	case ex.Codec == "json":
		k.jsonFrames++
		explained, ok := k.checkJSON(md, f.Data)
		row.count(explained, ok)
	case ex.Codec == "proto":
		t := f.Tree
		if t == nil {
			t = wire.Parse(f.Data, wire.Options{})
		}
		explained, ok := k.message(t, 0, k.info(md))
		row.count(explained, ok)
	}
}

func (m *methodRow) count(explained int64, ok bool) {
	m.BytesExplained += explained
	if ok {
		m.Decoded++
	}
}

// recordFinding records a finding at the current frame, as far as there is room.
func recordFinding[K comparable](m map[K]*found, at K, k *Checker) {
	f := m[at]
	if f == nil {
		if len(m) >= k.o.MaxFindings {
			return
		}
		f = &found{}
		m[at] = f
	}
	f.seen++
	if len(f.frames) < k.o.MaxFrames {
		if a := k.frame(); len(f.frames) == 0 || f.frames[len(f.frames)-1] != a {
			f.frames = append(f.frames, a)
		}
	}
}

func (k *Checker) contradict(m *messageInfo, f *fieldInfo, reason string) {
	recordFinding(k.contradicted, finding{m.name, int32(f.fd.Number()), string(f.fd.Name()), reason}, k)
}

// info returns what is known of a type.
func (k *Checker) info(md protoreflect.MessageDescriptor) *messageInfo {
	m := k.infos[md]
	if m != nil {
		return m
	}
	m = &messageInfo{name: string(md.FullName()), fields: map[int32]*fieldInfo{}, any: md.FullName() == anyName}
	oneofs := make([]*oneofInfo, md.Oneofs().Len())
	for i := range oneofs {
		oneofs[i] = &oneofInfo{name: md.Oneofs().Get(i).Name()}
	}
	for i := range md.Fields().Len() {
		fd := md.Fields().Get(i)
		f := &fieldInfo{
			fd: fd, kind: fd.Kind(), wire: WireOf(fd.Kind()), packable: Packable(fd),
			single: !fd.IsList() && !fd.IsMap(), isMap: fd.IsMap(), message: fd.Message(),
		}
		if schema.InOneof(fd) {
			f.oneof = oneofs[fd.ContainingOneof().Index()]
		}
		m.fields[int32(fd.Number())] = f
		if fd.Cardinality() == protoreflect.Required {
			m.required = append(m.required, f)
		}
	}
	k.infos[md] = m
	return m
}

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

// Unknown returns the evidence of what the definitions lack: the unknown fields
// of each message type, under its full name.
func (k *Checker) Unknown() *infer.Evidence {
	e := infer.NewEvidence()
	e.Merge(k.evidence)
	return e
}
