package standin

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"
)

const testToken = "tok-4711"

// patience limits how long a test waits for what comes soon, unless the machine is busy.
const patience = time.Minute

// fileText is what the tests' client says is in any file.
const fileText = "package retry\n\nfunc Backoff() {}\n"

// start serves until the test ends.
func start(t testing.TB, o Options, around ...func(http.Handler) http.Handler) *Server {
	t.Helper()
	s, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	for _, wrap := range around {
		s.http.Handler = wrap(s.http.Handler)
	}
	l, err := s.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	serve(t, s, l)
	return s
}

// serve serves the connections of a listener until the test ends.
func serve(t testing.TB, s *Server, l net.Listener) {
	t.Helper()
	done := make(chan error, 1)
	go func() { done <- s.Serve(l) }()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := s.Shutdown(ctx); err != nil {
			t.Errorf("Shutdown: %v", err)
		}
		if err := <-done; err != nil {
			t.Errorf("Serve: %v", err)
		}
	})
}

// httpClient trusts the server and speaks one version of HTTP.
func httpClient(t testing.TB, s *Server, http2 bool) *http.Client {
	t.Helper()
	ca, err := os.ReadFile(s.CAFile)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(ca) {
		t.Fatal("the CA file contains no certificate")
	}
	tr := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}, Protocols: new(http.Protocols)}
	tr.Protocols.SetHTTP1(!http2)
	tr.Protocols.SetHTTP2(http2)
	t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr}
}

// rpc makes a connect-go client of one method, whose messages are built from the
// server's own descriptors.
func rpc(t testing.TB, s *Server, c *http.Client, procedure string, o ...connect.ClientOption) (*connect.Client[message, message], protoreflect.MethodDescriptor) {
	t.Helper()
	service, method, _ := strings.Cut(strings.TrimPrefix(procedure, "/"), "/")
	md := s.api.Method(service, method)
	if md == nil {
		t.Fatalf("proto/ has no method %s", procedure)
	}
	o = append([]connect.ClientOption{
		connect.WithSchema(md),
		connect.WithResponseInitializer(func(_ connect.Spec, v any) error {
			if m, ok := v.(*message); ok {
				*m = *dynamicpb.NewMessage(md.Output())
			}
			return nil
		}),
	}, o...)
	return connect.NewClient[message, message](c, s.URL()+procedure, o...), md
}

func build(t testing.TB, md protoreflect.MessageDescriptor, text string) *message {
	t.Helper()
	m := dynamicpb.NewMessage(md)
	if err := protojson.Unmarshal([]byte(text), m); err != nil {
		t.Fatalf("%s: %v", md.FullName(), err)
	}
	return m
}

func headers(h http.Header) {
	h.Set("authorization", "Bearer "+testToken)
	h.Set("x-cursor-client-version", "cli-2026.02.01-abcdef0")
	h.Set("x-request-id", "9a2a0a4e-0000-4000-8000-000000000001")
}

// A player answers what a turn asks of its client.
type player struct {
	t      testing.TB
	api    *api
	blobs  map[string][]byte
	prompt string
	mute   bool // never answers
	wrong  bool // answers with errors
	// request is merged into the run request; JSON.
	request string
	// tools answer calls of the client's own tools, by name, with McpResult in JSON.
	tools map[string]string
	// kept are blobs that the client has from the start.
	kept [][]byte
}

func (p *player) first() *message {
	text, err := json.Marshal(p.prompt)
	if err != nil {
		p.t.Fatal(err)
	}
	first := build(p.t, p.api.client, `{"runRequest":{"action":{"userMessageAction":{"userMessage":{"text":`+string(text)+`,"messageId":"m-1"}}},
		"modelDetails":{"modelId":"composer-1"},"conversationId":"c-1"}}`)
	if p.request != "" {
		proto.Merge(first, build(p.t, p.api.client, `{"runRequest":`+p.request+`}`))
	}
	return first
}

// answers returns what the client says to a server message.
func (p *player) answers(m *message) (list []*message) {
	kind, inner := member(m)
	if p.mute {
		return nil
	}
	root := dynamicpb.NewMessage(p.api.client)
	switch kind {
	case "exec_server_message":
		out := within(root, "exec_client_message")
		id := uint32(get(inner, "id").Uint())
		set(out, "id", id)
		switch {
		case p.wrong:
			set(within(out, "read_result", "file_not_found"), "path", "gone.go")
		case has(inner, "read_args"):
			ok := within(out, "read_result", "success")
			set(ok, "path", get(inner, "read_args", "path").String())
			set(ok, "content", fileText)
			set(ok, "total_lines", int32(strings.Count(fileText, "\n")))
		case has(inner, "shell_stream_args"):
			for i, text := range []string{"ok  ", "retry\n"} {
				event := dynamicpb.NewMessage(p.api.client)
				ex := within(event, "exec_client_message")
				set(ex, "id", id)
				set(within(ex, "shell_stream", "stdout"), "data", text)
				list = append(list, event)
				_ = i
			}
			within(out, "shell_stream", "exit")
		case has(inner, "mcp_args"):
			name := get(inner, "mcp_args", "tool_name").String()
			answer, known := p.tools[name]
			if !known {
				answer = `{"toolNotFound":{"name":"` + name + `"}}`
			}
			result := out.Descriptor().Fields().ByName("mcp_result")
			out.Set(result, protoreflect.ValueOfMessage(build(p.t, result.Message(), answer)))
		case has(inner, "shell_args"):
			return nil // it takes its time
		case has(inner, "request_context_args"):
			result := out.Descriptor().Fields().ByName("request_context_result")
			out.Set(result, protoreflect.ValueOfMessage(build(p.t, result.Message(), p.tools["request_context"])))
		default:
			p.t.Errorf("no rule to answer %v", inner)
		}
		closed := dynamicpb.NewMessage(p.api.client)
		set(within(closed, "exec_client_control_message", "stream_close"), "id", id)
		return append(list, root, closed)
	case "interaction_query":
		out := within(root, "interaction_response")
		set(out, "id", uint32(get(inner, "id").Uint()))
		query, _ := member(inner)
		number := inner.Descriptor().Fields().ByName(query).Number()
		out.Mutable(out.Descriptor().Fields().ByNumber(number))
		return []*message{root}
	case "kv_server_message":
		out := within(root, "kv_client_message")
		set(out, "id", uint32(get(inner, "id").Uint()))
		if has(inner, "set_blob_args") {
			id, data := get(inner, "set_blob_args", "blob_id").Bytes(), get(inner, "set_blob_args", "blob_data").Bytes()
			if sum := sha256.Sum256(data); !bytes.Equal(sum[:], id) {
				p.t.Errorf("blob id %x is not the SHA-256 of the blob", id)
			}
			p.blobs[string(id)] = bytes.Clone(data)
			within(out, "set_blob_result")
		} else {
			data, known := p.blobs[string(get(inner, "get_blob_args", "blob_id").Bytes())]
			if !known && !p.wrong {
				within(out, "get_blob_result")
				return []*message{root}
			}
			if p.wrong {
				data = []byte("something else")
			}
			set(within(out, "get_blob_result"), "blob_data", data)
		}
		return []*message{root}
	}
	return nil
}

// run plays one turn over Run and returns the server's messages.
func run(t testing.TB, s *Server, p *player) ([]*message, error) {
	t.Helper()
	return runWith(t, s, httpClient(t, s, true), p)
}

func runWith(t testing.TB, s *Server, hc *http.Client, p *player, o ...connect.ClientOption) (got []*message, err error) {
	t.Helper()
	p.t, p.api, p.blobs = t, s.api, map[string][]byte{}
	for _, data := range p.kept {
		id := sha256.Sum256(data)
		p.blobs[string(id[:])] = data
	}
	c, _ := rpc(t, s, hc, procedureRun, o...)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	stream := c.CallBidiStream(ctx)
	headers(stream.RequestHeader())
	if err := stream.Send(p.first()); err != nil && !errors.Is(err, io.EOF) {
		t.Fatal(err)
	}
	for {
		m, err := stream.Receive()
		if errors.Is(err, io.EOF) {
			return got, errors.Join(stream.CloseRequest(), stream.CloseResponse())
		}
		if err != nil {
			_ = stream.CloseRequest()
			_ = stream.CloseResponse()
			return got, err
		}
		got = append(got, m)
		for _, a := range p.answers(m) {
			if err := stream.Send(a); err != nil && !errors.Is(err, io.EOF) {
				t.Fatal(err)
			}
		}
	}
}

// answerOf joins the text deltas, and kindsOf names the messages in order.
func answerOf(list []*message) string {
	var b strings.Builder
	for _, m := range list {
		if has(m, "interaction_update", "text_delta") {
			b.WriteString(get(m, "interaction_update", "text_delta", "text").String())
		}
	}
	return b.String()
}

func kindsOf(list []*message) (kinds []string) {
	for _, m := range list {
		kind, inner := member(m)
		if kind == "interaction_update" {
			kind, _ = member(inner)
		}
		if len(kinds) == 0 || kinds[len(kinds)-1] != string(kind) {
			kinds = append(kinds, string(kind))
		}
	}
	return kinds
}

func TestRunPlaysTheDefaultTurn(t *testing.T) {
	s := start(t, Options{Token: testToken})
	got, err := run(t, s, &player{prompt: "What does Backoff do?"})
	if err != nil {
		t.Fatal(err)
	}
	want := "heartbeat user_message_appended kv_server_message thinking_delta thinking_completed partial_tool_call tool_call_started exec_server_message tool_call_completed " +
		"token_delta thinking_delta thinking_completed text_delta token_delta kv_server_message conversation_checkpoint_update turn_ended"
	if have := strings.Join(kindsOf(got), " "); have != want {
		t.Errorf("messages\n %s\nwant\n %s", have, want)
	}
	answer := answerOf(got)
	if !strings.HasPrefix(answer, "`Backoff` says how long") || !strings.Contains(answer, "The file is 3 lines long") {
		t.Errorf("answer %q", answer)
	}
	for _, m := range got {
		if has(m, "interaction_update", "tool_call_completed") {
			path := get(m, "interaction_update", "tool_call_completed", "tool_call", "read_tool_call", "args", "path").String()
			if path != "internal/retry/backoff.go" {
				t.Errorf("the completed call shows path %q", path)
			}
		}
	}
}

// A recorder keeps the bytes of response bodies.
type recorder struct {
	next http.RoundTripper
	body bytes.Buffer
}

func (r *recorder) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := r.next.RoundTrip(req)
	if err == nil {
		resp.Body = struct {
			io.Reader
			io.Closer
		}{io.TeeReader(resp.Body, &r.body), resp.Body}
	}
	return resp, err
}

func TestSameSeedSameBytes(t *testing.T) {
	play := func(seed uint64, prompt string) string {
		s := start(t, Options{Seed: seed})
		hc := httpClient(t, s, true)
		rec := &recorder{next: hc.Transport}
		if _, err := runWith(t, s, &http.Client{Transport: rec}, &player{prompt: prompt}); err != nil {
			t.Fatal(err)
		}
		if rec.body.Len() < 2000 {
			t.Fatalf("only %d bytes were recorded", rec.body.Len())
		}
		return rec.body.String()
	}
	first := play(7, "What does Backoff do?")
	if play(7, "What does Backoff do?") != first {
		t.Error("the same seed, script and client gave different bytes")
	}
	if play(8, "What does Backoff do?") == first {
		t.Error("another seed gave the same bytes")
	}
}
