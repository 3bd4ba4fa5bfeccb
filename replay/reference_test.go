package replay

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"unwire/captures"
	"unwire/replay/profile"
)

// jwt is a token that expires at a time.
func jwt(at time.Time) string {
	part := func(s string) string { return base64.RawURLEncoding.EncodeToString([]byte(s)) }
	return part(`{"alg":"none"}`) + "." + part(fmt.Sprintf(`{"exp":%d,"aud":["api"],"iss":"someone"}`, at.Unix())) + ".c2ln"
}

func TestParseToken(t *testing.T) {
	at := time.Unix(1_800_000_000, 0)
	token, ok := ParseToken("Bearer " + jwt(at))
	if !ok || !token.Expires.Equal(at) || token.Audience[0] != "api" || token.Issuer != "someone" {
		t.Errorf("%+v %v", token, ok)
	}
	for age, stale := range map[time.Duration]bool{59 * time.Second: true, 61 * time.Second: false, -time.Hour: true} {
		if token.stale(at.Add(-age)) != stale {
			t.Errorf("%s before the end", age)
		}
	}
	for _, s := range []string{"", "a.b.c", "key_0123", jwt(at) + ".x", "e30.e30"} {
		if token, ok := ParseToken(s); ok && !token.Expires.IsZero() {
			t.Errorf("%q: %+v", s, token)
		}
	}
}

func FuzzParseToken(f *testing.F) {
	f.Add(jwt(time.Unix(1, 0)))
	f.Add("Bearer a." + base64.RawURLEncoding.EncodeToString([]byte(`{"aud":"x","exp":1e300}`)) + ".b")
	f.Fuzz(func(t *testing.T, s string) {
		if token, ok := ParseToken(s); ok && strings.Count(s, ".") != 2 {
			t.Errorf("%q: %+v", s, token)
		}
	})
}

// TestStaleTokenIsNotSent: less than a minute before its end a token is refused.
func TestStaleTokenIsNotSent(t *testing.T) {
	s := newTestServer(t)
	store, id := written(t, captures.Exchange{
		Method: "POST", URL: s.URL + "/test.v1.Test/Say", HTTP: "2",
		RequestHeaders: captures.Headers{{Name: "content-type", Value: "application/json"}, {Name: "authorization", Value: "Bearer something-secret"}},
	}, up([]byte(`"x"`)))
	end := time.Unix(1_800_000_000, 0)
	creds, err := Resolver{Getenv: func(name string) string { return map[string]string{"MINE": jwt(end)}[name] }}.Load("env:MINE")
	if err != nil {
		t.Fatal(err)
	}
	for before, want := range map[time.Duration]bool{30 * time.Second: false, 2 * time.Minute: true} {
		s.requests.Store(0)
		p, err := newPlan(t.Context(), store, id, settings{Roots: s.roots(), Credentials: creds, now: func() time.Time { return end.Add(-before) }})
		if err != nil {
			t.Fatal(err)
		}
		if p.Secrets[0].Expires != "2027-01-15T08:00:00Z" || p.Secrets[0].From != "$MINE" {
			t.Errorf("%+v", p.Secrets)
		}
		_, err = Send(t.Context(), p, nil)
		if errors.Is(err, ErrCredentials) == want || s.requests.Load() > 0 != want {
			t.Errorf("%s before its end: %v, %d requests", before, err, s.requests.Load())
		}
		if err != nil && strings.Contains(err.Error(), jwt(end)) {
			t.Error("the error has the token")
		}
	}
}

// TestKeptSecretStaysHome: a token that a capture has goes to the host that it
// came from alone, and is in no plan.
func TestKeptSecretStaysHome(t *testing.T) {
	store, err := captures.Create(filepath.Join(t.TempDir(), "kept.uwc"), captures.Options{KeepSecrets: true})
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
		text, err := json.Marshal(p)
		if err != nil || strings.Contains(string(text), "sesame") {
			t.Errorf("%v: the plan shows the token (%v)", to, err)
		}
		if len(p.Warnings) != 1 || !strings.Contains(p.Warnings[0], "cli-2025.11.25") {
			t.Errorf("an old client: %q", p.Warnings)
		}
		sent := strings.Contains(p.headers.Get("authorization"), "sesame")
		if home := to == nil; sent != home {
			t.Errorf("%v: sent %v", to, sent)
		}
		if to != nil {
			if _, err := Send(t.Context(), p, nil); !errors.Is(err, ErrCredentials) {
				t.Errorf("elsewhere: %v", err)
			}
		}
	}
}

// stored is a resolver of a client that has stored secrets.
func stored(secrets map[string]string) Resolver {
	return Resolver{OS: "darwin", Keyring: func(service, account string) (string, error) {
		if s := secrets[service+"/"+account]; s != "" {
			return s, nil
		}
		return "", profile.ErrMissing
	}}
}

func TestProfileGoesToItsHosts(t *testing.T) {
	c, err := stored(map[string]string{"cursor-access-token/cursor-user": "sesame"}).Load("cursor")
	if err != nil {
		t.Fatal(err)
	}
	for host, want := range map[string]bool{"api2.cursor.sh": true, "127.0.0.1": true, "localhost": true, "api.example": false} {
		if _, _, ok := c.forHost(host).Token(); ok != want {
			t.Errorf("%s: %v", host, ok)
		}
	}
	for _, ref := range []string{"keyring:cursor-access-token/cursor-user", "keyring:nothing/here", "keyring:x", "env:NOT_SET", "cursor"} {
		secrets := map[string]string{"cursor-access-token/cursor-user": "sesame"}
		if ref == "cursor" {
			secrets = nil
		}
		_, err := stored(secrets).Load(ref)
		if found := strings.HasSuffix(ref, "/cursor-user"); found != (err == nil) || !found && !errors.Is(err, ErrCredentials) {
			t.Errorf("%s: %v", ref, err)
		}
	}
}

// TestRefreshByKey exchanges an API key; where that may go is checked as for any request.
func TestRefreshByKey(t *testing.T) {
	asked := ""
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		asked = r.Method + " " + r.URL.Path + " " + r.Header.Get("authorization")
		if r.Header.Get("authorization") != "Bearer key" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		fmt.Fprint(w, `{"accessToken":"fresh","refreshToken":"r","authId":"a"}`)
	})
	base, err := url.Parse(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	pr := profile.Cursor()
	load := func(key string) *Credentials {
		c, err := Resolver{Getenv: func(name string) string { return map[string]string{EnvAPIKey: key, EnvToken: "old"}[name] }}.Load("")
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	c := load("key")
	if err := c.Refresh(context.Background(), pr, base, Policy{}, 0); err != nil || asked != "POST /auth/exchange_user_api_key Bearer key" {
		t.Errorf("%v, the server was asked %q", err, asked)
	}
	if secret, from, _ := c.find(EnvToken); secret != "fresh" || !strings.HasPrefix(from, "exchange at 127.0.0.1") {
		t.Errorf("%q from %q", secret, from)
	}
	path := filepath.Join(t.TempDir(), "journal.jsonl")
	o := Policy{Pace: &Pace{Interval: time.Millisecond, Journal: openJournal(t, path), Local: true}}
	if err := load("wrong").Refresh(context.Background(), pr, base, o, 0); !errors.Is(err, ErrCredentials) {
		t.Errorf("a wrong key: %v", err)
	}
	asked = ""
	if err := load("key").Refresh(context.Background(), pr, base, o, 0); !errors.Is(err, ErrRefused) || asked != "" {
		t.Errorf("after it was turned away: %v, the server was asked %q", err, asked)
	}
	sent, got := entries(t, path)
	if len(sent) != 1 || len(got) != 1 || sent[0].URL != s.URL+pr.Exchange || got[0].Status != http.StatusUnauthorized {
		t.Errorf("the journal has %+v and %+v", sent, got)
	}
	for _, key := range []string{"", "wrong"} {
		if err := load(key).Refresh(context.Background(), pr, base, Policy{}, 0); !errors.Is(err, ErrCredentials) {
			t.Errorf("key %q: %v", key, err)
		}
	}
	asked = ""
	if err := load("key").Refresh(context.Background(), pr, pr.Backend, Policy{}, 0); !errors.Is(err, ErrRefused) || asked != "" {
		t.Errorf("another host: %v", err)
	}
}
