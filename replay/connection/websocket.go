package connection

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net/http"
	"strings"

	"github.com/coder/websocket"

	"unwire/captures"
	"unwire/replay/outbound"
)

// A Handshake is the server's HTTP response to the request that opens a WebSocket.
type Handshake struct {
	// Response is the HTTP response of the handshake. Its body must not be read.
	Response *http.Response

	// Body is the beginning of the response body, if the server refused the WebSocket.
	Body []byte
}

// ErrNotAccepted reports that the server responded to the handshake, but did not open a WebSocket.
var ErrNotAccepted = errors.New("the server did not open the WebSocket")

// maxRefusal limits Handshake.Body in bytes.
const maxRefusal = 1 << 20

// ownHeaders are headers of the handshake, in lower case, that the WebSocket library sets itself.
var ownHeaders = [...]string{"connection", "upgrade", "host", "sec-websocket-key", "sec-websocket-version", "sec-websocket-extensions", "sec-websocket-protocol"}

// A webSocket is a Conn for a WebSocket connection.
type webSocket struct {
	// conn is the library's connection.
	conn *websocket.Conn

	// over means that the close frame was received.
	over bool
}

// DialWebSocket opens a WebSocket over HTTP/1.1.
//
// Errors: ErrNotAccepted, with the handshake; those of connecting, without one.
func DialWebSocket(ctx context.Context, t Target) (Conn, *Handshake, error) {
	transport := outbound.New(t.URL.Scheme, "1.1", t.Local, true, t.Policy)
	o := &websocket.DialOptions{
		HTTPClient: &http.Client{
			Transport: transport,
			// A server that is another one than asked for gets nothing.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
		HTTPHeader: http.Header{"User-Agent": nil},
	}
	for _, h := range t.Headers {
		name := http.CanonicalHeaderKey(h.Name)
		switch {
		case strings.EqualFold(name, "Sec-WebSocket-Protocol"):
			for p := range strings.SplitSeq(h.Value, ",") {
				o.Subprotocols = append(o.Subprotocols, strings.TrimSpace(p))
			}
		case !isOwnHeader(name):
			o.HTTPHeader[name] = append(o.HTTPHeader[name], h.Value)
		}
	}
	if t.Compress {
		o.CompressionMode = websocket.CompressionContextTakeover
	}
	conn, resp, err := websocket.Dial(ctx, t.URL.String(), o)
	if err == nil {
		conn.SetReadLimit(t.MaxBytes)
		return &webSocket{conn: conn}, &Handshake{Response: resp}, nil
	}
	transport.CloseIdleConnections()
	if resp == nil {
		return nil, nil, err
	}
	shake := &Handshake{Response: resp}
	if resp.Body != nil {
		// The library has read the beginning; what it has not is not worth an error.
		shake.Body, _ = io.ReadAll(io.LimitReader(resp.Body, maxRefusal))
		_ = resp.Body.Close()
	}
	return nil, shake, errors.Join(ErrNotAccepted, err)
}

// isOwnHeader reports whether a header is in ownHeaders.
func isOwnHeader(name string) bool {
	for _, own := range ownHeaders {
		if strings.EqualFold(own, name) {
			return true
		}
	}
	return false
}

// Send sends a text or binary message, according to its opcode.
func (c *webSocket) Send(ctx context.Context, m Message) error {
	kind := websocket.MessageBinary
	if m.Opcode.Kind() == captures.OpText {
		kind = websocket.MessageText
	}
	return c.conn.Write(ctx, kind, m.Data)
}

// Receive waits for the next message. The close frame is returned as the last message; io.EOF follows.
func (c *webSocket) Receive(ctx context.Context) (Message, error) {
	if c.over {
		return Message{}, io.EOF
	}
	kind, data, err := c.conn.Read(ctx)
	var closed websocket.CloseError
	switch {
	case errors.As(err, &closed):
		c.over = true
		m := Message{Opcode: captures.OpClose}
		if closed.Code != websocket.StatusNoStatusRcvd {
			m.Data = binary.BigEndian.AppendUint16(nil, uint16(closed.Code))
			m.Data = append(m.Data, closed.Reason...)
		}
		return m, nil
	case ctx.Err() != nil:
		return Message{}, context.Cause(ctx)
	case err != nil:
		return Message{}, err
	case kind == websocket.MessageText:
		return Message{captures.OpText, data}, nil
	}
	return Message{captures.OpBinary, data}, nil
}

// Finish sends a close frame with code and reason, and waits briefly for the server's.
func (c *webSocket) Finish(code int, reason string) error {
	return c.conn.Close(websocket.StatusCode(code), reason)
}

// Close closes the connection immediately, without a close frame.
func (c *webSocket) Close() error { return c.conn.CloseNow() }
