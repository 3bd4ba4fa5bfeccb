package agent_test

import (
	"context"
	"crypto/x509"
	"encoding/json"
	"errors"
	"io"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"unwire/proto"
	"unwire/replay/agent"
	"unwire/replay/agent/turn"
	"unwire/replay/standin"
)

// token is the bearer token that the stand-in wants.
const token = "a-token-for-the-stand-in"

// patience limits how long a test waits for what comes soon, unless the machine is busy.
const patience = time.Minute

// start runs a stand-in with a script, and returns it with the authorities to trust.
func start(t testing.TB, script string) (*standin.Server, *x509.CertPool) {
	t.Helper()
	o := standin.Options{Token: token}
	if script != "" {
		o.Script = []byte(script)
	}
	server, err := standin.New(o)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := server.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := errors.Join(server.Shutdown(ctx), <-served); err != nil {
			t.Error(err)
		}
	})
	pem, err := os.ReadFile(server.CAFile)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(pem)
	return server, roots
}

// connect returns a client of a new stand-in. change may change its options.
func connect(t testing.TB, script string, change func(*agent.Options)) *agent.Client {
	t.Helper()
	server, roots := start(t, script)
	u, err := url.Parse(server.URL())
	if err != nil {
		t.Fatal(err)
	}
	o := agent.Options{
		URL: u, RootCAs: roots, Profile: proto.Profile(), Transport: agent.HTTP2,
		Token: func(context.Context) (string, error) { return token, nil },
	}
	if change != nil {
		change(&o)
	}
	c, err := agent.New(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// user is a request of one message.
func user(text string, tools ...turn.Tool) *turn.Request {
	return &turn.Request{Model: "composer-1", Tools: tools, Messages: []turn.Message{{Role: turn.User, Parts: []turn.Part{{Text: text}}}}}
}

// run starts a turn that ends with the test.
func run(t testing.TB, c *agent.Client, r *turn.Request) *agent.Stream {
	t.Helper()
	s, err := c.Run(t.Context(), "", r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// answer returns the result of a call.
type answer func(turn.Call) turn.Result

// echo returns what a call was for.
func echo(c turn.Call) turn.Result {
	return turn.Result{CallID: c.ID, Parts: []turn.Part{{Text: c.Name + string(c.Arguments)}}}
}

// finish reads a turn to its end, and answers calls.
func finish(t testing.TB, s *agent.Stream, how answer) (text string, calls []turn.Call, ended *turn.Ended, err error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for {
		event, err := s.Next(ctx)
		if errors.Is(err, io.EOF) {
			return text, calls, ended, nil
		}
		if err != nil {
			return text, calls, ended, err
		}
		switch e := event.(type) {
		case turn.Text:
			text += e.Text
		case turn.Calling:
			calls = append(calls, e.Call)
			if err := s.Answer(how(e.Call)); err != nil {
				t.Fatal(err)
			}
		case turn.Ended:
			if ended != nil {
				t.Error("the turn ended twice")
			}
			ended = &e
		}
	}
}

// script returns a script of one turn.
func script(steps string) string {
	return `{"v":1,"turns":[{"name":"test","steps":[` + steps + `]}]}`
}

func TestRunAnnouncedTool(t *testing.T) {
	t.Parallel()
	c := connect(t, script(`
		{"thinking":"hm"},
		{"tool":{"name":"mcp","as":"a","args":{"name":"add","toolName":"add","providerIdentifier":"unwire","args":{"x":1,"y":[true,null,"z"]}},"require":"success","args_split":10}},
		{"text":"It is done.","split":[2]},
		{"tokens":7},{"kv_set":{"data":"note","as":"n"}},{"kv_get":{"blob":"n"}},{"checkpoint":{}},
		{"turn_ended":{"inputTokens":"10","outputTokens":"5"}}`), nil)
	s := run(t, c, user("go", turn.Tool{Name: "add", Schema: json.RawMessage(`{"type":"object","properties":{"x":{"type":"number"}}}`)}))
	text, calls, ended, err := finish(t, s, echo)
	if err != nil {
		t.Fatal(err)
	}
	if len(calls) != 1 || calls[0].Name != "add" || string(calls[0].Arguments) != `{"x":1,"y":[true,null,"z"]}` || calls[0].ID == "" {
		t.Errorf("calls = %+v", calls)
	}
	if text != "It is done." {
		t.Errorf("text = %q, want all of it", text)
	}
	if ended == nil || ended.Reason != turn.Finished || ended.Usage == nil || *ended.Usage != (turn.Usage{Input: 10, Output: 5}) {
		t.Errorf("ended = %+v", ended)
	}
	if s.Pending() || len(s.Conversation()) != 36 {
		t.Errorf("pending = %t, conversation = %q", s.Pending(), s.Conversation())
	}
}

func TestStreamsThatBreak(t *testing.T) {
	t.Parallel()
	c := connect(t, "", nil)
	for prompt, code := range map[string]string{"fault:error": "rate_limited", "fault:reset": "", "fault:drop-end": "no_end_of_stream"} {
		t.Run(prompt, func(t *testing.T) {
			t.Parallel()
			_, _, ended, err := finish(t, run(t, c, user(prompt)), echo)
			var e *turn.Error
			if !errors.As(err, &e) || ended != nil {
				t.Fatalf("got %v and %v, want an error alone", ended, err)
			}
			if code != "" && e.Code != code {
				t.Errorf("code = %s (%v), want %s", e.Code, e, code)
			}
		})
	}
}

func TestStreamWithoutTurnEnded(t *testing.T) {
	t.Parallel()
	c := connect(t, script(`{"text":"hello"}`), nil)
	text, _, ended, err := finish(t, run(t, c, user("go")), echo)
	if e := turn.AsError(err); err == nil || e.Code != "no_turn_ended" || ended != nil || text != "hello" {
		t.Errorf("got %q, %v and %v", text, ended, err)
	}
}

func TestRefusedTokenIsNotShown(t *testing.T) {
	t.Parallel()
	const secret = "eyJzZWNyZXQ"
	c := connect(t, "", func(o *agent.Options) {
		o.Token = func(context.Context) (string, error) { return secret, nil }
	})
	s, err := c.Run(t.Context(), "", user("go"))
	if err == nil {
		_, _, _, err = finish(t, s, echo)
		s.Close()
	}
	e := turn.AsError(err)
	if err == nil || e.Kind != turn.Unauthorized || strings.Contains(e.Message, secret) {
		t.Errorf("got %v, want unauthorized", err)
	}
}

// TestStandinContinuesCold leaves a turn with a call open, and goes on with its result in
// a new stream: the stand-in reads the transcript from the blobs, does not ask again, and
// comes to the end.
func TestStandinContinuesCold(t *testing.T) {
	t.Parallel()
	c := connect(t, script(`{"text":"First."},
		{"tool":{"name":"mcp","args":{"name":"add","toolName":"add","args":{"x":1}}}},
		{"tool":{"name":"mcp","args":{"name":"add","toolName":"add","args":{"x":2}}}},
		{"text":"Done."},{"turn_ended":{}}`), nil)
	r := user("go", turn.Tool{Name: "add"})
	s := run(t, c, r)
	var open *turn.Call
	for open == nil {
		event, err := s.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if calling, ok := event.(turn.Calling); ok {
			open = &calling.Call
		}
	}
	s.Close()
	r.Messages = append(r.Messages,
		turn.Message{Role: turn.Assistant, Parts: []turn.Part{{Text: "First."}, {Call: open}}},
		turn.Message{Role: turn.ToolRole, Parts: []turn.Part{{Result: &turn.Result{CallID: open.ID, Parts: []turn.Part{{Text: "1"}}}}}})
	text, calls, ended, err := finish(t, run(t, c, r), echo)
	if err != nil || text != "Done." || len(calls) != 1 || string(calls[0].Arguments) != `{"x":2}` || ended == nil {
		t.Errorf("got %q, %+v, %v", text, calls, err)
	}
}
