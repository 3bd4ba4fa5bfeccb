package standin

import (
	"encoding/json"
	"errors"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"
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
//	  "scatter_ids": false,
//	  "fresh_ids": false,
//	  "poll_messages": 0,
//	  "gate": {
//	    "min_version": "cli-2026.01.09",
//	    "error": {"code": "permission_denied", "message": "…"}
//	  },
//	  "appends": {"window": 16, "hold_ms": 0},
//	  "turns": [{
//	    "name": "explain", "when": "backoff",
//	    "steps": [
//	      {"heartbeat": 1},
//	      {"echo": true},
//	      {"thinking": "The file first.", "split": [4, 6], "pace_ms": 5, "delay_ms": 20},
//	      {"tool": {"name": "read", "as": "file", "args": {"path": "backoff.go"}, "require": "success", "timeout_ms": 5000}},
//	      {"tools": {"shuffle": true, "calls": [{"name": "read", "args": {"path": "a"}}, {"name": "read", "args": {"path": "b"}}]}},
//	      {"kv_set": {"json": {"role": "user", "content": "${prompt}"}, "as": "note"}},
//	      {"kv_get": {"blob": "note"}},
//	      {"text": "It has ${file.success.total_lines} lines.", "split": [7]},
//	      {"tokens": 12},
//	      {"wait": {"ms": 300, "heartbeat_every_ms": 100}},
//	      {"send": {"interactionUpdate": {"stepStarted": {"stepId": "1"}}}},
//	      {"raw": "fa3e03666f6f"},
//	      {"checkpoint": {}},
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
// that the client sent back (the last one for every further turn).
//
// The default script has a turn for each of the prompts fault:error, fault:reset,
// fault:drop-end, fault:slow and fault:drift.
//
// "answers" are the unary methods: the JSON form of the method's response message,
// in whose strings ${url} is the server's own URL. {"$error": {"code": …}} makes any
// method fail. A method that proto/ does not describe takes and gives an empty
// message. null takes a method away: it is then unimplemented.
//
// In texts, blobs and arguments ${prompt}, ${model}, ${conversation_id}, ${answer}
// (the text so far) and ${NAME.path}, a field of the answer to the tool call
// that was called NAME, are replaced; $${ stands for ${.
//
// Limits: 4 MB, 1,000 turns, 10,000 steps, 10 minutes for any time.
type script struct {
	V           int                `json:"v"`
	Compression *scriptCompression `json:"compression"`
	// raw, base64 or connect: how RunSSE answers
	SSE             string `json:"sse"`
	AnswerTimeoutMS int    `json:"answer_timeout_ms"`
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

// scriptCompression says what the server offers: names in the server's own order are
// gzip, br and zstd, and the client's order decides. Messages below MinBytes go
// as they are. No names: never compressed.
type scriptCompression struct {
	Names    []string `json:"names"`
	MinBytes int      `json:"min_bytes"`
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

	args        *dynamicpb.Message
	argsField   protoreflect.FieldDescriptor // of ExecServerMessage
	resultField protoreflect.FieldDescriptor // of ExecClientMessage
	// of ToolCall; nil for what is not shown
	callField protoreflect.FieldDescriptor
	streams   bool // the result is events
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
type scriptKVGet struct {
	Blob      string `json:"blob"`
	TimeoutMS int    `json:"timeout_ms"`
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
