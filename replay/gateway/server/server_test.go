package server_test

import (
	"bytes"
	"context"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"unwire/captures"
	"unwire/captures/store"
	"unwire/proto"
	"unwire/replay/agent"
	"unwire/replay/agent/turn"
	"unwire/replay/gateway"
	"unwire/replay/gateway/server"
	"unwire/replay/standin"
)

const (
	key           = "uw-key-of-this-test"
	upstreamToken = "upstream-token-of-this-test"
)

// An upstream is the agent's client as a gateway.Upstream.
type upstream struct{ client *agent.Client }

func (u upstream) Models(ctx context.Context) ([]turn.Model, error) { return u.client.Models(ctx) }

func (u upstream) Run(ctx context.Context, r *turn.Request) (gateway.Stream, error) {
	s, err := u.client.Run(ctx, "", r)
	if err != nil {
		return nil, err
	}
	return s, nil
}

// A fixture is a server in front of a stand-in.
type fixture struct {
	url     string
	server  *server.Server
	core    *gateway.Core
	client  *agent.Client
	standin *standin.Server
}

// start starts a server with a script for the stand-in; "" is the built-in one.
func start(t testing.TB, script string, o server.Options, g gateway.Options) *fixture {
	t.Helper()
	so := standin.Options{Seed: 1, Token: upstreamToken}
	if script != "" {
		so.Script = []byte(script)
	}
	s, err := standin.New(so)
	if err != nil {
		t.Fatal(err)
	}
	ln, err := s.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = s.Serve(ln) }()
	t.Cleanup(func() { _ = s.Shutdown(context.Background()) })

	u, err := url.Parse(s.URL())
	if err != nil {
		t.Fatal(err)
	}
	pem, err := os.ReadFile(s.CAFile)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(pem)
	client, err := agent.New(t.Context(), agent.Options{
		URL: u, Profile: proto.Profile(), RootCAs: roots, Recorder: o.Recorder,
		Token: func(context.Context) (string, error) { return upstreamToken, nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)

	core := gateway.New(upstream{client}, g)
	o.Keys = append(o.Keys, key)
	srv, err := server.New(core, o)
	if err != nil {
		t.Fatal(err)
	}
	front, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- srv.Serve(front) }()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := srv.Shutdown(ctx); err != nil {
			t.Errorf("Shutdown: %v", err)
		}
		if err := <-served; err != nil {
			t.Errorf("Serve: %v", err)
		}
	})
	return &fixture{url: "http://" + front.Addr().String(), server: srv, core: core, client: client, standin: s}
}

// do sends a request with the key, unless header says otherwise, and returns the answer.
func (f *fixture) do(t testing.TB, method, path, body string, header ...string) (*http.Response, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, f.url+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+key)
	for i := 0; i < len(header); i += 2 {
		switch {
		case header[i] == "Host":
			req.Host = header[i+1]
		case header[i+1] == "":
			req.Header.Del(header[i])
		default:
			req.Header.Set(header[i], header[i+1])
		}
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp, string(data)
}

const chatRequest = `{"model":"composer-1","messages":[{"role":"user","content":"Hello"}]}`

func TestKeys(t *testing.T) {
	t.Parallel()
	f := start(t, "", server.Options{Keys: []string{"second-key"}}, gateway.Options{})
	for _, tt := range []struct {
		name   string
		header []string
		status int
	}{
		{"bearer", nil, 200},
		{"x-api-key", []string{"Authorization", "", "X-Api-Key", key}, 200},
		{"second", []string{"Authorization", "Bearer second-key"}, 200},
		{"none", []string{"Authorization", ""}, 401},
		{"wrong", []string{"Authorization", "Bearer " + key + "x"}, 401},
		{"empty", []string{"Authorization", "Bearer "}, 401},
		{"basic", []string{"Authorization", "Basic " + key}, 401},
	} {
		for path, shape := range map[string]string{"/v1/models": `{"error":{"message":`, "/v1/messages/count_tokens": `{"type":"error","error":{"type":"authentication_error"`} {
			method, body := http.MethodGet, ""
			if path != "/v1/models" {
				method, body = http.MethodPost, "{}"
			}
			resp, answer := f.do(t, method, path, body, tt.header...)
			if tt.status == 200 && resp.StatusCode == 401 || tt.status == 401 && (resp.StatusCode != 401 || !strings.Contains(answer, shape)) {
				t.Errorf("%s, %s: got %d %s, want %d", tt.name, path, resp.StatusCode, answer, tt.status)
			}
			if strings.Contains(answer, key) {
				t.Errorf("%s, %s: the answer shows the key: %s", tt.name, path, answer)
			}
		}
	}
}

func TestPagesOfOthers(t *testing.T) {
	t.Parallel()
	f := start(t, "", server.Options{Origins: []string{"http://localhost:3000"}}, gateway.Options{})
	for _, tt := range []struct {
		name   string
		header []string
		status int
	}{
		{"loopback", nil, 200},
		{"localhost", []string{"Host", "localhost:8787"}, 200},
		{"IPv6", []string{"Host", "[::1]:8787"}, 200},
		{"DNS rebinding", []string{"Host", "evil.example"}, 403},
		{"name that looks alike", []string{"Host", "localhost.evil.example"}, 403},
		{"another address", []string{"Host", "192.168.1.1:8787"}, 403},
		{"page", []string{"Origin", "https://evil.example"}, 403},
		{"null origin", []string{"Origin", "null"}, 403},
		{"allowed page", []string{"Origin", "http://localhost:3000"}, 200},
	} {
		resp, answer := f.do(t, http.MethodGet, "/v1/models", "", tt.header...)
		if resp.StatusCode != tt.status {
			t.Errorf("%s: got %d %s, want %d", tt.name, resp.StatusCode, answer, tt.status)
		}
		if got := resp.Header.Get("Access-Control-Allow-Origin"); (got != "") != (tt.name == "allowed page") {
			t.Errorf("%s: Access-Control-Allow-Origin is %q", tt.name, got)
		}
	}
	resp, _ := f.do(t, http.MethodOptions, "/v1/chat/completions", "", "Authorization", "", "Origin", "http://localhost:3000",
		"Access-Control-Request-Method", "POST", "Access-Control-Request-Headers", "authorization,content-type")
	if resp.StatusCode != 204 || resp.Header.Get("Access-Control-Allow-Headers") != "authorization,content-type" {
		t.Errorf("the preflight got %d %v", resp.StatusCode, resp.Header)
	}
}

func TestHealthAndMetrics(t *testing.T) {
	t.Parallel()
	f := start(t, "", server.Options{}, gateway.Options{})
	if resp, answer := f.do(t, http.MethodGet, "/healthz", "", "Authorization", ""); resp.StatusCode != 200 || answer != "{\"status\":\"ok\"}\n" {
		t.Errorf("/healthz: %d %s", resp.StatusCode, answer)
	}
	if resp, _ := f.do(t, http.MethodGet, "/metrics", "", "Authorization", ""); resp.StatusCode != 401 {
		t.Errorf("/metrics without the key: %d", resp.StatusCode)
	}
	if resp, answer := f.do(t, http.MethodPost, "/v1/chat/completions", chatRequest); resp.StatusCode != 200 {
		t.Fatalf("%d %s", resp.StatusCode, answer)
	}
	_, answer := f.do(t, http.MethodGet, "/metrics", "")
	for _, line := range []string{`unwire_streams_opened_total{cause="new"} 1`, `unwire_responses_total{end="finished"} 1`, "unwire_sessions_parked 0"} {
		if !strings.Contains(answer, line+"\n") {
			t.Errorf("the metrics have no line %q:\n%s", line, answer)
		}
	}
}

func TestUnknownPath(t *testing.T) {
	t.Parallel()
	f := start(t, "", server.Options{}, gateway.Options{})
	for _, path := range []string{"/", "/v1", "/v1/embeddings", "/v1/messages/x/y", "/v1/responses/x/y"} {
		resp, answer := f.do(t, http.MethodGet, path, "")
		if resp.StatusCode != 404 && resp.StatusCode != 405 || !strings.Contains(answer, `"error"`) {
			t.Errorf("%s: %d %s", path, resp.StatusCode, answer)
		}
	}
}

func TestModelsInBothForms(t *testing.T) {
	t.Parallel()
	f := start(t, "", server.Options{}, gateway.Options{})
	if _, answer := f.do(t, http.MethodGet, "/v1/models", ""); !strings.Contains(answer, `"object":"list"`) || !strings.Contains(answer, `"id":"composer-1"`) {
		t.Errorf("OpenAI's form: %s", answer)
	}
	if _, answer := f.do(t, http.MethodGet, "/v1/models", "", "anthropic-version", "2023-06-01"); !strings.Contains(answer, `"type":"model"`) || !strings.Contains(answer, `"has_more":false`) {
		t.Errorf("Anthropic's form: %s", answer)
	}
}

func TestHugeBody(t *testing.T) {
	t.Parallel()
	f := start(t, "", server.Options{}, gateway.Options{})
	body := `{"model":"` + strings.Repeat("x", 21<<20) + `"}`
	for path, shape := range map[string]string{
		"/v1/chat/completions": `{"error":{"message":`, "/v1/responses": `{"error":{"message":`, "/v1/messages": `{"type":"error"`,
	} {
		resp, answer := f.do(t, http.MethodPost, path, body, "anthropic-version", "2023-06-01")
		if resp.StatusCode != http.StatusRequestEntityTooLarge || !strings.HasPrefix(answer, shape) {
			t.Errorf("%s: %d %.200s", path, resp.StatusCode, answer)
		}
	}
}

// TestRecorded records a request and the stream that answers it, and looks for the two
// secrets in everything that was written.
func TestRecorded(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "serve.uwc")
	capture, err := store.Create(file, store.Options{Profile: proto.Profile()})
	if err != nil {
		t.Fatal(err)
	}
	f := start(t, "", server.Options{Recorder: capture}, gateway.Options{})
	if resp, answer := f.do(t, http.MethodPost, "/v1/chat/completions", chatRequest); resp.StatusCode != 200 {
		t.Fatalf("%d %s", resp.StatusCode, answer)
	}
	f.core.Shutdown(t.Context())
	if err := capture.Close(); err != nil {
		t.Fatal(err)
	}

	read, err := store.Open(file, store.ReadOptions{Profile: proto.Profile()})
	if err != nil {
		t.Fatal(err)
	}
	defer read.Close()
	var frontID, streamID int64
	for ex, err := range read.Exchanges(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		switch {
		case strings.HasSuffix(ex.URL, "/v1/chat/completions"):
			frontID = ex.ID
			if ex.Status != 200 || ex.Outcome != captures.Complete || ex.BytesUp == 0 || ex.BytesDown == 0 {
				t.Errorf("the request is recorded as %+v", ex)
			}
		case strings.HasSuffix(ex.URL, "/Run"):
			streamID = ex.ID
			if ex.Outcome != captures.Complete {
				t.Errorf("the stream is recorded as %+v", ex)
			}
		}
	}
	relations, err := read.Relations(t.Context(), frontID)
	if err != nil {
		t.Fatal(err)
	}
	if len(relations) != 1 || relations[0].Kind != captures.FrontEndOf || relations[0].Target != streamID || streamID == 0 {
		t.Errorf("request %d has the relations %+v, want one to stream %d", frontID, relations, streamID)
	}
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, secret := range []string{key, upstreamToken} {
		if bytes.Contains(data, []byte(secret)) {
			t.Errorf("the capture holds %q", secret)
		}
	}
}

// TestShutdownDrains ends the server while a response is running: the response ends well.
func TestShutdownDrains(t *testing.T) {
	t.Parallel()
	f := start(t, `{"v":1,"turns":[{"steps":[{"text":"one "},{"wait":{"ms":2000}},{"text":"two"},{"turn_ended":{}}]}]}`, server.Options{}, gateway.Options{})
	answered := make(chan string, 1)
	go func() {
		_, answer := f.do(t, http.MethodPost, "/v1/chat/completions", chatRequest)
		answered <- answer
	}()
	for f.core.Counts().Running == 0 {
		time.Sleep(time.Millisecond)
	}
	if err := f.server.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	var answer struct {
		Choices []struct {
			Message struct{ Content string }
		}
	}
	text := <-answered
	if err := json.Unmarshal([]byte(text), &answer); err != nil || len(answer.Choices) != 1 || answer.Choices[0].Message.Content != "one two" {
		t.Errorf("the running request got %s", text)
	}
}

// TestOutlastsTheReadDeadline keeps a response open for longer than a body may take; see
// timedBody.
func TestOutlastsTheReadDeadline(t *testing.T) {
	t.Parallel()
	f := start(t, `{"v":1,"turns":[{"steps":[{"text":"one "},{"wait":{"ms":900}},{"text":"two"},{"turn_ended":{}}]}]}`, server.Options{BodyTime: 300 * time.Millisecond}, gateway.Options{})
	resp, answer := f.do(t, http.MethodPost, "/v1/chat/completions", chatRequest)
	if resp.StatusCode != 200 || !strings.Contains(answer, "one two") {
		t.Errorf("got %d %s", resp.StatusCode, answer)
	}
}

// TestSlowBody sends a body that does not end: the request fails in time.
func TestSlowBody(t *testing.T) {
	t.Parallel()
	f := start(t, "", server.Options{BodyTime: 200 * time.Millisecond}, gateway.Options{})
	body, end := io.Pipe()
	defer end.Close()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, f.url+"/v1/chat/completions", body)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+key)
	started := time.Now()
	if resp, err := http.DefaultClient.Do(req); err == nil {
		resp.Body.Close()
		if resp.StatusCode < 400 {
			t.Errorf("it was answered with %d", resp.StatusCode)
		}
	}
	if took := time.Since(started); took > 10*time.Second {
		t.Errorf("it took %v", took)
	}
}

func TestNoKeys(t *testing.T) {
	t.Parallel()
	core := gateway.New(upstream{}, gateway.Options{})
	for _, keys := range [][]string{nil, {""}} {
		if _, err := server.New(core, server.Options{Keys: keys}); err == nil {
			t.Errorf("a server with the keys %q was made", keys)
		}
	}
}

// toolRequest asks for a task with a tool; messages go on from the ones before.
func toolRequest(stream bool, messages ...string) string {
	return fmt.Sprintf(`{"model":"composer-1","stream":%v,"messages":[%s],"tools":[{"type":"function","function":{"name":"look","description":"Looks something up.","parameters":{"type":"object","properties":{"what":{"type":"string"}}}}}]}`,
		stream, strings.Join(messages, ","))
}
