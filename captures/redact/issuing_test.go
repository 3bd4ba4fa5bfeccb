package redact

import (
	"strings"
	"testing"

	"unwire/captures"
)

// The path of a URL, its host or a command in its query says whether a call issues or stores secrets; other parameters and
// words that only resemble others do not.
func TestKindOfCall(t *testing.T) {
	for u, want := range map[string]callKind{
		"https://a.example.com/api/login":                            issuing,
		"https://a.example.com/v1/accounts:signInWithPassword?key=x": issuing,
		"https://a.example.com/oauth2/v1/token":                      issuing,
		"https://a.example.com/secrets/db/versions/1":                storing,
		"https://a.example.com/storageAccounts/a/listKeys":           issuing,
		"https://a.example.com/create_session.cgi":                   issuing,
		"/api/auth/otp":                                               issuing,
		"https://login.example.com/":                                  otherCall,
		"https://a.example.com/x?next=/login":                         otherCall,
		"https://a.example.com/session/s1/message":                    otherCall,
		"https://a.example.com/v1/messages/count_tokens":              otherCall,
		"https://a.example.com/authors/12":                            otherCall,
		"https://a.example.com/user/keys":                             otherCall,
		"https://a.example.com/tickets/1":                             otherCall,
		"":                                                            otherCall,
		"https://a.example.com/v1/keys/k/decrypt":                     issuing,
		"https://a.example.com/repo/1/env_vars":                       issuing,
		"https://a.example.com/api.cgi?cmd=Login":                     issuing,
		"https://a.example.com/api.cgi?x=1&svc=token/login":           issuing,
		"https://a.example.com/api.cgi?cmd=GetDevInfo":                otherCall,
		"https://secretsmanager.eu-west-1.amazonaws.com/":             storing,
		"https://v.vault.azure.net/keys/k":                            storing,
		"https://a.example.com/api/v1/namespaces/a/secrets?limit=500": storing,
		"https://a.example.com/v1/chains/1/vaults/all":                otherCall,
	} {
		if got := kindOfCall(u); got != want {
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

// In a call to a store of secrets, words with general names are secrets, and so are the entries of some objects; properties
// of a secret and the same names in other calls are none.
func TestFindInStore(t *testing.T) {
	const url, issuing, other = "https://a.example.com/v1/secrets/db", "https://a.example.com/v1/env", "https://a.example.com/v1/items"
	for body, want := range map[string]int{
		`{"name":"db","value":"plum-orchid","version":1}`:                                  1,
		`{"secrets":[{"id":"1","static_version":{"value":"plum-orchid"}}]}`:                1,
		`{"data":{"colour":"plum-orchid","user":"mary"},"kind":"Secret"}`:                  2,
		`{"variables":{"REDIS_AUTH":"plum-orchid"}}`:                                       1,
		`{"WEATHER":"plum-orchid"}`:                                                        1,
		`{"ID":"plum-orchid","ARN":"arn:aws:x"}`:                                           0,
		`{"data":{"created_time":"2024-03-01T10:00:00Z","id":"plum-orchid"}}`:              0,
		`{"secrets":[{"name":"plum-orchid","createTime":"2024","labels":{"team":"abc"}}]}`: 0,
		`{"value":"2024-03-01"}`:                                                           0,
	} {
		if got := New(Options{}).Find([]byte(body), false, url); len(got) != want {
			t.Errorf("%s: %v, want %d", body, got, want)
		}
		if got := New(Options{}).Find([]byte(body), false, other); len(got) != 0 {
			t.Errorf("%s in another call: %v, want none", body, got)
		}
	}

	// A call that issues secrets, or has the environment of a program, shows those that look random.
	for body, want := range map[string]int{
		`{"STRIPE_API":"oLdxukB4bDJYqQoMmQlb"}`:             1,
		`{"LOG_LEVEL":"debug"}`:                             0,
		`{"envVars":[{"key":"DB_PASS","value":"plum-2"}]}`:  1,
		`{"envVars":[{"key":"LOG_LEVEL","value":"debug"}]}`: 0,
	} {
		if got := New(Options{}).Find([]byte(body), false, issuing); len(got) != want {
			t.Errorf("%s: %v, want %d", body, got, want)
		}
	}
}

// A token that is a whole body is replaced although it arrives with pauses, and other bodies of such calls are not held back.
func TestWholeBodyWithPauses(t *testing.T) {
	const url, token = "https://a.example.com/api/login", "4f1a9c3e5b7d2086a1c3e5f79b0d2468"
	for cut := 1; cut < len(token); cut++ {
		b := NewBodyFilter(New(Options{}), nil, url)
		var out []*captures.Chunk
		for _, piece := range []string{token[:cut], token[cut:], "\n"} {
			b.Write(&captures.Chunk{Data: []byte(piece)})
			b.FlushHeld()
			out = append(out, b.Ready()...)
		}
		b.Close(false)
		got := string(join(append(out, b.Ready()...)))
		if len(got) != len(token)+1 || !strings.HasPrefix(got, "redacted-") || strings.Contains(got, token[len(token)-4:]) {
			t.Errorf("cut at %d: %q", cut, got)
		}
	}
	for _, body := range []string{"{\"a\":", "event one", "<html>", strings.Repeat("a", 4<<10), "ok" + strings.Repeat("\n", 4<<10)} {
		b := NewBodyFilter(New(Options{}), nil, url)
		b.Write(&captures.Chunk{Data: []byte(body)})
		b.FlushHeld()
		if len(b.Ready()) == 0 {
			t.Errorf("%.20q is held back", body)
		}
	}
}

// A number without quotes is replaced by nines if its name denotes a code, so that the JSON stays valid.
func TestNumbersWithoutQuotes(t *testing.T) {
	for body, want := range map[string]string{
		`{"otp":493817,"n":1}`:          `{"otp":999999,"n":1}`,
		`{"pin": 4938}`:                 `{"pin": 9999}`,
		`{"card":{"cvv":837}}`:          `{"card":{"cvv":999}}`,
		`{"otp":999999}`:                `{"otp":999999}`,
		`{"session_id":493817}`:         `{"session_id":493817}`,
		`{"token":493817}`:              `{"token":493817}`,
		`{"code":493817}`:               `{"code":493817}`,
		`{"otp":4.5,"pin":4938.25}`:     `{"otp":4.5,"pin":4938.25}`,
		`{"pin":493817493817493817493}`: `{"pin":493817493817493817493}`,
	} {
		for cut := range body {
			if got := string(join(redactBody(New(Options{}), nil, []byte(body), cut))); got != want {
				t.Errorf("%s, cut at %d: %s, want %s", body, cut, got, want)
			}
		}
	}
}

// A flag or a type beside a value tells that the value is a secret.
func TestMarkedSecret(t *testing.T) {
	for body, want := range map[string]int{
		`{"name":"x","value":"made-up","sensitive":true}`:      1,
		`{"Value":"made-up","Type":"SecureString"}`:            1,
		`{"value":"made-up","sensitive":false}`:                0,
		`{"a":{"value":"made-up"},"b":{"sensitive":true}}`:     0,
		"key=X&value=made-up&masked=true":                      1,
		`{"密码":"made-up"}`:                                     1,
		"a=1&%D0%BF%D0%B0%D1%80%D0%BE%D0%BB%D1%8C=made-up":     1,
		`{"op":"replace","path":"password","value":"made-up"}`: 1,
		"a=1&card[number]=4111111111111111&card[exp_month]=8":  1,
		`{"kind":"ConfigMap","data":{"dsn":"made-up"}}`:        0,
	} {
		if got := New(Options{}).Find([]byte(body), false, ""); len(got) != want {
			t.Errorf("%s: %v, want %d", body, got, want)
		}
	}
	const url = "https://k.example.com/api/v1/namespaces/a/secrets"
	for body, want := range map[string]int{
		`{"kind":"Secret","stringData":{"dsn":"made-up","other":"also-made-up"}}`: 2,
		`{"kind":"Secret","data":{"dsn":"bWFkZS11cA=="}}`:                         1,
		`{"kind":"Table","columns":[{"name":"Data","type":"string"}]}`:            0,
	} {
		if got := New(Options{}).Find([]byte(body), false, url); len(got) != want {
			t.Errorf("%s: %v, want %d", body, got, want)
		}
	}
	if got := New(Options{}).Find([]byte("4f1a9c3e5b7d2086a1c3e5f79b0d2468"), false, "wss://a.example.com/stream"); len(got) != 1 {
		t.Errorf("a message that is a token: %v", got)
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
