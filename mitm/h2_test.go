package mitm

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"unwire/captures"
	"unwire/captures/need"
)

// TestUnreachableServerIsTriedAnew: an HTTP/2 client is told why there is no
// connection, on one that then ends, and its next one is served.
func TestUnreachableServerIsTriedAnew(t *testing.T) {
	origin := newTLSOrigin(t, true, http.HandlerFunc(serveHello))
	b := newTestProxy(t, []*httptest.Server{origin}, nil)
	c := b.client(true)
	var again net.Listener
	addr := ""
	for again == nil { // unless another program has taken the port meanwhile
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		addr = ln.Addr().String()
		ln.Close()
		if res, body := get(t, c, "https://"+addr); res.StatusCode != http.StatusBadGateway {
			t.Logf("%d %s", res.StatusCode, body)
			continue
		}
		if again, err = tls.Listen("tcp", addr, &tls.Config{Certificates: origin.TLS.Certificates, NextProtos: []string{protoH2}}); err != nil {
			t.Log(err)
			again = nil
		}
	}
	s := &http.Server{Handler: http.HandlerFunc(serveHello)}
	go func() { _ = s.Serve(again) }()
	t.Cleanup(func() { s.Close() })
	var body []byte
	for deadline := time.Now().Add(matrixTimeout); time.Now().Before(deadline); { // until the client has heard that its connection ends
		res, err := c.Get("https://" + addr + "/now")
		if err != nil {
			t.Fatal(err)
		}
		body, err = io.ReadAll(res.Body)
		res.Body.Close()
		if err == nil && res.StatusCode == http.StatusOK {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	if string(body) != "hello /now" {
		t.Errorf("%q", body)
	}
}

// A lateEnder is an HTTP/2 server that sends all of an answer, and END_STREAM
// never: the client leaves first.
type lateEnder struct {
	net.Listener
	fields []hpack.HeaderField
	body   string
}

func newLateEnder(t *testing.T, identity *httptest.Server, body string, fields ...hpack.HeaderField) *lateEnder {
	t.Helper()
	ln, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: identity.TLS.Certificates, NextProtos: []string{protoH2}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ln.Close() })
	s := &lateEnder{ln, fields, body}
	go func() {
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			go s.serve(conn)
		}
	}()
	return s
}

func (s *lateEnder) serve(conn net.Conn) {
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(matrixTimeout))
	if _, err := io.ReadFull(conn, make([]byte, len(http2.ClientPreface))); err != nil {
		return
	}
	fr := http2.NewFramer(conn, conn)
	_ = fr.WriteSettings()
	var block bytes.Buffer
	enc := hpack.NewEncoder(&block)
	for {
		f, err := fr.ReadFrame()
		if err != nil {
			return
		}
		switch f := f.(type) {
		case *http2.SettingsFrame:
			if !f.IsAck() {
				_ = fr.WriteSettingsAck()
			}
		case *http2.HeadersFrame:
			block.Reset()
			for _, h := range append([]hpack.HeaderField{{Name: ":status", Value: "200"}}, s.fields...) {
				_ = enc.WriteField(h)
			}
			_ = fr.WriteHeaders(http2.HeadersFrameParam{StreamID: f.StreamID, BlockFragment: block.Bytes(), EndHeaders: true})
			_ = fr.WriteData(f.StreamID, false, []byte(s.body))
		}
	}
}

// TestCurlClosesAtContentLength: curl has what it asked for at content-length and
// leaves; each of its calls is complete.
func TestCurlClosesAtContentLength(t *testing.T) {
	program := need.Curl(t, "HTTP2")
	identity := newTLSOrigin(t, true, http.NotFoundHandler())
	const body = "all of the answer"
	length := hpack.HeaderField{Name: "content-length", Value: fmt.Sprint(len(body))}
	s := newLateEnder(t, identity, body, length)
	b := newTestProxy(t, []*httptest.Server{identity}, nil)
	caFile := filepath.Join(t.TempDir(), "ca.pem")
	pem, err := os.ReadFile(b.ca.CertFile)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(caFile, pem, 0o600); err != nil {
		t.Fatal(err)
	}
	const calls = 30
	for i := range calls {
		ctx, cancel := context.WithTimeout(t.Context(), matrixTimeout)
		args := []string{"-q", "-sS", "--http2", "--noproxy", "", "--max-time", "20", "--cacert", caFile, "--proxy", b.url().String()}
		if i%3 == 1 {
			args = append(args, "-d", "some of a request")
		}
		if i%3 == 2 { // two calls on one connection
			args = append(args, "https://"+s.Addr().String()+"/first")
		}
		out, err := exec.CommandContext(ctx, program, append(args, "https://"+s.Addr().String()+"/")...).CombinedOutput()
		cancel()
		if err != nil || !strings.HasSuffix(string(out), body) {
			t.Fatalf("curl: %v: %s", err, out)
		}
	}
	complete := 0
	all := b.recorded(calls + calls/3)
	for _, ex := range all {
		if ex.Outcome == captures.Complete && ex.Error == "" && string(b.body(ex.ID, captures.Down)) == body {
			complete++
		}
	}
	if complete != len(all) {
		t.Errorf("%d of %d calls are complete", complete, len(all))
	}
}
