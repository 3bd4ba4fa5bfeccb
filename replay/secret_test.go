package replay

import (
	"encoding/json"
	"errors"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"unwire/captures"
	"unwire/captures/store"
	"unwire/proto"
	"unwire/replay/credential"
	"unwire/replay/internal/samples"
)

// TestStaleTokenIsNotSent: less than a minute before its end a token is refused.
func TestStaleTokenIsNotSent(t *testing.T) {
	s := newTestServer(t)
	store, id := written(t, captures.Exchange{
		Method: "POST", URL: s.URL + "/test.v1.Test/Say", HTTP: "2",
		RequestHeaders: captures.Headers{{Name: "content-type", Value: "application/json"}, {Name: "authorization", Value: "Bearer something-secret"}},
	}, up([]byte(`"x"`)))
	end := time.Unix(1_800_000_000, 0)
	creds, err := credential.Resolver{Getenv: func(name string) string { return map[string]string{"MINE": samples.Token(t, end)}[name] }}.Load("env:MINE")
	if err != nil {
		t.Fatal(err)
	}
	for before, want := range map[time.Duration]bool{30 * time.Second: false, 2 * time.Minute: true} {
		s.requests.Store(0)
		p, err := newPlan(t.Context(), store, id, settings{Roots: s.roots(), Credentials: creds, now: func() time.Time { return end.Add(-before) }})
		if err != nil {
			t.Fatal(err)
		}
		if p.shown.Secrets[0].Expires != "2027-01-15T08:00:00Z" || p.shown.Secrets[0].From != "$MINE" {
			t.Errorf("%+v", p.shown.Secrets)
		}
		_, err = p.Send(t.Context(), nil)
		if errors.Is(err, credential.ErrCredentials) == want || s.requests.Load() > 0 != want {
			t.Errorf("%s before its end: %v, %d requests", before, err, s.requests.Load())
		}
		if err != nil && strings.Contains(err.Error(), samples.Token(t, end)) {
			t.Error("the error has the token")
		}
	}
}

// TestKeptSecretStaysHome: a token that a capture has goes to the host that it
// came from alone, and is in no plan.
func TestKeptSecretStaysHome(t *testing.T) {
	store, err := store.Create(filepath.Join(t.TempDir(), "kept.uwc"), store.Options{Profile: proto.Profile().ForAnyPackage(), KeepSecrets: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	rec, err := store.Begin(captures.Exchange{
		Method: "POST", URL: "https://api.example/test.v1.Test/Say", HTTP: "2",
		RequestHeaders: captures.Headers{
			{Name: "content-type", Value: "application/json"}, {Name: "authorization", Value: "Bearer sesame-0123456789"}, {Name: "x-cursor-client-version", Value: "cli-2025.11.25-d5b3271"},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	rec.Chunk(captures.Up, []byte(`"x"`))
	rec.End(captures.Complete, "")
	if err := store.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	elsewhere, err := url.Parse("http://127.0.0.1:1")
	if err != nil {
		t.Fatal(err)
	}
	now := time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC)
	for _, to := range []*url.URL{nil, elsewhere} {
		p, err := newPlan(t.Context(), store, rec.ID(), settings{To: to, Live: true, AllowHosts: []string{"api.example"}, now: func() time.Time { return now }})
		if err != nil {
			t.Fatal(err)
		}
		text, err := json.Marshal(p.Description())
		if err != nil || strings.Contains(string(text), "sesame") {
			t.Errorf("%v: the plan shows the token (%v)", to, err)
		}
		if len(p.shown.Warnings) != 1 || !strings.Contains(p.shown.Warnings[0], "cli-2025.11.25") {
			t.Errorf("an old client: %q", p.shown.Warnings)
		}
		sent := strings.Contains(p.headers.Get("authorization"), "sesame")
		if home := to == nil; sent != home {
			t.Errorf("%v: sent %v", to, sent)
		}
		if to != nil {
			if _, err := p.Send(t.Context(), nil); !errors.Is(err, credential.ErrCredentials) {
				t.Errorf("elsewhere: %v", err)
			}
		}
	}
}

// In protobuf, the length before a placeholder and the tag after it may read like letters.
func TestPlaceholdersBetweenLetters(t *testing.T) {
	for size := len("redacted-3f2"); size < 130; size++ {
		text := "redacted-3f2a9c1b" + strings.Repeat(".", 120)
		text = text[:size]
		data := textField(textField(nil, 4, text), 8, text)
		data = textField(nil, 1, string(data))
		found := placeholdersIn(data, false)
		if len(found) != 2 || string(found[0][0]) != text || string(found[1][0]) != text || string(found[0][1]) != text[9:min(size, 17)] {
			t.Errorf("%d bytes: %q", size, found)
		}
	}
}
