package mitm

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// rawChecks write bytes themselves.
func rawChecks(origin *httptest.Server) []check {
	addr := origin.Listener.Addr().String()
	say := func(words string) func(*testing.T, *lane) string {
		return func(t *testing.T, l *lane) string { return l.sendRaw(t, addr, words) }
	}
	const end = "Connection: close\r\n\r\n"
	return []check{
		{client: "raw", name: "pipelining", want: "one\r\n0\r\n\r\nHTTP/1.1 200", run: say(
			"POST /copy HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\none" +
				"POST /copy HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\ntwo" +
				"POST /copy HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n" + end + "three")},
		{client: "raw", name: "chunked upload with a trailer", want: `body "abcde"`, run: say("POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nTrailer: X-T\r\n" + end + "3;ext=1\r\nabc\r\n2\r\nde\r\n0\r\nX-T: v\r\n\r\n")},
		{client: "raw", name: "HTTP/1.0", want: "fixed", run: say("GET /length HTTP/1.0\r\nHost: x\r\n\r\n")},
		{client: "raw", name: "connection: close", want: "Connection: close", run: say("GET /length HTTP/1.1\r\nHost: x\r\n" + end)},
		{client: "raw", name: "expect-continue", want: "HTTP/1.1 100 Continue", run: say("POST /after HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 2\r\n" + end + "up")},
		{client: "raw", name: "no such host field", want: "400 Bad Request", run: say("GET / HTTP/1.1\r\n\r\n")},
		{client: "raw", name: "WebSocket-like upgrade", want: "welcome", run: say("GET /upgrade HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: a2V5\r\n\r\n\x81\x02hi")},
		{client: "raw", name: "HTTP/2 in 600 streams at once", want: "600 together", run: together},
		{client: "raw", name: "PING under load", want: "20 answered", run: func(t *testing.T, l *lane) string { return pings(t, l, addr) }},
		{client: "raw", name: "cookie in two HTTP/2 fields", want: `["a=1; b=2"]`, run: func(t *testing.T, l *lane) string { return crumbs(t, l, addr) }},
		{client: "raw", name: "HTTP/2 RST_STREAM", want: "it ended", run: func(t *testing.T, l *lane) string { return resetStream(t, l, addr) }},
		{client: "raw", name: "HTTP/2 without a window", want: "65535 bytes, then silence", run: func(t *testing.T, l *lane) string { return noWindow(t, l, addr) }},
		{client: "raw", name: "ALPN: h2 where there is none", want: "no application protocol", direct: true, run: func(t *testing.T, l *lane) string { return mismatch(t, l, protoH2) }},
		{client: "raw", name: "ALPN: either", want: protoH1, direct: true, run: func(t *testing.T, l *lane) string { return mismatch(t, l, protoH2, protoH1) }},
		{client: "raw", name: "ALPN: none", want: `negotiated ""`, direct: true, run: func(t *testing.T, l *lane) string { return mismatch(t, l) }},
		{client: "raw", name: "SNI that is not CONNECT's", want: "SNI other.example.com", direct: true, run: otherName},
	}
}

var (
	dateField   = regexp.MustCompile(`(?i)\bdate: [^\r]*`)
	headerLines = regexp.MustCompile(`(?:(?m:^)[A-Za-z0-9-]+: ?[^\n]*\r\n)+`)
)

// orderly puts header lines into the order of their names, which net/http does
// not keep, and leaves those of one name as they are.
func orderly(answer string) string {
	answer = dateField.ReplaceAllString(answer, "Date: now")
	return headerLines.ReplaceAllStringFunc(answer, func(block string) string {
		lines := strings.SplitAfter(strings.TrimSuffix(block, "\r\n"), "\r\n")
		lines[len(lines)-1] += "\r\n"
		name := func(line string) string { n, _, _ := strings.Cut(line, ":"); return strings.ToLower(n) }
		slices.SortStableFunc(lines, func(a, b string) int { return strings.Compare(name(a), name(b)) })
		return strings.Join(lines, "")
	})
}

// sendRaw writes words on a new HTTP/1 connection, and returns the answer.
func (l *lane) sendRaw(t *testing.T, addr, words string) string {
	conn, err := l.dial(t, addr, "127.0.0.1", protoH1)
	if err != nil {
		return inWords(err)
	}
	_ = conn.SetDeadline(time.Now().Add(matrixTimeout))
	if _, err := io.WriteString(conn, words); err != nil {
		return inWords(err)
	}
	if strings.Contains(words, "Upgrade") {
		got := make([]byte, 0, 1<<10)
		for !bytes.HasSuffix(got, []byte("hi")) && len(got) < cap(got) {
			n, err := conn.Read(got[len(got):cap(got)])
			if got = got[:len(got)+n]; err != nil {
				return fmt.Sprintf("%s %s", got, inWords(err))
			}
		}
		if h, ok := conn.(halfCloserOnce); ok {
			_ = h.CloseWrite()
		}
		rest, _ := io.ReadAll(conn)
		return orderly(string(append(got, rest...)))
	}
	answer, err := io.ReadAll(conn)
	return orderly(string(answer)) + inWords(err)
}

type halfCloserOnce interface{ CloseWrite() error }

// together has all streams wait for each other on one connection.
func together(t *testing.T, l *lane) string {
	c := l.newClient(t, true)
	l.send(t, c, "GET", "/length", nil, nil) // opens the connection, else each of them begins with one
	var wg sync.WaitGroup
	var n atomic.Int64
	for range matrixStreams {
		wg.Go(func() {
			res, err := c.Get(l.base + "/together?key=" + l.name)
			if err != nil {
				t.Error(err)
				return
			}
			defer res.Body.Close()
			if got, err := io.ReadAll(res.Body); err == nil && string(got) == "together" {
				n.Add(1)
			}
		})
	}
	wg.Wait()
	return fmt.Sprintf("%d together", n.Load())
}

// A rawH2 is an HTTP/2 connection whose frames are written by hand.
type rawH2 struct {
	t    *testing.T
	fr   *http2.Framer
	conn io.ReadWriteCloser
}

func (l *lane) rawH2(t *testing.T, addr string) *rawH2 {
	t.Helper()
	conn, err := l.dial(t, addr, "127.0.0.1", protoH2)
	if err != nil {
		t.Fatal(err)
	}
	_ = conn.SetDeadline(time.Now().Add(matrixTimeout))
	h := &rawH2{t, http2.NewFramer(conn, conn), conn}
	h.fr.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	if _, err := io.WriteString(conn, http2.ClientPreface); err != nil {
		t.Fatal(err)
	}
	if err := h.fr.WriteSettings(); err != nil {
		t.Fatal(err)
	}
	return h
}

func (h *rawH2) request(id uint32, path string, fields ...string) {
	h.t.Helper()
	var block bytes.Buffer
	enc := hpack.NewEncoder(&block)
	fields = append([]string{":method", "GET", ":scheme", "https", ":authority", "x", ":path", path}, fields...)
	for i := 0; i < len(fields); i += 2 {
		_ = enc.WriteField(hpack.HeaderField{Name: fields[i], Value: fields[i+1]})
	}
	if err := h.fr.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: block.Bytes(), EndStream: true, EndHeaders: true}); err != nil {
		h.t.Fatal(err)
	}
}

// next returns the next frame, answering SETTINGS.
func (h *rawH2) next() http2.Frame {
	h.t.Helper()
	for {
		f, err := h.fr.ReadFrame()
		if err != nil {
			h.t.Fatal(err)
		}
		if s, ok := f.(*http2.SettingsFrame); ok {
			if !s.IsAck() {
				_ = h.fr.WriteSettingsAck()
			}
			continue
		}
		return f
	}
}

// pings asks while a stream that nobody reads fills its window.
func pings(t *testing.T, l *lane, addr string) string {
	h := l.rawH2(t, addr)
	h.request(1, "/flood")
	answered := 0
	for i := range 20 {
		want := [8]byte{byte(i)}
		if err := h.fr.WritePing(false, want); err != nil {
			return err.Error()
		}
		for {
			if p, ok := h.next().(*http2.PingFrame); ok && p.IsAck() && p.Data == want {
				answered++
				break
			}
		}
	}
	return fmt.Sprintf("%d answered", answered)
}

func crumbs(t *testing.T, l *lane, addr string) string {
	h := l.rawH2(t, addr)
	h.request(1, "/repeated", "cookie", "a=1", "cookie", "b=2", "x-repeated", "2", "x-repeated", "1")
	var out strings.Builder
	for {
		switch f := h.next().(type) {
		case *http2.MetaHeadersFrame:
			for _, field := range f.Fields {
				if field.Name == "x-repeated" || field.Name == "set-cookie" {
					fmt.Fprintln(&out, field.Name, field.Value)
				}
			}
		case *http2.DataFrame:
			out.Write(f.Data())
			if f.StreamEnded() {
				return out.String()
			}
		}
	}
}

func resetStream(t *testing.T, l *lane, addr string) string {
	h := l.rawH2(t, addr)
	key := "?key=rst-" + l.name
	h.request(1, "/wait"+key)
	for {
		if d, ok := h.next().(*http2.DataFrame); ok && string(d.Data()) == "begun" {
			break
		}
	}
	_ = h.fr.WriteRSTStream(1, http2.ErrCodeCancel)
	return l.send(t, l.client(true), "GET", "/ended"+key, nil, nil)
}

// noWindow never gives the server more to send than the first window: neither
// the server nor the proxy may send more, whatever has come in there.
func noWindow(t *testing.T, l *lane, addr string) string {
	h := l.rawH2(t, addr)
	h.request(1, "/flood")
	n := 0
	for n < 65535 {
		if d, ok := h.next().(*http2.DataFrame); ok {
			n += len(d.Data())
		}
	}
	_ = h.fr.WritePing(false, [8]byte{1})
	for {
		switch f := h.next().(type) {
		case *http2.DataFrame:
			n += len(f.Data())
		case *http2.PingFrame:
			return fmt.Sprintf("%d bytes, then silence", n)
		}
	}
}

// mismatch offers protocols to a server that speaks HTTP/1.1 alone.
func mismatch(t *testing.T, l *lane, offer ...string) string {
	origin := newTLSOrigin(t, false, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, r.Proto) }))
	lane := newLane(t, l.way, origin, nil)
	conn, err := lane.dial(t, origin.Listener.Addr().String(), "127.0.0.1", offer...)
	if err != nil {
		var alert tls.AlertError
		if errors.As(err, &alert) {
			return alert.Error()
		}
		return inWords(err)
	}
	return fmt.Sprintf("negotiated %q", conn.(*tls.Conn).ConnectionState().NegotiatedProtocol)
}

// otherName asks for another name than the one connected to.
func otherName(t *testing.T, l *lane) string {
	origin := newTLSOrigin(t, true, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = fmt.Fprintf(w, "SNI %s, host %s", r.TLS.ServerName, r.Host)
	}))
	lane := newLane(t, l.way, origin, nil)
	conn, err := lane.dial(t, origin.Listener.Addr().String(), "other.example.com", protoH1)
	if err != nil {
		return inWords(err)
	}
	if err := conn.(*tls.Conn).ConnectionState().PeerCertificates[0].VerifyHostname("other.example.com"); err != nil {
		return err.Error()
	}
	_, _ = io.WriteString(conn, "GET / HTTP/1.1\r\nHost: third.example.com\r\nConnection: close\r\n\r\n")
	res, err := http.ReadResponse(bufio.NewReader(conn), nil)
	return transcript(res, err)
}
