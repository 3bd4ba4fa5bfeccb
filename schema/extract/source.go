package extract

import (
	"strings"

	"google.golang.org/protobuf/types/descriptorpb"

	"unwire/schema/bundle"
)

// A Source is what one input declares.
type Source struct {
	Input      string
	Forms      []string // codegens and formats that were found
	Files      []*descriptorpb.FileDescriptorProto
	Notes      map[string]string // by full name: what a comment should say
	Unresolved []bundle.Unresolved
}

// Form is the source's forms as one word.
func (s *Source) Form() string { return strings.Join(s.Forms, ",") }
