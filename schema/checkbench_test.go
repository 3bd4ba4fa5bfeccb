package schema

import (
	"testing"
	"unwire/decode/wire"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/dynamicpb"
)

// BenchmarkCheck reports its time as a multiple of that of the wire tree alone
// and of the Go runtime's own dynamic parser.
func BenchmarkCheck(b *testing.B) {
	s, c := benchCorpus(b)
	var t wire.Tree
	parse := timed(b, func() {
		for _, m := range c.samples {
			t.Reset(m, wire.Options{})
		}
	})
	dynamic := timed(b, func() {
		for _, m := range c.samples {
			if err := proto.Unmarshal(m, dynamicpb.NewMessage(c.truth)); err != nil {
				b.Fatal(err)
			}
		}
	})
	k := NewChecker(s, CheckOptions{})
	b.SetBytes(c.size())
	for b.Loop() {
		for _, m := range c.samples {
			t.Reset(m, wire.Options{})
			k.AddMessage("x", c.truth, &t)
		}
	}
	each := float64(b.Elapsed().Nanoseconds()) / float64(b.N)
	b.ReportMetric(each/parse, "x-tree")
	b.ReportMetric(each/dynamic, "x-dynamicpb")
}
