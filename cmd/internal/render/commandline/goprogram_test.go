package commandline

import (
	"go/format"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"unwire/captures"
	"unwire/captures/need"
)

// secretInAuthorization is as the command line has it: the scheme stays, the token is a variable.
func secretInAuthorization(h captures.Header) (prefix, variable string, ok bool) {
	return "Bearer ", "UNWIRE_TOKEN", h.Name == "authorization"
}

// TestGoProgram: the program compiles, is formatted, and sends what was recorded, over the recorded version of HTTP;
// without its secret it sends nothing.
func TestGoProgram(t *testing.T) {
	need.Program(t, "go", "go", "version")
	odd := "it's `id` \"quoted\" \\ $(touch gone) é😀 */ // END"
	type sent struct {
		method, uri, body, proto string
		header                   http.Header
	}
	var got []sent
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		got = append(got, sent{r.Method, r.RequestURI, string(body), r.Proto, r.Header})
		_, _ = io.WriteString(w, "the answer")
	}))
	srv.Config.Protocols = new(http.Protocols)
	srv.Config.Protocols.SetHTTP1(true)
	srv.Config.Protocols.SetUnencryptedHTTP2(true)
	srv.Start()
	defer srv.Close()

	body := []byte(odd + "\x00\xff\n" + strings.Repeat("long ", 100))
	for _, r := range []*Request{
		{
			Method: "POST", URL: srv.URL + "/a.v1.A/B?q=%22%5c%60", HTTP: "2", Body: body, Secret: secretInAuthorization, Headers: captures.Headers{
				{Name: ":path", Value: "/"},
				{Name: "content-type", Value: "application/proto"},
				{Name: "x-odd", Value: odd},
				{Name: "x-odd", Value: "two"},
				{Name: "authorization", Value: "Bearer made-up-secret"},
				{Name: "x-esc", Value: "a\x1b[2J"},
				{Name: "content-length", Value: "7"},
			},
		},
		{Method: "GET", URL: srv.URL + "/plain", HTTP: "1.1", Secret: secretInAuthorization, Headers: captures.Headers{{Name: "user-agent", Value: "x/1"}}},
	} {
		program, err := Go(r)
		if err != nil {
			t.Fatal(err)
		}
		text := program.Text + "\n"
		if formatted, err := format.Source([]byte(text)); err != nil || string(formatted) != text {
			t.Errorf("not formatted (%v):\n%s", err, text)
		}
		if strings.Contains(text, "made-up-secret") || strings.ContainsFunc(text, func(r rune) bool { return r > '~' || r < ' ' && r != '\n' && r != '\t' }) {
			t.Errorf("the program has a secret or is not ASCII:\n%s", text)
		}
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "main.go"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		run := func(env ...string) (string, error) {
			cmd := exec.CommandContext(t.Context(), "go", "run", "main.go")
			cmd.Dir, cmd.Env = dir, append(os.Environ(), append(env, "GOFLAGS=", "GO111MODULE=off", "NO_PROXY=127.0.0.1")...)
			out, err := cmd.CombinedOutput()
			return string(out), err
		}
		before := len(got)
		if out, err := run("UNWIRE_TOKEN="); r.Method == "POST" && (err == nil || !strings.Contains(out, "UNWIRE_TOKEN") || len(got) != before) {
			t.Errorf("without its secret: %v\n%s", err, out)
		}
		out, err := run("UNWIRE_TOKEN=from-the-environment")
		if err != nil || !strings.Contains(out, "the answer") {
			t.Fatalf("%v\n%s\n%s", err, out, text)
		}
		s := got[len(got)-1]
		if s.method != r.Method || srv.URL+s.uri != r.URL || s.body != string(r.Body) || s.proto[:6] != "HTTP/"+r.HTTP[:1] {
			t.Errorf("sent %+v", s)
		}
		if r.Method == "POST" && (!slices.Equal(s.header["X-Odd"], []string{odd, "two"}) || s.header.Get("Authorization") != "Bearer from-the-environment" || len(program.Left) != 1 || !slices.Equal(program.Variables, []string{"UNWIRE_TOKEN"})) {
			t.Errorf("sent %q; left out %q, variables %q", s.header, program.Left, program.Variables)
		}
	}
	if _, err := Go(&Request{Method: "GET", URL: "file:///etc/passwd", Secret: secretInAuthorization}); err == nil {
		t.Error("a URL of a file was written")
	}
}
