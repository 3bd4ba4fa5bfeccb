package schema

import (
	"math"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/dynamicpb"

	"unwire/decode/wire"
)

// benchCorpus is messages of a stream as the agent's: many small ones, text in most.
func benchCorpus(b *testing.B) (*Schema, corpus) {
	s, err := LoadDir(b.Context(), "../proto")
	if err != nil {
		b.Fatal(err)
	}
	c := corpus{truth: s.Method("agent.v1.AgentService", "Run").Output()}
	g := newGenerator(newRand(5))
	for range 400 {
		m, err := proto.Marshal(g.message(c.truth, 3))
		if err != nil {
			b.Fatal(err)
		}
		c.samples = append(c.samples, m)
	}
	return s, c
}

func (c corpus) size() (n int64) {
	for _, s := range c.samples {
		n += int64(len(s))
	}
	return n
}

func BenchmarkEvidence(b *testing.B) {
	_, c := benchCorpus(b)
	b.SetBytes(c.size())
	ev := NewEvidence()
	for b.Loop() {
		for _, s := range c.samples {
			if err := ev.Add("Root", s); err != nil {
				b.Fatal(err)
			}
		}
	}
	b.ReportMetric(float64(b.N)*float64(len(c.samples))/b.Elapsed().Seconds(), "frames/s")
}

func BenchmarkInfer(b *testing.B) {
	_, c := benchCorpus(b)
	ev := NewEvidence()
	for _, s := range c.samples {
		if err := ev.Add("Root", s); err != nil {
			b.Fatal(err)
		}
	}
	fields := 0
	for b.Loop() {
		in, err := Infer(ev, Options{})
		if err != nil {
			b.Fatal(err)
		}
		fields = len(in.Fields)
	}
	b.ReportMetric(float64(fields), "fields")
}

func BenchmarkMerge(b *testing.B) {
	_, c := benchCorpus(b)
	part := NewEvidence()
	for _, s := range c.samples {
		if err := part.Add("Root", s); err != nil {
			b.Fatal(err)
		}
	}
	all := NewEvidence()
	for b.Loop() {
		all.Merge(part)
	}
}

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

// timed returns the nanoseconds of one run of f, of the best of a few.
func timed(b *testing.B, f func()) float64 {
	b.Helper()
	best := time.Duration(math.MaxInt64)
	for range 10 {
		start := time.Now()
		f()
		best = min(best, time.Since(start))
	}
	return float64(best)
}
