package ui

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"

	"unwire/cmd/internal/contract"
	"unwire/cmd/internal/query"
	"unwire/schema"
	"unwire/schema/check"
)

// maxReferences bounds the references to a type that are shown.
const maxReferences = 200

// coverageEndpoints returns the API endpoints about definitions and how far they explain a capture.
func coverageEndpoints() []endpoint {
	return []endpoint{
		{path: "schema", answer: answerSchema},
		{path: "schema/type", answer: answerType},
		{path: "schema/inferred", answer: answerInferred},
	}
}

// coverage returns the coverage and the definitions of the capture that the request names; see file.coverageOf.
func (q *request) coverage(ctx context.Context) (*coverage, *schema.Schema, error) {
	f, err := q.file()
	if err != nil {
		return nil, nil, err
	}
	return f.coverageOf(ctx)
}

// coverageOf returns how far the definitions explain the capture, the fields that can be added to them,
// and the definitions themselves. It computes them again only if the capture has grown. If there are no
// definitions, it uses empty ones.
func (f *file) coverageOf(ctx context.Context) (*coverage, *schema.Schema, error) {
	c, defs, err := f.openWithDefinitions(ctx)
	if err != nil {
		return nil, nil, err
	}
	last, err := c.LastNumber(ctx)
	if err != nil {
		return nil, nil, err
	}
	f.coverageMu.Lock()
	defer f.coverageMu.Unlock()
	if f.coverage != nil && f.coverage.last == last {
		return f.coverage, defs, nil
	}
	if defs == nil {
		defs = schema.FromFiles()
	}
	cover := query.NewCoverage(defs, c.Profile())
	if err := cover.Add(ctx, c, query.Address{File: f.path, Frame: -1}, nil); err != nil {
		return nil, nil, err
	}
	proposals, err := cover.Proposals()
	if err != nil {
		return nil, nil, err
	}
	f.coverage = &coverage{last, cover.Report(), proposals}
	return f.coverage, defs, nil
}

// A typeEntry is a message type in the list of types that the page shows.
type typeEntry struct {
	// Name is the full name of the type.
	Name string `json:"name"`

	// Seen is the number of messages of the type in the capture.
	Seen int64 `json:"seen"`

	// Fields is the number of fields that the definition of the type declares.
	Fields int `json:"fields"`

	// Covered is the number of declared fields that were seen at least once.
	Covered int `json:"covered"`

	// Unknown is the number of fields that were seen but are not declared.
	Unknown int `json:"unknown,omitempty"`

	// Contrary is the number of fields whose values contradict their declaration.
	Contrary int `json:"contradicted,omitempty"`

	// Undefined means that the definitions do not contain the type.
	Undefined bool `json:"undefined,omitempty"`
}

// answerSchema implements the endpoint schema. It returns the report of 'unwire schema check', the
// proposed fields, and the list of types, the most frequent first. The parameter like selects the types
// whose names contain it.
func answerSchema(ctx context.Context, q *request) (any, error) {
	cover, defs, err := q.coverage(ctx)
	if err != nil {
		return nil, err
	}
	report, err := line(&contract.SchemaCheck{Report: cover.report})
	if err != nil {
		return nil, err
	}
	entries := map[string]*typeEntry{}
	entry := func(name string) *typeEntry {
		if entries[name] == nil {
			entries[name] = &typeEntry{Name: name, Undefined: true}
		}
		return entries[name]
	}
	if defs != nil {
		for md := range defs.Messages() {
			e := entry(string(md.FullName()))
			e.Fields, e.Undefined = md.Fields().Len(), false
		}
	}
	for _, t := range cover.report.Messages {
		e := entry(t.Message)
		e.Seen, e.Covered = int64(t.Seen), t.FieldsSeen
	}
	for _, u := range cover.report.Unknown {
		entry(u.Message).Unknown++
	}
	for _, c := range cover.report.Contradicted {
		entry(c.Message).Contrary++
	}
	types := make([]*typeEntry, 0, len(entries))
	for _, e := range entries {
		types = append(types, e)
	}
	slices.SortFunc(types, func(a, b *typeEntry) int {
		return cmp.Or(cmp.Compare(b.Seen, a.Seen), cmp.Compare(a.Name, b.Name))
	})
	// The whole set is thousands of types: those that were never seen are found by the filter of the page.
	like := strings.ToLower(q.query.Get("like"))
	types = slices.DeleteFunc(types, func(e *typeEntry) bool {
		return like != "" && !strings.Contains(strings.ToLower(e.Name), like)
	})
	total := len(types)
	proposals := make([]*contract.FieldProposal, len(cover.proposals))
	for i := range proposals {
		proposals[i] = &contract.FieldProposal{Proposal: cover.proposals[i]}
	}
	proposed, err := lines(proposals)
	return map[string]any{
		"v": 1, "check": report, "types": types[:min(len(types), maxListed)], "total": total, "proposals": proposed,
	}, err
}

// A fieldEntry is a field of a message type, with whether the capture agrees with its declaration.
type fieldEntry struct {
	// Number is the field number.
	Number int `json:"number"`

	// Name is the name of the field, declared or inferred.
	Name string `json:"name"`

	// Type is the type of the field, such as int32 or message.
	Type string `json:"type"`

	// Label is optional, required or repeated; "" for a field that is not declared.
	Label string `json:"label"`

	// Ref is the full name of the message or enum type of the field; "" for other types.
	Ref string `json:"ref,omitempty"`

	// State is "seen", "never" for a field that was never seen, "unknown" for one that is not declared, or
	// "contradicted".
	State string `json:"state"`

	// Why explains the states unknown and contradicted.
	Why string `json:"why,omitempty"`

	// Frames are addresses of frames that show why the state is unknown or contradicted.
	Frames []string `json:"frames,omitempty"`
}

// answerType implements the endpoint schema/type. It returns the definition of the message type that the
// parameter name names, the coverage of its fields, and the fields and methods that refer to it.
func answerType(ctx context.Context, q *request) (any, error) {
	cover, defs, err := q.coverage(ctx)
	if err != nil {
		return nil, err
	}
	name := q.query.Get("name")
	var md protoreflect.MessageDescriptor
	if defs != nil {
		md = defs.Message(name)
	}
	fields := []*fieldEntry{}
	answer := map[string]any{"v": 1, "name": name, "text": "", "references": []string{}}
	if md != nil {
		fields = declaredFields(md, cover.report)
		if answer["text"], err = defs.Text(md); err != nil {
			return nil, err
		}
		answer["references"] = referencesTo(defs, md)
	}
	for _, u := range cover.report.Unknown {
		if u.Message == name {
			fields = append(fields, &fieldEntry{Number: int(u.Number), Name: u.Name, State: "unknown", Type: string(u.Kind), Why: "the definitions lack this field", Frames: u.Frames})
		}
	}
	if len(fields) == 0 && md == nil {
		return nil, notFound("the definitions contain no message %s", name)
	}
	answer["fields"] = fields
	return answer, nil
}

// declaredFields returns the fields that md declares, with their coverage in report.
func declaredFields(md protoreflect.MessageDescriptor, report *check.Report) []*fieldEntry {
	fields := []*fieldEntry{}
	at := slices.IndexFunc(report.Messages, func(t check.TypeCoverage) bool { return t.Message == string(md.FullName()) })
	for i := range md.Fields().Len() {
		fd := md.Fields().Get(i)
		e := &fieldEntry{Number: int(fd.Number()), Name: string(fd.Name()), Type: fd.Kind().String(), Label: fd.Cardinality().String(), State: "never"}
		switch {
		case fd.Message() != nil:
			e.Ref = string(fd.Message().FullName())
		case fd.Enum() != nil:
			e.Ref = string(fd.Enum().FullName())
		}
		if at >= 0 && !slices.Contains(report.Messages[at].NeverSeen, int32(fd.Number())) {
			e.State = "seen"
		}
		for _, c := range report.Contradicted {
			if c.Message == string(md.FullName()) && int(c.Number) == e.Number {
				e.State, e.Why, e.Frames = "contradicted", c.Reason, c.Frames
			}
		}
		fields = append(fields, e)
	}
	return fields
}

// referencesTo returns the full names of the fields and methods whose type is md, in alphabetical order
// and at most maxReferences.
func referencesTo(defs *schema.Schema, md protoreflect.MessageDescriptor) []string {
	list := []string{}
	for other := range defs.Messages() {
		for i := range other.Fields().Len() {
			fd := other.Fields().Get(i)
			if m := fd.Message(); m != nil && m.FullName() == md.FullName() {
				list = append(list, string(fd.FullName()))
			}
		}
	}
	for s := range defs.Services() {
		for i := range s.Methods().Len() {
			m := s.Methods().Get(i)
			if m.Input().FullName() == md.FullName() || m.Output().FullName() == md.FullName() {
				list = append(list, string(m.FullName()))
			}
		}
	}
	slices.Sort(list)
	return list[:min(len(list), maxReferences)]
}

// answerInferred implements the endpoint schema/inferred. It returns the definitions that 'unwire schema
// infer' infers from the capture.
func answerInferred(ctx context.Context, q *request) (any, error) {
	f, err := q.file()
	if err != nil {
		return nil, err
	}
	files, said, err := q.commandLines(ctx, []int{0}, "schema", "infer", "--json", "--", f.path)
	if err != nil {
		return nil, err
	}
	return map[string]any{"v": 1, "files": files, "said": said}, nil
}
