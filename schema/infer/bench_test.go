package infer

import (
	"testing"

	"unwire/schema/internal/schematest"
)

func BenchmarkEvidence(b *testing.B) {
	_, c := schematest.BenchCorpus(b)
	b.SetBytes(c.Size())
	ev := NewEvidence()
	for b.Loop() {
		for _, s := range c.Samples {
			if err := ev.Add("Root", s); err != nil {
				b.Fatal(err)
			}
		}
	}
	b.ReportMetric(float64(b.N)*float64(len(c.Samples))/b.Elapsed().Seconds(), "frames/s")
}

func BenchmarkInfer(b *testing.B) {
	_, c := schematest.BenchCorpus(b)
	ev := NewEvidence()
	for _, s := range c.Samples {
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
	_, c := schematest.BenchCorpus(b)
	part := NewEvidence()
	for _, s := range c.Samples {
		if err := part.Add("Root", s); err != nil {
			b.Fatal(err)
		}
	}
	all := NewEvidence()
	for b.Loop() {
		all.Merge(part)
	}
}
