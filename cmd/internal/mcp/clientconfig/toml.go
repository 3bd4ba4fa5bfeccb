package clientconfig

import (
	"bytes"
	"fmt"
	"reflect"
	"strings"

	"github.com/pelletier/go-toml/v2"
)

// tomlList is the name of the TOML table that has the servers.
const tomlList = "mcp_servers"

// editTOML is the Client.edit function for Codex: it replaces the table [mcp_servers.NAME], or adds it at
// the end.
func editTOML(old []byte, s Server) ([]byte, error) {
	var before map[string]any
	if err := toml.Unmarshal(old, &before); err != nil {
		return nil, &syntaxError{err}
	}
	end := lineEnd(old)
	table, err := formatTOML(s, end)
	if err != nil {
		return nil, err
	}
	out := replaceTable(old, s.Name, table, end)

	// What was found line by line may have been part of a string, for example.
	var after map[string]any
	if err := toml.Unmarshal(out, &after); err != nil {
		return nil, &conflictError{fmt.Sprintf("the servers are written in a form that cannot be edited (%v): add [%s.%s] by hand", err, tomlList, s.Name)}
	}

	// Apart from the server, the settings must be the same as before.
	for _, m := range []map[string]any{before, after} {
		if servers, ok := m[tomlList].(map[string]any); ok {
			if delete(servers, s.Name); len(servers) == 0 {
				delete(m, tomlList)
			}
		}
	}
	if !reflect.DeepEqual(before, after) && len(before)+len(after) > 0 {
		return nil, &conflictError{"the edit would change other settings"}
	}
	return out, nil
}

// formatTOML returns the TOML table for a server; end is the line end.
func formatTOML(s Server, end string) (string, error) {
	var b bytes.Buffer
	e := toml.NewEncoder(&b)
	if err := e.Encode(map[string]any{tomlList: map[string]any{s.Name: commandAndArgs{s.Command, s.Args}}}); err != nil {
		return "", err
	}
	// The encoder names members as the struct has them, and writes the tables that lead to one.
	var lines []string
	for line := range strings.Lines(b.String()) {
		line = strings.TrimSpace(line)
		switch {
		case line == "" || line == "["+tomlList+"]":
			continue
		case strings.HasPrefix(line, "Command"), strings.HasPrefix(line, "Args"):
			line = strings.ToLower(line[:1]) + line[1:]
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, end) + end, nil
}

// replaceTable returns a TOML text in which the table of the server called name, with its subtables, is
// replaced by the text table. If there is no such table, it is added at the end.
func replaceTable(text []byte, name, table, end string) []byte {
	// Other lines are copied as they are, so that comments and formatting survive.
	var out strings.Builder
	replaced, inside := false, false
	for line := range strings.Lines(string(text)) {
		if header, ok := tableHeader(line); ok {
			inside = header == tomlList+"."+name || strings.HasPrefix(header, tomlList+"."+name+".")
			if inside && !replaced {
				out.WriteString(table)
				replaced = true
			} else if !inside && replaced && !strings.HasSuffix(out.String(), end+end) {
				out.WriteString(end)
			}
		}
		if !inside {
			out.WriteString(line)
		}
	}
	if replaced {
		return []byte(out.String())
	}
	before := out.String()
	if before != "" && !strings.HasSuffix(before, "\n") {
		before += end
	}
	if before != "" {
		before += end
	}
	return []byte(before + table)
}

// tableHeader returns the name in a line such as [a.b], without quotes and spaces; false if the line is
// not the header of a table.
func tableHeader(line string) (string, bool) {
	line = strings.TrimSpace(line)
	if !strings.HasPrefix(line, "[") {
		return "", false
	}
	name, _, ok := strings.Cut(strings.Trim(line, "["), "]")
	if !ok {
		return "", false
	}
	var parts []string
	for part := range strings.SplitSeq(name, ".") {
		parts = append(parts, strings.Trim(strings.TrimSpace(part), `"'`))
	}
	return strings.Join(parts, "."), true
}
