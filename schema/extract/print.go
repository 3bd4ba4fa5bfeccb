package extract

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/jhump/protoreflect/v2/protoprint"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
)

// Print returns the text of the set's files, by path.
func (s *Set) Print() (map[string]string, error) {
	set := s.DescriptorSet()
	for i, f := range set.File {
		if i >= len(s.Imports) {
			f = proto.Clone(f).(*descriptorpb.FileDescriptorProto)
			f.SourceCodeInfo = s.comments(f)
			set.File[i] = f
		}
	}
	files, err := protodesc.NewFiles(set)
	if err != nil {
		return nil, fmt.Errorf("extract: %w", err)
	}
	p := protoprint.Printer{ForceFullyQualifiedNames: true}
	text := map[string]string{}
	for _, f := range s.Files {
		fd, err := files.FindFileByPath(f.GetName())
		if err != nil {
			return nil, fmt.Errorf("extract: %w", err)
		}
		var b bytes.Buffer
		if err := p.PrintProtoFile(fd, &b); err != nil {
			return nil, fmt.Errorf("extract: print %s: %w", f.GetName(), err)
		}
		text[f.GetName()] = b.String()
	}
	return text, nil
}

// comments makes leading comments of the notes about a file's elements.
func (s *Set) comments(f *descriptorpb.FileDescriptorProto) *descriptorpb.SourceCodeInfo {
	info := &descriptorpb.SourceCodeInfo{}
	var walk func(full string, m protoreflect.Message, path []int32)
	walk = func(full string, m protoreflect.Message, path []int32) {
		if note := s.Notes[full]; note != "" && len(path) > 0 {
			info.Location = append(info.Location, &descriptorpb.SourceCodeInfo_Location{
				Path: path, Span: []int32{0, 0, 0}, LeadingComments: proto.String(" " + note + "\n"),
			})
		}
		m.Range(func(fd protoreflect.FieldDescriptor, v protoreflect.Value) bool {
			switch fd.Name() {
			case "message_type", "nested_type", "enum_type", "service", "field", "method", "extension":
			default:
				return true
			}
			for i := range v.List().Len() {
				child := v.List().Get(i).Message()
				name := child.Get(child.Descriptor().Fields().ByName("name")).String()
				walk(strings.TrimPrefix(full+"."+name, "."), child, append(path[:len(path):len(path)], int32(fd.Number()), int32(i)))
			}
			return true
		})
	}
	walk(f.GetPackage(), f.ProtoReflect(), nil)
	if len(info.Location) == 0 {
		return nil
	}
	return info
}

// A Count says how much sources declare, without the entries of maps and what
// comes with protobuf itself.
type Count struct{ Messages, Enums, Services, Fields int }

// Count counts the set's declarations.
func (s *Set) Count() Count {
	var c Count
	var message func(d *descriptorpb.DescriptorProto)
	message = func(d *descriptorpb.DescriptorProto) {
		if d.GetOptions().GetMapEntry() {
			return
		}
		c.Messages++
		c.Fields += len(d.Field)
		c.Enums += len(d.EnumType)
		for _, n := range d.NestedType {
			message(n)
		}
	}
	for _, f := range s.Files {
		c.Enums += len(f.EnumType)
		c.Services += len(f.Service)
		for _, d := range f.MessageType {
			message(d)
		}
	}
	return c
}
