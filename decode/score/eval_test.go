package score

import (
	"fmt"
	"strings"
	"testing"
)

// A judgement counts what a style's exchanges were read as.
type judgement struct {
	answer, roles [2]int // right, all
	byRole        map[Role]*[2]int
	confused      map[string]int
	wrong         []string
}

func (j *judgement) exchange(seed uint64, l labelled) {
	got := Extract(l.ex, Options{})
	j.answer[1]++
	if strings.TrimSpace(got.Answer) == strings.TrimSpace(l.answer) {
		j.answer[0]++
	} else {
		j.confused["answer: "+roleOf(got, l.answer)]++
		j.wrong = append(j.wrong, fmt.Sprintf("seed %d: answer %.100q, want %.100q", seed, got.Answer, l.answer))
	}
	for _, w := range l.roles {
		n := j.byRole[w.role]
		if n == nil {
			n = new([2]int)
			j.byRole[w.role] = n
		}
		n[1]++
		j.roles[1]++
		if has(got, w.role, w.text) {
			n[0]++
			j.roles[0]++
			continue
		}
		j.confused[string(w.role)+" taken for "+roleOf(got, w.text)]++
		j.wrong = append(j.wrong, fmt.Sprintf("seed %d: %s %.100q: %s", seed, w.role, w.text, roleOf(got, w.text)))
	}
}

func judge(s style_, first, n uint64) *judgement {
	j := &judgement{byRole: make(map[Role]*[2]int), confused: make(map[string]int)}
	for seed := first; seed < first+n; seed++ {
		j.exchange(seed, s.make(newMaker(seed)))
	}
	return j
}

// TestEvalExtract prints how well the extractor reads each style.
func TestEvalExtract(t *testing.T) {
	for _, s := range styles {
		j := judge(s, 7_000_000, 300)
		t.Logf("%-26s tuned %-5v answer %.3f roles %.3f", s.name, s.tuned, share(j.answer), share(j.roles))
		if testing.Verbose() {
			for what, n := range j.confused {
				t.Logf("   %4d %s", n, what)
			}
			for _, w := range j.wrong[:min(len(j.wrong), 60)] {
				t.Logf("      %s", w)
			}
		}
	}
}
