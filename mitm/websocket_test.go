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
	"strings"
	"sync"
	"testing"

	"github.com/coder/websocket"
	"github.com/gobwas/ws"
	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"unwire/captures"
)

// A messageLog is a recorder that notes what is recorded of WebSockets.
type messageLog struct {
	captures.Recorder
	mu       sync.Mutex
	begun    []captures.Exchange
	messages []string // direction, opcode and content
	related  []string // kind and target
}

func (l *messageLog) Begin(ex captures.Exchange) (captures.Recording, error) {
	rec, err := l.Recorder.Begin(ex)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.begun = append(l.begun, ex)
	return &loggedMessages{rec, l}, err
}

type loggedMessages struct {
	captures.Recording
	log *messageLog
}

func (r *loggedMessages) Message(dir captures.Direction, op captures.Opcode, p []byte) {
	r.log.mu.Lock()
	r.log.messages = append(r.log.messages, fmt.Sprintf("%v %#x %s", dir, op, p))
	r.log.mu.Unlock()
	r.Recording.Message(dir, op, p)
}

func (r *loggedMessages) Relate(kind captures.RelationKind, target int64) {
	r.log.mu.Lock()
	r.log.related = append(r.log.related, fmt.Sprintf("%s %d", kind, target))
	r.log.mu.Unlock()
	r.Recording.Relate(kind, target)
}

// TestWebSocket: messages are recorded beside the bytes, in an exchange of their own.
func TestWebSocket(t *testing.T) {
	t.Parallel()
	for _, secure := range []bool{false, true} {
		for name, mode := range map[string]websocket.CompressionMode{"plain": websocket.CompressionDisabled, "compressed": websocket.CompressionContextTakeover} {
			t.Run(fmt.Sprintf("TLS %v, %s", secure, name), func(t *testing.T) {
				t.Parallel()
				handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					c, err := websocket.Accept(w, r, &websocket.AcceptOptions{CompressionMode: mode, CompressionThreshold: 1})
					if err != nil {
						t.Error(err)
						return
					}
					for {
						kind, p, err := c.Read(r.Context())
						if err != nil {
							return
						}
						_ = c.Write(r.Context(), kind, append([]byte("re "), p...))
					}
				})
				origin := httptest.NewUnstartedServer(handler)
				if secure {
					origin.StartTLS()
				} else {
					origin.Start()
				}
				t.Cleanup(origin.Close)
				var log messageLog
				b := newTestProxy(t, []*httptest.Server{origin}, func(o *Options) {
					log.Recorder = o.Store
					o.Store = &log
				})
				ctx, cancel := context.WithTimeout(t.Context(), matrixTimeout)
				defer cancel()
				c, _, err := websocket.Dial(ctx, origin.URL+"/talk", &websocket.DialOptions{HTTPClient: b.client(false), CompressionMode: mode, CompressionThreshold: 1})
				if err != nil {
					t.Fatal(err)
				}
				for i, kind := range []websocket.MessageType{websocket.MessageText, websocket.MessageBinary} {
					if err := c.Write(ctx, kind, []byte("hello hello")); err != nil {
						t.Fatal(err)
					}
					if _, p, err := c.Read(ctx); err != nil || string(p) != "re hello hello" {
						t.Fatalf("%q, %v", p, err)
					}
					b.await(2, func(all, _ int) bool { // while it is open
						log.mu.Lock()
						defer log.mu.Unlock()
						return all == 2 && len(log.messages) == 2*i+2
					})
				}
				if err := c.Close(websocket.StatusNormalClosure, "bye"); err != nil {
					t.Error(err)
				}
				all := b.recorded(2)
				bits := map[bool]captures.Opcode{true: captures.OpCompressed | captures.OpFinal, false: captures.OpFinal}[mode != websocket.CompressionDisabled]
				want := fmt.Sprintf("[up %#x hello hello down %#x re hello hello up %#x hello hello down %#x re hello hello", 1|bits, 1|bits, 2|bits, 2|bits)
				if got := fmt.Sprint(log.messages); !strings.HasPrefix(got, want) || !strings.Contains(got, "up 0x88 \x03\xe8bye") {
					t.Errorf("messages %q, want %q", got, want)
				}
				checkWebSocket(t, &log, all, "http"+map[bool]string{true: "s"}[secure], 101)
			})
		}
	}
}

func checkWebSocket(t *testing.T, log *messageLog, all []*captures.Exchange, scheme string, status int) {
	t.Helper()
	h, w := all[0], all[1]
	if !strings.HasPrefix(h.URL, scheme+"://") || h.Status != status || h.Outcome != captures.Complete || h.BytesUp+h.BytesDown != 0 {
		t.Errorf("the handshake: %+v", h)
	}
	if w.URL != strings.Replace(h.URL, "http", "ws", 1) || w.Outcome != captures.Complete || w.Error != "" || w.Server == "" || w.Started.Before(h.Started) || w.TLS != h.TLS {
		t.Errorf("the WebSocket: %+v", w)
	}
	if len(log.begun) != 2 || log.begun[1].Transport != captures.WebSocket || fmt.Sprint(log.related) != fmt.Sprintf("[handshake %d]", h.ID) {
		t.Errorf("begun %+v, related %q", log.begun, log.related)
	}
}

// TestWebSocketOverHTTP2: of RFC 8441.
func TestWebSocketOverHTTP2(t *testing.T) {
	t.Parallel()
	o := newRawOrigin(t, true, func(conn net.Conn) { serveExtendedConnect(t, conn) }, protoH2)
	var log messageLog
	b := newTestProxy(t, nil, func(opts *Options) {
		opts.UpstreamRoots.AddCert(o.cert)
		log.Recorder = opts.Store
		opts.Store = &log
	})
	conn := b.handshake(b.tunnel(o.addr), "127.0.0.1", protoH2)
	_, _ = io.WriteString(conn, http2.ClientPreface)
	fr := http2.NewFramer(conn, conn)
	fr.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	_ = fr.WriteSettings()
	var block bytes.Buffer
	enc := hpack.NewEncoder(&block)
	for _, f := range []string{":method CONNECT", ":protocol websocket", ":scheme https", ":path /talk", ":authority " + o.addr, "sec-websocket-version 13"} {
		name, value, _ := strings.Cut(f, " ")
		_ = enc.WriteField(hpack.HeaderField{Name: name, Value: value})
	}
	_ = fr.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: block.Bytes(), EndHeaders: true})
	message := ws.MaskFrame(ws.NewTextFrame([]byte("hello")))
	var wire bytes.Buffer
	_ = ws.WriteFrame(&wire, message)
	for ended := false; !ended; {
		f, err := fr.ReadFrame()
		if err != nil {
			t.Fatal(err)
		}
		switch f := f.(type) {
		case *http2.MetaHeadersFrame:
			_ = fr.WriteData(1, true, wire.Bytes())
		case *http2.DataFrame:
			ended = f.StreamEnded()
		}
	}
	all := b.recorded(2)
	if got := fmt.Sprint(log.messages); got != "[up 0x81 hello down 0x81 hello]" {
		t.Errorf("messages %q", got)
	}
	if got := all[0].RequestHeaders.Get(":protocol"); got != "websocket" {
		t.Errorf("protocol %q", got)
	}
	checkWebSocket(t, &log, all, "https", 200)
}

// serveExtendedConnect accepts a WebSocket by hand: it answers a message with the same,
// without its mask.
func serveExtendedConnect(t *testing.T, conn net.Conn) {
	if err := conn.(*tls.Conn).Handshake(); err != nil {
		return
	}
	preface := make([]byte, len(http2.ClientPreface))
	if _, err := io.ReadFull(conn, preface); err != nil {
		return
	}
	fr := http2.NewFramer(conn, conn)
	_ = fr.WriteSettings(http2.Setting{ID: http2.SettingEnableConnectProtocol, Val: 1})
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
			_ = fr.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: []byte{0x88}, EndHeaders: true}) // :status 200
		case *http2.DataFrame:
			in, err := ws.ReadFrame(bytes.NewReader(f.Data()))
			if err != nil {
				t.Error(err)
				return
			}
			_ = fr.WriteData(1, true, ws.MustCompileFrame(ws.NewTextFrame(ws.UnmaskFrame(in).Payload)))
		}
	}
}
