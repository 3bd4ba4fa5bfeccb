package diff

import (
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"
	"time"

	"unwire/decode/wire"
)

const (
	largeElements = 100_000
	largeEdits    = 1000
)

// largePair returns two messages of many elements with texts of the length
// given, the second with elements changed, inserted, removed and moved.
func largePair(elements, textLen int) (a, b []byte) {
	r := rand.New(rand.NewPCG(5, 5))
	body := strings.Repeat("some text that is the same everywhere, ", textLen/39+1)[:textLen]
	elem := func(serial int, extra string) msg {
		return msg{3, msg{1, sentence(serial), 2, serial % 500, 4, msg{1, body, 2, serial % 7}, 5, extra}}
	}
	var before, after [][]byte
	for i := range elements {
		e := elem(i, "same").bytes()
		before, after = append(before, e), append(after, e)
	}
	for i := range largeEdits {
		at := r.IntN(len(after))
		switch i % 4 {
		case 0:
			after[at] = elem(largeElements+i, "changed").bytes()
		case 1:
			after[at] = append(elem(2*largeElements+i, "new").bytes(), after[at]...)
		case 2:
			after[at] = nil
		default:
			to := r.IntN(len(after))
			after[to] = append(after[to][:len(after[to]):len(after[to])], after[at]...)
			after[at] = nil
		}
	}
	join := func(list [][]byte) (out []byte) {
		for _, e := range list {
			out = append(out, e...)
		}
		return out
	}
	return join(before), join(after)
}

// TestLarge: 20,000 elements of which 1,000 were edited take no more than the
// length of the lists, in time as in changes.
func TestLarge(t *testing.T) {
	a, b := largePair(largeElements/5, 20)
	start := time.Now()
	changes := compareTrees(wire.Parse(a, wire.Options{}), wire.Parse(b, wire.Options{}), Options{})
	took := time.Since(start)
	t.Logf("%d and %d bytes: %d changes in %v", len(a), len(b), len(changes), took)
	if len(changes) < largeEdits*9/10 || len(changes) > largeEdits*5/2 {
		t.Errorf("%d changes for %d edits, of which some change four fields", len(changes), largeEdits)
	}
	if took > time.Minute {
		t.Errorf("took %v", took)
	}
}

// TestShuffled: elements that all moved are moves, and nothing else.
func TestShuffled(t *testing.T) {
	var a, b msg
	const n = 3000
	for i := range n {
		a = append(a, 3, msg{5, sentence(i), 6, i})
		b = append(b, 3, msg{5, sentence(n - 1 - i), 6, n - 1 - i})
	}
	changes := compareTrees(a.tree(), b.tree(), Options{})
	for _, c := range changes {
		if c.Op != Move {
			t.Fatalf("%q", lines([]Change{c}))
		}
	}
	if len(changes) != n-1 {
		t.Errorf("%d moves", len(changes))
	}
}

func BenchmarkLarge(b *testing.B) {
	x, y := largePair(largeElements, 400)
	b.SetBytes(int64(len(x) + len(y)))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for b.Loop() {
		if n := len(compareTrees(wire.Parse(x, wire.Options{}), wire.Parse(y, wire.Options{}), Options{})); n < largeEdits/2 {
			b.Fatalf("%d changes", n)
		}
	}
	runtime.ReadMemStats(&after)
	b.ReportMetric(float64(after.TotalAlloc-before.TotalAlloc)/float64(b.N)/(1<<20), "MB-allocated/op")
}
