package match

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	_ "google.golang.org/genproto/googleapis/rpc/context/attribute_context"
	_ "google.golang.org/genproto/googleapis/rpc/errdetails"
	_ "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"
	_ "google.golang.org/protobuf/types/known/apipb"
	_ "google.golang.org/protobuf/types/known/structpb"
	_ "google.golang.org/protobuf/types/known/typepb"
	_ "google.golang.org/protobuf/types/pluginpb"

	"unwire/decode/fieldpath"
	"unwire/decode/wire"
	"unwire/schema"
	"unwire/schema/internal/schematest"
)

func load(t testing.TB, text string) *schema.Schema {
	t.Helper()
	s, err := schema.Load(t.Context(), fstest.MapFS{"a.proto": {Data: []byte("syntax = \"proto3\";\npackage a;\n" + text)}})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func samples(list ...[]byte) []Sample {
	var out []Sample
	for _, b := range list {
		out = append(out, Sample{Tree: wire.Parse(b, wire.Options{})})
	}
	return out
}

// tags builds a message field by field.
type tags []byte

func (b tags) varint(n protowire.Number, v uint64) tags {
	return protowire.AppendVarint(protowire.AppendTag(b, n, protowire.VarintType), v)
}

func (b tags) text(n protowire.Number, s string) tags {
	return protowire.AppendString(protowire.AppendTag(b, n, protowire.BytesType), s)
}

const vetoProto = `
message Inner { int32 x = 1; string y = 2; }
message Bool { bool v = 1; }
message Int32 { int32 v = 1; }
message Text { string v = 1; }
message Raw { bytes v = 1; }
message Sub { Inner v = 1; }
message List { repeated int32 v = 1; }
message Choice { oneof c { int64 v = 1; int64 w = 2; } }
message Both { int64 v = 1; int64 w = 2; }
message Map { map<string, int32> v = 1; }
`

func TestVetoes(t *testing.T) {
	m := New(load(t, vetoProto), Options{Top: 20})
	for _, c := range []struct {
		name          string
		data          []byte
		message, veto string
	}{
		{"bool of 7", tags(nil).varint(1, 7), "a.Bool", "1: has the value 7, but is declared as bool"},
		{"int32 too large", tags(nil).varint(1, 1<<40), "a.Int32", "1: has a value outside 32 bits, but is declared as int32"},
		{"no UTF-8", tags(nil).text(1, "\xff\xfe"), "a.Text", "1: is not valid UTF-8, but is declared as string"},
		{"no message", tags(nil).text(1, "\xff\xfe"), "a.Sub", "1: does not parse as a message, but is declared as a.Inner"},
		{"wire type", tags(nil).varint(1, 1), "a.Text", "1: the wire type is varint, but the field is declared as string"},
		{"wire type below", tags(nil).text(1, string(tags(nil).varint(2, 1))), "a.Sub", "1.2: the wire type is varint, but the field is declared as string"},
		{"twice", tags(nil).varint(1, 1).varint(1, 2), "a.Int32", "1: occurs 2 times, but is declared as singular"},
		{"not packed", tags(nil).text(1, "\x01\x80"), "a.List", "1: is not a list of varints, but is declared as packed int32"},
		{"oneof", tags(nil).varint(1, 1).varint(2, 2), "a.Choice", "2: field 1 of the same oneof occurs, too"},
	} {
		r := m.Match(samples(c.data))
		i := slices.IndexFunc(r.Vetoed, func(v Candidate) bool { return v.Message == c.message })
		if i < 0 || !slices.Contains(r.Vetoed[i].Vetoes, c.veto) {
			t.Errorf("%s: %s is not vetoed by %q: %+v", c.name, c.message, c.veto, r.Vetoed)
		}
		for _, cand := range r.Candidates {
			if cand.Message == c.message {
				t.Errorf("%s: %s is a candidate", c.name, c.message)
			}
		}
	}
}

func TestRanks(t *testing.T) {
	m := New(load(t, vetoProto), Options{Top: 20})
	for _, c := range []struct {
		name       string
		data       [][]byte
		conclusion Conclusion
		best       string
	}{
		{"two numbers", [][]byte{tags(nil).varint(1, 300).varint(2, 5)}, Matched, "a.Both"},
		{"a message inside", [][]byte{tags(nil).text(1, string(tags(nil).varint(1, 5).text(2, "hello there")))}, Matched, "a.Sub"},
		{"text", [][]byte{tags(nil).text(1, "hello there"), tags(nil).text(1, "some more words")}, Matched, "a.Text"},
		{"bytes", [][]byte{tags(nil).text(1, "\x9f\xb2\x00\x81\x01\xff\xfe")}, Matched, "a.Raw"},
		{"entries", [][]byte{tags(nil).text(1, string(tags(nil).text(1, "a").varint(2, 9))).text(1, string(tags(nil).text(1, "b").varint(2, 9)))}, Matched, "a.Map"},
		{"nothing", [][]byte{{}}, undecided, ""},
		{"no such field", [][]byte{tags(nil).text(99, "hello")}, NoMatch, ""},
	} {
		r := m.Match(samples(c.data...))
		if r.Conclusion != c.conclusion || c.best != "" && (len(r.Candidates) == 0 || r.Candidates[0].Message != c.best) {
			t.Errorf("%s: %s, want %s %s: %+v", c.name, r.Conclusion, c.conclusion, c.best, r.Candidates)
		}
	}
}

func TestTiesAreNamed(t *testing.T) {
	s := load(t, `message A { string v = 1; int32 n = 2; } message B { string w = 1; int32 n = 2; } message C { string v = 1; string n = 2; }`)
	r := New(s, Options{}).Match(samples(tags(nil).text(1, "hello").varint(2, 3)))
	if r.Conclusion != Tied || r.Candidates[0].Ties != 1 || r.Candidates[1].Rank != 1 || r.Candidates[0].P > 0.5 || r.FullName() != "" {
		t.Errorf("%+v", r)
	}
	if len(r.Vetoed) != 1 || r.Vetoed[0].Message != "a.C" {
		t.Errorf("vetoed %+v", r.Vetoed)
	}
	if len(r.Settle) != 1 || !strings.Contains(r.Settle[0], "the same fields") {
		t.Errorf("settled by %q", r.Settle)
	}
	near := load(t, `message A { string v = 1; int32 n = 2; } message B { string w = 1; repeated string n = 2; bool b = 9; }`)
	r = New(near, Options{}).Match(samples(tags(nil).text(1, "hello")))
	if want := []string{"a message with field 2 (int32 n) would show that the type is a.A", "a message with field 2 (repeated string n) or 9 (bool b) would show that the type is a.B"}; !slices.Equal(r.Settle, want) {
		t.Errorf("settled by %q, want %q", r.Settle, want)
	}
	var many strings.Builder
	for i := range 30 {
		fmt.Fprintf(&many, "message M%d { string v = 1; }\n", i)
	}
	if r = New(load(t, many.String()), Options{}).Match(samples(tags(nil).text(1, "x"))); r.Conclusion != undecided || r.Candidates[0].Ties != 29 {
		t.Errorf("%+v", r)
	}
}

func TestPoolingDecides(t *testing.T) {
	s := load(t, `message Flag { bool v = 1; } message Number { int32 v = 1; }`)
	m := New(s, Options{})
	one := tags(nil).varint(1, 1)
	if r := m.Match(samples(one, one, one)); r.Distinct != 1 || r.Samples != 3 || r.Candidates[0].Message != "a.Flag" || r.Possible != 2 {
		t.Errorf("%+v", r)
	}
	if r := m.Match(samples(one, tags(nil).varint(1, 2))); r.Conclusion != Matched || r.Candidates[0].Message != "a.Number" {
		t.Errorf("%+v", r)
	}
}

// TestExplicitContext: a client's source reads UserMessageAction's field 2 as a
// list of files; the definitions know better, and the bytes fit both.
func TestExplicitContext(t *testing.T) {
	s, err := schema.LoadDir(t.Context(), "../../proto")
	if err != nil {
		t.Fatal(err)
	}
	rule := tags(nil).text(1, "/repo/.cursor/rules/style.mdc").text(2, "Always write tests first.\n")
	context := tags(nil).text(2, string(rule))
	action := wire.Parse(tags(nil).text(1, string(tags(nil).text(1, "Say hello."))).text(2, string(context)), wire.Options{})
	path, err := fieldpath.ParseNumbers("2")
	if err != nil {
		t.Fatal(err)
	}
	var list []Sample
	for _, n := range action.Find(path) {
		list = append(list, Sample{action, n})
	}
	r := New(s, Options{Top: 2000}).Match(list)
	found := false
	for _, c := range r.Candidates {
		found = found || c.Message == "agent.v1.RequestContext" && c.Bytes == r.Bytes
	}
	if !found || r.Conclusion == Matched && r.Candidates[0].Message != "agent.v1.RequestContext" {
		t.Errorf("%s: %+v", r.Conclusion, r.Candidates[:min(8, len(r.Candidates))])
	}

	// Beside the misreading, both are named, and which of them it is stays open.
	both := load(t, `message RequestContext { string a = 1; repeated CursorRule rules = 2; string b = 4; }
		message CursorRule { string full_path = 1; string content = 2; }
		message ExplicitContext { string a = 1; repeated FileContext files = 2; string b = 4; }
		message FileContext { string path = 1; string content = 2; }`)
	r = New(both, Options{}).Match(list)
	if r.Conclusion != Tied || r.Candidates[0].Ties != 1 || r.Candidates[0].Message != "a.ExplicitContext" || r.Candidates[1].Message != "a.RequestContext" {
		t.Errorf("%s %+v", r.Conclusion, r.Candidates)
	}
}

// TestHostile: wide and deep messages, against types that refer to each other,
// are matched in bounded time.
func TestHostile(t *testing.T) {
	m := New(manyTypes(t, 400), Options{})
	var wide, deep, list tags
	for i := range 200_000 {
		wide = wide.text(protowire.Number(1+i%12), string(tags(nil).varint(1, uint64(i)).text(2, "\x0a\x00\x12\x00")))
		list = list.varint(1, uint64(i))
	}
	for range 90 {
		deep = append(tags(nil).text(1, string(deep)).text(2, string(deep[:min(len(deep), 1000)])), 0x18, 1)
	}
	for name, data := range map[string][]byte{"wide": wide, "deep": deep, "list": list} {
		start := time.Now()
		r := m.Match(samples(data))
		if d := time.Since(start); d > time.Minute {
			t.Errorf("%s: %v", name, d)
		}
		for _, c := range r.Candidates {
			if c.Bytes > r.Bytes {
				t.Errorf("%s: %+v", name, c)
			}
		}
	}
}

// A maker makes messages with random values.
type maker struct {
	r    *rand.Rand
	full float64 // how likely a field is set
}

func (g maker) message(md protoreflect.MessageDescriptor, depth int) *dynamicpb.Message {
	m := dynamicpb.NewMessage(md)
	fds := md.Fields()
	chosen := map[int]int{}
	for i := range md.Oneofs().Len() {
		chosen[i] = g.r.IntN(md.Oneofs().Get(i).Fields().Len())
	}
	for i := range fds.Len() {
		fd := fds.Get(i)
		if o := fd.ContainingOneof(); o != nil && !o.IsSynthetic() && o.Fields().Get(chosen[o.Index()]) != fd {
			continue
		}
		if fd.Cardinality() != protoreflect.Required && g.r.Float64() > g.full || depth > 4 && fd.Message() != nil {
			continue
		}
		switch {
		case fd.IsMap():
			for range 1 + g.r.IntN(2) {
				m.Mutable(fd).Map().Set(g.value(fd.MapKey(), depth).MapKey(), g.value(fd.MapValue(), depth))
			}
		case fd.IsList():
			for range 1 + g.r.IntN(3) {
				m.Mutable(fd).List().Append(g.value(fd, depth))
			}
		default:
			m.Set(fd, g.value(fd, depth))
		}
	}
	return m
}

func (g maker) value(fd protoreflect.FieldDescriptor, depth int) protoreflect.Value {
	n := 1 + int64(g.r.ExpFloat64()*[]float64{4, 300, 1e5}[g.r.IntN(3)])
	switch fd.Kind() {
	case protoreflect.MessageKind, protoreflect.GroupKind:
		return protoreflect.ValueOfMessage(g.message(fd.Message(), depth+1))
	case protoreflect.StringKind:
		words := []string{"alpha", "list of", "main.go", "https://x.example/a?b=1", "7f3b-12", "Größe", "the", "answer"}
		s := ""
		for range 1 + g.r.IntN(5) {
			s += words[g.r.IntN(len(words))] + " "
		}
		return protoreflect.ValueOfString(strings.TrimSpace(s))
	case protoreflect.BytesKind:
		b := make([]byte, 4+g.r.IntN(30))
		for i := range b {
			b[i] = byte(g.r.Uint32())
		}
		return protoreflect.ValueOfBytes(b)
	case protoreflect.BoolKind:
		return protoreflect.ValueOfBool(true)
	case protoreflect.EnumKind:
		vs := fd.Enum().Values()
		return protoreflect.ValueOfEnum(vs.Get(g.r.IntN(vs.Len())).Number())
	case protoreflect.Int32Kind, protoreflect.Sint32Kind, protoreflect.Sfixed32Kind:
		return protoreflect.ValueOfInt32(int32(n))
	case protoreflect.Int64Kind, protoreflect.Sint64Kind, protoreflect.Sfixed64Kind:
		return protoreflect.ValueOfInt64(n)
	case protoreflect.Uint32Kind, protoreflect.Fixed32Kind:
		return protoreflect.ValueOfUint32(uint32(n))
	case protoreflect.Uint64Kind, protoreflect.Fixed64Kind:
		return protoreflect.ValueOfUint64(uint64(n))
	case protoreflect.FloatKind:
		return protoreflect.ValueOfFloat32(float32(n) / 8)
	}
	return protoreflect.ValueOfFloat64(float64(n) / 100)
}

// A figure is how often types were found.
type figure struct {
	types, first, tied, near int // tied: among those of rank 1; near: of rank 3 or better
	sure, right              int // concluded to match, and that is true
	ties                     int // other types of rank 1, of all results together
	off                      float64
}

// evaluate matches random messages of every type of a schema with fields.
func evaluate(t testing.TB, s *schema.Schema, each int, full float64) (f figure) {
	m := New(s, Options{Top: 50})
	r := rand.New(rand.NewPCG(11, uint64(each)))
	bins := map[int][3]float64{}
	for md := range s.Messages() {
		if md.Fields().Len() == 0 {
			continue
		}
		var list []Sample
		for range each {
			b, err := proto.MarshalOptions{Deterministic: true}.Marshal(maker{r, full}.message(md, 0))
			if err != nil {
				t.Fatal(err)
			}
			list = append(list, samples(b)...)
		}
		res := m.Match(list)
		if res.Bytes == 0 {
			continue
		}
		f.types++
		i := slices.IndexFunc(res.Candidates, func(c Candidate) bool { return c.Message == string(md.FullName()) })
		if i >= 0 {
			c := res.Candidates[i]
			switch {
			case c.Rank == 1 && c.Ties == 0:
				f.first++
			case c.Rank == 1:
				f.tied++
			}
			if c.Rank <= 3 {
				f.near++
			}
		} else if v := slices.IndexFunc(res.Vetoed, func(c Candidate) bool { return c.Message == string(md.FullName()) }); v >= 0 {
			t.Errorf("%s is vetoed: %v", md.FullName(), res.Vetoed[v].Vetoes)
		}
		if len(res.Candidates) > 0 {
			f.ties += res.Candidates[0].Ties
		}
		if res.Conclusion == Matched {
			f.sure++
			if i == 0 {
				f.right++
			}
		}
		if len(res.Candidates) > 0 {
			b := bins[min(9, int(10*res.Candidates[0].P))]
			b[0]++
			b[1] += res.Candidates[0].P
			if i == 0 {
				b[2]++
			}
			bins[min(9, int(10*res.Candidates[0].P))] = b
		}
	}
	for _, b := range bins {
		f.off += math.Abs(b[1]-b[2]) / float64(f.types)
	}
	return f
}

func (f figure) String() string {
	share := func(n, of int) float64 { return 100 * float64(n) / float64(max(of, 1)) }
	return fmt.Sprintf("%d types: first %.1f %%, tied for first %.1f %% (%.1f ties on average), rank 3 or better %.1f %%; said to match %.1f %%, of these right %.1f %%; probability off by %.3f",
		f.types, share(f.first, f.types), share(f.tied, f.types), float64(f.ties)/float64(f.types), share(f.near, f.types), share(f.sure, f.types), share(f.right, f.sure), f.off)
}

func TestEvalMatch(t *testing.T) {
	own, err := schema.LoadDir(t.Context(), "../../proto")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name        string
		s           *schema.Schema
		each        int
		full        float64
		first, near float64 // floors, of types: first or tied for it; rank 3 or better
	}{
		{"proto/, one message, all fields", own, 1, 1, 0.99, 0.99},
		{"proto/, one message, half of the fields", own, 1, 0.5, 0.92, 0.92},
		{"proto/, five messages, most fields", own, 5, 0.8, 0.99, 0.99},
		{"google/*, one message, all fields", schematest.GoogleTypes(), 1, 1, 0.99, 0.99},
		{"google/*, five messages, half of the fields", schematest.GoogleTypes(), 5, 0.5, 0.97, 0.97},
	} {
		start := time.Now()
		f := evaluate(t, c.s, c.each, c.full)
		t.Logf("%s: %s (%v)", c.name, f, time.Since(start).Round(time.Millisecond))
		if found := float64(f.first + f.tied); found < c.first*float64(f.types) || float64(f.near) < c.near*float64(f.types) {
			t.Errorf("%s: worse than it was", c.name)
		}
		if f.right < f.sure {
			t.Errorf("%s: %d said to match do not", c.name, f.sure-f.right)
		}
	}
}

// TestPackedCostsNoMoreThanBytes: a type that explains every byte of a message wins although its packed numbers are
// larger than usual ones.
func TestPackedCostsNoMoreThanBytes(t *testing.T) {
	t.Parallel()
	m := New(load(t, `
message Series { repeated int64 at = 1; repeated double value = 2; repeated uint32 hash = 3; string name = 4; }
message Other { string name = 4; }`), Options{Top: 20})
	r := rand.New(rand.NewPCG(1, 2))
	var at, value, hash []byte
	for range 200 {
		at = protowire.AppendVarint(at, r.Uint64()>>1)
		value = protowire.AppendFixed64(value, math.Float64bits(r.NormFloat64()*1e30))
		hash = protowire.AppendVarint(hash, uint64(r.Uint32()))
	}
	got := m.Match(samples(tags(nil).text(1, string(at)).text(2, string(value)).text(3, string(hash)).text(4, "load")))
	if got.Conclusion != Matched || got.Candidates[0].Message != "a.Series" {
		t.Errorf("%s: %+v", got.Conclusion, got.Candidates)
	}
}
