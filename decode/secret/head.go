package secret

import (
	"net/url"
	"slices"
	"strings"

	"unwire/captures"
	"unwire/decode"
)

// replaceMessage records that data replaces the message of a Connect GET, which is frame f. The message is in the
// URL, and in headers that repeat the URL.
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

		// Keep the encoding of the parameter.
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

// cleanHead returns an exchange's metadata with the secrets of typed fields replaced, and with a remark about
// omitted bytes in its error.
func (c *cleaner) cleanHead(ex *captures.Exchange) *captures.Exchange {
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
	c.mentionOmitted(&out)
	return &out
}
