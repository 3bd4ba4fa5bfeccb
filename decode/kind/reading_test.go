package kind

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	_ "google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/known/apipb"
	"google.golang.org/protobuf/types/known/structpb"

	"unwire/decode/wire"
)

// readingsOf are the readings of one node, by its tree alone.
func readingsOf(t *wire.Tree, i int32) []Reading { return NewReader(t, nil).Readings(i) }

// field wraps a payload as field 1.
func field(payload []byte) []byte {
	return append(wire.AppendVarint([]byte{0x0a}, uint64(len(payload))), payload...)
}

func varints(vs ...uint64) (b []byte) {
	for _, v := range vs {
		b = wire.AppendVarint(b, v)
	}
	return b
}

func TestReadings(t *testing.T) {
	hash := sha256.Sum256([]byte("blob"))
	for _, c := range []struct {
		payload []byte
		want    string
		least   float64
	}{
		{[]byte("Hi"), "string", 0.8},
		{[]byte("\n\x03abc"), "message", 0.9},
		{[]byte("image.png"), "string", 0.9},
		{[]byte("\n"), "string", 0.6},
		{[]byte("ok"), "string", 0.8},
		{[]byte("a"), "string", 0.7},
		{[]byte("hello, world"), "string", 0.9},
		{[]byte("日本語のテキスト"), "string", 0.9},
		{[]byte("你好"), "string", 0.7},
		{[]byte("привет, мир"), "string", 0.9},
		{[]byte("👍🏽 done 🎉"), "string", 0.9},
		{[]byte("안녕하세요"), "string", 0.8},
		{[]byte("été à Zürich"), "string", 0.9},
		{[]byte("\x1b[31mred\x1b[0m\r\n"), "string", 0.9},
		{hash[:], "bytes", 0.9},
		{hash[:16], "bytes", 0.45},
		{[]byte("\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR"), "bytes", 0.9},
		// zstd of a message that it did not compress: the head, the message and the checksum are fields.
		{unhex(t, "28b52ffd0400090300 4a0e746f6c64206265736964652069741a30"+strings.Repeat("33", 48)+"20e2fe0b"), "bytes", 0.9},
		{[]byte{8, 1}, "message", 0.8},
		{nil, "message", 0.5},
		{unhex(t, "0a060a040a024869"), "message", 0.95},
		{unhex(t, "08c0843d 1203 616263"), "message", 0.95},
		{varints(1, 2, 3, 4, 5), "packed varint", 0.8},
		{varints(3, 270, 86942), "packed varint", 0.8},
		{varints(1700000000000, 1700000000350, 1700000001000), "packed varint", 0.9},
		{floats32(0.5, 1.25, 3, -7.5), "packed float", 0.9},
		{floats64(0.5, 1.25, 3, -7.5), "packed double", 0.9},
	} {
		tree := wire.Parse(field(c.payload), wire.Options{})
		got := readingsOf(tree, 1)
		if got[0].Type != c.want || got[0].P < c.least {
			t.Errorf("%q: %s, want %s with at least %.2f", c.payload, describe(got), c.want, c.least)
		}
		checkReadings(t, got)
		if kind, typ, p := NewReader(tree, nil).Best(1); kind != got[0].Kind || typ != got[0].Type || math.Abs(p-got[0].P) > 0.01 {
			t.Errorf("%q: Best is %s %.3f, Readings %s", c.payload, typ, p, describe(got))
		}
		root := readingsOf(wire.Parse(c.payload, wire.Options{}), 0)
		if len(c.payload) > 0 && root[0].Type != got[0].Type {
			t.Errorf("%q: as a root %s, as a field %s", c.payload, root[0].Type, got[0].Type)
		}
	}
}

func TestScalarReadings(t *testing.T) {
	fixed64 := func(v uint64) []byte { return binary.LittleEndian.AppendUint64([]byte{9}, v) }
	fixed32 := func(v uint32) []byte { return binary.LittleEndian.AppendUint32([]byte{13}, v) }
	minus := int64(-5)
	for _, c := range []struct {
		in    []byte
		want  string
		value any
	}{
		{varints(8, 1), "bool", true},
		{varints(8, 150), "int64", int64(150)},
		{varints(8, uint64(minus)), "int64", int64(-5)},
		{varints(8, 1763712000000), "timestamp-ms", int64(1763712000000)},
		{varints(8, 1763712000), "timestamp-s", int64(1763712000)},
		{fixed64(1763712000123456789), "timestamp-ns", int64(1763712000123456789)},
		{fixed64(math.Float64bits(0.1)), "double", 0.1},
		{fixed64(42), "fixed64", uint64(42)},
		{fixed32(math.Float32bits(-2.5)), "float", float32(-2.5)},
		{fixed32(7), "fixed32", uint64(7)},
		{fixed32(uint32(0xfffffff0)), "sfixed32", int64(-16)},
		{[]byte{0x0b, 0x0c}, "group", nil},
	} {
		got := readingsOf(wire.Parse(c.in, wire.Options{}), 1)
		if got[0].Type != c.want || got[0].Value != c.value {
			t.Errorf("%x: %s of %v, want %s of %v", c.in, describe(got), got[0].Value, c.want, c.value)
		}
		checkReadings(t, got)
	}
	got := readingsOf(wire.Parse([]byte{0x0a, 9, 1}, wire.Options{}), 1)
	if len(got) != 1 || got[0].Kind != wire.KindBytes || len(got[0].Value.([]byte)) != 3 {
		t.Errorf("garbage: %s", describe(got))
	}
}

func floats32(fs ...float32) (b []byte) {
	for _, f := range fs {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(f))
	}
	return b
}

func floats64(fs ...float64) (b []byte) {
	for _, f := range fs {
		b = binary.LittleEndian.AppendUint64(b, math.Float64bits(f))
	}
	return b
}

func describe(rs []Reading) string {
	var b strings.Builder
	for _, r := range rs {
		fmt.Fprintf(&b, "%s %.3f ", r.Type, r.P)
	}
	return b.String()
}

func checkReadings(t interface {
	Helper()
	Fatalf(string, ...any)
}, rs []Reading,
) {
	t.Helper()
	sum := 0.0
	for i, r := range rs {
		sum += r.P
		if math.IsNaN(r.P) || r.P <= 0 || i > 0 && r.P > rs[i-1].P || len(r.Why) == 0 && r.Kind != wire.KindGroup && len(rs) > 1 {
			t.Fatalf("%s", describe(rs))
		}
	}
	if math.Abs(sum-1) > 1e-9 {
		t.Fatalf("%s sums to %f", describe(rs), sum)
	}
}

// A sample is a payload whose kind is known.
type sample struct {
	kind wire.Kind
	data []byte
}

// corpus is a labelled set: the fields of every registered FileDescriptorProto
// and other well-known messages, and made-up ones.
func corpus(t testing.TB) []sample {
	var out []sample
	protoregistry.GlobalFiles.RangeFiles(func(fd protoreflect.FileDescriptor) bool {
		out = label(out, protodesc.ToFileDescriptorProto(fd).ProtoReflect())
		return true
	})
	st, err := structpb.NewStruct(map[string]any{"path": "/home/u/x.go", "line": 3.0, "nested": map[string]any{"ok": true, "list": []any{"a", 1.5, nil}}})
	if err != nil {
		t.Fatal(err)
	}
	out = label(out, st.ProtoReflect())
	out = label(out, (&apipb.Api{Name: "x.Y", Version: "v1", Methods: []*apipb.Method{{Name: "Get", RequestTypeUrl: "type.googleapis.com/a.B"}}}).ProtoReflect())
	r := rand.New(rand.NewPCG(1, 2))
	for range 3000 {
		out = append(out, makeMessage(r, 0))
		out = append(out, sample{wire.KindString, []byte(makeText(r))})
		out = append(out, sample{wire.KindBytes, makeBytes(r)})
		// Words of one to twelve letters: one in eight of the short ones parses.
		word := make([]byte, 1+r.IntN(12))
		for i := range word {
			word[i] = byte('a' + r.IntN(26))
		}
		out = append(out, sample{wire.KindString, word})
		var list []byte
		for range 4 + r.IntN(12) {
			list = wire.AppendVarint(list, r.Uint64N(1<<(4+r.IntN(12))))
		}
		out = append(out, sample{wire.KindPacked, list})
	}
	return out
}

// label appends all length-delimited fields of m, with their declared kinds.
func label(out []sample, m protoreflect.Message) []sample {
	add := func(fd protoreflect.FieldDescriptor, v protoreflect.Value) {
		switch fd.Kind() {
		case protoreflect.MessageKind:
			b, _ := proto.MarshalOptions{Deterministic: true}.Marshal(v.Message().Interface())
			if len(b) > 0 {
				out = append(out, sample{wire.KindMessage, b})
			}
			out = label(out, v.Message())
		case protoreflect.StringKind:
			if v.String() != "" {
				out = append(out, sample{wire.KindString, []byte(v.String())})
			}
		}
	}
	m.Range(func(fd protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch {
		case fd.IsList():
			for i := range v.List().Len() {
				add(fd, v.List().Get(i))
			}
		case !fd.IsMap():
			add(fd, v)
		}
		return true
	})
	return out
}

func makeMessage(r *rand.Rand, depth int) sample {
	var b []byte
	number := uint64(0)
	for range 1 + r.IntN(5) {
		number += 1 + uint64(r.ExpFloat64()*2)
		switch k := r.IntN(10); {
		case k < 4:
			s := []byte(makeText(r))
			b = append(wire.AppendVarint(wire.AppendVarint(b, number<<3|2), uint64(len(s))), s...)
		case k < 7:
			b = wire.AppendVarint(wire.AppendVarint(b, number<<3), uint64(1+r.Int64N(1<<(1+r.IntN(40)))))
		case k < 8 && depth < 4:
			s := makeMessage(r, depth+1).data
			b = append(wire.AppendVarint(wire.AppendVarint(b, number<<3|2), uint64(len(s))), s...)
		case k < 9:
			b = append(wire.AppendVarint(b, number<<3|1), floats64(math.Round(r.NormFloat64()*1e4)/100)...)
		default:
			s := makeBytes(r)
			b = append(wire.AppendVarint(wire.AppendVarint(b, number<<3|2), uint64(len(s))), s...)
		}
	}
	return sample{wire.KindMessage, b}
}

// alphabets are what text is made of, in several scripts.
var alphabets = []string{
	"the of and to in is you that it he for was on are as with his they at be this from have or by one had not but what all were when we there can an your which their said if do will each about how up out them then she many some so these would other into has more her two like him see time could no make than first been its who now people my made over did down only way find use may water long little very after words called just where most know",
	"internal/server/handler.go README.md src/index.ts package.json /home/user/project ./a.out *.proto https://example.com/path?x=1",
	"func main() { return err } if (a == b) { console.log(\"x\"); } def f(self): pass SELECT * FROM t WHERE id = 3;",
	"claude-4-sonnet gpt-5 call_9f3a toolu_01AbCdEf req-77 a1b2c3d4 0x7f 12.5% v1.2.3 2025-11-21T07:00:00Z",
	"это очень простой текст на русском языке который мы читаем каждый день и пишем снова",
	"我们 今天 去 北京 看 朋友 他们 都 很 高兴 文件 已经 保存 请 稍后 再试",
	"これは テスト です ファイル を 開く エラー が 発生 しました",
	"오늘 날씨가 좋습니다 파일을 저장 했습니다",
	"el niño comió piñas über Straße façade naïve œuvre déjà vu",
	"🎉 👍🏽 ✅ ❌ 🚀 done ok",
	"مرحبا بالعالم كيف حالك اليوم",
}

func makeText(r *rand.Rand) string {
	words := strings.Fields(alphabets[r.IntN(len(alphabets))])
	if r.IntN(2) == 0 {
		words = strings.Fields(alphabets[0])
	}
	sep := []string{" ", " ", " ", "\n", "_", ", "}[r.IntN(6)]
	n := 1 + int(r.ExpFloat64()*4)
	var parts []string
	for range n {
		parts = append(parts, words[r.IntN(len(words))])
	}
	return strings.Join(parts, sep)
}

func makeBytes(r *rand.Rand) []byte {
	n := []int{8, 12, 16, 20, 32, 32, 64, 200}[r.IntN(8)]
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}

func TestReadingAccuracy(t *testing.T) {
	right, total := map[wire.Kind]int{}, map[wire.Kind]int{}
	shown := 0
	for _, s := range corpus(t) {
		tree := wire.Parse(field(s.data), wire.Options{})
		got := readingsOf(tree, 1)
		checkReadings(t, got)
		total[s.kind]++
		if got[0].Kind == s.kind {
			right[s.kind]++
		} else if shown < 12 && testing.Verbose() {
			shown++
			t.Logf("%s %q: %s", s.kind, s.data, describe(got))
		}
	}
	for kind, n := range total {
		share := float64(right[kind]) / float64(n)
		t.Logf("%s: %d of %d, %.2f %%", kind, right[kind], n, 100*share)
		floor := 0.96
		if kind == wire.KindPacked {
			floor = 0.6 // half of all short random bytes are varints, too, and these are of random widths
		}
		if share < floor {
			t.Errorf("%s: %.2f %% right, want %.0f %%", kind, 100*share, 100*floor)
		}
	}
}

func unhex(t *testing.T, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.ReplaceAll(s, " ", ""))
	if err != nil {
		t.Fatal(err)
	}
	return b
}
