package extract

import (
	"context"
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

	// Looked counts the files of a known format, and Skipped the others.
	Looked, Skipped int

	// Unread are the files that were not read, with the reasons, and Faults those of
	// them at which unwire failed.
	Unread []error
	Faults []*Fault
}

// Read reads what an input, a file or a folder, declares. onProgress, if set, is called
// from time to time.
//
// Limits: 1 GiB for a file, more for archives and executables; 1,048,576 files of a
// folder. Symbolic links in a folder are not followed.
// Errors: where nothing of the input could be read, and the context's. What is wrong
// with one file of several is in Unread.
func Read(ctx context.Context, input string, onProgress func(Progress)) (*Source, error) {
	c := newCollector(input, formats())
	c.onProgress = onProgress
	if err := c.addPath(ctx, input); err != nil {
		return nil, err
	}
	return c.declared(ctx)
}

// Form is the source's forms as one word.
func (s *Source) Form() string { return strings.Join(s.Forms, ",") }
