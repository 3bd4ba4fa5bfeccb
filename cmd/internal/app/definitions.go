package app

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"slices"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"

	"unwire/captures"
	"unwire/cmd/internal/query"
	"unwire/cmd/internal/term"
	"unwire/decode"
	"unwire/decode/secret"
	"unwire/proto"
	"unwire/schema"
	"unwire/schema/wellknown"
)

// definitionsMemory is the heap in bytes below which garbage is collected less often
// while definitions are loaded: 10,000 messages of 30 fields take 700 MB.
const definitionsMemory = 1 << 30

// NoDefinitions is what --proto takes to work without any.
const NoDefinitions = "none"

// protoVariable is the environment variable that names definitions, as --proto does.
const protoVariable = "UNWIRE_PROTO"

// LoadDefinitions loads the definitions by which a command reads captures, which may be
// addresses, and anything that is no capture. name is what --proto names: whatever LoadSource
// reads, or "none" for no schema at all. Without a name they are the first of these that are
// there: what UNWIRE_PROTO names, what a capture keeps, and the built-in definitions if the
// captures have calls of their packages, or no exchange yet. Otherwise the schema has no files.
// The well-known services stand behind all of them.
func (a *App) LoadDefinitions(ctx context.Context, name string, captures ...string) (*schema.Schema, error) {
	if named(name) == NoDefinitions {
		return nil, nil
	}
	s, err := a.remembered(ctx, name, captures)
	if err != nil {
		return nil, err
	}
	if s == nil {
		applies, some := a.builtInForCaptures(ctx, captures)
		if applies || !some && a.profile != NoDefinitions {
			if s, err = a.BuiltIn(ctx); err != nil {
				return nil, err
			}
		}
	}
	return withWellKnown(s), nil
}

// NeedDefinitions is LoadDefinitions for a command that does what verb says, which needs
// definitions.
//
// Errors: if no definitions apply.
func (a *App) NeedDefinitions(ctx context.Context, name, verb string, captures ...string) (*schema.Schema, error) {
	if named(name) == NoDefinitions {
		return nil, Usagef("--proto none leaves nothing to %s against", verb)
	}
	for _, name := range captures {
		if _, err := os.Stat(query.ParseAddress(name).File); err != nil {
			return nil, err // rather than that it shows no package
		}
	}
	s, err := a.FindDefinitions(ctx, name, nil, captures...)
	if s == nil && err == nil {
		packages := undefined(withWellKnown(nil), slices.Collect(services(ctx, captures)))
		err = Fail(ExitInput, errors.New(noDefinitions(packages)), definitionsHint)
	}
	return withWellKnown(s), err
}

// FindDefinitions is LoadDefinitions for a command whose input says of which packages it is:
// types are full names of types, services or methods in it. The schema is nil if no
// definitions apply to them or to the captures.
func (a *App) FindDefinitions(ctx context.Context, name string, types []string, captures ...string) (*schema.Schema, error) {
	if named(name) == NoDefinitions {
		return nil, nil
	}
	s, err := a.remembered(ctx, name, captures)
	if s != nil || err != nil {
		return s, err
	}
	if applies, _ := a.builtInForCaptures(ctx, captures); !applies && !slices.ContainsFunc(types, a.builtInFor) {
		return nil, nil
	}
	return a.BuiltIn(ctx)
}

// withWellKnown puts the well-known services behind definitions, which may be nil.
func withWellKnown(s *schema.Schema) *schema.Schema {
	if s == nil {
		s = schema.FromFiles()
	}
	s.SetBase(wellknown.Schema())
	return s
}

// remembered loads the definitions that were named, or else those that are remembered; nil
// for none.
func (a *App) remembered(ctx context.Context, name string, captures []string) (*schema.Schema, error) {
	if name != "" {
		return a.LoadSource(ctx, name)
	}
	if name = named(""); name != "" {
		s, err := a.LoadSource(ctx, name)
		if err != nil {
			err = fmt.Errorf("%s: %w", protoVariable, err)
		}
		return s, err
	}
	return a.KeptDefinitions(ctx, captures...)
}

// named is what --proto names, or else UNWIRE_PROTO.
func named(name string) string { return cmp.Or(name, os.Getenv(protoVariable)) }

// Remembered loads the definitions that are remembered for captures, without the built-in
// ones; nil for none.
func (a *App) Remembered(ctx context.Context, name string, captures ...string) (*schema.Schema, error) {
	if named(name) == NoDefinitions {
		return nil, nil
	}
	return a.remembered(ctx, name, captures)
}

// BuiltIn loads the built-in definitions.
func (a *App) BuiltIn(ctx context.Context) (*schema.Schema, error) {
	s, err := schema.Load(context.WithoutCancel(ctx), proto.Files)
	if err != nil {
		return nil, fmt.Errorf("the built-in definitions: %w", err)
	}
	return s, nil
}

// builtInFor reports whether the built-in definitions apply to a service, type or method of a
// full name.
func (a *App) builtInFor(name string) bool {
	return a.profile != NoDefinitions && a.Profile().Serves(name)
}

// ShowsProfile reports whether the profile's service is in captures, or the user named it.
func (a *App) ShowsProfile(ctx context.Context, captures ...string) bool {
	applies, _ := a.builtInForCaptures(ctx, captures)
	return applies
}

// builtInForCaptures reports whether the built-in definitions apply to captures, and whether
// these have any exchange.
func (a *App) builtInForCaptures(ctx context.Context, captures []string) (applies, some bool) {
	if a.NamesProfile() {
		return true, true
	}
	for service := range services(ctx, captures) {
		if some = true; a.builtInFor(service) {
			return true, true
		}
	}
	return false, some
}

// services yields the services that captures have calls of, and "" for other requests. What
// cannot be read has none: whoever reads it for its own sake reports that.
func services(ctx context.Context, captures []string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for _, name := range captures {
			file := query.ParseAddress(name).File
			if !isCapture(file) {
				continue
			}
			c, err := openCapture(file, nil)
			if err != nil {
				continue
			}
			for service := range c.Services(ctx) {
				if !yield(service) {
					c.Close()
					return
				}
			}
			c.Close()
		}
	}
}

// definitionsHint says where definitions come from.
const definitionsHint = "'unwire schema extract' takes them out of a client, 'unwire schema infer' out of traffic; --proto names them, and 'unwire use' keeps them in a capture"

// SayUndefined reports the packages of services that a schema does not define. A schema of nil
// was not wanted, and nothing is reported.
func (a *App) SayUndefined(s *schema.Schema, services ...string) {
	if text := Undefined(s, services); s != nil && text != "" {
		a.Say("unwire: %s", text)
	}
}

// Undefined says which packages of services a schema does not define; "" for none.
func Undefined(s *schema.Schema, services []string) string {
	packages := undefined(s, services)
	if len(packages) == 0 {
		return ""
	}
	return noDefinitions(packages) + ": see 'unwire schema extract', or --proto"
}

// undefined are the packages of services of which a schema, which may be nil, defines none.
func undefined(s *schema.Schema, services []string) []string {
	defined := map[string]bool{}
	for _, name := range services {
		if s.Service(name) != nil {
			defined[packageOf(name)] = true
		}
	}
	return slices.DeleteFunc(packagesOf(services), func(name string) bool { return defined[name] })
}

// mostPackages is how many packages a message names.
const mostPackages = 3

// noDefinitions says that there are none for packages.
func noDefinitions(packages []string) string {
	if len(packages) == 0 {
		return "no definitions: the input does not say of which package it is"
	}
	more := ""
	if n := len(packages) - mostPackages; n > 0 {
		packages, more = packages[:mostPackages], fmt.Sprintf(" and %d more packages", n)
	}
	return "no definitions for " + term.Clean(strings.Join(packages, ".*, ")) + ".*" + more
}

// packagesOf are the packages of services, types or methods, each once, sorted.
func packagesOf(names []string) []string {
	var list []string
	for _, name := range names {
		if name = packageOf(name); name != "" {
			list = append(list, name)
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// packageOf is the package of a full name.
func packageOf(name string) string {
	name = strings.TrimPrefix(name, ".")
	return name[:max(strings.LastIndexByte(name, '.'), 0)]
}

// isCapture reports whether a file is a capture rather than definitions.
func isCapture(name string) bool {
	head, err := FirstBytes(name)
	return err == nil && bytes.HasPrefix(head, []byte("SQLite format 3\x00"))
}

// needKept loads the definitions that a capture keeps.
func (a *App) needKept(ctx context.Context, name string) (*schema.Schema, error) {
	c, err := a.OpenCapture(name)
	if err != nil {
		return nil, err
	}
	c.Close()
	s, err := a.KeptDefinitions(ctx, name)
	if s == nil && err == nil && ctx.Err() == nil {
		err = Fail(ExitInput, fmt.Errorf("%s keeps no definitions", name), "'unwire use DIR "+name+"' has it keep some")
	}
	return s, cmp.Or(err, ctx.Err())
}

// KeptDefinitions loads the definitions that the first of captures keeps; nil if none does.
func (a *App) KeptDefinitions(ctx context.Context, captures ...string) (*schema.Schema, error) {
	for _, name := range captures {
		file := query.ParseAddress(name).File
		if info, err := os.Stat(file); err != nil || !info.Mode().IsRegular() {
			continue
		}
		c, err := a.OpenCapture(file)
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

// FrameType is the message type of a call's frames in one direction, or nil.
func FrameType(s *schema.Schema, call decode.Call, dir captures.Direction) protoreflect.MessageDescriptor {
	if s == nil {
		return nil
	}
	return s.FrameType(call, dir)
}

// LoadSource loads definitions from what a user named, a capture that keeps some too.
func (a *App) LoadSource(ctx context.Context, name string) (*schema.Schema, error) {
	if isCapture(name) {
		return a.needKept(ctx, name)
	}
	defer CollectLess(definitionsMemory)()
	s, err := schema.LoadSource(ctx, name)
	return s, SourceError(name, err)
}

// ExportRules are those of the built-in definitions, whatever names the export
// has, and of others for what these do not know.
func (a *App) ExportRules(ctx context.Context, defs *schema.Schema) (*secret.Rules, error) {
	builtIn, err := a.BuiltIn(ctx)
	if err != nil {
		return nil, err
	}
	rules := a.SecretRules(builtIn)
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
func (a *App) SecretRules(defs *schema.Schema) *secret.Rules {
	r := &secret.Rules{Fields: make(map[protoreflect.FullName]bool)}
	if defs == nil {
		return r
	}
	subject := a.Profile()
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
