package redact

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"unwire/captures"
	"unwire/captures/redact/internal/match"
)

func TestFind(t *testing.T) {
	r := New(Options{})
	jwt := madeUpJWT
	for _, c := range []struct {
		in   string
		want []Hit
	}{
		{`{"accessToken":"short","n":1}`, []Hit{{Rule: match.Member, Name: "accessToken", Off: 16, Len: 5}}},
		{"see " + jwt + ".", []Hit{{Rule: match.Shape, Name: "eyJ", Off: 4, Len: len(jwt)}}},
		{"x https://u:pass@h/ y", []Hit{{Rule: match.URLPassword, Name: "", Off: 12, Len: 4}}},
		{"x https://h/?a=1&api_key=zz y", []Hit{{Rule: match.Parameter, Name: "api_key", Off: 25, Len: 2}}},
		{"Authorization: Bearer abcdefgh12345678", []Hit{{Rule: match.Shape, Name: "Bearer", Off: 22, Len: 16}}},
		{`{"password":"[redacted:0a1b2c3d]","apiKey":"redacted-0a1b2c3d....","secret":"redacted-0a"}`, nil},
		{"nothing", nil},
	} {
		if got := r.Find([]byte(c.in), false, ""); fmt.Sprint(got) != fmt.Sprint(c.want) {
			t.Errorf("%s: %v, want %v", c.in, got, c.want)
		}
	}
	if got := r.Find([]byte("token_type=x&password=abc"), true, ""); fmt.Sprint(got) != "[{parameter password  22 3}]" {
		t.Errorf("a form: %v", got)
	}
}

func TestFindURL(t *testing.T) {
	u := "https://u:pass@h/" + madeUpJWT + "?a=1&sig=abc#id_token=x"
	var got []string
	for _, h := range New(Options{}).FindURL(u) {
		got = append(got, fmt.Sprintf("%s %s %s", h.Rule, h.Name, u[h.Off:h.Off+h.Len]))
	}
	want := "url-password  pass, key-shape eyJ " + madeUpJWT + ", parameter sig abc, parameter id_token x"
	if strings.Join(got, ", ") != want {
		t.Errorf("%q", got)
	}
}

func TestFindHeaders(t *testing.T) {
	h := captures.Headers{
		{Name: "authorization", Value: "Bearer made-up-token-1"},
		{Name: "cookie", Value: "a=made-up-cookie; b=made-up-token-1"},
		{Name: "x-api-key", Value: "[redacted:0a1b2c3d]"},
		{Name: "set-cookie", Value: "s=v; Path=/"},
		{Name: "location", Value: "/?code=1234"},
		{Name: "x-note", Value: "it is made-up-token-1"},
		{Name: "accept", Value: "*/*"},
	}
	var got []string
	for _, hit := range New(Options{}).FindHeaders(h) {
		got = append(got, fmt.Sprintf("%s %s %s", hit.Header, hit.Rule, h.Get(hit.Header)[hit.Off:hit.Off+hit.Len]))
	}
	want := "authorization header made-up-token-1, cookie header made-up-cookie, cookie header made-up-token-1, " +
		"set-cookie header v, location parameter 1234, x-note seen made-up-token-1"
	if strings.Join(got, ", ") != want {
		t.Errorf("%q", got)
	}
}

// What is found is what is replaced, and nothing is found in what was cleaned.
func TestFindAgreesWithBytes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p, _ := secretBody(t)
		hits := New(Options{}).Find(p, false, "")
		r := New(Options{})
		clean := r.Bytes(p)
		if found, changed := len(hits) > 0, string(clean) != string(p); found != changed {
			t.Fatalf("%d hits, changed: %v: %q", len(hits), changed, p)
		}
		last := 0
		for _, h := range hits {
			if string(p[last:h.Off]) != string(clean[last:h.Off]) {
				t.Fatalf("something was replaced before %v: %q", h, p)
			}
			last = h.Off + h.Len
		}
		if left := r.Find(clean, false, ""); len(left) > 0 {
			t.Fatalf("%v is left in %q", left, clean)
		}
	})
}

func TestFillAndNames(t *testing.T) {
	r := New(Options{})
	for _, secret := range []string{"abc", "made-up", "a-made-up-secret-value"} {
		filled := r.Fill([]byte(secret))
		if len(filled) != len(secret) || !IsPlaceholder(string(filled)) || string(r.Fill(filled)) != string(filled) {
			t.Errorf("%s becomes %s", secret, filled)
		}
	}
	if surely, _ := r.IsSecretName("api_key"); !surely {
		t.Error("api_key tells nothing")
	}
	if surely, perhaps := r.IsSecretName("token"); surely || !perhaps {
		t.Error("token tells too much or too little")
	}
}
