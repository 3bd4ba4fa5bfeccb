package main

import (
	"bytes"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"unwire/captures/need"
	"unwire/captures/store"
)

// tokenScript sends the token of the control endpoints to a server, in all
// places that a request has, and to the endpoints themselves. It keeps the token
// and the capture's own arguments for the test, in the folder $KEPT.
const tokenScript = `
set -e
mkdir -p "$KEPT"
printf %s "$UNWIRE_HOOK_TOKEN" >"$KEPT/token"
tr '\0' '\n' <"/proc/$PPID/cmdline" >"$KEPT/arguments" 2>/dev/null || true
t=$UNWIRE_HOOK_TOKEN
echo "$t" | base64 -w 0 | curl -sS --data-binary @- "$1/base64" >/dev/null
curl -sS -H "X-Told: $t" -H "Unwire-Token: $t" -A "agent $t" -d "before $t after" "$1/with/$t?q=$t" >/dev/null
curl -sS -H 'Content-Type: application/json' -d "{\"env\":{\"UNWIRE_HOOK_TOKEN\":\"$t\"}}" "$1/json" >/dev/null
env | curl -sS -H 'Content-Type: application/octet-stream' --data-binary @- "$1/env" >/dev/null
curl -sS --noproxy '*' -H "Unwire-Token: $t" -d '{"port":40000,"to":"a:1"}' "$HTTP_PROXY/.well-known/unwire/route" >/dev/null
curl -sS --noproxy '*' -H "Unwire-Token: $t" -d '{"port":40000,"to":"b:1"}' "$HTTP_PROXY/.well-known/unwire/route" >/dev/null
find "$TMPDIR" -type f -exec cat {} + >"$KEPT/files" || true
`

// TestControlTokenIsNowhere has a command send the token that it got, and looks
// for that in everything that is printed and written, while the command runs and
// after it.
func TestControlTokenIsNowhere(t *testing.T) {
	need.Curl(t)
	echo := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(w, r.Body)
	}))
	defer echo.Close()
	s := &secretRun{t: t, bin: unwireCommand(t), work: t.TempDir(), ran: map[string]bool{}}
	for name, args := range map[string][]string{
		"plain":   {"capture", "-o", "a.uwc"},
		"JSON":    {"capture", "-o", "b.uwc", "--json"},
		"rotated": {"capture", "-o", "c.uwc", "--rotate", "1h"},
	} {
		t.Run(name, func(t *testing.T) {
			kept := t.TempDir()
			cmd := s.command(append(args, "--", "sh", "-c", tokenScript, "sh", echo.URL)...)
			cmd.Env = append(cmd.Env, "KEPT="+kept)
			out, err := cmd.CombinedOutput()
			if err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			token, err := os.ReadFile(filepath.Join(kept, "token"))
			if err != nil || len(token) < 22 {
				t.Fatalf("the token %q, %v", token, err)
			}
			if bytes.Contains(out, token) || !strings.Contains(string(out), "40000") {
				t.Errorf("printed %s", out)
			}
			searchForToken(t, string(token), kept, s.work)
		})
	}
}

// searchForToken looks into the files below the folders, and into the captures.
func searchForToken(t *testing.T, token string, dirs ...string) {
	t.Helper()
	check := func(where string, data []byte) {
		for _, form := range forms(token) {
			if bytes.Contains(data, form) {
				t.Errorf("the token is in %s", where)
				return
			}
		}
	}
	captured := 0
	for _, dir := range dirs {
		err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err != nil || !d.Type().IsRegular() || d.Name() == "token" {
				return err
			}
			data, err := os.ReadFile(path)
			check(path, data)
			if err != nil || filepath.Ext(path) != ".uwc" {
				return err
			}
			store, err := store.Open(path, store.ReadOptions{})
			if err != nil {
				return err
			}
			defer store.Close()
			for ex, err := range store.Exchanges(t.Context()) {
				if err != nil {
					return err
				}
				captured++
				for c, err := range store.Chunks(t.Context(), ex.ID, 0) {
					if err != nil {
						return err
					}
					check(path+": "+ex.URL, c.Data)
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if captured < 4 {
		t.Errorf("%d exchanges were searched", captured)
	}
}
