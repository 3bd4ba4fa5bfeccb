package pcap

import (
	"bytes"
	"context"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/netip"
	"path/filepath"
	"testing"
	"time"

	"unwire/captures"
	"unwire/captures/pcap/packet"
)

// fuzzStore is a capture that takes what a fuzz target imports.
func fuzzStore(f *testing.F) *captures.Store {
	store, err := captures.Create(filepath.Join(f.TempDir(), "fuzz.uwc"), captures.Options{KeepSecrets: true})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { _ = store.Close() })
	return store
}

// FuzzFile imports any bytes as a file. Whatever they are, nothing stays held.
func FuzzFile(f *testing.F) {
	list := conversation(f, line{captures.Up, "GET /a HTTP/1.1\r\nHost: h\r\n\r\n"}, line{captures.Down, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nAA"})
	f.Add(pcapng(f, linkEthernet, list, []byte("CLIENT_RANDOM 00 11\n")))
	for _, tr := range transports()[4:] {
		s, c, p := tr.start(f, http.HandlerFunc(serve))
		ask(f, c, s.URL, 1)
		f.Add(pcapng(f, linkSLL, p.packets(f, linkSLL), p.keys.Bytes()))
	}
	f.Add(append([]byte{0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0}, make([]byte, 60)...))
	store := fuzzStore(f)
	f.Fuzz(func(t *testing.T, file []byte) {
		im := &importer{options: Options{Store: store, Keys: new(KeyLog)}, conns: map[pair]*conn{}, budget: &budget{left: maxBuffered}}
		packets, err := packet.NewReader(bytes.NewReader(file), im.options.Keys.addBlock)
		if err != nil {
			return
		}
		_ = im.read(context.Background(), packets)
		im.finishAll()
		if im.budget.left != maxBuffered {
			t.Errorf("%d bytes are still held", maxBuffered-im.budget.left)
		}
	})
}

// fuzzConn is a connection whose session is fed by hand.
func fuzzConn(store *captures.Store, keys *KeyLog) *conn {
	c := &conn{
		store: store, keys: keys, budget: &budget{left: maxBuffered}, onError: func(error) {},
		addrs: [2]netip.AddrPort{netip.MustParseAddrPort("10.0.0.1:1"), netip.MustParseAddrPort("10.0.0.2:2")},
	}
	c.session = newSession(c, false, 0)
	return c
}

// feedBoth feeds both directions in steps, and ends them.
func feedBoth(t *testing.T, c *conn, toServer, toClient []byte, step uint8) {
	at := time.Unix(1_700_000_000, 0)
	n := int(step) + 1
	for len(toServer)+len(toClient) > 0 {
		k := min(n, len(toServer))
		c.session.feed(captures.Up, at, toServer[:k])
		toServer = toServer[k:]
		k = min(n, len(toClient))
		c.session.feed(captures.Down, at, toClient[:k])
		toClient = toClient[k:]
		at = at.Add(time.Microsecond)
	}
	c.session.end(captures.Up, ending{t: at})
	c.session.end(captures.Down, ending{t: at})
	if c.budget.left != maxBuffered {
		t.Errorf("%d bytes are still held", maxBuffered-c.budget.left)
	}
}

// bytesOf returns what both sides of a tapped connection sent.
func bytesOf(p *tap) (both [2][]byte) {
	for _, e := range p.conns[0].events {
		both[e.dir] = append(both[e.dir], e.data...)
	}
	return both
}

// FuzzTLS changes the bytes of real TLS connections, whose keys are known.
func FuzzTLS(f *testing.F) {
	keys := new(KeyLog)
	for _, tr := range transports()[:5] {
		s, c, p := tr.start(f, http.HandlerFunc(serve))
		ask(f, c, s.URL, 2)
		both := bytesOf(p)
		f.Add(both[0], both[1], uint8(200))
		if err := keys.Read(&p.keys); err != nil {
			f.Fatal(err)
		}
	}
	store := fuzzStore(f)
	f.Fuzz(func(t *testing.T, toServer, toClient []byte, step uint8) {
		feedBoth(t, fuzzConn(store, keys), toServer, toClient, step)
	})
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

// TestHostileLengths imports files that claim much and hold little.
func TestHostileLengths(t *testing.T) {
	section, _ := hex.DecodeString("0a0d0d0a1c0000004d3c2b1a01000000ffffffffffffffff1c000000")
	iface, _ := hex.DecodeString("01000000140000000100000000000000" + "14000000")
	for name, block := range map[string]string{
		"packet of 4 GiB":    "06000000fcffffff",
		"secrets of 4 GiB":   "0a000000fcffffff",
		"unknown of 4 GiB":   "ff000000fcffffff",
		"length 0":           "0600000000000000",
		"odd length":         "0600000021000000",
		"kept over the rest": "0600000024000000" + "00000000" + "0000000000000000" + "ffffffff" + "ffffffff" + "00000000" + "24000000",
		"no such interface":  "0600000020000000" + "09000000" + "0000000000000000" + "00000000" + "00000000" + "20000000",
	} {
		b, err := hex.DecodeString(block)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := tryImport(t, append(append(bytes.Clone(section), iface...), b...), nil); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// TestManyConnections opens more connections than are read at once.
func TestManyConnections(t *testing.T) {
	var list []rawPacket
	at := time.Unix(1_700_000_000, 0)
	for i := range maxConns + 500 {
		w := newPacketWriter(t, linkRaw, netip.AddrPortFrom(netip.MustParseAddr("10.0.0.1"), uint16(1000+i)), netip.MustParseAddrPort("10.0.0.2:80"))
		at = at.Add(time.Millisecond)
		w.open(at)
		w.send(captures.Up, at, fmt.Appendf(nil, "GET /%d HTTP/1.1\r\nHost: h\r\n\r\n", i))
		list = append(list, w.out...)
	}
	got := importFile(t, pcapng(t, linkRaw, list, nil), nil)
	if len(got.exchanges) != maxConns+500 || len(got.conns) != maxConns+500 {
		t.Errorf("%d exchanges, %d connections", len(got.exchanges), len(got.conns))
	}
	if ex := got.exchanges[0]; ex.Outcome != captures.Incomplete || ex.Error == "" {
		t.Errorf("%+v", ex)
	}
}
