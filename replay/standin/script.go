package standin

import (
	"encoding/json"
	"errors"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"

	"unwire/replay/standin/codec"
)

// A script defines the responses of the stand-in server. It is a JSON text. Unknown members are an error; missing top-level members are taken from the default script (default.json, which is also a complete example).
//
//	{
//	  "v": 1,
//	  "compression": {"names": ["gzip"], "min_bytes": 512},
//	  "sse": "raw",
//	  "answer_timeout_ms": 30000,
//	  "bootstrap_ms": 6000,
//	  "second_run": "refuse",
//	  "announced_twice": "hang",
//	  "poison": true,
//	  "stale": {"code": "failed_precondition", "message": "The conversation is out of date."},
//	  "long_ids": false,
//	  "scatter_ids": false,
//	  "fresh_ids": false,
//	  "poll_messages": 0,
//	  "gate": {
//	    "min_version": "cli-2026.01.09",
//	    "error": {"code": "permission_denied", "message": "…"}
//	  },
//	  "appends": {"window": 16, "hold_ms": 0},
//	  "turns": [{
//	    "name": "explain", "when": "backoff", "with_tools": true, "bootstrap_ms": 0,
//	    "steps": [
//	      {"heartbeat": 1},
//	      {"echo": true},
//	      {"thinking": "The file first.", "split": [4, 6], "pace_ms": 5, "delay_ms": 20},
//	      {"tool": {"name": "read", "as": "file", "args": {"path": "backoff.go"}, "require": "success", "timeout_ms": 5000}},
//	      {"tools": {"shuffle": true, "calls": [{"name": "read", "args": {"path": "a"}}, {"name": "read", "args": {"path": "b"}}]}},
//	      {"tool": {"name": "mcp", "as": "weather", "args": {"name": "get_weather", "args": {"city": "Bern"}}}},
//	      {"tool": {"name": "mcp", "as": "sh", "any": [
//	        {"name": "bash", "args": {"command": "date", "description": "Print the date"}},
//	        {"name": "exec_command", "args": {"cmd": "date"}}]}},
//	      {"tool": {"name": "shell", "args": {"command": "sleep 60"}, "abort_ms": 50}},
//	      {"query": {"name": "ask_question", "as": "asked", "args": {}}},
//	      {"kv_set": {"json": {"role": "user", "content": "${prompt}"}, "as": "note"}},
//	      {"kv_get": {"blob": "note"}},
//	      {"kv_get": {"unknown": true}},
//	      {"text": "It has ${file.success.total_lines} lines; ${weather.text}; ${images}.", "split": [7]},
//	      {"tokens": 12},
//	      {"wait": {"ms": 300, "heartbeat_every_ms": 100}},
//	      {"send": {"interactionUpdate": {"stepStarted": {"stepId": "1"}}}},
//	      {"raw": "fa3e03666f6f"},
//	      {"checkpoint": {}},
//	      {"hang": {"heartbeat_every_ms": 10, "ms": 20}},
//	      {"turn_ended": {"inputTokens": "1200", "outputTokens": "96"}}
//	    ]
//	  }],
//	  "chats": [{
//	    "steps": [
//	      {"text": "This model is "},
//	      {"error": {"code": "resource_exhausted", "message": "Error",
//	        "details": [{"type": "aiserver.v1.ErrorDetails", "value": {"error": "ERROR_RATE_LIMITED"}}]}}
//	    ]
//	  }],
//	  "answers": {"/agent.v1.AgentService/NameAgent": {"name": "A question"}}
//	}
//
// "turns" serve agent.v1.AgentService/Run, RunSSE and RunPoll, "chats" StreamUnifiedChat
// and the other streams of aiserver.v1.ChatService that carry its response. Of a list, a call gets the
// first entry whose "when" occurs in the prompt; failing that, of those without
// "when", the one whose place is the number of turns in the conversation state
// that the client sent back (the last one for every further turn). A turn with
// "with_tools" is only for clients that announced tools with their prompt, or, if it is
// false, for the others.
//
// The default script has turns for the prompts that contain "tools demo" and
// fault:NAME; run unwire standin --print-script to see them.
//
// A tool called mcp is one of the client's own. The client announces these in
// AgentRunRequest.mcp_tools or in RequestContext.tools, with the user's message or in
// answer to {"tool": {"name": "request_context"}}. Of "any", the server calls the first
// one that was announced and whose input schema accepts the arguments. If none is, the
// stream ends with failed_precondition; "unannounced": true calls the first one anyway,
// and "invalid_args": true does not compare arguments with schemas.
//
// "second_run" is the reaction to a Run for a conversation whose stream is still open: "refuse"
// (already_exists) or "allow". "announced_twice": "hang" gives a client that announces its tools in
// both places only heartbeats, as clients of the live service report; "allow" does not. With
// "poison", the next stream of a conversation whose stream was cut off in a tool call hangs too.
// "stale" is the error for a Run whose conversation_state has fewer turns than the last checkpoint.
// With "long_ids", the ids of calls have 85 bytes, with a line feed in them.
//
// A Run whose conversation_state contains a transcript is a cold continuation: the server requests
// the messages that it lacks, and with a resume_action it continues after the last call that has a
// result. Package history describes the format.
//
// "answers" are for the unary methods: the JSON form of the method's response message, in whose
// strings ${url} is the server's own URL. {"$error": {"code": …}} makes any method fail. A method
// that proto/ lacks has empty request and response messages. null removes a method, which is then
// unimplemented.
//
// Texts, blobs and arguments may contain these placeholders; $${ is a literal ${:
//
//   - ${prompt}, ${model}, ${conversation_id}
//   - ${answer}: the text so far
//   - ${system}: the client's system prompt
//   - ${tools}: the names of the tools that the client announced
//   - ${history}: the transcript of a cold continuation, a line for each part
//   - ${images}: type, size and SHA-256 of the pictures that came with the prompt
//   - ${NAME.path}: a field of the answer to the call or query that was called NAME
//   - ${NAME.text}: the text of that answer, whatever its kind
//   - ${NAME.images}: the pictures in it, as ${images}
//   - ${NAME.kind}: which result it is, such as success or rejected
//
// Limits: 4 MB, 1,000 turns, 10,000 steps, 10 minutes for any time.
type script struct {
	// V is the version of the format, 1.
	V int `json:"v"`

	// Compression says which compressions the server offers.
	Compression *codec.Compression `json:"compression"`
	// SSE is the encoding of RunSSE's response: "raw", "base64" or "connect".
	SSE string `json:"sse"`

	// AnswerTimeoutMS is how long the server waits for a response of the client, in milliseconds.
	AnswerTimeoutMS int `json:"answer_timeout_ms"`
	// BootstrapMS is the time before the first event of a new agent stream, in milliseconds.
	BootstrapMS int `json:"bootstrap_ms"`
	// SecondRun is the reaction to a Run for a conversation whose stream is still open: "refuse" or
	// "allow".
	SecondRun string `json:"second_run"`
	// AnnouncedTwice is the reaction to a client that announces its tools in two places: "hang" or
	// "allow".
	AnnouncedTwice string `json:"announced_twice"`
	// Poison makes the next stream of a conversation hang if the previous one was interrupted during a
	// tool call.
	Poison bool `json:"poison"`
	// Stale is the error for an outdated conversation_state; if it is nil, any state is accepted.
	Stale *scriptFault `json:"stale"`
	// LongIDs makes the ids of tool calls 85 bytes long and include a line feed.
	LongIDs bool `json:"long_ids"`
	// ScatterIDs lets the numbers of tool and blob requests begin at a derived number instead of 1.
	ScatterIDs bool `json:"scatter_ids"`
	// FreshIDs generates random ids, so that a repeated call gets different ones.
	FreshIDs bool `json:"fresh_ids"`
	// PollMessages limits the number of messages in the response to one RunPoll call; 0 means no limit.
	PollMessages int `json:"poll_messages"`

	// Gate rejects outdated clients; nil accepts all.
	Gate *scriptGate `json:"gate"`

	// Appends says how BidiAppend behaves.
	Appends *scriptAppends `json:"appends"`

	// Turns are the turns for the agent's stream.
	Turns []scriptTurn `json:"turns"`

	// Chats are the turns for the streams of ChatService.
	Chats []scriptTurn `json:"chats"`

	// Answers are the responses of unary methods, by URL path.
	Answers map[string]json.RawMessage `json:"answers"`
}

// A scriptGate rejects clients whose version header is missing or older than MinVersion. Versions are
// compared number by number.
type scriptGate struct {
	// MinVersion is the oldest accepted version.
	MinVersion string `json:"min_version"`

	// Error is the error for rejected clients.
	Error scriptFault `json:"error"`
}

// A scriptAppends says how BidiAppend, the call that carries one client message of a split stream,
// behaves.
type scriptAppends struct {
	// Window is how far an append may be ahead of the next sequence number.
	Window int `json:"window"`

	// HoldMS is the delay, in milliseconds, of the response to every second append, so that appends
	// overtake each other as on a real network.
	HoldMS int `json:"hold_ms"`
}

// A scriptTurn is a sequence of steps with which the server responds to a prompt.
type scriptTurn struct {
	// Name is the name of the turn in errors.
	Name string `json:"name"`

	// When is a text that must occur in the prompt; "" for the turns that are used in order.
	When string `json:"when"`

	// Steps are executed in order.
	Steps []scriptStep `json:"steps"`
	// WithTools restricts the turn to clients that announced tools with the prompt (true), or to
	// the others (false).
	WithTools *bool `json:"with_tools"`
	// BootstrapMS replaces bootstrap_ms of the script for this turn, in milliseconds.
	BootstrapMS *int `json:"bootstrap_ms"`
}

// A scriptStep is one action of the server. Exactly one of its members is set, in addition to DelayMS,
// Split and PaceMS.
type scriptStep struct {
	// DelayMS is the time to wait before the step, in milliseconds.
	DelayMS int `json:"delay_ms"`

	// Split are the sizes, in characters, of the pieces in which a text is sent; the last size is
	// repeated. By default, it is sent in one piece.
	Split []int `json:"split"`

	// PaceMS is the time between two pieces, in milliseconds.
	PaceMS int `json:"pace_ms"`

	// Thinking is reasoning of the model to send.
	Thinking *string `json:"thinking"`

	// Text is text of the answer to send.
	Text *string `json:"text"`

	// Tool is a tool call to be executed by the client.
	Tool *scriptTool `json:"tool"`
	// Tools are tool calls that are requested at the same time.
	Tools *scriptTools `json:"tools"`

	// KVSet stores a blob with the client.
	KVSet *scriptKVSet `json:"kv_set"`

	// KVGet requests a blob from the client.
	KVGet *scriptKVGet `json:"kv_get"`
	// Heartbeat is the number of heartbeats to send.
	Heartbeat *int `json:"heartbeat"`
	// Echo repeats the user's message.
	Echo *bool `json:"echo"`
	// Tokens is the value of a token_delta message to send.
	Tokens *int32 `json:"tokens"`

	// Wait is a pause in which heartbeats can be sent.
	Wait *scriptWait `json:"wait"`

	// Query is a question to the user.
	Query *scriptQuery `json:"query"`

	// Hang sends nothing but heartbeats.
	Hang *scriptHang `json:"hang"`
	// Checkpoint is a ConversationStateStructure to send, as JSON; {} sends the state after this turn.
	Checkpoint json.RawMessage `json:"checkpoint"`
	// Send is an arbitrary server message to send, as JSON.
	Send json.RawMessage `json:"send"`
	// Raw is a server message in hexadecimal, which may be malformed.
	Raw *string `json:"raw"`
	// TurnEnded is a TurnEndedUpdate message to send, as JSON.
	TurnEnded json.RawMessage `json:"turn_ended"`
	// Error ends the stream with this error.
	Error *scriptFault `json:"error"`
	// Reset ends the stream with RST_STREAM, or by closing the connection.
	Reset *bool `json:"reset"`
	// DropEnd ends the stream without an end-of-stream message, as after a lost connection.
	DropEnd *bool `json:"drop_end"`

	// text is the parsed text of Thinking or Text.
	text template

	// message is the parsed message of Checkpoint, Send or TurnEnded.
	message *dynamicpb.Message

	// bytes are the bytes that the hexadecimal text in Raw encodes. The stand-in server sends them to the client as
	// one message of the stream, even if they are not valid protobuf.
	bytes []byte
}

// actions returns the JSON names of the actions that are set; exactly one is allowed.
func (s *scriptStep) actions() (names []string) {
	// The order is that of the documentation.
	for _, a := range []struct {
		name string
		set  bool
	}{
		{"thinking", s.Thinking != nil},
		{"text", s.Text != nil},
		{"tool", s.Tool != nil},
		{"tools", s.Tools != nil},
		{"kv_set", s.KVSet != nil},
		{"kv_get", s.KVGet != nil},
		{"heartbeat", s.Heartbeat != nil},
		{"echo", s.Echo != nil},
		{"tokens", s.Tokens != nil},
		{"wait", s.Wait != nil},
		{"query", s.Query != nil},
		{"hang", s.Hang != nil},
		{"checkpoint", s.Checkpoint != nil},
		{"send", s.Send != nil},
		{"raw", s.Raw != nil},
		{"turn_ended", s.TurnEnded != nil},
		{"error", s.Error != nil},
		{"reset", s.Reset != nil},
		{"drop_end", s.DropEnd != nil},
	} {
		if a.set {
			names = append(names, a.name)
		}
	}
	return names
}

// A scriptTool is a tool call to be executed by the client: the server sends the member NAME_args of
// ExecServerMessage, and the client returns NAME_result of ExecClientMessage (for shell_stream, a
// sequence of events).
type scriptTool struct {
	// Name is the kind of tool, such as read, or mcp for one of the client's own tools.
	Name string `json:"name"`

	// As is the name by which placeholders refer to the result; "" for none.
	As string `json:"as"`

	// Args are the arguments as JSON, with placeholders.
	Args json.RawMessage `json:"args"`
	// Require is the expected kind of result, such as success; any other ends the turn with an error.
	Require string `json:"require"`
	// ArgsSplit first sends the arguments as text, in pieces of that many characters, as a model
	// generates them; 0 does not.
	ArgsSplit int `json:"args_split"`
	// TimeoutMS replaces answer_timeout_ms of the script for this tool call, in milliseconds.
	TimeoutMS int `json:"timeout_ms"`
	// AbortMS aborts the call after this time in milliseconds, and continues without its result.
	AbortMS int `json:"abort_ms"`
	// Any are alternative tools of the client, one of which is called; only for mcp, instead of Args.
	Any []scriptCandidate `json:"any"`
	// Unannounced calls the tool even if the client did not announce it; only for mcp.
	Unannounced bool `json:"unannounced"`
	// InvalidArgs omits validating the arguments against the tool's schema; only for mcp.
	InvalidArgs bool `json:"invalid_args"`

	// args are the parsed arguments.
	args *dynamicpb.Message
	// candidates are the parsed arguments of the alternatives in Any.
	candidates []*dynamicpb.Message
	// argsField is the field of ExecServerMessage for the tool's arguments.
	argsField protoreflect.FieldDescriptor
	// resultField is the field of ExecClientMessage for the tool's result.
	resultField protoreflect.FieldDescriptor
	// callField is the field of ToolCall that displays the call; nil if the call is not displayed.
	callField protoreflect.FieldDescriptor
	// streams means that the client sends the result as a sequence of events.
	streams bool
}

// A scriptCandidate is one of the alternative tools in scriptTool.Any.
type scriptCandidate struct {
	// Name is the name of the client's tool.
	Name string `json:"name"`

	// Args are the arguments as JSON, with placeholders.
	Args json.RawMessage `json:"args"`
}

// A scriptTools step has tool calls that are requested together, before the first result arrives. The
// client may respond in any order.
type scriptTools struct {
	// Calls are the tool calls.
	Calls []scriptTool `json:"calls"`

	// Shuffle requests them in an order that is derived from the ids of the calls.
	Shuffle bool `json:"shuffle"`
}

// A scriptKVSet stores a blob with the client, under its SHA-256.
type scriptKVSet struct {
	// Data is the content of the blob as text with placeholders.
	Data *string `json:"data"`

	// JSON is the content of the blob as JSON, whose strings may have placeholders; instead of Data.
	JSON json.RawMessage `json:"json"`

	// As is the name by which later steps refer to the blob.
	As string `json:"as"`

	// TimeoutMS replaces answer_timeout_ms of the script, in milliseconds.
	TimeoutMS int `json:"timeout_ms"`

	// text is the parsed text of Data.
	text template
}

// A scriptKVGet requests a blob that an earlier step stored with the client, and verifies it.
type scriptKVGet struct {
	// Blob is the name that the earlier step gave to the blob.
	Blob string `json:"blob"`

	// Unknown requests a blob that was never stored, and accepts any response.
	Unknown bool `json:"unknown"`

	// NoID omits the number of the request, which means number 0.
	NoID bool `json:"no_id"`

	// TimeoutMS replaces answer_timeout_ms of the script, in milliseconds.
	TimeoutMS int `json:"timeout_ms"`
}

// A scriptQuery is a question to the user: the server sends the member NAME_query or NAME of
// InteractionQuery, and the client returns the member of InteractionResponse with the same number.
type scriptQuery struct {
	// Name is the kind of question, such as ask_question.
	Name string `json:"name"`

	// As is the name by which placeholders refer to the response; "" for none.
	As string `json:"as"`

	// Args is the content of the question as JSON, with placeholders.
	Args json.RawMessage `json:"args"`

	// TimeoutMS replaces answer_timeout_ms of the script, in milliseconds.
	TimeoutMS int `json:"timeout_ms"`

	// args is the parsed content of the question.
	args *dynamicpb.Message

	// queryField is the field of InteractionQuery for the question.
	queryField protoreflect.FieldDescriptor

	// responseField is the field of InteractionResponse for the response.
	responseField protoreflect.FieldDescriptor
}

// A scriptHang sends nothing but heartbeats.
type scriptHang struct {
	// HeartbeatEveryMS is the time between heartbeats in milliseconds; 0 means one second.
	HeartbeatEveryMS int `json:"heartbeat_every_ms"`

	// MS is how long the step lasts, in milliseconds; 0 means until the client disconnects.
	MS int `json:"ms"`
}

// A scriptWait is a pause during which heartbeats can be sent.
type scriptWait struct {
	// MS is the duration of the pause in milliseconds.
	MS int `json:"ms"`

	// HeartbeatEveryMS is the time between heartbeats in milliseconds; 0 means no heartbeats.
	HeartbeatEveryMS int `json:"heartbeat_every_ms"`
}

// A scriptFault is an RPC error with which a call ends.
type scriptFault struct {
	// Code is Connect's name of the error code.
	Code string `json:"code"`

	// Message is the error message.
	Message string `json:"message"`

	// Details are the details of the error.
	Details []scriptDetail `json:"details"`

	// code is the parsed Code.
	code connect.Code

	// details are the encoded Details.
	details []*connect.ErrorDetail
}

// err returns the error in the form that handlers return.
func (f *scriptFault) err() error {
	e := connect.NewError(f.code, errors.New(f.Message))
	for _, d := range f.details {
		e.AddDetail(d)
	}
	return e
}

// A scriptDetail is a detail of an RPC error.
type scriptDetail struct {
	// Type is the full name of the message type.
	Type string `json:"type"`

	// Value is the message as JSON.
	Value json.RawMessage `json:"value"`
}
