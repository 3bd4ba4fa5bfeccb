package pcap

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/http2"

	"unwire/captures"
)

// serveBytes answers /N/SIZE with SIZE bytes of which each place is known,
// in pieces, and a trailer.
func serveBytes(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	p := strings.Split(r.URL.Path, "/")
	w.Header().Set("Trailer", "X-After")
	w.Header().Set("X-Call", p[1])
	size, err := strconv.Atoi(p[2])
	if err != nil {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	for part := range slices.Chunk(bodyFor(p[1], size), 3000) {
		_, _ = w.Write(part)
		_ = http.NewResponseController(w).Flush()
	}
	w.Header().Set("X-After", p[1])
}

func bodyFor(call string, size int) []byte {
	var b bytes.Buffer
	for b.Len() < size {
		fmt.Fprintf(&b, "<%s:%d>", call, b.Len())
	}
	return b.Bytes()[:size]
}

// recordCalls makes calls to serveBytes, some at once, and returns the packets.
func recordCalls(t *testing.T, tr transport) ([]rawPacket, []byte) {
	s, c, p := tr.start(t, http.HandlerFunc(serveBytes))
	call := func(n int) {
		res, err := c.Post(fmt.Sprintf("%s/%d/%d", s.URL, n, 500+n*2500), "text/x-made-up", bytes.NewReader(bodyFor("up", 3000)))
		if err != nil {
			t.Error(err)
			return
		}
		_, _ = io.Copy(io.Discard, res.Body)
		res.Body.Close()
	}
	call(0)
	var all sync.WaitGroup
	for n := 1; n < 8; n++ {
		all.Go(func() { call(n) })
		if tr.http != "2" {
			all.Wait() // on one connection
		}
	}
	all.Wait()
	for n := 8; n < 12; n++ {
		call(n)
	}
	return p.packets(t, linkEthernet), p.keys.Bytes()
}

// checkCall: what is said to be complete is exact, and what is there otherwise
// is a part of what was sent.
func checkCall(t *testing.T, got *imported, ex *captures.Exchange) (complete bool) {
	t.Helper()
	call := ex.ResponseHeaders.Get("X-Call")
	var n, size int
	_, err := fmt.Sscanf(ex.URL[strings.LastIndex(ex.URL[:strings.LastIndex(ex.URL, "/")], "/"):], "/%d/%d", &n, &size)
	if err != nil && ex.Outcome == captures.Complete {
		t.Errorf("complete, and its URL is %s", ex.URL)
	}
	if err == nil && call != "" && call != strconv.Itoa(n) {
		t.Errorf("%s has the header of %s", ex.URL, call)
	}
	if ex.Outcome == captures.Complete {
		down := bodyOf(t, got.store, ex.ID, captures.Down)
		if !bytes.Equal(down, bodyFor(strconv.Itoa(n), size)) || !bytes.Equal(bodyOf(t, got.store, ex.ID, captures.Up), bodyFor("up", 3000)) ||
			ex.Status != 200 || ex.ResponseTrailers.Get("X-After") != strconv.Itoa(n) || ex.RequestHeaders.Get("Content-Type") != "text/x-made-up" {
			t.Errorf("complete, and is not: %d bytes of %d, %+v", len(down), size, ex)
		}
		return true
	}
	if ex.Outcome != captures.Incomplete || ex.Error == "" {
		t.Errorf("%s ended as %q: %s", ex.URL, ex.Outcome, ex.Error)
	}
	return false
}

// TestLossAnywhere loses a few packets of each conversation, anywhere behind the
// handshake: nothing that is said is wrong, and HTTP/2 goes on behind the loss.
func TestLossAnywhere(t *testing.T) {
	t.Parallel()
	for _, tr := range transports()[2:] {
		t.Run(tr.name, func(t *testing.T) {
			list, keys := recordCalls(t, tr)
			r := rand.New(rand.NewPCG(7, 7))
			behind, runs := 0, 10
			for range runs {
				rest := slices.Clone(list)
				first := time.Time{}
				for range 1 + r.IntN(3) {
					at := 16 + r.IntN(len(rest)-24)
					for ; rest[at].size == 0 && at > 12; at-- {
					}
					if first.IsZero() || rest[at].t.Before(first) {
						first = rest[at].t
					}
					rest = slices.Delete(rest, at, at+1)
				}
				got := importFile(t, pcapng(t, linkEthernet, rest, keys), nil)
				if len(reasons(got.conns)) == 0 {
					t.Errorf("nothing was lost: %+v", got.conns)
				}
				after := false
				for _, ex := range got.exchanges {
					if complete := checkCall(t, got, ex); ex.Started.After(first) && (complete || ex.BytesDown > 0) {
						after = true
					}
				}
				if after {
					behind++
				}
			}
			if tr.http == "2" && behind < runs/2 {
				t.Errorf("of %d losses, %d had something behind them", runs, behind)
			}
		})
	}
}

// TestLossInData loses a part of one DATA frame of HTTP/2 in clear: the other
// stream and the header table are not concerned.
func TestLossInData(t *testing.T) {
	t.Parallel()
	c, s := newH2Side(), newH2Side()
	c.out.Write(h2Preface)
	_ = c.f.WriteSettings()
	for i, path := range []string{"/one", "/two"} {
		b := c.section(":method", "GET", ":scheme", "http", ":authority", "h", ":path", path)
		_ = c.f.WriteHeaders(headersFrame(uint32(1+2*i), b, true))
	}
	_ = s.f.WriteSettings()
	for _, id := range []uint32{1, 3} {
		_ = s.f.WriteHeaders(headersFrame(id, s.section(":status", "200", "x-same", "a value that is told once"), false))
	}
	_ = s.f.WriteData(1, true, bytes.Repeat([]byte("x"), 4*mss))
	_ = s.f.WriteData(3, false, []byte("whole"))
	_ = s.f.WriteHeaders(headersFrame(3, s.section("x-same", "a value that is told once"), true))
	list := conversation(t, line{captures.Up, c.take()}, line{captures.Down, s.take()})
	at := slices.IndexFunc(list, func(p rawPacket) bool { return p.dir == captures.Down && p.size == mss })
	got := importFile(t, pcapng(t, linkEthernet, slices.Delete(slices.Clone(list), at+1, at+2), nil), nil)
	if len(got.exchanges) != 2 {
		t.Fatalf("%+v", got.conns)
	}
	one, two := got.exchanges[0], got.exchanges[1]
	if one.Outcome != captures.Incomplete || !strings.Contains(one.Error, "loss: 1400 bytes") || one.ResponseHeaders.Get("x-same") == "" {
		t.Errorf("%+v", one)
	}
	if two.Outcome != captures.Complete || two.ResponseTrailers.Get("x-same") == "" || string(bodyOf(t, got.store, two.ID, captures.Down)) != "whole" {
		t.Errorf("%+v", two)
	}
}

// TestLossInBody loses a part of a body of HTTP/1 that tells its length: what
// follows it is read.
func TestLossInBody(t *testing.T) {
	t.Parallel()
	body := strings.Repeat("y", 5*mss)
	for name, down := range map[string]string{
		"length": fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(body), body),
		"chunk":  fmt.Sprintf("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n", len(body), body),
	} {
		list := conversation(t,
			line{captures.Up, "GET /a HTTP/1.1\r\nHost: h\r\n\r\nGET /b HTTP/1.1\r\nHost: h\r\n\r\n"},
			line{captures.Down, down}, line{captures.Down, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nOK"})
		at := slices.IndexFunc(list, func(p rawPacket) bool { return p.dir == captures.Down && p.size == mss })
		got := importFile(t, pcapng(t, linkEthernet, slices.Delete(slices.Clone(list), at+2, at+3), nil), nil)
		if len(got.exchanges) != 2 {
			t.Fatalf("%s: %+v", name, got.conns)
		}
		a, b := got.exchanges[0], got.exchanges[1]
		if a.Outcome != captures.Incomplete || a.BytesDown != 4*mss || !strings.Contains(a.Error, "loss: 1400 bytes") {
			t.Errorf("%s: %+v", name, a)
		}
		if b.Outcome != captures.Complete || string(bodyOf(t, got.store, b.ID, captures.Down)) != "OK" {
			t.Errorf("%s: %+v", name, b)
		}
	}
}

func headersFrame(id uint32, block []byte, end bool) http2.HeadersFrameParam {
	return http2.HeadersFrameParam{StreamID: id, BlockFragment: block, EndHeaders: true, EndStream: end}
}

// FuzzLoss changes the bytes of connections, and leaves some out at two places.
func FuzzLoss(f *testing.F) {
	keys := new(KeyLog)
	for _, tr := range transports()[2:] {
		s, c, p := tr.start(f, http.HandlerFunc(serve))
		ask(f, c, s.URL, 4)
		both := bytesOf(p)
		f.Add(both[0], both[1], uint16(6000), uint16(1400), uint16(4000))
		f.Add(both[0], both[1], uint16(len(both[1])/2), uint16(20), uint16(len(both[0])/2))
		if err := keys.Read(&p.keys); err != nil {
			f.Fatal(err)
		}
	}
	store := fuzzStore(f)
	f.Fuzz(func(t *testing.T, toServer, toClient []byte, at, n, atUp uint16) {
		c := fuzzConn(store, keys)
		now := time.Unix(1_700_000_000, 0)
		feed := func(dir captures.Direction, p []byte, at int) {
			at = min(at, len(p))
			c.session.feed(dir, now, p[:at])
			p = p[at:]
			if lost := min(int(n), len(p)); lost > 0 {
				c.session.reportLoss(dir, int64(lost), "loss")
				p = p[lost:]
			}
			for part := range slices.Chunk(p, 900) {
				now = now.Add(time.Microsecond)
				c.session.feed(dir, now, part)
			}
		}
		feed(captures.Up, toServer, int(atUp))
		feed(captures.Down, toClient, int(at))
		c.session.end(captures.Up, ending{t: now})
		c.session.end(captures.Down, ending{t: now})
		if c.budget.available != maxBuffered {
			t.Errorf("%d bytes are still held", maxBuffered-c.budget.available)
		}
	})
}
