package names

import (
	"cmp"
	"slices"

	"unwire/replay/probe"
	"unwire/schema/jsonname"
)

// report assigns the found names to the known field numbers of the message, and adds the remaining
// names without a number to the result.
//
// Shape: a name is assigned to a number only if every perfect matching of names and numbers does so. If
// there are more names than numbers or vice versa, only the assignments that the server itself revealed
// are used.
func (n *namer) report(res *probe.Result) {
	path, known := n.path(res)
	// at are the indexes of the message's fields that have a number.
	var at []int
	for i := range res.Fields {
		if known && res.Fields[i].Path == path && res.Fields[i].Number != 0 {
			at = append(at, i)
		}
	}
	joined := n.joinToNumbers(res, path, at)
	for i := range n.found {
		f := &n.found[i]
		if k, ok := joined[f]; ok {
			addName(&res.Fields[k], f)
			continue
		}
		if len(n.in) == 0 {
			res.Fields = append(res.Fields, f.Field)
			continue
		}
		f.In, f.Message = n.namePath(), n.of
		res.Nested = append(res.Nested, f.Field)
	}
}

// joinToNumbers determines for each name the index of its field in res.Fields. at are the indexes of
// the fields of the message, whose path is path; names without a field are left out.
func (n *namer) joinToNumbers(res *probe.Result, path string, at []int) map[*namedField]int {
	joined := map[*namedField]int{}
	var names []*namedField
	for k := range n.found {
		f := &n.found[k]
		if !n.goEnd || f.shownByGo() {
			names = append(names, f)
		}
		// the server named these itself
		for _, i := range at {
			if g := res.Fields[i]; g.Name != "" && (g.Name == f.Name || jsonname.Of(g.Name) == f.Name) {
				joined[f] = i
			}
		}
	}

	// If the counts differ, some field is known by only one of the two.
	if len(names) == len(at) && len(at) > 0 && (n.goEnd || res.Complete[path]) {
		for k, i := range certain(names, res.Fields, at) {
			if _, ok := joined[names[k]]; !ok {
				joined[names[k]] = at[i]
			}
		}
	}
	return joined
}

// path returns the message's path in field numbers; false if the number of a field on the path is
// unknown.
func (n *namer) path(res *probe.Result) (string, bool) {
	var path []int32
	at := ""
	for _, step := range n.in {
		i := slices.IndexFunc(res.Fields, func(f probe.Field) bool { return f.Path == at && f.Name == step.name && f.Number != 0 })
		if i < 0 {
			return "", false
		}
		path = append(path, res.Fields[i].Number)
		at = probe.PathText(path)
	}
	return at, true
}

// shownByGo reports whether a probe of a Go server finds fields of this kind by number.
func (f *namedField) shownByGo() bool {
	return f.Class == "" || f.Class == probe.Message || f.Type == "string" || f.Label == "repeated" && f.Type != "bytes"
}

// addName merges the information found by name into the field f, whose number is known.
func addName(f *probe.Field, n *namedField) {
	f.Name, f.Values, f.Holds = n.Name, n.Values, n.Holds
	f.Type = cmp.Or(f.Type, cmp.Or(n.Type, typeIn(n.family, f.Class)))
	f.Kind, f.Label = cmp.Or(f.Kind, n.Kind), cmp.Or(f.Label, n.Label)
	if f.Class == "" {
		f.Class = n.Class
	}
	f.Evidence = append(append(f.Evidence, n.Evidence...), "the name belongs to this number, because no other number and no other name fits")
}

// fits reports whether the name n and the numbered field f may be the same field, judging by their
// types.
func fits(n *namedField, f *probe.Field) bool {
	classes := classesOf(n.family)
	switch {
	case f.Class != "" && n.Class != "" && f.Class != n.Class,
		f.Class != "" && len(classes) > 0 && !slices.Contains(classes, f.Class),
		f.Label != "" && n.Label != "" && f.Label != n.Label,
		f.Type != "" && n.Type != "" && f.Type != n.Type,
		f.Class == probe.Len && f.Kind != "" && n.Kind != "" && f.Kind != n.Kind,
		f.Name != "" && f.Name != n.Name && jsonname.Of(f.Name) != n.Name:
		return false
	}
	return true
}

// certain returns the pairs of indexes in names and fields that are in every perfect matching of names
// and numbers. It finds one perfect matching with augmenting paths (Kuhn's algorithm), and then tests
// for each pair whether a perfect matching without it exists. at are the indexes of the fields to be
// matched.
func certain(names []*namedField, fields []probe.Field, at []int) map[int]int {
	edges := make([][]int, len(names))
	for k, n := range names {
		for i, j := range at {
			if fits(n, &fields[j]) {
				edges[k] = append(edges[k], i)
			}
		}
	}
	// name is the matched name of each number; -1 for none.
	name := make([]int, len(at))
	for i := range name {
		name[i] = -1
	}
	var find func(k, but int, seen []bool) bool
	find = func(k, but int, seen []bool) bool {
		for _, i := range edges[k] {
			if i == but || seen[i] {
				continue
			}
			seen[i] = true
			if name[i] < 0 || find(name[i], -1, seen) {
				name[i] = k
				return true
			}
		}
		return false
	}
	for k := range names {
		if !find(k, -1, make([]bool, len(at))) {
			return nil
		}
	}

	// A pair is certain if no augmenting path can replace it.
	out := map[int]int{}
	for i, k := range name {
		before := slices.Clone(name)
		name[i] = -1
		seen := make([]bool, len(at))
		if !find(k, i, seen) {
			out[k] = i
		}
		copy(name, before)
	}
	return out
}
