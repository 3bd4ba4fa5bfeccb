package decode

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protowire"

	"unwire/captures"
	"unwire/captures/store"
	"unwire/decode/kind"
	"unwire/decode/wire"
)

// recordUnary adds a unary call of a method to a capture.
func recordUnary(t testing.TB, s *store.Store, method string, request []byte) {
	t.Helper()
	r, err := s.Begin(captures.Exchange{
		Method: "POST", URL: "https://h.example" + method, HTTP: "1.1", Started: time.Unix(1_700_000_000, 0),
		RequestHeaders: captures.Headers{{Name: "content-type", Value: "application/proto"}, {Name: "connect-protocol-version", Value: "1"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	r.Chunk(captures.Up, request)
	r.Response(200, captures.Headers{{Name: "content-type", Value: "application/proto"}})
	r.End(captures.Complete, "")
}

// One frame whose text happens to be fields is read as what the others of its
// method are: text. Those of another method do not count.
func TestPoolDecides(t *testing.T) {
	word := func(s string) []byte {
		return protowire.AppendString(protowire.AppendTag(nil, 1, protowire.BytesType), s)
	}
	const accident = "\n\x05Lagos" // a field 1 of five letters
	s, err := store.Create(t.TempDir()+"/a.uwc", store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	recordUnary(t, s, "/a.B/C", word(accident))
	recordUnary(t, s, "/a.B/Alone", word(accident))
	for i := range 40 {
		recordUnary(t, s, "/a.B/C", word(fmt.Sprintf("\nline %d of a text that one reads, with words in it", i)))
	}
	if err := s.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	for id, want := range map[int64]string{1: "string", 2: "message"} {
		ex, err := Decode(t.Context(), s, id, Options{})
		if err != nil {
			t.Fatal(err)
		}
		pool := NewPool(t.Context(), s, ex)
		fields := View{Evidence: pool.Of(captures.Up)}.Fields(ex.Frames[0].Tree)
		if fields[0].Kind != want {
			t.Errorf("exchange %d, pooled from %d: %s %v, want %s", id, pool.Frames[0], fields[0].Kind, fields[0].P, want)
		}
	}
	if pool := (*Pool)(nil); pool.Of(captures.Up) != nil {
		t.Error("no pool has evidence")
	}
}

// What is pooled for one exchange does not grow with the capture.
func TestPoolIsBounded(t *testing.T) {
	s, err := store.Create(t.TempDir()+"/a.uwc", store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	body := protowire.AppendVarint(protowire.AppendTag(nil, 1, protowire.VarintType), 1)
	for range 600 {
		recordUnary(t, s, "/a.B/C", body)
	}
	if err := s.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	ex, err := Decode(t.Context(), s, 300, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if pool := NewPool(t.Context(), s, ex); pool.Frames[0] != 1+poolNear {
		t.Errorf("%d frames pooled", pool.Frames[0])
	}
	for range 2 * poolFrames {
		ex.Frames = append(ex.Frames, ex.Frames[0])
	}
	if pool := NewPool(t.Context(), nil, ex); pool.Frames[0] != poolFrames {
		t.Errorf("%d frames of one exchange pooled", pool.Frames[0])
	}
}

// BenchmarkView reads 100 frames by what 256 say, the evidence shared.
func BenchmarkView(b *testing.B) {
	ev := kind.NewEvidence()
	var trees []*wire.Tree
	n := 0
	for i := range 256 {
		m := textField(1, fmt.Sprintf("a text of some words, the %d", i))
		m = append(m, textField(2, string(textField(1, "inner"))+string(textField(2, "words")))...)
		m = protowire.AppendVarint(protowire.AppendTag(m, 3, protowire.VarintType), uint64(i))
		t := wire.Parse(m, wire.Options{})
		if err := ev.AddTree("M", t); err != nil {
			b.Fatal(err)
		}
		if i < 100 {
			trees = append(trees, t)
			n += len(m)
		}
	}
	b.SetBytes(int64(n))
	for b.Loop() {
		v := View{Evidence: kind.NewPooled(ev.Root("M"))}
		for _, t := range trees {
			v.Fields(t)
		}
	}
}

func textField(n protowire.Number, s string) []byte {
	return protowire.AppendString(protowire.AppendTag(nil, n, protowire.BytesType), s)
}

// A Pool that was written as JSON and read again reads every field as it did.
func TestPoolJSON(t *testing.T) {
	s, err := store.Create(t.TempDir()+"/a.uwc", store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	r := rand.New(rand.NewPCG(1, 2))
	for i := range 60 {
		m := textField(1, fmt.Sprintf("a text of some words, the %d", i))
		m = append(m, textField(2, string(textField(1, "inner"))+string(textField(7, "\xff\x00bytes")))...)
		m = protowire.AppendVarint(protowire.AppendTag(m, 3, protowire.VarintType), r.Uint64()>>r.IntN(64))
		m = protowire.AppendFixed32(protowire.AppendTag(m, 4, protowire.Fixed32Type), r.Uint32())
		m = protowire.AppendFixed64(protowire.AppendTag(m, 5, protowire.Fixed64Type), math.Float64bits(r.NormFloat64()))
		packed := make([]byte, r.IntN(20))
		for k := range packed {
			packed[k] = byte(r.IntN(256))
		}
		recordUnary(t, s, "/a.B/C", append(m, textField(6, string(packed))...))
	}
	if err := s.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	ex, err := Decode(t.Context(), s, 30, Options{})
	if err != nil {
		t.Fatal(err)
	}
	pool := NewPool(t.Context(), s, ex)
	data, err := json.Marshal(pool)
	if err != nil {
		t.Fatal(err)
	}
	again := new(Pool)
	if err := json.Unmarshal(data, again); err != nil {
		t.Fatal(err)
	}
	read := func(p *Pool) string {
		b, err := json.Marshal(View{Evidence: p.Of(captures.Up)}.Fields(ex.Frames[0].Tree))
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	if again.Frames != pool.Frames || read(again) != read(pool) {
		t.Errorf("%v\n%s\nwant %v\n%s", again.Frames, read(again), pool.Frames, read(pool))
	}
	for _, bad := range []string{`{}`, `{"version":2}`, `{"version":1,"evidence":{"roots":{"up":{"samples":-1}}}}`, `[`} {
		if err := json.Unmarshal([]byte(bad), new(Pool)); err == nil {
			t.Errorf("%s was taken", bad)
		}
	}
}

// FuzzPool reads evidence that anybody may have put into a capture, and reads a message
// by it.
func FuzzPool(f *testing.F) {
	message := textField(1, "a text")
	message = append(message, textField(2, string(textField(1, "inner")))...)
	message = protowire.AppendVarint(protowire.AppendTag(message, 3, protowire.VarintType), 1_700_000_000)
	message = protowire.AppendFixed32(protowire.AppendTag(message, 4, protowire.Fixed32Type), math.Float32bits(1.5))
	message = protowire.AppendFixed64(protowire.AppendTag(message, 5, protowire.Fixed64Type), math.Float64bits(-2.25))
	message = append(message, textField(6, "\x01\x02\x03\x80\x01")...)
	tree := wire.Parse(message, wire.Options{})
	ev := kind.NewEvidence()
	for range 3 {
		if err := ev.AddTree("up", tree); err != nil {
			f.Fatal(err)
		}
	}
	data, err := json.Marshal(newPool(ev, [2]int{3, 0}))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(string(data))
	f.Add(`{"version":1,"evidence":{"roots":{"up":{"samples":9007199254740992,"fields":{"1":{"seen":1,"occurs":1,"most":1,"message":null}}}}}}`)
	f.Fuzz(func(t *testing.T, data string) {
		pool := new(Pool)
		if err := json.Unmarshal([]byte(data), pool); err != nil {
			return
		}
		for _, field := range (View{Evidence: pool.Of(captures.Up)}).Fields(tree) {
			if field.P < 0 || field.P > 1 || field.P != field.P {
				t.Errorf("field %d has probability %v", field.N, field.P)
			}
		}
		if _, err := json.Marshal(pool); err != nil {
			t.Errorf("what was read cannot be written: %v", err)
		}
	})
}
