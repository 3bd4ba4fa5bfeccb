package transcript

import (
	"fmt"
	"strings"
	"testing"
)

// A tally counts what was found over many exchanges.
type tally struct {
	answer, thinking, user, calls [2]int // right, all
	said                          [2]int // candidates that are taken for the user's, and are
	confused                      map[string]int
	wrong                         []string
}

func (t *tally) count(n *[2]int, ok bool) {
	n[1]++
	if ok {
		n[0]++
	}
}

func share(n [2]int) float64 { return float64(n[0]) / float64(max(n[1], 1)) }

func has(tr *Transcript, role Role, text string) bool {
	for _, c := range tr.Candidates {
		if c.Role == role && strings.Contains(c.Text, text) {
			return true
		}
	}
	return false
}

// roleOf is the role of the candidate that holds text, for the confusion.
func roleOf(tr *Transcript, text string) string {
	for _, c := range tr.Candidates {
		if strings.Contains(c.Text, text) {
			return string(c.Role)
		}
	}
	return "nothing whole"
}

func (t *tally) exchange(seed uint64) {
	m := newMaker(seed)
	want := m.make()
	got := Extract(m.ex, Options{})
	miss := func(what, text string) {
		t.confused[what+" taken for "+roleOf(got, text)]++
		t.wrong = append(t.wrong, fmt.Sprintf("seed %d: %s\n  %s", seed, what, want.about))
	}
	ok := got.Answer == want.answer
	if t.count(&t.answer, ok); !ok {
		miss("answer", want.answer)
	}
	if want.thinking != "" {
		ok := got.Thinking == want.thinking
		if t.count(&t.thinking, ok); !ok {
			miss("thinking", want.thinking)
		}
	}
	ok = has(got, User, want.user)
	if t.count(&t.user, ok); !ok {
		miss("user", want.user)
	}
	for _, c := range got.Candidates {
		if c.Role == User {
			ok := strings.Contains(c.Text, want.user) || len(want.history) > 0 && strings.Contains(c.Text, want.history[0])
			if t.count(&t.said, ok); !ok {
				t.confused["something else taken for user"]++
			}
		}
	}
	for _, c := range want.calls {
		ok := has(got, roleToolCall, c)
		if t.count(&t.calls, ok); !ok {
			miss("tool call", c)
		}
	}
}

func measure(first, n uint64) *tally {
	t := &tally{confused: make(map[string]int)}
	for seed := range n {
		t.exchange(first + seed)
	}
	return t
}

// TestFloors demands that what a schema-blind reader can find is found, on
// seeds that the weights were not set by.
func TestFloors(t *testing.T) {
	got := measure(2_000_000, 800)
	bad := false
	for _, c := range []struct {
		what  string
		n     [2]int
		floor float64
	}{
		{"answer", got.answer, 0.985}, {"thinking", got.thinking, 0.97}, {"user", got.user, 0.99}, {"user is the user", got.said, 0.98}, {"tool call", got.calls, 0.98},
	} {
		t.Logf("%s: %.1f %% of %d", c.what, 100*share(c.n), c.n[1])
		if share(c.n) < c.floor {
			t.Errorf("%s: %.1f %% right, want %.0f %%", c.what, 100*share(c.n), 100*c.floor)
			bad = true
		}
	}
	if bad || testing.Verbose() {
		for what, n := range got.confused {
			t.Logf("%4d %s", n, what)
		}
	}
	if bad {
		for _, w := range got.wrong[:min(len(got.wrong), 10)] {
			t.Log(w)
		}
	}
}
