package model

import (
	"maps"
	"path"
	"slices"
	"strings"
)

// An Outlet is one export of a script: a definition, the values of an enum, or a re-export from another
// module.
type Outlet struct {
	// To is the exported definition; nil for enum values and re-exports.
	To *Def
	// Values are the values of an exported enum object.
	Values []EnumValue
	// Module is the path of the module from which the export is re-exported, or "".
	Module string
	// Loaded is the key of the webpack module, in another script, from which the export is re-exported, or "".
	Loaded string
	// Name is the name of a re-exported element in the module from which it comes.
	Name string
}

// Outlets are all exports of one script.
type Outlets struct {
	// Named maps the names of exports to what they export.
	Named map[string]Outlet
	// Starred are the modules of which everything is re-exported (export * from).
	Starred []string
	// Modules maps the keys of webpack modules in the script to their exports, by name.
	Modules map[string]map[string]Outlet
}

// Empty reports whether the script exports nothing.
func (o Outlets) Empty() bool { return len(o.Named)+len(o.Starred)+len(o.Modules) == 0 }

// Imports reports whether any export is re-exported from another module.
func (o Outlets) Imports() bool {
	tables := append(slices.Collect(maps.Values(o.Modules)), o.Named)
	return len(o.Starred) > 0 || slices.ContainsFunc(tables, func(named map[string]Outlet) bool {
		return slices.ContainsFunc(slices.Collect(maps.Values(named)), func(out Outlet) bool { return out.Module != "" })
	})
}

// maxFollowed is the maximum number of re-exporting modules that one import is followed through.
const maxFollowed = 64

// followImport finds what an imported name refers to. It follows re-exports through other modules. ok is false
// if nothing was found.
func (b *builder) followImport(r *Ref) (Outlet, bool) {
	hops := maxFollowed
	if r.Loaded != "" {
		return b.followModule(r.Place.File, r.Loaded, r.Local, &hops)
	}
	return b.followFile(r.Place.File, r.Module, r.Local, &hops)
}

// followModule is followImport for the export name of the webpack module key. file is the importing script. If
// several builds have such a module, those in the same folder count. hops is the remaining number of steps.
func (b *builder) followModule(file, key, name string, hops *int) (Outlet, bool) {
	if b.keyed == nil {
		b.keyed = map[string][]string{}
		for _, script := range slices.Sorted(maps.Keys(b.Outlets)) {
			for key := range b.Outlets[script].Modules {
				b.keyed[key] = append(b.keyed[key], script)
			}
		}
	}
	var found []Outlet

	// A script in the same folder belongs to the same build.
	for _, beside := range []bool{true, false} {
		for _, script := range b.keyed[key] {
			if (path.Dir(script) == path.Dir(file)) != beside {
				continue
			}
			o, ok := b.Outlets[script].Modules[key][name]
			if ok {
				o, ok = b.followOutlet(script, o, hops)
			}
			if ok && !slices.ContainsFunc(found, func(f Outlet) bool { return f.To == o.To }) {
				found = append(found, o)
			}
		}
		if len(found) > 0 {
			break
		}
	}
	if len(found) != 1 {
		return Outlet{}, false
	}
	return found[0], true
}

// followOutlet follows the re-export o of the script file to its definition. hops is the remaining number of
// steps.
func (b *builder) followOutlet(file string, o Outlet, hops *int) (Outlet, bool) {
	if *hops--; *hops < 0 {
		return Outlet{}, false
	}
	switch {
	case o.Module != "":
		return b.followFile(file, o.Module, o.Name, hops)
	case o.Loaded != "":
		return b.followModule(file, o.Loaded, o.Name, hops)
	}
	return o, true
}

// followFile is followImport for a module that is a file. file is the importing script, and module the imported
// path. hops is the remaining number of steps.
func (b *builder) followFile(file, module, name string, hops *int) (Outlet, bool) {
	// Modules may export each other in a circle.
	if *hops--; *hops < 0 || !strings.HasPrefix(module, ".") {
		return Outlet{}, false
	}
	target, there := b.moduleFile(path.Join(path.Dir(file), module))
	if !there {
		return Outlet{}, false
	}
	if o, ok := b.Outlets[target].Named[name]; ok {
		return b.followOutlet(target, o, hops)
	}
	for _, again := range b.Outlets[target].Starred {
		if o, ok := b.followFile(target, again, name, hops); ok {
			return o, true
		}
	}
	return Outlet{}, false
}

// moduleFile returns the path of the script that an imported path refers to. The imported path may lack the
// extension or "/index".
func (b *builder) moduleFile(name string) (string, bool) {
	for _, ending := range []string{"", ".js", ".mjs", ".cjs", "/index.js", "/index.mjs", "/index.cjs"} {
		if _, ok := b.Outlets[name+ending]; ok {
			return name + ending, true
		}
	}
	return "", false
}
