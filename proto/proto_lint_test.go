package proto_test

import (
	"path"
	"regexp"
	"strings"
	"testing"

	"google.golang.org/protobuf/reflect/protoreflect"
)

var (
	pascalCase = regexp.MustCompile(`^[A-Z][A-Za-z0-9]*$`)
	snakeCase  = regexp.MustCompile(`^[a-z][a-z0-9]*(_[a-z0-9]+)*$`)
	upperCase  = regexp.MustCompile(`^[A-Z][A-Z0-9]*(_[A-Z0-9]+)*$`)
)

// TestLint holds the files to the rules of buf's BASIC set and to zero values
// that say nothing, as far as the API's own names allow.
func TestLint(t *testing.T) {
	for _, f := range compile(t) {
		if dir := strings.ReplaceAll(string(f.Package()), ".", "/"); path.Dir(f.Path()) != dir {
			t.Errorf("%s is of package %s, in another folder", f.Path(), f.Package())
		}
		lintMessages(t, f.Messages())
		lintEnums(t, f.Enums())
		for i := range f.Services().Len() {
			s := f.Services().Get(i)
			lintName(t, s, pascalCase)
			if !strings.HasSuffix(string(s.Name()), "Service") {
				t.Errorf("%s does not end in Service", s.FullName())
			}
			for j := range s.Methods().Len() {
				lintName(t, s.Methods().Get(j), pascalCase)
			}
		}
	}
}

func lintMessages(t *testing.T, list protoreflect.MessageDescriptors) {
	for i := range list.Len() {
		m := list.Get(i)
		if m.IsMapEntry() {
			continue
		}
		lintName(t, m, pascalCase)
		for j := range m.Fields().Len() {
			lintName(t, m.Fields().Get(j), snakeCase)
		}
		for j := range m.Oneofs().Len() {
			if o := m.Oneofs().Get(j); !o.IsSynthetic() {
				lintName(t, o, snakeCase)
			}
		}
		lintMessages(t, m.Messages())
		lintEnums(t, m.Enums())
	}
}

func lintEnums(t *testing.T, list protoreflect.EnumDescriptors) {
	for i := range list.Len() {
		e := list.Get(i)
		lintName(t, e, pascalCase)
		for j := range e.Values().Len() {
			lintName(t, e.Values().Get(j), upperCase)
		}
		if zero := e.Values().Get(0); zero.Number() != 0 || !strings.HasSuffix(string(zero.Name()), "_UNSPECIFIED") {
			t.Errorf("%s: its zero value is %s", e.FullName(), zero.Name())
		}
	}
}

func lintName(t *testing.T, d protoreflect.Descriptor, rule *regexp.Regexp) {
	if !rule.MatchString(string(d.Name())) {
		t.Errorf("%s does not match %s", d.FullName(), rule)
	}
}
