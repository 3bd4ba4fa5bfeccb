package transcript

import (
	"fmt"
	"maps"
	"math"
	"os"
	"slices"
	"strings"
	"testing"
)

// A judgement counts what a style's exchanges were read as.
type judgement struct {
	answer, roles [2]int // right, all
	spoken        [2]int // of the answers, those of more than twelve bytes
	byRole        map[Role]*[2]int
	confused      map[string]int
	wrong         []string
	scores        []scored
}

// A scored candidate is one whose role is known.
type scored struct {
	said  float64
	right bool
}

func newJudgement() *judgement {
	return &judgement{byRole: make(map[Role]*[2]int), confused: make(map[string]int)}
}

func count(n *[2]int, right bool) {
	if n[1]++; right {
		n[0]++
	}
}

func (j *judgement) exchange(seed uint64, l labelled) {
	got := Extract(l.ex, Options{})
	right := strings.TrimSpace(got.Answer) == strings.TrimSpace(l.answer)
	if len(l.answer) > 12 {
		count(&j.spoken, right)
	}
	if count(&j.answer, right); !right {
		j.confused["answer: "+roleOf(got, l.answer)]++
		j.wrong = append(j.wrong, fmt.Sprintf("seed %d: answer %.100q, want %.100q", seed, got.Answer, l.answer))
	}
	for _, w := range l.roles {
		if j.byRole[w.role] == nil {
			j.byRole[w.role] = new([2]int)
		}
		right := has(got, w.role, w.text)
		count(j.byRole[w.role], right)
		if count(&j.roles, right); !right {
			j.confused[string(w.role)+" taken for "+roleOf(got, w.text)]++
			j.wrong = append(j.wrong, fmt.Sprintf("seed %d: %s %.100q: %s", seed, w.role, w.text, roleOf(got, w.text)))
		}
		for i := range got.Candidates {
			if c := &got.Candidates[i]; c.Text == w.text {
				j.scores = append(j.scores, scored{c.Score, c.Role == w.role})
			}
		}
	}
}

func (j *judgement) add(o *judgement) {
	for i := range 2 {
		j.answer[i] += o.answer[i]
		j.roles[i] += o.roles[i]
		j.spoken[i] += o.spoken[i]
	}
	for r, n := range o.byRole {
		if j.byRole[r] == nil {
			j.byRole[r] = new([2]int)
		}
		j.byRole[r][0] += n[0]
		j.byRole[r][1] += n[1]
	}
	j.scores = append(j.scores, o.scores...)
}

// calibration is the expected calibration error over ten bins of equal width.
func calibration(scores []scored) float64 {
	var said, right, n [10]float64
	for _, s := range scores {
		b := min(int(s.said*10), 9)
		n[b]++
		said[b] += s.said
		if s.right {
			right[b]++
		}
	}
	sum := 0.0
	for b := range n {
		sum += math.Abs(said[b] - right[b])
	}
	return sum / float64(max(len(scores), 1))
}

func (j *judgement) line(name string) string {
	s := fmt.Sprintf("%-24s answer first %.3f of %4d, of longer ones %.3f · roles %.3f of %4d · ECE %.3f ·", name, share(j.answer), j.answer[1], share(j.spoken), share(j.roles), j.roles[1], calibration(j.scores))
	for _, r := range roleOrder {
		if n := j.byRole[r]; n != nil {
			s += fmt.Sprintf(" %s %.3f", r, share(*n))
		}
	}
	return s
}

func judgeStyle(s style_, first, n uint64) *judgement {
	j := newJudgement()
	for seed := first; seed < first+n; seed++ {
		j.exchange(seed, s.make(newMaker(seed)))
	}
	return j
}

// TestEvalExtract prints how well each style is read, and demands floors of those
// that the weights were corrected on and of those that they were not.
//
// The styles are no services: an eighth of their answers is one word or a number,
// which a reader without names can often not tell from a title.
func TestEvalExtract(t *testing.T) {
	sums := map[bool]*judgement{true: newJudgement(), false: newJudgement()}
	n := uint64(40)
	if os.Getenv("UNWIRE_EVAL") != "" {
		n = 100
	}
	for _, s := range styles {
		j := judgeStyle(s, 9_000_000, n)
		sums[s.tuned].add(j)
		mark := "  "
		if s.tuned {
			mark = "* "
		}
		t.Log(j.line(mark + s.name))
		for _, what := range slices.Sorted(maps.Keys(j.confused)) {
			if n := j.confused[what]; n > 2 {
				t.Logf("      %4d %s", n, what)
			}
		}
	}
	t.Log(sums[true].line("= tuned on"))
	t.Log(sums[false].line("= validation"))
	for _, c := range []struct {
		what        string
		got, atLast float64
	}{
		{"tuned, answer", share(sums[true].answer), 0.94},
		{"tuned, roles", share(sums[true].roles), 0.97},
		{"validation, answer", share(sums[false].answer), 0.96},
		{"validation, roles", share(sums[false].roles), 0.98},
		{"calibration", 1 - calibration(append(sums[true].scores, sums[false].scores...)), 0.95},
	} {
		if c.got < c.atLast {
			t.Errorf("%s: %.3f, want %.3f", c.what, c.got, c.atLast)
		}
	}
}
