package agent_test

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/reflect/protoreflect"

	"unwire/replay/agent/internal/message"
	"unwire/replay/agent/turn"
)

// kinds are the members of a oneof of the definitions.
func kinds(d *message.Definitions, name, oneof string) (fields []protoreflect.FieldDescriptor) {
	list := d.Agent(name).Descriptor().Oneofs().ByName(protoreflect.Name(oneof)).Fields()
	for i := range list.Len() {
		fields = append(fields, list.Get(i))
	}
	return fields
}

// TestEveryExecIsAnswered asks for everything that a server can ask for, of a client
// without tools: each gets an answer of its id with the right result, or is thrown, and
// each answer is followed by a stream_close.
func TestEveryExecIsAnswered(t *testing.T) {
	t.Parallel()
	p := newPeer(t)
	_, c := p.open()
	for i, fd := range kinds(p.definitions, "ExecServerMessage", "message") {
		m := p.definitions.Server()
		exec := m.At("exec_server_message").Set("exec_id", "e").Set("id", i)
		args := exec.At(string(fd.Name()))
		for _, name := range []string{"path", "command", "url", "uri"} {
			if args.HasField(name) {
				args.Set(name, "the-subject")
			}
		}
		c.send(m)
		checkAnswer(t, string(fd.Name()), uint32(i), c.next())
		closed := c.next()
		if !closed.Has("exec_client_control_message", "stream_close") || closed.Uint32("exec_client_control_message", "stream_close", "id") != uint32(i) {
			t.Errorf("%s: %v follows, want its stream_close", fd.Name(), closed)
		}
	}
}

// thrown are the kinds whose results the definitions do not know.
const thrown = " record_screen_args computer_use_args execute_hook_args subagent_args force_background_subagent_args subagent_await_args smart_mode_classifier_args canvas_diagnostics_args shell_allowlist_precheck_args mcp_allowlist_precheck_args web_fetch_allowlist_precheck_args git_diff_request pi_read_args pi_bash_args pi_edit_args pi_write_args pi_grep_args pi_find_args pi_ls_args "

func checkAnswer(t *testing.T, kind string, id uint32, m message.Message) {
	t.Helper()
	if strings.Contains(thrown, " "+kind+" ") {
		if !m.Has("exec_client_control_message", "throw") || m.Uint32("exec_client_control_message", "throw", "id") != id || m.Text("exec_client_control_message", "throw", "error") == "" {
			t.Errorf("%s: got %v, want a throw", kind, m)
		}
		return
	}
	if !m.Has("exec_client_message") {
		t.Errorf("%s: got %v", kind, m)
		return
	}
	answer := m.Sub("exec_client_message")
	if answer.Uint32("id") != id || answer.Text("exec_id") != "e" {
		t.Errorf("%s: the answer has the ids of another: %v", kind, answer)
	}
	got, result := answer.Case("message")
	stem := strings.NewReplacer("_args", "", "_request", "").Replace(kind)
	if !strings.HasPrefix(got, stem) || len(bytes.TrimSpace(result.Bytes())) == 0 {
		t.Errorf("%s: got %s {%v}", kind, got, result)
	}
	if result.HasField("success") && result.Has("success") && kind != "request_context_args" && kind != "list_mcp_resources_exec_args" {
		t.Errorf("%s: got %v of a client without tools", kind, result)
	}
}

// TestEveryQueryIsAnswered asks all that a server can ask the user.
func TestEveryQueryIsAnswered(t *testing.T) {
	t.Parallel()
	p := newPeer(t)
	_, c := p.open()
	for i, fd := range kinds(p.definitions, "InteractionQuery", "query") {
		m := p.definitions.Server()
		m.At("interaction_query").Set("id", i).At(string(fd.Name()))
		c.send(m)
		got := c.next()
		if !got.Has("interaction_response") || got.Uint32("interaction_response", "id") != uint32(i) {
			t.Errorf("%s: got %v", fd.Name(), got)
			continue
		}
		name, _ := got.Sub("interaction_response").Case("result")
		stem := strings.NewReplacer("_args", "", "_query", "", "_request", "").Replace(string(fd.Name()))
		if !strings.HasPrefix(name, stem) {
			t.Errorf("%s is answered with %s", fd.Name(), name)
		}
	}
}

// TestUnknownMessagesAreSkipped sends kinds that the definitions lack.
func TestUnknownMessagesAreSkipped(t *testing.T) {
	t.Parallel()
	p := newPeer(t)
	s, c := p.open()
	for _, data := range []string{"", "\xc2\x3e\x02\x08\x01", "\x0a\x05\xc2\x3e\x02\x08\x01", "\x3a\x02\x08\x07", "\x2a\x00"} {
		c.sendBytes(0, []byte(data))
	}
	c.text("still here")
	c.end()
	if text, _, _, err := finish(t, s, echo); err != nil || text != "still here" {
		t.Errorf("got %q, %v", text, err)
	}
}

// TestHeartbeats counts the heartbeats of a stream that nobody reads from, with a call
// open.
func TestHeartbeats(t *testing.T) {
	t.Parallel()
	p := newPeer(t)
	p.client.SetHeartbeats(20*time.Millisecond, 10*time.Millisecond)
	s, c := p.open(withTool(p, "add"))
	m := p.definitions.Server()
	m.At("exec_server_message").Set("id", 7).At("mcp_args").Set("name", "add").Set("tool_call_id", "a\nb")
	c.send(m)
	client, exec := 0, 0
	for client < 3 || exec < 3 {
		switch m := <-c.messages; {
		case m.Has("client_heartbeat"):
			client++
		case m.Has("exec_client_control_message", "heartbeat"):
			if m.Uint32("exec_client_control_message", "heartbeat", "id") != 7 {
				t.Fatalf("got %v", m)
			}
			exec++
		default:
			t.Fatalf("got %v", m)
		}
	}
	if err := s.Answer(turn.Result{CallID: "a\nb", Parts: []turn.Part{{Text: "3"}}}); err != nil {
		t.Fatal(err)
	}
	for m := range c.messages { // the answer, its end, and no heartbeat of the call after it
		if m.Has("exec_client_control_message", "stream_close") {
			break
		}
	}
	for range 5 {
		if m := <-c.messages; !m.Has("client_heartbeat") {
			t.Errorf("got %v after the call was answered", m)
		}
	}
	c.end()
}

// TestCloseCancelsUpstream closes streams at every stage: the server learns that the
// turn was cancelled, its stream ends, and no goroutine is left.
func TestCloseCancelsUpstream(t *testing.T) {
	t.Parallel()
	p := newPeer(t)
	s, c := p.open()
	c.text("one")
	begun := time.Now()
	s.Close()
	if took := time.Since(begun); took > 2*time.Second {
		t.Errorf("Close took %v", took)
	}
	cancelled := false
	for m := range c.messages {
		cancelled = cancelled || m.Has("conversation_action", "cancel_action")
	}
	if !cancelled {
		t.Error("the server did not learn that the turn was cancelled")
	}
	select {
	case <-c.gone:
	case <-time.After(patience):
		t.Error("the server's stream is still open")
	}
	if err := s.Answer(turn.Result{CallID: "x"}); err == nil {
		t.Error("a closed stream takes an answer")
	}
	if _, err := s.Next(t.Context()); err != nil && turn.AsError(err).Code == "" {
		t.Errorf("Next after Close: %v", err)
	}
}
