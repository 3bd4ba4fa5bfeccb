// Package tagged finds the calls of tools that a model writes into its answer, because the server forwards what the
// model generates without parsing it:
//
//	<tool_call>
//	{"name": "read_file", "arguments": {"path": "go.mod"}}
//	</tool_call>
//
// A text goes in, and the text without the calls, and the calls come out. Models mark a call by a tag or another marker
// whose words say so, such as <tool_call>, <function=NAME>, <invoke name="NAME"> or [TOOL_CALLS]. What follows is JSON
// with a name and arguments, a name and JSON, or elements whose names are the parameters. An element that has the name
// of a tool itself is a call only if the client has mentioned that tag.
package tagged

import (
	"strings"

	"unwire/decode/transcript/naming"
)

// A Call is a call of a tool.
type Call struct {
	// Name is the name of the tool.
	Name string

	// Arguments are the arguments as a JSON object.
	Arguments string
}

const (
	// maxTried is the maximum number of markers in a text that are examined.
	maxTried = 200

	// maxMarker is the maximum size in bytes of a marker.
	maxMarker = 120

	// maxNested is the maximum nesting of markers.
	maxNested = 4

	// fence is the border of a block of code.
	fence = "```"
)

// Cut returns text without the calls in it, and these calls. mentioned reports whether the client mentioned a tag of
// that name. Text in blocks of code is not examined. If there are no calls, rest is text.
//
// Limits: at most maxTried markers are examined, in time proportional to the size of the text for each, and mentioned is
// called for at most as many names.
func Cut(text string, mentioned func(name string) bool) (rest string, calls []Call) {
	var b strings.Builder
	kept, tried := 0, 0
	fenced := false
	asked := make(map[string]bool)
	isMentioned := func(name string) bool {
		is, ok := asked[name]
		if !ok && len(asked) < maxTried {
			is = mentioned(name)
			asked[name] = is
		}
		return is
	}
	for i := 0; i < len(text) && tried < maxTried; {
		if strings.HasPrefix(text[i:], fence) {
			fenced, i = !fenced, i+len(fence)
			continue
		}
		m, ok := markerAt(text[i:])
		if fenced || !ok || !m.isCall() && !isMentioned(m.name) {
			i++
			continue
		}
		tried++
		body, size, closed := m.body(text[i:])
		var found []Call
		if m.isCall() {
			found = callsIn(m, body, 0)
		} else {
			found = elementCall(m, body, closed)
		}
		if len(found) == 0 {
			if m.isCall() && !closed {
				// Nothing after it can be a call, either.
				break
			}
			i += m.size
			continue
		}
		b.WriteString(text[kept:i])
		calls = append(calls, found...)
		i += size
		kept = i
	}
	if calls == nil {
		return text, nil
	}
	b.WriteString(text[kept:])
	return strings.TrimSpace(b.String()), calls
}

// A marker is a tag such as <function=NAME>, or a word in brackets such as [TOOL_CALLS].
type marker struct {
	// name is the first word, and value what follows it: the text after "=", or the attribute "name".
	name, value string

	// size is the number of bytes.
	size int

	// bracket means that the marker is a word in brackets.
	bracket bool
}

// markerAt returns the marker with which text begins; ok is false if there is none.
func markerAt(text string) (m marker, ok bool) {
	if text[0] != '<' && text[0] != '[' {
		return m, false
	}
	closing := byte('>')
	if m.bracket = text[0] == '['; m.bracket {
		closing = ']'
	}
	end := strings.IndexByte(text[:min(len(text), maxMarker)], closing)
	if end < 2 {
		return m, false
	}
	m.size = end + 1
	inner := strings.Trim(text[1:end], "|｜")
	// DeepSeek separates words by U+2581.
	inner = strings.ReplaceAll(inner, "▁", "_")
	at := strings.IndexAny(inner, "= \n")
	if m.name = inner; at >= 0 {
		m.name, m.value = inner[:at], attribute(inner[at:])
	}
	if m.bracket && m.name != strings.ToUpper(m.name) {
		return m, false
	}
	return m, naming.IsTool(m.name)
}

// attribute returns the value in what follows the name of a tag: after "=", or that of the attribute "name".
func attribute(rest string) string {
	if _, after, ok := strings.Cut(rest, "name="); ok {
		rest = after
	} else if rest = strings.TrimPrefix(rest, "="); strings.HasPrefix(rest, " ") {
		return ""
	}
	return strings.Trim(strings.TrimSpace(strings.TrimRight(rest, "/ ")), `"'`)
}

// words are those that a marker of calls consists of, besides "tool" or "function".
var words = map[string]bool{
	"tool": true, "tools": true, "function": true, "functions": true, "call": true, "calls": true, "use": true, "uses": true,
	"request": true, "invocation": true, "section": true, "begin": true, "start": true,
}

// isCall reports whether the words of the marker say that calls follow.
func (m *marker) isCall() bool {
	name := strings.ToLower(m.name)
	switch {
	case name == "invoke", name == "function":
		return m.value != ""
	case name == "python_tag":
		return true
	}
	_, local, isPrefixed := strings.Cut(name, ":")
	if isPrefixed {
		// A namespace of XML.
		name = local
	}
	tool, call, n := false, false, 0
	for w := range strings.FieldsFuncSeq(name, func(r rune) bool { return r == '_' || r == '-' }) {
		if !words[w] {
			return name == "toolcall" || name == "toolcalls"
		}
		n++
		tool = tool || strings.HasPrefix(w, "tool") || strings.HasPrefix(w, "function")
		call = call || strings.HasPrefix(w, "call") || strings.HasPrefix(w, "use") || w == "request" || w == "invocation"
	}
	return tool && call
}

// body returns what is between the marker, with which text begins, and its end, and the size of all three. Without an
// end it is the rest of the text, and closed is false.
func (m *marker) body(text string) (body string, size int, closed bool) {
	rest := text[m.size:]
	if m.bracket || m.name == "python_tag" {
		return rest, len(text), false
	}
	raw := text[:m.size]
	end := "</" + m.name + ">"
	if strings.Contains(raw, "begin") {
		end = strings.Replace(raw, "begin", "end", 1)
	}
	if strings.HasPrefix(raw, "<|") && !strings.Contains(rest, end) {
		end = strings.Replace(raw, "<|", "<|/", 1)
	}
	if before, _, ok := strings.Cut(rest, end); ok {
		return before, m.size + len(before) + len(end), true
	}
	return rest, len(text), false
}

// callsIn returns the calls in the body of marker m, which is nested depth times.
func callsIn(m marker, body string, depth int) []Call {
	if m.value != "" {
		args, ok := parameters(body)
		if !ok || !naming.IsTool(m.value) {
			return nil
		}
		return []Call{{m.value, args}}
	}
	if calls := jsonCalls(body); calls != nil {
		return calls
	}
	var out []Call
	for i := 0; i < len(body) && depth < maxNested && len(out) < maxTried; {
		inner, ok := markerAt(body[i:])
		if !ok || !inner.isCall() {
			i++
			continue
		}
		text, size, _ := inner.body(body[i:])
		found := callsIn(inner, text, depth+1)
		if found == nil {
			return out
		}
		out = append(out, found...)
		i += size
	}
	if out == nil {
		out = namedCall(body)
	}
	return out
}

// elementCall returns the call that an element with the name of a tool is: all that it has are elements with the
// parameters.
func elementCall(m marker, body string, closed bool) []Call {
	args, ok := parameters(body)
	if !closed || !ok || m.bracket || m.value != "" {
		return nil
	}
	return []Call{{m.name, args}}
}

// namedCall returns the call in a text that begins with the name of the tool and continues with its arguments.
func namedCall(body string) []Call {
	at := strings.IndexAny(body, "{<[")
	if at < 0 {
		at = len(body)
	}
	head, rest := body[:at], strings.TrimPrefix(body[at:], "[ARGS]")
	if rest != "" {
		// Another marker may be before the arguments, or even before the name.
		if m, ok := markerAt(rest); ok && strings.HasPrefix(m.name, "tool") {
			rest = rest[m.size:]
			if i := strings.IndexByte(rest, '{'); i > 0 {
				head, rest = rest[:i], rest[i:]
			}
		}
	}
	head, _, _ = strings.Cut(head, fence)
	name := strings.TrimPrefix(strings.TrimSpace(head), "functions.")
	if n := strings.LastIndexByte(name, ':'); n > 0 && strings.Trim(name[n+1:], "0123456789") == "" {
		// The number of the call.
		name = name[:n]
	}
	args, ok := parameters(rest)
	if !ok || !naming.IsTool(name) {
		return nil
	}
	return []Call{{name, args}}
}
