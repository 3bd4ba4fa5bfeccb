package rules

import (
	"cmp"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"

	"unwire/captures"
	"unwire/decode/filter"
	"unwire/decode/suggest"
	"unwire/replay/edit"
)

// maxShownNames is the number of field names that an error message lists at most.
const maxShownNames = 12

// HasNames reports whether a rule refers to protobuf fields by name instead of number, so that message definitions
// are needed.
func (s *Set) HasNames() bool {
	return slices.ContainsFunc(s.rules, func(r *rule) bool {
		return r.match.Needs()&filter.Types != 0 || slices.ContainsFunc(r.edits, func(e placedEdit) bool { return e.HasNames() })
	})
}

// CheckNames checks rules whose filters name methods against the definitions of these: the paths must have fields of
// the messages, and values must fit them. Rules that may match other calls are not checked.
//
// Errors: ErrRules, with file and line of up to ten faults.
func (s *Set) CheckNames(services iter.Seq[protoreflect.ServiceDescriptor]) error {
	var faults []error
	for _, r := range s.rules {
		types := r.types(services)
		if len(types) == 0 {
			continue
		}
		report := func(line int, what string, err error) {
			if err != nil && len(faults) < maxFaults {
				faults = append(faults, fmt.Errorf("%s:%d: %s: %w", s.Path, line, what, err))
			}
		}
		for _, path := range r.match.Paths() {
			report(r.matchLine, "match: path:"+path.String(), fitsOne(types, func(md protoreflect.MessageDescriptor) error { return edit.CheckPath(path, md) }))
		}
		for _, e := range r.edits {
			report(e.line, e.text, fitsOne(types, e.CheckType))
		}
	}
	if len(faults) > 0 {
		return fmt.Errorf("%w: %w", ErrRules, errors.Join(faults...))
	}
	return nil
}

// CheckFilter checks the paths of a filter as CheckNames checks those of rules.
//
// Errors: the first path that no message of the methods has, with a suggestion.
func CheckFilter(f *filter.Filter, services iter.Seq[protoreflect.ServiceDescriptor]) error {
	types := typesOf(f, services)
	if len(types) == 0 {
		return nil
	}
	for _, path := range f.Paths() {
		if err := fitsOne(types, func(md protoreflect.MessageDescriptor) error { return edit.CheckPath(path, md) }); err != nil {
			return fmt.Errorf("path:%s: %w", path, err)
		}
	}
	return nil
}

// types returns the message types that the rule may match; nil if the rule may match calls of any method, or changes
// no frames.
func (r *rule) types(services iter.Seq[protoreflect.ServiceDescriptor]) []protoreflect.MessageDescriptor {
	if !r.changesFrames() {
		return nil
	}
	return typesOf(r.match, services)
}

// typesOf returns the message types that a filter may match; nil if it may match calls of any method.
func typesOf(match *filter.Filter, services iter.Seq[protoreflect.ServiceDescriptor]) (types []protoreflect.MessageDescriptor) {
	for _, d := range directions {
		// No method has this name, so a filter that may match it does not depend on methods.
		if match.OfMethod("\x00", "\x00", d) != filter.No {
			return nil
		}
	}
	for service := range services {
		for i := range service.Methods().Len() {
			m := service.Methods().Get(i)
			for _, d := range directions {
				if match.OfMethod(string(service.FullName()), string(m.Name()), d) == filter.No {
					continue
				}
				md := m.Input()
				if d == captures.Down {
					md = m.Output()
				}
				if !slices.Contains(types, md) {
					types = append(types, md)
				}
			}
		}
	}
	return types
}

// fitsOne returns nil if check succeeds for one of the message types, or else the error of the type that is probably
// meant, with a suggestion.
func fitsOne(types []protoreflect.MessageDescriptor, check func(protoreflect.MessageDescriptor) error) error {
	var all []error
	for _, md := range types {
		err := check(md)
		if err == nil {
			return nil
		}
		all = append(all, err)
	}

	// Of several types, the one whose name is most similar is probably meant.
	best, bestDistance := all[0], -1
	for _, err := range all {
		var name *edit.NameError
		if !errors.As(err, &name) {
			// The names are right, and only the value is wrong.
			return err
		}
		for _, known := range namesOf(name.Type) {
			if d := suggest.Distance(strings.ToLower(name.Name), strings.ToLower(known)); bestDistance < 0 || d < bestDistance {
				best, bestDistance = err, d
			}
		}
	}
	var name *edit.NameError
	errors.As(best, &name)
	return fmt.Errorf("%w%s", best, suggestField(name))
}

// namesOf returns the names of the fields of a message.
func namesOf(md protoreflect.MessageDescriptor) (names []string) {
	for i := range md.Fields().Len() {
		names = append(names, string(md.Fields().Get(i).Name()))
	}
	return names
}

// suggestField returns the end of an error message that names the field that is probably meant, or else lists the
// fields of the message.
func suggestField(e *edit.NameError) string {
	names := namesOf(e.Type)
	distance := func(name string) int { return suggest.Distance(strings.ToLower(e.Name), strings.ToLower(name)) }
	slices.SortStableFunc(names, func(a, b string) int { return cmp.Compare(distance(a), distance(b)) })
	switch {
	case len(names) == 0:
		return "; it has no fields"
	case distance(names[0]) <= max(2, (len(names[0])+1)/3):
		return fmt.Sprintf("; did you mean %s (field %d)?", names[0], e.Type.Fields().ByName(protoreflect.Name(names[0])).Number())
	case len(names) > maxShownNames:
		return fmt.Sprintf("; its fields are %s and %d more", strings.Join(names[:maxShownNames], ", "), len(names)-maxShownNames)
	}
	return "; its fields are " + strings.Join(names, ", ")
}
