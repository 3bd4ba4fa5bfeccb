package extract

import (
	"fmt"
	"maps"
	"slices"
	"sort"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/descriptorpb"
)

// An outputFile identifies a .proto file of the merged result. All its elements have this package, syntax and
// layer (see assignLayers).
type outputFile struct {
	// pkg is the protobuf package.
	pkg string
	// syntax is the syntax of all elements.
	syntax syntax
	// layer is 0, unless the package is split because packages refer to each other.
	layer int
}

// files distributes the merged declarations over .proto files, adds imports, and checks that the files link.
func (m *merger) files() (*Set, error) {
	owner := map[string]*element{}
	for _, e := range m.elements {
		typesIn(e, func(full string) { owner["."+full] = e })
	}

	// Which elements each element refers to.
	needs := map[*element]map[*element]bool{}
	for _, e := range m.elements {
		needs[e] = map[*element]bool{}
		eachType(e.msg, func(_ string, name **string, _ *descriptorpb.FieldDescriptorProto) {
			if to := owner[**name]; to != nil && to != e {
				needs[e][to] = true
			}
		})
	}
	m.assignLayers(needs)

	packs := map[outputFile][]*element{}
	for _, e := range m.elements {
		k := outputFile{e.pkg, e.syntax, e.layer}
		packs[k] = append(packs[k], e)
	}
	names := nameFiles(packs)

	set := &Set{Notes: m.notes, Unresolved: m.unresolved}
	files := map[string]*descriptorpb.FileDescriptorProto{}
	imports := maps.Clone(m.standardFound)
	for k, list := range packs {
		f := m.file(names[k], k, list)
		deps := map[string]bool{}
		for _, e := range list {
			eachType(e.msg, func(_ string, name **string, _ *descriptorpb.FieldDescriptorProto) {
				if *name == nil {
					return
				}
				// A file imports the files of all types that it refers to.
				if to := owner[**name]; to != nil {
					deps[names[outputFile{to.pkg, to.syntax, to.layer}]] = true
				}
				if file := m.standardTypes[strings.TrimPrefix(**name, ".")]; file != "" && owner[**name] == nil {
					deps[file], imports[file] = true, true
				}
			})
		}
		delete(deps, names[k])
		f.Dependency = slices.Sorted(maps.Keys(deps))
		files[names[k]] = f
	}

	set.Imports = standardFiles(imports)
	set.Files = ordered(files)
	return set, set.link(m.ctx)
}

// file builds the descriptor of the output file called name with the declarations in list. Their order does not
// depend on the input.
func (m *merger) file(name string, k outputFile, list []*element) *descriptorpb.FileDescriptorProto {
	// Sorting makes the output independent of the order of the input.
	sort.SliceStable(list, func(i, j int) bool { return list[i].name < list[j].name })
	f := &descriptorpb.FileDescriptorProto{Name: proto.String(name)}
	if k.pkg != "" {
		f.Package = proto.String(k.pkg)
	}
	f.Syntax = proto.String(k.syntax.name)
	if k.syntax.name == "editions" {
		f.Edition = k.syntax.edition.Enum()
	}
	f.Options = commonOptions(list)
	for _, e := range list {
		switch d := e.msg.(type) {
		case *descriptorpb.DescriptorProto:
			arrange(e.full(), d)
			f.MessageType = append(f.MessageType, d)
		case *descriptorpb.EnumDescriptorProto:
			f.EnumType = append(f.EnumType, d)
		case *descriptorpb.ServiceDescriptorProto:
			f.Service = append(f.Service, d)
		case *descriptorpb.FieldDescriptorProto:
			f.Extension = append(f.Extension, d)
		}
	}

	return f
}

// commonOptions returns the file options that all elements in list have in common.
func commonOptions(list []*element) *descriptorpb.FileOptions {
	opts := list[0].options
	for _, e := range list {
		if !proto.Equal(opts, e.options) {
			// The files differ in their options, so only what affects the meaning is kept.
			fs := opts.GetFeatures()
			if fs == nil {
				return nil
			}
			return &descriptorpb.FileOptions{Features: fs}
		}
	}
	if opts == nil || proto.Size(opts) == 0 {
		return nil
	}
	return proto.Clone(opts).(*descriptorpb.FileOptions)
}

// nameFiles returns the path of each output file, such as a/b/v1/b.proto for the package a.b.v1. If a package
// needs several files, the others get numbers.
func nameFiles(packs map[outputFile][]*element) map[outputFile]string {
	keys := slices.Collect(maps.Keys(packs))
	sort.Slice(keys, func(i, j int) bool {
		a, b := keys[i], keys[j]
		if a.pkg != b.pkg {
			return a.pkg < b.pkg
		}
		if a.layer != b.layer {
			return a.layer < b.layer
		}
		if la, lb := len(packs[a]), len(packs[b]); la != lb {
			return la > lb
		}
		return fmt.Sprint(a.syntax) < fmt.Sprint(b.syntax)
	})

	names, taken := map[outputFile]string{}, map[string]bool{}
	for _, k := range keys {
		// The path follows the convention that folders are packages.
		base := strings.ReplaceAll(k.pkg, ".", "/") + "/" + lastWord(k.pkg)
		if k.pkg == "" {
			base = "nopackage"
		}
		// Compilers have their own files there.
		if strings.HasPrefix(base, "google/protobuf/") {
			base += "_extracted"
		}
		name := base
		for n := 2; taken[strings.ToLower(name)]; n++ {
			name = fmt.Sprintf("%s_%d", base, n)
		}
		taken[strings.ToLower(name)] = true
		names[k] = name + ".proto"
	}
	return names
}

// lastWord returns the last part of a package name that is not a version such as v1.
func lastWord(pkg string) string {
	parts := strings.Split(pkg, ".")
	for i := len(parts) - 1; i > 0; i-- {
		if p := parts[i]; len(p) < 2 || p[0] != 'v' || p[1] < '0' || p[1] > '9' {
			return p
		}
	}
	return parts[0]
}
