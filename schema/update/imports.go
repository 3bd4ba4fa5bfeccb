package update

import (
	"slices"

	"google.golang.org/protobuf/reflect/protoreflect"
)

// visible reports whether declarations of the file target can be used in file: it imports target directly, or
// through public imports.
func (m *updatePass) visible(file, target string) bool {
	if slices.Contains(m.paths[file], target) {
		return true
	}
	for _, direct := range m.paths[file] {
		if m.importsPublicly(direct, target, 0) {
			return true
		}
	}
	return false
}

// importsPublicly reports whether file publicly imports target, directly or through others.
func (m *updatePass) importsPublicly(file, target string, depth int) bool {
	f, ok := m.have.Descriptor(file).(protoreflect.FileDescriptor)
	if !ok || depth > 100 {
		return false
	}
	for i := range f.Imports().Len() {
		if imp := f.Imports().Get(i); imp.IsPublic && (imp.Path() == target || m.importsPublicly(imp.Path(), target, depth+1)) {
			return true
		}
	}
	return false
}

// reaches reports whether the file from imports to, directly or through others. It is used to avoid import
// cycles.
func (m *updatePass) reaches(from, to string) bool {
	seen := map[string]bool{}
	var walk func(string) bool
	walk = func(name string) bool {
		if name == to {
			return true
		}
		if seen[name] {
			return false
		}
		seen[name] = true
		return slices.ContainsFunc(m.paths[name], walk)
	}
	return walk(from)
}
