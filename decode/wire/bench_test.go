package wire

import (
	"testing"

	"unwire/decode/internal/barewalk"
)

// BenchmarkParse compares the tree with a bare walk over the tags that tries
// every payload as a message too.
func BenchmarkParse(b *testing.B) {
	data := barewalk.Descriptors(b)
	tree := new(Tree)
	barewalk.Compare(b, data, func() { tree.Reset(data, Options{}) })
	b.ReportMetric(float64(len(tree.Nodes)), "nodes")
}
