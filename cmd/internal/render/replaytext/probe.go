package replaytext

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"unwire/cmd/internal/app"
	"unwire/cmd/internal/term"
	"unwire/replay/probe"
)

// mostEvidence is the length to which evidence is truncated if stdout is not a terminal, in characters.
const mostEvidence = 100

// ProbeResult prints a table of the fields that a probe found or, if it tested claims (--settle), a table
// of the claims.
func ProbeResult(out *term.Output, r *probe.Result) error {
	if len(r.Settled) > 0 {
		return settledTable(out, r)
	}
	rows := [][]string{}
	for _, f := range slices.Concat(r.Fields, r.Nested) {
		number, name, last := "", f.Name, ""
		if f.Number > 0 {
			number = strconv.Itoa(int(f.Number))
			if f.Path != "" {
				number = f.Path + "." + number
			}
		}
		if f.In != "" {
			name = f.In + "." + name
		}
		// The last piece of evidence is usually the decisive one.
		if len(f.Evidence) > 0 {
			last = f.Evidence[len(f.Evidence)-1]
			if !out.TTY {
				last = term.Cut(term.Clean(last), mostEvidence)
			}
		}
		of := cmp.Or(f.Type, f.MapValue)
		if values := slices.Concat(f.Values, f.Holds); len(values) > 0 {
			of = strings.TrimSpace(of + " {" + strings.Join(values, ", ") + "}")
		}
		rows = append(rows, []string{number, string(f.Class), f.Kind, f.Label, name, of, last})
	}
	if len(rows) == 0 && out.TTY {
		return nil
	}
	return out.Table(term.Table{Rows: rows, Columns: []term.Column{
		{Name: "FIELD"},
		{Name: "WIRE TYPE", Drop: 1},
		{Name: "KIND", Drop: 3},
		{Name: "LABEL", Drop: 2},
		{Name: "NAME", Shorten: term.Name, Min: 12},
		{Name: "TYPE", Shorten: term.End, Min: 16, Drop: 4},
		{Name: "EVIDENCE", Shorten: term.End, Min: 16, Drop: 5},
	}})
}

// Probed prints a summary of a probe.
func Probed(out *term.Output, r *probe.Result) {
	if by := r.Reflection; by != nil {
		out.Sayf("request type: %s. The server described this type by server reflection (%s, %s) in answer to %s, and did not execute the method\n", orUnknown(r.RequestType), by.Version, by.Protocol, app.Counted(by.Requests, "request"))
		return
	}
	runtime := string(r.Runtime)
	if r.Runtime == probe.Unknown {
		runtime = "unknown"
	}
	out.Sayf("RPC library of the server: %s; request type: %s; unwire sent %s (%s), of which %s\n", runtime, orUnknown(r.RequestType), app.Counted(r.Requests, "request"), app.Counted(r.Bytes, "byte"), executed(r.Executed))
	for _, n := range r.Notes {
		out.Sayf("%s\n", term.Clean(n))
	}
}

// executed says how many requests may have made the server execute the method.
func executed(n int) string {
	if n == 0 {
		return "none made the server execute the method"
	}
	return fmt.Sprintf("%d may have made the server execute the method", n)
}

// orUnknown returns the name of a request type, or a phrase if the name is "".
func orUnknown(name string) string {
	if name == "" {
		return "unknown"
	}
	return term.Clean(name)
}

// settledTable prints a table of claims about fields, each with the verdict and the reason.
func settledTable(out *term.Output, r *probe.Result) error {
	var rows [][]string
	var open []bool // whether the claim was not confirmed
	for _, q := range r.Settled {
		at := strconv.Itoa(int(q.Number))
		if q.Path != "" {
			at = q.Path + "." + at
		}
		for _, c := range q.Claims {
			why := c.Concluded
			if c.Open != "" {
				why += "; the answers do not show " + c.Open
			}
			rows = append(rows, []string{at, term.Clean(c.Text), term.Clean(c.From), string(c.Verdict), term.Clean(why)})
			open = append(open, c.Verdict != probe.Confirmed)
		}
	}
	return out.Table(term.Table{Rows: rows, Columns: []term.Column{
		{Name: "FIELD"},
		{Name: "POSSIBLE TYPE", Shorten: term.End, Min: 20},
		{Name: "SOURCE", Shorten: term.Middle, Min: 12, Drop: 2},
		{Name: "VERDICT"},
		{Name: "REASON", Shorten: term.End, Min: 20, Drop: 1},
	}, Detail: func(i int) bool { return open[i] }})
}
