package bundle

import (
	"encoding/base64"
	"strings"

	"github.com/tdewolff/parse/v2/js"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/descriptorpb"
)

const formES2 = "protobuf-es 2"

// es2 reads what protoc-gen-es 2 writes: whole files as descriptors in base64,
// fileDesc("…", […]). The function's name does not survive minifiers; the
// descriptor's own structure does.
func (x *scan) es2() {
	s := x.script
	for _, at := range s.anchors[anchorDescriptor] {
		if s.typ(at-1) == js.AddToken { // a later part of a string
			continue
		}
		n := s.expr(at)
		text, ok := s.str(n)
		if !ok {
			continue
		}
		if !s.claimMemory(at, textMemory*len(text)) {
			return
		}
		fd := descriptor(text)
		if fd == nil {
			continue
		}
		x.forms[formES2] = true
		fd.Dependency, fd.PublicDependency, fd.WeakDependency = nil, nil, nil
		x.files = append(x.files, fd)
	}
}

// descriptor returns the file that a text in base64 describes, or nil.
func descriptor(text string) *descriptorpb.FileDescriptorProto {
	data, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(text, "="))
	if err != nil {
		return nil
	}
	fd := &descriptorpb.FileDescriptorProto{}
	if proto.Unmarshal(data, fd) != nil || fd.GetName() == "" || len(fd.ProtoReflect().GetUnknown()) > 0 {
		return nil
	}
	if len(fd.MessageType)+len(fd.EnumType)+len(fd.Service)+len(fd.Extension) == 0 {
		return nil
	}
	return fd
}
