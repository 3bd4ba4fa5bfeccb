package secret

import (
	"context"
	"fmt"
	"slices"

	"unwire/captures"
	"unwire/captures/redact"
)

// Omitted is what a copy lacks because the search for secrets could not look
// into it.
type Omitted struct {
	Exchanges int
	Bytes     int64
}

// omit notes what of an exchange is left out, with the edits that do it. Edits
// of the same bytes are dropped.
func (c *cleaner) omit(ctx context.Context, from captures.ChunkSource, ex *captures.Exchange, edits *[2][]redact.Edit) error {
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

// omitted returns how many bytes of an exchange are left out.
func (c *cleaner) omitted(id int64) int64 {
	n := c.inURL[id]
	for _, u := range c.runs[id] {
		n += u.Bytes()
	}
	return n
}

// mention says in an exchange's error what of its bodies is left out.
func (c *cleaner) mention(ex *captures.Exchange) {
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
		ex.Error += fmt.Sprintf("%d bytes %s were left out, as they cannot be searched for secrets: %s", n, captures.Direction(dir), reasons[dir])
	}
}
