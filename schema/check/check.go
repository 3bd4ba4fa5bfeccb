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
	// Profile has the secrets of a recorded client, which must not appear in examples of values. nil means
	// none.
	Profile *profile.Profile
	// Address returns the address of a frame for the report. part is set if the frame is reported as part of
	// its own call and not of the conversation that includes the call. Default: "#1/down/2", for exchange,
	// direction and sequence number.
	Address func(ex *decode.Exchange, f *decode.Frame, part bool) string
	// MaxFrames is the maximum number of addresses for one finding. Default: 20.
	MaxFrames int
	// MaxFindings is the maximum number of findings of each kind, such as unknown fields. Default: 10,000.
	MaxFindings int
}

// A Checker compares messages with the definitions of their types, and collects fields and methods that the
// definitions lack and values that contradict them. It is not safe for concurrent use.
//
// Limits: those of Options. Its memory does not grow with the number of messages.
type Checker struct {
	// schema has the definitions that messages are checked against.
	schema *schema.Schema
	// o are the options, with defaults filled in.
	o Options
	// infos has the prepared form and the counts of each message type that occurred.
	infos map[protoreflect.MessageDescriptor]*messageInfo
	// methods has the counts of messages by service, RPC and direction.
	methods map[[3]string]*methodRow
	// evidence has the values of unknown fields, from which their types are inferred. Each message type is a
	// root.
	evidence *infer.Evidence
	// scratch is a buffer of checkFields that is reused for each message.
	scratch []byte
	// mapKeys is a buffer of checkMapKeys that is reused for each message.
	mapKeys []mapKey

	// unknown are the fields that the definitions lack, with their occurrences.
	unknown map[findingKey]*finding
	// contradicted are the values that contradict the definitions, with their occurrences.
	contradicted map[findingKey]*finding
	// unknownMethods are the called methods that the definitions lack, by service and RPC.
	unknownMethods map[[2]string]*finding
	// unknownTypes are the types that the definitions lack although an Any or an error detail names them, by
	// full name.
	unknownTypes map[string]*finding

	// jsonFrames is the number of messages in JSON, and brokenFrames that of truncated or damaged ones.
	jsonFrames, brokenFrames int
	// details is the number of checked error details. detailsDecoded is the number of those that are of a known
	// type and well-formed.
	details, detailsDecoded int

	// part is set while frames are checked that belong to a call whose conversation was already checked.
	part bool

	// frame returns the address of the frame being checked. It is a function because few frames need their
	// address.
	frame func() string
	// instance is the number of the message being checked, counting nested ones. It is stored in
	// fieldInfo.last, to notice a field that occurs twice in one message.
	instance int
}

// A findingKey identifies a finding (an unknown field or a contradiction). Occurrences with the same key are
// one finding.
type findingKey struct {
	// message is the full name of the message type.
	message string
	// number is the field number, or 0 if it is unknown.
	number int32
	// name is the field name, or "" if it is unknown.
	name string
	// reason describes how the value contradicts the definition. For an unknown field in JSON, it is the kind
	// of its values.
	reason string
}

// A finding counts the occurrences of an unknown field, contradiction, method or type.
type finding struct {
	// seen is the number of occurrences of the finding.
	seen int
	// frames has the addresses of the first frames in which it occurred.
	frames []string
}

// A methodRow has the counts for one direction of an RPC method.
type methodRow struct {
	// MethodCoverage has the counts as reported; the embedding type adds the method that counts a message.
	MethodCoverage
}

// A messageInfo is a message type in a form that allows fast checks, with counts of its occurrences.
type messageInfo struct {
	// name is the full name of the message type.
	name string
	// seen is the number of messages of the type so far.
	seen int
	// fields are the declared fields by number.
	fields map[int32]*fieldInfo
	// required are the required fields, which only proto2 has.
	required []*fieldInfo
	// any is set if the type is google.protobuf.Any.
	any bool
}

// A fieldInfo is a declared field in a form that allows fast checks, with counts of its occurrences.
type fieldInfo struct {
	// fd is the descriptor of the field.
	fd protoreflect.FieldDescriptor
	// kind is the declared type of the field.
	kind protoreflect.Kind
	// wire is the wire type of a single value.
	wire wire.Type
	// packable is set if the field's values may be packed.
	packable bool
	// single is set if the field is neither repeated nor a map.
	single bool
	// isMap is set if the field is a map.
	isMap bool
	// message is the field's message type; nil for other fields.
	message protoreflect.MessageDescriptor
	// child is the prepared form of message. It is nil until the first such message is checked, because types
	// can be recursive.
	child *messageInfo
	// oneof is the oneof that contains the field, or nil.
	oneof *oneofInfo
	// seen is the number of occurrences of the field so far.
	seen int
	// last is the number (Checker.instance) of the last message in which the field occurred.
	last int
}

// A oneofInfo is a oneof with the member that occurred last.
type oneofInfo struct {
	// name is the name of the oneof.
	name protoreflect.Name
	// last is the number (Checker.instance) of the last message in which a member of the oneof occurred.
	last int
	// member is the member that occurred last in that message.
	member *fieldInfo
}

// NewChecker returns a Checker that compares messages with the definitions s.
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

// Add checks the messages of an exchange and the details of its error. An exchange that is not an RPC is
// ignored.
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

// addFrame checks the message in a frame of an exchange, and counts it for the exchange's method.
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

// count adds a checked message. explained is the number of its bytes that the definitions explain, and ok
// reports whether it was well-formed.
func (m *methodRow) count(explained int64, ok bool) {
	m.BytesExplained += explained
	if ok {
		m.Decoded++
	}
}

// recordFinding records in m that the finding with the key at occurred in the current frame. Beyond
// Options.MaxFindings, new findings are ignored.
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

// info returns a message type in a form that allows fast checks. It is created on first use.
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

// UnknownEvidence returns the values of the unknown fields of all message types, from which package infer
// derives definitions. Its root types are the full names of the message types.
func (k *Checker) UnknownEvidence() *infer.Evidence {
	e := infer.NewEvidence()
	e.Merge(k.evidence)
	return e
}
