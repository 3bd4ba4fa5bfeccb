package check

import (
	"cmp"
	"slices"

	"unwire/decode/kind"
	"unwire/decode/wire"
)

// A Report tells how far definitions explain traffic. ReadAllowance reads it as JSON.
type Report struct {
	// messages, ends of streams aside
	Frames int `json:"frames"`

	// of a known type, and well-formed
	Decoded int `json:"decoded"`

	// of Frames, in JSON: checked by their members' names
	JSONFrames int `json:"json_frames"`

	// cut off, or not decompressed: of no known content
	BrokenFrames int `json:"broken_frames"`

	// of all frames, decompressed
	Bytes          int64 `json:"bytes"`
	BytesExplained int64 `json:"bytes_explained"`
	FieldsSeen     int   `json:"fields_seen"`

	// of all the schema's messages
	FieldsNeverSeen int             `json:"fields_never_seen"`
	Unknown         []UnknownField  `json:"unknown"`
	Contradicted    []Contradiction `json:"contradicted"`
	UnknownMethods  []UnknownMethod `json:"unknown_methods"`

	// that an Any or an error's detail names; no finding
	UnknownTypes []unknownType `json:"unknown_types"`
	Details      int           `json:"error_details"`

	// of a known type, and well-formed
	DetailsDecoded int              `json:"error_details_decoded"`
	Methods        []MethodCoverage `json:"methods"`

	// those that were seen
	Messages []TypeCoverage `json:"messages"`
}

// An UnknownField is a field that the schema has not.
type UnknownField struct {
	Message string `json:"message"`

	// 0 where it was seen in JSON only
	Number int32 `json:"number"`

	// the member's, of a field seen in JSON
	Name string `json:"name,omitempty"`

	// most likely, of all that was seen of it
	Kind wire.Kind `json:"kind"`
	P    float64   `json:"p"`

	// messages with it
	Seen int `json:"seen"`

	// addresses, the first of them
	Frames  []string `json:"frames"`
	Allowed bool     `json:"allowed,omitempty"`
}

// A Contradiction is a declared field whose bytes cannot be what is declared.
type Contradiction struct {
	Message string   `json:"message"`
	Number  int32    `json:"number"` // 0 for the message as a whole
	Name    string   `json:"name"`
	Reason  string   `json:"reason"`
	Seen    int      `json:"seen"`
	Frames  []string `json:"frames"`
	Allowed bool     `json:"allowed,omitempty"`
}

// An UnknownMethod is a method that was called and that the schema has not.
type UnknownMethod struct {
	Service string   `json:"service"`
	RPC     string   `json:"rpc"`
	Count   int      `json:"count"`  // messages
	Frames  []string `json:"frames"` // addresses, the first of them
	Allowed bool     `json:"allowed,omitempty"`
}

// An unknownType is a message type that a message names and that the schema has not.
type unknownType struct {
	Message string   `json:"message"`
	Count   int      `json:"count"`
	Frames  []string `json:"frames"` // addresses, the first of them
}

// MethodCoverage is what was seen of the messages of a method, one direction.
type MethodCoverage struct {
	Service        string `json:"service"`
	RPC            string `json:"rpc"`
	Dir            string `json:"dir"`
	Type           string `json:"type"` // "" where the schema has not the method
	Frames         int    `json:"frames"`
	Decoded        int    `json:"decoded"`
	Bytes          int64  `json:"bytes"`
	BytesExplained int64  `json:"bytes_explained"`
}

// TypeCoverage is what was seen of a message type.
type TypeCoverage struct {
	Message    string  `json:"message"`
	Seen       int     `json:"seen"` // messages
	Fields     int     `json:"fields"`
	FieldsSeen int     `json:"fields_seen"`
	NeverSeen  []int32 `json:"never_seen"` // numbers
}

// Clean reports whether nothing was unknown or contradicted that is not allowed.
func (r *Report) Clean() bool {
	return r.AllowedFindings() == len(r.Unknown)+len(r.Contradicted)+len(r.UnknownMethods)
}

// Compared reports whether at least one message that is not empty was compared with the
// definitions.
func (r *Report) Compared() bool {
	return r.DetailsDecoded > 0 || len(r.Unknown)+len(r.Contradicted) > 0 ||
		slices.ContainsFunc(r.Methods, func(m MethodCoverage) bool { return m.Type != "" && m.Decoded > 0 && m.Bytes > 0 })
}

// AllowedFindings counts the findings that Allow has marked.
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

// Report returns what the frames added so far come to.
func (k *Checker) Report() *Report {
	r := &Report{
		Unknown: []UnknownField{}, Contradicted: []Contradiction{}, UnknownMethods: []UnknownMethod{}, UnknownTypes: []unknownType{},
		Methods: []MethodCoverage{}, Messages: []TypeCoverage{},
	}
	r.JSONFrames, r.BrokenFrames = k.jsonFrames, k.brokenFrames
	r.Details, r.DetailsDecoded = k.details, k.detailsDecoded
	k.reportUnknown(r)
	for at, f := range k.contradicted {
		r.Contradicted = append(r.Contradicted, Contradiction{at.message, at.number, at.name, at.reason, f.seen, f.frames, false})
	}
	slices.SortFunc(r.Contradicted, func(a, b Contradiction) int {
		return cmp.Or(cmp.Compare(a.Message, b.Message), cmp.Compare(a.Number, b.Number), cmp.Compare(a.Reason, b.Reason))
	})
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

// reportUnknown judges the unknown fields by all that was seen of each.
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
		// there was no room for its evidence; bytes are never refuted
		if u.Kind == "" {
			u.Kind, u.P = wire.KindBytes, 0
		}
		r.Unknown = append(r.Unknown, u)
	}
	slices.SortFunc(r.Unknown, func(a, b UnknownField) int {
		return cmp.Or(cmp.Compare(a.Message, b.Message), cmp.Compare(a.Number, b.Number), cmp.Compare(a.Name, b.Name))
	})
}

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
