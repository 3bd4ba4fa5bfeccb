package pcap

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
	"golang.org/x/net/http2"

	"unwire/captures"
)

// TestWebSocket records a WebSocket that was opened over TLS: each message is a chunk with
// the time of its packet, unmasked and inflated.
func TestWebSocket(t *testing.T) {
	t.Parallel()
	for _, mode := range []websocket.CompressionMode{websocket.CompressionDisabled, websocket.CompressionContextTakeover} {
		for _, tr := range []transport{transports()[3], transports()[5]} {
			server, client, p := tr.start(t, echoSocket(mode))
			var want []string
			func() {
				c, res, err := websocket.Dial(t.Context(), strings.Replace(server.URL, "http", "ws", 1)+"/talk?room=1", &websocket.DialOptions{HTTPClient: client, CompressionMode: mode})
				if err != nil {
					t.Fatal(err)
				}
				if compressed := res.Header.Get("Sec-WebSocket-Extensions") != ""; compressed != (mode != websocket.CompressionDisabled) {
					t.Fatalf("%q", res.Header)
				}
				for i := range 3 {
					text := fmt.Sprintf("message %d: %s", i, strings.Repeat("text and text ", 100*i))
					if err := c.Write(t.Context(), websocket.MessageText, []byte(text)); err != nil {
						t.Fatal(err)
					}
					if _, got, err := c.Read(t.Context()); err != nil || string(got) != text {
						t.Fatalf("%q, %v", got, err)
					}
					want = append(want, text)
				}
				if err := c.Close(websocket.StatusNormalClosure, "bye"); err != nil {
					t.Fatal(err)
				}
			}()
			got := importFile(t, pcapng(t, linkEthernet, p.packets(t, linkEthernet), p.keys.Bytes()), nil)
			if len(got.exchanges) != 2 || len(reasons(got.conns)) > 0 {
				t.Fatalf("%d exchanges, %+v", len(got.exchanges), got.conns)
			}
			handshake, socket := got.exchanges[0], got.exchanges[1]
			url := strings.Replace(handshake.URL, "http", "ws", 1)
			if handshake.Status != 101 || handshake.Outcome != captures.Complete || handshake.BytesUp+handshake.BytesDown != 0 ||
				socket.Transport != captures.WebSocket || socket.URL != url || !strings.HasSuffix(url, "/talk?room=1") || socket.Outcome != captures.Complete || socket.Started.Before(handshake.Started) {
				t.Errorf("%+v\n%+v", handshake, socket)
			}
			for _, dir := range []captures.Direction{captures.Up, captures.Down} {
				checkMessages(t, got, socket, dir, want)
			}
		}
	}
}

// echoSocket is a server that sends back what it is sent.
func echoSocket(mode websocket.CompressionMode) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c, err := websocket.Accept(w, r, &websocket.AcceptOptions{CompressionMode: mode})
		if err != nil {
			return
		}
		defer func() { _ = c.CloseNow() }()
		ctx, cancel := context.WithTimeout(r.Context(), time.Minute)
		defer cancel()
		for {
			kind, data, err := c.Read(ctx)
			if err != nil || c.Write(ctx, kind, data) != nil {
				return
			}
		}
	})
}

// checkMessages compares the messages of a direction, of which the last closes the socket.
func checkMessages(t *testing.T, got *imported, socket *captures.Exchange, dir captures.Direction, want []string) {
	t.Helper()
	text := ""
	last := time.Duration(-1)
	for c, err := range got.store.Chunks(t.Context(), socket.ID, 0) {
		if err != nil {
			t.Fatal(err)
		}
		if c.Dir != dir {
			continue
		}
		if c.T < last || c.T > socket.Duration {
			t.Errorf("%s: a message at %v, behind one at %v, in %v", dir, c.T, last, socket.Duration)
		}
		last = c.T
		text += string(c.Data)
	}
	if wanted := strings.Join(want, "") + "\x03\xe8bye"; text != wanted {
		t.Errorf("%s: %.200q, want %.200q", dir, text, wanted)
	}
}

// TestWebSocketOverHTTP2 records a WebSocket in a stream of HTTP/2 (RFC 8441).
func TestWebSocketOverHTTP2(t *testing.T) {
	t.Parallel()
	got := importFile(t, pcapng(t, linkEthernet, extendedConnect(t), nil), nil)
	if len(got.exchanges) != 2 || len(reasons(got.conns)) > 0 {
		t.Fatalf("%d exchanges, %+v", len(got.exchanges), got.conns)
	}
	handshake, socket := got.exchanges[0], got.exchanges[1]
	if handshake.Method != http.MethodConnect || handshake.RequestHeaders.Get(":protocol") != "websocket" || handshake.Outcome != captures.Complete ||
		socket.URL != "wss://h/chat" || socket.HTTP != "2" {
		t.Errorf("%+v\n%+v", handshake, socket)
	}
	if chunks := chunksOf(t, got, socket.ID); !slices.Equal(chunks, []string{`up 1 "hi"`, `down 2 "yo"`}) {
		t.Errorf("%q", chunks)
	}
}

// extendedConnect is a connection whose first stream becomes a WebSocket.
func extendedConnect(t *testing.T) []rawPacket {
	t.Helper()
	c, s := newH2Side(), newH2Side()
	c.out.Write(h2Preface)
	_ = c.f.WriteSettings()
	_ = s.f.WriteSettings(http2.Setting{ID: http2.SettingEnableConnectProtocol, Val: 1})
	_ = c.f.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, EndHeaders: true, BlockFragment: c.section(":method", "CONNECT",
		":protocol", "websocket", ":scheme", "https", ":authority", "h", ":path", "/chat", "sec-websocket-version", "13")})
	_ = s.f.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, EndHeaders: true, BlockFragment: s.section(":status", "200")})
	lines := []line{{captures.Up, c.take()}, {captures.Down, s.take()}}
	mask := [4]byte{1, 2, 3, 4}
	_ = c.f.WriteData(1, true, []byte{0x81, 0x82, mask[0], mask[1], mask[2], mask[3], 'h' ^ mask[0], 'i' ^ mask[1]})
	_ = s.f.WriteData(1, true, []byte{0x81, 0x02, 'y', 'o'})
	return conversation(t, append(lines, line{captures.Up, c.take()}, line{captures.Down, s.take()})...)
}
