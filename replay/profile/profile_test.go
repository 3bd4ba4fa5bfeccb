package profile

import (
	"errors"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestAgent(t *testing.T) {
	p := Cursor()
	for _, c := range []struct{ backend, ghost, want string }{
		{"https://api2.cursor.sh", "true", "https://agent.api5.cursor.sh"},
		{"https://api2.cursor.sh", "", "https://agent.api5.cursor.sh"}, // not said: private
		{"https://api2.cursor.sh", "false", "https://agentn.api5.cursor.sh"},
		{"https://agent.api5.cursor.sh", "implicit-false", "https://agentn.api5.cursor.sh"},
		{"https://staging.cursor.sh", "true", "https://staging.cursor.sh"},
		{"http://localhost:8080", "false", "http://localhost:8080"},
	} {
		u, err := url.Parse(c.backend)
		if err != nil {
			t.Fatal(err)
		}
		if got := p.Agent(u, p.IsPrivate(c.ghost)).String(); got != c.want {
			t.Errorf("%s with %q: %s, not %s", c.backend, c.ghost, got, c.want)
		}
	}
}

func TestFor(t *testing.T) {
	for host, want := range map[string]bool{
		"api2.cursor.sh": true, "AGENT.api5.cursor.sh.": true, "cursor.sh.example.com": false, "notcursor.sh": false, "cursor.sh": false, "": false,
	} {
		if got := Cursor().For(host); got != want {
			t.Errorf("%q: %v", host, got)
		}
	}
}

func TestReleased(t *testing.T) {
	at, ok := Released("cli-2025.11.25-d5b3271")
	if !ok || !at.Equal(time.Date(2025, 11, 25, 0, 0, 0, 0, time.UTC)) {
		t.Errorf("%v %v", at, ok)
	}
	for _, v := range []string{"2.0.77", "cli-2025.13.25-x", ""} {
		if _, ok := Released(v); ok {
			t.Errorf("%q has a date", v)
		}
	}
}

func TestFind(t *testing.T) {
	home := t.TempDir()
	for _, dir := range []string{".config/cursor", "AppData/Cursor"} {
		if err := os.MkdirAll(filepath.Join(home, dir), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(home, dir, "auth.json"), []byte(`{"accessToken":"at","apiKey":"key"}`), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	env := map[string]string{"HOME": home, "APPDATA": filepath.Join(home, "AppData")}
	at := Place{Getenv: func(s string) string { return env[s] }, Keyring: func(service, account string) (string, error) {
		if service == "cursor-access-token" && account == "cursor-user" {
			return "at", nil
		}
		return "", ErrMissing
	}}
	for _, system := range []string{"linux", "windows", "darwin"} {
		at.OS = system
		if secret, from, err := Cursor().Find(Access, at); err != nil || secret != "at" || from == "" || strings.Contains(from, "at\x00") {
			t.Errorf("%s: %q from %s, %v", system, secret, from, err)
		}
		if _, _, err := Cursor().Find(refresh, at); !errors.Is(err, ErrMissing) {
			t.Errorf("%s: %v", system, err)
		}
	}
	if err := os.WriteFile(filepath.Join(home, ".config/cursor/auth.json"), []byte(`{"accessToken": sesame}`), 0o600); err != nil {
		t.Fatal(err)
	}
	at.OS = "linux"
	if _, _, err := Cursor().Find(Access, at); err == nil || strings.Contains(err.Error(), "sesame") {
		t.Errorf("a file that is no JSON: %v", err)
	}
	env["XDG_CONFIG_HOME"] = filepath.Join(home, "nowhere")
	if _, _, err := Cursor().Find(Access, at); !errors.Is(err, ErrMissing) {
		t.Errorf("no file: %v", err)
	}
}
