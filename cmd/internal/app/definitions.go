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
	"unwire/cmd/internal/reflected"
	"unwire/cmd/internal/term"
	"unwire/decode"
	"unwire/decode/secret"
	"unwire/proto"
	"unwire/replay/outbound"
	"unwire/schema"
	"unwire/schema/extract"
	"unwire/schema/reflection"
	"unwire/schema/wellknown"
)

// definitionsMemory is the heap size in bytes below which garbage is collected less often while protobuf
// definitions are loaded. 10,000 messages of 30 fields take 700 MB.
const definitionsMemory = 1 << 30

// NoDefinitions is the value of --proto that makes a command decode without any protobuf definitions.
const NoDefinitions = "none"

// protoVariable is the environment variable with the default for --proto.
const protoVariable = "UNWIRE_PROTO"

// LoadDefinitions loads the protobuf definitions with which a command decodes captures. name is the value
// of --proto: any source that LoadSource reads, or "none", which returns a nil schema. If name is "", the
// first source that exists is used, in this order: UNWIRE_PROTO, the definitions stored in a capture,
// unwire.yaml, definitions that a server reported by reflection in recorded traffic, and the built-in
// definitions. The built-in ones are used only if the captures contain calls of their packages, or no
// exchange yet. Without any source, the schema is empty. The well-known services are always added.
//
// Elements of captures are paths of captures or addresses such as F.uwc#7; other files are ignored.
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

// NeedDefinitions loads the protobuf definitions that --proto (name) or the captures determine, as LoadDefinitions
// does, for a command that cannot work without definitions. verb completes the error message "cannot … without
// definitions".
//
// Errors: if no definitions apply.
func (a *App) NeedDefinitions(ctx context.Context, name, verb string, captures ...string) (*schema.Schema, error) {
	if named(name) == NoDefinitions {
		return nil, Usagef("--proto none cannot be used: %s needs definitions", verb)
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

// FindDefinitions loads protobuf definitions in the order of LoadDefinitions, for a command whose input names the
// definitions that it needs: types are full names of types, services or methods in that input. The schema is nil if
// no definitions apply to types or to the captures.
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

// withWellKnown adds the well-known services, such as gRPC health checking, to s as a fallback for types
// that s does not define. If s is nil, it returns a schema with only these.
func withWellKnown(s *schema.Schema) *schema.Schema {
	if s == nil {
		s = schema.FromFiles()
	}
	s.SetBase(wellknown.Schema())
	return s
}

// remembered loads the definitions that name (the value of --proto) selects or, if name is "", those that
// UNWIRE_PROTO, the captures or unwire.yaml name or contain. It returns nil if there are none.
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
	s, err := a.KeptDefinitions(ctx, captures...)
	if s == nil && err == nil && a.project != nil {
		s, err = a.projectDefinitions(ctx)
	}
	if s == nil && err == nil {
		s = a.reportedDefinitions(ctx, captures)
	}
	return s, err
}

// reportedDefinitions returns the definitions that a server reported by gRPC server reflection in
// recorded traffic: those of the first capture that has any, or nil. The user did not ask for them, so
// errors are ignored.
func (a *App) reportedDefinitions(ctx context.Context, captures []string) *schema.Schema {
	for _, name := range captures {
		if !isCapture(query.ParseAddress(name).File) {
			continue
		}
		c, err := a.OpenCapture(query.ParseAddress(name).File)
		if err != nil {
			continue
		}
		files, err := c.ReportedDefinitions(ctx, 0)
		c.Close()
		if err != nil || files.Len() == 0 {
			continue
		}
		if s, err := files.Schema(ctx); err == nil {
			return s
		}
	}
	return nil
}

// projectDefinitions loads the definitions that unwire.yaml names; nil if it names none. If several
// sources have a file with the same path, the first one is used.
func (a *App) projectDefinitions(ctx context.Context) (*schema.Schema, error) {
	switch names := a.project.Definitions; len(names) {
	case 0:
		return nil, nil
	case 1:
		s, err := a.LoadSource(ctx, names[0])
		return s, a.projectSourceError(err)
	}
	var files []protoreflect.FileDescriptor
	for _, name := range a.project.Definitions {
		s, err := a.LoadSource(ctx, name)
		if err != nil {
			return nil, a.projectSourceError(err)
		}
		for _, f := range s.Files {
			if !slices.ContainsFunc(files, func(g protoreflect.FileDescriptor) bool { return g.Path() == f.Path() }) {
				files = append(files, f)
			}
		}
	}
	return schema.FromFiles(files...), nil
}

// projectSourceError adds to err that the definitions were named in unwire.yaml. It returns nil for nil.
func (a *App) projectSourceError(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("cannot load the definitions named in %s: %w", a.project.Path, err)
}

// named returns the value of --proto or, if the flag is not set, of UNWIRE_PROTO.
func named(name string) string { return cmp.Or(name, os.Getenv(protoVariable)) }

// Remembered loads the protobuf definitions that --proto (name), the captures or the configuration determine, but
// never the built-in ones. It returns nil if there are none.
func (a *App) Remembered(ctx context.Context, name string, captures ...string) (*schema.Schema, error) {
	if named(name) == NoDefinitions {
		return nil, nil
	}
	return a.remembered(ctx, name, captures)
}

// BuiltIn loads the definitions that are compiled into the program.
func (a *App) BuiltIn(ctx context.Context) (*schema.Schema, error) {
	s, err := schema.Load(context.WithoutCancel(ctx), proto.Files)
	if err != nil {
		return nil, fmt.Errorf("cannot load the built-in definitions: %w", err)
	}
	return s, nil
}

// builtInFor reports whether the built-in definitions cover the package of name, the full name of a
// service, type or method.
func (a *App) builtInFor(name string) bool {
	return a.profile != NoDefinitions && a.Profile().Serves(name)
}

// ShowsProfile reports whether the captures have calls of the profile's service, or the user chose that
// profile by name.
func (a *App) ShowsProfile(ctx context.Context, captures ...string) bool {
	applies, _ := a.builtInForCaptures(ctx, captures)
	return applies
}

// builtInForCaptures reports whether the built-in definitions apply to the captures, and whether the
// captures have any exchange at all.
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

// services yields the full name of the service of each RPC in the captures, and "" for requests that are
// not RPCs. Captures that cannot be read are skipped: the command reports the error when it reads them
// itself.
func services(ctx context.Context, captures []string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for _, name := range captures {
			file := query.ParseAddress(name).File
			if !isCapture(file) {
				continue
			}
			c, err := openCapture(file, nil, nil)
			if err != nil {
				continue
			}
			for service := range c.Methods(ctx) {
				if !yield(service) {
					c.Close()
					return
				}
			}
			c.Close()
		}
	}
}

// definitionsHint is the hint that lists the ways to get definitions.
const definitionsHint = "'unwire schema extract' extracts definitions from a client, and 'unwire schema infer' infers them from traffic. Then name them with --proto, or store them in the capture with 'unwire use'"

// SayUndefined prints which packages of the services s does not define. It prints nothing if s is nil,
// because the user then asked for no definitions.
func (a *App) SayUndefined(s *schema.Schema, services ...string) {
	if text := Undefined(s, services); s != nil && text != "" {
		a.Say("unwire: %s", text)
	}
}

// Undefined returns a sentence that lists the packages of services that a schema does not define; "" if
// it defines all.
func Undefined(s *schema.Schema, services []string) string {
	packages := undefined(s, services)
	if len(packages) == 0 {
		return ""
	}
	return noDefinitions(packages) + ": give definitions with --proto, or extract them with 'unwire schema extract'"
}

// undefined returns the packages of the given services of which s, which may be nil, defines no service.
func undefined(s *schema.Schema, services []string) []string {
	defined := map[string]bool{}
	for _, name := range services {
		if s.Service(name) != nil {
			defined[packageOf(name)] = true
		}
	}
	return slices.DeleteFunc(packagesOf(services), func(name string) bool { return defined[name] })
}

// mostPackages is the largest number of packages that an error message lists.
const mostPackages = 3

// noDefinitions returns the message that there are no definitions for the given packages.
func noDefinitions(packages []string) string {
	if len(packages) == 0 {
		return "there are no definitions, because the input has no calls of a service that unwire knows"
	}
	more := ""
	if n := len(packages) - mostPackages; n > 0 {
		packages, more = packages[:mostPackages], " and "+Counted(n, "more package")
	}
	return "no definitions for " + term.Clean(strings.Join(packages, ".*, ")) + ".*" + more
}

// packagesOf returns the packages of full names of services, types or methods, sorted and without
// duplicates.
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

// packageOf returns the package of a full name, such as "shop.v1" for "shop.v1.Cart".
func packageOf(name string) string {
	name = strings.TrimPrefix(name, ".")
	return name[:max(strings.LastIndexByte(name, '.'), 0)]
}

// isCapture reports whether a file is a SQLite database, and thus a capture and not a file of
// definitions.
func isCapture(name string) bool {
	head, err := FirstBytes(name)
	return err == nil && bytes.HasPrefix(head, []byte("SQLite format 3\x00"))
}

// ofCapture loads the definitions stored in a capture or, if it stores none, those that servers reported
// by reflection in its traffic. name is the path of a capture, or the address of one exchange, whose
// reflection answer is then used.
func (a *App) ofCapture(ctx context.Context, name string) (*schema.Schema, error) {
	addr := query.ParseAddress(name)
	c, err := a.OpenCapture(addr.File)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	if addr.Exchange == 0 {
		if s, err := a.KeptDefinitions(ctx, addr.File); s != nil || err != nil {
			return s, err
		}
	}
	files, err := c.ReportedDefinitions(ctx, addr.Exchange)
	switch {
	case err != nil:
		return nil, fmt.Errorf("%s: %w", name, err)
	case files.Len() == 0 && addr.Exchange != 0:
		return nil, Fail(ExitInput, fmt.Errorf("%s contains no definitions, because the exchange is not an answered call of gRPC server reflection", name), "")
	case files.Len() == 0:
		return nil, Fail(ExitInput, fmt.Errorf("%s contains no definitions", name), "'unwire use DIR "+name+"' stores definitions in it")
	}
	s, err := files.Schema(ctx)
	if err != nil {
		err = Fail(ExitInput, fmt.Errorf("cannot use the definitions that servers reported in %s: %w", name, err), "name the exchange of one server: "+addr.File+"#ID")
	}
	return s, err
}

// KeptDefinitions loads the definitions stored (by 'unwire use') in the first of the captures that stores
// any; nil if none does.
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
			return nil, Fail(ExitInput, fmt.Errorf("cannot load the definitions stored in %s: %w", file, err),
				"use other definitions with --proto, or remove these with 'unwire use --remove "+file+"'")
		}
		if s != nil {
			return s, nil
		}
	}
	return nil, nil
}

// FrameType returns the message type of a call's frames in one direction; nil if s is nil or does not
// define the call.
func FrameType(s *schema.Schema, call decode.Call, dir captures.Direction) protoreflect.MessageDescriptor {
	if s == nil {
		return nil
	}
	return s.FrameType(call, dir)
}

// reflected fetches definitions by gRPC server reflection from the server that name, reflect:URL, names.
func (a *App) reflected(ctx context.Context, name string) (*schema.Schema, error) {
	r, err := a.Reflection.Ask(ctx, name)
	var s *schema.Schema
	if err == nil {
		s, err = r.Files.Schema(ctx)
	}
	switch {
	case err == nil:
		return s, nil
	case errors.As(err, new(*reflected.NameError)):
		return nil, Usagef("%w", err)
	case errors.Is(err, outbound.ErrRefused):
		return nil, Fail(ExitUsage, fmt.Errorf("%s: %w", name, err),
			"'unwire schema extract --live --allow-host HOST -o DIR "+name+"' fetches the definitions from another host")
	case errors.Is(err, reflection.ErrNone):
		return nil, Fail(ExitInput, fmt.Errorf("%s: %w", name, err), "without reflection, 'unwire probe' can find a request's fields through the server's parse errors")
	}
	// The user asked for definitions, so it does not matter how much of the request was sent.
	if failure, ok := errors.AsType[*outbound.Failure](err); ok {
		return nil, fmt.Errorf("%s: %s", name, failure.Message)
	}
	return nil, fmt.Errorf("%s: %w", name, err)
}

// LoadSource loads definitions from a source that the user named: .proto files or descriptor sets, a
// capture that stores definitions or has recorded server reflection, or reflect:URL for a server with
// reflection.
func (a *App) LoadSource(ctx context.Context, name string) (*schema.Schema, error) {
	switch {
	case reflected.Names(name):
		return a.reflected(ctx, name)
	case NamesCapture(name):
		return a.ofCapture(ctx, name)
	}
	defer CollectLess(definitionsMemory)()
	s, err := schema.LoadSource(ctx, name)
	return s, SourceError(name, err)
}

// LoadVersion loads the definitions of one of two client versions to compare. name is a source that LoadSource reads,
// or shipped client code, from which definitions are extracted; progress is called during the extraction.
func (a *App) LoadVersion(ctx context.Context, name string, progress func(extract.Progress)) (*schema.Schema, error) {
	if reflected.Names(name) || NamesCapture(name) {
		return a.LoadSource(ctx, name)
	}
	return schema.LoadVersion(ctx, name, progress)
}

// NamesCapture reports whether an argument is the path of a capture or the address of an exchange, such
// as F.uwc#7.
func NamesCapture(name string) bool {
	if _, err := os.Stat(name); err != nil {
		name = query.ParseAddress(name).File
	}
	return isCapture(name)
}

// ExportRules returns the rules that find secret fields in an export. The built-in definitions are
// always applied; defs is used for the types that they do not define.
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

// SourceError adds to an error of loading the definitions in name a hint about what the user can do. It
// returns other errors unchanged.
func SourceError(name string, err error) error {
	if errors.Is(err, schema.ErrNoSource) {
		return Fail(ExitInput, err, "protoc --descriptor_set_out=FILE --include_imports writes a descriptor set")
	}
	if _, missing := os.Stat(name); missing == nil && errors.Is(err, fs.ErrNotExist) {
		return Fail(ExitInput, err, "name the root folder of the imports; it must contain all imported files")
	}
	return err
}

// SecretRules returns the rules that find the secret fields of messages by their definitions; nil if
// defs is nil.
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
