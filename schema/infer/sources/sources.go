// Package sources remembers of which inputs evidence is, so that what is merged twice does
// not count twice. Package infer keeps a Set with its evidence, and names the inputs by
// hashes.
package sources

import (
	"fmt"
	"slices"
)

// maxSources is how many sources are remembered, those with the smallest hashes.
const maxSources = 1024

// A Set is a bounded set of inputs. It unites whatever the order. The zero value is empty.
type Set struct {
	Hashes []uint64 `json:"hashes,omitempty"` // ascending
	Full   bool     `json:"full,omitempty"`   // there were more
}

// Add adds an input.
func (s *Set) Add(h uint64) {
	if len(s.Hashes) == maxSources && h > s.Hashes[maxSources-1] {
		s.Full = true
		return
	}
	i, found := slices.BinarySearch(s.Hashes, h)
	if found {
		return
	}
	s.Hashes = slices.Insert(s.Hashes, i, h)
	if len(s.Hashes) > maxSources {
		s.Hashes, s.Full = s.Hashes[:maxSources], true
	}
}

// Merge adds those of another set.
func (s *Set) Merge(o *Set) {
	for _, h := range o.Hashes {
		s.Add(h)
	}
	s.Full = s.Full || o.Full
}

// Share is the share of o's sources that s has, as far as both remember.
func (s *Set) Share(o *Set) float64 {
	within, common := 0, 0
	for _, h := range o.Hashes {
		if s.Full && (len(s.Hashes) == 0 || h > s.Hashes[len(s.Hashes)-1]) {
			break
		}
		within++
		if _, found := slices.BinarySearch(s.Hashes, h); found {
			common++
		}
	}
	if within == 0 {
		return 0
	}
	return float64(common) / float64(within)
}

// Check reports what no Set can be.
func (s *Set) Check() error {
	if len(s.Hashes) > maxSources {
		return fmt.Errorf("more than %d sources", maxSources)
	}
	for i, h := range s.Hashes {
		if i > 0 && s.Hashes[i-1] >= h {
			return fmt.Errorf("sources are not in order")
		}
	}
	return nil
}
