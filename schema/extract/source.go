package extract

import (
	"context"
	"strings"

	"google.golang.org/protobuf/types/descriptorpb"

	"unwire/captures/budget"
	"unwire/schema/bundle/model"
)

// A Source has the definitions that were extracted from one input (a file or a folder).
type Source struct {
	// Input is the path of the input.
	Input string
	// Forms are the names of the code generators and encodings that were found.
	Forms []string
	// Files are the extracted file descriptors.
	Files []*descriptorpb.FileDescriptorProto
	// Notes maps the full names of messages, fields and other elements to their comments.
	Notes map[string]string
	// Unresolved lists the elements whose definitions are incomplete, with the reason.
	Unresolved []model.Unresolved

	// Examined is the number of files in a known format, and Skipped the number of other files.
	Examined, Skipped int

	// Unread has the errors of files that were not read.
	Unread []error
	// Faults are those failures in Unread that are bugs of unwire.
	Faults []*Fault
}

// Read extracts the definitions from an input, which is a file or a folder. onProgress, if set, is called from
// time to time.
//
// Limits: 1 GiB for a file, more for archives and executables; 1,048,576 files in a folder. Symbolic links in a
// folder are not followed.
// Errors: nothing of the input could be read, and the context's error. Errors of one file among several are in
// Unread.
func Read(ctx context.Context, input string, onProgress func(Progress)) (*Source, error) {
	c := newCollector(input, formats())
	c.onProgress, c.shared = onProgress, budget.Of(ctx)
	if err := c.addPath(ctx, input); err != nil {
		return nil, err
	}
	return c.declared(ctx)
}

// Form returns Forms joined by commas.
func (s *Source) Form() string { return strings.Join(s.Forms, ",") }
