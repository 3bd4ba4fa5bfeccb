package diff

import (
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"unwire/decode/fieldpath"
	"unwire/decode/wire"
)

var words = strings.Fields("the quick brown fox jumps over a lazy dog while seven small wizards quietly boxed these many jugs of liquid and the river went on")

// A schema says of each path it has met what kind of field it is: an integer, a
// text, a message, a repeated message.
type schema map[string]int

// draw draws a message of distinct scalars, some of them in repeated messages.
func (s schema) draw(t *rapid.T, path string, depth int, serial *int) msg {
	var m msg
	for n := 1; n <= rapid.IntRange(1, 5).Draw(t, "fields"); n++ {
		path := path + string(rune('0'+n))
		kind, ok := s[path]
		if !ok {
			kind = rapid.IntRange(0, 3).Draw(t, "kind")
			if depth == 0 && kind > 1 {
				kind -= 2
			}
			s[path] = kind
		}
		times := 1
		if kind == 3 {
			times = rapid.IntRange(2, 4).Draw(t, "times")
		}
		for range times {
			*serial++
			switch kind {
			case 0:
				m = append(m, n, *serial)
			case 1:
				m = append(m, n, sentence(*serial))
			default:
				m = append(m, n, s.draw(t, path, depth-1, serial))
			}
		}
	}
	return m
}

func sentence(serial int) string {
	r := rand.New(rand.NewPCG(uint64(serial), 7))
	s := make([]string, 4+r.IntN(6))
	for i := range s {
		s[i] = words[r.IntN(len(words))]
	}
	return strings.Join(s, " ")
}

// edit changes the k-th scalar of m and returns the changed copy, and the path
// of the scalar in m.
func edit(m msg, k *int) (msg, fieldpath.Path) {
	out := append(msg(nil), m...)
	seen, total := map[int]int{}, map[int]int{}
	for i := 0; i < len(m); i += 2 {
		total[m[i].(int)]++
	}
	for i := 0; i < len(m); i += 2 {
		n := m[i].(int)
		step := fieldpath.Field(uint64(n))
		if total[n] > 1 {
			step.Index = seen[n]
		}
		seen[n]++
		switch v := m[i+1].(type) {
		case msg:
			if sub, p := edit(v, k); p != nil {
				out[i+1] = sub
				return out, append(fieldpath.Path{step}, p...)
			}
		case int:
			if *k--; *k < 0 {
				out[i+1] = v + 100_000
				return out, fieldpath.Path{step}
			}
		case string:
			if *k--; *k < 0 {
				out[i+1] = v + " edited"
				return out, fieldpath.Path{step}
			}
		}
	}
	return out, nil
}

func TestProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		serial := 0
		s := schema{}
		m := s.draw(t, "", 3, &serial)
		if got := compareTrees(m.tree(), m.tree(), Options{}); len(got) != 0 {
			t.Fatalf("a message differs from itself: %q", lines(got))
		}
		k := rapid.IntRange(0, 12).Draw(t, "edited")
		edited, path := edit(m, &k)
		if path == nil {
			return
		}
		got := compareTrees(m.tree(), edited.tree(), Options{})
		if len(got) != 1 || got[0].Path != path.String() || got[0].Op != Modify {
			t.Fatalf("edit at %s of\n%v\ngave %q", path, m, lines(got))
		}
		checkSymmetry(t, m.tree(), edited.tree())
		checkSymmetry(t, m.tree(), s.draw(t, "", 3, &serial).tree())
	})
}

// TestOrderRules: fields of different numbers may be in any order; the elements
// of one may not, and then there are moves and nothing else.
func TestOrderRules(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		serial := 0
		m := schema{}.draw(t, "", 2, &serial)
		order := rapid.Permutation(pairsOf(m)).Draw(t, "order")
		shuffled := msg{}
		for _, p := range order {
			shuffled = append(shuffled, p[0], p[1])
		}
		same := true
		for n := 1; n <= 5; n++ {
			same = same && reflect.DeepEqual(valuesOf(m, n), valuesOf(shuffled, n))
		}
		got := compareTrees(m.tree(), shuffled.tree(), Options{})
		for _, c := range got {
			if c.Op != Move {
				t.Fatalf("%q", lines(got))
			}
		}
		if same != (len(got) == 0) {
			t.Fatalf("the same elements in the same order: %v, and %q", same, lines(got))
		}
	})
}

func pairsOf(m msg) (list [][2]any) {
	for i := 0; i < len(m); i += 2 {
		list = append(list, [2]any{m[i], m[i+1]})
	}
	return list
}

func valuesOf(m msg, number int) (list []any) {
	for i := 0; i < len(m); i += 2 {
		if m[i] == number {
			list = append(list, m[i+1])
		}
	}
	return list
}

// TestInsertion: one more element anywhere is one addition, or one removal.
func TestInsertion(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		serial := 0
		elem := func() msg {
			serial++
			return msg{1, sentence(serial), 2, serial, 3, msg{1, sentence(serial + 1000)}}
		}
		var a, b msg
		n := rapid.IntRange(2, 8).Draw(t, "n")
		at := rapid.IntRange(0, n).Draw(t, "at")
		for i := range n + 1 {
			e := elem()
			if i != at {
				a = append(a, 5, e)
			}
			b = append(b, 5, e)
		}
		want := fieldpath.Path{{Name: "5", Index: at}}.String()
		if got := compareTrees(a.tree(), b.tree(), Options{}); len(got) != 1 || got[0].Op != Add || got[0].Path != want {
			t.Fatalf("insertion at %s: %q", want, lines(got))
		}
		if got := compareTrees(b.tree(), a.tree(), Options{}); len(got) != 1 || got[0].Op != Remove || got[0].Path != want {
			t.Fatalf("removal at %s: %q", want, lines(got))
		}
	})
}

type failer interface{ Fatalf(string, ...any) }

// checkSymmetry compares both ways: as many additions one way as removals the
// other, and the same changes with old and new exchanged.
func checkSymmetry(t failer, a, b *wire.Tree) {
	ab, ba := compareTrees(a, b, Options{}), compareTrees(b, a, Options{})
	count := func(changes []Change) (n [4]int) {
		for _, c := range changes {
			switch c.Op {
			case Add:
				n[0]++
			case Remove:
				n[1]++
			case Move:
				n[3]++
			default:
				n[2]++
			}
		}
		return n
	}
	x, y := count(ab), count(ba)
	if x[0] != y[1] || x[1] != y[0] || x[2] != y[2] || x[3] != y[3] {
		t.Fatalf("A to B\n%q\nB to A\n%q", lines(ab), lines(ba))
	}
}

func FuzzTrees(f *testing.F) {
	f.Add(msg{1, "hello there", 2, 7}.bytes(), msg{2, 7, 1, "hello, there"}.bytes())
	f.Add(msg{1, msg{1, uuidA}, 1, msg{1, uuidB}}.bytes(), msg{1, msg{1, uuidC}}.bytes())
	f.Add([]byte("\x0a\x05abc"), []byte("\x0b\x0c\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"))
	f.Fuzz(func(t *testing.T, a, b []byte) {
		x, y := wire.Parse(a, wire.Options{}), wire.Parse(b, wire.Options{})
		if got := compareTrees(x, x, Options{}); len(got) != 0 {
			t.Fatalf("differs from itself: %q", lines(got))
		}
		forth, back := compareTrees(x, y, Options{}), compareTrees(y, x, Options{})
		if Same(forth) != Same(back) || (len(forth) == 0) != (len(back) == 0) {
			t.Fatalf("%q\nbut back\n%q", lines(forth), lines(back))
		}
		if !reflect.DeepEqual(lines(forth), lines(compareTrees(x, y, Options{}))) {
			t.Fatal("not deterministic")
		}
		ex := exchange()
		for i, data := range [][]byte{a, b, a} {
			fr := exchange(string(data)).Frames[0]
			if i < 2 {
				fr.Tree = wire.Parse(data, wire.Options{})
			}
			fr.Seq = i
			ex.Frames = append(ex.Frames, fr)
		}
		if got := Exchanges(ex, ex, Options{}); len(got) != 0 {
			t.Fatalf("an exchange differs from itself: %q", lines(got))
		}
		Exchanges(ex, exchange(string(a), string(b)), Options{})
		if got := compareMessages(a, a, Options{}); len(got) != 0 {
			t.Fatalf("as text it differs from itself: %q", lines(got))
		}
		for _, v := range TreeSeries([]*wire.Tree{x, y, x}, nil) {
			if v.Present > v.Of || v.Class == Constant && v.Values != 1 {
				t.Fatalf("a series of three: %+v", v)
			}
		}
	})
}

func BenchmarkTrees(b *testing.B) {
	var x, y msg
	for i := range 5000 {
		e := msg{1, sentence(i), 2, i, 4, msg{1, sentence(i + 7), 2, uuidA}}
		x = append(x, 3, e)
		if i%50 == 0 {
			e = msg{1, sentence(i) + " edited", 2, i, 4, msg{1, sentence(i + 7), 2, uuidB}}
		}
		y = append(y, 3, e)
	}
	left, right := x.tree(), y.tree()
	b.SetBytes(int64(len(left.Data) + len(right.Data)))
	for b.Loop() {
		if got := len(compareTrees(left, right, Options{})); got != 200 {
			b.Fatalf("%d changes", got)
		}
	}
}
