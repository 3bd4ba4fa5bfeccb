package embedded

import (
	"bytes"
	"slices"
	"unicode"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
)

// Constants for recognizing serialized file descriptors.
const (
	// tagName is the first byte of a descriptor: the tag of field 1 of FileDescriptorProto, the name.
	tagName = 0x0a

	// maxDescriptor is the maximum size of one descriptor in bytes.
	maxDescriptor = 64 << 20
	// maxDepth is the maximum nesting of messages in a descriptor.
	maxDepth = 64
)

// parse parses the descriptor at the beginning of data and returns its size. The descriptor ends before the
// first field that is out of order or not plausible, so that data may continue with anything.
//
// Shape: nil if data does not begin with a descriptor, or if that has nothing except a name and a package.
func parse(data []byte) (*descriptorpb.FileDescriptorProto, int) {
	md := (*descriptorpb.FileDescriptorProto)(nil).ProtoReflect().Descriptor()
	data = data[:min(len(data), maxDescriptor)]
	size := 0
	s := sequence{md: md}
	for size < len(data) {
		n := s.field(data[size:])
		if n <= 0 {
			break
		}
		size += n
	}
	if !s.isDescriptor {
		return nil, 0
	}
	f := &descriptorpb.FileDescriptorProto{}
	if (proto.UnmarshalOptions{AllowPartial: true}).Unmarshal(data[:size], f) != nil {
		return nil, 0
	}
	return f, size
}

// A sequence checks that the fields of a FileDescriptorProto come in the order in which protoc writes them, to
// recognize where a descriptor ends.
type sequence struct {
	// md is the descriptor of FileDescriptorProto itself.
	md protoreflect.MessageDescriptor
	// last is the number of the previous field; 0 before the first.
	last protowire.Number
	// imports is the number of imports in the descriptor so far.
	imports int
	// public has the minimum index for the next entry of public_dependency and of weak_dependency, which must
	// ascend.
	public [2]int
	// isDescriptor is set when a field was found that arbitrary bytes hardly have.
	isDescriptor bool
}

// field returns the length in bytes of the field at the beginning of data, or 0 if it cannot be the next field.
func (s *sequence) field(data []byte) int {
	num, typ, n := protowire.ConsumeTag(data)
	// All fields have numbers whose tags take one byte.
	if n != 1 || num < s.last {
		return 0
	}
	fd := s.md.Fields().ByNumber(num)
	if fd == nil || num == s.last && !fd.IsList() {
		return 0
	}
	m := valid(fd, typ, data[n:], 0)
	if m < 0 || !s.plausible(fd, typ, data[n:n+m]) {
		return 0
	}
	s.last = num
	return n + m
}

// plausible reports whether a compiler would write this value in the field fd.
func (s *sequence) plausible(fd protoreflect.FieldDescriptor, typ protowire.Type, value []byte) bool {
	// The value is either text or a number.
	number := uint64(0)
	if typ == protowire.BytesType {
		value, _ = protowire.ConsumeBytes(value)
	} else {
		number, _ = protowire.ConsumeVarint(value)
	}

	switch fd.Name() {
	case "name":
		return s.last == 0 && isPath(value)
	case "package":
		return isPackage(value)
	case "dependency", "option_dependency":
		s.imports++
		s.markDescriptor(isPath(value) && bytes.HasSuffix(value, []byte(suffix)))
		return len(value) > 2 && isPath(value)
	case "public_dependency", "weak_dependency":
		// Indices of imports ascend and refer to imports that were seen.
		least := &s.public[fd.Number()%2]
		ok := typ == protowire.BytesType && len(value) <= s.imports || number >= uint64(*least) && number < uint64(s.imports)
		*least = int(number&0xffff) + 1
		return ok
	case "syntax":
		return s.markDescriptor(slices.Contains([]string{"proto2", "proto3", "editions"}, string(value)))
	case "edition":
		return number < 1<<31 && descriptorpb.Edition_name[int32(number)] != ""
	case "source_code_info":
		return len(value) > 0
	case "options":
		s.markDescriptor(len(value) > 2)
	case "message_type", "enum_type", "service", "extension":
		return s.markDescriptor(named(value))
	}

	return true
}

// markDescriptor records that the field is typical of a descriptor, if ok is set. It returns ok.
func (s *sequence) markDescriptor(ok bool) bool {
	s.isDescriptor = s.isDescriptor || ok
	return ok
}

// valid returns the length in bytes of the value at the beginning of data, or -1 if it does not have the type
// of the field fd.
func valid(fd protoreflect.FieldDescriptor, typ protowire.Type, data []byte, depth int) int {
	n := protowire.ConsumeFieldValue(fd.Number(), typ, data)
	if n < 0 {
		return -1
	}
	if typ != wireType(fd.Kind()) {
		if typ != protowire.BytesType || !fd.IsList() || wireType(fd.Kind()) == protowire.BytesType {
			return -1
		}
		// The field is a packed list.
		return n
	}
	switch fd.Kind() {
	case protoreflect.StringKind:
		if b, _ := protowire.ConsumeBytes(data); !utf8.Valid(b) {
			return -1
		}
	case protoreflect.MessageKind:
		b, _ := protowire.ConsumeBytes(data)
		if !validMessage(fd.Message(), b, depth+1) {
			return -1
		}
	}
	return n
}

// newest is the highest number of an unknown field that is accepted. Later versions of descriptor.proto may
// have added fields.
const newest = 127

// validMessage reports whether data may be a message of the type md: all fields are well-formed, and known
// fields have their types.
func validMessage(md protoreflect.MessageDescriptor, data []byte, depth int) bool {
	if depth > maxDepth {
		return false
	}

	// Custom options are extensions with any number.
	open := md.ExtensionRanges().Len() > 0
	for len(data) > 0 {
		num, typ, n := protowire.ConsumeTag(data)
		if n < 0 {
			return false
		}
		data = data[n:]
		fd := md.Fields().ByNumber(num)
		if fd == nil {
			if !open && num > newest {
				return false
			}
			n = protowire.ConsumeFieldValue(num, typ, data)
		} else {
			n = valid(fd, typ, data, depth)
		}
		if n < 0 {
			return false
		}
		data = data[n:]
	}
	return true
}

// wireType returns the wire type with which a field of kind k is encoded.
func wireType(k protoreflect.Kind) protowire.Type {
	switch k {
	case protoreflect.StringKind, protoreflect.BytesKind, protoreflect.MessageKind:
		return protowire.BytesType
	case protoreflect.DoubleKind, protoreflect.Fixed64Kind, protoreflect.Sfixed64Kind:
		return protowire.Fixed64Type
	case protoreflect.FloatKind, protoreflect.Fixed32Kind, protoreflect.Sfixed32Kind:
		return protowire.Fixed32Type
	case protoreflect.GroupKind:
		return protowire.StartGroupType
	}
	return protowire.VarintType
}

// named reports whether data, the content of a declaration, begins with a name that is a valid identifier.
func named(data []byte) bool {
	if len(data) == 0 || data[0] != tagName {
		return false
	}
	name, n := protowire.ConsumeBytes(data[1:])
	return n > 0 && isIdent(name)
}

// isIdent reports whether b is a valid protobuf identifier.
func isIdent(b []byte) bool { return protoreflect.Name(b).IsValid() }

// isPackage reports whether b is a package name, which may be empty.
func isPackage(b []byte) bool { return len(b) == 0 || protoreflect.FullName(b).IsValid() }

// isPath reports whether b may be the path of a .proto file: printable text.
func isPath(b []byte) bool {
	if len(b) == 0 || len(b) > maxName || !utf8.Valid(b) {
		return false
	}
	return bytes.IndexFunc(b, func(r rune) bool { return !unicode.IsPrint(r) }) < 0
}
