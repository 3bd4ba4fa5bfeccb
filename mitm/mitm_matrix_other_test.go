package mitm

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/gobwas/ws"
	"github.com/gobwas/ws/wsflate"
	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"unwire/mitm/clientcert"
)

// An identity is the client certificate of the matrix.
type identity struct {
	pool  *x509.CertPool
	own   tls.Certificate
	shown *clientcert.Certificates
}

func newIdentity(t *testing.T) identity {
	t.Helper()
	pool, cert, key := clientPair(t)
	own, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		t.Fatal(err)
	}
	return identity{pool, own, loadPair(t, "", cert, key)}
}

// websocket answers each message with the same, and "close" with the end.
func (o *matrixOrigin) websocket(w http.ResponseWriter, r *http.Request) {
	c, err := websocket.Accept(w, r, &websocket.AcceptOptions{CompressionMode: websocket.CompressionContextTakeover, CompressionThreshold: 1})
	if err != nil {
		return // it has answered
	}
	c.SetReadLimit(-1)
	defer c.CloseNow()
	for {
		kind, p, err := c.Read(r.Context())
		switch {
		case err != nil:
			return
		case string(p) == "close":
			_ = c.Close(4001, "as asked")
			return
		}
		if c.Write(r.Context(), kind, p) != nil {
			return
		}
	}
}

// websocketChecks are made over HTTP/1 and, by RFC 8441, over HTTP/2.
func websocketChecks(t *testing.T) []check {
	out := []check{{client: "raw", name: "WebSocket, fragments and a ping", want: "hi", run: func(t *testing.T, l *lane) string {
		return l.sendRaw(t, strings.TrimPrefix(l.base, "https://"), "GET /upgrade HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: a2V5\r\n\r\n"+
			"\x01\x81\x00\x00\x00\x00a"+"\x89\x80\x00\x00\x00\x00"+"\x80\x82\x00\x00\x00\x00hi")
	}}}
	for name, mode := range map[string]websocket.CompressionMode{
		"": websocket.CompressionDisabled, ", compressed": websocket.CompressionContextTakeover, ", compressed one by one": websocket.CompressionNoContextTakeover,
	} {
		out = append(out, check{client: "websocket", name: "HTTP/1" + name, want: "closed 4001", run: func(t *testing.T, l *lane) string { return l.websocket(t, mode) }})
	}
	slices.SortFunc(out, func(a, b check) int { return strings.Compare(a.client+a.name, b.client+b.name) })
	o := newRawOrigin(t, true, serveWebSocketOverHTTP2, protoH2)
	for name, compressed := range map[string]bool{"": false, ", compressed": true} {
		out = append(out, check{client: "websocket", name: "HTTP/2" + name, want: "closed 4001", run: func(t *testing.T, l *lane) string {
			return l.websocketOverHTTP2(t, o.addr, compressed)
		}})
	}
	return out
}

// websocket sends messages of several kinds and sizes, and returns what comes back.
func (l *lane) websocket(t *testing.T, mode websocket.CompressionMode) string {
	ctx, cancel := context.WithTimeout(t.Context(), matrixTimeout)
	defer cancel()
	c, res, err := websocket.Dial(ctx, l.base+"/websocket", &websocket.DialOptions{HTTPClient: l.client(false), CompressionMode: mode, CompressionThreshold: 1})
	if err != nil {
		return "no WebSocket: " + inWords(err)
	}
	defer c.CloseNow()
	c.SetReadLimit(-1)
	var got strings.Builder
	fmt.Fprintf(&got, "%s %q\n", res.Proto, res.Header["Sec-Websocket-Extensions"])
	for i, size := range []int{0, 1, 125, 126, 65_535, 65_536, 1 << 20} {
		sent := bytes.Repeat([]byte(fmt.Sprint(i, " ")), size)[:size]
		kind := websocket.MessageType(1 + i%2)
		if err := c.Write(ctx, kind, sent); err != nil {
			return err.Error()
		}
		gotKind, p, err := c.Read(ctx)
		fmt.Fprintln(&got, len(p), gotKind == kind && bytes.Equal(p, sent), err)
	}
	_ = c.Write(ctx, websocket.MessageText, []byte("close"))
	_, _, err = c.Read(ctx)
	fmt.Fprintf(&got, "closed %d: %v", websocket.CloseStatus(err), err)
	return got.String()
}

// pingAndClose are frames of a client: a text in two fragments with a ping between them,
// a binary message, and the end.
func pingAndClose(compressed bool) []ws.Frame {
	binary := ws.NewBinaryFrame(bytes.Repeat([]byte("binary "), 1000))
	if compressed {
		binary, _ = wsflate.CompressFrame(binary)
	}
	return []ws.Frame{
		ws.NewFrame(ws.OpText, false, []byte("in two ")), ws.NewPingFrame([]byte("ping")), ws.NewFrame(ws.OpContinuation, true, []byte("pieces")),
		binary, ws.NewCloseFrame(ws.NewCloseFrameBody(4001, "as asked")),
	}
}

// websocketOverHTTP2 opens a WebSocket by an extended CONNECT.
func (l *lane) websocketOverHTTP2(t *testing.T, addr string, compressed bool) string {
	conn, err := l.dialAs(t, "https", addr, protoH2)
	if err != nil {
		return inWords(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(matrixTimeout))
	_, _ = io.WriteString(conn, http2.ClientPreface)
	fr := http2.NewFramer(conn, conn)
	fr.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	_ = fr.WriteSettings()
	var block bytes.Buffer
	enc := hpack.NewEncoder(&block)
	fields := []string{":method CONNECT", ":protocol websocket", ":scheme https", ":path /talk", ":authority x", "sec-websocket-version 13"}
	if compressed {
		fields = append(fields, "sec-websocket-extensions permessage-deflate; client_no_context_takeover; server_no_context_takeover")
	}
	for _, f := range fields {
		name, value, _ := strings.Cut(f, " ")
		_ = enc.WriteField(hpack.HeaderField{Name: name, Value: value})
	}
	_ = fr.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: block.Bytes(), EndHeaders: true})
	var got strings.Builder
	var in bytes.Buffer
	for {
		f, err := fr.ReadFrame()
		if err != nil {
			return got.String() + inWords(err)
		}
		switch f := f.(type) {
		case *http2.MetaHeadersFrame:
			for _, h := range f.Fields {
				fmt.Fprintln(&got, h.Name, h.Value)
			}
			for _, frame := range pingAndClose(compressed) {
				_ = fr.WriteData(1, frame.Header.OpCode == ws.OpClose, ws.MustCompileFrame(ws.MaskFrame(frame)))
			}
		case *http2.SettingsFrame:
			if !f.IsAck() {
				v, _ := f.Value(http2.SettingEnableConnectProtocol)
				fmt.Fprintln(&got, "extended CONNECT", v)
				_ = fr.WriteSettingsAck()
			}
		case *http2.DataFrame:
			in.Write(f.Data())
			if f.StreamEnded() {
				return got.String() + framesInWords(&in)
			}
		}
	}
}

func framesInWords(r io.Reader) string {
	var out strings.Builder
	for {
		f, err := ws.ReadFrame(r)
		if err != nil {
			return out.String()
		}
		if set, _ := wsflate.IsCompressed(f.Header); set {
			f, err = wsflate.DecompressFrame(f)
			fmt.Fprint(&out, "compressed: ", err, " ")
		}
		if f.Header.OpCode == ws.OpClose {
			code, reason := ws.ParseCloseFrameData(f.Payload)
			fmt.Fprintf(&out, "closed %d %s", code, reason)
			continue
		}
		fmt.Fprintf(&out, "%d %v %.20q %d\n", f.Header.OpCode, f.Header.Fin, f.Payload, len(f.Payload))
	}
}

// serveWebSocketOverHTTP2 accepts a WebSocket by hand, and answers each frame with the
// same, without its mask.
func serveWebSocketOverHTTP2(conn net.Conn) {
	if err := conn.(*tls.Conn).Handshake(); err != nil {
		return
	}
	if _, err := io.CopyN(io.Discard, conn, int64(len(http2.ClientPreface))); err != nil {
		return
	}
	fr := http2.NewFramer(conn, conn)
	fr.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	_ = fr.WriteSettings(http2.Setting{ID: http2.SettingEnableConnectProtocol, Val: 1})
	var in bytes.Buffer
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
		case *http2.MetaHeadersFrame:
			var block bytes.Buffer
			enc := hpack.NewEncoder(&block)
			_ = enc.WriteField(hpack.HeaderField{Name: ":status", Value: "200"})
			for _, h := range f.Fields {
				if h.Name == "sec-websocket-extensions" {
					_ = enc.WriteField(h)
				}
			}
			_ = fr.WriteHeaders(http2.HeadersFrameParam{StreamID: f.StreamID, BlockFragment: block.Bytes(), EndHeaders: true})
		case *http2.DataFrame:
			in.Write(f.Data())
			for {
				rest := bytes.NewReader(in.Bytes())
				frame, err := ws.ReadFrame(rest)
				if err != nil {
					break // the rest is to come
				}
				in.Next(in.Len() - rest.Len())
				_ = fr.WriteData(f.StreamID, frame.Header.OpCode == ws.OpClose, ws.MustCompileFrame(ws.UnmaskFrame(frame)))
			}
		}
	}
}

// dialAs is dial for a server of the check's own: where the proxy is taken for the server
// it gets a listener in front of this one.
func (l *lane) dialAs(t *testing.T, scheme, addr string, alpn ...string) (net.Conn, error) {
	t.Helper()
	if !l.reverse() {
		return l.dial(t, addr, "127.0.0.1", alpn...)
	}
	conn, err := net.Dial("tcp", l.reverseOf(t, scheme, addr))
	if err != nil || l.clear() {
		return conn, err
	}
	return l.handshake(t, conn, "127.0.0.1", alpn...)
}

// otherChecks are conversations that are not HTTP.
func otherChecks(t *testing.T) []check {
	var out []check
	cases := rawCases()
	for _, client := range []string{"tcp", "tls"} {
		for _, name := range slices.Sorted(maps.Keys(cases)) {
			c := cases[name]
			if client == "tcp" && c.offer != nil {
				continue
			}
			o := newRawOrigin(t, client == "tls", c.serve, c.serves...)
			out = append(out, check{client: client, name: name, want: "<nil>", direct: true, run: func(t *testing.T, l *lane) string {
				conn, err := l.connect(t, o.addr)
				if err != nil {
					return inWords(err)
				}
				defer conn.Close()
				_ = conn.SetDeadline(time.Now().Add(matrixTimeout))
				if client == "tls" {
					if conn, err = l.handshake(t, conn, "127.0.0.1", c.offer...); err != nil {
						return inWords(err)
					}
					return fmt.Sprintf("%q %s", conn.(*tls.Conn).ConnectionState().NegotiatedProtocol, c.talk(conn))
				}
				return c.talk(conn)
			}})
		}
	}
	return out
}

// certificateChecks are for servers that serve nobody without a client certificate.
func certificateChecks(t *testing.T, who identity) []check {
	origin := askingOrigin(t, tls.RequireAndVerifyClientCert, 0, who.pool)
	addr := origin.Listener.Addr().String()
	config := &tls.Config{Certificates: origin.TLS.Certificates, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: who.pool}
	other := newRawOrigin(t, false, func(conn net.Conn) {
		secure := tls.Server(conn, config)
		if err := secure.Handshake(); err == nil {
			_, _ = io.WriteString(secure, "220 "+secure.ConnectionState().PeerCertificates[0].Subject.CommonName+"\n")
			echo(secure)
		}
	})
	words := func(words string) func(*testing.T, *lane) string {
		return func(t *testing.T, l *lane) string {
			conn, err := l.dialAs(t, "https", addr, protoH1)
			if err != nil {
				return inWords(err)
			}
			return orderly(talk(conn, addr, words))
		}
	}
	const get = "GET / HTTP/1.1\r\nHost: x\r\nConnection: "
	return []check{
		{client: "cert", name: "HTTP/1", want: "client", run: words(get + "close\r\n\r\n")},
		{client: "cert", name: "upgrade", want: "client", run: words(get + "Upgrade\r\nUpgrade: websocket\r\n\r\n")},
		{client: "cert", name: "HTTP/2", want: "client", run: func(t *testing.T, l *lane) string {
			conn, err := l.dialAs(t, "https", addr, protoH2)
			if err != nil {
				return inWords(err)
			}
			tr := &http.Transport{Protocols: new(http.Protocols)}
			dial := func(context.Context, string, string) (net.Conn, error) { return conn, nil }
			url := "https://x/"
			if tr.DialTLSContext = dial; l.clear() {
				tr.DialContext, url = dial, "http://x/"
			}
			tr.Protocols.SetHTTP2(true)
			tr.Protocols.SetUnencryptedHTTP2(true)
			t.Cleanup(tr.CloseIdleConnections)
			res, err := (&http.Client{Transport: tr}).Get(url)
			return transcript(res, err)
		}},
		{client: "cert", name: "not HTTP", want: "220 client", direct: true, run: func(t *testing.T, l *lane) string {
			conn, err := l.dial(t, other.addr, "127.0.0.1")
			if err != nil {
				return inWords(err)
			}
			line, err := bufio.NewReader(conn).ReadString('\n')
			return fmt.Sprint(line, err)
		}},
	}
}
