package pcap

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"unwire/captures"
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
