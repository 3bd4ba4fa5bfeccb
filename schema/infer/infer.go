// Package infer makes definitions from traffic.
//
// It works in two steps. Evidence is a bounded, mergeable summary of what was seen of each
// field and each method: Gather collects it from captures, GatherMessages from files of
// messages. It can be written as JSON and merged; a set of sources keeps an input from
// being counted twice. Readings that a user chose are part of it.
//
// Infer turns evidence into definitions with probabilities. The messages at one place in
// the traffic form a class; classes that are similar are unified, after a trial that all
// their fields fit. A class can also be a mixture of several types. Then a field's label is
// decided, and which fields are in a map or in a oneof, which classes are well-known
// types or wrappers, and which field holds a JSON document. The writer writes .proto
// files, with examples and with the doubts that are left and what would settle them.
//
// What a single field is, package kind decides. Package check compares the result with
// more traffic, and package update adds it to existing files.
//
// Source: schema/README.md#inference
package infer

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"unwire/captures"
	"unwire/captures/profile"
	"unwire/decode/kind"
	"unwire/decode/wire"
	"unwire/schema"
)

// Options of Infer. The zero value is the default.
type Options struct {
	// Package is the package of everything inferred. Default: each service's
	// own package, a file for each, and "inferred" for roots that are no method's.
	Package string
	// Profile has secrets that examples must not show; nil has none.
	Profile *profile.Profile
	// Root renames the only root that is no method's. Default: its own name.
	Root string
}

// defaultPackage is the package of roots that no service gives one.
const defaultPackage = "inferred"

// Inferred is what Infer makes of evidence.
type Inferred struct {
	// Files holds self-contained proto3 files by their path below an import root.
	Files map[string]string
	// Schema is Files compiled.
	Schema *schema.Schema
	// Fields tells how sure each field is, in the order of the definitions.
	Fields []FieldEvidence
	// Mixtures are the messages that seem to be of more than one type.
	Mixtures []Mixture
	// Roots maps the roots of Evidence to full message names.
	Roots map[string]string
	// Truncated says that fields were forgotten for want of room.
	Truncated bool
	// Deep says that messages at the bound of depth were not looked into.
	Deep bool

	// JSON are the messages that were added for messages in JSON.
	JSON []JSONMessage

	evidence *Evidence
	profile  *profile.Profile
}

// FieldEvidence is the judgement of one field, in the contract's shape.
type FieldEvidence struct {
	Message string `json:"message"`
	Number  int32  `json:"number"`

	// messages of the type
	Samples int64 `json:"samples"`

	// of them, with the field
	Seen        int64     `json:"seen"`
	Occurrences int64     `json:"occurrences"`
	Kind        wire.Kind `json:"kind"`
	Type        string    `json:"type"`
	Label       string    `json:"label"`
	Oneof       string    `json:"oneof"`

	// of the kind
	P float64 `json:"p"`

	// of the type among those of the kind
	TypeP float64 `json:"type_p"`

	// of the label
	LabelP       float64            `json:"label_p"`
	Alternatives []kind.Alternative `json:"alternatives"`
	Settle       string             `json:"settle"`

	// what the values say
	Note  string     `json:"note,omitempty"`
	Known *knownType `json:"well_known,omitempty"`
}

// Text returns the only file, or an error that names the files there are.
func (in *Inferred) Text() (string, error) {
	if len(in.Files) != 1 {
		return "", fmt.Errorf("schema: the evidence is of %d packages (%s): choose one package for all", len(in.Files), strings.Join(slices.Sorted(maps.Keys(in.Files)), ", "))
	}
	for _, text := range in.Files {
		return text, nil
	}
	return "", nil
}

// WriteEvidence writes the contract's evidence list, and behind it the evidence
// itself, which ReadEvidence reads and Merge merges.
func (in *Inferred) WriteEvidence(w io.Writer) error {
	fields := in.Fields
	if fields == nil {
		fields = []FieldEvidence{}
	}
	list, err := json.MarshalIndent(fields, " ", " ")
	if err != nil {
		return fmt.Errorf("schema: %w", err)
	}
	mixtures := in.Mixtures
	if mixtures == nil {
		mixtures = []Mixture{}
	}
	mixed, err := json.Marshal(mixtures)
	if err != nil {
		return fmt.Errorf("schema: %w", err)
	}
	b, err := json.Marshal(in.evidence.doc(in.profile))
	if err != nil {
		return fmt.Errorf("schema: %w", err)
	}
	messages := ""
	if len(in.JSON) > 0 {
		list, err := json.MarshalIndent(in.JSON, " ", " ")
		if err != nil {
			return fmt.Errorf("schema: %w", err)
		}
		messages = fmt.Sprintf(" \"json_messages\": %s,\n", list)
	}
	if _, err := fmt.Fprintf(w, "{\n \"v\": 1,\n \"fields\": %s,\n \"mixed\": %s,\n%s \"evidence\": %s\n}\n", list, mixed, messages, b); err != nil {
		return fmt.Errorf("schema: %w", err)
	}
	return nil
}

// Infer makes definitions of evidence: the most likely reading of every field,
// such that every sample parses and no field of it is left over.
//
// Exceptions, which stay unknown fields: groups, numbers that definitions may
// not use (19000 to 19999), occurrences whose wire type contradicts that of
// most, and what Evidence had no room for. Comments tell of each.
//
// Limits: those of Evidence; the work is proportional to its fields.
// Errors: Root where it cannot be applied, a package that is no name.
// Source: schema/README.md#inference
func Infer(ev *Evidence, o Options) (*Inferred, error) {
	if o.Package != "" && cleanPackage(o.Package) != o.Package {
		return nil, fmt.Errorf("schema: %q is no package name", o.Package)
	}
	files, err := planFiles(ev, o)
	if err != nil {
		return nil, err
	}
	in := &Inferred{Files: map[string]string{}, Roots: map[string]string{}, Truncated: ev.kinds.Truncated(), evidence: ev, profile: o.Profile}
	for _, f := range files {
		f.infer(ev, in)
	}
	if in.Schema, err = schema.FromTexts(in.Files); err != nil {
		return nil, fmt.Errorf("schema: the inferred definitions do not compile, which is a defect of unwire: %w", err)
	}
	return in, nil
}

// A plan is one file to be: its package, its services and the roots that belong to it.
type plan struct {
	pkg, path string
	services  []*service

	// sorted keys of Evidence.roots
	roots []string

	// of roots
	names map[string]string

	// names in the package's scope
	claimed map[string]bool

	// of all files, with their parents: a message must not be called like one
	packages map[string]bool
}

type service struct {
	name, full string
	methods    []*method
}

type method struct {
	name     string
	evidence *methodEvidence
	root     [2]string // by direction
}

// planFiles assigns methods and roots to files and gives them names.
func planFiles(ev *Evidence, o Options) ([]*plan, error) {
	plans := map[string]*plan{}
	packages := packagesOf(ev, o)
	at := func(pkg string) *plan {
		p := plans[pkg]
		if p == nil {
			p = &plan{pkg: pkg, path: strings.ReplaceAll(pkg, ".", "/") + "/inferred.proto", names: map[string]string{}, claimed: map[string]bool{}, packages: packages}
			p.path = strings.TrimPrefix(p.path, "/")
			plans[pkg] = p
		}
		return p
	}
	planServices(ev, o, at)
	var plain []string
	for _, root := range ev.Roots() {
		if _, _, _, ok := splitRoot(root); !ok {
			plain = append(plain, root)
		}
	}
	if o.Root != "" {
		if len(plain) != 1 {
			return nil, fmt.Errorf("schema: root %q: there are %d root types to name", o.Root, len(plain))
		}
		if cleanName(o.Root) != o.Root {
			return nil, fmt.Errorf("schema: root %q is no message name", o.Root)
		}
	}
	for _, root := range plain {
		p := at(cmp.Or(o.Package, defaultPackage))
		p.roots = append(p.roots, root)
		p.names[root] = p.uniqueName(cleanName(cmp.Or(o.Root, root)))
	}
	list := make([]*plan, 0, len(plans))
	for _, pkg := range slices.Sorted(maps.Keys(plans)) {
		p := plans[pkg]
		slices.Sort(p.roots)
		list = append(list, p)
	}
	return list, nil
}

// packagesOf returns the packages of all files and the packages that enclose them.
func packagesOf(ev *Evidence, o Options) map[string]bool {
	all := map[string]bool{}
	add := func(pkg string) {
		for ; pkg != "" && !all[pkg]; pkg = pkg[:max(strings.LastIndexByte(pkg, '.'), 0)] {
			all[pkg] = true
		}
	}
	add(cmp.Or(o.Package, defaultPackage))
	for name := range ev.methods {
		full, _, _ := strings.Cut(name, "/")
		pkg, _ := packageOf(full, o)
		add(pkg)
	}
	return all
}

func planServices(ev *Evidence, o Options, at func(string) *plan) {
	services := map[string]*service{}
	rpcs := map[string]map[string]int{} // package, rpc: in how many services
	var order []string
	for _, name := range slices.Sorted(maps.Keys(ev.methods)) {
		full, rpc, _ := strings.Cut(name, "/")
		pkg, base := packageOf(full, o)
		s := services[full]
		if s == nil {
			s = &service{name: at(pkg).uniqueName(cleanName(base)), full: full}
			services[full] = s
			order = append(order, full)
			at(pkg).services = append(at(pkg).services, s)
		}
		rpc = cleanName(rpc)
		for slices.ContainsFunc(s.methods, func(m *method) bool { return m.name == rpc }) {
			rpc += "_"
		}
		m := &method{name: rpc, evidence: ev.methods[name]}
		for _, dir := range []captures.Direction{captures.Up, captures.Down} {
			m.root[dir] = methodRoot(name, dir)
		}
		s.methods = append(s.methods, m)
		if rpcs[pkg] == nil {
			rpcs[pkg] = map[string]int{}
		}
		rpcs[pkg][rpc]++
	}
	for _, full := range order {
		pkg, _ := packageOf(full, o)
		p, s := at(pkg), services[full]
		for _, m := range s.methods {
			name := m.name
			if rpcs[pkg][name] > 1 {
				name = s.name + name
			}
			for dir, suffix := range []string{"Request", "Response"} {
				p.roots = append(p.roots, m.root[dir])
				p.names[m.root[dir]] = p.uniqueName(UpperFirst(name) + suffix)
			}
		}
	}
}

// packageOf splits a service's full name into package and name.
func packageOf(full string, o Options) (pkg, base string) {
	i := strings.LastIndexByte(full, '.')
	pkg, base = cleanPackage(full[:max(i, 0)]), full[i+1:]
	if o.Package != "" {
		pkg = o.Package
	}
	return pkg, base
}

// infer writes one file, and the evidence for its fields, to in.
func (p *plan) infer(ev *Evidence, in *Inferred) {
	var seen []string
	for _, root := range p.roots {
		if ev.Root(root) != nil {
			seen = append(seen, root)
		}
	}
	g := newGraph(ev, seen)
	g.unify()
	g.reprice()
	g.documents()
	g.recognise()
	w := &writer{plan: p, classes: map[string]*class{}, in: in, imports: map[string]bool{}, habit: g.habits(), texts: g.vocabulary(), hide: newHider(in.profile)}
	for i, c := range g.roots {
		c = c.find()
		c.name = p.names[seen[i]]
		w.classes[seen[i]] = c
	}
	for _, root := range p.roots {
		full := p.names[root]
		if p.pkg != "" {
			full = p.pkg + "." + full
		}
		in.Roots[root] = full
	}
	in.Files[p.path] = w.file()
}
