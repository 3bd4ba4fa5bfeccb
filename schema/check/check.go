// Package check validates decoded traffic against definitions. It counts how many bytes the definitions explain,
// and reports unknown fields and contradictions with the frames that show them.
//
// A Checker receives frames, exchanges or a whole capture; its Report has the result so far.
//
// k := check.NewChecker(definitions, check.Options{})
// k.Add(exchange)
// report := k.Report() // report.Unknown, report.Contradicted, report.Methods
//
// Protobuf messages are checked field by field, each value against its declared type. The message inside a
// google.protobuf.Any and the details of an error are checked as the types that they name. JSON messages are
// checked in the same way by the names of their members; well-known types have their own JSON form, such as a
// string for a Timestamp.
//
// An Allowance lists known findings, so that a check in CI fails only for new ones. A Proposal is a field to add
// to the definitions, inferred from unknown fields. The commands schema check and schema update use this
// package; package update changes definitions, this one does not.
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

// Options configures a Checker. The zero value works.
type Options struct {
	// Profile has the secrets of a client that examples must not show. nil means none.
	Profile *profile.Profile
	// Address returns the name of a frame in the report. part is set if the frame is the call's own and not part
	// of its conversation. Default: "#1/down/2", for the exchange, direction and sequence number.
	Address func(ex *decode.Exchange, f *decode.Frame, part bool) string
	// MaxFrames is the maximum number of addresses for one finding. Default: 20.
	MaxFrames int
	// MaxFindings is the maximum number of findings of each kind, such as unknown fields. Default: 10,000.
	MaxFindings int
}

// A Checker validates messages against their declared types and collects the findings. It is not safe for
// concurrent use.
//
// Limits: those of Options. Its memory does not grow with the number of messages.
type Checker struct {
	// schema has the definitions that messages are checked against.
	schema *schema.Schema
	// o are the options, with defaults filled in.
	o Options
	// infos caches, for each message type, the data for checking it and the counts.
	infos map[protoreflect.MessageDescriptor]*messageInfo
	// methods has the counts by service, RPC and direction.
	methods map[[3]string]*methodRow
	// evidence describes the unknown fields. Each message type is a root.
	evidence *infer.Evidence
	// scratch and mapKeys are buffers that are reused for each message.
	scratch []byte
	// mapKeys is a reused buffer of checkMapKeys.
	mapKeys []mapKey

	// unknown are the fields that the definitions lack, with their occurrences.
	unknown map[findingKey]*finding
	// contradicted are the fields whose values contradict their definitions.
	contradicted map[findingKey]*finding
	// unknownMethods are the methods that the definitions lack, by service and RPC.
	unknownMethods map[[2]string]*finding
	// unknownTypes are the types that messages name and the definitions lack, by full name.
	unknownTypes map[string]*finding

	// jsonFrames and brokenFrames are counts of the report that are not kept for each method.
	jsonFrames, brokenFrames int
	// details counts error details, and detailsDecoded those of a known type that are well-formed.
	details, detailsDecoded int

	// part means that the frames belong to a call whose conversation was already checked.
	part bool

	// frame returns the address of the current frame. It is a function because few frames need their address.
	frame func() string
	// instance numbers the messages that were read, nested ones included. It marks which fields the current
	// message has had.
	instance int
}

// A findingKey identifies a finding: two occurrences with the same key are one finding.
// message is the full name of the message type; number and name are those of the field, or zero.
type findingKey struct {
	message string
	// number is the field number of the finding, or 0.
	number int32
	// name is the field name of the finding, or "".
	name string
	// reason describes how the value contradicts the definition.
	reason string
}

// A finding has the occurrences of a finding.
// seen counts the occurrences, and frames has the addresses of the first ones.
type finding struct {
	seen int
	// frames has the addresses of the first frames with the finding.
	frames []string
}

// A methodRow holds the counts for one direction of an RPC method.
type methodRow struct{ MethodCoverage }

// A messageInfo is a message type, prepared for fast checks, with its counts.
// name is the full name.
type messageInfo struct {
	// name is the full name of the message type.
	name string
	// seen is the number of messages of the type.
	seen int
	// fields are the declared fields by number, and required those that proto2 requires.
	fields map[int32]*fieldInfo
	// required are the required fields of a proto2 message.
	required []*fieldInfo
	// any means that the type is google.protobuf.Any.
	any bool
}

// A fieldInfo is a declared field, prepared for fast checks, with its counts.
type fieldInfo struct {
	// fd is the descriptor of the field.
	fd protoreflect.FieldDescriptor
	// kind is the declared type of the field.
	kind protoreflect.Kind
	// wire is the wire type of a single value. packable is set if values may also be packed.
	wire wire.Type
	// packable means that the field's values may be packed.
	packable bool
	// single is set if the field is neither a list nor a map.
	single bool
	// isMap means that the field is a map.
	isMap bool
	// message is the field's message type; nil for other fields.
	message protoreflect.MessageDescriptor
	// child describes message. It is nil until the first such message is checked, because types can be
	// recursive.
	child *messageInfo
	// oneof is the oneof that contains the field, or nil.
	oneof *oneofInfo
	// seen is the number of occurrences of the field.
	seen int
	// last is the instance of the message that had the field last.
	last int
}

// A oneofInfo is a oneof and the member that was set last.
type oneofInfo struct {
	// name is the name of the oneof.
	name protoreflect.Name
	// last is the instance of the message that had a member last, and member that member.
	last int
	// member is the member that was set last in the current message.
	member *fieldInfo
}

// NewChecker returns a Checker for the definitions s.
func NewChecker(s *schema.Schema, o Options) *Checker {
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
		unknown: map[findingKey]*finding{}, contradicted: map[findingKey]*finding{}, unknownMethods: map[[2]string]*finding{},
		unknownTypes: map[string]*finding{},
	}
}

// Add checks the messages of an exchange. An exchange that is not an RPC is ignored.
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

// addFrame checks a frame if it is a message, and counts it for its method.
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

	// These totals include frames that cannot be checked.
	row.Frames++
	row.Bytes += int64(len(f.Data))

	// Frames of unknown content or type are counted only.
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
		explained, ok := k.checkMessage(t, 0, k.info(md))
		row.count(explained, ok)
	}
}

// count adds a checked frame with its explained bytes. ok reports whether it was well-formed.
func (m *methodRow) count(explained int64, ok bool) {
	m.BytesExplained += explained
	if ok {
		m.Decoded++
	}
}

// recordFinding records an occurrence of a finding at the current frame, within the limits of Options.
func recordFinding[K comparable](m map[K]*finding, at K, k *Checker) {
	f := m[at]
	if f == nil {
		if len(m) >= k.o.MaxFindings {
			return
		}
		f = &finding{}
		m[at] = f
	}
	f.seen++
	if len(f.frames) < k.o.MaxFrames {
		// Several occurrences in one frame need its address once.
		if a := k.frame(); len(f.frames) == 0 || f.frames[len(f.frames)-1] != a {
			f.frames = append(f.frames, a)
		}
	}
}

// contradict records that a value of field f of the message type m contradicts its definition.
func (k *Checker) contradict(m *messageInfo, f *fieldInfo, reason string) {
	recordFinding(k.contradicted, findingKey{m.name, int32(f.fd.Number()), string(f.fd.Name()), reason}, k)
}

// info returns the prepared form of a message type. It is created on first use.
func (k *Checker) info(md protoreflect.MessageDescriptor) *messageInfo {
	m := k.infos[md]
	if m != nil {
		return m
	}
	m = &messageInfo{name: string(md.FullName()), fields: map[int32]*fieldInfo{}, any: md.FullName() == anyName}

	// The members of a oneof share one oneofInfo.
	oneofs := make([]*oneofInfo, md.Oneofs().Len())
	for i := range oneofs {
		oneofs[i] = &oneofInfo{name: md.Oneofs().Get(i).Name()}
	}

	for i := range md.Fields().Len() {
		fd := md.Fields().Get(i)
		f := &fieldInfo{
			fd: fd, kind: fd.Kind(), wire: WireTypeOf(fd.Kind()), packable: Packable(fd),
			single: !fd.IsList() && !fd.IsMap(), isMap: fd.IsMap(), message: fd.Message(),
		}
		// The compiler's synthetic oneof for an optional field has one member only, so it needs no check.
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

// UnknownEvidence returns evidence about the unknown fields of each message type, from which package infer
// derives definitions. The root types are the full names of the message types.
func (k *Checker) UnknownEvidence() *infer.Evidence {
	e := infer.NewEvidence()
	e.Merge(k.evidence)
	return e
}
