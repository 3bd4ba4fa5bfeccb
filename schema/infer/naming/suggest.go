package naming

import (
	"fmt"

	"google.golang.org/protobuf/reflect/protoreflect"

	"unwire/schema/infer"
)

// suggestedMark is the comment on a declaration whose name is only a suggestion.
const suggestedMark = " // suggested name"

// Suggest gives unnamed fields names that are derived from their values (a field of URLs becomes "url"), and
// returns how many. Each is marked with a comment. If two fields of a message have the same suggestion, the
// second gets its number appended.
//
// Suggested names describe the values, not their purpose. Commands that compare or update definitions
// do not use them.
func Suggest(in *infer.Inferred) int {
	names := map[protoreflect.FullName]map[string]string{}
	for i := range in.Fields {
		f := &in.Fields[i]
		if f.Suggested == "" {
			continue
		}
		message := protoreflect.FullName(f.Message)
		of := names[message]
		if of == nil {
			of = map[string]string{}
			names[message] = of
		}
		of[fmt.Sprintf("field_%d", f.Number)] = f.Suggested
	}
	for message, of := range names {
		makeUnique(in, message, of)
	}
	return rename(in, names, suggestedMark)
}

// makeUnique changes suggested names, in of, that would occur twice in a message or that another field has. The
// keys of of are the present names.
func makeUnique(in *infer.Inferred, message protoreflect.FullName, of map[string]string) {
	taken := map[string]bool{}
	md := in.Schema.Message(string(message))
	if md == nil {
		return
	}
	for i := range md.Fields().Len() {
		taken[string(md.Fields().Get(i).Name())] = true
	}
	for i := range md.Fields().Len() {
		fd := md.Fields().Get(i)
		name := of[string(fd.Name())]
		if name == "" {
			continue
		}
		if taken[name] {
			name = fmt.Sprintf("%s_%d", name, fd.Number())
			of[string(fd.Name())] = name
		}
		taken[name] = true
	}
}
