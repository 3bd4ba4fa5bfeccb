package pcap

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"
	"github.com/google/gopacket/pcapgo"

	"unwire/captures"
	"unwire/captures/pcap/packet"
)

// serve answers with what was asked, a trailer and a length that is not told,
// so that HTTP/1 uses chunks.
func serve(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	w.Header().Set("Trailer", "X-After")
	w.Header().Set("X-Asked", r.Method+" "+r.URL.Path)
	w.WriteHeader(http.StatusAccepted)
	if r.Method == http.MethodHead {
		return
	}
	for part := range strings.SplitSeq(string(body), "|") {
		_, _ = io.WriteString(w, "<"+part+">")
		_ = http.NewResponseController(w).Flush()
	}
	w.Header().Set("X-After", "done")
}

// A transport is a way in which client and server speak.
type transport struct {
	name            string
	http            string // version
	version, cipher string // of TLS; "" is cleartext
	id              uint16
}

func transports() []transport {
	return []transport{
		{"tls12-h1-aes128", "1.1", "1.2", "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256", tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256},
		{"tls12-h1-aes256", "1.1", "1.2", "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384", tls.TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384},
		{"tls12-h2-chacha", "2", "1.2", "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256", tls.TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256},
		{"tls13-h1", "1.1", "1.3", "", 0},
		{"tls13-h2", "2", "1.3", "", 0},
		{"clear-h1", "1.1", "", "", 0},
		{"clear-h2", "2", "", "", 0},
	}
}

// start starts a server and a tapped client that speak in this way.
func (tr transport) start(t testing.TB, h http.Handler) (*httptest.Server, *http.Client, *tap) {
	t.Helper()
	s := httptest.NewUnstartedServer(h)
	s.Config.Protocols = new(http.Protocols)
	s.Config.Protocols.SetHTTP1(true)
	s.Config.Protocols.SetUnencryptedHTTP2(true)
	s.EnableHTTP2 = true
	p := new(tap)
	client := &http.Transport{DialContext: p.dial, Protocols: new(http.Protocols), DisableCompression: true}
	client.Protocols.SetHTTP1(tr.http == "1.1")
	if tr.version == "" {
		s.Start()
		client.Protocols.SetUnencryptedHTTP2(tr.http == "2")
	} else {
		s.StartTLS()
		client.Protocols.SetHTTP2(tr.http == "2")
		roots := x509.NewCertPool()
		roots.AddCert(s.Certificate())
		c := &tls.Config{RootCAs: roots, ServerName: "example.com", MaxVersion: tls.VersionTLS13}
		if tr.version == "1.2" {
			c.MaxVersion, c.CipherSuites = tls.VersionTLS12, []uint16{tr.id}
		}
		client.TLSClientConfig = p.clientTLS(c)
	}
	t.Cleanup(func() {
		client.CloseIdleConnections()
		s.CloseClientConnections()
		s.Close()
	})
	return s, &http.Client{Transport: client}, p
}

// ask sends n requests one after the other.
func ask(t testing.TB, c *http.Client, url string, n int) {
	t.Helper()
	for i := range n {
		method, body := http.MethodPost, strings.Repeat("x", i*3000)+"|part two"
		if i%3 == 2 {
			method, body = http.MethodHead, ""
		}
		req, err := http.NewRequest(method, fmt.Sprintf("%s/call/%d?a=b", url, i), strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("X-Call", fmt.Sprint(i))
		res, err := c.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadAll(res.Body); err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
	}
}

// expectCalls checks the exchanges of ask.
func expectCalls(t testing.TB, tr transport, got *imported, n int) {
	t.Helper()
	if len(got.exchanges) != n {
		t.Fatalf("%d exchanges, want %d; connections %+v", len(got.exchanges), n, got.conns)
	}
	took := time.Duration(0)
	for i, ex := range got.exchanges {
		up, down := bodyOf(t, got.store, ex.ID, captures.Up), bodyOf(t, got.store, ex.ID, captures.Down)
		wantUp, wantDown := strings.Repeat("x", i*3000)+"|part two", "<"+strings.Repeat("x", i*3000)+"><part two>"
		method := http.MethodPost
		if i%3 == 2 {
			method, wantUp, wantDown = http.MethodHead, "", ""
		}
		if string(up) != wantUp || string(down) != wantDown {
			t.Errorf("exchange %d: bodies of %d and %d bytes, want %d and %d", i, len(up), len(down), len(wantUp), len(wantDown))
		}
		if ex.Outcome != captures.Complete || ex.Error != "" || ex.Status != http.StatusAccepted || ex.HTTP != tr.http || ex.Method != method {
			t.Errorf("exchange %d: %+v", i, ex)
		}
		scheme := "http"
		if tr.version != "" {
			scheme = "https"
		}
		if !strings.HasPrefix(ex.URL, scheme+"://127.0.0.1:") || !strings.HasSuffix(ex.URL, fmt.Sprintf("/call/%d?a=b", i)) {
			t.Errorf("exchange %d: URL %s", i, ex.URL)
		}
		if ex.RequestHeaders.Get("x-call") != fmt.Sprint(i) || ex.ResponseHeaders.Get("x-asked") == "" {
			t.Errorf("exchange %d: headers %v, %v", i, ex.RequestHeaders, ex.ResponseHeaders)
		}
		if method == http.MethodPost && ex.ResponseTrailers.Get("x-after") != "done" {
			t.Errorf("exchange %d: trailers %v", i, ex.ResponseTrailers)
		}
		if ex.TLS.Version != tr.version || tr.cipher != "" && ex.TLS.Cipher != tr.cipher {
			t.Errorf("exchange %d: TLS %+v, want %s %s", i, ex.TLS, tr.version, tr.cipher)
		}
		took += ex.Duration
	}
	if took <= 0 || took > 10*time.Second {
		t.Errorf("the exchanges took %v", took)
	}
	for _, c := range got.conns {
		if len(c.Undecoded)+len(c.Gaps) > 0 {
			t.Errorf("connection %+v", c)
		}
	}
}

// A conversation is recorded once for each transport, and its packets are
// imported in the order and in the forms that networks and tools produce.
func TestEveryTransport(t *testing.T) {
	t.Parallel()
	for _, tr := range transports() {
		t.Run(tr.name, func(t *testing.T) {
			s, c, p := tr.start(t, http.HandlerFunc(serve))
			const calls = 5
			ask(t, c, s.URL, calls)
			list := p.packets(t, linkEthernet)
			keys := p.keys.Bytes()

			expectCalls(t, tr, importFile(t, pcapng(t, linkEthernet, list, keys), nil), calls)
			expectCalls(t, tr, importFile(t, pcapng(t, linkEthernet, list, nil), keys), calls)
			expectCalls(t, tr, importFile(t, pcapng(t, linkEthernet, shuffled(list), keys), nil), calls)
			expectCalls(t, tr, importFile(t, pcapng(t, linkEthernet, repeated(list), keys), nil), calls)
		})
	}
}

// shuffled moves packets by up to 20 places.
func shuffled(list []rawPacket) []rawPacket {
	out := append([]rawPacket(nil), list...)
	r := rand.New(rand.NewPCG(1, 2))
	for i := range out {
		j := i + r.IntN(min(20, len(out)-i))
		out[i], out[j] = out[j], out[i]
	}
	return out
}

// repeated sends every other packet twice.
func repeated(list []rawPacket) (out []rawPacket) {
	for i, p := range list {
		out = append(out, p)
		if i%2 == 0 {
			out = append(out, p)
		}
		if i > 5 && i%3 == 0 {
			out = append(out, list[i-4])
		}
	}
	return out
}

func TestLinkTypes(t *testing.T) {
	t.Parallel()
	tr := transport{"tls13-h2", "2", "1.3", "", 0}
	s, c, p := tr.start(t, http.HandlerFunc(serve))
	ask(t, c, s.URL, 3)
	for _, link := range []linkType{linkNull, linkEthernet, linkRaw, linkRawBSD, linkLoop, linkSLL} {
		expectCalls(t, tr, importFile(t, pcapng(t, link, p.packets(t, link), p.keys.Bytes()), nil), 3)
	}
	// gopacket's writer has no number above 255: this one is put in.
	file := pcapng(t, linkRaw, p.packets(t, linkSLL2), p.keys.Bytes())
	at := bytes.Index(file, []byte{linkRawByte, 0, 0, 0}) // the interface's link type
	file[at], file[at+1] = byte(linkSLL2&0xff), byte(linkSLL2>>8)
	expectCalls(t, tr, importFile(t, file, nil), 3)
}

const linkRawByte = 101

// TestClassicFiles reads the four forms of pcap files.
func TestClassicFiles(t *testing.T) {
	list := conversation(t, line{captures.Up, "GET /a HTTP/1.1\r\nHost: h\r\n\r\n"}, line{captures.Down, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nAA"})
	var micros, nanos bytes.Buffer
	for _, w := range []*pcapgo.Writer{pcapgo.NewWriter(&micros), pcapgo.NewWriterNanos(&nanos)} {
		if err := w.WriteFileHeader(65535, layers.LinkTypeEthernet); err != nil {
			t.Fatal(err)
		}
		for _, p := range list {
			if err := w.WritePacket(gopacket.CaptureInfo{Timestamp: p.t, CaptureLength: len(p.data), Length: len(p.data)}, p.data); err != nil {
				t.Fatal(err)
			}
		}
	}
	for name, f := range map[string]struct {
		file []byte
		unit time.Duration
	}{
		"micros": {micros.Bytes(), time.Microsecond}, "nanos": {nanos.Bytes(), time.Nanosecond},
		"micros, big endian": {bigEndian(micros.Bytes()), time.Microsecond}, "nanos, big endian": {bigEndian(nanos.Bytes()), time.Nanosecond},
	} {
		got := importFile(t, f.file, nil)
		if len(got.exchanges) != 1 || got.exchanges[0].Source != "import pcap" ||
			!got.exchanges[0].Started.Equal(list[3].t.Truncate(f.unit)) || string(bodyOf(t, got.store, 1, captures.Down)) != "AA" {
			t.Errorf("%s: %+v", name, got.exchanges)
		}
	}
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
		im := &importer{options: Options{Store: store, Keys: new(KeyLog)}, conns: map[pair]*conn{}, budget: &budget{available: maxBuffered}}
		packets, err := packet.NewReader(bytes.NewReader(file), im.options.Keys.addBlock)
		if err != nil {
			return
		}
		_ = im.read(context.Background(), packets)
		im.finishAll()
		if im.budget.available != maxBuffered {
			t.Errorf("%d bytes are still held", maxBuffered-im.budget.available)
		}
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
	t.Parallel()
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

// TestFragments reads connections over IPv4 and IPv6 whose packets are in
// fragments, out of order, some twice; then one fragment is missing.
func TestFragments(t *testing.T) {
	t.Parallel()
	body := bytes.Repeat([]byte("0123456789abcdef"), 600)
	for _, addrs := range [][2]string{{"10.0.0.1:40000", "10.0.0.2:80"}, {"[fd00::1]:40000", "[fd00::2]:80"}} {
		w := newPacketWriter(t, linkEthernet, netip.MustParseAddrPort(addrs[0]), netip.MustParseAddrPort(addrs[1]))
		at := time.Unix(1_700_000_000, 0)
		w.open(at)
		w.send(captures.Up, at, []byte("GET /a HTTP/1.1\r\nHost: h\r\n\r\n"))
		w.send(captures.Down, at, append([]byte("HTTP/1.1 200 OK\r\nContent-Length: 9600\r\n\r\n"), body...))
		w.close(captures.Up, at)
		w.close(captures.Down, at)
		var list []rawPacket
		for i, p := range w.out {
			list = append(list, cutIP(t, p, uint32(i), 504)...)
		}
		r := rand.New(rand.NewPCG(1, 2))
		shuffled := append(slices.Clone(list), list[7:12]...)
		r.Shuffle(len(shuffled)-1, func(i, j int) { shuffled[i+1], shuffled[j+1] = shuffled[j+1], shuffled[i+1] })
		for name, order := range map[string][]rawPacket{"in order": list, "shuffled": shuffled} {
			got := importFile(t, pcapng(t, linkEthernet, order, nil), nil)
			if len(got.exchanges) != 1 || got.exchanges[0].Outcome != captures.Complete || !bytes.Equal(bodyOf(t, got.store, 1, captures.Down), body) {
				t.Errorf("%s: %+v %+v", name, got.conns, got.sum)
			}
			if name == "in order" && got.sum.Fragments != 0 {
				t.Errorf("%d fragments are left", got.sum.Fragments)
			}
		}
		lost := slices.IndexFunc(list, func(p rawPacket) bool { return p.dir == captures.Down && len(p.data) > 500 })
		got := importFile(t, pcapng(t, linkEthernet, slices.Delete(slices.Clone(list), lost+4, lost+5), nil), nil)
		if got.sum.Fragments != 2 || len(got.conns) != 1 || len(got.conns[0].Gaps) != 1 || got.conns[0].Gaps[0].Bytes != mss {
			t.Errorf("one fragment lost: %+v %+v", got.sum, got.conns)
		}
	}
}

// TestQUIC counts datagrams of HTTP/3.
func TestQUIC(t *testing.T) {
	udp := func(port uint16, payload ...byte) rawPacket {
		p := binary.BigEndian.AppendUint16(nil, 40000)
		p = binary.BigEndian.AppendUint16(p, port)
		p = append(binary.BigEndian.AppendUint16(p, uint16(8+len(payload))), 0, 0)
		p = append(p, payload...)
		ip := append([]byte{0x45, 0, 0, byte(20 + len(p)), 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2}, p...)
		return rawPacket{time.Unix(1, 0), append(linkHead(linkEthernet, 0x0800), ip...), captures.Up, len(p)}
	}
	got := importFile(t, pcapng(t, linkEthernet, []rawPacket{
		udp(443, 0xc0, 0, 0, 0, 1, 8), udp(443, 0x41, 2, 3, 4, 5), udp(8443, 0xc3, 0, 0, 0, 1, 8), udp(8443, 0x41, 2, 3, 4, 5), udp(53, 0xc0, 1, 2, 3, 4, 5), udp(443, 1),
	}, nil), nil)
	if got.sum.QUIC != 3 || got.sum.NotTCP != 3 {
		t.Errorf("%+v", got.sum)
	}
}
