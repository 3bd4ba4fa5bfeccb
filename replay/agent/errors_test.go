package agent_test

import (
	"context"
	"fmt"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"unwire/replay/agent"
	"unwire/replay/agent/turn"
)

// TestErrors has servers that refuse a turn: each code, and what the service's details
// make of it.
func TestErrors(t *testing.T) {
	t.Parallel()
	detail := func(name, title string) string {
		return fmt.Sprintf(`,"details":[{"type":"aiserver.v1.ErrorDetails","value":{"error":%q,"details":{"title":%q,"detail":"why"}}}]`, name, title)
	}
	for _, test := range []struct {
		code, more string
		kind       turn.Kind
		name       string
	}{
		{"canceled", "", turn.Upstream, "upstream_canceled"},
		{"unknown", "", turn.Upstream, "upstream_unknown"},
		{"invalid_argument", "", turn.Invalid, "upstream_invalid_argument"},
		{"deadline_exceeded", "", turn.Timeout, "upstream_timeout"},
		{"not_found", "", turn.NotFound, "upstream_not_found"},
		{"already_exists", "", turn.Upstream, "conversation_busy"},
		{"permission_denied", "", turn.Forbidden, "upstream_permission_denied"},
		{"resource_exhausted", "", turn.RateLimited, "upstream_resource_exhausted"},
		{"failed_precondition", "", turn.Upstream, "upstream_failed_precondition"},
		{"aborted", "", turn.Upstream, "upstream_aborted"},
		{"out_of_range", "", turn.Invalid, "upstream_out_of_range"},
		{"unimplemented", "", turn.Upstream, "upstream_unimplemented"},
		{"internal", "", turn.Upstream, "upstream_internal"},
		{"unavailable", "", turn.Overloaded, "upstream_unavailable"},
		{"data_loss", "", turn.Upstream, "upstream_data_loss"},
		{"unauthenticated", "", turn.Unauthorized, "upstream_unauthenticated"},
		{"unknown", detail("ERROR_NOT_LOGGED_IN", ""), turn.Unauthorized, "not_logged_in"},
		{"resource_exhausted", detail("ERROR_RATE_LIMITED", "Slow"), turn.RateLimited, "rate_limited"},
		{"not_found", detail("ERROR_BAD_MODEL_NAME", ""), turn.NotFound, "model_not_found"},
		{"internal", detail("ERROR_OUTDATED_CLIENT", ""), turn.Forbidden, "outdated_client"},
		{"resource_exhausted", detail("ERROR_GPT_4_VISION_PREVIEW_RATE_LIMIT", "Update Required"), turn.Forbidden, "outdated_client"},
		{"invalid_argument", detail("ERROR_CONVERSATION_TOO_LONG", ""), turn.ContextTooLong, "conversation_too_long"},
		{"failed_precondition", detail("ERROR_DEPRECATED", ""), turn.Upstream, "deprecated"},
		{"internal", detail("ERROR_CUSTOM_MESSAGE", "Title"), turn.Upstream, "upstream_internal"},
	} {
		t.Run(test.code+" "+test.name, func(t *testing.T) {
			t.Parallel()
			c := connect(t, script(fmt.Sprintf(`{"error":{"code":%q,"message":"Error"%s}}`, test.code, test.more)), nil)
			s, err := c.Run(t.Context(), "", user("go"))
			if err == nil {
				defer s.Close()
				_, _, _, err = finish(t, s, echo)
			}
			e := turn.AsError(err)
			if err == nil || e.Kind != test.kind || e.Code != test.name {
				t.Errorf("got kind %d, code %s: %v", e.Kind, e.Code, err)
			}
			if test.more != "" && !strings.Contains(e.Message, "why") {
				t.Errorf("the message is %q, without what the server said", e.Message)
			}
		})
	}
}

// TestBackPressure sends more than the queue takes to a stream that nobody reads: the
// server has to wait, and nothing is lost.
func TestBackPressure(t *testing.T) {
	t.Parallel()
	p := newPeer(t)
	s, c := p.open()
	const n = 400
	piece := strings.Repeat("x", 64<<10)
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		for range n {
			c.text(piece)
		}
		c.end()
	}()
	select {
	case <-sent:
		t.Fatal("25 MB were taken from the server, though nobody reads")
	case <-time.After(time.Second):
	}
	text, _, ended, err := finish(t, s, echo)
	if err != nil || len(text) != n*len(piece) || ended == nil {
		t.Errorf("got %d bytes of %d, %v", len(text), n*len(piece), err)
	}
}

// TestPending announces calls as models write them: they are pending until the request to
// run them comes, and those that the server runs itself never are.
func TestPending(t *testing.T) {
	t.Parallel()
	p := newPeer(t)
	s, c := p.open(withTool(p, "add"))
	step := 0
	sync := func() { // the stream has handled what was sent before
		t.Helper()
		step++
		text := fmt.Sprint(step)
		c.text(text)
		for {
			event, err := s.Next(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if got, ok := event.(turn.Text); ok && got.Text == text {
				return
			}
		}
	}
	announce := func(kind, id, tool string) {
		m := p.definitions.Server()
		m.At("interaction_update", kind).Set("call_id", id).At("tool_call", tool)
		c.send(m)
	}
	announce("tool_call_started", "web", "web_search_tool_call")
	if sync(); s.Pending() {
		t.Error("a call of the server's own is pending")
	}
	announce("partial_tool_call", "a", "mcp_tool_call")
	announce("partial_tool_call", "a", "mcp_tool_call")
	announce("tool_call_started", "b", "mcp_tool_call")
	if sync(); !s.Pending() {
		t.Error("no call is pending")
	}
	for i, id := range []string{"a\nmodel", "b"} {
		m := p.definitions.Server()
		m.At("exec_server_message").Set("id", i+1).At("mcp_args").Set("name", "add").Set("tool_call_id", id)
		c.send(m)
		if sync(); s.Pending() != (i == 0) {
			t.Errorf("after %d calls: pending = %t", i+1, s.Pending())
		}
	}
	c.end()
}

func TestUnreachableServer(t *testing.T) {
	t.Parallel()
	closed := httptest.NewServer(nil)
	closed.Close()
	for _, transport := range []string{agent.Auto, agent.HTTP2, agent.SSE} {
		c := connectTo(t, closed, transport)
		_, err := c.Run(t.Context(), "", user("go"))
		if e := turn.AsError(err); err == nil || e.Code != "upstream_unreachable" || !strings.Contains(e.Message, "connection refused") {
			t.Errorf("%s: got %v", transport, err)
		}
		if _, err = c.Models(t.Context()); turn.AsError(err).Code != "upstream_unreachable" {
			t.Errorf("%s: models: got %v", transport, err)
		}
	}
}

// TestTokenOfLaterCalls refreshes the token while a stream runs over the fallback: later
// messages carry the new one, and no error has either.
func TestTokenOfLaterCalls(t *testing.T) {
	t.Parallel()
	var calls atomic.Int64
	c := connect(t, script(`{"tool":{"name":"mcp","args":{"name":"add","toolName":"add"}}},{"turn_ended":{}}`), func(o *agent.Options) {
		o.Transport = agent.SSE
		o.Token = func(context.Context) (string, error) {
			if calls.Add(1) > 2 { // those of the opening
				return "another-token", nil
			}
			return token, nil
		}
	})
	_, _, _, err := finish(t, run(t, c, user("go", turn.Tool{Name: "add"})), echo)
	e := turn.AsError(err)
	if err == nil || e.Kind != turn.Unauthorized || strings.Contains(e.Message, "another-token") {
		t.Errorf("got %v, want that the second token is refused", err)
	}
}
