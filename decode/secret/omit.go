package secret

import (
	"context"
	"fmt"
	"slices"

	"unwire/captures"
	"unwire/captures/redact"
)

// Omitted counts the data that was left out of a copy because it could not be searched for secrets.
type Omitted struct {
	// Exchanges is the number of exchanges from which data was omitted.
	Exchanges int

	// Bytes is the total number of omitted bytes.
	Bytes int64
}

// omitUnsearched records the ranges of an exchange's bodies that are omitted because they cannot be searched, and
// adds the edits that remove them. Other edits that overlap them are dropped.
func (c *cleaner) omitUnsearched(ctx context.Context, from captures.ChunkSource, ex *captures.Exchange, edits *[2][]redact.Edit) error {
	if !c.red.OmitUnsearched {
		return nil
	}
	runs, err := c.red.FindUnsearched(ctx, from, ex)
	if err != nil {
		return err
	}
	for _, u := range runs {
		omission := u.Omission()
		edits[u.Dir] = slices.DeleteFunc(edits[u.Dir], func(e redact.Edit) bool {
			return e.Start < omission.End && omission.Start < e.End
		})
		edits[u.Dir] = append(edits[u.Dir], omission)
	}
	for _, h := range c.red.FindURL(ex.URL) {
		if h.Rule == redact.RuleUnsearched {
			c.inURL[ex.ID] += int64(h.Len)
		}
	}
	if len(runs) > 0 {
		c.runs[ex.ID] = runs
	}
	return nil
}

// omittedBytes returns the number of bytes that are omitted from an exchange.
func (c *cleaner) omittedBytes(id int64) int64 {
	n := c.inURL[id]
	for _, u := range c.runs[id] {
		n += u.Bytes()
	}
	return n
}

// mentionOmitted adds a remark about omitted bytes to an exchange's error.
func (c *cleaner) mentionOmitted(ex *captures.Exchange) {
	var bytes [2]int64
	var reasons [2]string
	for _, u := range c.runs[ex.ID] {
		bytes[u.Dir] += u.Bytes()
		reasons[u.Dir] = u.Reason
	}
	for dir, n := range bytes {
		if n == 0 {
			continue
		}
		if ex.Error != "" {
			ex.Error += "; "
		}
		sender := "client"
		if captures.Direction(dir) == captures.Down {
			sender = "server"
		}
		ex.Error += fmt.Sprintf("%d bytes of the %s were left out, because they cannot be searched for secrets: %s", n, sender, reasons[dir])
	}
}
