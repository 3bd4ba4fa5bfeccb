package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"google.golang.org/protobuf/reflect/protoreflect"

	"unwire/captures"
	"unwire/decode"
	"unwire/decode/secret"
	"unwire/proto"
	"unwire/schema"
)

// definitionsMemory is the heap in bytes below which garbage is collected less often
// while definitions are loaded: 10,000 messages of 30 fields take 700 MB.
const definitionsMemory = 1 << 30

// noDefinitions is what --proto takes to work without any.
const noDefinitions = "none"

// loadDefinitions loads a folder of .proto files; "" is the built-in
// reconstruction, "none" is no schema at all.
func loadDefinitions(ctx context.Context, dir string) (*schema.Schema, error) {
	switch dir {
	case "":
		s, err := schema.Load(proto.Files)
		if err != nil {
			return nil, fmt.Errorf("the built-in definitions: %w", err)
		}
		return s, nil
	case noDefinitions:
		return nil, nil
	}
	defer collectLess(definitionsMemory)()
	return schema.LoadDir(ctx, dir)
}

// needDefinitions loads definitions from whatever holds them, "" the built-in
// ones, for a command that does what verb says.
func needDefinitions(ctx context.Context, name, verb string) (*schema.Schema, error) {
	switch name {
	case "":
		return loadDefinitions(ctx, "")
	case noDefinitions:
		return nil, usagef("--proto none leaves nothing to %s against", verb)
	}
	return loadSource(ctx, name)
}

// frameType is the message type of a call's frames in one direction, or nil.
func frameType(s *schema.Schema, call decode.Call, dir captures.Direction) protoreflect.MessageDescriptor {
	if s == nil {
		return nil
	}
	return s.FrameType(call, dir)
}

// loadSource loads definitions from what a user named.
func loadSource(ctx context.Context, name string) (*schema.Schema, error) {
	defer collectLess(definitionsMemory)()
	s, err := schema.LoadSource(ctx, name)
	return s, sourceError(name, err)
}

// exportRules are those of the built-in definitions, whatever names the export
// has, and of others for what these do not know.
func exportRules(ctx context.Context, defs *schema.Schema) (*secret.Rules, error) {
	builtIn, err := loadDefinitions(ctx, "")
	if err != nil {
		return nil, err
	}
	rules := secretRules(builtIn)
	known := rules.FrameType
	rules.FrameType = func(call decode.Call, dir captures.Direction) protoreflect.MessageDescriptor {
		if md := known(call, dir); md != nil || defs == nil {
			return md
		}
		return defs.FrameType(call, dir)
	}
	return rules, nil
}

// sourceError is what a user is told where definitions cannot be loaded.
func sourceError(name string, err error) error {
	if errors.Is(err, schema.ErrNoSource) {
		return fail(exitInput, err, "protoc --descriptor_set_out=FILE --include_imports makes a descriptor set")
	}
	if _, missing := os.Stat(name); missing == nil && errors.Is(err, fs.ErrNotExist) {
		return fail(exitInput, err, "name the folder that the import statements start from, with what it imports in it")
	}
	return err
}

// secretRules are those of definitions; nil for none.
func secretRules(defs *schema.Schema) *secret.Rules {
	r := &secret.Rules{Fields: make(map[protoreflect.FullName]bool)}
	if defs == nil {
		return r
	}
	for _, name := range proto.SecretFields() {
		r.Fields[protoreflect.FullName(name)] = true
	}
	r.FrameType = defs.FrameType
	r.InnerType = func(_ decode.Call, dir captures.Direction) protoreflect.MessageDescriptor {
		// What the fallbacks carry in a field is the agent's stream.
		return defs.FrameType(decode.Call{Protocol: decode.ConnectStream, Codec: "proto", Service: "agent.v1.AgentService", RPC: "Run"}, dir)
	}
	return r
}
