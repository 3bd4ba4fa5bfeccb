package names

import (
	"maps"
	"slices"

	"unwire/schema"
	"unwire/schema/jsonname"
)

// commonNames are names and words that are common in field names.
var commonNames = [...]string{
	"id", "name", "type", "kind", "value", "key", "data", "text", "content", "message", "messages", "path", "url", "uri", "user", "user_id", "query",
	"limit", "offset", "page_size", "page_token", "cursor", "filter", "order_by", "options", "metadata", "labels", "tags", "status", "state", "code",
	"error", "reason", "version", "token", "request_id", "session_id", "timestamp", "created_at", "updated_at", "start_time", "end_time", "title",
	"description", "size", "count", "index", "parent", "children", "items", "config", "settings", "enabled", "mode", "model", "language", "source",
	"target", "input", "output", "result", "results", "context", "email", "role", "file", "files", "line", "column", "range", "start", "end", "body",
}

// Candidates returns the names to test: the names of all fields in the definitions, together with
// common names, each as declared and in JSON's spelling; the names of all enum values; and the full
// names of all messages. Without definitions (nil), only the common names are returned.
func Candidates(s *schema.Schema) (fields, values, types []string) {
	field, value := map[string]bool{}, map[string]bool{}
	for _, n := range commonNames {
		field[n], field[jsonname.Of(n)] = true, true
	}
	if s == nil {
		return slices.Sorted(maps.Keys(field)), nil, nil
	}

	for m := range s.Messages() {
		if !m.IsMapEntry() {
			types = append(types, string(m.FullName()))
		}
		for i := range m.Fields().Len() {
			f := m.Fields().Get(i)
			field[string(f.Name())], field[f.JSONName()] = true, true
		}
	}
	for e := range s.Enums() {
		for i := range e.Values().Len() {
			value[string(e.Values().Get(i).Name())] = true
		}
	}
	slices.Sort(types)
	return slices.Sorted(maps.Keys(field)), slices.Sorted(maps.Keys(value)), types
}
