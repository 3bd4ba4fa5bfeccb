package search

import (
	"encoding/json"
	"net/url"
	"slices"
	"strings"

	"unwire/decode"
	"unwire/decode/wire"
)

// origins returns the servers that the strings of a frame mention: URLs without a path. URLs with a path are links
// to pages.
func origins(f *decode.Frame) []*url.URL {
	var out []*url.URL
	visit := func(s string) {
		if !strings.HasPrefix(s, "https://") && !strings.HasPrefix(s, "http://") {
			return
		}

		// The URL must be complete, but without a path.
		u, err := url.Parse(s)
		bare := err == nil && u.Hostname() != "" && (u.Path == "" || u.Path == "/") && u.RawQuery == "" && u.Fragment == "" && u.User == nil
		if bare && !slices.ContainsFunc(out, func(o *url.URL) bool { return o.Host == u.Host }) {
			out = append(out, u)
		}
	}
	if f.Tree != nil {
		for i := range f.Tree.Nodes {
			if n := &f.Tree.Nodes[i]; n.Type == wire.Len {
				visit(string(f.Tree.Data[n.Val:n.End]))
			}
		}
		return out
	}

	// Not protobuf: the response may be JSON.
	var v any
	if json.Unmarshal(f.Data, &v) == nil {
		visitStrings(v, visit)
	}
	return out
}

// visitStrings calls visit for each string in a decoded JSON value.
func visitStrings(v any, visit func(string)) {
	switch v := v.(type) {
	case string:
		visit(v)
	case []any:
		for _, e := range v {
			visitStrings(e, visit)
		}
	case map[string]any:
		for _, e := range v {
			visitStrings(e, visit)
		}
	}
}
