package standin

import (
	"encoding/json"
	"errors"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"

	"unwire/replay/standin/codec"
)

// A script says what the server answers. It is JSON; members that are not
// described here are refused, and top-level members that are left out are those
// of the default script (default.json, which is also the full example).
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
// "second_run" says what becomes of a Run for a conversation whose stream is alive:
// "refuse" (already_exists) or "allow". "announced_twice": "hang" leaves the stream of a
// client that announces its tools in both places without an answer but heartbeats, as
// clients of the live service report; "allow" does not. With "poison", so does the next
// stream of a conversation whose stream was cut off in a tool call. "stale" is the error
// for a Run whose conversation_state has fewer turns than the last checkpoint. With
// "long_ids", ids of calls have 85 bytes with a line feed in them.
//
// A Run whose conversation_state holds a transcript is a cold continuation: the server
// asks for the messages that it does not have, and with a resume_action it goes on after
// the last call that has a result. Package history describes the format.
//
// "answers" are the unary methods: the JSON form of the method's response message,
// in whose strings ${url} is the server's own URL. {"$error": {"code": …}} makes any
// method fail. A method that proto/ does not describe takes and gives an empty
// message. null takes a method away: it is then unimplemented.
//
// In texts, blobs and arguments these are replaced; $${ stands for ${:
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
	V           int                `json:"v"`
	Compression *codec.Compression `json:"compression"`
	// raw, base64 or connect: how RunSSE answers
	SSE             string `json:"sse"`
	AnswerTimeoutMS int    `json:"answer_timeout_ms"`
	// how long a new agent stream takes before its first event
	BootstrapMS int `json:"bootstrap_ms"`
	// refuse or allow a Run for a conversation whose stream is alive
	SecondRun string `json:"second_run"`
	// hang or allow a client that announces its tools in two places
	AnnouncedTwice string `json:"announced_twice"`
	// a conversation whose stream was cut off in a tool call hangs
	Poison bool `json:"poison"`
	// the error for an outdated conversation_state; without it, any will do
	Stale *scriptFault `json:"stale"`
	// call ids have 85 bytes, with a line feed
	LongIDs bool `json:"long_ids"`
	// exec and KV ids start at a derived number, not at 1
	ScatterIDs bool `json:"scatter_ids"`
	// ids are drawn at random, and no two calls get the same ones
	FreshIDs bool `json:"fresh_ids"`
	// how many messages a RunPoll gets; 0: all in one call
	PollMessages int                        `json:"poll_messages"`
	Gate         *scriptGate                `json:"gate"`
	Appends      *scriptAppends             `json:"appends"`
	Turns        []scriptTurn               `json:"turns"`
	Chats        []scriptTurn               `json:"chats"`
	Answers      map[string]json.RawMessage `json:"answers"`
}

// A scriptGate turns away clients whose x-cursor-client-version is older than
// MinVersion, or missing. Versions are compared number by number.
type scriptGate struct {
	MinVersion string      `json:"min_version"`
	Error      scriptFault `json:"error"`
}

// scriptAppends say how BidiAppend behaves: how far ahead of the next sequence number
// an append may be, and for how long each second one is withheld, so that
// neighbours overtake each other as they do on a real network.
type scriptAppends struct {
	Window int `json:"window"`
	HoldMS int `json:"hold_ms"`
}

// A scriptTurn is the server's part from a prompt to the end of the stream.
type scriptTurn struct {
	Name  string       `json:"name"`
	When  string       `json:"when"`
	Steps []scriptStep `json:"steps"`
	// only for clients that announced tools with the prompt, or only for the others
	WithTools *bool `json:"with_tools"`
	// instead of the script's
	BootstrapMS *int `json:"bootstrap_ms"`
}

// A scriptStep is one action of the server; exactly one of its members is set besides
// DelayMS (waited before it) and, for a text, Split (sizes in characters of its
// pieces, the last one repeated; nothing: one piece) and PaceMS (waited between
// the pieces).
type scriptStep struct {
	DelayMS int   `json:"delay_ms"`
	Split   []int `json:"split"`
	PaceMS  int   `json:"pace_ms"`

	Thinking  *string      `json:"thinking"`
	Text      *string      `json:"text"`
	Tool      *scriptTool  `json:"tool"`
	Tools     *scriptTools `json:"tools"` // asked for at once
	KVSet     *scriptKVSet `json:"kv_set"`
	KVGet     *scriptKVGet `json:"kv_get"`
	Heartbeat *int         `json:"heartbeat"` // how many
	Echo      *bool        `json:"echo"`      // the user's message, appended
	Tokens    *int32       `json:"tokens"`    // a token delta
	Wait      *scriptWait  `json:"wait"`
	Query     *scriptQuery `json:"query"`
	Hang      *scriptHang  `json:"hang"`
	// ConversationStateStructure; {}: made from the turn
	Checkpoint json.RawMessage `json:"checkpoint"`
	Send       json.RawMessage `json:"send"` // any server message
	// hex: a server message's bytes, however odd
	Raw       *string         `json:"raw"`
	TurnEnded json.RawMessage `json:"turn_ended"` // TurnEndedUpdate
	Error     *scriptFault    `json:"error"`      // ends the stream with an error
	// ends it with RST_STREAM, or a cut connection
	Reset *bool `json:"reset"`
	// ends it cleanly, but without its end-of-stream message
	DropEnd *bool `json:"drop_end"`

	text    template           // of Thinking or Text
	message *dynamicpb.Message // of Checkpoint, Send or TurnEnded
	bytes   []byte             // of Raw
}

// actions returns the names of the members that are set and are actions.
func (s *scriptStep) actions() (names []string) {
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

// A scriptTool is a call that the client executes: NAME_args of ExecServerMessage out,
// NAME_result (or, for shell_stream, its events up to the exit) of
// ExecClientMessage back.
type scriptTool struct {
	Name string          `json:"name"`
	As   string          `json:"as"`
	Args json.RawMessage `json:"args"`
	// which result it must be; another one ends the turn with an error
	Require string `json:"require"`
	// announce the arguments as text, in pieces of so many characters
	ArgsSplit int `json:"args_split"`
	TimeoutMS int `json:"timeout_ms"` // instead of answer_timeout_ms
	// take the call back after so long, and go on without its answer
	AbortMS int `json:"abort_ms"`
	// for mcp, instead of Args: the tools of which one is called
	Any []scriptCandidate `json:"any"`
	// for mcp: call the tool even if the client did not announce it
	Unannounced bool `json:"unannounced"`
	// for mcp: do not compare the arguments with the tool's schema
	InvalidArgs bool `json:"invalid_args"`

	args        *dynamicpb.Message
	candidates  []*dynamicpb.Message         // McpArgs, for mcp
	argsField   protoreflect.FieldDescriptor // of ExecServerMessage
	resultField protoreflect.FieldDescriptor // of ExecClientMessage
	// of ToolCall; nil for what is not shown
	callField protoreflect.FieldDescriptor
	streams   bool // the result is events
}

// A scriptCandidate is a tool of the client's own that may be called.
type scriptCandidate struct {
	Name string          `json:"name"`
	Args json.RawMessage `json:"args"`
}

// scriptTools are calls that are asked for together, before the first is answered.
// The client answers in any order. With Shuffle they are asked for in an order
// that follows from the call's ids.
type scriptTools struct {
	Calls   []scriptTool `json:"calls"`
	Shuffle bool         `json:"shuffle"`
}

// scriptKVSet stores a blob with the client, under its SHA-256: text, or JSON in whose
// strings the placeholders are.
type scriptKVSet struct {
	Data      *string         `json:"data"`
	JSON      json.RawMessage `json:"json"`
	As        string          `json:"as"`
	TimeoutMS int             `json:"timeout_ms"`

	text template // of Data
}

// scriptKVGet asks for a blob that an earlier step stored; what comes back must be it.
// With Unknown it asks for one that nobody stored, and any answer will do; with NoID
// its request has no id, which is the id 0.
type scriptKVGet struct {
	Blob      string `json:"blob"`
	Unknown   bool   `json:"unknown"`
	NoID      bool   `json:"no_id"`
	TimeoutMS int    `json:"timeout_ms"`
}

// A scriptQuery is an interaction query, NAME_query or NAME of InteractionQuery out and
// the member of InteractionResponse with the same number back.
type scriptQuery struct {
	Name      string          `json:"name"`
	As        string          `json:"as"`
	Args      json.RawMessage `json:"args"`
	TimeoutMS int             `json:"timeout_ms"`

	args          *dynamicpb.Message
	queryField    protoreflect.FieldDescriptor // of InteractionQuery
	responseField protoreflect.FieldDescriptor // of InteractionResponse
}

// scriptHang sends heartbeats and nothing else until the client gives up, or for MS.
type scriptHang struct {
	HeartbeatEveryMS int `json:"heartbeat_every_ms"`
	MS               int `json:"ms"`
}

// scriptWait is a pause, with heartbeats in it.
type scriptWait struct {
	MS               int `json:"ms"`
	HeartbeatEveryMS int `json:"heartbeat_every_ms"`
}

// A scriptFault is a Connect error.
type scriptFault struct {
	Code    string         `json:"code"`
	Message string         `json:"message"`
	Details []scriptDetail `json:"details"`

	code    connect.Code
	details []*connect.ErrorDetail
}

// err is the error that a handler returns for the fault.
func (f *scriptFault) err() error {
	e := connect.NewError(f.code, errors.New(f.Message))
	for _, d := range f.details {
		e.AddDetail(d)
	}
	return e
}

// A scriptDetail is an error detail: a message type and its JSON form.
type scriptDetail struct {
	Type  string          `json:"type"`
	Value json.RawMessage `json:"value"`
}
