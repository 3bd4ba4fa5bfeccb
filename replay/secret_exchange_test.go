package replay

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"unwire/proto"
	"unwire/replay/credential"
	"unwire/replay/outbound"
)

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
	pr := proto.Profile()
	load := func(key string) *credential.Credentials {
		c, err := credential.Resolver{Getenv: func(name string) string {
			return map[string]string{credential.EnvAPIKey: key, credential.EnvToken: "old"}[name]
		}}.Load("")
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	c := load("key")
	if err := c.Refresh(context.Background(), pr, base, outbound.Policy{}, 0); err != nil || asked != "POST /auth/exchange_user_api_key Bearer key" {
		t.Errorf("%v, the server was asked %q", err, asked)
	}
	if secret, from, _ := c.Find(credential.EnvToken); secret != "fresh" || !strings.HasPrefix(from, "exchange at 127.0.0.1") {
		t.Errorf("%q from %q", secret, from)
	}
	path := filepath.Join(t.TempDir(), "journal.jsonl")
	o := outbound.Policy{Pace: &outbound.Pace{Interval: time.Millisecond, Journal: openJournal(t, path), Local: true}}
	if err := load("wrong").Refresh(context.Background(), pr, base, o, 0); !errors.Is(err, credential.ErrCredentials) {
		t.Errorf("a wrong key: %v", err)
	}
	asked = ""
	if err := load("key").Refresh(context.Background(), pr, base, o, 0); !errors.Is(err, outbound.ErrRefused) || asked != "" {
		t.Errorf("after it was turned away: %v, the server was asked %q", err, asked)
	}
	sent, got := entries(t, path)
	if len(sent) != 1 || len(got) != 1 || sent[0].URL != s.URL+pr.Exchange.Path || got[0].Status != http.StatusUnauthorized {
		t.Errorf("the journal has %+v and %+v", sent, got)
	}
	for _, key := range []string{"", "wrong"} {
		if err := load(key).Refresh(context.Background(), pr, base, outbound.Policy{}, 0); !errors.Is(err, credential.ErrCredentials) {
			t.Errorf("key %q: %v", key, err)
		}
	}
	asked = ""
	if err := load("key").Refresh(context.Background(), pr, pr.Endpoints.Backend, outbound.Policy{}, 0); !errors.Is(err, outbound.ErrRefused) || asked != "" {
		t.Errorf("another host: %v", err)
	}
}
