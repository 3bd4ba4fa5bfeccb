package diff

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"unwire/captures"
	"unwire/decode"
	"unwire/decode/wire"
)

func variations(list []Variation) (out []string) {
	for _, v := range list {
		out = append(out, fmt.Sprintf("%s %s %d/%d %d", v.Path, v.Class, v.Present, v.Of, v.Values))
	}
	return out
}

func TestSeries(t *testing.T) {
	var trees []*wire.Tree
	for i, id := range []string{uuidA, uuidB, uuidC} {
		m := msg{1, "the same text", 2, id, 12, i, 3, msg{1, 5, 1, 6}}
		if i > 0 {
			m = append(m, 4, msg{2, "now and then"})
		}
		trees = append(trees, m.tree())
	}
	want := []string{"1 constant 3/3 1", "2 volatile 3/3 3", "3.1 constant 3/3 1", "4.2 constant 2/3 1", "12 varies 3/3 3"}
	got := TreeSeries(trees, nil)
	if !slices.Equal(variations(got), want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(variations(got), "\n"), strings.Join(want, "\n"))
	}
	if len(got) == len(want) && fmt.Sprint(got[4].Examples) != "[0 1 2]" {
		t.Errorf("examples: %v", got[4].Examples)
	}
}

func TestExchangeSeries(t *testing.T) {
	a := exchange(delta("Hel"), delta("lo wor"), delta("ld"), beat, done)
	b := exchange(delta("Hello"), delta(" world"), done)
	c := exchange(delta("Good"), delta("bye"), beat, beat, done)
	for i, ex := range []*decode.Exchange{a, b, c} {
		up := exchange(msg{1, "ask", 2, 1763700000123 + i*1000}).Frames[0]
		up.Dir = captures.Up
		ex.Frames = append(ex.Frames, up)
	}
	want := []string{"@down.1.1.1 varies 3/3 2", "@up.1 constant 3/3 1", "@up.2 volatile 3/3 3", "code constant 3/3 1", "status constant 3/3 1"}
	var got []string
	for _, v := range variations(ExchangeSeries([]*decode.Exchange{a, b, c})) {
		got = append(got, strings.Replace(v, "@down ", "@down.", 1))
	}
	for i := range got {
		got[i] = strings.Replace(got[i], "@up ", "@up.", 1)
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}
