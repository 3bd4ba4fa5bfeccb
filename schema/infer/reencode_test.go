package infer

import (
	"bytes"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"

	"unwire/schema/internal/schematest"
)

// TestReencodes: a sample whose fields are written by number comes back byte
// for byte from the inferred definitions.
func TestReencodes(t *testing.T) {
	checked := 0
	for seed := range uint64(60) {
		c := schematest.RandomCorpus(t, 20_000+seed, 0)
		g := schematest.NewGenerator(schematest.NewRand(seed))
		for range 12 {
			b, err := proto.MarshalOptions{Deterministic: true}.Marshal(g.Message(c.Truth, 0))
			if err != nil {
				t.Fatal(err)
			}
			c.Samples = append(c.Samples, b)
		}
		in := inferCorpus(t, c)
		for i, s := range c.Samples {
			if !ascendingBelow(c.Truth, s) {
				continue // the Go runtime writes oneofs last
			}
			m := dynamicpb.NewMessage(in.Schema.Message("p.Root"))
			if err := proto.Unmarshal(s, m); err != nil {
				t.Fatal(err)
			}
			back, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
			if err != nil {
				t.Fatal(err)
			}
			if checked++; !bytes.Equal(back, s) {
				t.Fatalf("seed %d, sample %d:\n%x\n%x\n%s", seed, i, s, back, must(in.Text()))
			}
		}
	}
	if checked < 300 {
		t.Errorf("only %d samples were compared", checked)
	}
}

// ascending reports whether the fields of a message stand in order of number.
func ascending(b []byte) bool {
	last := protowire.Number(0)
	for len(b) > 0 {
		n, typ, m := protowire.ConsumeTag(b)
		if n < last {
			return false
		}
		last = n
		b = b[m+protowire.ConsumeFieldValue(n, typ, b[m:]):]
	}
	return true
}

// ascendingBelow is ascending for the messages within too.
func ascendingBelow(md protoreflect.MessageDescriptor, b []byte) bool {
	if !ascending(b) {
		return false
	}
	for len(b) > 0 {
		n, typ, m := protowire.ConsumeTag(b)
		size := protowire.ConsumeFieldValue(n, typ, b[m:])
		if fd := md.Fields().ByNumber(n); fd != nil && fd.Message() != nil && typ == protowire.BytesType {
			if p, _ := protowire.ConsumeBytes(b[m:]); !ascendingBelow(fd.Message(), p) {
				return false
			}
		}
		b = b[m+size:]
	}
	return true
}
