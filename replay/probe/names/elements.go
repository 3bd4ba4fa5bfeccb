package names

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"

	"unwire/replay/probe"
)

// aliases removes names of fields that were also found under another name: protojson rejects a field
// that occurs twice.
func (n *namer) aliases(ctx context.Context) error {
	for {
		var names []string
		for _, f := range n.found {
			names = append(names, f.Name)
		}
		if len(names) < 2 {
			return nil
		}

		// Give all names in one object; the error names a duplicate, which is removed.
		var body bytes.Buffer
		n.appendOpening(&body)
		var starts []int
		for _, name := range names {
			starts = append(starts, body.Len())
			fmt.Fprintf(&body, "%s:null,", quoteJSON(name))
		}
		starts = append(starts, body.Len())
		body.WriteByte('"')
		a, err := n.c.AskJSON(ctx, fmt.Sprintf("which of %d names are of one field%s", len(names), n.at()), body.Bytes())
		if err != nil {
			return err
		}
		i := candidateOf(a.Text, names, starts)
		if i < 0 || !conflict(a.Text) {
			return nil
		}
		n.found = slices.Delete(n.found, i, i+1)
	}
}

// maxLists limits the number of requests that determine the element types of lists and maps.
const maxLists = 20

// askElements determines the element types of repeated fields.
func (n *namer) askElements(ctx context.Context) error {
	var names []string
	for _, f := range n.found {
		if f.Class == "" && f.family == "" && (f.composed || n.es1 && f.Label == "") {
			names = append(names, f.Name)
		}
	}
	return n.askAgain(ctx, names, asList, func(f, g *namedField) {
		f.enum = cmp.Or(f.enum, g.enum)
		f.Class, f.Kind, f.Type, f.family, f.Label = g.Class, cmp.Or(g.Kind, f.Kind), g.Type, g.family, cmp.Or(g.Label, f.Label)
		f.Evidence = append(f.Evidence, g.Evidence...)
	})
}

// askAgain sends existing names again with values of the form as. join merges what the response
// reveals, g, into the known field f.
//
// Limits: at most maxLists names.
func (n *namer) askAgain(ctx context.Context, names []string, as int, join func(f, g *namedField)) error {
	if len(names) == 0 || len(names) > maxLists {
		return nil
	}
	all := n.found
	n.found = nil
	_, err := n.findNames(ctx, names, as)
	told := n.found
	n.found, n.conflicts = all, nil
	for j := range told {
		for i := range n.found {
			if f := &n.found[i]; f.Name == told[j].Name {
				join(f, &told[j])
			}
		}
	}
	return err
}

// askMapValues determines the types of maps' values. The responses also reveal which fields are maps:
// in earlier responses of protojson, maps look like messages, and in those of protobuf-es 1 like
// strings.
func (n *namer) askMapValues(ctx context.Context) error {
	var names []string
	for _, f := range n.found {
		if f.Label == "map" || n.goEnd && f.Class == probe.Message && f.Label == "" || n.es1 && f.Class == "" && f.Label == "" && f.family == "" {
			names = append(names, f.Name)
		}
	}
	known := n.known
	err := n.askAgain(ctx, names, asMap, func(f, g *namedField) {
		if g.MapValue != "" || g.MapFamily != "" {
			f.enum, f.Label = g.enum, "map"
			f.MapValue, f.MapFamily = g.MapValue, g.MapFamily
			f.Evidence = append(f.Evidence, g.Evidence...)
		}
	})
	n.known = known
	return err
}
