package pcap

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"unwire/captures"
)

func TestPipelining(t *testing.T) {
	file := pcapng(t, linkEthernet, conversation(t,
		line{captures.Up, "GET /a HTTP/1.1\r\nHost: h\r\n\r\nPOST /b HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n3;x=y\r\nabc\r\n"},
		line{captures.Up, "2\r\nde\r\n0\r\nX-T: 1\r\n\r\nHEAD /c HTTP/1.1\r\nHost: h\r\n\r\nGET /d HTTP/1.1\r\nHost: h\r\n\r\n"},
		line{captures.Down, "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nAA"},
		line{captures.Down, "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nSet-Cookie: s=a-long-secret-value-1\r\nX-Order: 1\r\nX-Order: 2\r\n\r\nB"},
		line{captures.Down, "BBHTTP/1.1 204 No\r\nContent-Length: 77\r\n\r\nHTTP/1.0 200 OK\n\nto the "},
		line{captures.Down, "end"},
	), nil)
	got := importFile(t, file, nil)
	want := []struct {
		what, up, down string
		status         int
		ms             time.Duration
	}{{"GET http://h/a", "", "AA", 200, 2}, {"POST http://h/b", "abcde", "BBB", 200, 4}, {"HEAD http://h/c", "", "", 204, 3}, {"GET http://h/d", "", "to the end", 200, 4}}
	if len(got.exchanges) != len(want) {
		t.Fatalf("%d exchanges: %+v", len(got.exchanges), got.conns)
	}
	for i, w := range want {
		ex := got.exchanges[i]
		up, down := string(bodyOf(t, got.store, ex.ID, captures.Up)), string(bodyOf(t, got.store, ex.ID, captures.Down))
		if ex.Method+" "+ex.URL != w.what || up != w.up || down != w.down || ex.Status != w.status || ex.Outcome != captures.Complete || ex.Duration != w.ms*time.Millisecond {
			t.Errorf("%d: %q %q %+v, want %+v", i, up, down, ex, w)
		}
	}
	post := got.exchanges[1]
	if post.RequestTrailers.Get("X-T") != "1" || !strings.Contains(post.ResponseHeaders.Get("Set-Cookie"), "redacted") ||
		post.ResponseHeaders[2] != (captures.Header{Name: "X-Order", Value: "1"}) || post.ResponseHeaders[3].Value != "2" {
		t.Errorf("%+v", post)
	}
	if !got.exchanges[0].Started.Equal(time.Unix(1_700_000_000, 124_456_789)) {
		t.Errorf("started %v", got.exchanges[0].Started)
	}
}

func TestHTTP1Faults(t *testing.T) {
	for _, c := range []struct {
		name, up, down, reason string
		outcome                captures.Outcome
	}{
		{"body cut", "GET /a HTTP/1.1\r\nHost: h\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nAA", "", captures.Reset},
		{"request cut", "POST /a HTTP/1.1\r\nHost: h\r\nContent-Length: 9\r\n\r\nAA", "", "", captures.Canceled},
		{"chunk", "GET /a HTTP/1.1\r\nHost: h\r\n\r\n", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n", `HTTP/1: "xyz" is not the length of a chunk`, captures.Incomplete},
		{"length", "GET /a HTTP/1.1\r\nHost: h\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nxyz\r\n", `"6" is not a valid Content-Length`, captures.Incomplete},
		{"status", "GET /a HTTP/1.1\r\nHost: h\r\n\r\n", "HTTP/1.1 abc OK\r\n\r\n", "status line", captures.Incomplete},
		{"upgrade", "GET /a HTTP/1.1\r\nHost: h\r\nUpgrade: x\r\n\r\nraw up", "HTTP/1.1 101 Yes\r\nUpgrade: x\r\n\r\nraw down", "", captures.Complete},
		{"refused tunnel", "CONNECT h:1 HTTP/1.1\r\nHost: h:1\r\n\r\n", "HTTP/1.1 407 No\r\nContent-Length: 1\r\n\r\nx", "", captures.Complete},
	} {
		got := importFile(t, pcapng(t, linkEthernet, conversation(t, line{captures.Up, c.up}, line{captures.Down, c.down}), nil), nil)
		if len(got.exchanges) != 1 || got.exchanges[0].Outcome != c.outcome {
			t.Errorf("%s: %+v %+v", c.name, got.conns, got.exchanges)
		}
		if list := strings.Join(reasons(got.conns), "; "); !strings.Contains(list, c.reason) || c.reason == "" && list != "" {
			t.Errorf("%s: reasons %q, want %q", c.name, list, c.reason)
		}
	}
}

// FuzzHTTP changes the bytes of connections in clear: HTTP/1 and HTTP/2.
func FuzzHTTP(f *testing.F) {
	for _, tr := range transports()[5:] {
		s, c, p := tr.start(f, http.HandlerFunc(serve))
		ask(f, c, s.URL, 3)
		both := bytesOf(p)
		f.Add(both[0], both[1], uint8(100))
	}
	f.Add([]byte("CONNECT h:1 HTTP/1.1\r\n\r\nCONNECT h:1 HTTP/1.1\r\n\r\nGET / HTTP/1.1\r\n\r\n"), []byte("HTTP/1.1 200 OK\r\n\r\nHTTP/1.1 200 OK\r\n\r\nHTTP/1.1 200 OK\r\n\r\n"), uint8(255))
	f.Add([]byte("GET / HTTP/1.1\r\nUpgrade: x\r\n\r\nabc"), []byte("HTTP/1.1 101 Yes\r\n\r\nabc"), uint8(0))
	store := fuzzStore(f)
	f.Fuzz(func(t *testing.T, toServer, toClient []byte, step uint8) {
		feedBoth(t, fuzzConn(store, new(KeyLog)), toServer, toClient, step)
	})
}
