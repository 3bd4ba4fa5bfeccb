package redact

import (
	"encoding/base64"
	"net/url"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"unwire/captures"
	"unwire/decode/envelope"
)

const madeUpMember = `{"apiKey":"zq-7f3b-made-up-9d41x","n":1}`

// A connectGet is a Connect GET with a message in one of its encodings.
type connectGet struct {
	codec, compression string
	base64, padded     bool
	std                bool // the other alphabet
}

func (c connectGet) encode(t fataler, message string) string {
	b := []byte(message)
	q := "https://h.example/p.Service/Method?connect=v1&encoding=" + c.codec
	if c.compression != "" {
		var err error
		if b, err = envelope.Compress(c.compression, b); err != nil {
			t.Fatal(err)
		}
		q += "&compression=" + c.compression
	}
	if !c.base64 {
		return q + "&message=" + url.QueryEscape(string(b))
	}
	enc := base64.URLEncoding
	if c.std {
		enc = base64.StdEncoding
	}
	if !c.padded {
		enc = enc.WithPadding(base64.NoPadding)
	}
	return q + "&message=" + url.QueryEscape(enc.EncodeToString(b)) + "&base64=1"
}

type fataler interface {
	Fatal(...any)
	Fatalf(string, ...any)
}

// decode is what a server reads.
func (c connectGet) decode(t fataler, u string) string {
	parsed, err := url.Parse(u)
	if err != nil {
		t.Fatal(err)
	}
	p := parsed.Query().Get("message")
	if c.base64 {
		p = strings.NewReplacer("+", "-", "/", "_").Replace(strings.TrimRight(p, "="))
		b, err := base64.RawURLEncoding.DecodeString(p)
		if err != nil {
			t.Fatal(err, p)
		}
		p = string(b)
	}
	if c.compression == "" {
		return p
	}
	var out []byte
	f := newInflater(new(codecs), c.compression, func(p []byte) bool { out = append(out, p...); return true })
	f.feed([]byte(p))
	if err := f.close(); err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// The message of a Connect GET is redacted as a body is, wherever the URL
// stands, and stays decodable.
func TestConnectGet(t *testing.T) {
	proto := "\n" + string(rune(len(madeUpJWT))) + madeUpJWT + "B\x0bhello world"
	rapid.Check(t, func(t *rapid.T) {
		c := connectGet{
			codec: "json", base64: rapid.Bool().Draw(t, "base64"), padded: rapid.Bool().Draw(t, "padded"), std: rapid.Bool().Draw(t, "std"),
			compression: rapid.SampledFrom([]string{"", "gzip", "br", "zstd", "deflate"}).Draw(t, "compression"),
		}
		filler := rapid.StringN(0, 3, -1).Draw(t, "filler")
		message, secret := madeUpMember+filler, "zq-7f3b-made-up-9d41x"
		if rapid.Bool().Draw(t, "proto") {
			c.codec, message, secret = "proto", proto+filler, madeUpJWT
		}
		u := c.encode(t, message)
		r := New(Options{})
		want := strings.Replace(message, secret, sameLength(r.tag(secret), len(secret)), 1)

		for _, part := range []struct{ name, in, out string }{
			{"url", u, r.redactURL(u)},
			{"fragment", strings.Replace(u, "?", "#", 1), strings.Replace(r.redactURL(strings.Replace(u, "?", "#", 1)), "#", "?", 1)},
			{":path", u, r.Headers(captures.Headers{{Name: ":path", Value: u}})[0].Value},
			{"referer", u, r.Headers(captures.Headers{{Name: "referer", Value: u}})[0].Value},
			{"x-original-uri", u, r.Headers(captures.Headers{{Name: "X-Original-Uri", Value: u}})[0].Value},
			{"error", u, strings.TrimSuffix(strings.TrimPrefix(r.String(`Get "`+u+`": no route`), `Get "`), `": no route`)},
		} {
			if got := c.decode(t, part.out); got != want {
				t.Fatalf("%s: %s\nis %q\nwant %q", part.name, part.out, got, want)
			}
		}
		if hits := r.FindURL(u); len(hits) != 1 || hits[0].Off < strings.Index(u, "message=") || hits[0].Off+hits[0].Len > len(u) {
			t.Fatalf("%v in %s", hits, u)
		}
		if left := r.FindURL(r.redactURL(u)); len(left) > 0 {
			t.Fatalf("%v is left in %s", left, r.redactURL(u))
		}
	})
}

// revealed is u with what its escapes and its base64 hide.
func revealed(u string) string {
	once, _ := unescape(u)
	twice, _ := unescape(once)
	all := []string{u, once, twice}
	for _, part := range strings.FieldsFunc(once, func(c rune) bool { return strings.ContainsRune("?#&=", c) }) {
		if b, err := base64.RawURLEncoding.DecodeString(part); err == nil {
			all = append(all, string(b))
		}
	}
	return strings.Join(all, "\n")
}

func TestHiddenParameters(t *testing.T) {
	member, secret := madeUpMember, "zq-7f3b-made-up-9d41x"
	for name, u := range map[string]string{
		"percent-encoded JSON": "https://h/?state=" + url.QueryEscape(member),
		"base64":               "https://h/?state=" + base64.RawURLEncoding.EncodeToString([]byte(member)),
		"base64, padded":       "https://h/?state=" + base64.StdEncoding.EncodeToString([]byte(member)),
		"no name":              "https://h/?" + base64.RawURLEncoding.EncodeToString([]byte(member)),
		"fragment":             "https://h/#state=" + url.QueryEscape(member),
		"URL":                  "https://h/?next=" + url.QueryEscape("https://h/?state="+url.QueryEscape(member)),
		"URL with a token":     "https://h/?next=" + url.QueryEscape("https://h/?access_token="+secret),
		"userinfo in one":      "https://h/?next=" + url.QueryEscape("https://u:"+secret+"@h/"),
	} {
		r := New(Options{})
		clean := r.redactURL(u)
		tag := "redacted-" + r.tag(secret)
		if _, err := url.Parse(clean); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if meant := revealed(clean); strings.Contains(meant, secret) || !strings.Contains(meant, tag) {
			t.Errorf("%s: %s becomes %s", name, u, clean)
		}
		if hits := New(Options{}).FindURL(u); len(hits) != 1 {
			t.Errorf("%s: %v", name, hits)
		}
	}
	if got := New(Options{}).Headers(captures.Headers{{Name: "origin", Value: "https://a-token-alone@h"}})[0].Value; strings.Contains(got, "a-token") {
		t.Errorf("origin: %s", got)
	}
	for _, same := range []string{
		"https://h/p.S/M?connect=v1&encoding=json&message=%7B%22name%22%3A%22x%22%7D",
		"https://h/p.S/M?connect=v1&encoding=proto&base64=1&message=CgVoZWxsbw",
		"https://h/?q=a+b%20c&path=%2Fx%2Fy&id=0123456789abcdef0123456789abcdef",
	} {
		if got := New(Options{}).redactURL(same); got != same {
			t.Errorf("%s becomes %s", same, got)
		}
	}
}

// A message that does not decode is reported, and left out if that is wanted.
func TestUnreadableMessage(t *testing.T) {
	for name, query := range map[string]string{
		"base64":      "base64=1&message=a*b*c",
		"compression": "base64=1&compression=snappy&message=CgVoZWxsbw",
		"cut off":     "base64=1&compression=gzip&message=H4sIAAAAAAAA_w",
	} {
		u := "https://h/p.S/M?connect=v1&encoding=proto&" + query
		hits := New(Options{}).FindURL(u)
		if len(hits) != 1 || hits[0].Rule != RuleUnsearched {
			t.Errorf("%s: %v", name, hits)
		}
		if got := New(Options{}).redactURL(u); got != u {
			t.Errorf("%s: a recorder changes it to %s", name, got)
		}
		r := New(Options{}).Omitting()
		if clean := r.redactURL(u); !strings.Contains(clean, "message=redacted-") || len(r.FindURL(clean)) > 0 {
			t.Errorf("%s: %s becomes %s", name, u, clean)
		}
	}
}

// The URL of a service for webhooks may have no path after its host, or after the beginning of the path that is known.
func TestWebhookURLsWithoutPath(t *testing.T) {
	for _, u := range []string{
		"https://hooks.example.com/", "https://hook.example.com", "https://hook.example.com//", "https://hook.example.com/./",
		"https://hc-ping.com/", "https://fcm.googleapis.com/fcm/send/", "https://hooks.example.com/?a=b",
	} {
		if got := New(Options{}).redactURL(u); got != u {
			t.Errorf("%s becomes %s", u, got)
		}
		text := "see " + u + " there"
		if got := string(join(redactBody(New(Options{}), nil, []byte(text)))); got != text {
			t.Errorf("%q becomes %q", text, got)
		}
	}
}
