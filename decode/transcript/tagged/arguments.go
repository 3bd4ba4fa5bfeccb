package tagged

import (
	"encoding/json"
	"strings"

	"unwire/decode/transcript/naming"
)

// jsonCalls returns the calls in a body that is JSON: objects with a name and arguments, one after the other or in an
// array. It returns nil if something else is in it.
func jsonCalls(body string) []Call {
	body = strings.TrimSpace(strings.Trim(strings.TrimPrefix(strings.TrimSpace(body), fence+"json"), "`"))
	if body == "" || body[0] != '{' && body[0] != '[' {
		return nil
	}
	var out []Call
	for d := json.NewDecoder(strings.NewReader(body)); d.More(); {
		var v json.RawMessage
		if d.Decode(&v) != nil {
			return out
		}
		list := []json.RawMessage{v}
		if v[0] == '[' && json.Unmarshal(v, &list) != nil {
			return nil
		}
		for _, e := range list {
			c, ok := jsonCall(e)
			if !ok {
				return nil
			}
			out = append(out, c)
		}
	}
	return out
}

// jsonCall returns the call that a JSON object is.
func jsonCall(v json.RawMessage) (c Call, ok bool) {
	var o map[string]json.RawMessage
	if json.Unmarshal(v, &o) != nil {
		return c, false
	}
	if inner := o["function"]; len(inner) > 0 && inner[0] == '{' {
		// Only once: each further level would read all of it again.
		o = nil
		if json.Unmarshal(inner, &o) != nil {
			return c, false
		}
	}
	for _, name := range [...]string{"name", "tool", "tool_name", "function", "action"} {
		if c.Name == "" && len(o[name]) > 0 && json.Unmarshal(o[name], &c.Name) != nil {
			return c, false
		}
	}
	c.Arguments = "{}"
	for _, name := range [...]string{"arguments", "parameters", "args", "input", "params", "tool_input", "action_input"} {
		args := o[name]
		if len(args) == 0 || args[0] != '{' && args[0] != '"' {
			continue
		}
		if c.Arguments = string(args); args[0] == '"' {
			// Arguments may be JSON in a string.
			if json.Unmarshal(args, &c.Arguments) != nil || !json.Valid([]byte(c.Arguments)) {
				return c, false
			}
		}
		break
	}
	return c, naming.IsTool(c.Name)
}

// parameters returns the arguments in a body as a JSON object: JSON, or elements whose names are those of the
// parameters. ok is false if the body is neither.
func parameters(body string) (args string, ok bool) {
	body = strings.TrimSpace(body)
	if strings.HasPrefix(body, "{") {
		body = strings.TrimSpace(strings.TrimRight(body, "`\n "))
		var v json.RawMessage
		if json.NewDecoder(strings.NewReader(body)).Decode(&v) != nil {
			return "", false
		}
		return string(v), true
	}
	o := make(map[string]json.RawMessage)
	key := ""
	for body != "" {
		m, ok := markerAt(body)
		if !ok || m.bracket {
			return "", false
		}
		text, size, closed := m.body(body)
		if !closed {
			return "", false
		}
		body = strings.TrimSpace(body[size:])
		name := m.name
		switch strings.ToLower(name) {
		case "parameter", "param", "arg", "argument":
			name = m.value
		case "arg_key":
			key = strings.TrimSpace(text)
			continue
		case "arg_value":
			name = key
		case "parameters", "arguments", "args", "input":
			if inner, ok := parameters(text); ok && len(o) == 0 && body == "" {
				return inner, true
			}
		}
		if name == "" {
			return "", false
		}
		o[name] = value(text)
	}
	b, err := json.Marshal(o)
	return string(b), err == nil
}

// value returns the value of a parameter as JSON: that of a text that is JSON but not a string, or the text without
// the line breaks at its ends.
func value(text string) json.RawMessage {
	trimmed := strings.TrimSpace(text)
	if trimmed != "" && trimmed[0] != '"' && json.Valid([]byte(trimmed)) {
		return json.RawMessage(trimmed)
	}
	text = strings.TrimSuffix(strings.TrimPrefix(text, "\n"), "\n")
	b, err := json.Marshal(text)
	if err != nil {
		return json.RawMessage("null")
	}
	return b
}
