package infer

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
)

// TestChoices: which fields messages have, each a list of numbers, and the oneofs that follow.
func TestChoices(t *testing.T) {
	cycle := func(n int, of ...[]int32) (out [][]int32) {
		for i := range n {
			out = append(out, of[i%len(of)])
		}
		return out
	}
	// Members that precede other fields are candidates only: encoding again would move them.
	for _, c := range []struct {
		name     string
		messages [][]int32
		want     string
	}{
		{"one of three, always", cycle(12, []int32{1, 2}, []int32{1, 3}, []int32{1, 4}), "[[2 3 4]]"},
		{"one of two, in order", cycle(10, []int32{1}, []int32{2}), "[[1 2]]"},
		{"one of three, not always", cycle(10, []int32{1, 2}, []int32{1, 3}, []int32{1}, []int32{1, 4}, []int32{1}), "[[2 3 4]]"},
		{"few messages", cycle(3, []int32{1, 2}, []int32{1, 3}, []int32{1}), "[[2 3]]"},
		{"too few to tell", cycle(5, []int32{1, 2}, []int32{1, 3}, []int32{1}, []int32{1}, []int32{1}), "[]"},
		{"rare fields that might never meet", cycle(40, append([][]int32{{1, 5}, {1, 6}}, cycle(18, []int32{1})...)...), "[]"},
		{"fields that meet once", append(cycle(20, []int32{1}, []int32{2}), []int32{1, 2}), "[]"},
		{"two kinds of messages", cycle(24, []int32{1, 2, 3, 4}, []int32{1, 5, 6, 7}), "[]"},
		{"two kinds of messages, parts left out", cycle(60, []int32{1, 2, 3}, []int32{1, 5, 6}, []int32{1, 2}, []int32{1, 6}, []int32{1, 3}, []int32{1, 5, 6}), "[]"},
		{"a oneof, and a field that comes with one of them", cycle(60, []int32{1, 2}, []int32{1, 3}, []int32{1, 4, 9}, []int32{1, 2}, []int32{1, 4}, []int32{1, 3}), "[] Fields 2, 3, 4; probability of a oneof"},
		{"behind the others, as Go writes them", cycle(4, []int32{5, 2}, []int32{5, 3}, []int32{5, 2}, []int32{5}), "[[2 3]]"},
		{"two oneofs", cycle(24, []int32{1, 3}, []int32{1, 4}, []int32{2, 3}, []int32{2, 4}), "[[3 4]] Fields 1, 2; probability of a oneof"},
		{"before others and behind them", cycle(24, []int32{3, 9, 2}, []int32{4, 9, 2}), "[[2]] Fields 3, 4; probability of a oneof"},
		{"before others, in few messages", cycle(6, []int32{1, 3}, []int32{2, 3}), "[]"},
	} {
		t.Run(c.name, func(t *testing.T) {
			ev := NewEvidence()
			for i, numbers := range c.messages {
				var b []byte
				for _, n := range numbers {
					b = protowire.AppendTag(b, protowire.Number(n), protowire.BytesType)
					b = protowire.AppendString(b, fmt.Sprintf("the text %d of %d", n, i))
				}
				if err := ev.Add("Root", b); err != nil {
					t.Fatal(err)
				}
			}
			in, err := Infer(ev, Options{})
			if err != nil {
				t.Fatal(err)
			}
			sets := map[string][]int32{}
			var names []string
			for _, f := range in.Fields {
				if f.Oneof == "" {
					continue
				}
				if sets[f.Oneof] == nil {
					names = append(names, f.Oneof)
				}
				sets[f.Oneof] = append(sets[f.Oneof], f.Number)
			}
			got := [][]int32{}
			for _, name := range names {
				got = append(got, sets[name])
			}
			slices.SortFunc(got, slices.Compare)
			want, candidate, _ := strings.Cut(c.want, " Fields")
			if fmt.Sprint(got) != want || !strings.Contains(must(in.Text()), candidate) {
				t.Errorf("%v, want %s\n%s", got, c.want, must(in.Text()))
			}
		})
	}
}
