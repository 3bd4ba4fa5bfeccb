package redact

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"regexp"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"unwire/captures"
	"unwire/proto"
)

// Made up, all of them.
const (
	madeUpJWT = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U"
	madeUpKey = "sk-proj-a1b2c3d4e5f6g7h8i9j0k1l2"
)

func TestHeaders(t *testing.T) {
	const p = `\[redacted:[0-9a-f]{8}\]`
	for _, c := range []struct{ name, value, want string }{
		{"Authorization", "Bearer " + madeUpJWT, "Bearer " + p},
		{"authorization", "opaque-value", p},
		{"proxy-authorization", "Basic dXNlcjpwYXNzd29yZDEyMw==", "Basic " + p},
		{"cookie", "a=one; session=two; flag", "a=" + p + "; session=" + p + "; flag"},
		{"set-cookie", "id=abc; Path=/; HttpOnly", "id=" + p + "; Path=/; HttpOnly"},
		{"x-cursor-checksum", "pZGTi4-_0123/4567", p},
		{"X-Client-Key", "abc", p},
		{"x-api-key", "abc", p},
		{"x-goog-api-key", "abc", p},
		{"x-amz-security-token", "abc", p},
		{"x-idempotent-encryption-key", "abc", p},
		{"x-csrf-token", "abc", p},
		{"x-mine", "abc", p},
		{"x-idempotency-key", "9b2c", "9b2c"},
		{"x-request-id", "1f0e", "1f0e"},
		{"x-custom", "my key is " + madeUpKey + ".", `my key is ` + p + `\.`},
		{"location", "https://h/cb?code=abc&state=s", "https://h/cb\\?code=redacted-[0-9a-f]{8}&state=s"},
		{"content-type", "application/connect+proto", `application/connect\+proto`},
		{"x-api-key", "", ""},
		{"authorization", "Bearer [redacted:0123abcd]", `Bearer \[redacted:0123abcd\]`},
	} {
		r := New(Options{Headers: []string{"X-Mine"}, Profile: proto.Profile()})
		got := r.Headers(captures.Headers{{Name: c.name, Value: c.value}})[0]
		if got.Name != c.name || !regexp.MustCompile("^"+c.want+"$").MatchString(got.Value) {
			t.Errorf("%s: %s becomes %s: %s", c.name, c.value, got.Name, got.Value)
		}
	}
	if New(Options{}).Headers(nil) != nil {
		t.Error("no headers become some")
	}
}

func TestURL(t *testing.T) {
	const p = `redacted-[0-9a-f]{8}`
	for _, c := range []struct{ in, want string }{
		{"https://u:pw@h/p", "https://u:" + p + "@h/p"},
		{"https://token@h", "https://" + p + "@h"},
		{"https://h/p?a=1&access_token=x&b=2", `https://h/p\?a=1&access_token=` + p + "&b=2"},
		{"https://h/p?API-Key=x#id_token=y&z", `https://h/p\?API-Key=` + p + "#id_token=" + p + "&z"},
		{"/p?X-Amz-Signature=00&sig=1&key=2&code=3&password=4&token=5", `/p\?X-Amz-Signature=` + p + "&sig=" + p + "&key=" + p + "&code=" + p + "&password=" + p + "&token=" + p},
		{"https://h/" + madeUpJWT + "/x", "https://h/" + p + "/x"},
		{"https://h/p?q=" + madeUpKey, `https://h/p\?q=` + p},
		{"https://h/p?email=a@b&x", `https://h/p\?email=a@b&x`},
		{"http://[::1%gg?broken=%zz&token=%zz", `http://\[::1%gg\?broken=%zz&token=` + p},
		{"", ""},
	} {
		if got := New(Options{}).redactURL(c.in); !regexp.MustCompile("^" + c.want + "$").MatchString(got) {
			t.Errorf("%s becomes %s", c.in, got)
		}
	}
}

// redactBody passes p through a body in chunks that end where cuts say.
func redactBody(r *Redactor, h captures.Headers, p []byte, cuts ...int) (out []*captures.Chunk) {
	b := NewBodyFilter(r, h, "")
	at := 0
	for i, cut := range append(cuts, len(p)) {
		if cut = min(cut, len(p)); cut <= at {
			continue
		}
		b.Write(&captures.Chunk{Seq: int64(i), Data: bytes.Clone(p[at:cut])})
		at = cut
		if second := b.Split(); second != nil {
			second.Seq = -1
		}
		out = append(out, b.Ready()...)
	}
	b.Close(false)
	return append(out, b.Ready()...)
}

func join(chunks []*captures.Chunk) []byte {
	var b []byte
	for _, c := range chunks {
		b = append(b, c.Data...)
	}
	return b
}

func TestBody(t *testing.T) {
	pemBody := "\nMIIEow" + strings.Repeat("abcd\n", 20)
	pem := "-----BEGIN RSA PRIVATE KEY-----" + pemBody + "-----END RSA PRIVATE KEY-----"
	for _, c := range []struct{ name, in, secret string }{
		{"jwt", "a " + madeUpJWT + ", b", madeUpJWT},
		{"jwt at the end of a sentence", madeUpJWT + ".", madeUpJWT},
		{"openai", "key: " + madeUpKey + "\n", madeUpKey},
		{"github", "ghp_" + strings.Repeat("a1", 18), "ghp_" + strings.Repeat("a1", 18)},
		{"aws", "id AKIAIOSFODNN7EXAMPLE,", "AKIAIOSFODNN7EXAMPLE"},
		{"slack", "xoxb-1234567890-abc", "xoxb-1234567890-abc"},
		{"google", "AIza" + strings.Repeat("Sy", 17) + "x!", "AIza" + strings.Repeat("Sy", 17) + "x"},
		{"cursor", `"k":"key_` + strings.Repeat("0f", 32) + `"`, "key_" + strings.Repeat("0f", 32)},
		{"cursor, new", "crsr_" + strings.Repeat("0f", 32), "crsr_" + strings.Repeat("0f", 32)},
		{"pem", pem, pemBody},
		{"json", `{"accessToken":"short","n":1}`, "short"},
		{"json, spaced", `{ "refresh_token" : "a b\"c" }`, `a b\"c`},
		{"json in json", `{"args":"{\"apiKey\":\"zzz\"}"}`, "zzz"},
		{"json, cut off", `{"password":"never end`, "never end"},
		{"json, scheme", `{"authorization":"Bearer abc"}`, "abc"},
		{"json, perhaps", `{"token":"0123456789abcdef"}`, "0123456789abcdef"},
		{"form", "grant_type=refresh&refresh_token=abc%2F1&x=y", "abc%2F1"},
		{"url", "see https://h/x?X-Amz-Signature=0f0f for", "0f0f"},
		{"dsn", "postgres://u:hunter2@db:5432/x", "hunter2"},
		{"bearer", "-H 'Authorization: Bearer abcdefgh01234567'", "abcdefgh01234567"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := New(Options{Profile: proto.Profile()})
			got := string(join(redactBody(r, nil, []byte(c.in))))
			want := strings.Replace(c.in, c.secret, sameLength(r.tag(c.secret), len(c.secret)), 1)
			if got != want {
				t.Errorf("%s\nbecomes %s\nwant    %s", c.in, got, want)
			}
			if again := string(join(redactBody(r, nil, []byte(got)))); again != got && len(c.secret) >= 17 {
				t.Errorf("a second time: %s", again)
			}
			if s := r.String(c.in); strings.Contains(s, c.secret) || !strings.Contains(s, "[redacted:"+r.tag(c.secret)+"]") {
				t.Errorf("String: %s", s)
			}
		})
	}
	for _, in := range []string{
		"task-force-of-the-century-with-20-people", "eyJhbGciOiJIUzI1NiJ9 is no token", `{"token":"Hello"}`, `{"token":"a word of the model's answer 1"}`,
		`{"accessToken":null,"key":"abc"}`, "-----BEGIN CERTIFICATE-----\nMIIE\n-----END CERTIFICATE-----", "http://h:80/x@y", "a=1&state=2",
		`{"signature":"` + strings.Repeat("a1", 40) + `"}`, `{"inputTokens":"1234567890123456"}`,
	} {
		if got := string(join(redactBody(New(Options{}), nil, []byte(in)))); got != in {
			t.Errorf("%s\nbecomes %s", in, got)
		}
	}
	form := captures.Headers{{Name: "content-type", Value: "application/x-www-form-urlencoded"}}
	if got := string(join(redactBody(New(Options{}), form, []byte("password=x&y=z")))); got != "password=r&y=z" {
		t.Errorf("form: %s", got)
	}
}

// A string field's length must stay true: the tag of the next field is often a
// letter.
func TestProtobufLengths(t *testing.T) {
	for _, secret := range []string{madeUpJWT, madeUpKey, strings.Repeat("x", 0) + "sk-" + strings.Repeat("a1", 70)} {
		var m []byte
		m = append(m, 0x0a)
		if len(secret) >= 0x80 {
			m = append(m, byte(len(secret)&0x7f|0x80), byte(len(secret)>>7))
		} else {
			m = append(m, byte(len(secret)))
		}
		m = append(m, secret...)
		after := "B\x0bhello world" // field 8
		r := New(Options{})
		got := string(join(redactBody(r, nil, append(m, after...))))
		if !strings.HasSuffix(got, after) || strings.Contains(got, secret) || !strings.Contains(got, r.tag(secret)) {
			t.Errorf("%q becomes %q", append(m, after...), got)
		}
	}
}

// What a header gave away is found everywhere, however it is spelt.
func TestLearned(t *testing.T) {
	const secret = "made/up+token of=mine"
	r := New(Options{})
	h := r.Headers(captures.Headers{{Name: "authorization", Value: "Bearer " + secret}})
	tag := strings.TrimSuffix(strings.TrimPrefix(h[0].Value, "Bearer [redacted:"), "]")
	for name, in := range map[string]string{
		"plain": secret, "hex": hex.EncodeToString([]byte(secret)), "HEX": strings.ToUpper(hex.EncodeToString([]byte(secret))),
		"query": "made%2Fup%2Btoken+of%3Dmine", "path": "made%2Fup+token%20of=mine",
		"base64": base64.StdEncoding.EncodeToString([]byte(secret)), "base64, 1": base64.URLEncoding.EncodeToString([]byte("x" + secret + "y")),
		"base64, 2": base64.StdEncoding.EncodeToString([]byte("xy" + secret + "zzz")),
	} {
		got := string(join(redactBody(r, nil, []byte("<<"+in+">>"))))
		if !strings.Contains(got, "redacted-"+tag) || len(got) != len(in)+4 {
			t.Errorf("%s: %s becomes %s", name, in, got)
		}
		if s := r.String(in); !strings.Contains(s, tag) {
			t.Errorf("%s: String(%s) = %s", name, in, s)
		}
	}
	if got := r.redactURL("https://h/" + secret); !strings.Contains(got, tag) {
		t.Error(got)
	}
	// An answer that hands out a token teaches too.
	join(redactBody(r, nil, []byte(`{"accessToken":"handed-out-just-now"}`)))
	if got := r.String("x handed-out-just-now x"); strings.Contains(got, "handed-out") {
		t.Error(got)
	}
	for i := range maxSecrets + 2*forgotten {
		r.Learn(secret)
		r.Learn(strings.Repeat("n", 12) + string(rune('a'+i%26)) + strings.Repeat("m", i/26))
	}
	if n := len(r.learned); n > maxSecrets || n < maxSecrets-forgotten {
		t.Errorf("%d secrets are remembered", len(r.learned))
	}
	if r.String(secret) != "[redacted:"+tag+"]" {
		t.Error("one that was met all along is forgotten")
	}
}

func TestPlaceholdersWithinAFile(t *testing.T) {
	r := New(Options{})
	a, b := r.WithKey([]byte("key")), r.WithKey([]byte("key"))
	if a.tag(madeUpJWT) != b.tag(madeUpJWT) || a.tag(madeUpJWT) == a.tag(madeUpKey) {
		t.Error("equal secrets must have equal placeholders, others not")
	}
	if a.tag("hunter2") == b.tag("hunter2") {
		t.Error("a secret that can be guessed must not have a placeholder that can be checked")
	}
}

// secretBody draws a body and the secrets that are in it.
func secretBody(t *rapid.T) (p []byte, secrets []string) {
	alphabet := rapid.SampledFrom([]string{
		" ", "\n", `"`, "e", "eyJ", "sk", "-", "a", "x1", "key_", "\x00", "\xff", "made", "made/up", ":", "{", `{"token"`, `"accessToken"`, "&", "?", "=", "AKI", "://", "é", ".", "bWFkZS", "Bearer ",
	})
	for range rapid.IntRange(0, 12).Draw(t, "parts") {
		if rapid.Bool().Draw(t, "secret") {
			s := rapid.SampledFrom([]string{madeUpJWT, madeUpKey, "made/up+token of=mine", "AKIAIOSFODNN7EXAMPLE"}).Draw(t, "which")
			secrets = append(secrets, s)
			p = append(p, " "+s+" "...)
			continue
		}
		p = append(p, alphabet.Draw(t, "filler")...)
	}
	return p, secrets
}

// However a body is cut into chunks, the same comes out, in chunks of the same
// sizes, and no secret.
func TestChunking(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p, secrets := secretBody(t)
		fresh := func() *Redactor {
			r := New(Options{Secrets: []string{"made/up+token of=mine"}})
			r.key, r.shortKey = []byte("k"), []byte("s")
			return r
		}
		whole := join(redactBody(fresh(), nil, p))
		cuts := rapid.SliceOfN(rapid.IntRange(1, max(1, len(p))), 0, 10).Draw(t, "cuts")
		if rapid.Bool().Draw(t, "bytewise") {
			cuts = nil
			for i := range p {
				cuts = append(cuts, i+1)
			}
		}
		slices.Sort(cuts)
		chunks := redactBody(fresh(), nil, p, cuts...)
		if got := join(chunks); !bytes.Equal(got, whole) {
			t.Fatalf("cut at %v:\n%q\nwhole:\n%q\nof\n%q", cuts, got, whole, p)
		}
		at := 0
		for _, c := range chunks {
			if c.Seq < int64(len(cuts)) && at+len(c.Data) != cuts[c.Seq] {
				t.Fatalf("chunk %d ends at %d, not %d", c.Seq, at+len(c.Data), cuts[c.Seq])
			}
			at += len(c.Data)
		}
		if at != len(p) {
			t.Fatalf("%d bytes became %d", len(p), at)
		}
		for _, s := range secrets {
			if bytes.Contains(whole, []byte(s)) {
				t.Fatalf("%q is still in %q", s, whole)
			}
		}
	})
}

// A secret that stops in its middle for longer than can be waited for is
// covered from there on, and back to its beginning.
func TestHurry(t *testing.T) {
	for name, c := range map[string]struct{ before, secret, after string }{
		"shape":    {"a ", madeUpJWT, " b"},
		"key":      {"a ", madeUpKey, " b"},
		"known":    {"a ", "made/up+token of=mine", " b"},
		"member":   {`{"password":"`, "correct horse battery staple", `","n":1}`},
		"pem":      {"-----BEGIN PRIVATE KEY-----", "\nMIIEow\nabcdefgh\n", "-----END PRIVATE KEY-----"},
		"form":     {"&client_secret=", "abcdef0123456789", "&x=1"},
		"bearer":   {"Authorization: Bearer ", "abcdef0123456789", "\r\n"},
		"hex form": {"x", hex.EncodeToString([]byte("made/up+token of=mine")), "x"},
	} {
		for cut := 12; cut < len(c.secret); cut++ {
			r := New(Options{Secrets: []string{"made/up+token of=mine"}})
			b := NewBodyFilter(r, nil, "")
			b.Write(&captures.Chunk{Data: []byte(c.before + c.secret[:cut])})
			out := b.Ready()
			b.FlushHeld()
			if out = append(out, b.Ready()...); len(out) != 1 {
				t.Fatalf("%s: %d chunks after flush", name, len(out))
			}
			b.Write(&captures.Chunk{Data: []byte(c.secret[cut:] + c.after)})
			b.Close(false)
			got := string(join(append(out, b.Ready()...)))
			rest, ok := strings.CutPrefix(got, c.before)
			middle, ok2 := strings.CutSuffix(rest, c.after)
			if !ok || !ok2 || len(middle) != len(c.secret) || strings.Contains(got, c.secret[:8]) || strings.Contains(got, c.secret[min(cut, len(c.secret)-4):]) {
				t.Errorf("%s, cut at %d: %q", name, cut, got)
			}
		}
	}
}
