package commandline

import (
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coder/websocket"

	"unwire/captures"
	"unwire/captures/need"
)

// The handshake of a WebSocket opens one again, with curl and as a Go program, however it was recorded.
func TestHandshake(t *testing.T) {
	need.Program(t, "curl", "curl", "--version")
	need.Program(t, "go", "go", "version")
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		conn, err := websocket.Accept(w, r, &websocket.AcceptOptions{CompressionMode: websocket.CompressionContextTakeover, Subprotocols: []string{"chat"}})
		if err != nil {
			return
		}
		_ = conn.Write(r.Context(), websocket.MessageText, []byte("a message of "+conn.Subprotocol()+" to "+r.Header.Get("x-client")))
		_ = conn.CloseNow()
	}))
	defer srv.Close()

	none := func(captures.Header) (prefix, variable string, ok bool) { return "", "", false }
	own := captures.Headers{{Name: "x-client", Value: "me"}, {Name: "Sec-WebSocket-Protocol", Value: "chat"}, {Name: "Sec-WebSocket-Extensions", Value: "permessage-deflate"}}
	http1 := append(captures.Headers{
		{Name: "Upgrade", Value: "websocket"},
		{Name: "Connection", Value: "keep-alive, Upgrade"},
		{Name: "Sec-WebSocket-Version", Value: "13"},
		{Name: "Sec-WebSocket-Key", Value: "x3JJHMbDL1EzLkh9GBhXDw=="},
	}, own...)
	http2 := append(captures.Headers{{Name: ":protocol", Value: "websocket"}, {Name: "sec-websocket-version", Value: "13"}}, own...)
	for _, r := range []*Request{
		{Method: "GET", URL: srv.URL + "/ws", HTTP: "1.1", Headers: http1, WebSocket: true, Secret: none},
		{Method: "CONNECT", URL: srv.URL + "/ws", HTTP: "2", Headers: http2, WebSocket: true, Secret: none},
	} {
		line, err := Curl(r)
		if err != nil {
			t.Fatal(err)
		}
		// The server ends the connection without a closing handshake; what it sent is what counts.
		out, _ := exec.CommandContext(t.Context(), "sh", "-c", line.Text).Output()
		if !strings.Contains(string(out), "a message of chat to me") {
			t.Errorf("HTTP/%s: curl printed %q\n%s", r.HTTP, out, line.Text)
		}
		if got := strings.Join(line.Left, ""); !strings.Contains(got, "'unwire replay' sends the recorded messages") {
			t.Errorf("left out: %q", got)
		}

		program, err := Go(r)
		if err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(t.TempDir(), "main.go")
		if err := os.WriteFile(file, []byte(program.Text), 0o600); err != nil {
			t.Fatal(err)
		}
		cmd := exec.CommandContext(t.Context(), "go", "run", file)
		cmd.Env = append(os.Environ(), "NO_PROXY=127.0.0.1")
		if out, _ := cmd.CombinedOutput(); !strings.Contains(string(out), "a message of chat to me") {
			t.Errorf("HTTP/%s: the program printed %q\n%s", r.HTTP, out, program.Text)
		}
	}
}
