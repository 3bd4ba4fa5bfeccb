package h1

import (
	"bufio"
	"io"
	"net/http"
	"strings"
	"testing"
)

// checkAsNetHTTP compares a request that passes with what net/http's server takes it
// for: where both accept it, they agree on its end.
func checkAsNetHTTP(t *testing.T, raw string, q *Request, content string) {
	t.Helper()
	in := bufio.NewReader(strings.NewReader(raw))
	r, err := http.ReadRequest(in)
	if err != nil {
		return
	}
	got, err := io.ReadAll(r.Body)
	if r.Method != q.Method || r.RequestURI != q.Target || err == nil && string(got) != content {
		t.Fatalf("%q: %s %s with %q, net/http has %s %s with %q, %v", raw, q.Method, q.Target, content, r.Method, r.RequestURI, got, err)
	}
}
