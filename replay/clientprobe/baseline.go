package clientprobe

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"unwire/decode/diff"
	"unwire/replay/edit"
)

// A Baseline is what the unedited client does.
type Baseline struct {
	// Answered counts the requests of all runs that a recorded call answered.
	Answered int

	// Volatile describes what differs between unedited runs, and does not count in edited ones.
	Volatile []string

	runs    []*observation
	slowest time.Duration

	// stdout and stderr are the lines of all runs.
	stdout, stderr lines

	// ignore are the paths of requests that differ, by method.
	ignore map[string][]string
}

// Runs returns the number of unedited runs.
func (b *Baseline) Runs() int { return len(b.runs) }

// Exit returns the exit status of the first unedited run.
func (b *Baseline) Exit() int { return b.runs[0].exit }

// An Effect is something that the client did otherwise than in the unedited runs.
type Effect struct {
	// What is "exit", "timeout", "request", "stdout" or "stderr".
	What string `json:"what"`

	// Where is the method and the path of a request; "" for the others.
	Where string `json:"where,omitempty"`

	// Text describes the difference.
	Text string `json:"text"`
}

// lines are the lines that a client prints.
type lines struct {
	// stable counts the lines that every run prints.
	stable map[string]int
	// volatile are the other lines, without numbers.
	volatile map[string]bool
}

// learn compares the unedited runs.
func (b *Baseline) learn() {
	b.ignore = map[string][]string{}
	var outs, errs [][]string
	for _, o := range b.runs {
		outs, errs = append(outs, o.stdout), append(errs, o.stderr)
	}
	b.stdout, b.stderr = newLines(outs), newLines(errs)
	for _, o := range b.runs[1:] {
		for _, e := range b.requestEffects(o) {
			method, path, _ := strings.Cut(e.Where, " ")
			if path != "" && !slices.Contains(b.ignore[method], path) {
				b.ignore[method] = append(b.ignore[method], path)
				b.Volatile = append(b.Volatile, "request "+e.Where)
			}
		}
	}
	for name, l := range map[string]lines{"stdout": b.stdout, "stderr": b.stderr} {
		for line := range l.volatile {
			b.Volatile = append(b.Volatile, name+" "+line)
		}
	}

	// Maps have no order.
	slices.Sort(b.Volatile)
}

// newLines finds the lines that all runs print.
func newLines(runs [][]string) lines {
	// A line is stable as often as the run has it that prints it the least.
	l := lines{stable: count(runs[0]), volatile: map[string]bool{}}
	for _, run := range runs[1:] {
		n := count(run)
		for line, c := range l.stable {
			l.stable[line] = min(c, n[line])
		}
	}
	for _, run := range runs {
		for line, c := range count(run) {
			if c > l.stable[line] {
				l.volatile[masked(line)] = true
			}
		}
	}
	return l
}

func count(list []string) map[string]int {
	n := map[string]int{}
	for _, line := range list {
		n[line]++
	}
	return n
}

// effects returns the differences between a run's lines and these.
func (l *lines) effects(what string, run []string) []Effect {
	var out []Effect
	n := count(run)
	for _, line := range run {
		if n[line] > l.stable[line] && !l.volatile[masked(line)] {
			out = append(out, Effect{What: what, Text: "+ " + cut(line)})
			n[line] = 0
		}
	}

	// What is missing comes behind what is new, in a fixed order.
	var missing []string
	n = count(run)
	for line, c := range l.stable {
		if n[line] < c {
			missing = append(missing, line)
		}
	}
	slices.Sort(missing)
	for _, line := range missing {
		out = append(out, Effect{What: what, Text: "- " + cut(line)})
	}
	return out
}

// cut shortens a line for people.
func cut(s string) string {
	const most = 160
	if len(s) > most {
		return strings.ToValidUTF8(s[:most], "") + "…"
	}
	return s
}

// effects returns what a run did otherwise.
func (b *Baseline) effects(o *observation, limit time.Duration) []Effect {
	var out []Effect
	switch {
	case o.timedOut:
		out = append(out, Effect{What: "timeout", Text: fmt.Sprintf("it did not end within %s", limit)})
	case !slices.ContainsFunc(b.runs, func(r *observation) bool { return r.exit == o.exit }):
		out = append(out, Effect{What: "exit", Text: fmt.Sprintf("status %d instead of %d", o.exit, b.Exit())})
	}
	out = append(out, b.requestEffects(o)...)
	out = append(out, b.stdout.effects("stdout", o.stdout)...)
	out = append(out, b.stderr.effects("stderr", o.stderr)...)
	return out[:min(len(out), maxEffects)]
}

// fails reports whether a run failed where the unedited ones did not.
func (b *Baseline) fails(o *observation) bool {
	return o.timedOut || o.exit != 0 && !slices.ContainsFunc(b.runs, func(r *observation) bool { return r.exit != 0 })
}

// requestEffects compares the requests of a run with those of the first unedited one: the nth of each method.
func (b *Baseline) requestEffects(o *observation) []Effect {
	var out []Effect
	was, is := byMethod(b.runs[0]), byMethod(o)
	for _, method := range methodsOf(b.runs[0], o) {
		// Runs of the baseline may differ in how often they call a method, as when they poll.
		if n := len(is[method]); !slices.ContainsFunc(b.runs, func(r *observation) bool { return len(byMethod(r)[method]) == n }) {
			out = append(out, Effect{What: "request", Where: method, Text: fmt.Sprintf("called %d times instead of %d", n, len(was[method]))})
		}
		for i := range min(len(was[method]), len(is[method])) {
			x, y := &b.runs[0].requests[was[method][i]], &o.requests[is[method][i]]
			for _, c := range diff.Exchanges(upOnly(x), upOnly(y), diff.Options{Ignore: b.ignore[method]}) {
				if c.Ignored == "" {
					where := strings.TrimSuffix(method+" "+withoutFrame(c.Path), " ")
					out = append(out, Effect{What: "request", Where: where, Text: changeText(&c)})
				}
			}
		}
	}
	return out
}

// changeText describes a difference between two requests.
func changeText(c *diff.Change) string {
	text := func(v any) string {
		b, err := json.Marshal(v)
		if err != nil {
			return fmt.Sprint(v)
		}
		return cut(string(b))
	}
	switch c.Op {
	case diff.Remove:
		return "without " + text(c.Old)
	case diff.Add:
		return "also " + text(c.New)
	}
	return text(c.New) + " instead of " + text(c.Old)
}

// byMethod returns the indexes of a run's requests by method.
func byMethod(o *observation) map[string][]int {
	out := map[string][]int{}
	for i := range o.requests {
		out[o.requests[i].Method] = append(out[o.requests[i].Method], i)
	}
	return out
}

// methodsOf returns the methods of two runs, in the order of their first request.
func methodsOf(runs ...*observation) (list []string) {
	for _, o := range runs {
		for i := range o.requests {
			if m := o.requests[i].Method; !slices.Contains(list, m) {
				list = append(list, m)
			}
		}
	}
	return list
}

// withoutFrame returns the path of a change without its frame and indexes.
func withoutFrame(path string) string {
	if rest, ok := strings.CutPrefix(path, "@"); ok {
		_, path, _ = strings.Cut(rest, " ")
	}
	return edit.WithoutIndexes(path)
}
