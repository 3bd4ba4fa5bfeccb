// Package bundle extracts protobuf definitions from JavaScript: from the output of code generators as it is
// shipped, bundled and minified. It parses scripts but never executes them.
//
// e := bundle.New()
// err := e.Add(ctx, "main.js", src) // any number of scripts that belong together
// r, err := e.Result(ctx)           // r.Files are descriptors
//
// A script is tokenized as a whole, and its brackets are matched. Expressions are parsed around anchors only,
// which are words that survive minification. Names in them are followed through scopes, constants, and the
// modules and exports of bundlers. Since no grammar applies to the whole script, a syntax error affects only its
// surroundings. A budget limits the work for one script.
//
// Each code generator has its own files: protobuf-es 1 and 2 with Connect's services, protobuf-ts, ts-proto,
// protobufjs (static code, reflection JSON, and the JSON of versions up to 5), JSPB, pbf, protocol-buffers,
// protons, protoc-gen-ts, and the service definitions of gRPC. Static code and ts-proto share the reading of
// encoders; pbf, protocol-buffers and protons that of decoders (fieldcases.go in package jstree). Package jstree
// reads JavaScript. What the readers find is collected in package model, which converts it to descriptors.
// Package schema/extract uses this package and merges the files.
package bundle

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"slices"

	"unwire/schema/bundle/jstree"

	"unwire/schema/bundle/model"

	"google.golang.org/protobuf/types/descriptorpb"

	"unwire/schema/bundle/lexer"
)

// MaxScript is the maximum size of a script in bytes.
const MaxScript = 256 << 20

// ErrTooLarge is wrapped by the error for a script of more than MaxScript bytes.
var ErrTooLarge = errors.New("the script is too large")

// A Result has the protobuf definitions that were extracted from a set of scripts.
//
// Shape: each of Files has one package and no dependencies: references are full names with a leading dot. Two
// files of the same package differ in their syntax.
type Result struct {
	// Files are the extracted file descriptors.
	Files []*descriptorpb.FileDescriptorProto
	// Forms are the names of the code generators whose output was recognized, such as that of protobuf-es.
	Forms []string
	// Notes maps the full names of messages, fields and other elements to their comments.
	Notes map[string]string
	// Unresolved lists the elements whose definitions are incomplete, with the reason.
	Unresolved []model.Unresolved
}

// Codegens returns the names of all code generators whose output this package recognizes.
func Codegens() []string {
	return []string{
		model.FormES1, model.FormES2, model.FormConnect, model.FormPBTS, model.FormReflection, model.FormPBJS, model.FormTSProto, model.FormJSPB, model.FormGRPC, model.FormPBF, model.FormCompact, model.FormProtons, model.FormGenTS, model.FormBuilder,
	}
}

// An Extractor collects the definitions of scripts that belong together, because one script may refer to a type
// of another. Make one with New.
type Extractor struct {
	// Definitions are the messages, enums, services and descriptors that were extracted so far.
	model.Definitions
	// Meter limits the memory of the extracted definitions. If it is exceeded, Add returns its error.
	Meter model.Meter
	// forms are the names of the code generators recognized so far.
	forms map[string]bool

	// nameless counts how often each invented type name was used, to make the next one unique.
	nameless map[string]int

	// copies maps the hash of a script's content to the first script with it, so that an identical copy
	// need not be read again.
	copies map[[sha256.Size]byte]string
	// scalars maps the names of scalar types to their numbers in FieldDescriptorProto.Type.
	scalars map[string]int64
}

// New returns an Extractor to which scripts can be added.
func New() *Extractor {
	return &Extractor{Definitions: model.Definitions{Outlets: map[string]model.Outlets{}}, forms: map[string]bool{}, nameless: map[string]int{}, copies: map[[sha256.Size]byte]string{}, scalars: scalarNames()}
}

// Add extracts the definitions of a script; name is its path. An identical copy of an earlier script is not
// read again, unless it has relative imports, which depend on the path.
//
// Limits: MaxScript.
// Errors: ErrTooLarge, those of Meter.Spend, and the context's. Text that is not JavaScript is not an error.
func (e *Extractor) Add(ctx context.Context, name string, src []byte) error {
	if len(src) > MaxScript {
		return fmt.Errorf("bundle: %s: %w: it has %d bytes, and unwire reads at most %d", name, ErrTooLarge, len(src), MaxScript)
	}

	// Packages often contain several copies of a script; one of them is enough.
	sum := sha256.Sum256(src)
	if first, ok := e.copies[sum]; ok {
		if out, ok := e.Outlets[first]; ok {
			e.Outlets[name] = out
		}
		return nil
	}
	s := jstree.Tokenize(ctx, name, src)
	if err := ctx.Err(); err != nil {
		return err
	}

	// Most scripts have no output of code generators, and end here.
	if !s.HasAnchor() && !s.Reexports() {
		e.copies[sum] = name
		return nil
	}
	s.Bind()
	x := &scan{Script: s, scalars: e.scalars, forms: e.forms, tsEnums: map[string]bool{}, tsEnumIDs: map[int32]bool{}, nameless: e.nameless, exported: map[int32]string{}, meter: &e.Meter}
	for _, read := range []func(){x.es1, x.es2, x.protobufTS, x.reflection, x.staticJS, x.jspb, x.pbf, x.compact, x.protons, x.genTS, x.builderJSON, x.grpcMethods} {
		read()
		x.meter.ClaimFields(&x.Found)
		if err := errors.Join(e.Meter.Refused, ctx.Err()); err != nil {
			return err
		}
	}

	x.packageOfServices()
	out := x.link()
	x.reportShortage()
	x.foldEntries()
	if err := ctx.Err(); err != nil {
		return err
	}
	if !out.Empty() {
		e.Outlets[name] = out
	}

	// Relative imports depend on the script's folder, so only a script without them can stand for its
	// copies.
	if !out.Imports() && !slices.ContainsFunc(x.Refs, func(r *model.Ref) bool { return r.Module != "" }) {
		e.copies[sum] = name
	}

	e.Messages = append(e.Messages, x.Messages...)
	e.Enums = append(e.Enums, x.Enums...)
	e.Services = append(e.Services, x.Services...)
	e.Extensions = append(e.Extensions, x.Extensions...)
	e.Refs = append(e.Refs, x.Refs...)
	e.Open = append(e.Open, x.Open...)
	for _, f := range x.files {
		e.Files = append(e.Files, f)
		e.From = append(e.From, name)
	}
	return nil
}

// Result returns the definitions of all scripts.
//
// Errors: the context's.
func (e *Extractor) Result(ctx context.Context) (*Result, error) {
	d := e.Definitions.Build(ctx)
	r := &Result{Files: d.Files, Notes: d.Notes, Unresolved: d.Open, Forms: slices.Sorted(maps.Keys(e.forms))}
	return r, ctx.Err()
}

// Empty reports whether no definitions were found so far.
func (e *Extractor) Empty() bool {
	return len(e.Files)+len(e.Messages)+len(e.Enums)+len(e.Services)+len(e.Extensions) == 0
}

// A scan is the state of extracting definitions from one script.
type scan struct {
	// Script is the script, split into tokens, with methods to analyse it.
	*jstree.Script

	// Found has the messages, enums and services that were found in the script so far.
	model.Found
	// scalars maps the names of scalar types to their numbers in FieldDescriptorProto.Type.
	scalars map[string]int64

	// tsEnums are the full names of ts-proto enums already extracted.
	tsEnums map[string]bool

	// tsEnumIDs are the indices of the tokens that refer to ts-proto enums.
	tsEnumIDs map[int32]bool

	// nameless counts how often each name was invented for a ts-proto message without a name.
	nameless map[string]int

	// unpacked is set if the ts-proto output does not contain the name of its protobuf package.
	unpacked bool

	// exported caches the protobuf namespace that each module of google-protobuf code exports. The key is the
	// bracket of the module's body.
	exported map[int32]string

	// getters maps the function that creates oneof getters (its token) to the tokens of its calls.
	getters map[int32][]int32

	// fixed, if set, is reported as the place of all definitions, because the script is inside a string of
	// another script.
	fixed *model.Place
	// forms collects the names of the code generators whose output was recognized.
	forms map[string]bool
	// files are complete file descriptors that are embedded in the script.
	files []*descriptorpb.FileDescriptorProto

	// meter is the Extractor's limit on memory.
	meter *model.Meter
}

// place returns the file, line and column of the token with index at.
func (x *scan) place(at int32) model.Place {
	if x.fixed != nil {
		return *x.fixed
	}
	p := model.Place{File: x.Name}
	if at >= 0 && int(at) < len(x.Toks) {
		off := x.SourceOffset(x.Tok(at).Start)
		p.Line, p.Column = x.Script.Place(off)
		p.Offset = int(off)
	}
	return p
}

// def creates a definition (message, enum or service) that begins at the token with index at. full is its full
// protobuf name, form the code generator, and ids the tokens that refer to the definition.
func (x *scan) def(full, form string, at int32, ids []int32) model.Def {
	x.forms[form] = true
	x.ClaimMemory(at, jstree.DefinitionMemory+len(full))
	if !x.meter.ClaimType(full) || !x.meter.ClaimFields(&x.Found) {
		x.Stop()
	}
	return model.Def{Full: full, Form: form, Place: x.place(at), IDs: ids}
}

// unresolved records an element (by its full name) whose definition is incomplete, with the reason. at is the
// token's index.
func (x *scan) unresolved(element string, at int32, reason string) {
	x.Open = append(x.Open, model.Unresolved{Element: element, Place: x.place(at), Reason: reason})
}

// ref returns a reference to the protobuf type that a JavaScript expression denotes, and records it in x.Refs.
func (x *scan) ref(n *jstree.Node) *model.Ref {
	t := x.Follow(n)
	r := &model.Ref{IDs: t.IDs, Chain: chain(n), Place: x.place(n.At)}
	if t.End != nil {
		r.IDs = append(r.IDs, t.End.At)
		r.Local = t.End.Str
	}
	if n.Kind == jstree.MemberNode || r.Local == "" {
		r.Local = n.Str
	}
	if r.Local == "" && n.Kind == jstree.CallNode {
		r.Local = jstree.Last(n.Kids[0]).Str
	}

	if b, ok := x.Lookup(n.At, n.Str); n.Kind == jstree.IdentNode && ok && b.Kind == jstree.BindImport {
		r.Local = x.Text(b.Arg)
	}
	r.Module, r.Local = x.imported(n, r.Local)

	// The import has another name here: var a = imported
	if r.Module == "" && t.End != nil && t.End.Kind == jstree.IdentNode {
		if b, ok := x.Lookup(t.End.At, t.End.Str); ok && b.Kind == jstree.BindImport {
			r.Module, r.Local = x.imported(t.End, x.Text(b.Arg))
		}
	}

	// The type is in a webpack module of another script.
	if key, name := x.loads(t.End); r.Module == "" && key != "" {
		r.Loaded, r.Local = key, name
	}
	x.Refs = append(x.Refs, r)
	return r
}

// imported returns the JavaScript module from which the first identifier of an expression is imported or
// required, or "" if it is not imported. name is the name, within that module, of the value that is called word
// here.
func (x *scan) imported(n *jstree.Node, word string) (module, name string) {
	s := x.Script
	for n.Kind == jstree.MemberNode {
		n = n.Kids[0]
	}
	b, ok := s.Lookup(n.At, n.Str)
	if n.Kind != jstree.IdentNode || !ok || b.Init < 0 {
		return "", word
	}
	if b.Kind == jstree.BindImport {
		return lexer.Unquote(s.Text(b.Init)), word
	}

	if b.Kind != jstree.BindVar && b.Kind != jstree.BindProp {
		return "", word
	}
	call := s.Expr(b.Init)

	// Calls may be nested, as in __importStar(require("…")).
	for range 3 {
		if call.Kind != jstree.CallNode || len(call.Kids) < 2 {
			return "", word
		}
		if f := call.Kids[0]; f.Kind == jstree.IdentNode && f.Str == "require" && call.Kids[1].Kind == jstree.StringNode {
			if b.Kind == jstree.BindProp && word == n.Str {
				word = s.Text(b.Arg)
			}
			return call.Kids[1].Str, word
		}
		call = call.Kids[1]
	}
	return "", word
}

// link connects the references to types in a script with its definitions, releases the tokens, and returns the
// exports of the script.
func (x *scan) link() model.Outlets {
	by := map[int32]*model.Def{}
	for _, d := range x.Found.Defs() {
		for _, id := range d.IDs {
			by[id] = d
		}
		d.IDs = nil
	}
	out := x.gather(by)
	for _, r := range x.Refs {
		// The first token on the way that stands for a definition decides.
		for _, id := range r.IDs {
			if r.To == nil {
				r.To = by[id]
			}
		}
		r.IDs = nil
	}
	return out
}

// reportShortage records an unresolved element if the budget for the script was exceeded.
func (x *scan) reportShortage() {
	if x.Short != nil {
		x.unresolved("", x.Short.At, x.Short.Reason+"; the rest of the script is not resolved")
	}
}
