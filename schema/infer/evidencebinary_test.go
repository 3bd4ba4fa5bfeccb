package infer

import (
	"bytes"
	"os"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"
	"pgregory.net/rapid"

	"unwire/decode/jsontree"
	"unwire/schema"
	"unwire/schema/infer/sources"
	"unwire/schema/internal/schematest"
)

// compact returns the compact form.
func compact(t interface{ Fatal(...any) }, ev *Evidence) []byte {
	b, err := ev.AppendBinary(nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// evidenceProto is the type Evidence of evidence.proto.
func evidenceProto(t interface{ Fatal(...any) }) protoreflect.MessageDescriptor {
	text, err := os.ReadFile("evidence.proto")
	if err != nil {
		t.Fatal(err)
	}
	s, err := schema.FromTexts(map[string]string{"evidence.proto": string(text)})
	if err != nil {
		t.Fatal(err)
	}
	return s.Message("unwire.evidence.v2.Evidence")
}

// richEvidence draws evidence of messages, methods, JSON and parts.
func richEvidence(t *rapid.T) *Evidence {
	ev := NewEvidence()
	roots := []string{"A", methodRoot("a.B/C", 0), methodRoot("a.B/C", 1), methodRoot("a.B/D", 0)}
	for _, s := range rapid.SliceOfN(fieldsGen(0), 0, 8).Draw(t, "samples") {
		if err := ev.Add(rapid.SampledFrom(roots).Draw(t, "root"), s); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range rapid.SliceOfDistinct(rapid.SampledFrom([]string{"a.B/C", "a.B/D"}), rapid.ID[string]).Draw(t, "methods") {
		m := newMethodEvidence()
		m.Calls, m.MostUp, m.MostDown, m.Streams = rapid.Int64Range(0, 9).Draw(t, "calls"), 2, rapid.Int64Range(0, 9).Draw(t, "down"), 1
		m.Protocols["grpc"] = m.Calls
		m.Choices["up/1.2"], m.Choices["down/3"] = "string", "bytes"
		ev.methods[name] = m
	}
	for _, text := range rapid.SliceOf(rapid.SampledFrom([]string{`{"type":"a","b":1.5}`, `{"c":[{"d":null}]}`})).Draw(t, "JSON") {
		v, err := jsontree.Parse([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		ev.json.Add(rapid.SampledFrom([]string{"ws://h/ up", "ws://h/ down"}).Draw(t, "place"), "H", v)
	}
	for _, h := range rapid.SliceOf(rapid.Uint64()).Draw(t, "sources") {
		ev.sources.Add(h)
	}
	return ev
}

// TestBinaryRoundTrip: the compact form is read back, is the same for equal evidence, is smaller than JSON, and is
// what evidence.proto describes.
func TestBinaryRoundTrip(t *testing.T) {
	md := evidenceProto(t)
	rapid.Check(t, func(t *rapid.T) {
		ev := richEvidence(t)
		ev.SetPart(sources.Part{Method: "a.B/C", Direction: "up", Client: "c/1", Day: "2026-01-02"}, []byte{1, 2})
		data := compact(t, ev)
		back, err := ReadEvidence(bytes.NewReader(data))
		if err != nil {
			t.Fatalf("%v of %x", err, data)
		}
		if a, b := written(t, ev), written(t, back); a != b {
			t.Fatalf("wrote\n%s\nread\n%s", a, b)
		}
		if !bytes.Equal(compact(t, back), data) {
			t.Fatal("written twice, not the same")
		}
		if len(ev.Roots()) > 0 && len(data) >= len(written(t, ev)) {
			t.Fatalf("%d bytes, in JSON %d", len(data), len(written(t, ev)))
		}

		m := dynamicpb.NewMessage(md)
		if err := proto.Unmarshal(data, m); err != nil {
			t.Fatal(err)
		}
		if path := schema.TypeWithUnknownFields(m); path != "" {
			t.Fatalf("evidence.proto lacks a field of %s", path)
		}
		other, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		if back, err = ReadEvidence(bytes.NewReader(other)); err != nil {
			t.Fatalf("what another library writes: %v", err)
		}
		if a, b := written(t, ev), written(t, back); a != b {
			t.Fatalf("wrote\n%s\nread from another library\n%s", a, b)
		}
	})
}

// TestProtoFile: every member of the stored form is in evidence.proto, by the name that it has in JSON.
func TestProtoFile(t *testing.T) {
	seen := map[reflect.Type]bool{}
	var check func(typ reflect.Type, md protoreflect.MessageDescriptor) int
	check = func(typ reflect.Type, md protoreflect.MessageDescriptor) (members int) {
		for i := range typ.NumField() {
			f := typ.Field(i)
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			tag, tagged := f.Tag.Lookup("pb")
			if !tagged {
				if f.Anonymous {
					members += check(f.Type, md)
				} else if name != "" {
					t.Errorf("%s.%s is in JSON only", typ, f.Name)
				}
				continue
			}
			members++
			number, how, _ := strings.Cut(tag, ",")
			n, _ := strconv.Atoi(number)
			fd := md.Fields().ByNumber(protoreflect.FieldNumber(n))
			if fd == nil || name != "-" && string(fd.Name()) != name {
				t.Errorf("%s.%s is %s = %d in JSON and Go, and %v in evidence.proto", typ, f.Name, name, n, fd)
				continue
			}
			if want := map[string]string{"sint": "sint64", "fixed": "fixed64"}[how]; want != "" && fd.Kind().String() != want {
				t.Errorf("%s: %s, want %s", fd.FullName(), fd.Kind(), want)
			}

			// Follow lists, maps and pointers to structs.
			elem := f.Type
			if fd.IsMap() {
				fd = fd.MapValue()
			}
			for elem.Kind() == reflect.Pointer || elem.Kind() == reflect.Slice || elem.Kind() == reflect.Map {
				elem = elem.Elem()
			}
			if elem.Kind() != reflect.Struct {
				continue
			}
			if fd.Message() == nil {
				t.Errorf("%s is no message", fd.FullName())
			} else if !seen[elem] {
				seen[elem] = true
				if n := check(elem, fd.Message()); n != fd.Message().Fields().Len() {
					t.Errorf("%s has %d fields, the program writes %d", fd.Message().FullName(), fd.Message().Fields().Len(), n)
				}
			}
		}
		return members
	}
	check(reflect.TypeFor[evidenceDoc](), evidenceProto(t))
	if len(seen) < 15 {
		t.Errorf("%d types were compared", len(seen))
	}
}

// TestSplit: the parts of evidence, merged in any order, are the evidence.
func TestSplit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ev := richEvidence(t)
		whole := written(t, ev)
		split, err := ev.Split(sources.Part{Client: "c/1", Day: "2026-01-02"})
		if err != nil {
			t.Fatal(err)
		}
		var parts []*Evidence
		for p, part := range split {
			if p.Client != "c/1" || p.Day != "2026-01-02" {
				t.Fatalf("%+v", p)
			}
			if roots := part.Roots(); len(roots) > 1 {
				t.Fatalf("%+v has %q", p, roots)
			}
			parts = append(parts, part)
		}
		merged := NewEvidence()
		for _, part := range parts { // the order of a map is random
			back, err := ReadEvidence(bytes.NewReader(compact(t, part)))
			if err != nil {
				t.Fatal(err)
			}
			merged.Merge(back)
		}
		if got := written(t, merged); got != whole {
			t.Fatalf("merged\n%s\nwhole\n%s", got, whole)
		}
	})
}

// TestMergeLaws: evidence of segments merges in any order and grouping, and a segment that arrives again changes
// nothing, in the compact form.
func TestMergeLaws(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 5).Draw(t, "segments")
		segments := make([]*Evidence, n)
		for i := range segments {
			segments[i] = richEvidence(t)
			segments[i].SetPart(sources.Part{Method: "a.B/C", Client: "c/1"}, []byte{byte(i)})
		}
		copyOf := func(ev *Evidence) *Evidence {
			back, err := ReadEvidence(bytes.NewReader(compact(t, ev)))
			if err != nil {
				t.Fatal(err)
			}
			return back
		}
		want := NewEvidence()
		for _, s := range segments {
			if shared := want.MergeIfNew(s); shared != 0 {
				t.Fatalf("%v of a new segment is shared", shared)
			}
		}

		// Merge neighbours of a permutation until one is left; each result may arrive twice.
		list := rapid.Permutation(segments).Draw(t, "order")
		for len(list) > 1 {
			i := rapid.IntRange(0, len(list)-2).Draw(t, "pair")
			a, b := copyOf(list[i]), list[i+1]
			a.MergeIfNew(b)
			if rapid.Bool().Draw(t, "again") {
				before := compact(t, a)
				if shared := a.MergeIfNew(copyOf(b)); shared != 1 || !bytes.Equal(compact(t, a), before) {
					t.Fatalf("a segment that arrived again: %v is shared", shared)
				}
			}
			list = append(append(append([]*Evidence{}, list[:i]...), a), list[i+2:]...)
		}
		if got := list[0]; !bytes.Equal(compact(t, got), compact(t, want)) {
			t.Fatalf("merged\n%s\nin order\n%s", written(t, got), written(t, want))
		}
		if got := len(list[0].Parts().Segments(sources.Part{Method: "a.B/C", Client: "c/1"})); got != n {
			t.Fatalf("%d segments, want %d", got, n)
		}
	})
}

func TestReadBinaryRefuses(t *testing.T) {
	ev := evidenceOf(t, []byte{8, 1, 0x12, 2, 'h', 'i'})
	ev.SetPart(sources.Part{Method: "m"}, []byte{1})
	good := string(compact(t, ev))
	for name, bad := range map[string]string{
		"cut":                     good[:len(good)-1],
		"a newer version":         strings.Replace(good, "\x10\x02", "\x10\x03", 1),
		"a field of a newer":      good + "\x78\x01",
		"a field that is two":     good + "\x10\x02",
		"a segment that is empty": strings.Replace(good, "\x12\x01\x01", "\x12\x00", 1) + "",
	} {
		if bad == good {
			t.Fatalf("%s: nothing to edit", name)
		}
		if _, err := ReadEvidence(strings.NewReader(bad)); err == nil {
			t.Errorf("%s: accepted", name)
		} else if !strings.HasPrefix(err.Error(), "schema: the evidence file (statistics about fields) is malformed: ") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// FuzzReadBinary: no bytes make reading, merging or inferring panic, and what is read is written and read alike.
func FuzzReadBinary(f *testing.F) {
	for seed := range uint64(3) {
		c := schematest.RandomCorpus(f, seed, 2)
		ev := NewEvidence()
		for _, s := range c.Samples {
			if err := ev.Add("R", s); err != nil {
				f.Fatal(err)
			}
		}
		f.Add(compact(f, ev))
	}
	ev := evidenceOf(f, []byte{8, 1}, []byte("\x12\x02hi\x1a\x08abcdefgh\x25abcd\x29abcdefgh"))
	ev.SetPart(sources.Part{Method: "m", Direction: "up"}, []byte{1})
	f.Add(compact(f, ev))
	f.Fuzz(func(t *testing.T, data []byte) {
		if !isBinary(data) {
			return
		}
		ev, err := ReadEvidence(bytes.NewReader(data))
		if err != nil {
			return
		}
		again := compact(t, ev)
		back, err := ReadEvidence(bytes.NewReader(again))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(compact(t, back), again) {
			t.Fatal("written twice, not the same")
		}
		back.Merge(ev)
		if _, err := Infer(back, Options{Package: "p"}); err != nil {
			t.Fatal(err)
		}
	})
}

// BenchmarkCombine merges the evidence of a shard that is read in either form, as a combiner does: the cost for each MB
// of JSON, which is the same evidence for both.
func BenchmarkCombine(b *testing.B) {
	_, c := schematest.BenchCorpus(b)
	ev := NewEvidence()
	for _, s := range c.Samples {
		if err := ev.Add("Root", s); err != nil {
			b.Fatal(err)
		}
	}
	text := written(b, ev)
	for name, data := range map[string][]byte{"json": []byte(text), "binary": compact(b, ev)} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			b.ReportMetric(float64(len(data)), "bytes")
			all := NewEvidence()
			for b.Loop() {
				part, err := ReadEvidence(bytes.NewReader(data))
				if err != nil {
					b.Fatal(err)
				}
				all.Merge(part)
			}
			b.ReportMetric(float64(len(data)), "bytes")
		})
	}
}
