package shape

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"

	"unwire/decode/fieldpath"
	"unwire/decode/kind"
	"unwire/decode/wire"
)

func lenField(dst []byte, n protowire.Number, p []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(dst, n, protowire.BytesType), p)
}

// kindOf pools one message per value, each with the value in field 1, and
// returns the kind of that field.
func kindOf(values ...string) valueKind {
	var s Shape
	for _, v := range values {
		s.Add(wire.Parse(lenField(nil, 1, []byte(v)), wire.Options{}))
	}
	return s.Kind(s.child(rootPath, 1, false))
}

func TestKind(t *testing.T) {
	inner := func(s string) string { return string(lenField(nil, 1, []byte(s))) }
	for _, c := range []struct {
		name   string
		values []string
		want   valueKind
	}{
		{"empty", []string{"", ""}, noBytes},
		{"file name that is a fixed64 field", []string{"image.png"}, Text},
		{"prose", []string{"Hello, world"}, Text},
		{"one word", []string{"Hi"}, Text},
		{"space", []string{" "}, Text},
		{"message of a 32-character string", []string{inner(strings.Repeat("ab cd ef", 4))}, submessage},
		{"messages that look like text", []string{inner("nine char"), inner("ten charac"), inner("also nine")}, submessage},
		{"message of a short string", []string{inner("Hi")}, submessage},
		{"mixed lengths", []string{inner("Hi"), inner("nine char")}, submessage},
		{"runes cut at frame edges", []string{"при", "в\xd0", "\xb5т, мир"}, Text},
		{"Chinese", []string{"你好，世界"}, Text},
		{"bytes", []string{"\x00\x01\xff\xfe", "\x80\x81\x82"}, otherBytes},
		{"terminal output", []string{"\x1b[31mred\x1b[0m"}, Text},
		{"one damaged of many", append(strings.Split(strings.Repeat("some words|", 30), "|"), "\xff\xff\x00 words"), Text},
	} {
		if got := kindOf(c.values...); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
	var s Shape
	s.Add(wire.Parse(protowire.AppendVarint(protowire.AppendTag(nil, 3, protowire.VarintType), 7), wire.Options{}))
	if got := s.Kind(s.child(rootPath, 3, false)); got != unknown {
		t.Errorf("a varint's path: %v, want unknown", got)
	}
}

// TestKindRates measures single random values, the hardest case, and pools of eight.
func TestKindRates(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	word := func() string {
		b := make([]byte, 2+r.IntN(12))
		for i := range b {
			b[i] = byte('a' + r.IntN(26))
		}
		return string(b)
	}
	text := func() string {
		ws := make([]string, 1+r.IntN(4))
		for i := range ws {
			ws[i] = word()
		}
		return strings.Join(ws, " ")
	}
	message := func() string {
		var b []byte
		for n := range 1 + r.IntN(3) {
			if r.IntN(3) == 0 {
				b = protowire.AppendVarint(protowire.AppendTag(b, protowire.Number(n*2+2), protowire.VarintType), uint64(r.IntN(300)))
			} else {
				b = lenField(b, protowire.Number(n*2+1), []byte(text()))
			}
		}
		return string(b)
	}
	rate := func(make func() string, pool int, want valueKind) float64 {
		right := 0
		for range 1000 {
			values := []string{}
			for range pool {
				values = append(values, make())
			}
			if kindOf(values...) == want {
				right++
			}
		}
		return float64(right) / 1000
	}
	for _, c := range []struct {
		name  string
		make  func() string
		pool  int
		want  valueKind
		floor float64
	}{
		{"text", text, 1, Text, 0.97},
		{"message", message, 1, submessage, 0.97},
		{"text", text, 8, Text, 0.999},
		{"message", message, 8, submessage, 0.999},
	} {
		got := rate(c.make, c.pool, c.want)
		t.Logf("%s, %d values: %.3f", c.name, c.pool, got)
		if got < c.floor {
			t.Errorf("%s, %d values: %.3f right, want %.3f", c.name, c.pool, got, c.floor)
		}
	}
}

// depth returns how many numbers p has.
func depth(s *Shape, p Path) int {
	d := 0
	for ; p > rootPath; p = s.paths[p].parent {
		d++
	}
	return d
}

func TestPaths(t *testing.T) {
	inner := lenField(nil, 7, []byte("some text here"))
	tree := wire.Parse(lenField(lenField(nil, 2, inner), 2, inner), wire.Options{})
	var s Shape
	s.Add(tree)
	at := s.Locate(tree, nil, false)
	var got []string
	for _, p := range at {
		got = append(got, fmt.Sprintf("%s/%d/%v", s.String(p), depth(&s, p), s.Kind(p)))
	}
	want := "[/0/unknown 2/1/message 2.7/2/text 2/1/message 2.7/2/text]"
	if fmt.Sprint(got) != want {
		t.Errorf("paths %v, want %v", got, want)
	}
}

func FuzzShape(f *testing.F) {
	f.Add([]byte("\x0a\x06\x0a\x04\x0a\x02Hi"), []byte("image.png"))
	f.Add([]byte("\x0b\x0c"), []byte{})
	f.Fuzz(func(t *testing.T, a, b []byte) {
		var s Shape
		for _, data := range [][]byte{a, b} {
			s.Add(wire.Parse(data, wire.Options{}))
		}
		for p := range len(s.paths) {
			_ = s.Kind(Path(p))
			_ = s.String(Path(p))
		}
		if head, tail := edges(a); head+tail > len(a) {
			t.Fatalf("edges %d and %d of %d bytes", head, tail, len(a))
		}
	})
}

// What somebody says of a path comes before what its payloads say, unless they cannot
// be read so.
func TestChoose(t *testing.T) {
	field := func(n byte, s string) []byte { return append([]byte{n<<3 | 2, byte(len(s))}, s...) }
	tree := wire.Parse(slices.Concat(field(1, "\n\x03abc"), field(2, "~ plain words")), wire.Options{})
	for _, c := range []struct {
		choice   string
		one, two valueKind
		message  bool // field 1 is read as one
	}{
		{"3:string", submessage, Text, true},
		{"1:string", Text, Text, false},
		{"1:packed", otherBytes, Text, false},
		{"1[0]:string", submessage, Text, true},
		{"2:message", submessage, submessage, true},
	} {
		choice, err := kind.ParseChoice(c.choice)
		if err != nil {
			t.Fatal(err)
		}
		var s Shape
		s.Choose([]kind.Choice{choice})
		s.Add(tree)
		at := s.Locate(tree, nil, false)
		one, two := tree.Find(fieldpath.Path{fieldpath.Field(1)})[0], tree.Find(fieldpath.Path{fieldpath.Field(2)})[0]
		if s.Kind(at[one]) != c.one || s.Kind(at[two]) != c.two || s.IsMessage(tree, one, at[one]) != c.message || s.IsMessage(tree, two, at[two]) {
			t.Errorf("%s: %v %v", c.choice, s.Kind(at[one]), s.Kind(at[two]))
		}
	}
}

// TestTableRates measures short tables, whose bytes between the words are also
// tags and lengths: by themselves, cut anywhere, and in a message of one field.
func TestTableRates(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	cells := strings.Fields("a b x id name OK yes 1 2 42 Lisbon GET done 3.14 Ja Да 好")
	pick := func(list ...string) string { return list[r.IntN(len(list))] }
	table := func() string {
		columns, pad, lead := 1+r.IntN(4), pick(" ", "", "  "), pick("|", "", "\n|", " |")
		var b strings.Builder
		for row := range 1 + r.IntN(3) {
			if row > 0 {
				b.WriteByte('\n')
			}
			b.WriteString(lead)
			for range columns {
				b.WriteString(pad + pick(cells...) + pad + "|")
			}
			if row == 0 && r.IntN(2) == 0 {
				b.WriteString("\n" + lead + strings.Repeat("---|", columns))
			}
		}
		return b.String()
	}
	wrong := map[valueKind]int{}
	const n = 3000
	for range n {
		whole := table()
		from := r.IntN(len(whole))
		part := whole[from : from+1+r.IntN(len(whole)-from)]
		if FitOf([]byte(part)) == Clean && kindOf(part) != Text {
			wrong[Text]++
		}
		if kindOf(string(lenField(nil, protowire.Number(1+r.IntN(6)), []byte(whole)))) != submessage {
			wrong[submessage]++
		}
	}
	t.Logf("of %d tables: %d taken for messages; of as many messages: %d taken for text", n, wrong[Text], wrong[submessage])
	if wrong[Text] > n/200 || wrong[submessage] > n/100 {
		t.Errorf("wrong: %v of %d", wrong, n)
	}
}

// TestPrefixed: texts with their lengths before them are found, and other bytes are not.
func TestPrefixed(t *testing.T) {
	for in, want := range map[string]string{
		"\x05\x00\x00\x00hello":                 "hello",
		"\x00\x00\x00\x05hello":                 "hello",
		"\x02\x00\x00\x00a \x03\x00\x00\x00new": "a new",
		"\x06\x00\x00\x00hello":                 "",
		"\x05\x00\x00\x00hello!":                "",
		"hello":                                 "",
		"\x00\x00\x00\x00":                      "",
		"\x04\x00\x00\x00\x00\x01\x02\x03":      "",
		"\xff\xff\xff\xffhello":                 "",
	} {
		if got := string(Prefixed([]byte(in))); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}
