package compare

import (
	"fmt"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"

	"unwire/schema"
)

// maxSimilar is how many names a LookupError suggests.
const maxSimilar = 3

// A LookupError reports a name that no element has, or a simple name that several have.
type LookupError struct {
	Name string

	// Found are the full names of the elements that have the simple name.
	Found []string

	// Similar are names of elements that are like Name, if none has it.
	Similar []string
}

func (e *LookupError) Error() string {
	if len(e.Found) == 0 {
		return fmt.Sprintf("the definitions have no %q", e.Name)
	}
	return fmt.Sprintf("%d definitions are called %s", len(e.Found), e.Name)
}

// Lookup returns the element with a full name, or the only one with a simple name.
//
// Errors: a LookupError.
func Lookup(s *schema.Schema, name string) (protoreflect.Descriptor, error) {
	if d := s.Descriptor(name); d != nil {
		return d, nil
	}
	e := &LookupError{Name: name}
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
