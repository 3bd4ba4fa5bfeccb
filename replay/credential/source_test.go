package credential_test

import (
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"unwire/proto"
	"unwire/replay/credential"
	"unwire/replay/outbound"
)

// tokenFor returns a JWT that expires after left.
func tokenFor(left time.Duration) string {
	claims := fmt.Sprintf(`{"exp":%d}`, time.Now().Add(left).Unix())
	return "e30." + base64.RawURLEncoding.EncodeToString([]byte(claims)) + ".c2ln"
}

// TestSource gives a source tokens of several ages, with and without an API key that a
// local server exchanges.
func TestSource(t *testing.T) {
	t.Parallel()
	const key = "key_made_up_for_this_test"
	fresh := tokenFor(time.Hour)
	for name, tt := range map[string]struct {
		token, key string
		refuse     bool
		want       string
		exchanges  int
		err        error
	}{
		"good":                       {token: tokenFor(10 * time.Minute), key: key, want: "same"},
		"opaque":                     {token: "Bearer opaque", key: key, want: "opaque"},
		"below five minutes":         {token: tokenFor(4 * time.Minute), key: key, want: fresh, exchanges: 1},
		"below five minutes, no key": {token: tokenFor(4 * time.Minute), want: "same"},
		"exchange fails, still good": {token: tokenFor(4 * time.Minute), key: key, refuse: true, want: "same", exchanges: 1},
		"exchange fails, expired":    {token: tokenFor(-time.Minute), key: key, refuse: true, exchanges: 2, err: credential.ErrCredentials},
		"expired, no key":            {token: tokenFor(-time.Minute), err: credential.ErrExpired},
		"only a key":                 {key: key, want: fresh, exchanges: 1},
		"nothing":                    {err: credential.ErrCredentials},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			exchanges := 0
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				exchanges++
				if tt.refuse || r.URL.Path != proto.Profile().Exchange.Path || r.Header.Get("Authorization") != "Bearer "+key {
					http.Error(w, "no", http.StatusUnauthorized)
					return
				}
				fmt.Fprintf(w, `{%q:%q}`, proto.Profile().Exchange.Member, fresh)
			}))
			defer server.Close()
			base, err := url.Parse(server.URL)
			if err != nil {
				t.Fatal(err)
			}
			env := map[string]string{credential.EnvToken: tt.token, credential.EnvAPIKey: tt.key}
			c, err := credential.Resolver{Getenv: func(name string) string { return env[name] }}.Load("")
			if err != nil {
				t.Fatal(err)
			}
			source := credential.NewSource(c, proto.Profile(), base, outbound.Policy{})

			want := tt.want
			if want == "same" {
				want = tt.token
			}
			for range 2 { // the second time nothing is exchanged, unless that failed and is needed
				got, err := source.Token(t.Context())
				if got != want || !errors.Is(err, tt.err) {
					t.Errorf("got %q, %v; want %q, %v", got, err, want, tt.err)
				}
				if err != nil && strings.Contains(err.Error(), key) {
					t.Errorf("the error shows the key: %v", err)
				}
			}
			if exchanges != tt.exchanges {
				t.Errorf("%d exchanges, want %d", exchanges, tt.exchanges)
			}
		})
	}
}
