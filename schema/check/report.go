package check

import (
	"cmp"
	"slices"

	"unwire/decode/kind"
	"unwire/decode/wire"
)

// A Report is the result of comparing messages with definitions. Its JSON is part of the contract with users:
// it changes only compatibly. ReadAllowance reads it, too.
type Report struct {
	// Frames is the number of messages. The ends of streams are not messages.
	Frames int `json:"frames"`

	// Decoded is the number of messages of a known type that are well-formed.
	Decoded int `json:"decoded"`

	// JSONFrames is the number of messages in JSON, whose fields are found by name.
	JSONFrames int `json:"json_frames"`

	// BrokenFrames is the number of messages that are truncated or cannot be decompressed.
	BrokenFrames int `json:"broken_frames"`

	// Bytes is the total decompressed size of all messages, in bytes.
	Bytes int64 `json:"bytes"`
	// BytesExplained is the number of bytes that belong to declared fields with plausible values.
	BytesExplained int64 `json:"bytes_explained"`
	// FieldsSeen is the number of declared fields that occurred.
	FieldsSeen int `json:"fields_seen"`

	// FieldsNeverSeen is the number of declared fields, of all types, that did not occur.
	FieldsNeverSeen int `json:"fields_never_seen"`
	// Unknown lists the findings about fields that occurred and that the definitions lack.
	Unknown []UnknownField `json:"unknown"`
	// Contradicted lists the fields whose values contradict their definitions.
	Contradicted []Contradiction `json:"contradicted"`
	// UnknownMethods lists the called methods that the definitions lack.
	UnknownMethods []UnknownMethod `json:"unknown_methods"`

	// UnknownTypes lists the types that the definitions lack although an Any or an error detail names them. They
	// are not findings.
	UnknownTypes []unknownType `json:"unknown_types"`
	// Details is the number of error details that were checked.
	Details int `json:"error_details"`

	// DetailsDecoded is the number of error details of a known type that are well-formed.
	DetailsDecoded int `json:"error_details_decoded"`
	// Methods has the counts for each method and direction.
	Methods []MethodCoverage `json:"methods"`

	// Messages has the counts for each message type that occurred.
	Messages []TypeCoverage `json:"messages"`
}

// An UnknownField is a finding: a field that occurred and that the definitions lack.
type UnknownField struct {
	// Message is the full name of the message type in which the field occurred.
	Message string `json:"message"`

	// Number is the field number, or 0 if the field occurred in JSON only.
	Number int32 `json:"number"`

	// Name is the name of the JSON member; "" if the field occurred in protobuf.
	Name string `json:"name,omitempty"`

	// Kind is the most probable kind of the field's values.
	Kind wire.Kind `json:"kind"`
	// P is the probability of Kind, from 0 to 1.
	P float64 `json:"p"`

	// Seen is the number of messages that contain the field.
	Seen int `json:"seen"`

	// Frames has the addresses of the first frames with the field.
	Frames []string `json:"frames"`
	// Allowed is set if an Allowance lists the finding.
	Allowed bool `json:"allowed,omitempty"`
}

// A Contradiction is a finding: values of a field that contradict its definition.
type Contradiction struct {
	// Message is the full name of the message type that has the field.
	Message string `json:"message"`
	// Number is the field number, or 0 if the message as a whole is malformed.
	Number int32 `json:"number"`
	// Name is the name of the field; "" if the message as a whole is malformed.
	Name string `json:"name"`
	// Reason describes how the values contradict the definition.
	Reason string `json:"reason"`
	// Seen is the number of contradicting values.
	Seen int `json:"seen"`
	// Frames are the addresses of the first frames with a contradicting value.
	Frames []string `json:"frames"`
	// Allowed is set if an Allowance lists the finding.
	Allowed bool `json:"allowed,omitempty"`
}

// An UnknownMethod is a finding: an RPC method that was called and that the definitions lack.
type UnknownMethod struct {
	// Service is the full name of the called service.
	Service string `json:"service"`
	// RPC is the name of the method that the definitions lack.
	RPC string `json:"rpc"`
	// Count is the number of messages sent and received in calls of the method.
	Count int `json:"count"`
	// Frames are the addresses of the first of these messages.
	Frames []string `json:"frames"`
	// Allowed is set if an Allowance lists the finding.
	Allowed bool `json:"allowed,omitempty"`
}

// An unknownType is a message type that an Any or an error detail names and that the definitions lack.
type unknownType struct {
	// Message is the full name of the undefined type.
	Message string `json:"message"`
	// Count is the number of occurrences of the type.
	Count int `json:"count"`
	// Frames are the addresses of the first frames with a message of this type.
	Frames []string `json:"frames"`
}

// MethodCoverage counts the messages of one RPC method in one direction.
type MethodCoverage struct {
	// Service is the full name of the service.
	Service string `json:"service"`
	// RPC is the name of the method.
	RPC string `json:"rpc"`
	// Dir is the direction of the messages, "up" or "down".
	Dir string `json:"dir"`
	// Type is the full name of the declared message type; "" if the definitions lack the method.
	Type string `json:"type"`
	// Frames is the number of messages.
	Frames int `json:"frames"`
	// Decoded is the number of messages that are well-formed and of a known type.
	Decoded int `json:"decoded"`
	// Bytes is the total decompressed size of the messages, in bytes.
	Bytes int64 `json:"bytes"`
	// BytesExplained is the number of bytes that belong to declared fields with plausible values.
	BytesExplained int64 `json:"bytes_explained"`
}

// TypeCoverage counts the messages of one type, and the fields that occurred in them.
type TypeCoverage struct {
	// Message is the full name of the message type.
	Message string `json:"message"`
	// Seen is the number of messages of the type, including nested ones.
	Seen int `json:"seen"`
	// Fields is the number of declared fields.
	Fields int `json:"fields"`
	// FieldsSeen is the number of declared fields that occurred at least once.
	FieldsSeen int `json:"fields_seen"`
	// NeverSeen are the numbers of declared fields that never occurred.
	NeverSeen []int32 `json:"never_seen"`
}

// Clean reports whether the check has no findings, apart from those that an Allowance lists.
func (r *Report) Clean() bool {
	return r.AllowedFindings() == len(r.Unknown)+len(r.Contradicted)+len(r.UnknownMethods)
}

// Compared reports whether at least one non-empty message of a known type was checked. Otherwise a report
// without findings means nothing.
func (r *Report) Compared() bool {
	return r.DetailsDecoded > 0 || len(r.Unknown)+len(r.Contradicted) > 0 ||
		slices.ContainsFunc(r.Methods, func(m MethodCoverage) bool { return m.Type != "" && m.Decoded > 0 && m.Bytes > 0 })
}

// AllowedFindings returns the number of findings that Allow marked.
func (r *Report) AllowedFindings() (n int) {
	count := func(allowed bool) {
		if allowed {
			n++
		}
	}
	for _, u := range r.Unknown {
		count(u.Allowed)
	}
	for _, c := range r.Contradicted {
		count(c.Allowed)
	}
	for _, m := range r.UnknownMethods {
		count(m.Allowed)
	}
	return n
}

// Report returns the findings and counts for all messages added so far.
func (k *Checker) Report() *Report {
	// Empty lists, so that JSON has [] and not null.
	r := &Report{
		Unknown: []UnknownField{}, Contradicted: []Contradiction{}, UnknownMethods: []UnknownMethod{}, UnknownTypes: []unknownType{},
		Methods: []MethodCoverage{}, Messages: []TypeCoverage{},
	}

	r.JSONFrames, r.BrokenFrames = k.jsonFrames, k.brokenFrames
	r.Details, r.DetailsDecoded = k.details, k.detailsDecoded
	k.reportUnknown(r)

	// Maps have no order, so every list is sorted.
	for at, f := range k.contradicted {
		r.Contradicted = append(r.Contradicted, Contradiction{at.message, at.number, at.name, at.reason, f.seen, f.frames, false})
	}
	slices.SortFunc(r.Contradicted, func(a, b Contradiction) int {
		return cmp.Or(cmp.Compare(a.Message, b.Message), cmp.Compare(a.Number, b.Number), cmp.Compare(a.Reason, b.Reason))
	})

	// The totals are the sums of the rows.
	for _, m := range k.methods {
		r.Methods = append(r.Methods, m.MethodCoverage)
		r.Frames += m.Frames
		r.Decoded += m.Decoded
		r.Bytes += m.Bytes
		r.BytesExplained += m.BytesExplained
	}
	slices.SortFunc(r.Methods, func(a, b MethodCoverage) int {
		return cmp.Or(cmp.Compare(a.Service, b.Service), cmp.Compare(a.RPC, b.RPC), cmp.Compare(b.Dir, a.Dir))
	})

	for name, f := range k.unknownMethods {
		r.UnknownMethods = append(r.UnknownMethods, UnknownMethod{name[0], name[1], f.seen, f.frames, false})
	}
	slices.SortFunc(r.UnknownMethods, func(a, b UnknownMethod) int {
		return cmp.Or(cmp.Compare(a.Service, b.Service), cmp.Compare(a.RPC, b.RPC))
	})

	for name, f := range k.unknownTypes {
		r.UnknownTypes = append(r.UnknownTypes, unknownType{name, f.seen, f.frames})
	}
	slices.SortFunc(r.UnknownTypes, func(a, b unknownType) int { return cmp.Compare(a.Message, b.Message) })
	k.reportCoverage(r)
	return r
}

// reportUnknown adds the unknown fields to r, with their kinds inferred from all their values.
func (k *Checker) reportUnknown(r *Report) {
	costs := kind.Costs{}
	for at, f := range k.unknown {
		u := UnknownField{Message: at.message, Number: at.number, Name: at.name, Kind: wire.Kind(at.reason), P: 1, Seen: f.seen, Frames: f.frames}
		if m := k.evidence.Root(at.message); m != nil && at.number > 0 {
			if ef := m.Field(at.number); ef != nil {
				v := kind.JudgeField(ef, costs.Payloads(ef))
				u.Kind, u.P = v.Kind, v.P
			}
		}
		// The evidence has reached its limits. Bytes are a reading that nothing refutes.
		if u.Kind == "" {
			u.Kind, u.P = wire.KindBytes, 0
		}
		r.Unknown = append(r.Unknown, u)
	}
	slices.SortFunc(r.Unknown, func(a, b UnknownField) int {
		return cmp.Or(cmp.Compare(a.Message, b.Message), cmp.Compare(a.Number, b.Number), cmp.Compare(a.Name, b.Name))
	})
}

// reportCoverage adds to r how many of the declared types and fields occurred.
func (k *Checker) reportCoverage(r *Report) {
	for md := range k.schema.Messages() {
		info := k.infos[md]
		fields := md.Fields()
		row := TypeCoverage{Message: string(md.FullName()), Fields: fields.Len(), NeverSeen: []int32{}}
		for i := range fields.Len() {
			if n := fields.Get(i).Number(); info != nil && info.fields[int32(n)].seen > 0 {
				row.FieldsSeen++
			} else {
				row.NeverSeen = append(row.NeverSeen, int32(n))
			}
		}
		r.FieldsSeen += row.FieldsSeen
		r.FieldsNeverSeen += len(row.NeverSeen)
		slices.Sort(row.NeverSeen)
		if info != nil && info.seen > 0 {
			row.Seen = info.seen
			r.Messages = append(r.Messages, row)
		}
	}
}
