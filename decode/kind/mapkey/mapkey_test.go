package mapkey

import (
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
)

// TestSet: keys are new once, few and many.
func TestSet(t *testing.T) {
	var s Set
	for range 2 {
		for _, twice := range []bool{false, true} {
			for i := range uint64(40) {
				if s.Add(protowire.AppendVarint(nil, i)) == twice {
					t.Fatalf("key %d: twice %v", i, twice)
				}
			}
		}
		s.Reset()
	}
}
