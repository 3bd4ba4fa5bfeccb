package mitm

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"

	"unwire/captures"
)

// TestBytesSentWithConnect are not lost: a client need not wait for the answer.
func TestBytesSentWithConnect(t *testing.T) {
	origin := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, "ok "+r.URL.Path) }))
	defer origin.Close()
	b := newTestProxy(t, nil, nil)
	conn, err := net.Dial("tcp", b.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	addr := origin.Listener.Addr().String()
	_, _ = io.WriteString(conn, "CONNECT "+addr+" HTTP/1.1\r\nHost: "+addr+"\r\n\r\nGET /early HTTP/1.1\r\nHost: "+addr+"\r\n\r\n")
	expectLine(t, conn, "HTTP/1.1 200 Connection established\r\n\r\nHTTP/1.1 200 OK\r\n")
	if ex := b.one(); ex.URL != "http://"+addr+"/early" || ex.Outcome != captures.Complete {
		t.Errorf("recorded %+v", ex)
	}
}
