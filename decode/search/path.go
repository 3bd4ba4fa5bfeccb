package search

import (
	"strconv"

	"unwire/decode/fieldpath"
)

// matchSteps reports whether steps, the path to a value, matches the pattern.
func matchSteps(pattern fieldpath.Path, steps []step) bool {
	for i := range pattern {
		if pattern[i].Name == fieldpath.AnySteps {
			// Try all numbers of steps for the wildcard, the most first.
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

// matchStep reports whether a step matches one step of a pattern other than AnySteps.
func matchStep(pattern *fieldpath.Step, s *step) bool {
	if pattern.Name != fieldpath.Any {
		name := s.name
		if s.tree != nil {
			name = strconv.FormatUint(s.number, 10)
		}
		if pattern.Name != name && !s.isNamed(pattern.Name) {
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
