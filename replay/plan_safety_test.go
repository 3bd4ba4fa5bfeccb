package replay

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"unwire/captures"
	"unwire/replay/credential"
)

// withToken gives a replay the secret that the captures of these tests want.
func (l *lab) withToken(o settings) settings {
	l.Helper()
	c, err := credential.Resolver{Getenv: func(name string) string {
		if name == credential.EnvToken {
			return "another-made-up-secret"
		}
		return ""
	}}.Load("")
	if err != nil {
		l.Fatal(err)
	}
	o.Credentials = c
	return o
}

func TestNothingLeavesUnasked(t *testing.T) {
	l := newLab(t)
	id := l.say("hello")
	dialled := ""
	o := l.withToken(l.options())
	o.Dial = func(_ context.Context, _, address string) (net.Conn, error) {
		dialled = address
		return nil, errors.New("no network in this test")
	}
	for _, c := range []struct {
		to      string
		live    bool
		allowed []string
		dials   string // "": refused
	}{
		{"https://api.example.com", false, nil, ""},
		{"https://api.example.com", true, nil, ""},
		{"https://api.example.com", false, []string{"api.example.com"}, ""},
		{"https://api.example.com", true, []string{"example.com"}, ""},
		{"https://127.0.0.1.example.com", false, nil, ""},
		{"https://192.0.2.1", false, nil, ""},
		{"https://[2001:db8::1]", false, nil, ""},
		{"https://0.0.0.0", false, nil, ""},
		{"https://api.example.com", true, []string{"api.example.com"}, "api.example.com:443"},
		{"https://api.example.com:8443", true, []string{"*.example.com"}, "api.example.com:8443"},
		{"https://127.0.0.2:1", false, nil, "127.0.0.2:1"},
		{"https://localhost:1", false, nil, "[::1]:1"},
		{"https://localhost.:1", false, nil, "[::1]:1"},
		{"https://user:password@127.0.0.1:1", false, nil, "127.0.0.1:1"},
		{"https://127.0.0.1@192.0.2.1", false, nil, ""},
		{"https://2130706433", false, nil, ""},
		{"https://localhost.example.com", false, nil, ""},
	} {
		dialled = ""
		o.To, o.Live, o.AllowHosts = mustURL(c.to), c.live, c.allowed
		p := l.plan(id, o)
		r, err := p.Send(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		if dialled != c.dials {
			t.Errorf("%s: dialled %q, want %q", c.to, dialled, c.dials)
		}
		if c.dials != "" {
			l.expect(r, NotSent, FromLocal, "")
			continue
		}
		l.expect(r, Refused, FromLocal, "")
		if p.shown.Refusal == "" || r.Message == "" || r.Exchange != 0 {
			t.Errorf("%s: %+v", c.to, r)
		}
	}
}

func TestCredentials(t *testing.T) {
	l := newLab(t)
	id := l.say("hello")
	p := l.plan(id, l.options())
	if _, err := p.Send(t.Context(), nil); !errors.Is(err, credential.ErrCredentials) || !strings.Contains(err.Error(), credential.EnvToken) {
		t.Fatalf("without a token: %v", err)
	}
	file := filepath.Join(t.TempDir(), "credentials")
	if err := os.WriteFile(file, []byte("# comment\n\nauthorization: Basic from-a-file-0123456789\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := (credential.Resolver{Getenv: os.Getenv}).Load("file:" + file); err == nil || !strings.Contains(err.Error(), "chmod 600") {
		t.Fatalf("a file that others can read: %v", err)
	}
	if err := os.Chmod(file, 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := credential.Resolver{Getenv: os.Getenv}.Load("file:" + file)
	if err != nil {
		t.Fatal(err)
	}
	o := l.options()
	o.Credentials = c
	l.expect(l.replay(id, o), Same, FromServer, "ok")
	if got := l.server.header("authorization"); got != "Basic from-a-file-0123456789" {
		t.Errorf("sent %q", got)
	}
	l.expect(l.replay(id, l.withToken(l.options())), Same, FromServer, "ok")
	if got := l.server.header("authorization"); got != "Bearer another-made-up-secret" {
		t.Errorf("sent %q", got)
	}
	o = l.options()
	o.OmitSecrets = true
	l.expect(l.replay(id, o), Same, FromServer, "ok")
	if got := l.server.header("authorization"); got != "" {
		t.Errorf("sent %q", got)
	}
}

// A server that repeats the token must not get it into what is kept or shown.
func TestSecretStaysOut(t *testing.T) {
	l := newLab(t)
	const secret = "another-made-up-secret"
	id := l.say("hello")
	o := l.withToken(l.options("set 1=token"))
	p := l.plan(id, o)
	r := l.replay(id, o)
	l.expect(r, Differs, FromServer, "ok")
	if got := l.server.header("authorization"); got != "Bearer "+secret {
		t.Fatalf("sent %q", got)
	}
	for what, v := range map[string]any{"plan": p, "result": r} {
		b, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(b, []byte(secret)) {
			t.Errorf("the secret is in the %s: %s", what, b)
		}
	}
	for _, dir := range []string{filepath.Dir(l.out), filepath.Dir(l.store.Path)} {
		files, err := filepath.Glob(filepath.Join(dir, "*"))
		if err != nil || len(files) == 0 {
			t.Fatalf("%v, %v", files, err)
		}
		for _, file := range files {
			if b, err := os.ReadFile(file); err != nil || bytes.Contains(b, []byte(secret)) || bytes.Contains(b, []byte("made-up-secret-of-the-capture")) {
				t.Errorf("%s: %v, or holds a secret", file, err)
			}
		}
	}
	if f := l.answered(r.Exchange).Frame(captures.Down, 0); !bytes.Contains(f.Data, []byte("you sent Bearer redacted-")) {
		t.Errorf("recorded answer: %q", f.Data)
	}
}

func TestUntrustedServer(t *testing.T) {
	l := newLab(t)
	o := l.withToken(l.options())
	o.Roots = nil
	r := l.replay(l.say("hello"), o)
	l.expect(r, NotSent, FromLocal, "")
	if !strings.Contains(r.Message, "certificate") {
		t.Error(r.Message)
	}
}
