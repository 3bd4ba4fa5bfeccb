package compare

import (
	"fmt"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"

	"unwire/schema"
)

// maxSimilar is the number of names that a LookupError suggests at most.
const maxSimilar = 3

// A LookupError reports that no element has the looked-up name, or that several have it as the last part of
// their full name.
type LookupError struct {
	// Name is the name that was looked up.
	Name string

	// Found are the full names of the elements whose last part is Name, if there are several.
	Found []string

	// Similar are the most similar full names, if there is no such element.
	Similar []string
}

// Error formats the error with the candidates.
func (e *LookupError) Error() string {
	if len(e.Found) == 0 {
		return fmt.Sprintf("the definitions have no %q", e.Name)
	}
	return fmt.Sprintf("%d definitions have the name %s", len(e.Found), e.Name)
}

// Lookup returns the element (message, field, …) with the given full name, or the only element whose full name
// ends with that name.
//
// Errors: *LookupError.
func Lookup(s *schema.Schema, name string) (protoreflect.Descriptor, error) {
	if d := s.Descriptor(name); d != nil {
		return d, nil
	}
	e := &LookupError{Name: name}
	// A simple name, or the end of a full name, is accepted if only one element has it.
	for _, l := range Contents(s) {
		if l.Element == name || strings.HasSuffix(l.Element, "."+name) {
			e.Found = append(e.Found, l.Element)
		}
	}
	switch len(e.Found) {
	case 1:
		return s.Descriptor(e.Found[0]), nil
	case 0:
		for _, h := range Find(s, name, maxSimilar) {
			e.Similar = append(e.Similar, h.Element)
		}
	}
	return nil, e
}
