package capturetext

import (
	"fmt"
	"strconv"

	"unwire/captures/redact"
	"unwire/cmd/internal/app"
	"unwire/cmd/internal/query"
	"unwire/cmd/internal/term"
	"unwire/decode/secret"
)

// FileFindings are the secrets that an audit found in one capture.
type FileFindings struct {
	// File is the path of the capture.
	File string

	// Found are the secrets in it.
	Found []secret.Finding
}

// Findings prints a table of the secrets that an audit found. It prints nothing if there are none.
func Findings(out *term.Output, list []FileFindings) error {
	var rows [][]string
	for _, l := range list {
		for i := range l.Found {
			rows = append(rows, findingRow(l.File, &l.Found[i]))
		}
	}
	if len(rows) == 0 {
		return nil
	}
	return out.Table(term.Table{Rows: rows, Columns: []term.Column{
		{Name: "RULE"},
		{Name: "ADDRESS", Shorten: term.Middle, Min: 12},
		{Name: "FOUND IN", Shorten: term.End, Min: 12},
		{Name: "NAME", Shorten: term.Name, Min: 10, Drop: 1},
		{Name: "PATH", Shorten: term.Middle, Min: 12, Drop: 2},
		{Name: "BYTE OFFSET", Right: true, Drop: 5},
		{Name: "BYTES", Right: true, Drop: 4},
		{Name: "TIMES FOUND", Right: true, Drop: 3},
	}, Legend: rulesLegend})
}

// rulesLegend explains the rules.
const rulesLegend = "(RULE: why the value counts as a secret. header, parameter, member, field: because of its name; " +
	"key-shape: it begins like an API key; seen: it is one of your secrets, or was found elsewhere; not-searched: audit cannot read the data)"

// findingRow returns the table row for one secret in a file.
func findingRow(file string, f *secret.Finding) []string {
	place, path := f.Place, f.Path.String()
	switch {
	case f.Header != "":
		place += " " + f.Header
	case f.Place == "body":
		place += " sent by the " + f.Dir.Sender()
	}
	if f.Encoding != "" {
		path += " (" + f.Encoding + ")"
	}
	return []string{
		string(f.Rule), query.FindingAddress(file, f).String(), place, f.Name, path,
		strconv.Itoa(f.Off), strconv.Itoa(f.Len), strconv.Itoa(f.Count),
	}
}

// FindingCounts prints how many secrets an audit found, how much data it could not search, and which
// command removes them.
func FindingCounts(out *term.Output, c secret.Counts) {
	if c.Values > 0 {
		look, them := "look like secrets", "them"
		if c.Values == 1 {
			look, them = "looks like a secret", "it"
		}
		removes := "removes " + them
		if c.Staying > 0 {
			removes = fmt.Sprintf("cannot remove %d of them", c.Staying)
		}
		out.Sayf("unwire: %s %s; 'unwire redact F.uwc -o CLEAN.uwc' %s\n", app.Counted(c.Values, "value"), look, removes)
	} else {
		out.Sayf("unwire: found no secrets in the captures\n")
	}
	if c.Unsearched > 0 {
		out.Sayf("unwire: audit could not search %s for secrets (%s with the rule %s); 'unwire redact' and 'unwire export' leave these bytes out\n", app.Counted(c.UnsearchedBytes, "byte"), app.Counted(c.Unsearched, "range"), redact.RuleUnsearched)
	}
}
