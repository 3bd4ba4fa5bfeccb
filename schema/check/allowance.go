package check

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"path"
	"strconv"
	"strings"
)

// Limits of a list of allowed findings.
const (
	// maxAllowBytes is the maximum size in bytes of a list of allowed findings.
	maxAllowBytes = 64 << 20
	// maxAllowLines is the maximum number of lines of a list of allowed findings.
	maxAllowLines = 100_000
)

// An Allowance is a list of findings that are known already, so that a check with only these findings succeeds.
// Read one with ReadAllowance.
type Allowance struct {
	// rules are the patterns for allowed findings, one for each line of a list in text form.
	rules []allowRule
	// seen has the unknown fields and contradictions of an earlier report, which must match exactly.
	seen map[findingKey]bool
	// called has the unknown methods of an earlier report, by service and RPC.
	called map[[2]string]bool
}

// An allowRule is one line of a list: patterns that match allowed findings.
type allowRule struct {
	// what restricts the rule to findings of one kind: "unknown", "contradicted" or "method". "" means unknown
	// fields and contradictions.
	what string

	// message and field are patterns as of path.Match for the full name of the message and for the field's
	// number or name. In a rule for methods, they are patterns for service and RPC.
	message, field string
}

// ReadAllowance reads a list of allowed findings: lines of text, or the JSON of an earlier Report, whose
// findings are then all allowed.
//
// Shape: a line is [unknown|contradicted] MESSAGE [FIELD], or method SERVICE/RPC. FIELD is a number or a name.
// In names, * matches any characters. # begins a comment.
// Limits: 64 MiB, 100,000 lines.
// Errors: a line is malformed; the error has its number.
func ReadAllowance(r io.Reader) (*Allowance, error) {
	data, err := io.ReadAll(io.LimitReader(r, maxAllowBytes+1))
	if err != nil {
		return nil, fmt.Errorf("schema: %w", err)
	}
	if len(data) > maxAllowBytes {
		return nil, fmt.Errorf("schema: the list of known findings is larger than %d bytes", maxAllowBytes)
	}
	a := &Allowance{seen: map[findingKey]bool{}, called: map[[2]string]bool{}}
	if trimmed := bytes.TrimSpace(data); len(trimmed) > 0 && trimmed[0] == '{' {
		return a, a.readReport(trimmed)
	}

	lines := bufio.NewScanner(bytes.NewReader(data))
	for n := 1; lines.Scan(); n++ {
		if n > maxAllowLines {
			return nil, fmt.Errorf("schema: the list of known findings has more than %d lines", maxAllowLines)
		}
		if err := a.readLine(lines.Text()); err != nil {
			return nil, fmt.Errorf("schema: line %d: %w", n, err)
		}
	}

	// A line that is too long ends the scan early.
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("schema: %w", err)
	}
	return a, nil
}

// readReport allows all findings of an earlier report, given its JSON.
func (a *Allowance) readReport(data []byte) error {
	var r Report
	if err := json.Unmarshal(data, &r); err != nil {
		return fmt.Errorf("schema: the report is malformed: %w", err)
	}
	for _, u := range r.Unknown {
		a.seen[u.finding()] = true
	}
	for _, c := range r.Contradicted {
		c.Reason = currentReason(c.Reason)
		a.seen[c.finding()] = true
	}
	for _, m := range r.UnknownMethods {
		a.called[[2]string{m.Service, m.RPC}] = true
	}
	return nil
}

// readLine adds the rule in one line of the list. Blank lines and comments have none.
func (a *Allowance) readLine(line string) error {
	line, _, _ = strings.Cut(line, "#")
	words := strings.Fields(line)
	if len(words) == 0 {
		return nil
	}

	// The first word may say what kind of finding the rule is for.
	rule := allowRule{field: "*"}
	switch words[0] {
	case "unknown", "contradicted", "method":
		rule.what, words = words[0], words[1:]
	}

	switch {
	case rule.what == "method" && len(words) == 1:
		service, rpc, ok := strings.Cut(words[0], "/")
		if !ok {
			return fmt.Errorf("%q is not SERVICE/RPC", words[0])
		}
		rule.message, rule.field = service, rpc
	case rule.what != "method" && len(words) == 2:
		rule.message, rule.field = words[0], words[1]
	case rule.what != "method" && len(words) == 1:
		rule.message = words[0]
	default:
		return fmt.Errorf("%q must have one of these forms: MESSAGE, MESSAGE FIELD, unknown MESSAGE, unknown MESSAGE FIELD, contradicted MESSAGE, contradicted MESSAGE FIELD, method SERVICE/RPC (the words unknown and contradicted accept only findings of this kind)", strings.TrimSpace(line))
	}

	// A malformed pattern would match nothing, so it is reported here.
	for _, pattern := range []string{rule.message, rule.field} {
		if _, err := path.Match(pattern, ""); err != nil {
			return fmt.Errorf("%q: %w", pattern, err)
		}
	}
	a.rules = append(a.rules, rule)
	return nil
}

// finding returns the key by which an Allowance recognizes the finding. The number of occurrences is not part
// of it.
func (u *UnknownField) finding() findingKey {
	return findingKey{message: u.Message, number: u.Number, name: u.Name}
}

// finding returns the key by which an Allowance recognizes the finding. The number of occurrences is not part
// of it.
func (c *Contradiction) finding() findingKey {
	return findingKey{message: c.Message, number: c.Number, name: c.Name, reason: c.Reason}
}

// allows reports whether a finding of the kind what ("unknown" or "contradicted") is allowed.
func (a *Allowance) allows(what string, f findingKey) bool {
	if a.seen[f] {
		return true
	}
	for _, r := range a.rules {
		if (r.what == what || r.what == "" && what != "method") && matches(r.message, f.message) &&
			(matches(r.field, strconv.Itoa(int(f.number))) || matches(r.field, f.name)) {
			return true
		}
	}
	return false
}

// matches is path.Match for a pattern that is known to be valid.
func matches(pattern, s string) bool {
	ok, err := path.Match(pattern, s)
	return ok && err == nil
}

// Allow marks the findings of the report that a allows.
func (r *Report) Allow(a *Allowance) {
	for i := range r.Unknown {
		u := &r.Unknown[i]
		u.Allowed = u.Allowed || a.allows("unknown", u.finding())
	}
	for i := range r.Contradicted {
		c := &r.Contradicted[i]
		c.Allowed = c.Allowed || a.allows("contradicted", c.finding())
	}
	for i := range r.UnknownMethods {
		m := &r.UnknownMethods[i]
		m.Allowed = m.Allowed || a.called[[2]string{m.Service, m.RPC}] || a.allows("method", findingKey{message: m.Service, name: m.RPC})
	}
}
