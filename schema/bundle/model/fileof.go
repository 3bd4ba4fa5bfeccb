package model

import (
	"encoding/base64"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/descriptorpb"
)

// FileOf decodes the file descriptor in a base64 text. It returns nil if there is none.
func FileOf(text string) *descriptorpb.FileDescriptorProto {
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
