package h1

import (
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"unwire/captures"
	"unwire/mitm/rewrite"
)

// A framedRule is an exchange with frames that a rule may change: "edit" becomes "x", and the others pass.
type framedRule struct {
	endingRule
	up rewrite.Kind // how the request is split
}

func (r framedRule) Framing(d captures.Direction) rewrite.Framing {
	if d == captures.Up {
		return rewrite.Framing{Kind: r.up}
	}
	return rewrite.Framing{Kind: r.down}
}

func (framedRule) Passed(captures.Direction, string) {}

// TestCutOffRequest: a client that ends its direction within a request body does not complete the body for the server,
// whatever rules there are.
func TestCutOffRequest(t *testing.T) {
	t.Parallel()
	const frame = "\x00\x00\x00\x00\x01x"
	for kind := range rewrite.Chunks + 1 {
		for _, part := range []string{"6\r\n" + frame + "\r\n", "6\r\n" + frame + "\r\n4\r\n\x00\x00"} {
			server := newRawServer(t, func(_ *http.Request, _ *net.TCPConn) bool { return true })
			b := newTestRelay(t, server.addr, framedRule{up: kind})
			b.write("POST /a HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n" + part)
			_ = b.client.CloseWrite()
			_, _ = io.ReadAll(b.client)
			x := b.end()[0]
			if strings.Contains(server.all(), "0\r\n\r\n") || x.ex.Outcome != captures.Canceled {
				t.Errorf("kind %d: the server received %q, recorded %s %s", kind, server.all(), x.ex.Outcome, x.ex.Error)
			}
		}
	}
}
