package app

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"google.golang.org/protobuf/reflect/protoreflect"

	"unwire/captures"
	"unwire/cmd/internal/query"
	"unwire/decode"
	"unwire/decode/secret"
	"unwire/proto"
	"unwire/schema"
)

// definitionsMemory is the heap in bytes below which garbage is collected less often
// while definitions are loaded: 10,000 messages of 30 fields take 700 MB.
const definitionsMemory = 1 << 30

// NoDefinitions is what --proto takes to work without any.
const NoDefinitions = "none"

// LoadDefinitions loads a folder of .proto files, or the definitions that a capture keeps;
// "" is those that the first of captures keeps, or else the built-in reconstruction, "none"
// is no schema at all. Captures may be addresses, and anything that is no capture.
func LoadDefinitions(ctx context.Context, dir string, captures ...string) (*schema.Schema, error) {
	switch dir {
	case "":
		if s, err := KeptDefinitions(ctx, captures...); s != nil || err != nil {
			return s, err
		}
		s, err := schema.Load(context.WithoutCancel(ctx), proto.Files)
		if err != nil {
			return nil, fmt.Errorf("the built-in definitions: %w", err)
		}
		return s, nil
	case NoDefinitions:
		return nil, nil
	}
	if isCapture(dir) {
		return needKept(ctx, dir)
	}
	defer CollectLess(definitionsMemory)()
	return schema.LoadDir(ctx, dir)
}

// isCapture reports whether a file is a capture rather than definitions.
func isCapture(name string) bool {
	head, err := FirstBytes(name)
	return err == nil && bytes.HasPrefix(head, []byte("SQLite format 3\x00"))
}

// needKept loads the definitions that a capture keeps.
func needKept(ctx context.Context, name string) (*schema.Schema, error) {
	c, err := OpenCapture(name)
	if err != nil {
		return nil, err
	}
	c.Close()
	s, err := KeptDefinitions(ctx, name)
	if s == nil && err == nil && ctx.Err() == nil {
		err = Fail(ExitInput, fmt.Errorf("%s keeps no definitions", name), "'unwire use DIR "+name+"' has it keep some")
	}
	return s, cmp.Or(err, ctx.Err())
}

// KeptDefinitions loads the definitions that the first of captures keeps; nil if none does.
func KeptDefinitions(ctx context.Context, captures ...string) (*schema.Schema, error) {
	for _, name := range captures {
		file := query.ParseAddress(name).File
		if info, err := os.Stat(file); err != nil || !info.Mode().IsRegular() {
			continue
		}
		c, err := OpenCapture(file)
		if err != nil {
			continue // what it is read for reports that, if it is to be a capture
		}
		s, err := c.KeptDefinitions(ctx)
		c.Close()
		if ctx.Err() != nil {
			return nil, nil // who reads the capture next ends with the context
		}
		if err != nil {
			return nil, Fail(ExitInput, fmt.Errorf("the definitions that %s keeps: %w", file, err),
				"--proto names others; 'unwire use --remove "+file+"' removes them")
		}
		if s != nil {
			return s, nil
		}
	}
	return nil, nil
}

// NeedDefinitions loads definitions from whatever holds them, "" those of LoadDefinitions,
// for a command that does what verb says.
func NeedDefinitions(ctx context.Context, name, verb string, captures ...string) (*schema.Schema, error) {
	switch name {
	case "":
		return LoadDefinitions(ctx, "", captures...)
	case NoDefinitions:
		return nil, Usagef("--proto none leaves nothing to %s against", verb)
	}
	return LoadSource(ctx, name)
}

// FrameType is the message type of a call's frames in one direction, or nil.
func FrameType(s *schema.Schema, call decode.Call, dir captures.Direction) protoreflect.MessageDescriptor {
	if s == nil {
		return nil
	}
	return s.FrameType(call, dir)
}

// LoadSource loads definitions from what a user named, a capture that keeps some too.
func LoadSource(ctx context.Context, name string) (*schema.Schema, error) {
	if isCapture(name) {
		return needKept(ctx, name)
	}
	defer CollectLess(definitionsMemory)()
	s, err := schema.LoadSource(ctx, name)
	return s, SourceError(name, err)
}

// ExportRules are those of the built-in definitions, whatever names the export
// has, and of others for what these do not know.
func ExportRules(ctx context.Context, defs *schema.Schema) (*secret.Rules, error) {
	builtIn, err := LoadDefinitions(ctx, "")
	if err != nil {
		return nil, err
	}
	rules := SecretRules(builtIn)
	known := rules.FrameType
	rules.FrameType = func(call decode.Call, dir captures.Direction) protoreflect.MessageDescriptor {
		if md := known(call, dir); md != nil || defs == nil {
			return md
		}
		return defs.FrameType(call, dir)
	}
	return rules, nil
}

// SourceError explains to a user why definitions cannot be loaded.
func SourceError(name string, err error) error {
	if errors.Is(err, schema.ErrNoSource) {
		return Fail(ExitInput, err, "protoc --descriptor_set_out=FILE --include_imports makes a descriptor set")
	}
	if _, missing := os.Stat(name); missing == nil && errors.Is(err, fs.ErrNotExist) {
		return Fail(ExitInput, err, "name the folder that the import statements start from, with what it imports in it")
	}
	return err
}

// SecretRules are those of definitions; nil for none.
func SecretRules(defs *schema.Schema) *secret.Rules {
	r := &secret.Rules{Fields: make(map[protoreflect.FullName]bool)}
	if defs == nil {
		return r
	}
	subject := proto.Profile()
	for _, name := range subject.Secrets.Fields {
		r.Fields[protoreflect.FullName(name)] = true
	}
	r.FrameType = defs.FrameType
	r.InnerType = func(_ decode.Call, dir captures.Direction) protoreflect.MessageDescriptor {
		// What the fallbacks carry in a field is the stream of one method.
		return defs.FrameType(decode.Call{Protocol: decode.ConnectStream, Codec: "proto", Service: subject.Split.Service, RPC: subject.Split.RPC}, dir)
	}
	return r
}
