package update

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"

	"unwire/schema"
	"unwire/schema/infer"
)

// Bounds of the JSON that a probe or an inference writes.
const (
	maxForeignBytes  = 64 << 20
	maxForeignFields = 100_000
	maxForeignDepth  = 64
)

// ErrNoFindings is wrapped where JSON is neither a probe's nor inferred evidence.
var ErrNoFindings = errors.New("neither a probe's result nor inferred evidence")

// A finding is a field that a probe or an inference names, in the contract's shape.
type finding struct {
	Message string `json:"message"`
	Path    string `json:"path"`
	Number  int32  `json:"number"`
	Class   string `json:"class"`
	Kind    string `json:"kind"`
	Label   string `json:"label"`
	Name    string `json:"name"`
	Type    string `json:"type"`
}

// declares reports whether what a probe found is enough for a declaration:
// some fields it knows by name alone, of some it knows only that they exist.
func (f *finding) declares() bool {
	return f.Number != 0 && f.Class != "" && f.Kind != "group"
}

// ParseFindings reads a probe's result, or the evidence list of `schema infer`.
//
// Shape: one JSON object; a probe's path is of field numbers below the request.
// Names of which it does not know the number are in Left.
// Limits: 64 MiB, 100,000 fields, 64 levels.
// A probe that could not tell its request's type has that of its method in have,
// which may be nil.
// Errors: ErrNoFindings; a field that no message can have, by its place.
func ParseFindings(data []byte, have *schema.Schema) (*Source, error) {
	if len(data) > maxForeignBytes {
		return nil, fmt.Errorf("update: more than %d bytes of JSON", maxForeignBytes)
	}
	var doc struct {
		Runtime     *string   `json:"runtime"`
		Method      string    `json:"method"`
		RequestType string    `json:"request_type"`
		Fields      []finding `json:"fields"`
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	if err := dec.Decode(&doc); err != nil {
		return nil, fmt.Errorf("update: %w: %w", ErrNoFindings, err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("update: %w: more than one object", ErrNoFindings)
	}
	if len(doc.Fields) > maxForeignFields {
		return nil, fmt.Errorf("update: more than %d fields", maxForeignFields)
	}
	probe := doc.Runtime != nil || doc.RequestType != ""
	if !probe && (len(doc.Fields) == 0 || doc.Fields[0].Message == "") {
		return nil, fmt.Errorf("update: %w", ErrNoFindings)
	}
	if probe {
		doc.RequestType = requestType(doc.RequestType, doc.Method, have)
	}
	if probe && !protoreflect.FullName(doc.RequestType).IsValid() {
		return nil, fmt.Errorf("update: the probe does not name the type of the request of %q, nor do the files", doc.Method)
	}
	f := findings{messages: map[string]*descriptorpb.DescriptorProto{}, types: map[string]string{"": doc.RequestType}}
	var left []string
	for i, field := range doc.Fields {
		if probe {
			if !field.declares() {
				left = append(left, field.left())
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
	name := "traffic"
	if probe {
		name = "probe"
	}
	return &Source{Name: name, Certainty: "inferred", Schema: s, Guessed: true, Left: left}, nil
}

// left says what is known of a field of which no declaration can be made.
func (f *finding) left() string {
	at := ""
	if f.Path != "" {
		at = " in " + f.Path
	}
	if f.Number == 0 {
		return f.Name + at + ": its number is not known"
	}
	if f.Kind == "group" {
		return itoa(int(f.Number)) + at + ": a group is not added"
	}
	return strings.TrimSpace(f.Name+" "+itoa(int(f.Number))) + at + ": its type is not known"
}

// requestType is what the files call the type of a method's request, where the
// probe's word for it is none of theirs.
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

// findings gathers fields into messages.
type findings struct {
	order    []string
	messages map[string]*descriptorpb.DescriptorProto // by full name
	types    map[string]string                        // a probe's paths
}

func (f *findings) message(full string) *descriptorpb.DescriptorProto {
	m := f.messages[full]
	if m == nil {
		m = &descriptorpb.DescriptorProto{Name: proto.String(string(protoreflect.FullName(full).Name()))}
		f.messages[full] = m
		f.order = append(f.order, full)
	}
	return m
}

var numberPath = regexp.MustCompile(`^[0-9]+(\.[0-9]+)*$`)

// typeAt is the type at a probe's path; one that has no name gets a placeholder.
func (f *findings) typeAt(path string) (string, error) {
	if t := f.types[path]; t != "" {
		return t, nil
	}
	if !numberPath.MatchString(path) || strings.Count(path, ".") >= maxForeignDepth {
		return "", fmt.Errorf("path %q", path)
	}
	root := protoreflect.FullName(f.types[""])
	name := string(root.Name()) + "Field" + strings.ReplaceAll(path, ".", "Field")
	f.types[path] = join(string(root.Parent()), name)
	return f.types[path], nil
}

func (f *findings) addFinding(in finding, probe bool) error {
	full := in.Message
	if probe {
		var err error
		if full, err = f.typeAt(in.Path); err != nil {
			return err
		}
	}
	if !protoreflect.FullName(full).IsValid() {
		return fmt.Errorf("message %q", full)
	}
	if in.Number < 1 || in.Number > 1<<29-1 || in.Number >= 19000 && in.Number <= 19999 {
		return fmt.Errorf("number %d", in.Number)
	}
	if !protoreflect.Name(in.Name).IsValid() {
		in.Name = "field_" + strconv.Itoa(int(in.Number))
	}
	m := f.message(full)
	for _, have := range m.Field {
		if have.GetNumber() == in.Number || have.GetName() == in.Name {
			return nil // the first word counts
		}
	}
	fd := &descriptorpb.FieldDescriptorProto{Name: &in.Name, Number: &in.Number, Label: descriptorpb.FieldDescriptorProto_LABEL_OPTIONAL.Enum()}
	// a map is a list of entries
	if in.Label == infer.Repeated || probe && in.Label == "map" {
		fd.Label = descriptorpb.FieldDescriptorProto_LABEL_REPEATED.Enum()
	}
	below := strings.TrimPrefix(in.Path+"."+strconv.Itoa(int(in.Number)), ".")
	if err := f.setType(fd, in, below, probe); err != nil {
		return err
	}
	m.Field = append(m.Field, fd)
	return nil
}

// setType gives the field the type that is named, or else that of its class.
func (f *findings) setType(fd *descriptorpb.FieldDescriptorProto, in finding, below string, probe bool) error {
	// an enum, whose values are not known
	if probe && in.Class == "varint" && strings.Contains(in.Type, ".") {
		in.Type = "enum"
	}
	for _, word := range []string{in.Type, in.Kind, in.Class} {
		if t, ok := scalars[word]; ok {
			fd.Type = t.Enum()
			return nil
		}
	}
	if in.Kind != "message" && in.Class != "message" {
		return fmt.Errorf("class %q, kind %q, type %q", in.Class, in.Kind, in.Type)
	}
	full := in.Type
	if !protoreflect.FullName(full).IsValid() || full == "message" {
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
	f.message(full)
	fd.Type, fd.TypeName = descriptorpb.FieldDescriptorProto_TYPE_MESSAGE.Enum(), proto.String("."+full)
	return nil
}

// scalars are the types by the words of declarations, kinds and classes.
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

// schema links the messages, a file a package.
func (f *findings) schema() (*schema.Schema, error) {
	files := map[string]*descriptorpb.FileDescriptorProto{}
	set := &descriptorpb.FileDescriptorSet{}
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
	imports := func(file *descriptorpb.FileDescriptorProto) {
		seen := map[string]bool{file.GetName(): true}
		for _, m := range file.MessageType {
			for _, fd := range m.Field {
				if fd.TypeName == nil {
					continue
				}
				other := files[string(protoreflect.FullName(fd.GetTypeName()[1:]).Parent())]
				if other != nil && !seen[other.GetName()] {
					seen[other.GetName()] = true
					file.Dependency = append(file.Dependency, other.GetName())
				}
			}
		}
	}
	for _, file := range set.File {
		imports(file)
	}
	return schema.FromDescriptorSet(set)
}
