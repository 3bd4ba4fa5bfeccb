package names

import (
	"maps"
	"slices"

	"unwire/schema"
	"unwire/schema/jsonname"
)

// Words that field names are often made of, beside those of definitions.
var commonNames = [...]string{
	"id", "name", "type", "kind", "value", "key", "data", "text", "content", "message", "messages", "path", "url", "uri", "user", "user_id", "query",
	"limit", "offset", "page_size", "page_token", "cursor", "filter", "order_by", "options", "metadata", "labels", "tags", "status", "state", "code",
	"error", "reason", "version", "token", "request_id", "session_id", "timestamp", "created_at", "updated_at", "start_time", "end_time", "title",
	"description", "size", "count", "index", "parent", "children", "items", "config", "settings", "enabled", "mode", "model", "language", "source",
	"target", "input", "output", "result", "results", "context", "email", "role", "file", "files", "line", "column", "range", "start", "end", "body",
}

// ValuesOf lists the names of all values of the enums of definitions.
func ValuesOf(s *schema.Schema) []string {
	seen := map[string]bool{}
	for e := range s.Enums() {
		for i := range e.Values().Len() {
			seen[string(e.Values().Get(i).Name())] = true
		}
	}
	return slices.Sorted(maps.Keys(seen))
}

// TypesOf lists the full names of the messages of definitions.
func TypesOf(s *schema.Schema) []string {
	var out []string
	for m := range s.Messages() {
		if !m.IsMapEntry() {
			out = append(out, string(m.FullName()))
		}
	}
	slices.Sort(out)
	return out
}

// Dictionary lists the names of all fields of definitions, and common ones, in
// both of their forms.
func Dictionary(s *schema.Schema) []string {
	seen := map[string]bool{}
	if s != nil {
		for m := range s.Messages() {
			for i := range m.Fields().Len() {
				f := m.Fields().Get(i)
				seen[string(f.Name())], seen[f.JSONName()] = true, true
			}
		}
	}
	for _, n := range commonNames {
		seen[n], seen[jsonname.Of(n)] = true, true
	}
	var out []string
	for n := range seen {
		out = append(out, n)
	}
	slices.Sort(out)
	return out
}
