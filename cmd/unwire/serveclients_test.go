package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"image"
	"image/png"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"unwire/captures/need"
	"unwire/replay/standin"
)

// A servedClient is a program that can use unwire serve.
type servedClient struct {
	name string
	// prepare returns the command that asks a question in the folder dir. next says that
	// it is a second question in the same conversation.
	prepare func(t *testing.T, s *served, dir string) func(prompt string, next bool) *exec.Cmd
	// titles is how many conversations the client opens besides, such as one for a title.
	titles int
	// continues says that the command can ask a second question.
	continues bool
}

const (
	servedKey   = "uw-key-of-the-test"
	servedToken = "token-of-the-stand-in"
	agentsDir   = "testdata/serve"
	sdksDir     = "../../replay/gateway/testdata/sdk"
)

// servedClients are real clients of the three APIs. Those on Node are scripts that run a
// tool of their own; the others are coding agents, which run theirs.
var servedClients = []servedClient{
	{name: "claude", prepare: prepareClaude, continues: true},
	{name: "codex", prepare: prepareCodex, continues: true},
	{name: "opencode", prepare: prepareOpencode, titles: 1, continues: true},
	{name: "openai-chat", prepare: prepareNode("tools-openai-chat.mjs")},
	{name: "openai-responses", prepare: prepareNode("tools-openai-responses.mjs")},
	{name: "ai", prepare: prepareNode("tools-ai.mjs")},
	{name: "langchain", prepare: prepareNode("tools-langchain.mjs")},
	{name: "anthropic", prepare: prepareNode("tools-anthropic.mjs")},
}

// demoAnswer is the stand-in's answer to the tools demo. It quotes what the tools
// returned: sums that a shell has computed.
var demoAnswer = regexp.MustCompile(`(?s)In a row: .*first 42.*second 48.*third 54.*At once: .*left 2.*middle 4.*right 6`)

// TestServedClients runs a conversation of six tool calls with each client: three in a
// row, and three at once. The tools really run, the last answer is right, and the
// conversation takes one stream of the upstream.
func TestServedClients(t *testing.T) {
	t.Parallel()
	for _, c := range servedClients {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := startServed(t, `{"v":1}`)
			ask := c.prepare(t, s, t.TempDir())
			out := s.ask(t, ask("Run the tools demo.", false))
			s.check(t, out, 1+c.titles, 1)
		})
	}
}

// TestServedClientsLong has what takes longer.
func TestServedClientsLong(t *testing.T) {
	t.Parallel()
	if os.Getenv("UNWIRE_LONG") == "" {
		return // CI takes a skipped test for a tool that is missing
	}
	for _, c := range servedClients {
		// A task costs one start of the upstream, not one for each request.
		t.Run("slow/"+c.name, func(t *testing.T) {
			t.Parallel()
			s := startServed(t, `{"v":1,"bootstrap_ms":6000}`)
			ask := c.prepare(t, s, t.TempDir())
			s.check(t, s.ask(t, ask("Run the tools demo.", false)), 1+c.titles, 1)
		})
		t.Run("sse/"+c.name, func(t *testing.T) {
			t.Parallel()
			s := startServed(t, `{"v":1}`, "--transport", "sse")
			ask := c.prepare(t, s, t.TempDir())
			s.check(t, s.ask(t, ask("Run the tools demo.", false)), 1+c.titles, 1)
		})
		t.Run("without sessions/"+c.name, func(t *testing.T) {
			t.Parallel()
			s := startServed(t, `{"v":1}`, "--reuse=off")
			ask := c.prepare(t, s, t.TempDir())
			if out := s.ask(t, ask("Run the tools demo.", false)); !demoAnswer.MatchString(out) {
				t.Errorf("the client printed %q, want the tools' results", out)
			}
			if n := s.standin.Stats(); n.Streams.Opened != 5+c.titles {
				t.Errorf("the upstream has %d streams, want one for each of %d requests", n.Streams.Opened, 5+c.titles)
			}
		})
		if !c.continues {
			continue
		}
		// The client's tool returns a picture, which reaches the upstream as it is. opencode
		// sends it in a message of its user.
		t.Run("image/"+c.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			var picture bytes.Buffer
			if err := png.Encode(&picture, image.NewGray(image.Rect(0, 0, 8, 8))); err != nil {
				t.Fatal(err)
			}
			path := filepath.Join(dir, "picture.png")
			writeFile(t, path, picture.String())
			s := startServed(t, servedScript(t, fmt.Sprintf(`{"when":"look","with_tools":true,"steps":[{"tool":{"name":"mcp","as":"seen","any":[
				{"name":"Read","args":{"file_path":%[1]q}}, {"name":"read","args":{"filePath":%[1]q}}, {"name":"view_image","args":{"path":%[1]q}}]}},
				{"text":"seen: ${seen.images}"},{"turn_ended":{}}]}`, path),
				`{"when":"Attached media","steps":[{"text":"seen: ${images}"},{"turn_ended":{}}]}`))
			ask := c.prepare(t, s, dir)
			out := s.ask(t, ask("Please look.", false))
			if want := fmt.Sprintf("seen: image/png, %d bytes, sha256 %x", picture.Len(), sha256.Sum256(picture.Bytes())); !strings.Contains(out, want) {
				t.Errorf("the client printed %q, want %q", out, want)
			}
		})
		// The first question's call stays without a result in the client's history.
		t.Run("interrupted/"+c.name, func(t *testing.T) {
			t.Parallel()
			s := startServed(t, servedScript(t, `{"when":"nap","with_tools":true,"steps":[{"text":"Good night. "},{"tool":{"name":"mcp","as":"nap","any":[
				{"name":"Bash","args":{"command":"touch asleep; sleep 100","description":"Sleep"}}, {"name":"bash","args":{"command":"touch asleep; sleep 100","description":"Sleep"}},
				{"name":"exec_command","args":{"cmd":"touch asleep; sleep 100"}}]}},{"text":"Good morning."},{"turn_ended":{}}]}`))
			dir := t.TempDir()
			ask := c.prepare(t, s, dir)
			s.interrupt(t, ask("Take a nap.", false), filepath.Join(dir, "asleep"))
			if out := s.ask(t, ask("Run the tools demo.", true)); !demoAnswer.MatchString(out) {
				t.Errorf("the client printed %q, want the tools' results", out)
			}
			if n := s.standin.Stats(); n.Streams.Opened != 2+c.titles || n.Streams.Open != 0 {
				t.Errorf("the upstream has %d streams, %d of them open; want %d", n.Streams.Opened, n.Streams.Open, 2+c.titles)
			}
		})
		// The second question has the first one's calls and results in its history.
		t.Run("continued/"+c.name, func(t *testing.T) {
			t.Parallel()
			s := startServed(t, `{"v":1}`)
			ask := c.prepare(t, s, t.TempDir())
			s.check(t, s.ask(t, ask("Run the tools demo.", false)), 1+c.titles, 1)
			s.check(t, s.ask(t, ask("Run the tools demo again.", true)), 2+c.titles, 2)
		})
	}
	t.Run("recorded", testServedRecording)
	t.Run("known model", testServedKnownModel)
	t.Run("deferred tools", testServedDeferredTools)
}

// servedScript returns the default script with some turns before the others.
func servedScript(t *testing.T, first ...string) string {
	t.Helper()
	var script map[string]json.RawMessage
	var turns []json.RawMessage
	err := json.Unmarshal(standin.DefaultScript(), &script)
	err = errors.Join(err, json.Unmarshal(script["turns"], &turns))
	for i, turn := range first {
		turns = slices.Insert(turns, i, json.RawMessage(turn))
	}
	list, encodeErr := json.Marshal(turns)
	script["turns"] = list
	text, textErr := json.Marshal(script)
	if err := errors.Join(err, encodeErr, textErr); err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// interrupt runs a client until a file is there, and interrupts it.
func (s *served) interrupt(t *testing.T, cmd *exec.Cmd, file string) {
	t.Helper()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(2 * time.Minute); ; time.Sleep(50 * time.Millisecond) {
		if _, err := os.Stat(file); err == nil {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s did not come", file)
		}
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = cmd.Wait() // its status is that of an interrupted command
	}()
	// Some need a second signal, or do not end while a tool runs.
	for range 20 {
		_ = cmd.Process.Signal(os.Interrupt) // it may have ended
		select {
		case <-ended:
			return
		case <-time.After(500 * time.Millisecond):
		}
	}
	_ = cmd.Process.Kill()
	<-ended
}

// testServedKnownModel gives the upstream a model with a name that Claude Code knows. It
// then sends a system message after each message with results.
func testServedKnownModel(t *testing.T) {
	t.Parallel()
	s := startServed(t, `{"v":1,"answers":{"/agent.v1.AgentService/GetUsableModels":{"models":[{"modelId":"claude-opus-4-8","displayName":"Opus"}]}}}`)
	ask := prepareClaude(t, s, t.TempDir())
	cmd := ask("Run the tools demo.", false)
	cmd.Args = append(cmd.Args, "--model", "claude-opus-4-8")
	s.check(t, s.ask(t, cmd), 1, 1)
}

// testServedDeferredTools lets Claude Code defer its tools. Loading one changes the tools,
// so the conversation goes on in a new stream, with the tool.
func testServedDeferredTools(t *testing.T) {
	t.Parallel()
	s := startServed(t, servedScript(t, `{"when":"load one","with_tools":true,"steps":[
		{"tool":{"name":"mcp","as":"search","any":[{"name":"ToolSearch","args":{"query":"select:TaskStop","max_results":5}}]}},
		{"tool":{"name":"mcp","as":"stop","any":[{"name":"TaskStop","args":{"task_id":"nothing"}}]}},
		{"text":"${search.text} ${stop.text}"},{"turn_ended":{}}]}`))
	ask := prepareClaude(t, s, t.TempDir())
	cmd := ask("Please load one.", false)
	cmd.Args[2] = `. "$0"; export ENABLE_TOOL_SEARCH=true; exec "$@"`
	if out := s.ask(t, cmd); !strings.Contains(out, "TaskStop can be called now") || !strings.Contains(out, "No task found with ID: nothing") {
		t.Errorf("the client printed %q", out)
	}
	if n := s.standin.Stats(); n.Streams.Opened != 2 {
		t.Errorf("the upstream has %d streams, want 2", n.Streams.Opened)
	}
}

// testServedRecording records a conversation of Claude Code: one line for each request,
// one for the upstream's stream, and no secret.
func testServedRecording(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "served.uwc")
	t.Run("conversation", func(t *testing.T) {
		s := startServed(t, `{"v":1}`, "-o", file)
		ask := prepareClaude(t, s, t.TempDir())
		s.check(t, s.ask(t, ask("Run the tools demo.", false)), 1, 1)
	})
	out, err := exec.Command(unwireCommand(t), "ls", file).Output()
	if err != nil {
		t.Fatal(err)
	}
	if messages, runs := strings.Count(string(out), "/v1/messages"), strings.Count(string(out), "AgentService/Run"); messages != 5 || runs != 1 {
		t.Errorf("%d requests and %d streams were recorded, want 5 and 1:\n%s", messages, runs, out)
	}
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, secret := range []string{servedKey, servedToken} {
		if strings.Contains(string(data), secret) {
			t.Errorf("the capture has the secret %s", secret)
		}
	}
}

// A served is a running unwire serve with its stand-in.
type served struct {
	url     string
	standin *standin.Server
}

// startServed starts unwire serve on a stand-in with a script.
func startServed(t *testing.T, script string, args ...string) *served {
	t.Helper()
	upstream, err := standin.New(standin.Options{Token: servedToken, Script: []byte(script)})
	if err != nil {
		t.Fatal(err)
	}
	listener, err := upstream.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- upstream.Serve(listener) }()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		if err := errors.Join(upstream.Shutdown(ctx), <-done); err != nil {
			t.Error(err)
		}
	})

	args = append([]string{"serve", "--json", "--listen", "127.0.0.1:0", "--to", upstream.URL(), "--upstream-ca", upstream.CAFile, "--credentials", "env:UNWIRE_TOKEN"}, args...)
	cmd := exec.Command(unwireCommand(t), args...)
	cmd.Env = append(os.Environ(), "UNWIRE_CONFIG="+t.TempDir(), "UNWIRE_TOKEN="+servedToken, "UNWIRE_SERVE_KEY="+servedKey)
	cmd.Stderr = os.Stderr
	events, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(cmd.Process.Signal(os.Interrupt), cmd.Wait()); err != nil {
			t.Errorf("unwire serve: %v", err)
		}
	})
	line, err := bufio.NewReader(events).ReadString('\n')
	if err != nil {
		t.Fatalf("unwire serve ended: %v", err)
	}
	var listening struct{ URL string }
	if err := json.Unmarshal([]byte(line), &listening); err != nil {
		t.Fatal(err)
	}
	return &served{url: listening.URL, standin: upstream}
}

// ask runs a client and returns what it printed. A proxy that nobody runs keeps it from
// the network.
func (s *served) ask(t *testing.T, cmd *exec.Cmd) string {
	t.Helper()
	const nobody = "http://127.0.0.1:1"
	cmd.Env = append(cmd.Env, "HTTP_PROXY="+nobody, "HTTPS_PROXY="+nobody, "http_proxy="+nobody, "https_proxy="+nobody, "NO_PROXY=127.0.0.1,localhost", "no_proxy=127.0.0.1,localhost")
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s\n%s", err, out, stderr.String())
	}
	return string(out)
}

// check checks the answer to the tools demo and what the upstream counted since it
// started.
func (s *served) check(t *testing.T, out string, conversations, demos int) {
	t.Helper()
	if !demoAnswer.MatchString(out) {
		t.Errorf("the client printed %q, want the tools' results", out)
	}
	n := s.standin.Stats()
	if n.Execs.Asked != 6*demos || n.Execs.Answered != 6*demos || n.Execs.Rejected+n.Execs.NotFound+n.Execs.Thrown > 0 {
		t.Errorf("the upstream asked for %d tools and got %d answers, %d rejections; want %d", n.Execs.Asked, n.Execs.Answered, n.Execs.Rejected, 6*demos)
	}
	if len(n.Conversations) != conversations || n.Streams.Opened != conversations || n.Streams.Refused > 0 {
		t.Errorf("the upstream has %d conversations in %d streams, %d refused; want %d", len(n.Conversations), n.Streams.Opened, n.Streams.Refused, conversations)
	}
}

// config returns the configuration that unwire serve prints for a client.
func (s *served) config(t *testing.T, name string) string {
	t.Helper()
	cmd := exec.Command(unwireCommand(t), "serve", "--listen", strings.TrimPrefix(s.url, "http://"), "--print-config", name)
	cmd.Env = append(os.Environ(), "UNWIRE_CONFIG="+t.TempDir())
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// agentProgram returns the path of a coding agent.
func agentProgram(t *testing.T, path string) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join(agentsDir, "node_modules", path))
	if err != nil {
		t.Fatal(err)
	}
	return need.Program(t, path, "it with 'make test-deps' (Linux on x86-64)", "--version")
}

// inHome returns a command with a home of its own.
func inHome(t *testing.T, dir, home string, argv ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), argv[0], argv[1:]...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "HOME="+home, "PWD="+dir, "UNWIRE_SERVE_KEY="+servedKey, "NO_COLOR=1")
	for _, kind := range []string{"CONFIG", "DATA", "CACHE", "STATE"} {
		cmd.Env = append(cmd.Env, "XDG_"+kind+"_HOME="+filepath.Join(home, strings.ToLower(kind)))
	}
	return cmd
}

func writeFile(t *testing.T, path, text string) {
	t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
		t.Fatal(err)
	}
}

func prepareClaude(t *testing.T, s *served, dir string) func(string, bool) *exec.Cmd {
	program, home := agentProgram(t, "claude-code/claude"), t.TempDir()
	config := filepath.Join(home, "unwire.sh")
	writeFile(t, config, s.config(t, "claude"))
	return func(prompt string, next bool) *exec.Cmd {
		argv := []string{"sh", "-c", `. "$0"; exec "$@"`, config, program, "-p", prompt, "--dangerously-skip-permissions"}
		if next {
			argv = append(argv, "--continue")
		}
		cmd := inHome(t, dir, home, argv...)
		cmd.Env = append(cmd.Env, "CLAUDE_CONFIG_DIR="+home, "IS_SANDBOX=1", "DISABLE_AUTOUPDATER=1", "DISABLE_TELEMETRY=1", "DISABLE_ERROR_REPORTING=1")
		return cmd
	}
}

func prepareCodex(t *testing.T, s *served, dir string) func(string, bool) *exec.Cmd {
	program, home := agentProgram(t, "codex/vendor/x86_64-unknown-linux-musl/bin/codex"), t.TempDir()
	writeFile(t, filepath.Join(home, "config.toml"), s.config(t, "codex"))
	return func(prompt string, next bool) *exec.Cmd {
		argv := []string{program, "exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox"}
		if next {
			argv = append(argv, "resume", "--last")
		}
		cmd := inHome(t, dir, home, append(argv, prompt)...)
		cmd.Env = append(cmd.Env, "CODEX_HOME="+home)
		return cmd
	}
}

func prepareOpencode(t *testing.T, s *served, dir string) func(string, bool) *exec.Cmd {
	program, home := agentProgram(t, "opencode/bin/opencode"), t.TempDir()
	writeFile(t, filepath.Join(dir, "opencode.json"), s.config(t, "opencode"))
	return func(prompt string, next bool) *exec.Cmd {
		argv := []string{program, "run", prompt}
		if next {
			argv = append(argv, "--continue")
		}
		cmd := inHome(t, dir, home, argv...)
		cmd.Env = append(cmd.Env, "OPENCODE_DISABLE_AUTOUPDATE=1", "OPENCODE_DISABLE_MODELS_FETCH=1", "OPENCODE_DISABLE_LSP_DOWNLOAD=1", "OPENCODE_DISABLE_SHARE=1")
		return cmd
	}
}

// prepareNode returns the preparation of a script on Node.
func prepareNode(script string) func(*testing.T, *served, string) func(string, bool) *exec.Cmd {
	return func(t *testing.T, s *served, dir string) func(string, bool) *exec.Cmd {
		node := need.Node(t, sdksDir)
		path, err := filepath.Abs(filepath.Join(sdksDir, script))
		if err != nil {
			t.Fatal(err)
		}
		return func(prompt string, _ bool) *exec.Cmd {
			return inHome(t, dir, t.TempDir(), node, path, s.url, servedKey, prompt)
		}
	}
}
