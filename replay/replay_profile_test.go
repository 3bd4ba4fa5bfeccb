package replay

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"
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
			Append: profile.Append{RPC: "SendPart", Text: 8, Binary: 7, ID: []uint64{3}, Seq: 2},
			Heads:  []profile.Head{{Suffix: "Watch", ID: []uint64{5}}},
		},
		Secrets: profile.Secrets{
			Headers: []string{"x-acorn-seal", "x-acorn-stamp"}, Names: []string{"acornPin"}, Keys: []profile.KeyShape{{Prefix: "acorn_", MinLength: 20}},
		},
		Hosts: []string{"*.acorn.example"},
		Tokens: profile.Tokens{
			Account: "squirrel", Folder: "acorn", WindowsFolder: "Acorn", File: "keys.json",
			AccessToken: profile.TokenPlace{Member: "bearer"}, RefreshToken: profile.TokenPlace{Member: "renew"}, APIKey: profile.TokenPlace{Member: "key"},
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
	env := map[string]string{"XDG_CONFIG_HOME": config, "UNWIRE_MACHINE_ID": "oak", "UNWIRE_HEADER_X_ACORN_SEAL": "a fresh seal"}
	c, err := credential.Resolver{OS: "linux", Getenv: func(name string) string { return env[name] }, Profile: acorn()}.Load("acorn")
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// acornServer answers an Ask, and a Talk that is split into calls, and keeps what
// it was sent.
type acornServer struct {
	*httptest.Server
	mu    sync.Mutex
	sent  map[string]http.Header
	body  map[string]string
	parts chan struct{}
}

func newAcornServer(t *testing.T) *acornServer {
	s := &acornServer{sent: map[string]http.Header{}, body: map[string]string{}, parts: make(chan struct{}, 8)}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		rpc := path.Base(r.URL.Path)
		s.mu.Lock()
		s.sent[rpc], s.body[rpc] = r.Header.Clone(), string(body)
		s.mu.Unlock()

		w.Header().Set("content-type", r.Header.Get("content-type"))
		switch rpc {
		case "TalkWatch":
			_, err = w.Write(envelope.Append(nil, 0, []byte("\x0a\x05nut 1")))
			err = errors.Join(err, http.NewResponseController(w).Flush())
			select {
			case <-s.parts:
			case <-r.Context().Done():
				t.Error("no part came")
			}
			_, werr := w.Write(envelope.Append(nil, envelope.EndStream, []byte("{}")))
			err = errors.Join(err, werr)
		case "SendPart":
			s.parts <- struct{}{}
		default:
			_, err = io.WriteString(w, "{}")
		}
		if err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(s.Close)
	return s
}

// TestAnotherProfileIsSent: what is sent to a service has the token, the secrets
// and the headers that its profile asks for, in one call and in a split stream.
func TestAnotherProfileIsSent(t *testing.T) {
	s, err := store.Create(filepath.Join(t.TempDir(), "a.uwc"), store.Options{Profile: acorn()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	const key = "acorn_0123456789abcdef0123"
	record := func(rpc, media string, up, down []byte) int64 {
		rec, err := s.Begin(captures.Exchange{Method: "POST", URL: "https://api.acorn.example/acorn.Api/" + rpc, HTTP: "1.1", RequestHeaders: captures.Headers{
			{Name: "content-type", Value: media},
			{Name: "authorization", Value: "Bearer " + key},
			{Name: "x-acorn-seal", Value: "sealed-0123456789"},
			{Name: "x-acorn-stamp", Value: "machine"},
			{Name: "x-acorn-version", Value: "acorn 1"},
		}})
		if err != nil {
			t.Fatal(err)
		}
		rec.Chunk(captures.Up, up)
		rec.Response(200, captures.Headers{{Name: "content-type", Value: media}})
		rec.Chunk(captures.Down, down)
		rec.End(captures.Complete, "")
		return rec.ID()
	}
	ask := record("Ask", "application/json", []byte(`{"x":"`+key+`"}`), []byte("{}"))
	head := record("TalkWatch", "application/connect+proto", envelope.Append(nil, 0, edit.AppendField(nil, 5, wire.Len, []byte("tree-1"))),
		envelope.Append(envelope.Append(nil, 0, []byte("\x0a\x05nut 1")), envelope.EndStream, []byte("{}")))
	record("SendPart", "application/proto", edit.AppendField(edit.AppendField(nil, 3, wire.Len, []byte("tree-1")), 7, wire.Len, []byte("\x0a\x04hole")), nil)
	if err := s.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}

	server := newAcornServer(t)
	for _, id := range []int64{ask, head} {
		p, err := newPlan(t.Context(), s, id, settings{Credentials: acornCredentials(t), To: mustURL(server.URL)})
		if err != nil {
			t.Fatal(err)
		}
		r, err := p.Send(t.Context(), nil)
		if err != nil || r.Origin != FromServer || r.Status != 200 || r.Code != "ok" && r.Code != "" {
			t.Fatalf("exchange %d: %+v, %v", id, r, err)
		}
	}

	server.mu.Lock()
	defer server.mu.Unlock()
	for _, rpc := range []string{"Ask", "TalkWatch", "SendPart"} {
		h := server.sent[rpc]
		for name, want := range map[string]string{"authorization": "Bearer stored", "x-acorn-seal": "a fresh seal", "x-acorn-stamp": "stamped oak", "x-acorn-version": "acorn 1"} {
			if got := h.Get(name); got != want {
				t.Errorf("%s: %s is %q, want %q", rpc, name, got, want)
			}
		}
	}
	if got := server.body["Ask"]; got != `{"x":"stored"}` {
		t.Errorf("the key in the body: %s", got)
	}
	watch, err := envelope.NewDecoder(envelope.Options{Framed: true}).Feed([]byte(server.body["TalkWatch"]))
	if err != nil || len(watch) != 1 {
		t.Fatalf("TalkWatch: %q, %v", server.body["TalkWatch"], err)
	}
	stream := string(watch[0].Data[2:])
	if part := edit.AppendField(edit.AppendField(nil, 3, wire.Len, []byte(stream)), 7, wire.Len, []byte("\x0a\x04hole")); server.body["SendPart"] != string(part) || stream == "tree-1" {
		t.Errorf("a part of stream %q: %q", stream, server.body["SendPart"])
	}
}
