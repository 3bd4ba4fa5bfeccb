// Package turn holds the types that pass between an agent and the programs that use
// it: the messages and tools of a conversation on the way in, the events of one turn
// on the way out, and the errors of both.
//
// A Request is what a client of a request-per-turn API sends: the whole transcript,
// the tools that the client can run, and the model. An agent answers it with Events.
// A turn ends with one Ended event, or with an *Error; nothing follows either.
//
//	r := &turn.Request{
//		Model:    "composer-1",
//		Messages: []turn.Message{{Role: turn.User, Parts: []turn.Part{{Text: "Hello"}}}},
//	}
//
// The package imports nothing of unwire. It is used by replay/agent, which speaks the
// agent's protocol, and by replay/gateway and its front ends, which speak public APIs.
package turn

import "encoding/json"

// A Role is who a message is from.
type Role string

// The roles of messages. A developer message of an API is a System message. A System
// message may stand anywhere in a transcript; those before the first other message are
// the system prompt.
const (
	System    Role = "system"
	User      Role = "user"
	Assistant Role = "assistant"
	// ToolRole is the role of a message that holds results of tool calls. Its other
	// parts are text that the client sent together with them.
	ToolRole Role = "tool"
)

// A Message is one entry of a transcript.
type Message struct {
	Role  Role
	Parts []Part
}

// A Part is one piece of a message. Exactly one of its fields is set; a Part without
// any is an empty text.
type Part struct {
	Text string
	// Thinking is the assistant's reasoning. Clients may leave it out when they send
	// the transcript back, so it is never compared.
	Thinking string
	Image    *Image
	Call     *Call
	Result   *Result
}

// An Image is a picture in a message or a result.
type Image struct {
	// MIME is the media type, such as image/png.
	MIME string
	Data []byte
}

// A Call asks the client to run one of its tools.
type Call struct {
	// ID is the id that the result must carry. An agent uses the upstream's own id; the
	// gateway replaces it by an id that every public API accepts.
	ID string
	// Name is the name of the client's tool.
	Name string
	// Arguments is a JSON object.
	Arguments json.RawMessage
}

// A Result is what a client's tool returned.
type Result struct {
	// CallID is the ID of the call.
	CallID string
	// Parts are texts and images.
	Parts []Part
	// IsError says that the tool failed; Parts say how.
	IsError bool
	// Rejected says that the tool was not run: the client refused, or went on without
	// an answer. Parts say why.
	Rejected bool
}

// A Tool is a function that the client can run.
type Tool struct {
	Name        string
	Description string
	// Schema is the JSON Schema of the arguments, an object; nil if the client gave none.
	Schema json.RawMessage
}

// A Request asks for one turn.
type Request struct {
	// Model is the id of an upstream model.
	Model string
	// Messages is the transcript, oldest first. The last message is from the user or
	// holds results of tools.
	Messages []Message
	// Tools are those that the model may call. Empty: none.
	Tools []Tool
	// Stop are texts that end the answer before they appear in it. Empty: none.
	Stop []string
	// MaxTokens ends the answer after so many tokens, as the upstream counts them while
	// it answers. 0: no limit.
	MaxTokens int64
}

// An Event is one piece of an answer: Text, Thinking, Tokens, Calling, or Ended.
type Event interface{ event() }

// A Text continues the visible answer.
type Text struct{ Text string }

// A Thinking continues the reasoning.
type Thinking struct{ Text string }

// Tokens counts tokens that the model has written since the last Tokens event.
type Tokens struct{ N int64 }

// A Calling is a call of a client's tool, complete with its arguments.
type Calling struct{ Call Call }

// An Ended event is the last one of a turn.
type Ended struct {
	Reason Reason
	// Usage is what the upstream reported; nil if it reported nothing, which is so at
	// every tool boundary.
	Usage *Usage
	// Stop is the text of Request.Stop that ended the turn, with StoppedBy.
	Stop string
}

// A Reason is why a turn ended.
type Reason string

// The reasons.
const (
	// Finished is the end that the model chose.
	Finished Reason = "finished"
	// ToolCalls is a boundary: the client must run the tools and send their results.
	ToolCalls Reason = "tool_calls"
	// Length is the limit of tokens.
	Length Reason = "length"
	// StoppedBy is one of Request.Stop.
	StoppedBy Reason = "stop"
)

// Usage is what one turn took, in tokens, as the upstream reported it. It is never
// estimated.
type Usage struct {
	Input, Output         int64
	CacheRead, CacheWrite int64
	Reasoning             int64
}

func (Text) event()     {}
func (Thinking) event() {}
func (Tokens) event()   {}
func (Calling) event()  {}
func (Ended) event()    {}

// A Model is one that the upstream offers.
type Model struct {
	ID      string
	Name    string
	Aliases []string
	// Thinking says that the model reports its reasoning.
	Thinking bool
}
