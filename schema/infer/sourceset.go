package infer

import (
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"path/filepath"
	"slices"

	"unwire/decode"
)

// maxSources is how many sources are remembered, those with the smallest hashes.
const maxSources = 1024

// A sourceSet is a bounded set of the inputs that evidence is of, so that what is
// merged twice does not count twice. It unites whatever the order.
type sourceSet struct {
	Hashes []uint64 `json:"hashes,omitempty"` // ascending
	Full   bool     `json:"full,omitempty"`   // there were more
}

func (s *sourceSet) addHash(h uint64) {
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

func (s *sourceSet) merge(o *sourceSet) {
	for _, h := range o.Hashes {
		s.addHash(h)
	}
	s.Full = s.Full || o.Full
}

// share is the share of o's sources that s has, as far as both remember.
func (s *sourceSet) share(o *sourceSet) float64 {
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

func (s *sourceSet) valid() error {
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

// MergeUncounted merges o, unless all of its sources are e's already. It returns the
// share that was e's before: between 0 and 1, that share now counts twice. Of more
// than 1,024 sources it is an estimate.
func (e *Evidence) MergeUncounted(o *Evidence) (shared float64) {
	shared = e.sources.share(&o.sources)
	if shared < 1 {
		e.Merge(o)
	}
	return shared
}

// fileHash is of a file's place and content: the same message in two files
// counts twice.
func fileHash(name string, data []byte) uint64 {
	if abs, err := filepath.Abs(name); err == nil && name != "-" {
		name = abs
	}
	h := fnv.New64a()
	_, _ = h.Write([]byte(name + "\x00"))
	_, _ = h.Write(data)
	return h.Sum64()
}

// exchangeHash is of what no two exchanges share.
func exchangeHash(ex *decode.Exchange) uint64 {
	h := fnv.New64a()
	_, _ = h.Write(binary.LittleEndian.AppendUint64(nil, uint64(ex.Started.UnixNano())))
	_, _ = h.Write(binary.LittleEndian.AppendUint64(nil, uint64(ex.ID)))
	_, _ = h.Write([]byte(ex.Method + " " + ex.URL))
	return h.Sum64()
}
