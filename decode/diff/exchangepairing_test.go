package diff

import (
	"fmt"
	"slices"
	"testing"

	"unwire/decode"
)

// TestPairing: of one method's calls, those that say the same are pairs, though
// others stand between them; what only one side has is left over.
func TestPairing(t *testing.T) {
	p := newPairing()
	texts := []string{"What is the weather like in Lisbon?", "How do I sort a list in Go?", "Tell me a story about a lighthouse."}
	all := map[int64]*decode.Exchange{}
	for i, s := range texts {
		ex := exchange(msg{1, s, 2, msg{1, "gpt", 2, uuidA}, 3, i})
		ex.ID = int64(i + 1)
		all[ex.ID] = ex
		p.addA("chat", ex)
	}
	for i, s := range []string{texts[0], "Something that was not asked before, at all", texts[1] + " Quickly.", texts[2]} {
		ex := exchange(msg{1, s, 2, msg{1, "gpt", 2, uuidB}, 3, i})
		ex.ID = int64(i + 11)
		all[ex.ID] = ex
		p.addB("chat", ex)
	}
	other := exchange(msg{1, 1})
	other.ID = 20
	p.addB("only here", other)
	for id, add := range map[int64]func(string, *decode.Exchange){30: p.addA, 31: p.addB} {
		once := exchange(msg{1, int(id)})
		once.ID = id
		add("once on each side", once)
	}

	// Calls without an alternative are not sketched.
	var sketched []int64
	for side := range p.sides {
		if err := p.complete(side, func(id int64) (*decode.Exchange, error) {
			sketched = append(sketched, id)
			return all[id], nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	if !slices.Equal(sketched, []int64{1, 11}) {
		t.Errorf("sketched in the end: %v, want the first of several calls on each side", sketched)
	}
	var got []string
	for _, x := range p.pairs() {
		got = append(got, fmt.Sprintf("%s[%d] %d-%d", x.name, x.nth, x.a, x.b))
	}
	want := []string{"chat[0] 1-11", "chat[1] 2-13", "chat[2] 3-14", "chat[1] 0-12", "only here[0] 0-20", "once on each side[0] 30-31"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
