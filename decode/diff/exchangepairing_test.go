package diff

import (
	"fmt"
	"slices"
	"testing"
)

// TestPairing: of one method's calls, those that say the same are pairs, though
// others stand between them; what only one side has is left over.
func TestPairing(t *testing.T) {
	p := newPairing()
	texts := []string{"What is the weather like in Lisbon?", "How do I sort a list in Go?", "Tell me a story about a lighthouse."}
	for i, s := range texts {
		ex := exchange(msg{1, s, 2, msg{1, "gpt", 2, uuidA}, 3, i})
		ex.ID = int64(i + 1)
		p.addA("chat", ex)
	}
	for i, s := range []string{texts[0], "Something that was not asked before, at all", texts[1] + " Quickly.", texts[2]} {
		ex := exchange(msg{1, s, 2, msg{1, "gpt", 2, uuidB}, 3, i})
		ex.ID = int64(i + 11)
		p.addB("chat", ex)
	}
	other := exchange(msg{1, 1})
	other.ID = 20
	p.addB("only here", other)
	var got []string
	for _, x := range p.pairs() {
		got = append(got, fmt.Sprintf("%s[%d] %d-%d", x.name, x.nth, x.a, x.b))
	}
	want := []string{"chat[0] 1-11", "chat[1] 2-13", "chat[2] 3-14", "chat[1] 0-12", "only here[0] 0-20"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
