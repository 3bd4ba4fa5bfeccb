package messages

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"

	"unwire/replay/agent/turn"
	"unwire/replay/gateway/front"
)

// A block is one content block in a request, with the members of all supported types of blocks.
type block struct {
	// Type is the type of the block, such as "text"; it determines which other members are set.
	Type string `json:"type"`

	// Text is the text of a text block.
	Text string `json:"text"`

	// Thinking is the reasoning in a thinking block.
	Thinking string `json:"thinking"`

	// Source has the data of an image or document.
	Source json.RawMessage `json:"source"`

	// Title is the title of a document or search result.
	Title string `json:"title"`

	// ID is the id of a tool call.
	ID string `json:"id"`

	// Name is the name of the called tool.
	Name string `json:"name"`

	// Input are the arguments of a tool call.
	Input json.RawMessage `json:"input"`

	// ToolUseID is the id of the tool call to which a result belongs.
	ToolUseID string `json:"tool_use_id"`

	// Content is the output in a tool result: a text or a list of blocks.
	Content json.RawMessage `json:"content"`

	// IsError means that the tool failed.
	IsError bool `json:"is_error"`

	// ToolName is the name of the tool to which a tool reference refers.
	ToolName string `json:"tool_name"`

	// Tool is the tool that a block adds or removes.
	Tool json.RawMessage `json:"tool"`

	// CacheControl asks for caching; it has no effect.
	CacheControl json.RawMessage `json:"cache_control"`
}

// resultRole stands for the content of a tool_result block when blocks are parsed; no message has this
// role.
const resultRole turn.Role = "result"

// blockTypes are the types of content blocks that messages of each role may have.
var blockTypes = map[turn.Role][]string{
	turn.System:    {"text", "tool_addition", "tool_removal"},
	turn.User:      {"text", "image", "document", "search_result", "tool_result", "tool_addition", "tool_removal"},
	turn.Assistant: {"text", "thinking", "tool_use", "compaction"},
	resultRole:     {"text", "image", "document", "search_result", "tool_reference"},
}

// block parses one content block of a message with this role. path names it in errors.
func (t *transcript) block(b *block, path string, role turn.Role) ([]turn.Part, *turn.Error) {
	if present(b.CacheControl) {
		t.note("cache_control: the upstream decides by itself what it caches")
	}
	switch {
	case slices.Contains(blockTypes[role], b.Type):
		return t.known(b, path)
	case b.Type == "":
		return nil, invalid(path+".type", "is required")
	case role == turn.Assistant:
		// What another service answered earlier must not end the conversation here.
		t.note(fmt.Sprintf("assistant block %.40q: left out, the upstream has no such content", b.Type))
		return nil, nil
	}
	where := map[turn.Role]string{turn.System: "a system message", turn.User: "a user message", resultRole: "a tool_result block"}[role]
	return nil, invalid(path+".type", "%.40q is not supported in %s", b.Type, where)
}

// known parses a content block whose type is in blockTypes.
func (t *transcript) known(b *block, path string) ([]turn.Part, *turn.Error) {
	// Empty texts are dropped: the upstream rejects them.
	switch b.Type {
	case "text":
		if b.Text != "" {
			return []turn.Part{{Text: b.Text}}, nil
		}
	case "thinking":
		if b.Thinking != "" {
			return []turn.Part{{Thinking: b.Thinking}}, nil
		}
	case "compaction": // a summary of earlier messages
		return t.content(b.Content, path+".content", turn.Assistant)
	case "image":
		return t.image(b, path)
	case "document":
		return t.document(b, path)
	case "search_result":
		return t.searchResult(b, path)
	case "tool_use":
		return t.toolUse(b, path)
	case "tool_result":
		return t.toolResult(b, path)
	case "tool_reference":
		return t.toolReference(b, path)
	case "tool_addition", "tool_removal":
		return t.toolChange(b, path)
	}
	return nil, nil
}

// image parses an image block. The image must be embedded in the request as base64.
func (t *transcript) image(b *block, path string) ([]turn.Part, *turn.Error) {
	path += ".source"
	var source struct {
		Type      string `json:"type"`
		MediaType string `json:"media_type"`
		Data      string `json:"data"`
	}
	if err := front.Member(b.Source, path, &source); err != nil {
		return nil, err
	}
	switch source.Type {
	case "base64":
		image, err := front.Base64Image(source.MediaType, source.Data, path)
		if err != nil {
			return nil, err
		}
		return []turn.Part{{Image: image}}, nil
	case "":
		return nil, invalid(path+".type", "is required")
	}
	return nil, invalid(path, "the image source type %.40q is not supported; unwire fetches no images, so send the image itself with the type base64", source.Type)
}

// document parses a document block. If the request does not contain the document's text, it is replaced
// by a notice that the model sees: a client that has read a PDF keeps it in its transcript, so refusing
// it would make the conversation impossible to continue.
func (t *transcript) document(b *block, path string) ([]turn.Part, *turn.Error) {
	path += ".source"
	var source struct {
		Type      string          `json:"type"`
		MediaType string          `json:"media_type"`
		Data      string          `json:"data"`
		Content   json.RawMessage `json:"content"`
	}
	if err := front.Member(b.Source, path, &source); err != nil {
		return nil, err
	}
	head := "Document"
	if b.Title != "" {
		head += " " + b.Title
	}
	switch source.Type {
	case "text":
		return []turn.Part{{Text: head + ":\n" + source.Data}}, nil
	case "content":
		parts, err := t.content(source.Content, path+".content", resultRole)
		return append([]turn.Part{{Text: head + ":"}}, parts...), err
	case "":
		return nil, invalid(path+".type", "is required")
	}

	// Binary documents cannot be sent upstream, so the model gets a note about them.
	t.note("document: the model gets only text documents; for this one it gets a note that it was left out")
	what := source.MediaType
	if what == "" {
		what = source.Type
	}
	return []turn.Part{{Text: fmt.Sprintf("[%s: a document (%.40s) was here, which this endpoint cannot pass on. Ask for its text.]", head, what)}}, nil
}

// searchResult converts a search result block to text.
func (t *transcript) searchResult(b *block, path string) ([]turn.Part, *turn.Error) {
	var source string
	if err := front.Member(b.Source, path+".source", &source); err != nil {
		return nil, err
	}
	parts, err := t.content(b.Content, path+".content", resultRole)
	return append([]turn.Part{{Text: fmt.Sprintf("Search result %s (%s):", b.Title, source)}}, parts...), err
}

// toolUse parses a tool call in an assistant's message.
func (t *transcript) toolUse(b *block, path string) ([]turn.Part, *turn.Error) {
	if b.ID == "" {
		return nil, invalid(path+".id", "is required")
	}
	if b.Name == "" {
		return nil, invalid(path+".name", "is required")
	}
	t.calls[b.ID] = true
	arguments := json.RawMessage("{}")
	if present(b.Input) {
		arguments = front.Arguments(string(b.Input))
	}
	var compact bytes.Buffer
	if json.Compact(&compact, arguments) == nil {
		arguments = compact.Bytes()
	}
	return []turn.Part{{Call: &turn.Call{ID: b.ID, Name: b.Name, Arguments: arguments}}}, nil
}

// toolResult parses the result of a tool call.
func (t *transcript) toolResult(b *block, path string) ([]turn.Part, *turn.Error) {
	if b.ToolUseID == "" {
		return nil, invalid(path+".tool_use_id", "is required")
	}
	if !t.calls[b.ToolUseID] {
		return nil, invalid(path, "unexpected tool_use_id %.80q: there is no tool_use block with this id in an earlier message", b.ToolUseID)
	}
	parts, err := t.content(b.Content, path+".content", resultRole)
	if err != nil {
		return nil, err
	}
	return []turn.Part{{Result: &turn.Result{CallID: b.ToolUseID, Parts: parts, IsError: b.IsError}}}, nil
}

// toolReference parses a reference in the result of a client's tool search: the tool with this name can
// be called from now on.
func (t *transcript) toolReference(b *block, path string) ([]turn.Part, *turn.Error) {
	if b.ToolName == "" {
		return nil, invalid(path+".tool_name", "is required")
	}
	t.loaded[b.ToolName] = true
	return []turn.Part{{Text: "The tool " + b.ToolName + " can be called now."}}, nil
}

// toolChange parses a block that adds or removes a tool in the middle of a conversation.
func (t *transcript) toolChange(b *block, path string) ([]turn.Part, *turn.Error) {
	path += ".tool"
	var change struct {
		Type       string          `json:"type"`
		Name       string          `json:"name"`
		Definition json.RawMessage `json:"definition"`
	}
	if err := front.Member(b.Tool, path, &change); err != nil {
		return nil, err
	}
	added := b.Type == "tool_addition"
	switch {
	case change.Type == "tool_definition" && added:
		t.defined = append(t.defined, change.Definition)
		return nil, nil
	case change.Type == "tool_reference" && change.Name != "":
		t.loaded[change.Name] = added
		return nil, nil
	}
	return nil, invalid(path, "a %s block with %.40q is not supported", b.Type, change.Type)
}
