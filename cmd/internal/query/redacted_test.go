package query

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"unwire/captures"
	"unwire/captures/store"
	"unwire/decode/secret"
)

// TestOpenRedacted: a capture without secrets is opened as it is; one with secrets as a copy, and
// again as soon as it has changed.
func TestOpenRedacted(t *testing.T) {
	t.Parallel()
	path, folder := filepath.Join(t.TempDir(), "F.uwc"), t.TempDir()
	s, err := store.Create(path, store.Options{KeepSecrets: true})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	record := func(url string) {
		t.Helper()
		rec, err := s.Begin(captures.Exchange{Method: "GET", URL: url, HTTP: "2"})
		if err != nil {
			t.Fatal(err)
		}
		rec.End(captures.Complete, "")
		if err := s.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	o := &RedactedOpener{
		Folder: folder, Open: func(path string) (*Capture, error) { return Open(path, store.ReadOptions{}) },
		Rules: func(context.Context, string) (*secret.Rules, error) { return &secret.Rules{}, nil },
	}
	open := func() (urls string, r Redaction) {
		t.Helper()
		c, r, err := o.OpenRedacted(t.Context(), path)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		for ex, err := range c.Exchanges(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			urls += ex.URL + " "
		}
		return urls, r
	}

	record("https://h.example/plain")
	if urls, r := open(); r.Copied || urls != "https://h.example/plain " {
		t.Errorf("%s, %+v", urls, r)
	}
	const token = "made-up-secret-0001-of-a-test"
	record("https://h.example/?api_key=" + token)
	for range 2 {
		if urls, r := open(); !r.Copied || strings.Contains(urls, token) || !strings.Contains(urls, "api_key=redacted-") {
			t.Errorf("%s, %+v", urls, r)
		}
	}
	record("https://h.example/third")
	if urls, r := open(); !r.Copied || !strings.HasSuffix(urls, "/third ") || strings.Contains(urls, token) {
		t.Errorf("%s, %+v", urls, r)
	}
	if list, err := os.ReadDir(folder); err != nil || len(list) != 1 {
		t.Errorf("%d files in the folder, want one copy: %v", len(list), err)
	}
	copied := filepath.Join(folder, "redacted-2.uwc")
	if got := o.HidePath(copied + ": damaged"); got != path+": damaged" {
		t.Errorf("%s", got)
	}
}
