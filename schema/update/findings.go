package update

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"

	"unwire/schema"
	"unwire/schema/infer"
)

// Limits of JSON files with the result of a probe (which asks a server about its request types) or of an
// inference.
const (
	// maxForeignBytes is the maximum size of a JSON file in bytes.
	maxForeignBytes = 64 << 20
	// maxForeignFields is the maximum number of fields in a JSON file.
	maxForeignFields = 100_000
	// maxForeignDepth is the maximum length of a path of field numbers.
	maxForeignDepth = 64
	// maxListedValues is the maximum number of names of enum values in a comment.
	maxListedValues = 20
)

// ErrNoFindings is wrapped by the error for JSON that is neither the result of a probe nor inferred evidence.
var ErrNoFindings = errors.New("the file is neither a result of 'unwire probe --json' nor evidence of 'unwire schema infer'")

// A finding is a field in the result of a probe or of an inference. Its JSON is part of the contract with
// users: it changes only compatibly.
type finding struct {
	// Message is the full name of the message type; "" in the result of a probe.
	Message string `json:"message"`
	// Path is the path of field numbers from the request to the message; "" in the result of an inference.
	Path string `json:"path"`
	// Number is the field number; 0 if the probe did not find it.
	Number int32 `json:"number"`
	// Class is the set of types that the probe distinguishes, such as "varint", or "".
	Class string `json:"class"`
	// Kind is how the values appear on the wire, such as "string", or "".
	Kind string `json:"kind"`
	// Label is "singular", "repeated" and so on, or "".
	Label string `json:"label"`
	// Name is the field's name; "" if the probe did not find it.
	Name string `json:"name"`
	// Type is the type as in a .proto file, or "".
	Type string `json:"type"`
	// Values are names of values of an enum that the probe found.
	Values []string `json:"values"`
	// MapValue is the type of a map's values, or "".
	MapValue string `json:"map_value"`
}

// isDeclarable reports whether a probe found enough about the field to declare it. For some fields it finds
// only the name, for others only that they exist.
func (f *finding) isDeclarable() bool {
	return f.Number != 0 && f.Class != "" && f.Kind != "group" && !f.mayBeList()
}

// mayBeList reports whether the probe could not decide if a 4-byte or 8-byte field is a single number
// or a packed list. A parser of one does not accept the other.
func (f *finding) mayBeList() bool {
	return (f.Class == "fixed32" || f.Class == "fixed64") && f.Label == ""
}

// comment returns the comment on a field that says what the probe did not find out about it, or "".
func (f *finding) comment() string {
	parts := slices.DeleteFunc([]string{f.typeRemark(), f.labelRemark()}, func(s string) bool { return s == "" })
	if len(parts) == 0 {
		return ""
	}
	return "guess: " + strings.Join(parts, "; ")
}

// typeRemark returns what the probe found out about a type that it does not know; "" if it knows the type.
func (f *finding) typeRemark() string {
	if f.isEnum() {
		values := slices.DeleteFunc(slices.Clone(f.Values), func(v string) bool { return !protoreflect.Name(v).IsValid() })
		if len(values) == 0 {
			return "an enum"
		}
		return "an enum; the server accepted the values " + strings.Join(values[:min(len(values), maxListedValues)], ", ")
	}
	if _, known := scalars[f.Type]; known || f.Type != "" && f.Type != f.Class || f.Kind != "" && f.Kind != f.Class {
		return ""
	}
	return map[string]string{
		"varint":  "a varint of unknown width and sign; bool, enum, (u|s)int32 or (u|s)int64",
		"fixed32": "4 bytes; fixed32, sfixed32 or float",
		"fixed64": "8 bytes; fixed64, sfixed64 or double",
	}[f.Class]
}

// labelRemark returns what the probe found out about a label that the declaration does not show, or "".
func (f *finding) labelRemark() string {
	switch {
	case f.Label == "map" && protoreflect.FullName(f.MapValue).IsValid():
		return "a map with values of type " + f.MapValue
	case f.Label == "map":
		return "a map"
	case f.Label == "" && (f.Class == "len" || f.Class == "message"):
		return "may be repeated"
	}
	return ""
}

// isEnum reports whether a probe found that the field is an enum.
func (f *finding) isEnum() bool {
	return f.Class == "varint" && (f.Type == "enum" || f.Kind == "enum" || strings.Contains(f.Type, "."))
}

// ParseFindings converts the result of a probe, or the field list of `schema infer`, to a Source.
//
// If a probe did not find the type of the request, it is looked up by method in have, which may be nil. If a probe has
// definitions from server reflection, they are the source, and not the list of fields.
// Source.Left lists the fields that cannot be declared.
//
// Shape: one JSON object. In the result of a probe, paths consist of field numbers relative to the request.
// Limits: 64 MiB, 100,000 fields, 64 levels.
// Errors: ErrNoFindings, definitions that do not link, and a field that no message can have; the error has its
// position in the list. The context's error.
func ParseFindings(ctx context.Context, data []byte, have *schema.Schema) (*Source, error) {
	if len(data) > maxForeignBytes {
		return nil, fmt.Errorf("update: the JSON file has more than %d bytes, which is the limit", maxForeignBytes)
	}
	var doc struct {
		Runtime     *string   `json:"runtime"`
		Method      string    `json:"method"`
		RequestType string    `json:"request_type"`
		Fields      []finding `json:"fields"`
		Reflection  struct {
			Definitions []byte `json:"definitions"`
		} `json:"reflection"`
	}

	dec := json.NewDecoder(bytes.NewReader(data))
	if err := dec.Decode(&doc); err != nil {
		return nil, fmt.Errorf("update: %w: %w", ErrNoFindings, err)
	}

	// The file of a probe or an inference is one object; more is another kind of file.
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("update: %w: the file has more than one object", ErrNoFindings)
	}

	if len(doc.Fields) > maxForeignFields {
		return nil, fmt.Errorf("update: the file has more than %d fields", maxForeignFields)
	}

	// Only a probe names the runtime of the server or the type of the request.
	probe := doc.Runtime != nil || doc.RequestType != ""
	if !probe && (len(doc.Fields) == 0 || doc.Fields[0].Message == "") {
		return nil, fmt.Errorf("update: %w", ErrNoFindings)
	}
	if !probe {
		return sourceOfFields(doc.Fields, "")
	}
	if set := doc.Reflection.Definitions; len(set) > 0 {
		s, err := schema.FromStored(ctx, nil, map[string][]byte{"the definitions from server reflection": set})
		if err != nil {
			return nil, fmt.Errorf("update: %w", err)
		}
		return &Source{Name: "probe", Certainty: "reported", Schema: s}, nil
	}
	doc.RequestType = requestType(doc.RequestType, doc.Method, have)
	if !protoreflect.FullName(doc.RequestType).IsValid() {
		return nil, fmt.Errorf("update: neither the probe nor the .proto files name the request type of %q", doc.Method)
	}

	src, err := sourceOfFields(doc.Fields, doc.RequestType)
	if err == nil && have != nil && have.Message(doc.RequestType) == nil {
		src.Left = append(src.Left, fmt.Sprintf("all fields: the .proto files have neither the method %s nor the message type %s; declare the method first", doc.Method, doc.RequestType))
	}
	return src, err
}

// sourceOfFields returns the source for the fields in the result of a probe for a request of the type request, or in
// that of an inference, for which request is "".
func sourceOfFields(fields []finding, request string) (*Source, error) {
	probe := request != ""

	// The path "" is the request itself.
	f := findings{messages: map[string]*descriptorpb.DescriptorProto{}, types: map[string]string{"": request}, comments: map[string]string{}}
	var left []string
	for i, field := range fields {
		if probe {
			if !field.isDeclarable() {
				left = append(left, field.describeLeft())
				continue
			}
			field.Message = ""
		}
		if err := f.addFinding(field, probe); err != nil {
			return nil, fmt.Errorf("update: field %d of the list: %w", i+1, err)
		}
	}

	s, err := f.schema()
	if err != nil {
		return nil, fmt.Errorf("update: %w", err)
	}

	// The name of the source appears in the comments of the added fields.
	name := "traffic"
	if probe {
		name = "probe"
	}
	return &Source{Name: name, Certainty: "inferred", Schema: s, Guessed: true, Left: left, Comments: f.comments}, nil
}

// describeLeft describes a field that cannot be declared, with the reason.
func (f *finding) describeLeft() string {
	// The field is named by its name, its number, or both.
	field := "field "
	switch {
	case f.Name == "":
		field += itoa(int(f.Number))
	case f.Number != 0:
		field += strconv.Quote(f.Name) + " (" + itoa(int(f.Number)) + ")"
	default:
		field += strconv.Quote(f.Name)
	}
	if f.Path != "" {
		field += " in field " + f.Path
	}

	switch {
	case f.Number == 0:
		return field + ": the field number is unknown"
	case f.mayBeList():
		return field + ": the probe did not find out whether this " + f.Class + " field is repeated"
	case f.Kind == "group":
		return field + ": unwire does not add groups"
	}
	return field + ": the type is unknown"
}

// requestType returns the full name of the request type of a method: told, the name that the probe found, or
// that in have if have lacks told.
func requestType(told, method string, have *schema.Schema) string {
	if have == nil || have.Message(told) != nil {
		return told
	}
	service, rpc, _ := strings.Cut(strings.TrimPrefix(method, "/"), "/")
	if md := have.Method(service, rpc); md != nil {
		return string(md.Input().FullName())
	}
	return told
}

// findings converts the fields in a result to message descriptors.
type findings struct {
	// order has the full names of the messages in the order of their occurrence.
	order []string
	// messages maps full names to message descriptors.
	messages map[string]*descriptorpb.DescriptorProto
	// types has the full names of message types by path, for the result of a probe.
	types map[string]string
	// comments are the comments on fields, by the full name of the field.
	comments map[string]string
}

// message returns the descriptor of a message, which is created if needed.
func (f *findings) message(full string) *descriptorpb.DescriptorProto {
	m := f.messages[full]
	if m == nil {
		m = &descriptorpb.DescriptorProto{Name: proto.String(string(protoreflect.FullName(full).Name()))}
		f.messages[full] = m
		f.order = append(f.order, full)
	}
	return m
}

// numberPath matches a path of field numbers, such as "1.2".
var numberPath = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[0-9]+(\.[0-9]+)*$`) })

// typeAt returns the full name of the message type at a path in the result of a probe. A type without a name
// gets a placeholder.
func (f *findings) typeAt(path string) (string, error) {
	if t := f.types[path]; t != "" {
		return t, nil
	}
	if !numberPath().MatchString(path) || strings.Count(path, ".") >= maxForeignDepth {
		return "", fmt.Errorf("the path %q is malformed", path)
	}
	root := protoreflect.FullName(f.types[""])
	name := string(root.Name()) + "Field" + strings.ReplaceAll(path, ".", "Field")
	f.types[path] = join(string(root.Parent()), name)
	return f.types[path], nil
}

// addFinding adds a field to its message. probe is set if it is from a probe.
func (f *findings) addFinding(in finding, probe bool) error {
	full := in.Message
	if probe {
		var err error
		if full, err = f.typeAt(in.Path); err != nil {
			return err
		}
	}
	if !protoreflect.FullName(full).IsValid() {
		return fmt.Errorf("the message name %q is malformed", full)
	}
	if in.Number < 1 || in.Number > 1<<29-1 || in.Number >= 19000 && in.Number <= 19999 {
		return fmt.Errorf("the field number %d is out of range", in.Number)
	}
	if !protoreflect.Name(in.Name).IsValid() {
		in.Name = "field_" + strconv.Itoa(int(in.Number))
	}

	if schema.WellKnownMessage(full) != nil {
		return nil
	}

	m := f.message(full)
	for _, have := range m.Field {
		if have.GetNumber() == in.Number || have.GetName() == in.Name {
			// The first finding about a field wins.
			return nil
		}
	}

	fd := &descriptorpb.FieldDescriptorProto{Name: &in.Name, Number: &in.Number, Label: descriptorpb.FieldDescriptorProto_LABEL_OPTIONAL.Enum()}

	// A map is encoded as a repeated entry message.
	if in.Label == infer.Repeated || probe && in.Label == "map" {
		fd.Label = descriptorpb.FieldDescriptorProto_LABEL_REPEATED.Enum()
	}
	below := strings.TrimPrefix(in.Path+"."+strconv.Itoa(int(in.Number)), ".")
	if err := f.setType(fd, in, below, probe); err != nil {
		return err
	}
	m.Field = append(m.Field, fd)
	if text := in.comment(); probe && text != "" {
		f.comments[full+"."+in.Name] = text
	}
	return nil
}

// setType sets the type of fd, as precisely as the finding shows it. below is the path of the field, and probe
// is set if it is from a probe.
func (f *findings) setType(fd *descriptorpb.FieldDescriptorProto, in finding, below string, probe bool) error {
	// This is an enum whose values are unknown.
	if probe && in.isEnum() {
		in.Type = "enum"
	}

	// The most precise of the three descriptions that names a scalar type counts.
	for _, word := range []string{in.Type, in.Kind, in.Class} {
		if t, ok := scalars[word]; ok {
			fd.Type = t.Enum()
			return nil
		}
	}

	if in.Kind != "message" && in.Class != "message" {
		return fmt.Errorf("the class %q, the kind %q and the type %q contradict each other", in.Class, in.Kind, in.Type)
	}
	full := in.Type
	if !protoreflect.FullName(full).IsValid() || full == "message" {
		// Traffic shows that the field has a message, but not its name.
		if !probe {
			fd.Type = descriptorpb.FieldDescriptorProto_TYPE_BYTES.Enum()
			return nil
		}
		var err error
		if full, err = f.typeAt(below); err != nil {
			return err
		}
	}

	if probe {
		f.types[below] = full
	}
	if schema.WellKnownMessage(full) == nil {
		f.message(full)
	}
	fd.Type, fd.TypeName = descriptorpb.FieldDescriptorProto_TYPE_MESSAGE.Enum(), proto.String("."+full)
	return nil
}

// scalars maps the words for types, kinds and classes in results to scalar types.
var scalars = map[string]descriptorpb.FieldDescriptorProto_Type{
	"double": descriptorpb.FieldDescriptorProto_TYPE_DOUBLE, "float": descriptorpb.FieldDescriptorProto_TYPE_FLOAT,
	"int64": descriptorpb.FieldDescriptorProto_TYPE_INT64, "uint64": descriptorpb.FieldDescriptorProto_TYPE_UINT64,
	"int32": descriptorpb.FieldDescriptorProto_TYPE_INT32, "uint32": descriptorpb.FieldDescriptorProto_TYPE_UINT32,
	"sint32": descriptorpb.FieldDescriptorProto_TYPE_SINT32, "sint64": descriptorpb.FieldDescriptorProto_TYPE_SINT64,
	"sfixed32": descriptorpb.FieldDescriptorProto_TYPE_SFIXED32, "sfixed64": descriptorpb.FieldDescriptorProto_TYPE_SFIXED64,
	"fixed32": descriptorpb.FieldDescriptorProto_TYPE_FIXED32, "fixed64": descriptorpb.FieldDescriptorProto_TYPE_FIXED64,
	"bool": descriptorpb.FieldDescriptorProto_TYPE_BOOL, "string": descriptorpb.FieldDescriptorProto_TYPE_STRING,
	"bytes": descriptorpb.FieldDescriptorProto_TYPE_BYTES, "varint": descriptorpb.FieldDescriptorProto_TYPE_INT64,
	"len": descriptorpb.FieldDescriptorProto_TYPE_BYTES, "enum": descriptorpb.FieldDescriptorProto_TYPE_INT32,
}

// schema returns the messages as definitions, with one file for each package.
func (f *findings) schema() (*schema.Schema, error) {
	files := map[string]*descriptorpb.FileDescriptorProto{}
	set := &descriptorpb.FileDescriptorSet{}

	// Each package gets a file of its own, since a file has one package.
	for _, full := range f.order {
		pkg := string(protoreflect.FullName(full).Parent())
		file := files[pkg]
		if file == nil {
			file = &descriptorpb.FileDescriptorProto{Name: proto.String(strings.ReplaceAll(join(pkg, "inferred"), ".", "/") + ".proto"), Syntax: proto.String("proto3")}
			if pkg != "" {
				file.Package = &pkg
			}
			files[pkg] = file
			set.File = append(set.File, file)
		}
		file.MessageType = append(file.MessageType, f.messages[full])
	}

	// A file imports the files of all types that its fields refer to.
	imports := func(file *descriptorpb.FileDescriptorProto) {
		seen := map[string]bool{file.GetName(): true}
		for _, m := range file.MessageType {
			for _, fd := range m.Field {
				if fd.TypeName == nil {
					continue
				}
				full := protoreflect.FullName(fd.GetTypeName()[1:])
				name := ""
				if md := schema.WellKnownMessage(string(full)); md != nil {
					name = md.ParentFile().Path()
				} else if other := files[string(full.Parent())]; other != nil {
					name = other.GetName()
				}
				if name != "" && !seen[name] {
					seen[name] = true
					file.Dependency = append(file.Dependency, name)
				}
			}
		}
	}
	for _, file := range set.File {
		imports(file)
	}
	return schema.FromDescriptorSet(set)
}
