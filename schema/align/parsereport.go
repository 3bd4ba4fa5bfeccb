package align

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// Limits of a report in JSON that is read back.
const (
	// maxReportBytes is the maximum size in bytes.
	maxReportBytes = 64 << 20
	// maxReportLines is the maximum number of lines.
	maxReportLines = 100_000
)

// errNoReport is wrapped by the error for JSON that is not the output of `unwire align --json`.
var errNoReport = errors.New("the input is not the JSON output of 'unwire align'")

// IsReport reports whether data begins like the output of `unwire align --json`.
func IsReport(data []byte) bool {
	var first struct {
		Message string          `json:"message"`
		Name    json.RawMessage `json:"json_name"`
		Names   json.RawMessage `json:"json_names"`
	}
	return json.NewDecoder(bytes.NewReader(data)).Decode(&first) == nil && first.Message != "" && (first.Name != nil || first.Names != nil)
}

// ParseReport parses the output of `unwire align --json`.
//
// Shape: one object in each line. An object that is not a join is a doubt.
// Limits: 64 MiB, 100,000 lines.
// Errors: errNoReport, with the number of the object; errLimit.
func ParseReport(data []byte) (*Report, error) {
	if len(data) > maxReportBytes {
		return nil, fmt.Errorf("align: the input has more than %d bytes of JSON: %w", maxReportBytes, errLimit)
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
		// Joins and doubts share the format of a line; a join has a name.
		switch err := dec.Decode(&line); {
		case errors.Is(err, io.EOF) && i > 1:
			return r, nil
		case err != nil:
			return nil, fmt.Errorf("align: object %d: %w: %w", i, errNoReport, err)
		case i > maxReportLines:
			return nil, fmt.Errorf("align: the input has more than %d lines: %w", maxReportLines, errLimit)
		case line.Message == "" || line.JSONName == "" && line.Names == nil:
			return nil, fmt.Errorf("align: object %d: %w", i, errNoReport)
		case line.JSONName == "":
			r.Doubts = append(r.Doubts, Doubt{Message: line.Message, Numbers: line.Numbers, Names: line.Names, Settle: line.Settle})
		default:
			r.Joins = append(r.Joins, line.Join)
		}
	}
}
