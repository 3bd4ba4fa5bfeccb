package replay

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"unwire/captures"
	"unwire/captures/profile"
	"unwire/captures/store"
	"unwire/decode"
	"unwire/decode/conversation"
	"unwire/decode/envelope"
	"unwire/decode/wire"
	"unwire/replay/credential"
	"unwire/replay/edit"
)

// acorn is an invented service.
func acorn() *profile.Profile {
	return &profile.Profile{
		Name: "acorn",
		Split: profile.Split{
			Append: profile.Append{RPC: "SendPart", Text: 8, Binary: 7, ID: []uint64{3}, Number: 2},
			Heads:  []profile.Head{{Suffix: "Watch", ID: []uint64{5}}},
		},
		Secrets: profile.Secrets{
			Headers: []string{"x-acorn-seal", "x-acorn-stamp"}, Names: []string{"acornPin"}, Keys: []profile.Key{{Prefix: "acorn_", MinLength: 20}},
		},
		Hosts: []string{"*.acorn.example"},
		Tokens: profile.Tokens{
			Account: "squirrel", Folder: "acorn", WindowsFolder: "Acorn", File: "keys.json",
			AccessToken: profile.Place{Member: "bearer"}, RefreshToken: profile.Place{Member: "renew"}, APIKey: profile.Place{Member: "key"},
		},
		VersionHeader: "x-acorn-version",
		Checksum: profile.Checksum{
			Header: "x-acorn-stamp",
			Make:   func(captured, machine string, _ time.Time) string { return "stamped " + captured + machine },
		},
	}
}

// TestAnotherProfile: of a service that is not the one of proto/, secrets are
// redacted, a split stream is joined, stored tokens are found, and a request is
// prepared, with nothing but its profile.
func TestAnotherProfile(t *testing.T) {
	s, err := store.Create(filepath.Join(t.TempDir(), "a.uwc"), store.Options{Profile: acorn()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	record := func(rpc, media string, body []byte, extra ...captures.Header) int64 {
		headers := append(captures.Headers{{Name: "content-type", Value: media}}, extra...)
		rec, err := s.Begin(captures.Exchange{Method: "POST", URL: "https://api.acorn.example/acorn.Api/" + rpc, HTTP: "2", RequestHeaders: headers})
		if err != nil {
			t.Fatal(err)
		}
		rec.Chunk(captures.Up, body)
		rec.Response(200, captures.Headers{{Name: "content-type", Value: media}})
		if media == "application/connect+proto" {
			rec.Chunk(captures.Down, envelope.Append(envelope.Append(nil, 0, []byte("\x0a\x05nut 1")), envelope.EndStream, []byte("{}")))
		}
		rec.End(captures.Complete, "")
		return rec.ID()
	}
	head := record("TalkWatch", "application/connect+proto", envelope.Append(nil, 0, edit.AppendField(nil, 5, wire.Len, []byte("tree-1"))))
	part := edit.AppendField(edit.AppendField(nil, 3, wire.Len, []byte("tree-1")), 7, wire.Len, []byte("\x0a\x04hole"))
	record("SendPart", "application/proto", part)
	const key = "acorn_0123456789abcdef0123"
	plain := record("Ask", "application/json", []byte(`{"acornPin":"123-secret","x":"`+key+`"}`),
		captures.Header{Name: "authorization", Value: "Bearer old"}, captures.Header{Name: "x-acorn-seal", Value: "sealed"},
		captures.Header{Name: "x-acorn-stamp", Value: "machine"}, captures.Header{Name: "x-acorn-version", Value: "acorn 2020.01.02"})
	if err := s.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}

	ex, err := decode.Decode(t.Context(), s, plain, decode.Options{})
	if err != nil {
		t.Fatal(err)
	}
	body := string(ex.Frames[0].Data)
	if strings.Contains(body, key) || strings.Contains(body, "123-secret") || !credential.IsRedacted(ex.RequestHeaders.Get("x-acorn-seal")) {
		t.Errorf("not redacted: %s %v", body, ex.RequestHeaders)
	}

	c, err := conversation.Decode(t.Context(), s, head, decode.Options{})
	if err != nil || c == nil || c.RPC != "Talk" || len(c.Frames) != 3 {
		t.Fatalf("joined: %+v, %v", c, err)
	}
	talk, err := newPlan(t.Context(), s, head, settings{To: mustURL("http://127.0.0.1:1")})
	if err != nil || talk.shown.RPC != "TalkWatch" || len(talk.shown.Frames) != 1 || string(talk.shown.Frames[0].Data) != "\x0a\x04hole" {
		t.Errorf("the plan of a split stream: %v", err)
	}

	credentials := acornCredentials(t)
	if _, _, ok := credentials.ForHost("api.acorn.example").Token(); !ok {
		t.Error("the stored token does not go to its host")
	}
	if _, _, ok := credentials.ForHost("api.example").Token(); ok {
		t.Error("the stored token goes to another host")
	}
	p, err := newPlan(t.Context(), s, plain, settings{Credentials: credentials, To: mustURL("http://127.0.0.1:1")})
	if err != nil {
		t.Fatal(err)
	}
	if got := p.headers.Get("authorization"); got != "Bearer stored" {
		t.Errorf("authorization: %s", got)
	}
	if got := p.headers.Get("x-acorn-stamp"); !strings.HasPrefix(got, "stamped ") {
		t.Errorf("the computed header: %q", got)
	}
	if len(p.shown.Warnings) == 0 || !strings.Contains(p.shown.Warnings[0], "x-acorn-version") {
		t.Errorf("warnings: %q", p.shown.Warnings)
	}
}

// acornCredentials are those of a token file.
func acornCredentials(t *testing.T) *credential.Credentials {
	config := t.TempDir()
	if err := os.MkdirAll(filepath.Join(config, "acorn"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(config, "acorn", "keys.json"), []byte(`{"bearer":"stored"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	env := map[string]string{"XDG_CONFIG_HOME": config, "UNWIRE_MACHINE_ID": "oak"}
	c, err := credential.Resolver{OS: "linux", Getenv: func(name string) string { return env[name] }, Profile: acorn()}.Load("acorn")
	if err != nil {
		t.Fatal(err)
	}
	return c
}
