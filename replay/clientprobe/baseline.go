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

// A Baseline describes how the client behaves when the mock server returns the recorded responses
// unedited: its exit status, output and requests in several runs.
type Baseline struct {
	// Answered is the number of requests, in all runs, to which the mock server found a recorded
	// response.
	Answered int

	// Volatile describes the differences between unedited runs. They are ignored in edited runs.
	Volatile []string

	// runs are the observations of the unedited runs.
	runs []*observation

	// slowest is the duration of the slowest unedited run.
	slowest time.Duration

	// stdout are the lines that the client printed to stdout in the unedited runs.
	stdout lines
	// stderr are the lines that it printed to stderr.
	stderr lines

	// ignore are the paths of request fields that differ between unedited runs, by method.
	ignore map[string][]string
}

// Runs returns how often the client was run unedited.
func (b *Baseline) Runs() int { return len(b.runs) }

// Exit returns the exit status of the first unedited run.
func (b *Baseline) Exit() int { return b.runs[0].exit }

// An Effect is one difference between an edited run of the client and its unedited runs.
type Effect struct {
	// What is where the difference was seen: "exit" (status), "timeout", "request", "stdout" or
	// "stderr".
	What string `json:"what"`

	// Where is the method of the request, and the path of the field in it that differs; "" for other
	// effects.
	Where string `json:"where,omitempty"`

	// Text describes the difference.
	Text string `json:"text"`
}

// exitEffect is the What of an Effect on the exit status.
const exitEffect = "exit"

// lines describe what a client prints to stdout or stderr in unedited runs.
type lines struct {
	// stable are the lines that every run prints, each with how often every run prints it at least.
	stable map[string]int
	// volatile are the lines that only some runs print, with identifiers and numbers replaced by "#".
	volatile map[string]bool
}

// learn compares the unedited runs with each other and sets stdout, stderr, ignore and Volatile.
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

// newLines divides the lines that several runs printed into stable and volatile ones.
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

// count returns how often each line occurs.
func count(list []string) map[string]int {
	n := map[string]int{}
	for _, line := range list {
		n[line]++
	}
	return n
}

// effects compares the lines that a run printed with those of the unedited runs. Lines in addition, and missing
// lines, are returned as effects with what ("stdout" or "stderr") as their What.
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

// cut truncates a text for display to about 160 bytes.
func cut(s string) string {
	const most = 160
	if len(s) > most {
		return strings.ToValidUTF8(s[:most], "") + "…"
	}
	return s
}

// effects returns the differences between an edited run and the unedited ones, at most maxEffects.
// limit is the timeout of the run.
func (b *Baseline) effects(o *observation, limit time.Duration) []Effect {
	var out []Effect
	switch {
	case o.timedOut:
		out = append(out, Effect{What: "timeout", Text: fmt.Sprintf("the client did not end within %s", limit)})
	case !slices.ContainsFunc(b.runs, func(r *observation) bool { return r.exit == o.exit }):
		out = append(out, Effect{What: exitEffect, Text: fmt.Sprintf("status %d instead of %d", o.exit, b.Exit())})
	}
	out = append(out, b.requestEffects(o)...)
	out = append(out, b.stdout.effects("stdout", o.stdout)...)
	out = append(out, b.stderr.effects("stderr", o.stderr)...)
	return out[:min(len(out), maxEffects)]
}

// fails reports whether the client failed in an edited run: by a timeout, or by a status other than 0
// although all unedited runs ended with 0.
func (b *Baseline) fails(o *observation) bool {
	return o.timedOut || o.exit != 0 && !slices.ContainsFunc(b.runs, func(r *observation) bool { return r.exit != 0 })
}

// requestEffects compares the requests of a run with those of the first unedited run: for each method, the first
// request with the first, the second with the second, and so on.
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

// changeText describes a difference between two requests, such as `2 instead of 1`.
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

// byMethod returns the indexes in o.requests of a run's requests, by method.
func byMethod(o *observation) map[string][]int {
	out := map[string][]int{}
	for i := range o.requests {
		out[o.requests[i].Method] = append(out[o.requests[i].Method], i)
	}
	return out
}

// methodsOf returns the methods that some runs called, without duplicates, in the order of their first
// call.
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

// withoutFrame returns the path of a change without its frame ("@up/0 ") and without list indexes.
func withoutFrame(path string) string {
	if rest, ok := strings.CutPrefix(path, "@"); ok {
		_, path, _ = strings.Cut(rest, " ")
	}
	return edit.WithoutIndexes(path)
}
