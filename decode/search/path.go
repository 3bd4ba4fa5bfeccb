package search

import (
	"fmt"
	"strconv"

	"unwire/decode/fieldpath"
)

// ParsePath reads a path as a pattern: field numbers joined by dots, * for any
// one step, ** for any number of them, [n] behind a number for one of a repeated
// field. A member of JSON goes by its name, an element by its place.
func ParsePath(s string) (fieldpath.Path, error) {
	p, err := fieldpath.Parse(s)
	if err != nil {
		return nil, err
	}
	if len(p) == 0 {
		return nil, fmt.Errorf("path %.80q: an empty step", s)
	}
	for _, step := range p {
		switch {
		case step.IsIndex():
			return nil, fmt.Errorf("path %.80q: an index without a name; an element of JSON is named by its place, as in list.0", s)
		case step.Layers != "":
			return nil, fmt.Errorf("path %.80q: !%s has no meaning here; every layer is looked into", s, step.Layers)
		case step.Name == fieldpath.AnySteps && step.Index != fieldpath.All:
			return nil, fmt.Errorf("path %.80q: ** has no index", s)
		}
	}
	return p, nil
}

// matchSteps reports whether a path matches the pattern.
func matchSteps(pattern fieldpath.Path, steps []step) bool {
	for i := range pattern {
		if pattern[i].Name == fieldpath.AnySteps {
			for k := len(steps); k >= i; k-- {
				if matchSteps(pattern[i+1:], steps[k:]) {
					return true
				}
			}
			return false
		}
		if i >= len(steps) || !matchStep(&pattern[i], &steps[i]) {
			return false
		}
	}
	return len(pattern) == len(steps)
}

func matchStep(pattern *fieldpath.Step, s *step) bool {
	if pattern.Name != fieldpath.Any {
		name := s.name
		if s.tree != nil {
			name = strconv.FormatUint(s.number, 10)
		}
		if pattern.Name != name {
			return false
		}
	}
	if pattern.Index == fieldpath.All {
		return true
	}
	if s.tree == nil {
		return false
	}
	k, _ := indexOf(s.tree, s.node)
	return k == pattern.Index
}
