// Package infer derives protobuf definitions from traffic.
//
// It works in two steps. Gather and GatherMessages summarize samples as Evidence: what values each field of each
// root type had, and how each method was called. Evidence is bounded, can be written as JSON, and merges. Infer
// turns it into an Inferred: .proto files, the same compiled, and a probability for each decision.
//
// ev := infer.NewEvidence()
// err := ev.Add("Greeting", data) // any number of serialized messages
// in, err := infer.Infer(ev, infer.Options{})
// text, err := in.Text() // a .proto file
//
// Infer groups the messages at each place of the traffic into classes and unifies similar classes with
// union-find, after a trial which shows that no field contradicts it. Then it decides labels, maps, oneofs,
// well-known types and wrappers. Each comment in the resulting file gives the evidence, the confidence, and what
// observation would settle a doubt.
//
// Package decode/kind decides how a single field is read. Package check validates more traffic against the
// result, and package update merges it into existing files. The schema and decoding commands use this package.
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

// Options are the options of Infer. The zero value works.
type Options struct {
	// Package is the protobuf package of all definitions. Default: the package of each service, with one file
	// for each package, and "inferred" for message types that belong to no method.
	Package string
	// Profile has the secrets of a client, which must not appear in examples. nil means none.
	Profile *profile.Profile
	// Verbose adds the probabilities and the evidence to the comment of every field, not only of doubtful ones.
	Verbose bool
	// Root renames the only message type that belongs to no method; there must be exactly one. Default: it
	// keeps its name.
	Root string
}

// defaultPackage is the package of root types that belong to no method.
const defaultPackage = "inferred"

// Inferred is the result of Infer: .proto files and the evidence for them.
type Inferred struct {
	// Files are the texts of proto3 files, by path relative to an import root. None imports another, except for
	// well-known types.
	Files map[string]string
	// Schema is the compiled form of Files.
	Schema *schema.Schema
	// Fields has the inferred declaration of each field with its probabilities, in the order of the
	// definitions.
	Fields []FieldEvidence
	// Mixtures lists message types whose messages probably belong to several types.
	Mixtures []Mixture
	// Roots maps the root types of the evidence (types of whole messages) to the full names of the inferred
	// messages.
	Roots map[string]string
	// Truncated is set if the evidence reached a limit, so that fields are missing.
	Truncated bool
	// Deep is set if messages were nested too deeply, so that their inner fields were not examined.
	Deep bool

	// JSON are the message types that package messages added for traffic in JSON.
	JSON []JSONMessage

	// evidence is the Evidence from which the definitions were inferred.
	evidence *Evidence
	// profile has the secrets that WriteEvidence removes. It may be nil.
	profile *profile.Profile
}

// FieldEvidence is the inferred declaration of one field, with the evidence for it. It is part of the JSON
// output, which changes only compatibly.
type FieldEvidence struct {
	// Message is the full name of the message type that has the field.
	Message string `json:"message"`
	// Number is the field number.
	Number int32 `json:"number"`

	// Samples is the number of recorded messages of that type.
	Samples int64 `json:"samples"`

	// Seen is the number of messages that contain the field.
	Seen int64 `json:"seen"`
	// Occurrences is the number of values of the field in all messages.
	Occurrences int64 `json:"occurrences"`
	// Kind is the inferred kind of the field's values, such as string or varint.
	Kind wire.Kind `json:"kind"`
	// Type is the inferred type, as declared in the .proto file.
	Type string `json:"type"`
	// Label is Singular, Optional, Repeated or Map.
	Label string `json:"label"`
	// Oneof is the name of the oneof that contains the field, or "".
	Oneof string `json:"oneof"`

	// P is the probability of Kind, from 0 to 1.
	P float64 `json:"p"`

	// TypeP is the probability of Type among the types of that kind, from 0 to 1.
	TypeP float64 `json:"type_p"`

	// LabelP is the probability of Label, from 0 to 1.
	LabelP float64 `json:"label_p"`
	// Alternatives are other kinds with their probabilities, most likely first.
	Alternatives []kind.Alternative `json:"alternatives"`
	// Settle describes a further observation that would resolve the doubts, or is "".
	Settle string `json:"settle"`

	// Suggested is a field name derived from the values, or "".
	Suggested string `json:"suggested,omitempty"`

	// Note describes the values, for example their range, or is "".
	Note string `json:"note,omitempty"`
	// Known is the well-known type that the field's message may be of, or nil.
	Known *knownType `json:"well_known,omitempty"`
}

// Text returns the text of the only .proto file. It is an error if there are several; the error names them.
func (in *Inferred) Text() (string, error) {
	if len(in.Files) != 1 {
		return "", fmt.Errorf("schema: the definitions have %d packages (%s), which do not fit into one file", len(in.Files), strings.Join(slices.Sorted(maps.Keys(in.Files)), ", "))
	}
	for _, text := range in.Files {
		return text, nil
	}
	return "", nil
}

// WriteEvidence writes a JSON object with the list of fields and, in another member, the evidence, which
// ReadEvidence reads.
func (in *Inferred) WriteEvidence(w io.Writer) error {
	fields := in.Fields

	// Lists are [] in JSON, not null.
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

	// JSON messages are rare, so files without them have no such member.
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

// Infer derives definitions from evidence. For each field, it declares the most likely type with which all
// recorded messages can be parsed.
//
// Some fields are not declared nevertheless: groups, reserved numbers (19000 to 19999), occurrences whose wire
// type contradicts that of most, and fields that the limits of Evidence excluded. Comments in the files name
// them.
//
// Limits: those of Evidence. The time is proportional to the number of fields.
// Errors: Options.Root does not apply, or Options.Package is not a package name.
// Source: schema/README.md#inference
func Infer(ev *Evidence, o Options) (*Inferred, error) {
	if o.Package != "" && cleanPackage(o.Package) != o.Package {
		return nil, fmt.Errorf("schema: %q is not a package name", o.Package)
	}
	files, err := planFiles(ev, o)
	if err != nil {
		return nil, err
	}
	in := &Inferred{Files: map[string]string{}, Roots: map[string]string{}, Truncated: ev.kinds.Truncated(), evidence: ev, profile: o.Profile}
	for _, f := range files {
		f.infer(ev, in, o)
	}
	if in.Schema, err = schema.FromTexts(in.Files); err != nil {
		return nil, fmt.Errorf("schema: the inferred definitions do not compile, which is a bug in unwire: %w", err)
	}
	return in, nil
}

// A filePlan is a .proto file to be written, with its services and message types.
type filePlan struct {
	// pkg is the protobuf package, and path the path of the file relative to an import root.
	pkg, path string
	// services are the services of the file.
	services []*service

	// roots are the names of the root types (types of whole messages) of the file, sorted.
	roots []string

	// names maps root types to the simple names of their messages.
	names map[string]string

	// claimed are the names of types that are in use in the package.
	claimed map[string]bool

	// packages are the packages of all files and their parents. A message must not have the same full name.
	packages map[string]bool
}

// A service is an RPC service to be written to a .proto file.
type service struct {
	// name is the identifier in the .proto file, and full the full name in URLs on the wire.
	name, full string
	// methods are the methods, sorted by name.
	methods []*method
}

// A method is an RPC method to be written to a .proto file.
type method struct {
	// name is the name of the method in the .proto file.
	name string
	// evidence summarizes the calls of the method.
	evidence *methodEvidence
	// root has the names of the root types of requests and responses, indexed by captures.Direction.
	root [2]string
}

// planFiles decides which .proto files to write: it assigns methods and root types to files and chooses the
// names of message types.
func planFiles(ev *Evidence, o Options) ([]*filePlan, error) {
	plans := map[string]*filePlan{}
	packages := packagesOf(ev, o)
	at := func(pkg string) *filePlan {
		p := plans[pkg]
		if p == nil {
			p = &filePlan{pkg: pkg, path: strings.ReplaceAll(pkg, ".", "/") + "/inferred.proto", names: map[string]string{}, claimed: map[string]bool{}, packages: packages}
			p.path = strings.TrimPrefix(p.path, "/")
			plans[pkg] = p
		}
		return p
	}

	planServices(ev, o, at)

	// Root types that belong to no method share one file.
	var plain []string
	for _, root := range ev.Roots() {
		if _, _, _, ok := splitRoot(root); !ok {
			plain = append(plain, root)
		}
	}

	if o.Root != "" {
		if len(plain) != 1 {
			return nil, fmt.Errorf("schema: the name %q can be given only to a single root type, but there are %d", o.Root, len(plain))
		}
		if cleanName(o.Root) != o.Root {
			return nil, fmt.Errorf("schema: %q is not a valid name for a message", o.Root)
		}
	}
	for _, root := range plain {
		p := at(cmp.Or(o.Package, defaultPackage))
		p.roots = append(p.roots, root)
		p.names[root] = p.uniqueName(cleanName(cmp.Or(o.Root, root)))
	}

	list := make([]*filePlan, 0, len(plans))

	// Sorted, so that equal evidence gives equal files.
	for _, pkg := range slices.Sorted(maps.Keys(plans)) {
		p := plans[pkg]
		slices.Sort(p.roots)
		list = append(list, p)
	}
	return list, nil
}

// packagesOf returns the packages of all files to be written, and the packages that enclose them.
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

// planServices adds services, their methods and the names of request and response types to the planned files.
// at returns the plan for a package.
func planServices(ev *Evidence, o Options, at func(string) *filePlan) {
	services := map[string]*service{}

	// The number of services that have a method of a name, by package.
	rpcs := map[string]map[string]int{}
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

	// A method whose name is unique in its package gives its messages their names; otherwise the service's name
	// precedes it.
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

// packageOf splits the full name of a service into package and simple name. Options.Package, if set, replaces
// the package.
func packageOf(full string, o Options) (pkg, base string) {
	i := strings.LastIndexByte(full, '.')
	pkg, base = cleanPackage(full[:max(i, 0)]), full[i+1:]
	if o.Package != "" {
		pkg = o.Package
	}
	return pkg, base
}

// infer infers the definitions of one .proto file, and adds the file and its fields to the result in.
func (p *filePlan) infer(ev *Evidence, in *Inferred, o Options) {
	var seen []string
	for _, root := range p.roots {
		if ev.Root(root) != nil {
			seen = append(seen, root)
		}
	}

	// Unification comes first, because all later decisions depend on which messages are of one type.
	g := newGraph(ev, seen)
	g.unify()
	g.reprice()
	g.preferBytesForJSON()
	g.keepExplained()
	in.Deep = in.Deep || g.deep
	g.recognise()
	w := &writer{filePlan: p, classes: map[string]*class{}, in: in, verbose: o.Verbose, imports: map[string]bool{}, conventions: g.conventions(), keyTexts: g.keyTexts(), hide: newExampleRedactor(in.profile)}

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
