package oracle_test

import (
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"unwire/replay/outbound"
	"unwire/replay/probe"
	"unwire/replay/probe/oracle"
)

// TestNotSent probes servers to which nothing can be sent: no handler can have run,
// and the error is not the server's.
func TestNotSent(t *testing.T) {
	untrusted := httptest.NewTLSServer(http.NotFoundHandler())
	defer untrusted.Close()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed := "http://" + ln.Addr().String()
	if err := ln.Close(); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		to, kind, says string
		reason         outbound.Reason
	}{
		{untrusted.URL, "unary", "certificate is not trusted", outbound.CertificateUntrusted},
		{untrusted.URL, "bidi", "certificate is not trusted", outbound.CertificateUntrusted},
		{closed, "unary", "no connection to", outbound.NoConnection},
		{closed, "bidi", "no connection to", outbound.NoConnection},
	} {
		t.Run(c.kind+" "+string(c.reason), func(t *testing.T) {
			to, err := url.Parse(c.to)
			if err != nil {
				t.Fatal(err)
			}
			r, err := oracle.Run(t.Context(), probe.Options{To: to, Method: "/a.v1.S/M", Protocol: map[string]probe.Protocol{"unary": "connect-unary", "bidi": "connect-stream"}[c.kind], AllowExecute: true})
			if err != nil {
				t.Fatal(err)
			}
			if r.Reason != c.reason || r.Executed != 0 || !strings.HasPrefix(r.Stopped, "not sent: ") || !strings.Contains(r.Stopped, c.says) {
				t.Errorf("%s: %s; %d executed", r.Reason, r.Stopped, r.Executed)
			}
		})
	}
}
