package secret_test

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"unwire/captures"
	"unwire/captures/redact"
	"unwire/captures/store"
	"unwire/decode"
	"unwire/decode/envelope"
	"unwire/decode/secret"
)

// spelt are the ways in which a secret may stand in a file.
func spelt(v string) (all [][]byte) {
	all = append(all, []byte(v), []byte(url.QueryEscape(v)), []byte(hex.EncodeToString([]byte(v))), []byte(strings.ToUpper(hex.EncodeToString([]byte(v)))))
	for shift := range 3 {
		enc := base64.StdEncoding.EncodeToString(append(make([]byte, shift), v...))
		core := enc[(shift*8+5)/6 : (shift+len(v))*8/6]
		all = append(all, []byte(core), []byte(strings.NewReplacer("+", "-", "/", "_").Replace(core)))
	}
	return all
}

// masked is a frame of a WebSocket as a client sends it.
func masked(text string) []byte {
	key := []byte{0x5a, 0x13, 0xc7, 0x81}
	p := append([]byte{0x81, 0x80 | byte(len(text))}, key...)
	for i := range len(text) {
		p = append(p, text[i]^key[i%4])
	}
	return p
}

// A place is where a secret may stand in an exchange.
type place struct {
	name     string
	url      func(secret string) string
	headers  captures.Headers
	secretIn string // a header with the secret
	status   int
	body     func(secret string) []byte
}

func compress(encoding string, p []byte) []byte {
	packed, err := envelope.Compress(encoding, p)
	if err != nil {
		panic(err)
	}
	return packed
}

// forms are texts in which a name gives a secret away.
var forms = []string{
	`{"apiKey":"%s"}`, `{"passwords":["a","%s"]}`, `{"name":"password","value":"%s"}`, `{"x":"{\"secret\":\"%s\"}"}`,
	"<a><password>%s</password></a>", "user: u\npassword: %s\n", "A=1\nAPI_KEY=%s\n", "GET / HTTP/1.1\r\nX-Api-Key: %s\r\n\r\n",
	`mutation { login(user: "u", password: "%s") { id } }`,
	"--b\r\nContent-Disposition: form-data; name=\"password\"\r\n\r\n%s\r\n--b--\r\n",
}

// places are those in which a text of a form may stand.
func places(form string) []place {
	const method = "https://h.example/p.v1.Service/Method"
	member := func(s string) []byte { return fmt.Appendf(nil, form, s) }
	message := func(s string) []byte { return []byte(field(1, "Bearer "+s) + field(8, "rest")) }
	get := func(query string, text func(string) string) func(string) string {
		return func(s string) string { return method + "?connect=v1&" + query + "&message=" + text(s) }
	}
	connect := captures.Headers{{Name: "content-type", Value: "application/connect+proto"}, {Name: "connect-content-encoding", Value: "gzip"}}
	raw64, std64 := base64.RawURLEncoding.EncodeToString, base64.StdEncoding.EncodeToString
	typed := func(name, value string) captures.Headers { return captures.Headers{{Name: name, Value: value}} }
	return []place{
		{name: "GET, base64", url: get("encoding=proto&base64=1", func(s string) string { return raw64(message(s)) })},
		{name: "GET, gzip", url: get("encoding=json&base64=1&compression=gzip", func(s string) string { return raw64(compress("gzip", member(s))) })},
		{name: "GET, JSON", url: get("encoding=json", func(s string) string { return url.QueryEscape(string(member(s))) })},
		{name: "GET, unknown compression", url: get("encoding=json&base64=1&compression=snappy", func(s string) string { return raw64(member(s)) })},
		{name: "GET, typed", url: func(string) string {
			return "https://h/agent.v1.AgentService/Run?connect=v1&encoding=proto&base64=1&message=" + raw64([]byte(runRequest()))
		}},
		{name: "a parameter", url: func(s string) string { return method + "?state=" + url.QueryEscape(std64(member(s))) }},
		{name: "a fragment", url: func(s string) string { return method + "#access_token=" + s }},
		{name: "user information", url: func(s string) string { return "https://u:" + url.PathEscape(s) + "@h.example/" }},
		{name: "a header", secretIn: "authorization"},
		{name: "JSON", headers: typed("content-type", "application/json"), body: member},
		{name: "protobuf", headers: typed("content-type", "application/proto"), body: message},
		{name: "hex in protobuf", headers: typed("content-type", "application/proto"), body: func(s string) []byte { return []byte(field(1, hex.EncodeToString(message(s)))) }},
		{name: "gzip", headers: append(typed("content-type", "application/json"), typed("content-encoding", "gzip")...), body: func(s string) []byte { return compress("gzip", member(s)) }},
		{name: "gzip twice", headers: typed("content-encoding", "gzip, gzip"), body: func(s string) []byte { return compress("gzip", compress("gzip", member(s))) }},
		{name: "a gzip file", headers: typed("content-type", "application/gzip"), body: func(s string) []byte { return compress("gzip", member(s)) }},
		{name: "text", headers: typed("content-type", "text/plain"), body: member},
		{name: "an event", headers: typed("content-type", "text/event-stream"), body: func(s string) []byte { return append(append([]byte("data: "), member(s)...), "\n\n"...) }},
		{name: "truncated gzip", headers: typed("content-encoding", "gzip"), body: func(s string) []byte { p := compress("gzip", member(s)); return p[:len(p)-9] }},
		{name: "unknown encoding", headers: typed("content-encoding", "snappy"), body: func(s string) []byte { return masked(string(member(s))) }},
		{name: "envelopes", headers: connect, body: func(s string) []byte {
			return envelope.Append(envelope.Append(nil, 0x04, message(s)), envelope.Compressed, compress("gzip", message(s)))
		}},
		{name: "a broken envelope", headers: connect, body: func(s string) []byte {
			return envelope.Append(envelope.Append(nil, 0x41, compress("gzip", message(s))[4:]), 0, message(s))
		}},
		{name: "gRPC-Web text", headers: typed("content-type", "application/grpc-web-text"), body: func(s string) []byte { return []byte(std64(envelope.Append(nil, 0, message(s)))) }},
		{name: "WebSocket", headers: typed("upgrade", "websocket"), status: 101, body: func(s string) []byte { return masked(string(member(s))) }},
		{name: "WebSocket, deflated", headers: typed("upgrade", "websocket"), status: 101, body: func(s string) []byte { return compress("deflate", member(s)) }},
	}
}

// isOn reports whether the place exists on a transport: a connection without HTTP has no header fields, and nothing there
// says how a body is encoded.
func (p *place) isOn(transport captures.Transport) bool {
	switch transport {
	case captures.HTTP:
		return true
	case captures.WebSocket:
		// Only a call of a known method has typed fields.
		return p.body == nil && p.name != "GET, typed" || slices.Contains(plainPlaces, p.name)
	}
	return p.body != nil && slices.Contains(plainPlaces, p.name)
}

// plainPlaces are the places in which the rules find a secret without header fields that describe the body.
var plainPlaces = []string{"JSON", "protobuf", "text", "an event"}

// A sender records an exchange of a transport.
type sender struct {
	captures.Recording
	transport captures.Transport
}

// begin begins the recording of an exchange. One without HTTP has no more than an address.
func begin(t *rapid.T, to captures.Recorder, ex captures.Exchange) sender {
	switch ex.Transport {
	case captures.RawTCP, captures.RawTLS:
		ex = captures.Exchange{Transport: ex.Transport, URL: string(ex.Transport) + "://h.example:7777"}
	case captures.WebSocket:
		ex.URL = "wss" + strings.TrimPrefix(ex.URL, "https")
	}
	rec, err := to.Begin(ex)
	if err != nil {
		t.Fatal(err)
	}
	return sender{rec, ex.Transport}
}

// pieces records bytes of one direction that arrived in pieces: chunks, or parts of a message of a WebSocket.
func (s sender) pieces(dir captures.Direction, pieces ...[]byte) {
	for i, p := range pieces {
		if s.transport != captures.WebSocket {
			s.Chunk(dir, p)
			continue
		}
		op := captures.OpContinuation
		if i == 0 {
			op = captures.OpBinary
		}
		if i == len(pieces)-1 {
			op |= captures.OpFinal
		}
		s.Message(dir, op, p)
	}
}

// What an audit says that a copy removes is gone from the copy: from what an
// audit of it finds, and from its bytes.
func TestRemovable(t *testing.T) {
	rules := testRules(t)
	rapid.Check(t, func(t *rapid.T) {
		all := places(rapid.SampledFrom(forms).Draw(t, "form"))
		dir, err := os.MkdirTemp("", "removable")
		if err != nil {
			t.Fatal(err)
		}
		defer os.RemoveAll(dir)
		rnd := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		newSecret := func() string { return fmt.Sprintf("zq/%016x+%08x=9", rnd.Uint64(), rnd.Uint32()) }
		secrets := []string{newSecret()}
		path, out := filepath.Join(dir, "a.uwc"), filepath.Join(dir, "clean.uwc")
		store, err := store.Create(path, store.Options{KeepSecrets: true})
		if err != nil {
			t.Fatal(err)
		}
		for _, i := range rapid.SliceOfN(rapid.IntRange(0, len(all)-1), 1, 6).Draw(t, "places") {
			p := all[i]
			t.Log(p.name)
			if rapid.Bool().Draw(t, "another") {
				secrets = append(secrets, newSecret())
			}
			s := secrets[rapid.IntRange(0, len(secrets)-1).Draw(t, "which")]
			ex := captures.Exchange{Method: "POST", URL: "https://h.example/p.v1.Service/Method", RequestHeaders: p.headers}
			if p.url != nil {
				ex.Method, ex.URL = "GET", p.url(s)
				ex.RequestHeaders = append(captures.Headers{{Name: "referer", Value: ex.URL}, {Name: ":path", Value: ex.URL[strings.IndexByte(ex.URL[8:], '/')+8:]}}, p.headers...)
				ex.Error = `Get "` + ex.URL + `": no route`
			}
			if p.secretIn != "" {
				ex.RequestHeaders = append(ex.RequestHeaders, captures.Header{Name: p.secretIn, Value: "Bearer " + s})
			}
			ex.Transport = rapid.SampledFrom([]captures.Transport{captures.HTTP, captures.HTTP, captures.WebSocket, captures.RawTCP, captures.RawTLS}).Draw(t, "transport")
			if !p.isOn(ex.Transport) {
				ex.Transport = captures.HTTP
			}
			send := begin(t, store, ex)
			if p.status == 101 && ex.Transport == captures.HTTP {
				send.Response(101, captures.Headers{{Name: "upgrade", Value: "websocket"}})
			}
			if p.body != nil {
				body := p.body(s)
				cut := rapid.IntRange(0, len(body)).Draw(t, "cut")
				send.pieces(captures.Up, body[:cut], body[cut:])
			}
			if p.status == 0 && (ex.Transport == captures.HTTP || ex.Transport == captures.WebSocket) {
				send.Response(200, p.headers)
			}
			if p.body != nil {
				send.pieces(captures.Down, p.body(s))
			}
			send.End(captures.Complete, ex.Error)
		}
		if err := store.Close(); err != nil {
			t.Fatal(err)
		}
		removed(t, path, out, rules, append(secrets, apiKey, session))
	})
}

func removed(t *rapid.T, path, out string, rules *secret.Rules, secrets []string) {
	open := func(path string) *store.Store {
		s, err := store.Open(path, store.ReadOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	from := open(path)
	defer from.Close()
	before, err := secret.Audit(t.Context(), from, redact.New(redact.Options{}), rules)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range before {
		if f.Stays {
			t.Fatalf("not removable: %+v", f)
		}
	}
	to, err := store.Create(out, store.Options{Redactor: redact.New(redact.Options{}).Omitting()})
	if err != nil {
		t.Fatal(err)
	}
	if _, _, _, err := secret.Clean(t.Context(), to, from, rules); err != nil {
		t.Fatal(err)
	}
	if err := to.Close(); err != nil {
		t.Fatal(err)
	}
	clean := open(out)
	after, err := secret.Audit(t.Context(), clean, redact.New(redact.Options{}), rules)
	if err != nil || len(after) > 0 {
		t.Fatalf("left: %+v, %v", after, err)
	}
	var data []byte
	for ex, err := range clean.Exchanges(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		d, err := decode.Decode(t.Context(), clean, ex.ID, decode.Options{})
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range d.Frames {
			data = append(append(data, f.Data...), 0)
		}
	}
	if err := clean.Close(); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{out, out + "-wal"} {
		p, err := os.ReadFile(name)
		if err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		data = append(data, p...)
	}
	for _, s := range secrets {
		for _, form := range spelt(s) {
			if i := bytes.Index(data, form); i >= 0 {
				t.Fatalf("%s is left as %s", s, form)
			}
		}
	}
}
