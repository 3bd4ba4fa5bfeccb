package credential

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"unwire/captures/profile"
	"unwire/proto"
)

func TestFindStored(t *testing.T) {
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
	at := system{getenv: func(s string) string { return env[s] }, keyring: func(service, account string) (string, error) {
		if service == "cursor-access-token" && account == "cursor-user" {
			return "at", nil
		}
		return "", errMissing
	}}
	tokens := &proto.Profile().Tokens
	find := func(place profile.TokenPlace) (string, string, error) { return findStored(tokens, place, "token", at) }
	for _, name := range []string{"linux", "windows", "darwin"} {
		at.os = name
		if secret, from, err := find(tokens.AccessToken); err != nil || secret != "at" || from == "" || strings.Contains(from, "at\x00") {
			t.Errorf("%s: %q from %s, %v", name, secret, from, err)
		}
		if _, _, err := find(tokens.RefreshToken); !errors.Is(err, errMissing) {
			t.Errorf("%s: %v", name, err)
		}
	}
	at.os = "linux"
	for text, ok := range map[string]bool{
		`{"AccessToken":"at"}`: true, `{"accessToken":"at","other":1}`: true, `{"accessToken": sesame}`: false, `{"accessToken":"at","apiKey":7}`: false,
	} {
		if err := os.WriteFile(filepath.Join(home, ".config/cursor/auth.json"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if secret, _, err := find(tokens.AccessToken); ok != (secret == "at") || ok != (err == nil) || !ok && strings.Contains(err.Error(), "sesame") {
			t.Errorf("%s: %q, %v", text, secret, err)
		}
	}
	env["XDG_CONFIG_HOME"] = filepath.Join(home, "nowhere")
	if _, _, err := find(tokens.AccessToken); !errors.Is(err, errMissing) {
		t.Errorf("no file: %v", err)
	}
}

// FuzzFile reads files of credentials and answers with tokens of any kind.
func FuzzFile(f *testing.F) {
	for _, text := range []string{"", "# comment\nUNWIRE_TOKEN: x\n", "A=b\nc", "=", `{"accessToken":"x"}`, `{"accessToken":{"a":1}}`} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		tokenIn(data, "accessToken")
		secrets, err := readCredentials(bytes.NewReader(data))
		for name, value := range secrets {
			if name != strings.ToLower(name) || strings.ContainsAny(value, "\r\n\x00") {
				t.Errorf("%q: %q", name, value)
			}
		}
		if err != nil && len(data) > 3 && strings.Contains(err.Error(), string(data)) {
			t.Errorf("the error contains the file: %v", err)
		}
	})
}
