package compare

import (
	"fmt"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"

	"unwire/schema"
)

// maxSimilar is the number of names that a LookupError suggests.
const maxSimilar = 3

// A LookupError reports that no element has a name, or that several have it as their last part.
type LookupError struct {
	// Name is the name that was looked up.
	Name string

	// Found are the full names of the elements with that simple name.
	Found []string

	// Similar are similar full names, if Found is empty.
	Similar []string
}

// Error formats the error with the candidates.
func (e *LookupError) Error() string {
	if len(e.Found) == 0 {
		return fmt.Sprintf("the definitions have no %q", e.Name)
	}
	return fmt.Sprintf("%d definitions have the name %s", len(e.Found), e.Name)
}

// Lookup returns the element with the full name, or the only element with the simple name.
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
