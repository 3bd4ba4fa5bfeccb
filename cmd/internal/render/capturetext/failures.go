package capturetext

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"unwire/captures"
	"unwire/captures/safetext"
	"unwire/cmd/internal/contract"
	"unwire/cmd/internal/render/failure"
	"unwire/cmd/internal/term"
)

// Counts counts exchanges by how they ended.
type Counts struct {
	// ends has one element for each way in which exchanges ended, in order of first occurrence.
	ends []end
}

// An end is one way in which exchanges ended, such as a status code, with the number of those
// exchanges.
type end struct {
	name string
	n    int
}

// Add counts an exchange with this outcome and status code.
func (c *Counts) Add(o captures.Outcome, code string) {
	name := string(o)
	switch {
	case o == captures.Complete:
		name = cmp.Or(code, "complete")
	case o == captures.InFlight:
		name = "in flight"
	}
	i := slices.IndexFunc(c.ends, func(e end) bool { return e.name == name })
	if i < 0 {
		c.ends = append(c.ends, end{name: name})
		i = len(c.ends) - 1
	}
	c.ends[i].n++
}

// String is the counts in words, the largest first: 9 ok, 2 failed, 1 unavailable.
func (c *Counts) String() string {
	list := slices.Clone(c.ends)
	slices.SortStableFunc(list, func(a, b end) int { return cmp.Compare(b.n, a.n) })
	var texts []string
	for _, e := range list {
		texts = append(texts, fmt.Sprintf("%d %s", e.n, term.Clean(e.name)))
	}
	return strings.Join(texts, ", ")
}

// maxFailures bounds the kinds of failures that are reported.
const maxFailures = 8

// CountFailure counts why an exchange of a file failed, if it did. Of a kind the first
// exchange is named.
func CountFailure(list []contract.FailureCount, file string, ex *captures.Exchange, code string) []contract.FailureCount {
	f, failed := failure.OfCall(ex, code)
	if !failed {
		return list
	}
	i := slices.IndexFunc(list, func(c contract.FailureCount) bool {
		return c.Kind == string(f.Kind) && (f.Kind != failure.Status || c.Reason == f.Reason)
	})
	if i >= 0 {
		list[i].Count++
		return list
	}
	if len(list) == maxFailures {
		return list
	}
	return append(list, contract.FailureCount{
		Kind: string(f.Kind), Count: 1, File: file, Exchange: ex.ID, Reason: f.Reason, Remedy: f.Remedy,
	})
}

// maxReason bounds the text of a reason, in characters.
const maxReason = 300

// Failure prints why a number of exchanges failed, and a remedy.
func Failure(out *term.Output, c *contract.FailureCount) {
	more := ""
	if c.Count > 1 {
		more = fmt.Sprintf(" (and %d more)", c.Count-1)
	}
	reason := term.Cut(term.Clean(c.Reason), maxReason)
	if c.Kind == string(failure.Status) {
		reason += fmt.Sprintf("; for details, run 'unwire show %s %d'", safetext.ShellFile(c.File), c.Exchange)
	}
	fmt.Fprintf(out, "unwire: %s exchange %d%s: %s\n", out.Red("failed:"), c.Exchange, more, reason)
	switch {
	case c.Kind == string(failure.CertificateRefused):
		// What the program needs was said when it refused.
		fmt.Fprintf(out, "unwire: hint: configure the client to trust the CA ('unwire ca'). If the client pins the server's certificate,\nrecord it with 'capture --passive', or exclude the host with --skip\n")
	case c.Remedy != "":
		fmt.Fprintf(out, "unwire: hint: %s\n", c.Remedy)
	}
}

// HintOf returns the hint for the first failed exchange of a listing whose failure a user can remedy;
// "" if there is none.
func HintOf(lines []*contract.Exchange) string {
	for _, l := range lines {
		if f, ok := failure.Of(l.Error); ok && f.Remedy != "" {
			return fmt.Sprintf("exchange %d: %s", l.ID, f.Remedy)
		}
	}
	return ""
}
