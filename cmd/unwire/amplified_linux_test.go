package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"unwire/captures/store"
)

// newSectionServer answers requests over HTTP/2 in clear, whose header sections may be
// large, with the number of their fields called x.
func newSectionServer(t *testing.T) string {
	t.Helper()
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = fmt.Fprint(w, len(r.Header["X"]))
	}))
	s.Config.MaxHeaderBytes = 4 << 20
	s.Config.Protocols = new(http.Protocols)
	s.Config.Protocols.SetUnencryptedHTTP2(true)
	s.Start()
	t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
	})
	return s.URL
}

// An amplifier is a connection of HTTP/2 that refers to large fields in HPACK's table.
type amplifier struct {
	t     *testing.T
	conn  net.Conn
	fr    *http2.Framer
	sent  int // bytes
	block bytes.Buffer
	enc   *hpack.Encoder
}

func (a *amplifier) Write(p []byte) (int, error) {
	a.sent += len(p)
	return a.conn.Write(p)
}

func newAmplifier(t *testing.T, addr string) *amplifier {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(5 * time.Minute))
	a := &amplifier{t: t, conn: conn}
	a.enc = hpack.NewEncoder(&a.block)
	a.fr = http2.NewFramer(a, conn)
	_, _ = io.WriteString(a, http2.ClientPreface)
	_ = a.fr.WriteSettings()
	return a
}

// request sends fields called x, each of which is a byte if its value is in the table.
func (a *amplifier) request(stream uint32, values []string) {
	a.block.Reset()
	for _, f := range []string{":method GET", ":scheme http", ":authority x", ":path /"} {
		name, value, _ := strings.Cut(f, " ")
		_ = a.enc.WriteField(hpack.HeaderField{Name: name, Value: value})
	}
	for _, v := range values {
		_ = a.enc.WriteField(hpack.HeaderField{Name: "x", Value: v})
	}
	if err := a.fr.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: a.block.Bytes(), EndStream: true, EndHeaders: true}); err != nil {
		a.t.Fatal(err)
	}
}

// await waits until as many streams have ended, and returns what the last one answered.
func (a *amplifier) await(streams int) string {
	last := ""
	for streams > 0 {
		f, err := a.fr.ReadFrame()
		if err != nil {
			a.t.Fatal(err)
		}
		switch f := f.(type) {
		case *http2.SettingsFrame:
			if !f.IsAck() {
				_ = a.fr.WriteSettingsAck()
			}
		case *http2.DataFrame:
			last += string(f.Data())
			if f.StreamEnded() {
				if streams--; streams > 0 {
					last = ""
				}
			}
		case *http2.RSTStreamFrame, *http2.GoAwayFrame:
			a.t.Fatalf("the server answers with %v", f)
		}
	}
	return last
}

// TestAmplifiedHeaders has a client refer to large fields in HPACK's table by a byte each:
// 100 KB on the wire are hundreds of MB of header sections. A section is stored once and
// compressed, with at most 1 MiB, and the recorder stays small.
func TestAmplifiedHeaders(t *testing.T) {
	t.Parallel()
	const inFlight, fields, valueSize = 20, 250, 1900
	requests := 40
	if os.Getenv("UNWIRE_LONG") != "" {
		requests = 400
	}
	values := []string{strings.Repeat("a", valueSize), strings.Repeat("b", valueSize)}
	random := rand.New(rand.NewPCG(1, 2))
	noise := func() string {
		p := make([]byte, valueSize)
		for i := range p {
			p[i] = byte('!' + random.IntN(90))
		}
		return string(p)
	}
	for name, c := range map[string]struct {
		sections func(request int) []string
		differ   bool
	}{
		"the same section": {func(int) []string { return repeatValues(fields, func(int) string { return values[0] }) }, false},
		"sections that differ in the order of their fields": {func(int) []string {
			return repeatValues(fields, func(int) string { return values[random.IntN(2)] })
		}, true},
		"sections with a field of their own": {func(n int) []string {
			return repeatValues(fields, func(i int) string {
				if i == 0 {
					return fmt.Sprint(n)
				}
				return values[0]
			})
		}, true},
		"fields that cannot be compressed": {func() func(int) []string {
			own := []string{noise(), noise()}
			return func(int) []string { return repeatValues(fields, func(int) string { return own[random.IntN(2)] }) }
		}(), true},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			file := filepath.Join(dir, "a.uwc")
			cmd := exec.Command(unwireCommand(t), "capture", "--json", "-o", file, "--reverse", newSectionServer(t))
			cmd.Dir, cmd.Env, cmd.Stderr = dir, append(os.Environ(), "UNWIRE_CONFIG="+t.TempDir()), os.Stderr
			a := newAmplifier(t, startDrained(t, cmd))
			for n := 0; n < requests; n += inFlight {
				for i := range inFlight {
					a.request(uint32(2*(n+i)+1), c.sections(n+i))
				}
				if got := a.await(inFlight); got != fmt.Sprint(fields) {
					t.Fatalf("the server got %s fields", got)
				}
			}
			_ = cmd.Process.Signal(syscall.SIGTERM)
			if err := cmd.Wait(); err != nil && cmd.ProcessState.ExitCode() != 130 {
				t.Fatal(err)
			}
			info, err := os.Stat(file)
			if err != nil {
				t.Fatal(err)
			}
			peak := cmd.ProcessState.SysUsage().(*syscall.Rusage).Maxrss << 10
			t.Logf("%d KB on the wire, %d MB of header sections, %d KB on disk, at most %d MB of memory, processor time %v",
				a.sent>>10, requests*fields*valueSize>>20, info.Size()>>10, peak>>20, cmd.ProcessState.UserTime()+cmd.ProcessState.SystemTime())
			most := int64(1 << 20)
			if c.differ {
				most += int64(requests) * 8 << 10 // about a sixtieth of the section
			}
			if info.Size() > most {
				t.Errorf("%d bytes on disk, want at most %d", info.Size(), most)
			}
			if most := max(256<<20, ownPeak(t)<<10); peak > most {
				t.Errorf("%d bytes of memory, want at most %d", peak, most)
			}
			checkSections(t, file, requests, fields)
		})
	}
}

// startDrained starts a recording, returns the address of its listener, and reads the
// events that come later.
func startDrained(t *testing.T, cmd *exec.Cmd) string {
	t.Helper()
	events, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() }) // it has ended unless the test failed
	lines := json.NewDecoder(events)
	var listening struct{ Proxy string }
	if err := lines.Decode(&listening); err != nil {
		t.Fatal(err)
	}
	go func() { _, _ = io.Copy(io.Discard, events) }()
	return strings.TrimPrefix(listening.Proxy, "http://")
}

func repeatValues(n int, value func(int) string) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = value(i)
	}
	return out
}

// checkSections checks that each exchange has its fields.
func checkSections(t *testing.T, file string, exchanges, fields int) {
	t.Helper()
	st, err := store.Open(file, store.ReadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	for ex, err := range st.Exchanges(context.Background()) {
		if err != nil {
			t.Fatal(err)
		}
		got := 0
		for _, h := range ex.RequestHeaders {
			if h.Name == "x" {
				got++
			}
		}
		if got != fields {
			t.Fatalf("exchange %d has %d fields, want %d", ex.ID, got, fields)
		}
		exchanges--
	}
	if exchanges != 0 {
		t.Errorf("%d exchanges are missing", exchanges)
	}
}
