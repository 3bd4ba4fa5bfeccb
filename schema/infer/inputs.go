package infer

import (
	"encoding/binary"
	"hash/fnv"
	"path/filepath"

	"unwire/decode"
)

// MergeUncounted merges o, unless all of its sources are e's already. It returns the
// share that was e's before: between 0 and 1, that share now counts twice. Of more
// than 1,024 sources it is an estimate.
func (e *Evidence) MergeUncounted(o *Evidence) (shared float64) {
	shared = e.sources.Share(&o.sources)
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
