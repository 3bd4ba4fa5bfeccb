package secret

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"unwire/captures"
	"unwire/captures/redact"
	"unwire/decode"
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

// replaceMessage notes that the message of a Connect GET, which is frame f,
// becomes data. The message stands in the URL, and in headers that repeat it.
func (c *cleaner) replaceMessage(d *decode.Exchange, f *decode.Frame, data []byte) {
	u, err := url.Parse(d.URL)
	if err != nil || f.Encoding != "" && f.Err != nil {
		return
	}
	for param := range strings.SplitSeq(u.RawQuery, "&") {
		name, value, _ := strings.Cut(param, "=")
		if name != "message" || value == "" {
			continue
		}
		meant, err := url.QueryUnescape(value)
		if err != nil {
			return
		}
		if text, ok := encodeAs([]byte(meant), f.Raw, data); ok {
			data = text
		}
		c.messages[d.ID] = [2]string{value, url.QueryEscape(string(data))}
		return
	}
}

// head returns an exchange without the secrets that are known by their fields,
// and with a note of what was left out.
func (c *cleaner) head(ex *captures.Exchange) *captures.Exchange {
	out := *ex
	if m, ok := c.messages[ex.ID]; ok {
		out.URL = strings.ReplaceAll(out.URL, m[0], m[1])
		out.Error = strings.ReplaceAll(out.Error, m[0], m[1])
		for _, section := range []*captures.Headers{&out.RequestHeaders, &out.RequestTrailers, &out.ResponseHeaders, &out.ResponseTrailers} {
			*section = slices.Clone(*section)
			for i := range *section {
				h := &(*section)[i]
				h.Value = strings.ReplaceAll(h.Value, m[0], m[1])
			}
		}
	}
	c.mention(&out)
	return &out
}
