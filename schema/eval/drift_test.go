//go:build eval

package eval

import (
	"fmt"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// TestEvalDrift holds the newest version of Kubernetes' objects against what is
// inferred of an older one: the unknown fields must be those that were added.
func TestEvalDrift(t *testing.T) {
	added, found, alarms, types := 0, 0, 0, 0
	for _, c := range kubernetesCorpora(t) {
		if len(c.samples) < 2 {
			continue
		}
		newest, oldest := c.samples[0], c.samples[len(c.samples)-1]
		before, after := map[place]*truth{}, map[place]*truth{}
		collect(c.truth, oldest, before)
		collect(c.truth, newest, after)
		in, _ := inferFrom(t, &c, [][]byte{oldest})
		said := map[place]bool{}
		unknownPlaces(in.Schema.Message("p.Root"), c.truth, newest, said)
		old := map[protoreflect.FullName]bool{c.truth.FullName(): true}
		for at := range before {
			old[at.message] = true
		}
		types++
		for at := range after {
			if before[at] == nil && old[at.message] {
				if added++; said[at] {
					found++
				}
			}
		}
		for at := range said {
			if before[at] != nil {
				alarms++
			}
		}
	}
	fmt.Printf("drift of %d Kubernetes types over two versions: %d fields added, %d of them found, %d false alarms\n", types, added, found, alarms)
	if types == 0 || 100*found < 99*added || alarms > 0 {
		t.Error("added fields were missed, or others said to be new")
	}
}

// unknownPlaces notes the fields of a message that got does not have.
func unknownPlaces(got, want protoreflect.MessageDescriptor, data []byte, out map[place]bool) {
	for len(data) > 0 {
		n, typ, m := protowire.ConsumeTag(data)
		size := protowire.ConsumeFieldValue(n, typ, data[m:])
		value := data[m : m+size]
		data = data[m+size:]
		fd, g := want.Fields().ByNumber(n), got.Fields().ByNumber(n)
		if g == nil {
			out[place{want.FullName(), n}] = true
			continue
		}
		if typ == protowire.BytesType && fd != nil && fd.Message() != nil && g.Message() != nil {
			p, _ := protowire.ConsumeBytes(value)
			unknownPlaces(g.Message(), fd.Message(), p, out)
		}
	}
}
