// Package turn has the types that are exchanged between an agent and the programs that use it: the
// messages and tools of a conversation as input, the events of one turn as output, and the errors
// of both.
//
// A Request is what a client of a request-per-turn API sends: the whole transcript, the tools that
// the client can run, and the model. An agent answers it with Events. A turn ends with exactly one
// Ended event, or with an *Error.
//
//	r := &turn.Request{
//		Model:    "composer-1",
//		Messages: []turn.Message{{Role: turn.User, Parts: []turn.Part{{Text: "Hello"}}}},
//	}
//
// The package imports nothing of unwire. replay/agent, which implements the agent's protocol, and
// replay/gateway with its front ends, which implement public APIs, use it.
package turn

import "encoding/json"

// A Role is the author of a message in a conversation, such as user or assistant.
type Role string

// The authors of messages. A developer message of an API is a System message. System messages may occur
// anywhere in a transcript; those before the first other message are the system prompt.
const (
	System    Role = "system"
	User      Role = "user"
	Assistant Role = "assistant"
	// ToolRole is the role of a message with results of tool calls. Its other parts are text that
	// the client sent with them.
	ToolRole Role = "tool"
)

// A Message is one message of a conversation with a language model.
type Message struct {
	// Role is the author of the message.
	Role Role
	// Parts are the parts of the message's content, in order.
	Parts []Part
}

// A Part is one piece of a message. Exactly one of its fields is set; if none is, the part is an
// empty text.
type Part struct {
	// Text is text that the user sees.
	Text string
	// Thinking is the assistant's reasoning. Clients may leave it out when they send
	// the transcript back, so it is never compared.
	Thinking string
	// Image is an image; nil for other parts.
	Image *Image
	// Call is a tool call by the assistant; nil for other parts.
	Call *Call
	// Result is the result of a tool call; nil for other parts.
	Result *Result
}

// An Image is an image in a message or tool result.
type Image struct {
	// MIME is the media type of the image, such as image/png.
	MIME string
	// Data is the encoded image file.
	Data []byte
}

// A Call is a request from the model to run one of the client's tools.
type Call struct {
	// ID identifies the call; its result repeats it. An agent uses the upstream server's own id; the
	// gateway replaces it by an id that every public API accepts.
	ID string
	// Name is the name of the client's tool.
	Name string
	// Arguments are the arguments of the tool call as a JSON object.
	Arguments json.RawMessage
}

// A Result is the result of a client's tool call.
type Result struct {
	// CallID is the ID of the call to which the result belongs.
	CallID string
	// Parts are the texts and images that the tool returned.
	Parts []Part
	// IsError means that the tool failed; Parts then contain the error message.
	IsError bool
	// Rejected means that the tool was not run: the client refused, or continued without a result.
	// Parts have the reason.
	Rejected bool
}

// A Tool is a function that the client offers to the model.
type Tool struct {
	// Name is the name of the tool, unique in a request.
	Name string
	// Description explains the tool to the model.
	Description string
	// Schema is the JSON Schema of the arguments, an object; nil if the client gave none.
	Schema json.RawMessage
}

// A Request asks the agent for one turn of a conversation.
type Request struct {
	// Model is the id of the upstream model.
	Model string
	// Messages is the transcript, oldest first. The last message is from the user or has results of
	// tools.
	Messages []Message
	// Tools are the tools that the model may call; may be empty.
	Tools []Tool
	// Stop are texts at which the answer ends; the text itself is not part of the answer.
	Stop []string
	// MaxTokens ends the answer after this many tokens, counted by the upstream server; 0 means no
	// limit.
	MaxTokens int64
}

// An Event is one piece of the server's answer: a Text, Thinking, Tokens, Calling, or Ended.
type Event interface{ event() }

// A Text event appends its Text to the visible answer.
type Text struct {
	// Text is the text to be appended.
	Text string
}

// A Thinking event appends its Text to the displayed reasoning of the model.
type Thinking struct {
	// Text is the text to be appended.
	Text string
}

// A Tokens event reports that the model has written N tokens since the last Tokens event.
type Tokens struct {
	// N is the number of tokens since the last Tokens event.
	N int64
}

// A Calling event asks the client to run a tool. Its Call has complete arguments.
type Calling struct {
	// Call is the tool call.
	Call Call
}

// An Ended event is the last event of a turn.
type Ended struct {
	// Reason is the reason why the turn ended.
	Reason Reason
	// Usage is the number of tokens as reported by the upstream server; nil if it reported none, as is
	// always the case if the turn ends with tool calls.
	Usage *Usage
	// Stop is the text of Request.Stop at which the answer ended, if Reason is StoppedBy.
	Stop string
}

// A Reason is the reason why a turn ended.
type Reason string

// The reasons why a turn ended.
const (
	// Finished means that the model completed its answer.
	Finished Reason = "finished"
	// ToolCalls means that the client must run the tools and send their results.
	ToolCalls Reason = "tool_calls"
	// Length means that the answer was cut at MaxTokens.
	Length Reason = "length"
	// StoppedBy means that a text of Request.Stop occurred.
	StoppedBy Reason = "stop"
)

// Usage is the number of tokens that a turn took, as reported by the upstream; unwire never
// estimates it.
type Usage struct {
	// Input and Output are the numbers of tokens that the model read and wrote.
	Input, Output int64
	// CacheRead and CacheWrite are the input tokens read from and written to the upstream's cache.
	CacheRead, CacheWrite int64
	// Reasoning is the number of output tokens that were spent on reasoning.
	Reasoning int64
}

// event marks Text as an Event.
func (Text) event() {}

// event marks Thinking as an Event.
func (Thinking) event() {}

// event marks Tokens as an Event.
func (Tokens) event() {}

// event marks Calling as an Event.
func (Calling) event() {}

// event marks Ended as an Event.
func (Ended) event() {}

// A Model is a language model that the upstream server offers.
type Model struct {
	// ID is the id of the model, as used in Request.Model.
	ID string
	// Name is the display name of the model.
	Name string
	// Aliases are alternative ids of the model.
	Aliases []string
	// Thinking means that the model reports its reasoning.
	Thinking bool
}
