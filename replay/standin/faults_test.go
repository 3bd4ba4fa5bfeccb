package standin

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/types/dynamicpb"

	"unwire/replay/standin/codec"
	"unwire/replay/standin/ledger"
)

// The demo's tools have other names and arguments in each client.
func TestToolsDemoFindsTheShellOfEachClient(t *testing.T) {
	t.Parallel()
	s := start(t, Options{})
	for name, schema := range map[string]string{
		// As claude-code 2.1, codex 0.169 and opencode 1.18 announce them, and as older
		// opencodes and codexes did.
		"bash":         `{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object","properties":{"command":{"type":"string"},"timeout":{"minimum":-9007199254740991,"exclusiveMinimum":0,"type":"integer","maximum":9007199254740991},"workdir":{"type":"string"}},"required":["command"]}`,
		"mcp_bash":     `{"type":"object","properties":{"command":{"type":"string"},"description":{"type":"string"}},"required":["command","description"]}`,
		"Bash":         `{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object","properties":{"command":{"type":"string"},"timeout":{"type":"number"},"description":{"type":"string"},"run_in_background":{"type":"boolean"}},"required":["command"],"additionalProperties":false}`,
		"exec_command": `{"type":"object","properties":{"cmd":{"type":"string"},"prefix_rule":{"type":"array","items":{"type":"string"}},"sandbox_permissions":{"type":"string","enum":["use_default","require_escalated"]},"workdir":{"type":"string"},"yield_time_ms":{"type":"number"}},"required":["cmd"],"additionalProperties":false}`,
		"shell":        `{"type":"object","properties":{"command":{"type":"array","items":{"type":"string"}}},"required":["command"],"additionalProperties":false}`,
		"run_command":  `{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object","properties":{"command":{"type":"string"}},"required":["command"],"additionalProperties":false}`,
	} {
		tool := strings.TrimPrefix(name, "mcp_")
		request := `{"conversationId":"` + name + `","mcpTools":{"mcpTools":[{"name":"` + name + `","toolName":"` + tool + `","inputSchema":` + schema + `}]}}`
		got, err := run(t, s, &player{prompt: "The tools demo", request: request, tools: map[string]string{tool: sunny}})
		const want = "I run three commands, one after the other.\nNow three at once.\nIn a row: sunny; sunny; sunny.\nAt once: sunny; sunny; sunny.\n"
		if err != nil || answerOf(got) != want {
			t.Errorf("%s: answer %q, %v", name, answerOf(got), err)
		}
		if n := s.Stats().Conversations[name]; n != (ledger.Streams{Opened: 1, MostOpen: 1}) {
			t.Errorf("%s: %+v", name, n)
		}
	}
	// A request for a title quotes the prompt, and has no tools.
	if got, err := run(t, s, &player{prompt: "A title for: The tools demo"}); err != nil || !strings.HasPrefix(answerOf(got), "This is a stand-in") {
		t.Errorf("without tools: %q, %v", answerOf(got), err)
	}
	if n := s.Stats().Execs; n.Asked != 36 || n.Answered != 36 {
		t.Errorf("execs %+v", n)
	}
}

func TestErrorsOfTheDefaultScript(t *testing.T) {
	t.Parallel()
	s := start(t, Options{})
	for prompt, want := range map[string]struct {
		code  connect.Code
		error string
	}{
		"fault:rate-limit": {connect.CodeResourceExhausted, "ERROR_RATE_LIMITED"},
		"fault:outdated":   {connect.CodeResourceExhausted, "ERROR_OUTDATED_CLIENT"},
		"fault:login":      {connect.CodeUnauthenticated, "ERROR_NOT_LOGGED_IN"},
		"fault:model":      {connect.CodeInvalidArgument, "ERROR_BAD_MODEL_NAME"},
		"fault:too-long":   {connect.CodeInvalidArgument, "ERROR_CONVERSATION_TOO_LONG"},
	} {
		_, err := run(t, s, &player{prompt: prompt})
		e := new(connect.Error)
		if !errors.As(err, &e) || e.Code() != want.code || len(e.Details()) != 1 {
			t.Errorf("%s: %v", prompt, err)
			continue
		}
		details := dynamicpb.NewMessage(s.api.Message("aiserver.v1.ErrorDetails"))
		if err := (codec.Binary{}).Unmarshal(e.Details()[0].Bytes(), details); err != nil {
			t.Fatal(err)
		}
		fd := details.Descriptor().Fields().ByName("error")
		if got := fd.Enum().Values().ByNumber(details.Get(fd).Enum()).Name(); string(got) != want.error {
			t.Errorf("%s: %s, want %s", prompt, got, want.error)
		}
	}
}

func TestEndsOfTheDefaultScript(t *testing.T) {
	t.Parallel()
	s := start(t, Options{})
	for prompt, want := range map[string]struct {
		kinds string
		cut   bool
	}{
		"fault:thinking":    {kinds: "thinking_delta thinking_completed turn_ended"},
		"fault:no-turn-end": {kinds: "text_delta"},
		"fault:no-end":      {kinds: "text_delta", cut: true},
		"fault:kv":          {kinds: "kv_server_message text_delta turn_ended"},
	} {
		got, err := run(t, s, &player{prompt: prompt})
		if (err != nil) != want.cut || strings.Join(kindsOf(got), " ") != want.kinds {
			t.Errorf("%s: %v, %v", prompt, kindsOf(got), err)
		}
	}
}

func TestQueriesOfEveryKind(t *testing.T) {
	t.Parallel()
	var steps []string
	a, err := loadAPI()
	if err != nil {
		t.Fatal(err)
	}
	fields := a.server.Fields().ByName("interaction_query").Message().Fields()
	for i := range fields.Len() {
		if fd := fields.Get(i); fd.Message() != nil {
			steps = append(steps, `{"query":{"name":"`+string(fd.Name())+`"}}`)
		}
	}
	s := start(t, Options{Script: oneTurn(strings.Join(steps, ",") + `,{"turn_ended":{}}`)})
	if _, err := run(t, s, &player{prompt: "x"}); err != nil {
		t.Error(err)
	}
	if n := s.Stats().Queries; n.Asked != len(steps) || n.Answered != len(steps) || len(steps) < 13 {
		t.Errorf("%d queries: %+v", len(steps), n)
	}
}

// A tool's kind is any member of ExecServerMessage that ExecClientMessage answers.
func TestExecsOfEveryKindAreRead(t *testing.T) {
	t.Parallel()
	a, err := loadAPI()
	if err != nil {
		t.Fatal(err)
	}
	fields := a.server.Fields().ByName("exec_server_message").Message().Oneofs().ByName("message").Fields()
	for i := range fields.Len() {
		name := strings.TrimSuffix(strings.TrimSuffix(string(fields.Get(i).Name()), "_args"), "_request")
		if name == "mcp" {
			continue
		}
		if _, err := readScript(a, oneTurn(`{"tool":{"name":"`+name+`","as":"x"}},{"text":"${x.kind} ${x.text}"}`)); err != nil {
			t.Error(err)
		}
	}
}

func TestServerTakesACallBack(t *testing.T) {
	t.Parallel()
	s := start(t, Options{Script: oneTurn(`{"tool":{"name":"shell","as":"x","args":{"command":"sleep 60"},"abort_ms":50}},{"text":"no ${x.text}${x.kind}."},{"turn_ended":{}}`)})
	got, err := run(t, s, &player{prompt: "x"})
	if err != nil || answerOf(got) != "no ." || !strings.Contains(strings.Join(kindsOf(got), " "), "exec_server_control_message tool_call_completed text_delta") {
		t.Errorf("%v, %q, %v", kindsOf(got), answerOf(got), err)
	}
	if n := s.Stats().Execs; n.Asked != 1 || n.Aborted != 1 || n.Answered != 0 {
		t.Errorf("execs %+v", n)
	}
}

// Minutes pass after a tool's result, with heartbeats, and another call comes.
func TestParkedStreamAsksForAnotherTool(t *testing.T) {
	t.Parallel()
	s := start(t, Options{Script: oneTurn(weatherCall + `,{"wait":{"ms":400,"heartbeat_every_ms":100}},` + weatherCall + `,{"text":"done"},{"turn_ended":{}}`)})
	got, err := run(t, s, &player{prompt: "x", request: weatherTool("mcpTools"), tools: map[string]string{"get_weather": sunny}})
	const want = "tool_call_started exec_server_message tool_call_completed heartbeat tool_call_started exec_server_message tool_call_completed text_delta turn_ended"
	if err != nil || strings.Join(kindsOf(got), " ") != want {
		t.Errorf("%v, %v", kindsOf(got), err)
	}
	if n := s.Stats().Execs; n.Asked != 2 || n.Answered != 2 || n.Closed < 1 {
		t.Errorf("execs %+v", n)
	}
}

func TestLongIDs(t *testing.T) {
	t.Parallel()
	s := start(t, Options{Script: oneTurn(weatherCall+`,{"turn_ended":{}}`, `"long_ids":true`)})
	got, err := run(t, s, &player{prompt: "x", request: weatherTool("mcpTools"), tools: map[string]string{"get_weather": sunny}})
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range got {
		if has(m, "exec_server_message") {
			if id := get(m, "exec_server_message", "mcp_args", "tool_call_id").String(); len(id) != 85 || !strings.Contains(id, "\n") {
				t.Errorf("id %q has %d bytes", id, len(id))
			}
		}
	}
}

// A client that works on a call sends heartbeats, and is waited for.
func TestExecHeartbeatsExtendTheWait(t *testing.T) {
	t.Parallel()
	inBubble(t, Options{Script: oneTurn(`{"tool":{"name":"read","timeout_ms":300}},{"text":"done"},{"turn_ended":{}}`)}, func(t *testing.T, s *Server, hc *http.Client) {
		p := &player{prompt: "x"}
		stream, _ := openWith(t, s, hc, p)
		for {
			m, err := stream.Receive()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			answers := p.answers(m)
			for range 6 * min(1, len(answers)) {
				time.Sleep(100 * time.Millisecond)
				if err := stream.Send(build(t, s.api.client, `{"execClientControlMessage":{"heartbeat":{"id":1}}}`)); err != nil {
					t.Fatal(err)
				}
			}
			for _, a := range answers {
				_ = stream.Send(a)
			}
		}
		if n := s.Stats().Execs; n.Heartbeats != 6 || n.Answered != 1 {
			t.Errorf("execs %+v", n)
		}
	})
}

func TestInterruptedConversationHangs(t *testing.T) {
	t.Parallel()
	s := start(t, Options{Script: oneTurn(weatherCall+`,{"turn_ended":{}}`, `"poison":true`)})
	p := &player{prompt: "x", request: weatherTool("mcpTools"), tools: map[string]string{"get_weather": sunny}}
	if _, err := run(t, s, p); err != nil {
		t.Fatal(err)
	}
	// A turn that is cancelled in order is not interrupted.
	stream, leave := open(t, s, p)
	receive(t, stream, "exec_server_message")
	if err := stream.Send(build(t, s.api.client, `{"conversationAction":{"cancelAction":{}}}`)); err != nil {
		t.Fatal(err)
	}
	receive(t, stream, "turn_ended")
	leave()
	if _, err := run(t, s, p); err != nil {
		t.Fatalf("after a cancelled turn: %v", err)
	}

	stream, leave = open(t, s, p)
	receive(t, stream, "exec_server_message")
	leave()
	if kinds := firstKinds(t, s, p, 2); strings.Join(kinds, " ") != "heartbeat heartbeat" {
		t.Errorf("messages %v", kinds)
	}
	p.request = `{"conversationId":"c-2",` + strings.TrimPrefix(p.request, "{")
	if _, err := run(t, s, p); err != nil {
		t.Errorf("with a new conversation id: %v", err)
	}
	if n := s.Stats(); n.Hung != 1 || n.Cancelled != 1 {
		t.Errorf("stats %+v", n)
	}
}

// receive reads a stream up to a message of the kind.
func receive(t *testing.T, stream *connect.BidiStreamForClient[message, message], kind string) {
	t.Helper()
	for {
		m, err := stream.Receive()
		if err != nil {
			t.Fatal(err)
		}
		if kindsOf([]*message{m})[0] == kind {
			return
		}
	}
}

func TestStaleConversationIsRefused(t *testing.T) {
	t.Parallel()
	s := start(t, Options{Script: oneTurn(`{"checkpoint":{}},{"turn_ended":{}}`, `"stale":{"code":"failed_precondition","message":"out of date"}`)})
	for i, c := range []struct {
		state string
		ok    bool
	}{
		{`{}`, true},
		{`{}`, false},
		{`{"conversationState":{"turns":["aGk="]}}`, true},
		{`{"conversationState":{"turns":["aGk="]}}`, false},
		{`{"conversationId":"c-2"}`, true},
	} {
		_, err := run(t, s, &player{prompt: "x", request: c.state})
		if (err == nil) != c.ok || !c.ok && connect.CodeOf(err) != connect.CodeFailedPrecondition {
			t.Errorf("run %d: %v", i, err)
		}
	}
	if n := s.Stats().Stale; n != 2 {
		t.Errorf("%d stale", n)
	}
}

// Everything that works over HTTP/2 works over RunSSE and BidiAppend, where Run is
// refused.
func TestFallbackPlaysTheSame(t *testing.T) {
	t.Parallel()
	s := start(t, Options{Script: []byte(`{"v":1,"bootstrap_ms":50}`)})
	hc := httpClient(t, s, false)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL()+procedureRun, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	headers(req.Header)
	resp, err := hc.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != 464 {
		t.Errorf("Run over HTTP/1.1: %s", resp.Status)
	}

	plain := func(r io.Reader) io.Reader { return r }
	image := `{"action":{"userMessageAction":{"userMessage":{"selectedContext":{"selectedImages":[{"data":"aGk=","mimeType":"image/png"}]}}}}}`
	for _, p := range []*player{
		{prompt: "tools demo", request: weatherTool("mcpTools"), tools: map[string]string{"exec_command": sunny}},
		{prompt: "queries demo"},
		{prompt: "fault:kv"},
		{prompt: "image demo", request: image},
	} {
		overHTTP2, err := run(t, s, p)
		if err != nil {
			t.Fatal(err)
		}
		got := playOverSSE(t, s, p, "r-"+p.prompt, false, "text/event-stream", plain)
		if answerOf(got) != answerOf(overHTTP2) || strings.Join(kindsOf(got), " ") != strings.Join(kindsOf(overHTTP2), " ") {
			t.Errorf("%s: %q over HTTP/1.1, %q over HTTP/2", p.prompt, answerOf(got), answerOf(overHTTP2))
		}
	}
	if n := s.Stats().Streams; n.Opened != 8 || n.MostOpen != 1 || n.Refused != 0 {
		t.Errorf("streams %+v", n)
	}
}
