package value

import (
	"encoding/base64"
	"strings"
	"testing"
)

func TestFormOf(t *testing.T) {
	token := func(head, body string) string {
		enc := base64.RawURLEncoding
		return enc.EncodeToString([]byte(head)) + "." + enc.EncodeToString([]byte(body)) + ".c2lnbmF0dXJl"
	}
	for in, want := range map[string]Form{
		"4fe591a5-d40f-49ef-8b4c-8d6475b81810":   {"uuid", "version 4"},
		"018F5E2B-7c00-7abc-8def-0123456789ab":   {"uuid", "version 7, 2024-05-09T16:24:19.2Z"},
		"c232ab00-9414-11ec-b3c8-9f6bdeced846":   {"uuid", "version 1, 2022-02-22T19:22:22Z"},
		"00000000-0000-0000-0000-000000000000":   {"uuid", "nil"},
		"4fe591a5-d40f-49ef-8b4c-8d6475b8181g":   {},
		`{"a":1}`:                                {Name: "json"},
		`[1, 2]`:                                 {Name: "json"},
		`[sic]`:                                  {},
		"https://example.com/a?b=c":              {Name: "url"},
		"file:///etc/hosts":                      {Name: "url"},
		"/home/dev/main.go":                      {Name: "path"},
		"./a.txt":                                {Name: "path"},
		`C:\Users\dev`:                           {Name: "path"},
		"internal/retry/backoff.go":              {Name: "path"},
		"and/or":                                 {},
		"1.2.3":                                  {Name: "semver"},
		"v1.20.0-rc.1+build5":                    {Name: "semver"},
		"127.0.0.1":                              {Name: "ip"},
		"1.2.300.4000":                           {},
		"1.2":                                    {},
		"2024-05-09":                             {Name: "date"},
		"2024-05-09T15:04:05Z":                   {Name: "date"},
		"2024-05-09T15:04:05+02:00":              {"date", "2024-05-09T13:04:05Z"},
		"2024-05-09T15:04:05":                    {"date", "no time zone"},
		"Sat, 21 Nov 2026 12:03:30 GMT":          {Name: "date"},
		"2024-13-09":                             {},
		"a.b@example.com":                        {Name: "email"},
		"1700000000":                             {"number", "2023-11-14T22:13:20Z"},
		"1700000000123":                          {"number", "2023-11-14T22:13:20.123Z"},
		"-12345":                                 {Name: "number"},
		"099f1adbea654f74b750d8d00ec6a9d1":       {"hex", "16 bytes"},
		"defacedfacade":                          {},
		"SGVsbG8gd29ybGQsIHRoaXMgaXM=":           {"base64", "20 bytes"},
		"data:image/png;base64,iVBORw0":          {"data-url", "image/png;base64"},
		"-----BEGIN CERTIFICATE-----\nMIIB":      {"pem", "certificate"},
		"AgentConversationTurnStructureWithMore": {},
		"internationalization":                   {},
		"hello world":                            {},
		"":                                       {},
		token(`{"alg":"HS256"}`, `{"exp":17e8}`): {"jwt", `HS256, expires 2023-11-14T22:13:20Z`},
		token(`{"alg":"none"}`, `{"sub":"someone"}`): {"jwt", "none"},
		token(`{"typ":"JWT"}`, `{"exp":17e8}`):       {},
	} {
		if got, ok := FormOf([]byte(in)); got != want || ok != (want != Form{}) {
			t.Errorf("%q: %v %v, want %v", in, got, ok, want)
		}
	}
}

// What is said of a token is none of its claims but times.
func TestFormOfTokenIsRedacted(t *testing.T) {
	const who = "someone-nobody-may-know"
	enc := base64.RawURLEncoding
	token := enc.EncodeToString([]byte(`{"alg":"RS256","kid":"`+who+`"}`)) + "." +
		enc.EncodeToString([]byte(`{"sub":"`+who+`","exp":1700000000,"iat":1600000000}`)) + ".c2ln"
	f, ok := FormOf([]byte(token))
	if !ok || strings.Contains(f.Note, who) || !strings.Contains(f.Note, "issued 2020-09-13T12:26:40Z") {
		t.Errorf("%v %v", f, ok)
	}
}

func FuzzFormOf(f *testing.F) {
	for _, s := range []string{"4fe591a5-d40f-49ef-8b4c-8d6475b81810", "eyJhbGciOiJIUzI1NiJ9.eyJleHAiOjF9.x", "[[", "2024-05-09T15:04:05", "1.2.3-", "data:,", "a@b.cc", "://", "-----BEGIN -----", "c:/"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		got, ok := FormOf(b)
		if ok != (got.Name != "") {
			t.Fatalf("%q: %v %v", b, got, ok)
		}
	})
}
