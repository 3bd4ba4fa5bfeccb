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
	codec := ex.CodecOf(f)
	switch {
	case f.Partial || f.Err != nil:
		k.brokenFrames++
	case md == nil:
		recordFinding(k.unknownMethods, [2]string{ex.Service, ex.RPC}, k)
	case codec == "json":
		k.jsonFrames++
		explained, ok := k.checkJSON(md, f.Data)
		row.count(explained, ok)
	case codec == "proto":
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

// Unknown returns the evidence of what the definitions lack: the unknown fields
// of each message type, under its full name.
func (k *Checker) Unknown() *infer.Evidence {
	e := infer.NewEvidence()
	e.Merge(k.evidence)
	return e
}
