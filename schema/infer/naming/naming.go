// Package naming gives fields of inferred definitions the names that other definitions have for them.
//
// n := naming.Fields(inferred, remembered) // field_3 becomes text
//
// Only names of fields change: numbers and types stay as inferred, and messages keep the names to which the
// evidence refers. Commands that infer use it if they know definitions of an earlier version.
package naming

import (
	"regexp"
	"strings"
	"sync"

	"google.golang.org/protobuf/reflect/protoreflect"

	"unwire/schema"
	"unwire/schema/infer"
)

// maxPairs is the maximum number of pairs of messages that are compared.
const maxPairs = 100_000

// Fields renames fields of inferred definitions after fields of known definitions, and returns how many. A
// field gets the name of the known field with the same number if both belong to the same method, directly or
// through their message types, and if the wire types agree.
func Fields(in *infer.Inferred, known *schema.Schema) int {
	// The new names by message and placeholder.
	names := map[protoreflect.FullName]map[string]string{}
	var follow func(inferred, other protoreflect.MessageDescriptor)
	follow = func(inferred, other protoreflect.MessageDescriptor) {
		if names[inferred.FullName()] != nil || len(names) == maxPairs {
			return
		}
		of := map[string]string{}
		names[inferred.FullName()] = of

		for i := range inferred.Fields().Len() {
			fd := inferred.Fields().Get(i)
			like := other.Fields().ByNumber(fd.Number())
			// A number that was reused for another type has another meaning.
			if like == nil || !readsAs(fd, like) {
				continue
			}
			if placeholder().MatchString(string(fd.Name())) && !placeholder().MatchString(string(like.Name())) {
				of[string(fd.Name())] = string(like.Name())
			}
			if fd.Message() != nil && like.Message() != nil && !fd.IsMap() && !like.IsMap() {
				follow(fd.Message(), like.Message())
			}
		}
	}

	for sd := range in.Schema.Services() {
		for i := range sd.Methods().Len() {
			m := sd.Methods().Get(i)
			if like := known.Method(string(sd.FullName()), string(m.Name())); like != nil {
				follow(m.Input(), like.Input())
				follow(m.Output(), like.Output())
			}
		}
	}
	return rename(in, names, "")
}

// Patterns for the text of inferred .proto files: the invented name of a field, the first line of a message,
// and the declaration of a field with such a name.
var (
	placeholder = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^field_[0-9]+$`) })
	message     = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^message ([A-Za-z_][A-Za-z0-9_]*) \{$`) })
	declaration = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^( +[^/=]* )(field_[0-9]+)( = [0-9]+( \[.*\])?;)$`) })
)

// rename replaces invented field names in the texts of inferred files and returns how many. names has the new
// names by message and old name; mark is appended to each renamed declaration. Inferred messages are not nested
// and have one line for each field, so regular expressions suffice.
func rename(in *infer.Inferred, names map[protoreflect.FullName]map[string]string, mark string) (n int) {
	for _, fd := range in.Schema.Files {
		text, ok := in.Files[fd.Path()]
		if !ok {
			continue
		}
		var out strings.Builder
		var of map[string]string
		for line := range strings.Lines(text) {
			if m := message().FindStringSubmatch(strings.TrimSuffix(line, "\n")); m != nil {
				of = names[fd.Package().Append(protoreflect.Name(m[1]))]
			}
			if m := declaration().FindStringSubmatch(strings.TrimSuffix(line, "\n")); m != nil && of[m[2]] != "" {
				n++
				line = m[1] + of[m[2]] + m[3] + mark + "\n"
			}
			out.WriteString(line)
		}
		in.Files[fd.Path()] = out.String()
	}
	return n
}

// readsAs reports whether the inferred field fd and the known field like can decode the same bytes.
func readsAs(fd, like protoreflect.FieldDescriptor) bool {
	return fd.IsMap() == like.IsMap() && wireTypes[fd.Kind()] == wireTypes[like.Kind()]
}

// wireTypes are the numbers of the protobuf wire types of values, by declared type.
var wireTypes = map[protoreflect.Kind]int{
	protoreflect.BoolKind: 0, protoreflect.EnumKind: 0, protoreflect.Int32Kind: 0, protoreflect.Int64Kind: 0,
	protoreflect.Uint32Kind: 0, protoreflect.Uint64Kind: 0, protoreflect.Sint32Kind: 0, protoreflect.Sint64Kind: 0,
	protoreflect.Fixed64Kind: 1, protoreflect.Sfixed64Kind: 1, protoreflect.DoubleKind: 1,
	protoreflect.StringKind: 2, protoreflect.BytesKind: 2, protoreflect.MessageKind: 2,
	protoreflect.GroupKind:   3,
	protoreflect.Fixed32Kind: 5, protoreflect.Sfixed32Kind: 5, protoreflect.FloatKind: 5,
}
