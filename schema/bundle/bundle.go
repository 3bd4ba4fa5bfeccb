// Package bundle extracts protobuf schemas from JavaScript: from what code generators
// wrote, as it is shipped, bundled and minified. It parses and never executes. Scripts go
// in, and files of descriptors come out, which package schema/extract merges.
//
// A script is tokenized as a whole and its brackets are matched. Around anchors, which are
// words that survive minifiers, expressions are parsed; names in them are dereferenced
// through scopes, constants, and the modules and exports of bundlers. No grammar has to
// hold for the whole script, so broken JavaScript costs what is broken. A budget limits
// the work for one script.
//
// Each code generator has files of its own: protobuf-es 1 and 2 with Connect's services,
// protobuf-ts, ts-proto, protobufjs (static code, reflection JSON), JSPB, and gRPC's service
// definitions; static code and ts-proto share encoders. What they find enters a model of
// messages, enums and services. The builder makes descriptors of it: it merges
// duplicates, resolves references, and restores the spelling of field names.
package bundle

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"google.golang.org/protobuf/types/descriptorpb"

	"unwire/schema/bundle/lexer"
)

// MaxScript bounds the size of a script in bytes.
const MaxScript = 256 << 20

// ErrTooLarge is returned for a script of more than MaxScript bytes.
var ErrTooLarge = errors.New("script too large")

// A Result is what a set of scripts declares.
//
// Shape: Files hold one package each and have no dependencies: references are
// full names that begin with a dot. Two of one package differ in their syntax.
type Result struct {
	Files      []*descriptorpb.FileDescriptorProto
	Forms      []string          // codegens whose output was found
	Notes      map[string]string // by full name: what a comment should say
	Unresolved []Unresolved
}

// Codegens are the names of the codegens that are looked for.
func Codegens() []string {
	return []string{
		formES1, formES2, formConnect, formPBTS, formReflection, formPBJS, formTSProto, formJSPB, formGRPC,
	}
}

// An Extractor collects what scripts declare that belong together: one may
// refer to a type that another declares.
type Extractor struct {
	found
	files []*descriptorpb.FileDescriptorProto
	from  []string // script of each file
	forms map[string]bool

	nameless map[string]int     // by name that was made up: how often
	outlets  map[string]outlets // by script
}

// found are definitions of one script or of several.
type found struct {
	messages   []*message
	enums      []*enum
	services   []*service
	extensions []*field
	refs       []*ref
	open       []Unresolved
}

// New returns an extractor without scripts.
func New() *Extractor {
	return &Extractor{forms: map[string]bool{}, nameless: map[string]int{}, outlets: map[string]outlets{}}
}

// Add reads a script.
//
// Limits: MaxScript.
// Errors: ErrTooLarge, and the context's. What is no JavaScript is no error.
func (e *Extractor) Add(ctx context.Context, name string, src []byte) error {
	if len(src) > MaxScript {
		return fmt.Errorf("bundle: %s: %w: %d bytes, at most %d are read", name, ErrTooLarge, len(src), MaxScript)
	}
	s := tokenize(ctx, name, src)
	if err := ctx.Err(); err != nil {
		return err
	}
	if !s.hasAnchor() && !s.reexports() {
		return nil
	}
	s.bind()
	x := &scan{script: s, scalars: scalarNames(), forms: e.forms, tsEnums: map[string]bool{}, tsEnumIDs: map[int32]bool{}, nameless: e.nameless, exported: map[int32]string{}}
	for _, read := range []func(){x.es1, x.es2, x.protobufTS, x.reflection, x.staticJS, x.jspb, x.grpcMethods} {
		read()
		if err := ctx.Err(); err != nil {
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
	if !out.empty() {
		e.outlets[name] = out
	}
	e.messages = append(e.messages, x.messages...)
	e.enums = append(e.enums, x.enums...)
	e.services = append(e.services, x.services...)
	e.extensions = append(e.extensions, x.extensions...)
	e.refs = append(e.refs, x.refs...)
	e.open = append(e.open, x.open...)
	for _, f := range x.files {
		e.files = append(e.files, f)
		e.from = append(e.from, name)
	}
	return nil
}

// Result returns what the scripts declare together.
//
// Errors: the context's.
func (e *Extractor) Result(ctx context.Context) (*Result, error) {
	b := newBuilder(ctx, e)
	r := &Result{Notes: b.notes}
	r.Files = append(b.build(), e.files...)
	r.Unresolved = append(e.open, b.open...)
	r.Forms = slices.Sorted(maps.Keys(e.forms))
	return r, ctx.Err()
}

// Empty reports whether the scripts declare nothing.
func (e *Extractor) Empty() bool {
	return len(e.files)+len(e.messages)+len(e.enums)+len(e.services)+len(e.extensions) == 0
}

func (s *script) hasAnchor() bool {
	for _, list := range s.anchors {
		if len(list) > 0 {
			return true
		}
	}
	return false
}

// A scan reads one script.
type scan struct {
	*script
	found
	scalars map[string]int64

	// that were read
	tsEnums map[string]bool

	// what stands for enums of ts-proto
	tsEnumIDs map[int32]bool

	// names made up for messages of ts-proto
	nameless map[string]int

	// of ts-proto, without a package
	unpacked bool

	// by module of google-protobuf's code: its package
	exported map[int32]string

	// getters of oneofs, by the function that makes them
	getters map[int32][]int32

	// of all, where the script is in a string of another
	fixed *Place
	forms map[string]bool
	files []*descriptorpb.FileDescriptorProto
}

func (x *scan) place(at int32) Place {
	if x.fixed != nil {
		return *x.fixed
	}
	p := Place{File: x.name}
	if at >= 0 && int(at) < len(x.toks) {
		off := x.sourceOffset(x.tok(at).start)
		p.Line, p.Column = x.script.place(off)
		p.Offset = int(off)
	}
	return p
}

func (x *scan) def(full, form string, at int32, ids []int32) def {
	x.forms[form] = true
	x.claimMemory(at, definitionMemory+len(full))
	return def{full: full, form: form, place: x.place(at), ids: ids, script: x.script}
}

func (x *scan) unresolved(element string, at int32, reason string) {
	x.open = append(x.open, Unresolved{element, x.place(at), reason})
}

// ref returns a reference to the type that an expression stands for.
func (x *scan) ref(n *node) *ref {
	t := x.follow(n)
	r := &ref{ids: t.ids, chain: chain(n), place: x.place(n.at)}
	if t.end != nil {
		r.ids = append(r.ids, t.end.at)
		r.local = t.end.str
	}
	if n.kind == nMember || r.local == "" {
		r.local = n.str
	}
	if r.local == "" && n.kind == nCall {
		r.local = last(n.kids[0]).str
	}
	if b, ok := x.lookup(n.at, n.str); n.kind == nIdent && ok && b.kind == bindImport {
		r.local = x.text(b.arg)
	}
	r.module, r.local = x.imported(n, r.local)
	// by another name: var a = imported
	if r.module == "" && t.end != nil && t.end.kind == nIdent {
		if b, ok := x.lookup(t.end.at, t.end.str); ok && b.kind == bindImport {
			r.module, r.local = x.imported(t.end, x.text(b.arg))
		}
	}
	if key, name := x.loads(t.end); r.module == "" && key != "" {
		r.loaded, r.local = key, name
	}
	x.refs = append(x.refs, r)
	return r
}

// imported returns the module that the first name of an expression is imported
// or required from, or "", and the name there of what the expression stands for.
func (x *scan) imported(n *node, word string) (module, name string) {
	s := x.script
	for n.kind == nMember {
		n = n.kids[0]
	}
	b, ok := s.lookup(n.at, n.str)
	if n.kind != nIdent || !ok || b.init < 0 {
		return "", word
	}
	if b.kind == bindImport {
		return lexer.Unquote(s.text(b.init)), word
	}
	if b.kind != bindVar && b.kind != bindProp {
		return "", word
	}
	call := s.expr(b.init)
	for range 3 { // __importStar(require("…"))
		if call.kind != nCall || len(call.kids) < 2 {
			return "", word
		}
		if f := call.kids[0]; f.kind == nIdent && f.str == "require" && call.kids[1].kind == nString {
			if b.kind == bindProp && word == n.str {
				word = s.text(b.arg)
			}
			return call.kids[1].str, word
		}
		call = call.kids[1]
	}
	return "", word
}

// link resolves the references of a script by what stands for its definitions,
// lets go of the script, and returns what it exports.
func (x *scan) link() outlets {
	by := map[int32]*def{}
	for _, d := range x.found.defs() {
		for _, id := range d.ids {
			by[id] = d
		}
		d.script, d.ids = nil, nil
	}
	out := x.gather(by)
	for _, r := range x.refs {
		for _, id := range r.ids {
			if r.to == nil {
				r.to = by[id]
			}
		}
		r.ids = nil
	}
	return out
}

// defs are the types among the definitions.
func (f *found) defs() []*def {
	var list []*def
	for _, m := range f.messages {
		list = append(list, &m.def)
	}
	for _, e := range f.enums {
		list = append(list, &e.def)
	}
	for _, s := range f.services {
		list = append(list, &s.def)
	}
	return list
}
