package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// upgradeServer takes one upgrade and reads until the client leaves.
func upgradeServer(t *testing.T, protocol string) string {
	t.Helper()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		conn, rw, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: "+protocol+"\r\n\r\n")
		_, _ = io.Copy(conn, rw) // an echo
	}))
	t.Cleanup(srv.Close)
	return srv.URL
}

// talkUpgraded sends payload through a proxy at addr and waits for its echo.
func talkUpgraded(t *testing.T, addr, protocol string, payload []byte) {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_, err = io.WriteString(conn, "GET /socket HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: "+protocol+"\r\n\r\n")
	if err != nil {
		t.Fatal(err)
	}
	in := bufio.NewReader(conn)
	res, err := http.ReadResponse(in, nil)
	if err != nil || res.StatusCode != 101 {
		t.Fatal(res, err)
	}
	if _, err := conn.Write(payload); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(in, make([]byte, len(payload))); err != nil {
		t.Fatal(err)
	}
}

// What another protocol carries is recorded as it is and cannot be searched: capture
// and audit say so, and copies and exports leave it out.
func TestOtherProtocolIsUnsearched(t *testing.T) {
	s := &secretRun{t: t, bin: unwireCommand(t), work: t.TempDir(), config: t.TempDir(), ran: map[string]bool{}}
	cmd := s.command("capture", "--json", "-o", "ws.uwc", "--reverse", upgradeServer(t, "chat"))
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer time.AfterFunc(20*time.Second, func() { _ = cmd.Process.Kill() }).Stop() // if an event does not come
	defer func() { _ = cmd.Process.Kill() }()
	type event struct {
		Event, Proxy, URL, Reason string
		UnsearchedBytes           int64 `json:"unsearched_bytes"`
		UnsearchedExchanges       int   `json:"unsearched_exchanges"`
	}
	events := json.NewDecoder(stdout)
	next := func() (e event) {
		t.Helper()
		for e.Event == "" || e.Event == "exchange" {
			e = event{}
			if err := events.Decode(&e); err != nil {
				t.Fatal(err)
			}
		}
		return e
	}
	u, err := url.Parse(next().Proxy)
	if err != nil {
		t.Fatal(err)
	}
	payload := masked(secret)
	talkUpgraded(t, u.Host, "chat", payload)
	if e := next(); e.Event != "unsearched" || e.Reason != "payload of chat" {
		t.Errorf("%+v", e)
	}
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if e := next(); e.Event != "ended" || e.UnsearchedBytes != int64(2*len(payload)) || e.UnsearchedExchanges != 1 {
		t.Errorf("%+v", e)
	}
	_ = cmd.Wait() // the exit status says that it was interrupted

	found := s.ok(1, "audit", "--json", "ws.uwc")
	if !bytes.Contains(found, []byte(`"rule":"not-searched","place":"body","name":"payload of chat"`)) || !bytes.Contains(found, []byte(`"removable":true`)) {
		t.Errorf("audit: %s", found)
	}
	out := s.ok(0, "redact", "--json", "ws.uwc", "-o", "clean.uwc")
	if !bytes.Contains(out, []byte(`"left":0,"omitted_exchanges":1,"omitted_bytes":68`)) {
		t.Errorf("redact: %s", out)
	}
	s.ok(0, "audit", "clean.uwc")
	s.searchCapture(filepath.Join(s.work, "clean.uwc"))
	if text := s.ok(0, "show", "clean.uwc", "1"); !bytes.Contains(text, []byte("were left out")) {
		t.Errorf("show: %s", text)
	}
	for _, format := range []string{"har", "jsonl", "pcapng"} {
		s.ok(0, "export", "--format", format, "ws.uwc")
	}
	s.write("again.jsonl", s.ok(0, "export", "--format", "jsonl", "ws.uwc"))
	s.ok(0, "import", "again.jsonl", "-o", "again.uwc", "--keep-secrets")
	s.searchCapture(filepath.Join(s.work, "again.uwc"))
	s.ok(0, "redact", "ws.uwc", "-o", "kept.uwc", "--keep-unsearched")
	s.unredacted = true
	s.searchCapture(filepath.Join(s.work, "kept.uwc"))
	if !s.found {
		t.Error("--keep-unsearched keeps nothing")
	}
}

// A secret in a message of a WebSocket is replaced while it is recorded, though it is
// masked on the wire.
func TestWebSocketIsSearched(t *testing.T) {
	s := &secretRun{t: t, bin: unwireCommand(t), work: t.TempDir(), config: t.TempDir(), ran: map[string]bool{}}
	cmd := s.command("capture", "--json", "-o", "ws.uwc", "--reverse", upgradeServer(t, "websocket"))
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer time.AfterFunc(20*time.Second, func() { _ = cmd.Process.Kill() }).Stop()
	var listening, ended struct {
		Event, Proxy    string
		UnsearchedBytes int64 `json:"unsearched_bytes"`
	}
	events := json.NewDecoder(stdout)
	if err := events.Decode(&listening); err != nil {
		t.Fatal(err)
	}
	u, err := url.Parse(listening.Proxy)
	if err != nil {
		t.Fatal(err)
	}
	talkUpgraded(t, u.Host, "websocket", masked(`{"access_token":"`+secret+`"}`))
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	for ended.Event != "ended" {
		if err := events.Decode(&ended); err != nil {
			t.Fatal(err)
		}
	}
	if ended.UnsearchedBytes != 0 {
		t.Errorf("%+v", ended)
	}
	_ = cmd.Wait() // the exit status says that it was interrupted
	s.searchCapture(filepath.Join(s.work, "ws.uwc"))
}
