package schema

import (
	"math"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"
)

func inferCorpus(t testing.TB, c corpus) *Inferred {
	t.Helper()
	ev := NewEvidence()
	for _, s := range c.samples {
		if err := ev.Add("Root", s); err != nil {
			t.Fatal(err)
		}
	}
	in, err := Infer(ev, Options{Package: "p"})
	if err != nil {
		t.Fatalf("%s: %v", c.name, err)
	}
	return in
}

// checkDecodes fails unless every sample parses as md without unknown fields.
func checkDecodes(t testing.TB, name string, md protoreflect.MessageDescriptor, samples [][]byte) {
	t.Helper()
	for i, s := range samples {
		m := dynamicpb.NewMessage(md)
		if err := proto.Unmarshal(s, m); err != nil {
			t.Fatalf("%s: sample %d: %v", name, i, err)
		}
		if path := unknownIn(m); path != "" {
			t.Fatalf("%s: sample %d: unknown fields at %s", name, i, path)
		}
	}
}

func unknownIn(m protoreflect.Message) (path string) {
	if len(m.GetUnknown()) > 0 {
		return string(m.Descriptor().FullName())
	}
	m.Range(func(fd protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch {
		case fd.IsMap() && fd.MapValue().Message() != nil:
			v.Map().Range(func(_ protoreflect.MapKey, v protoreflect.Value) bool {
				path = unknownIn(v.Message())
				return path == ""
			})
		case fd.IsList() && fd.Message() != nil:
			for i := 0; i < v.List().Len() && path == ""; i++ {
				path = unknownIn(v.List().Get(i).Message())
			}
		case !fd.IsList() && !fd.IsMap() && fd.Message() != nil:
			path = unknownIn(v.Message())
		}
		return path == ""
	})
	return path
}

type tally struct {
	Agreement
	confidence []confidence
}

type confidence struct {
	p     float64
	right bool
}

func (y *tally) add(t testing.TB, c corpus) {
	in := inferCorpus(t, c)
	root := in.Schema.Message("p.Root")
	if t.Failed() {
		return
	}
	checkDecodes(t, c.name, root, c.samples)
	a := Agree(Pair{root, c.truth})
	y.Fields += a.Fields
	y.Agree += a.Agree
	y.Kind += a.Kind
	y.Type += a.Type
	y.TypeCompatible += a.TypeCompatible
	y.Label += a.Label
	y.LabelCompatible += a.LabelCompatible
	y.Oneof += a.Oneof
	y.Extra += a.Extra
	y.Missing += a.Missing
	wrong := map[[2]any]bool{}
	for _, d := range a.Disagreements {
		if d.What == "kind" || d.What == "extra" {
			wrong[[2]any{d.Message, d.Number}] = true
		}
		y.Disagreements = append(y.Disagreements, d)
	}
	for _, f := range in.Fields {
		switch f.Kind {
		case KindString, KindBytes, KindMessage, KindPacked: // the others are told by the wire
			y.confidence = append(y.confidence, confidence{f.P, !wrong[[2]any{f.Message, f.Number}]})
		}
	}
}

// ece is the expected calibration error over ten bins.
func (y *tally) ece() float64 {
	var n, p, right [10]float64
	for _, c := range y.confidence {
		i := min(int(c.p*10), 9)
		n[i]++
		p[i] += c.p
		if c.right {
			right[i]++
		}
	}
	sum := 0.0
	for i := range n {
		sum += math.Abs(p[i] - right[i])
	}
	return sum / float64(len(y.confidence))
}

func pct(n, of int) float64 { return 100 * float64(n) / float64(of) }

func (y *tally) log(t testing.TB, name string) {
	t.Logf("%s: %d fields, agree %.1f %%, kind %.1f, type %.1f (compatible %.1f), label %.1f (compatible %.1f), oneof %.1f, extra %d, unseen %d, ECE %.3f over %d",
		name, y.Fields, pct(y.Agree, y.Fields), pct(y.Kind, y.Fields), pct(y.Type, y.Fields), pct(y.TypeCompatible, y.Fields),
		pct(y.Label, y.Fields), pct(y.LabelCompatible, y.Fields), pct(y.Oneof, y.Fields), y.Extra, y.Missing, y.ece(), len(y.confidence))
}

func TestEval(t *testing.T) {
	var d tally
	d.add(t, descriptorCorpus(t))
	d.log(t, "descriptors")
	for _, x := range d.Disagreements {
		if !x.Compatible {
			t.Logf("  %+v", x)
		}
	}
	for _, n := range []int{1, 3, 10, 60} {
		var tune, hold tally
		for seed := range uint64(60) {
			y := &tune
			if seed%2 == 1 {
				y = &hold
			}
			y.add(t, randomCorpus(t, seed, n))
		}
		tune.log(t, "even seeds")
		hold.log(t, "odd seeds")
	}
}
