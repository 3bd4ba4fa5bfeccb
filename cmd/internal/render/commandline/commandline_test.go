package commandline

import (
	"errors"
	"os/exec"
	"strings"
	"testing"

	"unwire/captures"
)

// Whatever was recorded, each word reaches the tool as it is, and nothing else is run.
func TestQuoting(t *testing.T) {
	t.Parallel()
	for _, value := range []string{
		"plain", "it's", "$(touch gone)", "`id`", "a\\b", `"q"`, "$HOME", "!x", "*", "; false", "&& false", "-x", "@/etc/passwd", "é😀", "", "a  b", "'", "''", `\'`, "%s%n", "#c", "~",
	} {
		r := &Request{
			Method: "POST", URL: "http://127.0.0.1:1/a.B/C", HTTP: "2", Headers: captures.Headers{{Name: "x-value", Value: value}},
			Secret: func(captures.Header) (string, string, bool) { return "", "", false },
			Body:   []byte(value + "\x00\n" + value), Messages: [][]byte{[]byte(`{"a":"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(value) + `"}`)},
			Protocol: "grpc", Service: "a.B", RPC: "C",
		}
		for tool, write := range map[string]func(*Request) (*Line, error){"curl": Curl, "grpcurl": GRPCurl, "buf": Buf} {
			line, err := write(r)
			if err != nil {
				t.Fatal(err)
			}
			script := tool + `() { for word; do printf '[%s]' "$word"; done; cat; }` + "\n" + line.Text + "\n"
			cmd := exec.Command("sh", "-c", script)
			cmd.Dir = t.TempDir()
			out, err := cmd.Output()
			if err != nil {
				t.Fatalf("%s: %v", line.Text, err)
			}
			want := "[x-value: " + value + "]"
			if value == "" && tool == "curl" {
				want = "[x-value;]"
			}
			if !strings.Contains(string(out), want) || tool == "curl" && !strings.HasSuffix(string(out), string(r.Body)) {
				t.Errorf("%s\n%q lacks %q", line.Text, out, want)
			}
			if strings.ContainsFunc(line.Text, func(r rune) bool { return r < ' ' || r == 0x7f }) {
				t.Errorf("a control character in %q", line.Text)
			}
		}
	}
}

// What no line can have is left out or refused.
func TestUnwritable(t *testing.T) {
	t.Parallel()
	none := func(captures.Header) (string, string, bool) { return "", "", false }
	line, err := Curl(&Request{Method: "GET", URL: "https://h.example/x", HTTP: "1.1", Secret: none, Headers: captures.Headers{
		{Name: "@file", Value: "x"}, {Name: "-o", Value: "x"}, {Name: "x-esc", Value: "a\x1b[2J"}, {Name: "x-bidi", Value: "a\u202eb"}, {Name: "x-bad", Value: "\xff"}, {Name: ":path", Value: "/"},
	}})
	if err != nil || strings.Contains(line.Text, "--header") || len(line.Left) != 5 {
		t.Errorf("%+v, %v", line, err)
	}
	for _, r := range []Request{
		{Method: "GET", URL: "file:///etc/passwd"},
		{Method: "GET", URL: "http://-o/"},
		{Method: "GET", URL: "http://user:word@h.example/"},
		{Method: "GET; id", URL: "http://h.example/"},
		{Method: "POST", URL: "http://h.example/", Body: make([]byte, maxBody+1)},
	} {
		r.Secret = none
		if line, err := Curl(&r); !errors.Is(err, errUnwritable) {
			t.Errorf("%+v: %v", line, err)
		}
	}
	if _, err := GRPCurl(&Request{URL: "http://h.example/api/a.B/C", Service: "a.B", RPC: "C", Protocol: "grpc", Secret: none}); !errors.Is(err, errUnwritable) {
		t.Errorf("below a path: %v", err)
	}
	if _, err := Buf(&Request{URL: "http://h.example/x", Secret: none}); !errors.Is(err, errUnwritable) {
		t.Errorf("no call: %v", err)
	}
}

// Secrets are variables, which the shell needs.
func TestSecrets(t *testing.T) {
	t.Parallel()
	line, err := Curl(&Request{
		Method: "GET", URL: "https://h.example/x", HTTP: "2", Headers: captures.Headers{{Name: "authorization", Value: "Bearer [redacted:12345678]"}},
		Secret: func(captures.Header) (string, string, bool) { return "Bearer ", "UNWIRE_TOKEN", true },
	})
	if err != nil || !strings.Contains(line.Text, `--header 'authorization: Bearer '"${UNWIRE_TOKEN:?}"`) || len(line.Variables) != 1 {
		t.Errorf("%+v, %v", line, err)
	}
}
