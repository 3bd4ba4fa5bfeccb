package messages

import (
	"encoding/json"
	"fmt"
	"strings"

	"unwire/replay/agent/turn"
	"unwire/replay/gateway/front"
)

// A tool is one element of the parameter tools.
type tool struct {
	// Type is "custom" or "" for an ordinary tool; other types are defined by the API.
	Type string `json:"type"`

	// Name is the name of the tool, which the model's calls repeat.
	Name string `json:"name"`

	// Description tells the model what the tool does; "" if the request has none.
	Description string `json:"description"`

	// InputSchema is the JSON schema of the arguments.
	InputSchema json.RawMessage `json:"input_schema"`

	// DeferLoading means that the tool is only offered once the conversation has loaded it.
	DeferLoading bool `json:"defer_loading"`

	// Strict asks for arguments that match the schema; it has no effect.
	Strict bool `json:"strict"`

	// InputExamples are example arguments; they have no effect.
	InputExamples json.RawMessage `json:"input_examples"`

	// AllowedCallers says who may call the tool; it has no effect.
	AllowedCallers json.RawMessage `json:"allowed_callers"`

	// CacheControl asks for caching; it has no effect.
	CacheControl json.RawMessage `json:"cache_control"`
}

// A clientTool is a tool, such as bash, that the API defines by its type and that the client runs. The
// upstream server gets an ordinary tool definition in its place.
type clientTool struct {
	// prefix is the type without the date at its end; description and schema are those of the ordinary
	// definition.
	prefix, description, schema string
}

// clientTools are the supported tools of this sort.
var clientTools = []clientTool{
	{
		prefix: "bash_", description: "Runs a command in a persistent bash session.",
		schema: `{"type":"object","properties":{"command":{"type":"string","description":"The command to run. Required unless restart is true."},"restart":{"type":"boolean","description":"Restarts the session."}}}`,
	},
	{
		prefix: "text_editor_", description: "Views, creates and edits text files.",
		schema: `{"type":"object","properties":{"command":{"type":"string","enum":["view","create","str_replace","insert"]},"path":{"type":"string"},"file_text":{"type":"string","description":"The content, for create."},"old_str":{"type":"string","description":"The text to replace, which must occur once, for str_replace."},"new_str":{"type":"string","description":"The new text, for str_replace."},"insert_line":{"type":"integer","description":"The line after which the text goes, for insert."},"insert_text":{"type":"string","description":"The text, for insert."},"view_range":{"type":"array","items":{"type":"integer"},"description":"The first and the last line, for view."}},"required":["command","path"]}`,
	},
}

// tools reads the parameter tools and the tools that the transcript defines. raw is the parameter. A
// tool with defer_loading is only offered once the transcript has loaded it, because the model should
// not see it before.
func tools(raw json.RawMessage, t *transcript) ([]turn.Tool, *turn.Error) {
	entries, err := list[tool](raw, "tools")
	if err != nil {
		return nil, err
	}
	for _, definition := range t.defined {
		var one tool
		if err := front.Member(definition, "tool_addition.tool.definition", &one); err != nil {
			return nil, err
		}
		entries = append(entries, one)
	}
	var all []turn.Tool
	var deferred []bool
	search := false
	names := map[string]bool{}

	// Server-side tool search is not available, so deferred tools are offered from the start.
	for i := range entries {
		path := fmt.Sprintf("tools.%d", i)
		if strings.HasPrefix(entries[i].Type, "tool_search_tool_") {
			t.note(path + ": the upstream cannot search for tools; all tools are offered from the start")
			search = true
			continue
		}
		offered, err := entries[i].read(path, t.note)
		if err != nil {
			return nil, err
		}
		if names[offered.Name] {
			return nil, invalid(path+".name", "%.80q is the name of an earlier tool", offered.Name)
		}
		names[offered.Name] = true
		all = append(all, offered)
		deferred = append(deferred, entries[i].DeferLoading)
	}

	// The transcript may have loaded or removed tools since.
	var offered []turn.Tool
	for i, one := range all {
		loaded, changed := t.loaded[one.Name]
		if changed && loaded || !changed && (!deferred[i] || search) {
			offered = append(offered, one)
		}
	}
	return offered, nil
}

// read converts a tool of the API to the form for the upstream server. note adds a note about a member
// without effect.
func (t *tool) read(path string, note func(string)) (turn.Tool, *turn.Error) {
	if t.Name == "" {
		return turn.Tool{}, invalid(path+".name", "is required")
	}
	if present(t.CacheControl) {
		note("cache_control: the upstream decides by itself what it caches")
	}
	if present(t.InputExamples) {
		note("tools: input_examples are not sent to the upstream")
	}
	if t.Strict {
		note("tools: strict: the upstream cannot enforce a schema")
	}

	// A custom tool brings its schema; tools defined by the API have a built-in one.
	if t.Type == "" || t.Type == "custom" {
		if !present(t.InputSchema) || t.InputSchema[0] != '{' {
			return turn.Tool{}, invalid(path+".input_schema", "must be an object")
		}
		return turn.Tool{Name: t.Name, Description: t.Description, Schema: t.InputSchema}, nil
	}
	for _, known := range clientTools {
		if strings.HasPrefix(t.Type, known.prefix) {
			return turn.Tool{Name: t.Name, Description: known.description, Schema: json.RawMessage(known.schema)}, nil
		}
	}
	return turn.Tool{}, &turn.Error{
		Kind: turn.Invalid, Param: path + ".type", Code: "unsupported_tool",
		Message: fmt.Sprintf("%s: a tool of the type %.60q is not supported: it runs on Anthropic's servers, or needs a model that knows it", path, t.Type),
	}
}
