package contract

import (
	"maps"
	"slices"

	"google.golang.org/protobuf/reflect/protoreflect"

	"unwire/schema/infer"
)

// NewInferredFiles builds the JSON objects for the .proto files of an inference, in the order of their
// paths.
func NewInferredFiles(in *infer.Inferred) []*InferredFile {
	var list []*InferredFile
	for _, name := range slices.Sorted(maps.Keys(in.Files)) {
		line := &InferredFile{File: name, Text: in.Files[name]}
		for _, file := range in.Schema.Files {
			if file.Path() == name {
				line.Package = string(file.Package())
				line.Messages, line.Enums = countTypes(file)
				line.Services = file.Services().Len()
			}
		}
		list = append(list, line)
	}
	return list
}

// countTypes returns the number of messages and enums in a file or message, including nested ones. It
// does not count map entries.
func countTypes(of interface {
	Messages() protoreflect.MessageDescriptors
	Enums() protoreflect.EnumDescriptors
},
) (messages, enums int) {
	enums = of.Enums().Len()
	for i := range of.Messages().Len() {
		m := of.Messages().Get(i)
		if m.IsMapEntry() {
			continue
		}
		inner, innerEnums := countTypes(m)
		messages += 1 + inner
		enums += innerEnums
	}
	return messages, enums
}
