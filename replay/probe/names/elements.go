package names

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"

	"unwire/replay/probe"
)

// aliases takes out names that are of a field that has another one: protojson
// minds a field that comes twice.
func (n *namer) aliases(ctx context.Context) error {
	for {
		var names []string
		for _, f := range n.found {
			names = append(names, f.Name)
		}
		if len(names) < 2 {
			return nil
		}
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

// maxLists bounds the requests that tell what lists and maps are of.
const maxLists = 20

// askElements asks what lists are of.
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

// askAgain asks about names that were found in another way, and has join put what
// is told of each, g, to what is known of it, f.
//
// Limits: more than maxLists names are not asked about.
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

// askMapValues asks what the values of maps are of. protojson does not tell a map from a
// message until then.
func (n *namer) askMapValues(ctx context.Context) error {
	var names []string
	for _, f := range n.found {
		if f.Label == "map" || n.goEnd && f.Class == probe.Message && f.Label == "" {
			names = append(names, f.Name)
		}
	}
	known := n.known
	err := n.askAgain(ctx, names, asMap, func(f, g *namedField) {
		if g.enum != "" {
			f.enum, f.Label = g.enum, "map"
			f.Evidence = append(f.Evidence, g.Evidence...)
		}
	})
	n.known = known
	return err
}
