package align

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// Bounds of a report that is read.
const (
	maxReportBytes = 64 << 20
	maxReportLines = 100_000
)

// errNoReport is wrapped where JSON is no report of joins and doubts.
var errNoReport = errors.New("no joins of align")

// IsReport reports whether JSON begins as the lines of `unwire align --json` do.
func IsReport(data []byte) bool {
	var first struct {
		Message string          `json:"message"`
		Name    json.RawMessage `json:"json_name"`
		Names   json.RawMessage `json:"json_names"`
	}
	return json.NewDecoder(bytes.NewReader(data)).Decode(&first) == nil && first.Message != "" && (first.Name != nil || first.Names != nil)
}

// ParseReport reads joins and doubts as `unwire align --json` writes them.
//
// Shape: an object a line; what is no join is a doubt.
// Limits: 64 MiB, 100,000 lines.
// Errors: ErrNoReport, with the place in the list; ErrLimit.
func ParseReport(data []byte) (*Report, error) {
	if len(data) > maxReportBytes {
		return nil, fmt.Errorf("align: more than %d bytes of JSON: %w", maxReportBytes, errLimit)
	}
	r := &Report{}
	dec := json.NewDecoder(bytes.NewReader(data))
	for i := 1; ; i++ {
		var line struct {
			Join
			Numbers []uint64 `json:"numbers"`
			Names   []string `json:"json_names"`
			Settle  string   `json:"settle"`
		}
		switch err := dec.Decode(&line); {
		case errors.Is(err, io.EOF) && i > 1:
			return r, nil
		case err != nil:
			return nil, fmt.Errorf("align: object %d: %w: %w", i, errNoReport, err)
		case i > maxReportLines:
			return nil, fmt.Errorf("align: more than %d lines: %w", maxReportLines, errLimit)
		case line.Message == "" || line.JSONName == "" && line.Names == nil:
			return nil, fmt.Errorf("align: object %d: %w", i, errNoReport)
		case line.JSONName == "":
			r.Doubts = append(r.Doubts, Doubt{Message: line.Message, Numbers: line.Numbers, Names: line.Names, Settle: line.Settle})
		default:
			r.Joins = append(r.Joins, line.Join)
		}
	}
}
