package h1

import (
	"net/http"
	"strings"
	"testing"

	"unwire/captures"
)

// malformedRequests are requests that some take for others than they look: each is
// refused, whatever server it is for.
//
// Source: RFC 9112, section 11.2; known request smuggling vectors (CL.TE, TE.CL, TE.TE,
// CL.0, obs-fold, bare LF and CR, and spaces in names)
var malformedRequests = map[string]string{
	"both lengths":                 "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 6\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nG",
	"both lengths, other order":    "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n5c\r\n",
	"differing lengths":            "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabcd",
	"list of lengths":              "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 3, 3\r\n\r\nabc",
	"signed length":                "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: +3\r\n\r\nabc",
	"negative length":              "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n",
	"hexadecimal length":           "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 0x3\r\n\r\nabc",
	"empty length":                 "POST / HTTP/1.1\r\nHost: x\r\nContent-Length:\r\n\r\nabc",
	"huge length":                  "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999999999999\r\n\r\n",
	"length in two words":          "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 3 3\r\n\r\nabc",
	"two encodings":                "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n",
	"chunked twice":                "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
	"another encoding":             "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
	"chunked and another":          "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n",
	"chunked in quotes":            "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: \"chunked\"\r\n\r\n0\r\n\r\n",
	"encoding behind a VT":         "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: \x0bchunked\r\n\r\n0\r\n\r\n",
	"encoding in HTTP/1.0":         "POST / HTTP/1.0\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
	"space before the colon":       "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding : chunked\r\n\r\n0\r\n\r\n",
	"tab before the colon":         "POST / HTTP/1.1\r\nHost: x\r\nContent-Length\t: 3\r\n\r\nabc",
	"space before the name":        "POST / HTTP/1.1\r\nHost: x\r\n Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
	"folded":                       "POST / HTTP/1.1\r\nHost: x\r\nX: 1\r\n\tTransfer-Encoding: chunked\r\n\r\n",
	"folded encoding":              "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding:\r\n chunked\r\n\r\n0\r\n\r\n",
	"folded before the first":      "GET / HTTP/1.1\r\n Host: x\r\n\r\n",
	"bare LF":                      "GET / HTTP/1.1\nHost: x\n\n",
	"bare LF in a value":           "GET / HTTP/1.1\r\nHost: x\r\nX: a\nTransfer-Encoding: chunked\r\n\r\n",
	"bare LF at the end":           "GET / HTTP/1.1\r\nHost: x\r\n\n",
	"bare CR in a value":           "GET / HTTP/1.1\r\nHost: x\r\nX: a\rTransfer-Encoding: chunked\r\n\r\n",
	"bare CR in the request line":  "GET /\rX HTTP/1.1\r\nHost: x\r\n\r\n",
	"NUL in a value":               "GET / HTTP/1.1\r\nHost: x\r\nX: a\x00b\r\n\r\n",
	"NUL in a name":                "GET / HTTP/1.1\r\nHost: x\r\nX\x00: a\r\n\r\n",
	"NUL in the target":            "GET /\x00 HTTP/1.1\r\nHost: x\r\n\r\n",
	"DEL in a value":               "GET / HTTP/1.1\r\nHost: x\r\nX: \x7f\r\n\r\n",
	"two hosts":                    "GET / HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n",
	"the same host twice":          "GET / HTTP/1.1\r\nHost: x\r\nhost: x\r\n\r\n",
	"two hosts in one":             "GET / HTTP/1.1\r\nHost: x y\r\n\r\n",
	"no host":                      "GET / HTTP/1.1\r\nX: 1\r\n\r\n",
	"no colon":                     "GET / HTTP/1.1\r\nHost: x\r\nnonsense\r\n\r\n",
	"no name":                      "GET / HTTP/1.1\r\nHost: x\r\n: v\r\n\r\n",
	"name in parentheses":          "GET / HTTP/1.1\r\nHost: x\r\nX(y): v\r\n\r\n",
	"name beyond ASCII":            "GET / HTTP/1.1\r\nHost: x\r\nTransfer-Encod\xc4\xb1ng: chunked\r\n\r\n",
	"no version":                   "GET /\r\nHost: x\r\n\r\n",
	"version 0.9":                  "GET / HTTP/0.9\r\nHost: x\r\n\r\n",
	"version 2":                    "GET / HTTP/2.0\r\nHost: x\r\n\r\n",
	"version in lower case":        "GET / http/1.1\r\nHost: x\r\n\r\n",
	"version with a space":         "GET / HTTP/1.1 \r\nHost: x\r\n\r\n",
	"two spaces":                   "GET  / HTTP/1.1\r\nHost: x\r\n\r\n",
	"tabs":                         "GET\t/\tHTTP/1.1\r\nHost: x\r\n\r\n",
	"space in the target":          "GET /a b HTTP/1.1\r\nHost: x\r\n\r\n",
	"no target":                    "GET  HTTP/1.1\r\nHost: x\r\n\r\n",
	"target of no form":            "GET a HTTP/1.1\r\nHost: x\r\n\r\n",
	"asterisk with GET":            "GET * HTTP/1.1\r\nHost: x\r\n\r\n",
	"URL without a host":           "GET http:///a HTTP/1.1\r\nHost: x\r\n\r\n",
	"CONNECT to a path":            "CONNECT /a HTTP/1.1\r\nHost: x\r\n\r\n",
	"no method":                    " / HTTP/1.1\r\nHost: x\r\n\r\n",
	"method with a slash":          "G/T / HTTP/1.1\r\nHost: x\r\n\r\n",
	"empty lines before":           "\r\n\r\nGET / HTTP/1.1\r\nHost: x\r\n\r\n",
	"chunk without a size":         "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n\r\nabc\r\n0\r\n\r\n",
	"chunk size with a sign":       "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n+3\r\nabc\r\n0\r\n\r\n",
	"chunk size with 0x":           "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n0x3\r\nabc\r\n0\r\n\r\n",
	"chunk size with a space":      "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3 \r\nabc\r\n0\r\n\r\n",
	"chunk size that overflows":    "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n10000000000000003\r\nabc\r\n0\r\n\r\n",
	"chunk size with a bare LF":    "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3\nabc\r\n0\r\n\r\n",
	"chunk size with a bare CR":    "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3\rabc\r\n0\r\n\r\n",
	"extension with a bare LF":     "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3;a\nabc\r\n0\r\n\r\n",
	"extension with a bare CR":     "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3;a\rb\r\nabc\r\n0\r\n\r\n",
	"chunk longer than its size":   "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabcd\r\n0\r\n\r\n",
	"chunk that ends in a bare LF": "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\n0\r\n\r\n",
	"length in the trailers":       "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nContent-Length: 5\r\n\r\n",
	"folded trailer":               "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nX: 1\r\n 2\r\n\r\n",
	"bare LF in the trailers":      "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nX: 1\n\r\n",
	"bare CR in the trailers":      "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nX: 1\rY: 2\r\n\r\n",
	"bare LF for the trailers":     "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\n",
}

// oddRequests are unusual, and pass.
var oddRequests = map[string]string{
	"order, case and repetition": "GET / HTTP/1.1\r\nzEbRa: 1\r\nhOST: x\r\nX-A: 1\r\nx-a: 2\r\nX-A: 1\r\nAccept:   */*  \r\nEmpty:\r\n\r\n",
	"HTTP/1.0":                   "GET / HTTP/1.0\r\n\r\n",
	"asterisk":                   "OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n",
	"URL":                        "GET http://other/a?b HTTP/1.1\r\nHost: x\r\n\r\n",
	"raw path":                   "GET /a|b/../%2F;\"<>[]{}?z=%zz&q=\xc3\xa4\xff HTTP/1.1\r\nHost: x\r\n\r\n",
	"odd method":                 "m-SEARCH! / HTTP/1.1\r\nHost: x\r\n\r\n",
	"the same length twice":      "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\ncontent-length: 3\r\n\r\nabc",
	"empty host":                 "GET / HTTP/1.1\r\nHost:\r\n\r\n",
	"body of a GET":              "GET / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\r\nb",
	"text beyond ASCII":          "GET / HTTP/1.1\r\nHost: x\r\nX: \xe4\xff\r\n\r\n",
	"chunks":                     "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: Chunked\r\n\r\n0003;a=\"b;c\"\r\nabc\r\nA\r\n0123456789\r\n000\r\nX-T: 1\r\nx-t: 2\r\n\r\n",
}

// parse parses a whole request, as a relay would.
func parse(raw string, pieces int) (*Request, string, captures.Headers, error) {
	size, line := 0, 0
	for n := 1; size == 0; n++ {
		var err error
		end := min(n*pieces, len(raw))
		if size, line, err = scanHead([]byte(raw[:end]), line); err != nil {
			return nil, "", nil, err
		}
		if end == len(raw) && size == 0 {
			return nil, "", nil, malformed("the head does not end")
		}
	}
	q, err := parseRequest(raw[:size])
	if err != nil {
		return nil, "", nil, err
	}
	b := q.bodyOf()
	content := ""
	for rest := []byte(raw[size:]); len(rest) > 0 && !b.done; {
		part := rest[:min(pieces, len(rest))]
		n, c, err := b.scan(part, make([]byte, len(part)))
		content += string(c)
		if err != nil {
			return nil, content, nil, err
		}
		rest = rest[n:]
	}
	return q, content, b.trailers, nil
}

func TestMalformedRequestsAreRefused(t *testing.T) {
	t.Parallel()
	for name, raw := range malformedRequests {
		for _, pieces := range []int{1, 7, 1 << 20} {
			if q, content, _, err := parse(raw, pieces); err == nil {
				t.Errorf("%s, by %d bytes: taken for %+v with %q", name, pieces, q, content)
			}
		}
	}
}

func TestOddRequestsPass(t *testing.T) {
	t.Parallel()
	for name, raw := range oddRequests {
		for _, pieces := range []int{1, 7, 1 << 20} {
			q, _, _, err := parse(raw, pieces)
			if err != nil {
				t.Errorf("%s, by %d bytes: %v", name, pieces, err)
				continue
			}
			if !strings.HasPrefix(raw, q.raw) || !strings.HasPrefix(raw, q.Method+" "+q.Target+" HTTP/"+q.Version+"\r\n") {
				t.Errorf("%s: taken for %+v", name, q)
			}
		}
	}
	q, content, trailers, err := parse(oddRequests["chunks"], 5)
	if err != nil || content != "abc0123456789" || len(trailers) != 2 || trailers[0] != (captures.Header{Name: "X-T", Value: "1"}) || q.Header[1].Value != "Chunked" {
		t.Errorf("chunks: %q, %v, %v", content, trailers, err)
	}
	if q, _, _, _ := parse(oddRequests["order, case and repetition"], 1); q.Header[0].Name != "zEbRa" || q.Header[3].Name != "x-a" || q.Header[5].Value != "*/*" || q.Host() != "x" {
		t.Errorf("header %v", q.Header)
	}
}

func TestPersistence(t *testing.T) {
	t.Parallel()
	for header, want := range map[string][2]bool{
		"":                                   {false, true},
		"Connection: close\r\n":              {false, false},
		"connection: Keep-Alive\r\n":         {true, true},
		"Connection: keep-alive, close\r\n":  {false, false},
		"Connection: x\r\nConnection: CLOSE": {false, false},
	} {
		for i, version := range []string{"1.0", "1.1"} {
			q, err := parseRequest("GET / HTTP/" + version + "\r\nHost: x\r\n" + strings.TrimSuffix(header, "\r\n") + map[bool]string{true: "\r\n"}[header != ""] + "\r\n")
			if err != nil || q.persistent != want[i] {
				t.Errorf("HTTP/%s, %q: %v", version, header, err)
			}
		}
	}
}

func TestResponses(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]struct {
		method string
		kind   bodyKind
		left   int64
		done   bool
	}{
		"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n":            {"GET", bodyLength, 5, false},
		"HTTP/1.1 200\r\nContent-Length: 5\r\n\r\n":               {"HEAD", bodyLength, 0, true},
		"HTTP/1.0 200 It is so\r\n\r\n":                           {"GET", bodyUntilClose, 0, false},
		"HTTP/1.1 204 \r\nContent-Length: 5\r\n\r\n":              {"GET", bodyLength, 0, true},
		"HTTP/1.1 304 x\r\nTransfer-Encoding: chunked\r\n\r\n":    {"GET", bodyLength, 0, true},
		"HTTP/1.1 999 \xff\r\nTRANSFER-ENCODING: chunked\r\n\r\n": {"GET", bodyChunked, 0, false},
		"HTTP/1.1 100 Continue\r\n\r\n":                           {"POST", bodyLength, 0, true},
	} {
		a, err := parseResponse(raw)
		if err != nil {
			t.Errorf("%q: %v", raw, err)
			continue
		}
		if b := a.bodyOf(want.method); b.kind != want.kind || b.left != want.left || b.done != want.done || a.size != len(raw) {
			t.Errorf("%q: %+v", raw, b)
		}
	}
	for _, raw := range malformedResponses {
		if size, _, err := scanHead([]byte(raw), 0); err == nil && size > 0 {
			if a, err := parseResponse(raw[:size]); err == nil {
				t.Errorf("%q: taken for %+v", raw, a)
			}
		}
	}
}

var malformedResponses = []string{
	"HTTP/1.1 200 OK\nContent-Length: 0\n\n",
	"HTTP/1.1  200 OK\r\n\r\n",
	"HTTP/1.1 20 OK\r\n\r\n",
	"HTTP/1.1 2000 OK\r\n\r\n",
	"HTTP/1.1 -20 OK\r\n\r\n",
	"HTTP/1.1 099 OK\r\n\r\n",
	"HTTP/2.0 200 OK\r\n\r\n",
	"ICY 200 OK\r\n\r\n",
	"HTTP/1.1 200 O\x00K\r\n\r\n",
	"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\na",
	"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
	"HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
	"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
	"HTTP/1.1 200 OK\r\nX: a\r\n b\r\n\r\n",
	"HTTP/1.1 200 OK\r\nX : a\r\n\r\n",
}

// TestSalvagedSecrets: what is recorded of a refused head keeps values with their names,
// by which they are redacted.
func TestSalvagedSecrets(t *testing.T) {
	t.Parallel()
	for _, raw := range []string{
		"GET / HTTP/1.1\r\nAuthorization : Bearer s3cret\r\n\r\n",
		"GET / HTTP/1.1\nAuthorization: Bearer s3cret\n\n",
		"GET / HTTP/1.1\r\nAuthorization:\r\n Bearer s3cret\r\n\r\n",
		"GET / HTTP/1.1\r\nAuthorization: Bearer\rs3cret\r\n\r\n",
		"GET / HTTP/1.1\r\nAuthorization: Bearer\x00s3cret",
	} {
		q := salvage(raw)
		if len(q.Header) != 1 || q.Header[0].Name != "Authorization" || !strings.HasSuffix(q.Header[0].Value, "s3cret") || q.Method != http.MethodGet || q.Target != "/" {
			t.Errorf("%q: %+v", raw, q)
		}
		if size, _, err := scanHead([]byte(raw), 0); err == nil && size > 0 {
			if _, err := parseRequest(raw); err == nil || strings.Contains(err.Error(), "s3cret") {
				t.Errorf("%q: %v", raw, err)
			}
		}
	}
}

func FuzzRequest(f *testing.F) {
	for _, raw := range malformedRequests {
		f.Add(raw)
	}
	for _, raw := range oddRequests {
		f.Add(raw)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		_ = salvage(raw)
		q, content, trailers, err := parse(raw, len(raw)+1)
		q1, content1, trailers1, err1 := parse(raw, 1)
		if (err == nil) != (err1 == nil) {
			t.Fatalf("at once %v, byte by byte %v", err, err1)
		}
		if err != nil {
			return
		}
		if q.raw != q1.raw || content != content1 || len(trailers) != len(trailers1) {
			t.Fatalf("at once %q, %q; byte by byte %q, %q", q.raw, content, q1.raw, content1)
		}
		// Whoever parses what is forwarded finds the same request.
		if again, err := parseRequest(string(appendHead(nil, q, &Route{Drop: []string{"x-none"}}))); err != nil || again.raw != q.raw {
			t.Fatalf("%q is forwarded as %q, %v", q.raw, again.raw, err)
		}
		checkAsNetHTTP(t, raw, q, content)
	})
}

func FuzzResponse(f *testing.F) {
	for _, raw := range malformedResponses {
		f.Add(raw)
	}
	f.Add("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3 \r\nabc\r\n0\r\nX: 1\r\n\r\n")
	f.Fuzz(func(t *testing.T, raw string) {
		size, _, err := scanHead([]byte(raw), 0)
		if err != nil || size == 0 {
			return
		}
		a, err := parseResponse(raw[:size])
		if err != nil {
			return
		}
		whole, single := a.bodyOf("GET"), a.bodyOf("GET")
		rest := []byte(raw[size:])
		n, content, err := whole.scan(rest, make([]byte, len(rest)))
		var each []byte
		var eachErr error
		m := 0
		for m < len(rest) && !single.done && eachErr == nil {
			var k int
			var c []byte
			k, c, eachErr = single.scan(rest[m:m+1], make([]byte, 1))
			m += k
			each = append(each, c...)
		}
		if n != m || string(content) != string(each) || (err == nil) != (eachErr == nil) || whole.done != single.done {
			t.Fatalf("at once %d %q %v, byte by byte %d %q %v", n, content, err, m, each, eachErr)
		}
	})
}
