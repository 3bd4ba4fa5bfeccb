package mitm

import (
	"crypto/tls"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
)

// describe writes down a request as a server sees it.
func describe(r *http.Request) string {
	body, err := io.ReadAll(r.Body)
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s %s host %s, length %d, encoding %v, body %q %v\n", r.Method, r.RequestURI, r.Proto, r.Host, r.ContentLength, r.TransferEncoding, body, err)
	for _, name := range slices.Sorted(maps.Keys(r.Header)) {
		fmt.Fprintf(&b, "%s: %q\n", name, r.Header[name])
	}
	return b.String()
}

// TestRequestsArriveAsSent compares what the server sees with and without the
// proxy.
func TestRequestsArriveAsSent(t *testing.T) {
	t.Parallel()
	origin := newTLSOrigin(t, true, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, describe(r)) }))
	origin.TLS.NextProtos = []string{"h2", "http/1.1"}
	known := func(s string) func() io.Reader { return func() io.Reader { return strings.NewReader(s) } }
	unknown := func(s string) func() io.Reader {
		return func() io.Reader { return io.MultiReader(strings.NewReader(s)) }
	}
	none := func() io.Reader { return nil }
	for name, c := range map[string]struct {
		method, path string
		body         func() io.Reader
		header       http.Header
	}{
		"get":            {"GET", "/", none, nil},
		"get with body":  {"GET", "/", known("b"), nil},
		"post, empty":    {"POST", "/", known(""), nil},
		"post, chunked":  {"POST", "/", unknown("abc"), nil},
		"delete":         {"DELETE", "/x", none, nil},
		"odd method":     {"M-SEARCH", "/x", none, nil},
		"escapes":        {"GET", "/%2Fa%20b%C3%A4;p=1/../c?q=%zz&r=a+b&&", none, nil},
		"double slashes": {"GET", "//a//b", none, nil},
		"empty query":    {"GET", "/a?", none, nil},
		"cookies":        {"GET", "/", none, http.Header{"Cookie": {"a=1; b=2"}}},
		"repeated":       {"GET", "/", none, http.Header{"X-Two": {"1", "2"}, "X-Empty": {""}}},
		"no user agent":  {"GET", "/", none, http.Header{"User-Agent": {""}}},
		"te":             {"POST", "/", unknown("x"), http.Header{"Te": {"trailers"}, "Accept-Encoding": {"gzip, br"}}},
	} {
		t.Run(name, func(t *testing.T) {
			eachVersion(t, func(t *testing.T, h2 bool) {
				b := newTestProxy(t, []*httptest.Server{origin}, nil)
				var seen []string
				for _, client := range []*http.Client{direct(t, origin, h2), b.client(h2)} {
					u, err := url.Parse(origin.URL)
					if err != nil {
						t.Fatal(err)
					}
					u.Opaque = c.path
					if strings.HasPrefix(c.path, "//") {
						u.Opaque, u.Path = "", c.path
					}
					req, err := http.NewRequest(c.method, origin.URL, c.body())
					if err != nil {
						t.Fatal(err)
					}
					req.URL = u
					maps.Copy(req.Header, c.header)
					res, err := client.Do(req)
					if err != nil {
						t.Fatal(err)
					}
					got, _ := io.ReadAll(res.Body)
					res.Body.Close()
					seen = append(seen, string(got))
				}
				if seen[0] != seen[1] {
					t.Errorf("through the proxy:\n%s\ndirectly:\n%s", seen[1], seen[0])
				}
			})
		})
	}
}

// TestResponsesArriveAsSent compares what the client sees.
func TestResponsesArriveAsSent(t *testing.T) {
	status := func(code int) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }
	}
	handlers := map[string]http.HandlerFunc{
		"empty":       func(http.ResponseWriter, *http.Request) {},
		"no content":  status(http.StatusNoContent),
		"not changed": status(http.StatusNotModified),
		"redirect":    func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/elsewhere", http.StatusFound) },
		"odd status":  status(599),
		"464":         status(464),
		"cookies": func(w http.ResponseWriter, _ *http.Request) {
			w.Header()["Set-Cookie"] = []string{"a=1; Path=/", "b=2"}
		},
		"no type": func(w http.ResponseWriter, _ *http.Request) {
			w.Header()["Content-Type"] = nil
			_, _ = io.WriteString(w, "<html>")
		},
		"known length": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "5")
			_, _ = io.WriteString(w, "hello")
		},
		"chunked": func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, "hel")
			_ = http.NewResponseController(w).Flush()
			_, _ = io.WriteString(w, "lo")
		},
		"flushed, empty": func(w http.ResponseWriter, _ *http.Request) { _ = http.NewResponseController(w).Flush() },
		"encoded": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			w.Header().Set("Vary", "Accept-Encoding")
			_, _ = io.WriteString(w, "\x1f\x8bnot gzip at all")
		},
		"exactly a chunk": func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(make([]byte, chunkSize)) },
	}
	origin := newTLSOrigin(t, true, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		handlers[r.Header.Get("X-Case")](w, r)
	}))
	origin.TLS.NextProtos = []string{"h2", "http/1.1"}
	eachVersion(t, func(t *testing.T, h2 bool) {
		b := newTestProxy(t, []*httptest.Server{origin}, nil)
		clients := []*http.Client{direct(t, origin, h2), b.client(h2)}
		for name := range handlers {
			for _, method := range []string{"GET", "HEAD", "POST"} {
				var seen []string
				for _, c := range clients {
					req, _ := http.NewRequest(method, origin.URL, nil)
					req.Header.Set("X-Case", name)
					res, err := c.Do(req)
					if err != nil {
						t.Fatalf("%s %s: %v", method, name, err)
					}
					body, err := io.ReadAll(res.Body)
					res.Body.Close()
					res.Header.Del("Date")
					seen = append(seen, fmt.Sprintf("%d %v length %d encoding %v trailer %v body %d %.20q %v", res.StatusCode, res.Header, res.ContentLength, res.TransferEncoding, res.Trailer, len(body), body, err))
				}
				if seen[0] != seen[1] {
					t.Errorf("%s %s: through the proxy\n%s\ndirectly\n%s", method, name, seen[1], seen[0])
				}
			}
		}
	})
}

// TestOptionsAsterisk names no path at all.
func TestOptionsAsterisk(t *testing.T) {
	origin := newTLSOrigin(t, false, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, describe(r)) }))
	b := newTestProxy(t, []*httptest.Server{origin}, nil)
	conn := b.handshake(b.tunnel(origin.Listener.Addr().String()), "127.0.0.1")
	straight, err := tls.Dial("tcp", origin.Listener.Addr().String(), &tls.Config{InsecureSkipVerify: true})
	if err != nil {
		t.Fatal(err)
	}
	var seen []string
	for _, c := range []io.ReadWriter{straight, conn} {
		_, _ = io.WriteString(c, "OPTIONS * HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
		answer, _ := io.ReadAll(c)
		first, _, _ := strings.Cut(string(answer), "\r\n")
		seen = append(seen, first)
	}
	if seen[0] != seen[1] {
		t.Errorf("through the proxy %q, directly %q", seen[1], seen[0])
	}
}
