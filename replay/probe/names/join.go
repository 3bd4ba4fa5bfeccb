package names

import (
	"cmp"
	"slices"

	"unwire/replay/probe"
	"unwire/schema/jsonname"
)

// report joins the names of a message to the numbers that are known of it, and
// lists the others without a number.
//
// Shape: a name and a number are joined where every way to give all names to
// all numbers joins them. Where their counts differ, some field is known by
// only one of the two, and nothing is joined but what the server itself did.
func (n *namer) report(res *probe.Result) {
	path, known := n.path(res)
	var at []int // of the message's fields that have a number
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

// joinToNumbers finds which of a result's fields, by their places at, the names
// are of.
func (n *namer) joinToNumbers(res *probe.Result, path string, at []int) map[*namedField]int {
	joined := map[*namedField]int{}
	var names []*namedField
	for k := range n.found {
		f := &n.found[k]
		if !n.goEnd || f.shownByGo() {
			names = append(names, f)
		}
		for _, i := range at { // which the server named itself
			if g := res.Fields[i]; g.Name != "" && (g.Name == f.Name || jsonname.Of(g.Name) == f.Name) {
				joined[f] = i
			}
		}
	}

	// Where the counts differ, some field is known by only one of the two.
	if len(names) == len(at) && len(at) > 0 && (n.goEnd || res.Complete[path]) {
		for k, i := range certain(names, res.Fields, at) {
			if _, ok := joined[names[k]]; !ok {
				joined[names[k]] = at[i]
			}
		}
	}
	return joined
}

// path is where the message is by number, if all fields that lead to it are joined.
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

// shownByGo reports whether protobuf-go's parser shows such a field.
func (f *namedField) shownByGo() bool {
	return f.Class == "" || f.Class == probe.Message || f.Type == "string" || f.Label == "repeated" && f.Type != "bytes"
}

// addName adds what is known by name to a field that has a number.
func addName(f *probe.Field, n *namedField) {
	f.Name, f.Values, f.Holds = n.Name, n.Values, n.Holds
	f.Type = cmp.Or(f.Type, cmp.Or(n.Type, typeIn(n.family, f.Class)))
	f.Kind, f.Label = cmp.Or(f.Kind, n.Kind), cmp.Or(f.Label, n.Label)
	if f.Class == "" {
		f.Class = n.Class
	}
	f.Evidence = append(append(f.Evidence, n.Evidence...), "no other number and no other name can be meant")
}

// fits reports whether a name and a number can be of one field.
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

// certain are the pairs, by their places, that are in every perfect matching
// of names and numbers.
func certain(names []*namedField, fields []probe.Field, at []int) map[int]int {
	edges := make([][]int, len(names))
	for k, n := range names {
		for i, j := range at {
			if fits(n, &fields[j]) {
				edges[k] = append(edges[k], i)
			}
		}
	}
	name := make([]int, len(at)) // of a number; -1 is none
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
