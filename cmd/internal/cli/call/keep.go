package callcmd

import (
	"context"
	"errors"
	"io/fs"
	"slices"

	"google.golang.org/protobuf/reflect/protoreflect"

	"unwire/captures"
	"unwire/captures/safetext"
	"unwire/cmd/internal/app"
	"unwire/cmd/internal/term"
	"unwire/replay/call"
	"unwire/schema"
)

// keepDefinitions stores the definitions s of a call in the capture that records the call, as 'unwire use'
// does, unless commands find them anyway, or the capture already defines the method. Stored definitions are
// never replaced.
func keepDefinitions(ctx context.Context, a *app.App, f *callFlags, o *call.Options, s *schema.Schema) error {
	if f.source == "" {
		return nil
	}
	c, err := a.OpenCapture(f.out)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // nothing was sent
	}
	if err != nil {
		return err
	}
	defer c.Close()
	service, rpc := string(o.Method.Parent().FullName()), string(o.Method.Name())
	kept, err := c.KeptDefinitions(ctx)
	if err != nil || kept != nil && kept.Method(service, rpc) != nil {
		// A command that decodes the capture reports what is wrong with its definitions.
		return nil
	}

	// A second file of the same name would not be used.
	if kept != nil {
		for _, file := range s.Files {
			if slices.ContainsFunc(kept.Files, func(old protoreflect.FileDescriptor) bool { return old.Path() == file.Path() }) {
				a.Say("unwire: the definitions of %s are not stored in %s, because it has another %s; 'unwire use' replaces that", term.Clean(service), safetext.ShellFile(f.out), term.Clean(file.Path()))
				return nil
			}
		}
	}
	data, err := s.DescriptorSet()
	if err != nil {
		return err
	}
	if err := c.PutDefinition(ctx, captures.Definition{Kind: captures.DescriptorSet, Name: service + ".binpb", Data: data, Active: true}); err != nil {
		return err
	}
	a.Say("unwire: stored the definitions of %s in %s", term.Clean(service), safetext.ShellFile(f.out))
	return nil
}
