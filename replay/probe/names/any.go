package names

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"unwire/replay/probe"
)

// anyType is the full name of the message type Any, which contains a message of any type.
const anyType = "google.protobuf.Any"

// maxTypes limits the number of message types with which an Any is tested. Each takes a request,
// because the first unknown type ends parsing.
const maxTypes = 200

// askAnys finds the fields of type google.protobuf.Any, and tests which message types the server
// accepts in one of them. The result holds for all of them, because all use the same type registry.
//
// Shape: the result is nil if the message has no Any.
func (n *namer) askAnys(ctx context.Context, types []string, res *probe.Result) (holds []string, err error) {
	for _, as := range []int{asAny, asAnys} {
		if err := n.findAnys(ctx, as); err != nil {
			return nil, err
		}
	}
	at := slices.IndexFunc(n.found, func(f namedField) bool { return f.Type == anyType && (n.goEnd || n.closing(f.Name) != "") })
	if at < 0 {
		return nil, nil
	}
	f := &n.found[at]

	// Each type takes a request: accepted, unknown, or an answer that is not understood.
	types = types[:min(len(types), maxTypes)]
	for i, name := range types {
		a, err := n.askType(ctx, f, name)
		switch {
		case err != nil:
			return holds, err
		case noType().MatchString(a.Text):
		case !a.FromParser:
			return holds, probe.Stop("the answer to request %d contains no error of the server's JSON parser: %s", n.c.Requests, a.Brief())
		default:
			holds = append(holds, name)
		}
		if i == enoughUnknown && len(holds) == 0 && !n.goEnd {
			res.Note(fmt.Sprintf("%s: the server seems to know no types for this Any field: it rejected all %d that unwire tried", f.Name, i+1))
			return nil, nil
		}
	}
	return holds, nil
}

// enoughUnknown is the number of unknown types after which no more are tested. By default, protobuf-es
// has no registry at all.
const enoughUnknown = 20

// findAnys finds the fields of type Any on a protojson server; protobuf-es names the type in its
// errors. as is the form of the values that are sent.
func (n *namer) findAnys(ctx context.Context, as int) error {
	var names []string
	for _, f := range n.found {
		if n.goEnd && f.Class == probe.Message && f.Type == "" && f.Label == map[int]string{asAnys: "repeated"}[as] {
			names = append(names, f.Name)
		}
	}
	return n.askAgain(ctx, names, as, func(f, g *namedField) {
		if g.Type == anyType {
			f.Type = anyType
			f.Evidence = append(f.Evidence, g.Evidence...)
		}
	})
}

// askType tests whether the server accepts the message type name in the Any field f.
func (n *namer) askType(ctx context.Context, f *namedField, name string) (*probe.Answer, error) {
	value := fmt.Sprintf(`{"@type":%s}`, quoteJSON("type.googleapis.com/"+strings.TrimPrefix(name, ".")))
	if f.Label == "repeated" {
		value = "[" + value + "]"
	}
	a, _, err := n.askOne(ctx, "whether an Any may be "+name, f.Name, value)
	return a, err
}

// enterHolds records the accepted types for all Any fields.
func (n *namer) enterHolds(types []string) {
	for i := range n.found {
		if f := &n.found[i]; f.Type == anyType && len(types) > 0 {
			f.Holds = types
			f.Evidence = append(f.Evidence, fmt.Sprintf("the server's parser knows %d of the types that unwire tried", len(types)))
		}
	}
}
