// Package sources remembers which inputs were counted as evidence, so that an input that is merged twice is not
// counted twice. Package infer keeps a Set in each Evidence and identifies inputs by hashes.
//
// A set is a bottom-k sketch (Cohen and Kaplan 2007): it keeps the smallest hashes only. The sketches of two
// sets keep the same inputs, so their overlap estimates the overlap of the sets (coordinated sampling).
//
// var s sources.Set
// s.Add(hash)
// shared := other.Share(&s) // 0 to 1
package sources

import (
	"fmt"
	"slices"
)

// maxSources is the maximum number of hashes that a Set keeps (k of a bottom-k sketch). Below it, Share is
// exact.
const maxSources = 1024

// A Set is a bounded set of the inputs that were counted, as hashes (a bottom-k sketch). Merging is commutative
// and associative. The zero value is empty.
type Set struct {
	// Hashes are the smallest hashes of inputs, in ascending order.
	Hashes []uint64 `json:"hashes,omitempty" pb:"1,fixed"`
	// Full is set if the set reached its limit, so that greater hashes were dropped.
	Full bool `json:"full,omitempty" pb:"2"`
}

// Add adds the hash of an input to the set.
func (s *Set) Add(h uint64) {
	// The hash is greater than all that are kept.
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

// Merge adds all hashes of another set, which is unchanged.
func (s *Set) Merge(o *Set) {
	for _, h := range o.Hashes {
		s.Add(h)
	}
	s.Full = s.Full || o.Full
}

// Share returns the share, from 0 to 1, of o's inputs that s has. If a set is full, it is an estimate from the
// range of hashes that both sets keep.
func (s *Set) Share(o *Set) float64 {
	// Only hashes that both sets would keep can be compared.
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

// Check returns an error for contents that no Set can have. It is used for stored evidence.
func (s *Set) Check() error {
	if len(s.Hashes) > maxSources {
		return fmt.Errorf("the evidence has more than %d sources", maxSources)
	}
	for i, h := range s.Hashes {
		if i > 0 && s.Hashes[i-1] >= h {
			return fmt.Errorf("the sources of the evidence are not in order")
		}
	}
	return nil
}
