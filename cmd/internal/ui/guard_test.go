package ui_test

import (
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
)

// ask sends a request to the workbench whose URL is given, as change has it, and returns the
// status and the answer.
func ask(t testing.TB, base, method, path string, change func(*http.Request)) (*http.Response, string) {
	t.Helper()
	u, err := url.Parse(base)
	if err != nil {
		t.Fatal(err)
	}
	r, err := http.NewRequestWithContext(t.Context(), method, "http://"+u.Host+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("X-Unwire-Token", strings.TrimPrefix(u.Fragment, "token="))
	if change != nil {
		change(r)
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp, string(body)
}

// TestGuard: only the page with the token, by the name of the listener, is answered.
func TestGuard(t *testing.T) {
	t.Parallel()
	base := serve(t, sample(t))
	for name, c := range map[string]struct {
		method, path string
		status       int
		change       func(*http.Request)
	}{
		"page":        {"GET", "/", 200, func(r *http.Request) { r.Header.Del("X-Unwire-Token") }},
		"api":         {"GET", "/api/captures", 200, nil},
		"localhost":   {"GET", "/api/captures", 200, func(r *http.Request) { r.Host = "localhost:" + r.URL.Port() }},
		"own origin":  {"GET", "/api/captures", 200, func(r *http.Request) { r.Header.Set("Origin", "http://"+r.URL.Host) }},
		"no token":    {"GET", "/api/captures", 401, func(r *http.Request) { r.Header.Del("X-Unwire-Token") }},
		"wrong token": {"GET", "/api/captures", 401, func(r *http.Request) { r.Header.Set("X-Unwire-Token", "x") }},
		"token in a cookie": {"GET", "/api/captures", 401, func(r *http.Request) {
			r.Header.Set("Cookie", "token="+r.Header.Get("X-Unwire-Token"))
			r.Header.Del("X-Unwire-Token")
		}},
		"token in the query":   {"GET", "/api/captures?token=x", 401, func(r *http.Request) { r.Header.Del("X-Unwire-Token") }},
		"DNS rebinding":        {"GET", "/api/captures", 403, func(r *http.Request) { r.Host = "evil.example:" + r.URL.Port() }},
		"rebinding, page":      {"GET", "/", 403, func(r *http.Request) { r.Host = "evil.example" }},
		"host without a port":  {"GET", "/", 403, func(r *http.Request) { r.Host = "127.0.0.1" }},
		"other port":           {"GET", "/", 403, func(r *http.Request) { r.Host = "127.0.0.1:1" }},
		"other origin":         {"GET", "/api/captures", 403, func(r *http.Request) { r.Header.Set("Origin", "https://evil.example") }},
		"null origin":          {"GET", "/api/captures", 403, func(r *http.Request) { r.Header.Set("Origin", "null") }},
		"other site":           {"GET", "/", 403, func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "cross-site") }},
		"same site":            {"GET", "/", 403, func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "same-site") }},
		"typed into the bar":   {"GET", "/", 200, func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "none") }},
		"post to the page":     {"POST", "/", 405, nil},
		"get of a change":      {"GET", "/api/notes/put", 405, nil},
		"post of a question":   {"POST", "/api/list", 405, nil},
		"unknown":              {"GET", "/api/nothing", 404, nil},
		"preflight":            {"OPTIONS", "/api/captures", 403, func(r *http.Request) { r.Header.Set("Origin", "https://evil.example") }},
		"no such capture":      {"GET", "/api/list?c=9", 404, nil},
		"bad window":           {"GET", "/api/list?from=-1", 400, nil},
		"no such exchange":     {"GET", "/api/exchange?x=99999", 404, nil},
		"no such frame":        {"GET", "/api/frame?x=1&f=down/99999", 404, nil},
		"bad frame":            {"GET", "/api/frame?x=1&f=sideways", 400, nil},
		"no such row":          {"GET", "/api/value?x=1&f=up/0&row=99999", 404, nil},
		"no such layer":        {"GET", "/api/bytes?x=1&f=up/0&layer=99", 404, nil},
		"a flag as the format": {"GET", "/api/download?x=1&what=--help", 400, nil},
		"bad filter":           {"GET", "/api/list?filter=hots:x", 400, nil},
		"bad order":            {"GET", "/api/list?sort=age", 400, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			resp, body := ask(t, base, c.method, c.path, c.change)
			if resp.StatusCode != c.status {
				t.Errorf("status %d, want %d: %s", resp.StatusCode, c.status, body)
			}
			for name, want := range map[string]string{
				"Content-Security-Policy": "default-src 'none'", "X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer", "Cache-Control": "no-store",
			} {
				if !strings.HasPrefix(resp.Header.Get(name), want) {
					t.Errorf("%s: %q, want %q", name, resp.Header.Get(name), want)
				}
			}
			if len(resp.Cookies()) > 0 {
				t.Errorf("cookies: %v", resp.Cookies())
			}
			for _, other := range []string{"Access-Control-Allow-Origin", "Access-Control-Allow-Headers"} {
				if resp.Header.Get(other) != "" {
					t.Errorf("%s is set", other)
				}
			}
		})
	}
}

// TestPolicy: the policy allows no inline script or style, no evaluation and no other origin.
func TestPolicy(t *testing.T) {
	t.Parallel()
	resp, _ := ask(t, serve(t, sample(t)), "GET", "/", nil)
	policy := resp.Header.Get("Content-Security-Policy")
	for _, want := range []string{"script-src 'self';", "style-src 'self';", "connect-src 'self';", "require-trusted-types-for 'script'", "trusted-types 'none'", "frame-ancestors 'none'"} {
		if !strings.Contains(policy, want) {
			t.Errorf("the policy lacks %s: %s", want, policy)
		}
	}
	for _, bad := range []string{"unsafe", "http:", "https:", "data:", "*"} {
		if strings.Contains(policy, bad) {
			t.Errorf("the policy has %s: %s", bad, policy)
		}
	}
}

// TestDownloadIsAttachment: a frame is sent as a file that no browser shows.
func TestDownloadIsAttachment(t *testing.T) {
	t.Parallel()
	resp, body := ask(t, serve(t, sample(t)), "GET", "/api/download?x=1&f=up/0&what=data", nil)
	if resp.StatusCode != 200 || resp.Header.Get("Content-Type") != "application/octet-stream" || !strings.HasPrefix(resp.Header.Get("Content-Disposition"), "attachment;") || resp.Header.Get("X-Content-Type-Options") != "nosniff" {
		t.Errorf("%d %v", resp.StatusCode, resp.Header)
	}
	if !strings.Contains(body, "What does Backoff do?") {
		t.Errorf("the frame is not in the download: %q", body)
	}
}
