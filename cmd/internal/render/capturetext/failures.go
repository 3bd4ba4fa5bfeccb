package capturetext

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"unwire/captures"
	"unwire/captures/safetext"
	"unwire/cmd/internal/app"
	"unwire/cmd/internal/contract"
	"unwire/cmd/internal/render/failure"
	"unwire/cmd/internal/term"
)

// Counts has the number of exchanges for each way in which they ended.
type Counts struct {
	// ends has one element for each way in which exchanges ended, in order of first occurrence.
	ends []end
}

// An end is one way in which exchanges ended, such as a status code, with the number of those
// exchanges.
type end struct {
	// name is the status code or outcome, such as "ok" or "failed", and n the number of exchanges.
	name string

	// n is the number of exchanges.
	n int
}

// Add counts one exchange with an outcome and status code.
func (c *Counts) Add(o captures.Outcome, code string) {
	name := string(o)
	switch {
	case o == captures.Complete:
		name = cmp.Or(code, "complete, without an RPC status")
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

// String returns the counts in words, the largest first, such as "9 ok, 2 failed, 1 unavailable".
func (c *Counts) String() string {
	list := slices.Clone(c.ends)
	slices.SortStableFunc(list, func(a, b end) int { return cmp.Compare(b.n, a.n) })
	var texts []string
	for _, e := range list {
		texts = append(texts, fmt.Sprintf("%d %s", e.n, term.Clean(e.name)))
	}
	return strings.Join(texts, ", ")
}

// maxFailures is the largest number of kinds of failures that are reported.
const maxFailures = 8

// CountFailure adds an exchange in a file to a list of failures, if it failed, and returns the list.
// There is one element for each kind of failure, which names the first exchange. code is the exchange's
// status code.
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

// maxReason is the length to which a reason is truncated, in characters.
const maxReason = 300

// Failure prints why exchanges failed, for one kind of failure, and what to do about it.
func Failure(out *term.Output, c *contract.FailureCount) {
	more := ""
	if c.Count > 1 {
		more = ", and " + app.Counted(c.Count-1, "other")
	}
	reason := term.Cut(term.Clean(c.Reason), maxReason)
	if c.Kind == string(failure.Status) {
		reason += fmt.Sprintf("; 'unwire show %s %d' prints details", safetext.ShellFile(c.File), c.Exchange)
	}
	switch {
	case c.Kind == string(failure.Shortened):
		// The call itself did not fail, and each exchange lacks another number of bytes.
		others := ""
		if c.Count > 1 {
			others = "; bytes are also missing in " + app.Counted(c.Count-1, "other exchange")
		}
		out.Sayf("unwire: %s exchange %d: %s%s\n", out.Red("incomplete:"), c.Exchange, reason, others)
	default:
		out.Sayf("unwire: %s exchange %d%s: %s\n", out.Red("failed:"), c.Exchange, more, reason)
	}
	switch {
	case c.Kind == string(failure.CertificateRefused):
		// What the program needs was said when it refused.
		out.Sayf("unwire: hint: configure the client to trust the CA ('unwire ca'). If the client pins the server's certificate, record it with 'capture --passive', or exclude the host with --skip\n")
	case c.Remedy != "":
		out.Sayf("unwire: hint: %s\n", c.Remedy)
	}
}

// FirstFailure returns the reason of the first failed exchange of a listing for which a remedy is known, and the
// remedy; each begins with the exchange. Both are "" if there is none.
func FirstFailure(lines []*contract.Exchange) (reason, remedy string) {
	for _, l := range lines {
		if f, ok := failure.Of(l.Error); ok && f.Remedy != "" {
			where := fmt.Sprintf("exchange %d: ", l.ID)
			if l.File != "" { // several captures are listed
				where = fmt.Sprintf("%s#%d: ", term.Clean(l.File), l.ID)
			}
			return where + term.Clean(l.Error), where + f.Remedy
		}
	}
	return "", ""
}
