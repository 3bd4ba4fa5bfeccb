package check

import (
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/dynamicpb"

	"unwire/decode/wire"
	"unwire/schema/internal/schematest"
)

// BenchmarkCheck reports its time as a multiple of that of the wire tree alone
// and of the Go runtime's own dynamic parser.
func BenchmarkCheck(b *testing.B) {
	s, c := schematest.BenchCorpus(b)
	var t wire.Tree
	parse := schematest.Timed(b, func() {
		for _, m := range c.Samples {
			t.Reset(m, wire.Options{})
		}
	})
	dynamic := schematest.Timed(b, func() {
		for _, m := range c.Samples {
			if err := proto.Unmarshal(m, dynamicpb.NewMessage(c.Truth)); err != nil {
				b.Fatal(err)
			}
		}
	})
	k := NewChecker(s, Options{})
	b.SetBytes(c.Size())
	for b.Loop() {
		for _, m := range c.Samples {
			t.Reset(m, wire.Options{})
			k.addMessage("x", c.Truth, &t)
		}
	}
	each := float64(b.Elapsed().Nanoseconds()) / float64(b.N)
	b.ReportMetric(each/parse, "x-tree")
	b.ReportMetric(each/dynamic, "x-dynamicpb")
}
