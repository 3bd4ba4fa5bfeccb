package mitm

import (
	"bytes"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"unwire/captures"
	"unwire/captures/need"
)

// earlyRequests is how many uploads each server answers early.
const earlyRequests = 100

// TestEarlyAnswersReachCurl: a server that refuses an upload ends its answer, and then
// resets the stream with NO_ERROR. curl reports error 92 instead of the answer if it
// reads both at once.
func TestEarlyAnswersReachCurl(t *testing.T) {
	t.Parallel()
	curl := need.Curl(t, "HTTP2")
	upload := filepath.Join(t.TempDir(), "upload")
	if err := os.WriteFile(upload, make([]byte, 4<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	refusing := newTLSOrigin(t, true, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "refused", http.StatusForbidden)
	}))
	for name, url := range map[string]string{
		"net/http":          refusing.URL,
		"a frame a record":  newFrameServer(t, refusing, false),
		"all in one record": newFrameServer(t, refusing, true),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newTestProxy(t, []*httptest.Server{refusing}, nil)
			argv := []string{
				"-q", "-sS", "--http2", "--noproxy", "", "--proxy", b.url().String(), "--cacert", b.ca.CertFile,
				"--max-time", "30", "-w", "%{http_code}", "-T", upload, url + "/upload",
			}
			var failed atomic.Int32
			var all sync.WaitGroup
			for range 2 {
				all.Go(func() {
					for range earlyRequests / 2 {
						if out, err := exec.CommandContext(t.Context(), curl, argv...).CombinedOutput(); err != nil || string(out) != "refused\n403" {
							failed.Add(1)
							t.Logf("%v: %q", err, out)
						}
					}
				})
			}
			all.Wait()
			if n := failed.Load(); n > 0 {
				t.Errorf("%d of %d answers were lost", n, earlyRequests)
			}
			for _, ex := range b.recorded(earlyRequests) {
				if ex.Outcome != captures.Complete || ex.Status != http.StatusForbidden || string(b.body(ex.ID, captures.Down)) != "refused\n" {
					t.Errorf("recorded %q, %d, %q", ex.Outcome, ex.Status, ex.Error)
				}
			}
		})
	}
}

// newFrameServer starts a server of bare HTTP/2 frames with another one's certificate.
// It answers every request at once, and then resets it: each frame in a record of its
// own, or all in one.
func newFrameServer(t *testing.T, identity *httptest.Server, together bool) (url string) {
	t.Helper()
	ln, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: identity.TLS.Certificates, NextProtos: []string{protoH2}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ln.Close() })
	go func() {
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			go refuseByFrames(conn, together)
		}
	}()
	return "https://" + ln.Addr().String()
}

func refuseByFrames(conn net.Conn, together bool) {
	defer conn.Close()
	if _, err := io.CopyN(io.Discard, conn, int64(len(http2.ClientPreface))); err != nil {
		return
	}
	in := http2.NewFramer(conn, conn)
	in.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	_ = in.WriteSettings()
	for {
		f, err := in.ReadFrame()
		if err != nil {
			return
		}
		switch f := f.(type) {
		case *http2.SettingsFrame:
			if !f.IsAck() {
				_ = in.WriteSettingsAck()
			}
		case *http2.MetaHeadersFrame:
			var block, record bytes.Buffer
			fields := hpack.NewEncoder(&block)
			_ = fields.WriteField(hpack.HeaderField{Name: ":status", Value: "403"})
			_ = fields.WriteField(hpack.HeaderField{Name: "content-length", Value: "8"})
			out := in
			if together {
				out = http2.NewFramer(&record, nil)
			}
			_ = out.WriteHeaders(http2.HeadersFrameParam{StreamID: f.StreamID, BlockFragment: block.Bytes(), EndHeaders: true})
			_ = out.WriteData(f.StreamID, true, []byte("refused\n"))
			_ = out.WriteRSTStream(f.StreamID, http2.ErrCodeNo)
			if together {
				_, _ = record.WriteTo(conn) // the next read returns the error
			}
		}
	}
}
