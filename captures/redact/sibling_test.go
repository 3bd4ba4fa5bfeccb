package redact

import (
	"strings"
	"testing"

	"unwire/captures"
)

// TestSiblings tests that redaction decides about a signature, a hash or a code by the names of the other members or
// parameters: those before it and after it count, however the body is split into chunks.
func TestSiblings(t *testing.T) {
	hex := strings.Repeat("1a2b3c4d5e6f7089", 4)
	for _, c := range []struct {
		body, secret string
		kept         bool
	}{
		{`{"type":"subscribe","signature":"` + hex + `","key":"9f31","time":1}`, hex, false},
		{`{"passphrase":"x","channels":[{"name":"level2"}],"signature":"` + hex + `"}`, hex, false},
		{`{"passphrase" : "x", "sign" : "` + hex + `"}`, hex, false},
		{`{"action":"authenticate","signature":"` + hex + `","time":1}`, hex, false},
		{`{"sha":"1","signature":"` + hex + `","payload":"tree"}`, hex, true},
		{`{"key":"a/b.js","hash":"` + hex + `"}`, hex, true},
		{`{"hash":"` + hex + `","amount":"3.00"}`, hex, false},
		{`storename=1&hash=` + hex + `&chargetotal=1.00`, hex, false},
		{`name=a&hash=` + hex + `&size=1`, hex, true},
		{`{"email":"a@b.example","code":"481516"}`, "481516", false},
		{`{"code":"481516","phone_number":"+1"}`, "481516", false},
		{`{"code":"40001","message":"no such email"}`, "40001", true},
		{`{"email":"a@b.example","code":"unavailable"}`, "unavailable", true},
		{`code=481516&username=mary`, "481516", false},
		{`a=b&code=481516&username=mary`, "481516", false},
	} {
		var headers captures.Headers
		if c.body[0] != '{' {
			headers = captures.Headers{{Name: "content-type", Value: "application/x-www-form-urlencoded"}}
		}
		for _, size := range []int{len(c.body), 64, 7, 1} {
			got := redactPieces(headers, c.body, size)
			if kept := strings.Contains(got, c.secret); kept != c.kept {
				t.Errorf("in pieces of %d bytes: %s\nbecame %s", size, c.body, got)
			}
		}
	}
}

// redactPieces redacts a body that arrives in pieces of size bytes.
func redactPieces(headers captures.Headers, body string, size int) string {
	var cuts []int
	for at := size; at < len(body); at += size {
		cuts = append(cuts, at)
	}
	return string(join(redactBody(New(Options{}), headers, []byte(body), cuts...)))
}
