package mitm

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/coder/websocket"
)

// otherChecks are about what is not HTTP, or does not remain it.
func otherChecks() []check {
	var checks []check
	cases := rawCases()
	for _, name := range slices.Sorted(maps.Keys(cases)) {
		for _, secure := range []bool{false, true} {
			c := cases[name]
			if !secure && c.offer != nil {
				continue
			}
			client := map[bool]string{true: "TLS", false: "TCP"}[secure]
			checks = append(checks, check{client: client, name: name, want: "<nil>", direct: true, run: func(t *testing.T, l *lane) string {
				o := newRawOrigin(t, secure, c.serve, c.serves...)
				var b *testProxy
				if l.bench != nil {
					b = o.proxy(t, nil)
				}
				return c.talk(o.dial(t, b, c.offer...))
			}})
		}
	}
	for name, mode := range map[string]websocket.CompressionMode{
		"messages": websocket.CompressionDisabled, "compressed messages": websocket.CompressionContextTakeover,
	} {
		checks = append(checks, check{client: "ws", name: name, want: "100001 bytes", direct: true, run: func(t *testing.T, l *lane) string {
			return talkWebSocket(t, l, mode)
		}})
	}
	return checks
}

// talkWebSocket sends messages of several sizes, and returns what is said of the answers.
func talkWebSocket(t *testing.T, l *lane, mode websocket.CompressionMode) string {
	origin := newTLSOrigin(t, false, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c, err := websocket.Accept(w, r, &websocket.AcceptOptions{CompressionMode: mode, CompressionThreshold: 1})
		if err != nil {
			return
		}
		c.SetReadLimit(-1)
		for {
			kind, p, err := c.Read(r.Context())
			if err != nil {
				return
			}
			_ = c.Write(r.Context(), kind, append(p, '!'))
		}
	}))
	client := direct(t, origin, false)
	if l.bench != nil {
		client = newTestProxy(t, []*httptest.Server{origin}, nil).client(false)
	}
	ctx, cancel := context.WithTimeout(t.Context(), matrixTimeout)
	defer cancel()
	c, res, err := websocket.Dial(ctx, origin.URL, &websocket.DialOptions{HTTPClient: client, CompressionMode: mode, CompressionThreshold: 1})
	if err != nil {
		return err.Error()
	}
	c.SetReadLimit(-1)
	var out strings.Builder
	fmt.Fprintln(&out, res.Header.Get("Sec-Websocket-Extensions"))
	for _, n := range []int{0, 1, 125, 126, 65536, 100_000} {
		if err := c.Write(ctx, websocket.MessageText, []byte(strings.Repeat("x", n))); err != nil {
			return err.Error()
		}
		kind, p, err := c.Read(ctx)
		fmt.Fprintf(&out, "%v, %d bytes, %v\n", kind, len(p), err)
	}
	fmt.Fprintln(&out, c.Close(websocket.StatusNormalClosure, "bye"))
	return out.String()
}
