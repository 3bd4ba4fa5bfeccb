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

// Bounds of a list of what is allowed.
const (
	maxAllowBytes = 64 << 20
	maxAllowLines = 100_000
)

// An Allowance says which findings of a check are known and no reason to fail.
type Allowance struct {
	rules  []allowRule
	seen   map[finding]bool   // of a report, exactly
	called map[[2]string]bool // methods of a report
}

// An allowRule is a line: a pattern of messages, and of their fields.
type allowRule struct {
	// "unknown", "contradicted" or "method"; "" for the first two
	what string

	// patterns as of path.Match
	message, field string
}

// ReadAllowance reads a list of findings: a Report as JSON, whose
// findings are then known, or lines.
//
// Shape: a line is [unknown|contradicted] MESSAGE [FIELD], or method
// SERVICE/RPC; FIELD is a number or a name, and * stands for any run of
// characters in a name. # begins a comment.
// Limits: 64 MiB, 100,000 lines.
// Errors: names the line.
func ReadAllowance(r io.Reader) (*Allowance, error) {
	data, err := io.ReadAll(io.LimitReader(r, maxAllowBytes+1))
	if err != nil {
		return nil, fmt.Errorf("schema: %w", err)
	}
	if len(data) > maxAllowBytes {
		return nil, fmt.Errorf("schema: a list of known findings larger than %d bytes", maxAllowBytes)
	}
	a := &Allowance{seen: map[finding]bool{}, called: map[[2]string]bool{}}
	if trimmed := bytes.TrimSpace(data); len(trimmed) > 0 && trimmed[0] == '{' {
		return a, a.readReport(trimmed)
	}
	lines := bufio.NewScanner(bytes.NewReader(data))
	for n := 1; lines.Scan(); n++ {
		if n > maxAllowLines {
			return nil, fmt.Errorf("schema: more than %d lines of known findings", maxAllowLines)
		}
		if err := a.readLine(lines.Text()); err != nil {
			return nil, fmt.Errorf("schema: line %d: %w", n, err)
		}
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("schema: %w", err)
	}
	return a, nil
}

func (a *Allowance) readReport(data []byte) error {
	var r Report
	if err := json.Unmarshal(data, &r); err != nil {
		return fmt.Errorf("schema: a report: %w", err)
	}
	for _, u := range r.Unknown {
		a.seen[u.finding()] = true
	}
	for _, c := range r.Contradicted {
		a.seen[c.finding()] = true
	}
	for _, m := range r.UnknownMethods {
		a.called[[2]string{m.Service, m.RPC}] = true
	}
	return nil
}

func (a *Allowance) readLine(line string) error {
	line, _, _ = strings.Cut(line, "#")
	words := strings.Fields(line)
	if len(words) == 0 {
		return nil
	}
	rule := allowRule{field: "*"}
	switch words[0] {
	case "unknown", "contradicted", "method":
		rule.what, words = words[0], words[1:]
	}
	switch {
	case rule.what == "method" && len(words) == 1:
		service, rpc, ok := strings.Cut(words[0], "/")
		if !ok {
			return fmt.Errorf("%q is no SERVICE/RPC", words[0])
		}
		rule.message, rule.field = service, rpc
	case rule.what != "method" && len(words) == 2:
		rule.message, rule.field = words[0], words[1]
	case rule.what != "method" && len(words) == 1:
		rule.message = words[0]
	default:
		return fmt.Errorf("%q is not [unknown|contradicted] MESSAGE [FIELD], nor method SERVICE/RPC", strings.TrimSpace(line))
	}
	for _, pattern := range []string{rule.message, rule.field} {
		if _, err := path.Match(pattern, ""); err != nil {
			return fmt.Errorf("%q: %w", pattern, err)
		}
	}
	a.rules = append(a.rules, rule)
	return nil
}

func (u *UnknownField) finding() finding {
	return finding{message: u.Message, number: u.Number, name: u.Name}
}

func (c *Contradiction) finding() finding {
	return finding{message: c.Message, number: c.Number, name: c.Name, reason: c.Reason}
}

func (a *Allowance) allows(what string, f finding) bool {
	if a.seen[f] {
		return true
	}
	for _, r := range a.rules {
		if (r.what == what || r.what == "" && what != "method") && fits(r.message, f.message) &&
			(fits(r.field, strconv.Itoa(int(f.number))) || fits(r.field, f.name)) {
			return true
		}
	}
	return false
}

// fits is path.Match of a pattern that is known to be one.
func fits(pattern, s string) bool {
	ok, err := path.Match(pattern, s)
	return ok && err == nil
}

// Allow marks the findings that an allowance knows.
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
		m.Allowed = m.Allowed || a.called[[2]string{m.Service, m.RPC}] || a.allows("method", finding{message: m.Service, name: m.RPC})
	}
}
