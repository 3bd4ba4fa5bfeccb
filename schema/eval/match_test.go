package eval

import (
	"slices"
	"testing"
	"time"

	"google.golang.org/protobuf/reflect/protoreflect"

	"unwire/decode/wire"
	"unwire/schema"
	"unwire/schema/match"
)

// TestEvalMatchObjects matches Kubernetes' own objects, one at a time, with all
// types of its API. Nothing in package match was tuned on them.
func TestEvalMatchObjects(t *testing.T) {
	corpora := kubernetesCorpora(t)
	var files []protoreflect.FileDescriptor
	for _, c := range corpora {
		if f := c.truth.ParentFile(); !slices.ContainsFunc(files, func(g protoreflect.FileDescriptor) bool { return g.Path() == f.Path() }) {
			files = append(files, f)
		}
	}
	m := match.New(schema.FromFiles(files...), match.Options{Top: 50})
	objects, first, tied, ties, sure, right := 0, 0, 0, 0, 0, 0
	start := time.Now()
	types := 0
	for _, c := range corpora {
		r := m.Match([]match.Sample{{Tree: wire.Parse(c.samples[0], wire.Options{})}})
		types = r.Types
		objects++
		i := slices.IndexFunc(r.Candidates, func(cand match.Candidate) bool { return cand.Message == string(c.truth.FullName()) })
		if i >= 0 && r.Candidates[i].Rank == 1 {
			if ties += r.Candidates[i].Ties; r.Candidates[i].Ties == 0 {
				first++
			} else {
				tied++
			}
		} else {
			t.Logf("  %s: %d of %+v; vetoed %+v", c.name, i, r.Candidates[:min(2, len(r.Candidates))], r.Vetoed[:min(1, len(r.Vetoed))])
		}
		if r.Conclusion == match.Matched {
			sure++
			if i == 0 {
				right++
			}
		}
	}
	share := func(n int) float64 { return 100 * float64(n) / float64(objects) }
	t.Logf("match, Kubernetes objects: %d objects against %d types: first %.1f %%, tied for first %.1f %% (%.1f ties on average); said to match %.1f %%, of these right %d of %d; %v an object",
		objects, types, share(first), share(tied), float64(ties)/float64(objects), share(sure), right, sure, (time.Since(start) / time.Duration(objects)).Round(10*time.Microsecond))
	if objects < 50 || right < sure || share(first+tied) < 97 {
		t.Error("worse than it was")
	}
}
