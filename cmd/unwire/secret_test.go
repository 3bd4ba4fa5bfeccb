package main

import (
	"bytes"
	"compress/flate"
	"context"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"

	"unwire/captures"
	"unwire/captures/store"
	"unwire/decode"
	"unwire/decode/envelope"
)

// secret is made up. It has the shape of no known key, so that it is found by
// where it stood, not by how it looks.
const secret = "zq-7f3b-made-up-SECRET-9d41x"

// TestSecretIsNowhere runs a made-up token through every command and looks for
// it in everything that was written: output, files, and captured bodies.
func TestSecretIsNowhere(t *testing.T) {
	bin := unwireCommand(t)
	work := t.TempDir()
	s := &secretRun{t: t, bin: bin, work: work, config: clientConfig(t), ran: map[string]bool{}}

	standin := s.start("standin", "--json")
	s.ok(0, "capture", "-o", "a.uwc", "--upstream-ca", standin.CA, "--", bin, "demo-client", "--url", standin.URL)
	s.ok(0, "capture", "-o", "b.uwc", "--json", "--upstream-ca", standin.CA, "--", bin, "demo-client", "--url", standin.URL)
	s.served(standin.URL, standin.CA)
	s.write("rules.yaml", []byte("rules:\n  - match: path:9999=nothing\n    drop: true\n"))
	s.ok(0, "capture", "-o", "rules.uwc", "--rules", "rules.yaml", "--upstream-ca", standin.CA, "--", bin, "demo-client", "--url", standin.URL)
	s.ok(3, "intercept", "rules.uwc") // nothing is held any more
	s.ok(-1, "diff", "--forwarded", "rules.uwc#1")
	s.ok(0, "ls", "a.uwc")
	s.ok(0, "ls", "--json", "a.uwc")
	s.shown("a.uwc")
	s.ok(0, "note", "a.uwc", "1", "the first call")
	s.ok(0, "note", "a.uwc")
	s.ok(0, "use", "--list", "a.uwc")
	s.ok(0, "config", "--json")
	s.ok(0, "config", "schema")
	for _, id := range []string{"1", "2", "3"} {
		s.ok(0, "show", "a.uwc", id)
		s.ok(0, "show", "--json", "a.uwc", id)
	}
	s.ok(0, "show", "--full=false", "a.uwc", "2")
	s.ok(0, "show", "--format", "protojson", "a.uwc", "1")
	s.ok(0, "show", "--format", "prototext", "a.uwc", "2")
	s.ok(0, "decode", "a.uwc#2/up/0")
	s.ok(0, "decode", "--format", "json", "a.uwc#2/up/0")
	s.ok(2, "decode", "a.uwc")
	s.ok(0, "decode", "--in", "raw", "a.uwc")
	s.ok(0, "version", "--json")
	s.write("edit.txt", s.ok(0, "decode", "a.uwc#2/up/0"))
	s.ok(0, "encode", "edit.txt")
	s.ok(0, "decode", "--hex", "--all", "a.uwc#2/up/0")
	s.ok(0, "decode", "--follow", "a.uwc#2")
	s.ok(0, "show", "--hex", "--all", "a.uwc", "2")
	s.ok(0, "show", "--follow", "a.uwc", "2")
	s.ok(0, "show", "a.uwc", "2", "--as", "up/1.2:bytes")
	s.ok(0, "show", "a.uwc", "2", "--explain", "1")
	s.ok(0, "decode", "--explain", "1.2", "--format", "json", "a.uwc#2/up/0")
	s.ok(0, "decode", "--as", "1.2:auto", "a.uwc#2/up/0")
	s.ok(0, "show", "--choices", "--json", "a.uwc")
	s.ok(0, "grep", "--headers", ".", "a.uwc")
	s.ok(0, "grep", "--json", "--path", "**", "a.uwc")
	s.ok(0, "chat", "a.uwc")
	s.ok(0, "chat", "--json", "a.uwc")
	s.ok(0, "chat", "--follow", "a.uwc", "2")
	s.ok(0, "chat", "a.uwc", "2", "--label", "1.1.1=assistant")
	s.ok(3, "chat", "fit", "labels.jsonl")
	s.ok(0, "chat", "weights")
	s.ok(-1, "diff", "a.uwc", "b.uwc")
	s.ok(-1, "diff", "--json", "--all", "a.uwc#2", "b.uwc#2")
	s.ok(-1, "diff", "--hex", "--all", "a.uwc#2", "b.uwc#2")
	s.ok(-1, "diff", "-y", "--all", "a.uwc", "b.uwc")
	s.ok(-1, "diff", "--series", "--all", "a.uwc#1", "b.uwc#1")
	s.ok(0, "schema", "infer", "-o", "inferred", "--evidence", "evidence.json", "a.uwc")
	s.write("app.js", []byte(`proto3.makeMessageType("a.B", () => [{ no: 1, name: "c", kind: "scalar", T: 9 }])`))
	s.ok(0, "schema", "extract", "-o", "extracted", "--descriptor-set", "set.binpb", "--json", "app.js")
	s.ok(0, "schema", "merge-evidence", "-o", "merged.json", "evidence.json", "evidence.json")
	s.ok(0, "schema", "infer", "--into", "inferred", "-o", "proposals.jsonl", "a.uwc")
	s.ok(0, "drift", "--proto", "none", "--captures", "a.uwc", "app.js", "set.binpb")
	s.ok(-1, "schema", "check", "a.uwc")
	s.ok(-1, "schema", "check", "--json", "a.uwc")
	s.ok(1, "schema", "check", "--proto", "inferred", "--html", "page.html", "b.uwc", "a.uwc")
	s.ok(0, "schema", "match", "a.uwc")
	s.ok(0, "schema", "match", "--json", "a.uwc#2/up/0", "1")
	s.ok(0, "schema", "diff", "inferred", "inferred", "--captures", "a.uwc")
	s.ok(0, "schema", "update", "--proto", "inferred", "--from", "a.uwc", "--write")
	s.ok(-1, "schema", "update", "--proto", "inferred", "--from", "b.uwc", "--json")
	s.ok(0, "schema", "ls", "--proto", "inferred")
	s.ok(0, "schema", "find", "--proto", "inferred", "request")
	s.ok(0, "schema", "print", "AgentRunRequest")
	s.ok(0, "schema", "refs", "--number", "1")
	mock := s.start("mock", "--json", "a.uwc")
	s.ok(0, "capture", "-o", "mocked.uwc", "--upstream-ca", mock.CA, "--", bin, "demo-client", "--url", strings.Replace(mock.URL, "http:", "https:", 1))
	reflection := s.start("reflection", "--json", "--proto", "inferred", "--to", standin.URL, "--upstream-ca", standin.CA)
	s.ok(-1, "call", "--like", "a.uwc#1", "--to", reflection.URL, "-o", "answers.uwc")
	s.ok(0, "probe-client", "a.uwc", "--dry-run")
	s.ok(0, "probe-client", "a.uwc", "--method", "GetUsableModels", "--path", "models.modelId", "--journal", "clients.jsonl", "--", bin, "demo-client", "--url", "{https}")
	s.ok(0, "replay", "a.uwc", "2", "--dry-run")
	s.ok(0, "replay", "a.uwc", "2", "--dry-run", "--json")
	s.ok(-1, "replay", "a.uwc", "2", "--to", standin.URL, "--upstream-ca", standin.CA, "-o", "answers.uwc")
	s.ok(-1, "replay", "a.uwc", "1", "--to", standin.URL, "--upstream-ca", standin.CA, "-o", "answers.uwc", "--json")
	s.ok(-1, "call", "--like", "a.uwc#1", "--to", standin.URL, "--upstream-ca", standin.CA, "-o", "answers.uwc")
	s.ok(0, "call", "--like", "a.uwc#1", "--to", standin.URL, "--upstream-ca", standin.CA, "--header", "x-api-key=env:UNWIRE_TOKEN", "--dry-run")
	s.ok(-1, "probe", "--to", standin.URL, "--upstream-ca", standin.CA, "--from", "a.uwc#1", "--fields", "1-20", "-o", "probe.json")
	s.ok(-1, "probe", "--to", standin.URL, "--upstream-ca", standin.CA, "--from", "a.uwc#2", "--fields", "1-20", "--dry-run", "--json")
	s.ok(-1, "replay", "a.uwc", "2", "--to", standin.URL, "--upstream-ca", standin.CA, "--learn", "--set", "run_request.model_details.model_id="+secret)
	s.ok(0, "replay", "a.uwc", "2", "--live", "--allow-host", "h.example", "--journal", "journal.jsonl", "--dry-run")
	s.write("one.replay", []byte("capture a.uwc\nexchange 2\nexpect verdict same\nexpect value 1.1.1~nothing\n"))
	s.ok(1, "replay", "suite", ".", "--to", standin.URL, "--upstream-ca", standin.CA)
	s.ok(1, "replay", "suite", ".", "--standin", "--json")
	s.ok(1, "replay", "suite", ".", "--standin", "--format", "junit")
	s.ok(-1, "replay", "verify", "a.uwc", "--to", standin.URL, "--upstream-ca", standin.CA, "--journal", "verified.jsonl")
	s.ok(0, "replay", "verify", "a.uwc", "2", "--to", standin.URL, "--upstream-ca", standin.CA, "--dry-run", "--json")
	s.ok(0, "ls", "answers.uwc")
	s.ok(0, "replay", "a.uwc", "1", "--codec", "proto", "--refresh", "--to", standin.URL, "--upstream-ca", standin.CA, "-o", "answers.uwc")
	s.ok(0, "align", "a.uwc", "answers.uwc")
	s.ok(0, "align", "--json", "--all", "a.uwc", "answers.uwc", "--descriptor-set", "names.binpb")
	s.ok(0, "credentials")
	s.ok(0, "credentials", "--json", "env:UNWIRE_TOKEN")
	if runtime.GOOS != "darwin" { // there it is in the Keychain
		s.ok(0, "credentials", "cursor")
		s.ok(0, "replay", "a.uwc", "2", "--credentials", "cursor", "--dry-run", "--json")
		s.ok(-1, "replay", "a.uwc", "2", "--credentials", "cursor", "--to", standin.URL, "--upstream-ca", standin.CA, "-o", "answers.uwc")
	}
	s.ok(-1, "replay", "a.uwc", "2", "--credentials", "env:UNWIRE_TOKEN", "--dry-run", "--json")
	s.ok(4, "credentials", "keyring:not-there/nobody", "file:missing")
	s.write("packets.pcapng", packetsWith(t, secret))
	s.write("keys.txt", nil)
	s.ok(0, "import", "packets.pcapng", "--keylog", "keys.txt", "-o", "imported.uwc")
	s.ok(0, "import", "--json", "packets.pcapng", "-o", "imported.uwc")
	if err := os.Remove(filepath.Join(work, "packets.pcapng")); err != nil {
		t.Fatal(err)
	}
	s.ok(0, "show", "imported.uwc", "1")
	s.ok(0, "export", "a.uwc", "-o", "a.har")
	s.ok(0, "export", "--keep-headers", "a.uwc", "-o", "a.jsonl")
	s.ok(0, "export", "--format", "jsonl", "a.uwc")
	s.ok(0, "export", "--format", "raw", "a.uwc", "-o", "frames")
	s.ok(0, "export", "--format", "parquet", "a.uwc", "-o", "tables")
	s.ok(0, "export", "--format", "pcapng", "a.uwc", "-o", "a.pcapng")
	s.ok(0, "import", "a.pcapng", "-o", "frompcapng.uwc")
	s.write("secret.har", []byte(`{"log":{"entries":[{"request":{"method":"GET","url":"https://h.example/?api_key=`+secret+`",
		"headers":[{"name":"Cookie","value":"a=`+secret+`"}]},"response":{"status":200,"content":{"text":"again: `+secret+`"}}}]}}`))
	s.ok(0, "import", "secret.har", "-o", "fromhar.uwc")
	if err := os.Remove(filepath.Join(work, "secret.har")); err != nil {
		t.Fatal(err)
	}
	s.ok(0, "import", "a.har", "-o", "fromhar.uwc")
	s.ok(0, "import", "--json", "a.jsonl", "-o", "fromjsonl.uwc")
	s.ok(0, "capture", "-o", "c.uwc", "--upstream-ca", standin.CA, "--", bin, "demo-client", "--url", standin.URL, "--fallback", "hex")
	s.ok(0, "show", "c.uwc", "2")
	s.ok(0, "show", "--json", "--parts", "c.uwc", "2")
	s.ok(0, "replay", "c.uwc", "2", "--dry-run", "--json")
	s.ok(-1, "replay", "c.uwc", "2", "--to", standin.URL, "--upstream-ca", standin.CA, "-o", "answers.uwc")
	s.ok(-1, "audit", "a.uwc", "--secret-env", "UNWIRE_TOKEN")
	s.ok(-1, "audit", "--json", "a.uwc")
	s.ok(0, "redact", "a.uwc", "-o", "clean.uwc", "--secret-env", "UNWIRE_TOKEN")
	s.uploaded(standin.URL, standin.CA)
	s.ok(0, "schema", "infer", "-o", "inferred-again", "--evidence", "shard.pb", "a.uwc")
	s.ok(3, "schema", "history", "shard.pb") // it has no versions of a client, as shards of the pipeline have
	s.ok(3, "schema", "history", "--json", "shard.pb")
	s.askAgentsQuestions("a.uwc")
	s.ok(0, "mcp", "skill")
	s.ok(0, "mcp", "install", "--client", "cursor", "--yes", "a.uwc")
	s.ok(0, "ca")
	s.ok(0, "ca", "export")
	s.ok(-1, "doctor")
	s.ok(-1, "doctor", "--json")
	s.ok(0, "demo")
	s.ok(0, "completion", "bash")
	s.ok(0, "help")

	s.everyCommandRan()
	s.searchFiles()
	if t.Failed() {
		return
	}

	// The search finds what is there: recorded on purpose, it is seen.
	s.unredacted = true
	s.ok(0, "capture", "-o", "kept.uwc", "--keep-secrets", "--upstream-ca", standin.CA, "--", bin, "demo-client", "--url", standin.URL)
	s.searchFiles()
	if !s.found {
		t.Error("the search does not find a secret that was kept")
	}

	// It is found in it without being shown, and a cleaned copy has it no more.
	s.unredacted = false
	s.askAgentsQuestions("kept.uwc")
	s.ok(1, "audit", "kept.uwc")
	s.ok(1, "audit", "--json", "kept.uwc")
	s.ok(0, "redact", "kept.uwc", "-o", "cleaned.uwc")
	s.searchCapture(filepath.Join(work, "cleaned.uwc"))

	// Nor has anything that is exported of it, unless that is asked for.
	s.exported("kept.uwc")
	s.ok(0, "export", "--keep-headers", "--format", "jsonl", "kept.uwc")
	typedCapture(t, filepath.Join(work, "typed.uwc"))
	s.exported("typed.uwc")
	s.ok(1, "audit", "typed.uwc")
	s.ok(0, "redact", "typed.uwc", "-o", "cleantyped.uwc")
	s.searchCapture(filepath.Join(work, "cleantyped.uwc"))
	s.ok(0, "audit", "cleantyped.uwc")
	recordedForms(t, filepath.Join(work, "forms.uwc"))
	s.searchCapture(filepath.Join(work, "forms.uwc"))
	s.ok(0, "ls", "forms.uwc")
	s.ok(0, "show", "forms.uwc", "2")
	s.ok(0, "replay", "forms.uwc", "2", "--dry-run")
	s.unredacted, s.found = true, false
	s.ok(0, "export", "--as-recorded", "--format", "jsonl", "typed.uwc")
	if !s.found {
		t.Error("--as-recorded is not as recorded")
	}
}

// uploaded records and exports to an object store, which is a folder that searchFiles looks into. The second recording
// finds a file of the first one that has not been uploaded.
func (s *secretRun) uploaded(server, ca string) {
	s.t.Helper()
	storeURL := "file://" + filepath.ToSlash(filepath.Join(s.work, "store"))
	s.ok(0, "capture", "-o", "up.uwc", "--upstream-ca", ca, "--", s.bin, "demo-client", "--url", server)
	s.ok(0, "capture", "-o", "up.uwc", "--json", "--upload", storeURL, "--upstream-ca", ca, "--", s.bin, "demo-client", "--url", server)
	s.ok(0, "capture", "-o", "rotated.uwc", "--rotate", "1ns", "--upload", storeURL, "--upstream-ca", ca, "--", s.bin, "demo-client", "--url", server)
	s.ok(0, "export", "a.uwc", "--format", "parquet", "--upload", storeURL+"/tables")
	s.ok(0, "export", "a.uwc", "--format", "jsonl", "--upload", storeURL+"/lines")
	for _, pattern := range []string{"*.uwc", "*.json", "tables/*", "lines/*"} {
		if found, err := filepath.Glob(filepath.Join(s.work, "store", pattern)); err != nil || len(found) == 0 {
			s.t.Errorf("no %s in the store: %v", pattern, err)
		}
	}
}

// exported looks into all that a capture is exported to, the frames too.
func (s *secretRun) exported(file string) {
	s.t.Helper()
	s.ok(0, "export", "--format", "har", file)
	s.write("bare.proto", []byte(`syntax = "proto3"; package agent.v1; message Nothing {} service AgentService { rpc Run(stream Nothing) returns (stream Nothing); }`))
	if page := s.ok(1, "schema", "check", "--html", "-", "--proto", "bare.proto", file); file == "typed.uwc" && !bytes.Contains(page, []byte("redacted")) || !bytes.Contains(page, []byte("<pre>0")) {
		s.t.Errorf("no excerpt in the page of %s: %s", file, page)
	}
	out := s.ok(0, "export", "--format", "jsonl", file)
	s.write("again.jsonl", out)
	s.ok(0, "import", "again.jsonl", "-o", "again-"+file, "--keep-secrets")
	s.searchCapture(filepath.Join(s.work, "again-"+file))
	for _, format := range []string{"raw", "parquet"} {
		dir := "of-" + file + "-" + format
		s.ok(0, "export", "--format", format, "--proto", "none", file, "-o", dir)
		err := filepath.WalkDir(filepath.Join(s.work, dir), func(path string, d fs.DirEntry, err error) error {
			if err != nil || !d.Type().IsRegular() {
				return err
			}
			data, err := os.ReadFile(path)
			s.search(path, data)
			return err
		})
		if err != nil {
			s.t.Fatal(err)
		}
	}
}

// typedCapture records a message of which only the definitions say that a field
// is a secret: as it is, compressed, and in hex in a field of an append.
func typedCapture(t *testing.T, path string) {
	t.Helper()
	store, err := store.Create(path, store.Options{KeepSecrets: true})
	if err != nil {
		t.Fatal(err)
	}
	field := func(n protowire.Number, v string) string {
		return string(protowire.AppendString(protowire.AppendTag(nil, n, protowire.BytesType), v))
	}
	// agent.v1.AgentRunRequest.model_details.api_key_credentials.api_key
	message := []byte(field(1, field(3, field(1, "model")+field(8, field(1, secret)))+field(7, "a prompt")))
	packed, err := envelope.Compress("gzip", message)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range formsOfRequests(t, field) {
		rec, err := store.Begin(captures.Exchange{Method: c.method, URL: c.url, HTTP: "2", RequestHeaders: captures.Headers{
			{Name: ":path", Value: strings.TrimPrefix(c.url, "https://h.example")},
			{Name: "referer", Value: c.url},
			{Name: "content-type", Value: c.media},
			{Name: "connect-content-encoding", Value: "gzip"},
		}})
		if err != nil {
			t.Fatal(err)
		}
		if c.status == 101 {
			rec.Response(c.status, captures.Headers{{Name: "upgrade", Value: "websocket"}})
		}
		if len(c.body) > 0 {
			rec.Chunk(captures.Up, c.body)
		}
		rec.End(captures.Complete, "no route to "+c.url)
	}
	for _, c := range []struct {
		url, media string
		body       []byte
	}{
		{"https://h.example/agent.v1.AgentService/Run", "application/connect+proto", envelope.Append(envelope.Append(nil, 0, message), envelope.Compressed, packed)},
		{"https://h.example/aiserver.v1.BidiService/BidiAppend", "application/proto", []byte(field(1, hex.EncodeToString(message)))},
		{"https://u:" + secret + "@h.example/?api_key=" + secret, "application/json", []byte(`{"accessToken":"` + secret + `"}`)},
	} {
		rec, err := store.Begin(captures.Exchange{Method: "POST", URL: c.url, HTTP: "2", RequestHeaders: captures.Headers{
			{Name: "content-type", Value: c.media}, {Name: "connect-content-encoding", Value: "gzip"},
		}})
		if err != nil {
			t.Fatal(err)
		}
		rec.Chunk(captures.Up, c.body)
		rec.Response(302, captures.Headers{{Name: "location", Value: "/x?token=" + secret}})
		rec.End(captures.Complete, "")
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
}

// recordedForms records, with the redaction of a recorder, the requests that it
// can look into. The token is known from a header.
func recordedForms(t *testing.T, path string) {
	t.Helper()
	store, err := store.Create(path, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	field := func(n protowire.Number, v string) string {
		return string(protowire.AppendString(protowire.AppendTag(nil, n, protowire.BytesType), v))
	}
	for _, c := range formsOfRequests(t, field) {
		if c.status == 101 {
			continue
		}
		rec, err := store.Begin(captures.Exchange{Method: c.method, URL: c.url, RequestHeaders: captures.Headers{
			{Name: "content-type", Value: c.media}, {Name: "connect-content-encoding", Value: "gzip"}, {Name: "authorization", Value: "Bearer " + secret},
		}})
		if err != nil {
			t.Fatal(err)
		}
		if len(c.body) > 0 {
			rec.Chunk(captures.Up, c.body)
		}
		rec.End(captures.Complete, "no route to "+c.url)
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
}

// A requestForm is a request that holds the secret in a form in which no search
// of its bytes finds it.
type requestForm struct {
	method, url, media string
	status             int
	body               []byte
}

func formsOfRequests(t *testing.T, field func(protowire.Number, string) string) []requestForm {
	t.Helper()
	const call = "https://h.example/p.v1.Service/Method"
	const get = call + "?connect=v1&encoding="
	member := []byte(`{"apiKey":"` + secret + `"}`)
	packed, err := envelope.Compress("gzip", member)
	if err != nil {
		t.Fatal(err)
	}
	base64URL := base64.RawURLEncoding.EncodeToString
	return []requestForm{
		{"GET", get + "json&message=" + url.QueryEscape(string(member)), "", 200, nil},
		{"GET", get + "json&base64=1&message=" + base64URL(member), "", 200, nil},
		{"GET", get + "json&base64=1&compression=gzip&message=" + base64URL(packed), "", 200, nil},
		{"GET", get + "proto&base64=1&message=" + base64URL([]byte(field(1, "Bearer "+secret))), "", 200, nil},
		{"POST", call, "application/connect+proto", 200, envelope.Append(envelope.Append(nil, 0x04, []byte(field(1, "x"))), envelope.Compressed, packed)},
		{"GET", call, "", 101, masked(secret)},
		{"GET", call, "", 101, deflated(secret)},
	}
}

// masked is a message of a WebSocket's client.
func masked(text string) []byte {
	key := [4]byte{0x5a, 0x13, 0xc7, 0x81}
	p := append([]byte{0x81, 0x80 | byte(len(text))}, key[:]...)
	for i := range len(text) {
		p = append(p, text[i]^key[i%4])
	}
	return p
}

// deflated is a message of a WebSocket with permessage-deflate.
func deflated(text string) []byte {
	var b bytes.Buffer
	w, _ := flate.NewWriter(&b, flate.BestCompression) // the level is valid
	_, _ = w.Write([]byte(text))
	_ = w.Flush()
	p := bytes.TrimSuffix(b.Bytes(), []byte{0, 0, 0xff, 0xff})
	return append([]byte{0xc1, byte(len(p))}, p...)
}

// clientConfig is a folder with the tokens that a client has stored.
func clientConfig(t *testing.T) string {
	t.Helper()
	config := t.TempDir()
	if err := os.Mkdir(filepath.Join(config, "cursor"), 0o700); err != nil {
		t.Fatal(err)
	}
	auth := `{"accessToken":"` + secret + `","refreshToken":"` + secret + `","apiKey":"` + secret + `"}`
	if err := os.WriteFile(filepath.Join(config, "cursor", "auth.json"), []byte(auth), 0o600); err != nil {
		t.Fatal(err)
	}
	return config
}

// A secretRun runs commands in a folder, with the secret as their credential.
type secretRun struct {
	t         *testing.T
	bin, work string
	config    string // with what a client has stored
	ran       map[string]bool

	unredacted bool // a secret that is found is no error
	found      bool
}

func (s *secretRun) command(args ...string) *exec.Cmd {
	s.ran[args[0]] = true
	cmd := exec.Command(s.bin, args...)
	cmd.Dir = s.work
	cmd.Env = append(os.Environ(), "UNWIRE_CONFIG="+filepath.Join(s.work, "config"), "TMPDIR="+s.work,
		"UNWIRE_TOKEN="+secret, "UNWIRE_API_KEY="+secret, "XDG_CONFIG_HOME="+s.config, "UNWIRE_MACHINE_ID="+secret, "UNWIRE_STANDIN_TOKEN="+secret, "UNWIRE_SERVE_KEY="+secret, "NO_COLOR=1")
	return cmd
}

// ok runs a command, wants its exit status unless that is -1, and looks for
// the secret in what it prints. It returns stdout.
func (s *secretRun) ok(status int, args ...string) []byte {
	s.t.Helper()
	cmd := s.command(args...)
	var out, errOut bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errOut
	err := cmd.Run()
	if got := cmd.ProcessState.ExitCode(); status >= 0 && got != status || got > 1 && status < 0 {
		s.t.Fatalf("unwire %s: %v\n%s%s", strings.Join(args, " "), err, out.Bytes(), errOut.Bytes())
	}
	s.search("the output of unwire "+strings.Join(args, " "), out.Bytes())
	s.search("the talk of unwire "+strings.Join(args, " "), errOut.Bytes())
	return out.Bytes()
}

// askAgentsQuestions asks 'unwire mcp' everything about a capture.
func (s *secretRun) askAgentsQuestions(file string) {
	s.t.Helper()
	c := startMCP(s.t, s.work, file)
	for tool, calls := range everyQuestion(file) {
		for _, args := range calls {
			s.search(fmt.Sprintf("the answer of %s %v about %s", tool, args, file), []byte(text(s.t, c.result(tool, args))))
		}
	}
	if err := c.session.Close(); err != nil {
		s.t.Error(err)
	}
}

// start runs a command that reports where it listens, until the test ends.
func (s *secretRun) start(args ...string) (event struct{ URL, CA string }) {
	s.t.Helper()
	cmd := s.command(args...)
	cmd.Stderr = os.Stderr
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		s.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	if err := json.NewDecoder(stdout).Decode(&event); err != nil {
		s.t.Fatal(err)
	}
	return event
}

func (s *secretRun) write(name string, data []byte) {
	path := filepath.Join(s.work, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		s.t.Fatal(err)
	}
	if err := os.WriteFile(path, data, 0o600); err != nil {
		s.t.Fatal(err)
	}
}

// served sends requests to serve, whose key and whose upstream's token are the secret, and
// reads what it has recorded.
func (s *secretRun) served(upstream, ca string) {
	s.t.Helper()
	server := s.start("serve", "--json", "--listen", "127.0.0.1:0", "--to", upstream, "--upstream-ca", ca, "-o", "served.uwc")
	for path, body := range map[string]string{
		"/v1/models":           "",
		"/metrics":             "",
		"/v1/chat/completions": `{"model":"composer-1","messages":[{"role":"user","content":"Hello"}]}`,
		"/v1/responses":        `{"model":"composer-1","input":"fault:login","stream":true}`,
		"/v1/messages":         `{"model":"nothing","max_tokens":1,"messages":[{"role":"user","content":"Hello"}]}`,
	} {
		method := http.MethodPost
		if body == "" {
			method = http.MethodGet
		}
		req, err := http.NewRequest(method, server.URL+path, strings.NewReader(body))
		if err != nil {
			s.t.Fatal(err)
		}
		req.Header.Set("X-Api-Key", secret)
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			s.t.Fatal(err)
		}
		answer, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil || resp.StatusCode == http.StatusUnauthorized && path != "/v1/responses" {
			s.t.Fatalf("%s: %d, %v: %s", path, resp.StatusCode, err, answer)
		}
		s.search("the answer of serve to "+path, answer)
	}
	s.ok(0, "ls", "served.uwc")
	for _, id := range []string{"1", "2", "3", "4", "5", "6"} {
		s.ok(0, "show", "served.uwc", id)
	}
}

// shown asks the workbench for everything that its page shows of a capture.
func (s *secretRun) shown(file string) {
	s.t.Helper()
	page := s.start("ui", "--json", "--no-open", file)
	base, token, ok := strings.Cut(page.URL, "#token=")
	if !ok {
		s.t.Fatalf("the URL has no token: %s", page.URL)
	}
	for _, path := range []string{
		"captures", "list", "list?filter=text:Hello", "exchange?x=2", "frames?x=2", "lanes?x=2", "frame?x=2&f=up/0", "rows?x=2&f=up/0", "bytes?x=2&f=up/0",
		"text?x=2&f=up/0", "explain?x=2&f=up/0&row=0", "notes", "transcript?x=2", "diff?a=1&b=2", "schema", "schema/inferred", "copy?x=1&as=curl",
		"download?x=2&f=up/0&what=json", "download?x=2&what=har", "download?x=0&what=jsonl",
	} {
		req, err := http.NewRequest(http.MethodGet, base+"api/"+path, nil)
		if err != nil {
			s.t.Fatal(err)
		}
		req.Header.Set("X-Unwire-Token", token)
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			s.t.Fatal(err)
		}
		answer, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil || resp.StatusCode != http.StatusOK {
			s.t.Fatalf("%s: %d, %v: %s", path, resp.StatusCode, err, answer)
		}
		s.search("the answer of ui to "+path, answer)
	}
}

// everyCommandRan fails for a command that the test does not know.
func (s *secretRun) everyCommandRan() {
	out := s.ok(0, "__complete", "")
	for line := range strings.Lines(string(out)) {
		name, _, isCommand := strings.Cut(strings.TrimSpace(line), "\t")
		if isCommand && !s.ran[name] {
			s.t.Errorf("unwire %s was not run: a new command belongs into this test", name)
		}
	}
}

// forms are the ways in which a secret may hide.
func forms(v string) [][]byte {
	b := []byte(v)
	list := [][]byte{
		b, masked(v)[6:], deflated(v)[2:], []byte(url.QueryEscape(v)), []byte(hex.EncodeToString(b)), []byte(strings.ToUpper(hex.EncodeToString(b))),
	}
	for shift := range 3 { // base64 of a text that holds the secret at any place
		enc := base64.StdEncoding.EncodeToString(append(make([]byte, shift), b...))
		core := enc[(shift*8+5)/6 : (shift+len(b))*8/6]
		list = append(list, []byte(core), []byte(strings.NewReplacer("+", "-", "/", "_").Replace(core)))
	}
	return list
}

func (s *secretRun) search(where string, data []byte) {
	s.t.Helper()
	if !slices.ContainsFunc(forms(secret), func(f []byte) bool { return bytes.Contains(data, f) }) {
		return
	}
	s.found = true
	if !s.unredacted {
		s.t.Errorf("the secret is in %s", where)
	}
}

// searchFiles looks into every file, and into the bodies that a capture holds compressed.
func (s *secretRun) searchFiles() {
	seen := 0
	err := filepath.WalkDir(s.work, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		seen++
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		s.search(path, data)
		if filepath.Ext(path) == ".uwc" {
			s.searchCapture(path)
		}
		return nil
	})
	if err != nil {
		s.t.Fatal(err)
	}
	if seen < 6 {
		s.t.Fatalf("only %d files were written", seen)
	}
}

func (s *secretRun) searchCapture(path string) {
	store, err := store.Open(path, store.ReadOptions{})
	if err != nil {
		s.t.Fatal(err)
	}
	defer store.Close()
	ctx := context.Background()
	for ex, err := range store.Exchanges(ctx) {
		if err != nil {
			s.t.Fatal(err)
		}
		head, err := json.Marshal(ex)
		if err != nil {
			s.t.Fatal(err)
		}
		s.search(path, head)
		var bodies [2]bytes.Buffer
		for c, err := range store.Chunks(ctx, ex.ID, 0) {
			if err != nil {
				s.t.Fatal(err)
			}
			bodies[c.Dir].Write(c.Data)
		}
		for i := range bodies {
			s.search(path+"'s bodies", bodies[i].Bytes())
		}
		d, err := decode.Decode(ctx, store, ex.ID, decode.Options{})
		if err != nil {
			s.t.Fatal(err)
		}
		for i := range d.Frames {
			s.search(path+"'s frames", d.Frames[i].Data)
		}
	}
}
