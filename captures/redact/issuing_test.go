package redact

import (
	"testing"
)

// The path of a URL says whether a call issues secrets; a host, a query and words that only resemble others do not.
func TestIssuesSecrets(t *testing.T) {
	for u, want := range map[string]bool{
		"https://a.example.com/api/login":                            true,
		"https://a.example.com/v1/accounts:signInWithPassword?key=x": true,
		"https://a.example.com/oauth2/v1/token":                      true,
		"https://a.example.com/secrets/db/versions/1":                true,
		"https://a.example.com/storageAccounts/a/listKeys":           true,
		"https://a.example.com/create_session.cgi":                   true,
		"/api/auth/otp":                                  true,
		"https://login.example.com/":                     false,
		"https://a.example.com/x?next=/login":            false,
		"https://a.example.com/session/s1/message":       false,
		"https://a.example.com/v1/messages/count_tokens": false,
		"https://a.example.com/authors/12":               false,
		"https://a.example.com/user/keys":                false,
		"https://a.example.com/tickets/1":                false,
		"":                                               false,
	} {
		if got := issuesSecrets(u); got != want {
			t.Errorf("%q: %v, want %v", u, got, want)
		}
	}
}

// In a call that issues secrets, random values with general names are secrets, and so is a token that is the whole body.
func TestFindInCallThatIssuesSecrets(t *testing.T) {
	const url, other = "https://a.example.com/api/login", "https://a.example.com/api/items"
	for _, c := range []struct {
		body string
		want int
	}{
		{`{"result":"4f1a9c3e5b7d2086a1c3e5f79b0d2468"}`, 1},
		{`"4f1a9c3e5b7d2086a1c3e5f79b0d2468"`, 1},
		{"4f1a9c3e5b7d2086a1c3e5f79b0d2468\n", 1},
		{`{"code":"10001","result":"failure"}`, 0},
		{`{"data":"2024-01-01T00:00:00Z"}`, 0},
		{`{"id":"4f1a9c3e5b7d2086a1c3e5f79b0d2468"}`, 0},
	} {
		if got := New(Options{}).Find([]byte(c.body), false, url); len(got) != c.want {
			t.Errorf("%s: %v, want %d", c.body, got, c.want)
		}
		if got := New(Options{}).Find([]byte(c.body), false, other); len(got) != 0 {
			t.Errorf("%s in another call: %v, want none", c.body, got)
		}
	}
}

// JSON in a field of a form, a password in the arguments of a login, and credentials after a word in a header field are
// found; what resembles them is not.
func TestFindBesideOtherWords(t *testing.T) {
	for body, want := range map[string]int{
		"a=1&payload=%7B%22token%22%3A%22abcd1234efgh5678ijkl%22%7D":     1,
		"a=1&payload=%7B%22nextToken%22%3A%22abcd1234efgh5678ijkl%22%7D": 0,
		`{"method":"login","params":["mary","made-up-word"]}`:            1,
		`{"method":"listUsers","params":["mary","made-up-word"]}`:        0,
		`{"number":"4111 1111 1111 1111","cvc":"123"}`:                   2,
		`{"number":"4111 1111 1111 1111","currency":"EUR"}`:              0,
		`{"Type":"SecureString","Value":"made-up"}`:                      1,
		`{"Type":"String","Value":"made-up"}`:                            0,
	} {
		if got := New(Options{}).Find([]byte(body), false, ""); len(got) != want {
			t.Errorf("%s: %v, want %d", body, got, want)
		}
	}
}
