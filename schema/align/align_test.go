package align

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"
	"pgregory.net/rapid"

	"unwire/schema"
)

// pairOf encodes a message both ways.
func pairOf(t interface{ Fatal(...any) }, name string, m *dynamicpb.Message, o protojson.MarshalOptions) dataPair {
	data, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	text, err := o.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return dataPair{Message: name, Proto: data, JSON: text, Evidence: [2]string{"p", "j"}}
}

// truth looks a join up in the schema: types named after their place are
// followed from the root's.
type truth struct {
	types map[string]protoreflect.MessageDescriptor
}

func newTruth(root string, md protoreflect.MessageDescriptor) *truth {
	t := &truth{types: map[string]protoreflect.MessageDescriptor{}}
	t.walk(root, md, 0)
	return t
}

func (t *truth) walk(name string, md protoreflect.MessageDescriptor, depth int) {
	if depth > 6 || strings.HasPrefix(string(md.FullName()), "google.protobuf.") && depth > 0 {
		return
	}
	t.types[name] = md
	for i := range md.Fields().Len() {
		fd := md.Fields().Get(i)
		of := fd.Message()
		if fd.IsMap() {
			of = fd.MapValue().Message()
		}
		if of != nil {
			t.walk(childName(name, uint64(fd.Number())), of, depth+1)
		}
	}
}

// wrong says what is wrong with a join; known is false where the truth does
// not reach.
func (t *truth) wrong(j Join) (complaint string, known bool) {
	md := t.types[j.Message]
	if md == nil {
		return "", strings.HasPrefix(j.Message, "w.v1.")
	}
	fd := md.Fields().ByNumber(protoreflect.FieldNumber(j.Number))
	switch {
	case fd == nil:
		return "no such field", true
	case fd.JSONName() != j.JSONName && string(fd.Name()) != j.JSONName:
		return "it is " + fd.JSONName(), true
	}
	kind := fd.Kind().String()
	if fd.Message() != nil && strings.HasPrefix(string(fd.Message().FullName()), "google.protobuf.") && fd.Message().Name() != "Empty" {
		kind = string(fd.Message().FullName())
	}
	if fd.IsMap() {
		kind = "map"
	}
	allowed := append([]string{j.Type}, j.Alternatives...)
	if !slices.ContainsFunc(allowed, func(s string) bool {
		s = strings.TrimPrefix(s, "repeated ")
		return s == kind || kind == "map" && strings.HasPrefix(s, "map<") || kind == "message" && (strings.HasPrefix(s, j.Message) || strings.HasPrefix(s, "w.v1."))
	}) {
		return "its type is " + kind + ", not " + strings.Join(allowed, " or "), true
	}
	for name, number := range j.Enum {
		ed := fd.Enum()
		if fd.IsMap() {
			ed = fd.MapValue().Enum()
		}
		if ed == nil {
			return "it is no enum", true
		}
		if v := ed.Values().ByName(protoreflect.Name(name)); v == nil || v.Number() != protoreflect.EnumNumber(number) {
			return "the enum has no " + name, true
		}
	}
	return "", true
}

// seen counts the fields that stand in JSON, by type and number.
func seen(m protoreflect.Message, name string, into map[string]map[uint64]bool) {
	if into[name] == nil {
		into[name] = map[uint64]bool{}
	}
	m.Range(func(fd protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		into[name][uint64(fd.Number())] = true
		child := childName(name, uint64(fd.Number()))
		follow := func(v protoreflect.Value) {
			if m := v.Message(); !strings.HasPrefix(string(m.Descriptor().FullName()), "google.protobuf.") {
				seen(m, child, into)
			}
		}
		switch {
		case fd.IsMap() && fd.MapValue().Message() != nil:
			v.Map().Range(func(_ protoreflect.MapKey, v protoreflect.Value) bool { follow(v); return true })
		case fd.IsMap() || fd.Message() == nil:
		case fd.IsList():
			for i := range v.List().Len() {
				follow(v.List().Get(i))
			}
		default:
			follow(v)
		}
		return true
	})
}

// TestNoWrongJoin: whatever the schema and however alike the values, what is
// joined is right.
func TestNoWrongJoin(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		w := newWorld(r, rapid.Bool().Draw(t, "narrow"), 1+r.IntN(6))
		root := w.file.Messages().Get(0)
		o := protojson.MarshalOptions{EmitUnpopulated: rapid.Bool().Draw(t, "full"), UseProtoNames: rapid.Bool().Draw(t, "names"), UseEnumNumbers: rapid.Bool().Draw(t, "numbers")}
		var a Aligner
		for range rapid.IntRange(1, 6).Draw(t, "pairs") {
			m := w.fill(root, rapid.SampledFrom([]float64{0.2, 0.5, 0.9}).Draw(t, "density"), 0)
			if err := a.addPair(pairOf(t, "w.v1.Root", m, o)); err != nil {
				t.Fatal(err)
			}
		}
		truth, report := newTruth("w.v1.Root", root), a.Solve()
		if len(report.Skipped) > 0 || len(report.Differ) > 0 {
			t.Fatalf("skipped %q, differ %q", report.Skipped, report.Differ)
		}
		if _, err := schema.FromDescriptorSet(report.DescriptorSet()); err != nil {
			t.Fatalf("the definitions: %v", err)
		}
		for _, j := range report.Joins {
			if complaint, _ := truth.wrong(j); complaint != "" {
				t.Fatalf("%s.%d = %s (%s): %s", j.Message, j.Number, j.JSONName, j.Type, complaint)
			}
		}
	})
}

// score is the share of the fields seen that are joined, over many schemas.
func score(t *testing.T, pairs, schemas int) (share float64, wrong int) {
	var found, all int
	for s := range schemas {
		r := rand.New(rand.NewPCG(uint64(s), 7))
		w := newWorld(r, false, 1+r.IntN(6))
		root := w.file.Messages().Get(0)
		truth := newTruth("w.v1.Root", root)
		into := map[string]map[uint64]bool{}
		var a Aligner
		for range pairs {
			m := w.fill(root, 0.6, 0)
			seen(m, "w.v1.Root", into)
			if err := a.addPair(pairOf(t, "w.v1.Root", m, protojson.MarshalOptions{})); err != nil {
				t.Fatal(err)
			}
		}
		for _, j := range a.Solve().Joins {
			complaint, known := truth.wrong(j)
			if complaint != "" {
				wrong++
				t.Logf("schema %d: %s.%d = %s: %s", s, j.Message, j.Number, j.JSONName, complaint)
			}
			if known && into[j.Message][j.Number] {
				found++
			}
		}
		for _, fields := range into {
			all += len(fields)
		}
	}
	return float64(found) / float64(all), wrong
}

func TestScore(t *testing.T) {
	for _, c := range []struct {
		pairs int
		floor float64
	}{{1, 0.8}, {5, 0.95}} {
		share, wrong := score(t, c.pairs, 100)
		t.Logf("%d pairs: %.3f of the names seen, %d wrong", c.pairs, share, wrong)
		if wrong > 0 || share < c.floor {
			t.Errorf("%d pairs: %.3f of the names seen (at least %.2f), %d wrong", c.pairs, share, c.floor, wrong)
		}
	}
}

// stir gives some singular scalars of a message other values. Enums stay: of one
// whose value, and nothing else, changes between two calls, any name fits any number.
func (w *world) stir(m protoreflect.Message, share float64) {
	m.Range(func(fd protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch {
		case fd.IsMap() || fd.IsList() || fd.Enum() != nil:
		case fd.Message() == nil && w.r.Float64() < share:
			m.Set(fd, w.scalar(fd))
		case fd.Message() != nil && !strings.HasPrefix(string(fd.Message().FullName()), "google.protobuf."):
			w.stir(v.Message(), share)
		}
		return true
	})
}

// TestVolatileAnswers: where the halves of a pair are not the same data, what
// is joined is right all the same.
func TestVolatileAnswers(t *testing.T) {
	joins, differ := 0, 0
	for s := range 150 {
		r := rand.New(rand.NewPCG(uint64(s), 9))
		w := newWorld(r, false, 1+r.IntN(6))
		root := w.file.Messages().Get(0)
		truth := newTruth("w.v1.Root", root)
		var a Aligner
		for range 1 + s%4 {
			m := w.fill(root, 0.6, 0)
			p := pairOf(t, "w.v1.Root", m, protojson.MarshalOptions{})
			w.stir(m, 0.2)
			p.JSON = pairOf(t, "w.v1.Root", m, protojson.MarshalOptions{}).JSON
			if err := a.addPair(p); err != nil {
				t.Fatal(err)
			}
		}
		report := a.Solve()
		differ += len(report.Differ)
		for _, j := range report.Joins {
			joins++
			if complaint, _ := truth.wrong(j); complaint != "" {
				t.Errorf("schema %d: %s.%d = %s (%s): %s", s, j.Message, j.Number, j.JSONName, j.Type, complaint)
			}
		}
	}
	t.Logf("%d joins, %d pairs that differ", joins, differ)
	if joins == 0 || differ == 0 {
		t.Error("nothing was tried")
	}
}

// TestOrderAndRepetition: the order of pairs does not matter, and a pair counts once.
func TestOrderAndRepetition(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 3))
	w := newWorld(r, true, 3)
	root := w.file.Messages().Get(0)
	var once, twice Aligner
	var pairs []dataPair
	for i := range 6 {
		p := pairOf(t, "w.v1.Root", w.fill(root, 0.5, 0), protojson.MarshalOptions{})
		p.Evidence = [2]string{strings.Repeat("p", i+1), "j"}
		pairs = append(pairs, p)
		if err := once.addPair(p); err != nil {
			t.Fatal(err)
		}
	}
	for _, i := range []int{1, 3, 5, 5, 3, 1, 4, 2, 0} {
		if err := twice.addPair(pairs[i]); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(once.Solve(), twice.Solve(), cmp.AllowUnexported(Join{})); diff != "" {
		t.Error(diff)
	}
}

// FuzzSolve: whatever a capture holds, it ends.
func FuzzSolve(f *testing.F) {
	f.Add([]byte{0x08, 5, 0x12, 1, 'a'}, []byte(`{"count":5,"name":"a"}`), []byte{0x08, 0}, []byte(`{}`))
	f.Add([]byte{0x0a, 4, 0x0a, 0, 0x12, 0}, []byte(`{"m":{"":""}}`), []byte{0x0b, 0x0c}, []byte(`{"g":{}}`))
	f.Add([]byte{0x0a, 2, 1, 2}, []byte(`{"l":[1,2]}`), []byte{0x0a, 1, 1}, []byte(`{"l":["ONE"]}`))
	f.Fuzz(func(t *testing.T, a, b, c, d []byte) {
		var al Aligner
		for _, p := range [][2][]byte{{a, b}, {c, d}} {
			if err := al.addPair(dataPair{Message: "f.F", Proto: p[0], JSON: p[1]}); err != nil {
				return
			}
		}
		r := al.Solve()
		if again := al.Solve(); len(again.Joins) != len(r.Joins) {
			t.Errorf("%d joins, and then %d", len(r.Joins), len(again.Joins))
		}
		if _, err := schema.FromDescriptorSet(r.DescriptorSet()); err != nil {
			t.Logf("%v", err)
		}
	})
}
