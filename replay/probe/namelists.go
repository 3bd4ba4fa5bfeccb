package probe

import (
	"bytes"
	"context"
	"fmt"
	"slices"
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
		n.open(&body)
		var starts []int
		for _, name := range names {
			starts = append(starts, body.Len())
			fmt.Fprintf(&body, "%s:null,", quoteJSON(name))
		}
		starts = append(starts, body.Len())
		body.WriteByte('"')
		a, err := n.c.send(ctx, fmt.Sprintf("which of %d names are of one field%s", len(names), n.at()), "json", body.Bytes())
		if err != nil {
			return err
		}
		i := hit(a.message, names, starts)
		if i < 0 || !conflict(a.message) {
			return nil
		}
		n.found = slices.Delete(n.found, i, i+1)
	}
}

// maxLists bounds the requests that tell what lists and maps are of.
const maxLists = 20

// lists asks what lists are of.
func (n *namer) lists(ctx context.Context) error {
	var names []string
	for _, f := range n.found {
		if f.Class == "" && f.family == "" && (f.composed || n.es1 && f.Label == "") {
			names = append(names, f.Name)
		}
	}
	if len(names) == 0 || len(names) > maxLists {
		return nil
	}
	all := n.found
	n.found = nil
	_, err := n.pass(ctx, names, asList)
	told := n.found
	n.found, n.conflicts = all, nil
	for _, g := range told {
		for i := range n.found {
			if f := &n.found[i]; f.Name == g.Name {
				f.enum = or(f.enum, g.enum)
				f.Class, f.Kind, f.Type, f.family, f.Label = g.Class, or(g.Kind, f.Kind), g.Type, g.family, or(g.Label, f.Label)
				f.Evidence = append(f.Evidence, g.Evidence...)
			}
		}
	}
	return err
}

// maps asks what the values of maps are of. protojson does not tell a map from a
// message until then.
func (n *namer) maps(ctx context.Context) error {
	var names []string
	for _, f := range n.found {
		if f.Label == "map" || n.goEnd && f.Class == Message && f.Label == "" {
			names = append(names, f.Name)
		}
	}
	if len(names) == 0 || len(names) > maxLists {
		return nil
	}
	all, known := n.found, n.known
	n.found = nil
	_, err := n.pass(ctx, names, asMap)
	told := n.found
	n.found, n.conflicts, n.known = all, nil, known
	for _, g := range told {
		for i := range n.found {
			if f := &n.found[i]; f.Name == g.Name && g.enum != "" {
				f.enum, f.Label = g.enum, "map"
				f.Evidence = append(f.Evidence, g.Evidence...)
			}
		}
	}
	return err
}

func or(a, b string) string {
	if a != "" {
		return a
	}
	return b
}
