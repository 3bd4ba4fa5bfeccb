package pcap

import (
	"bufio"
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"unwire/captures"
	"unwire/captures/need"
)

// TestSuitesOfOpenSSL reads the TLS 1.3 suites that Go's client cannot be told
// to use, from curl.
func TestSuitesOfOpenSSL(t *testing.T) {
	t.Parallel()
	curl := need.Curl(t, "HTTP2", "OpenSSL")
	for _, cipher := range []string{"TLS_CHACHA20_POLY1305_SHA256", "TLS_AES_256_GCM_SHA384", "TLS_AES_128_GCM_SHA256"} {
		s := httptest.NewUnstartedServer(http.HandlerFunc(serve))
		s.EnableHTTP2 = true
		s.StartTLS()
		p := new(tap)
		addr := p.relay(t, s.Listener.Addr().String())
		log := filepath.Join(t.TempDir(), "keys")
		cmd := exec.Command(curl, "-sSk", "--noproxy", "*", "--tls13-ciphers", cipher, "-d", "one|two", "https://"+addr+"/x", "--next",
			"-sSk", "--noproxy", "*", "--tls13-ciphers", cipher, "-d", "three", "https://"+addr+"/y")
		cmd.Env = append(os.Environ(), "SSLKEYLOGFILE="+log)
		out, err := cmd.CombinedOutput()
		s.Close()
		if err != nil || string(out) != "<one><two><three>" {
			t.Fatalf("curl: %v: %s", err, out)
		}
		keys, err := os.ReadFile(log)
		if err != nil {
			t.Skipf("this curl writes no key log: %v", err)
		}
		got := importFile(t, pcapng(t, linkEthernet, p.packets(t, linkEthernet), nil), keys)
		if len(got.exchanges) != 2 {
			t.Fatalf("%s: %d exchanges, connections %+v", cipher, len(got.exchanges), got.conns)
		}
		ex := got.exchanges[0]
		// The server may prefer another of the client's: it has one only.
		if ex.TLS.Cipher != cipher || ex.HTTP != "2" || string(bodyOf(t, got.store, ex.ID, captures.Down)) != "<one><two>" {
			t.Errorf("%s: %+v", cipher, ex)
		}
	}
}

// TestKeyUpdate has openssl change keys within a connection, in both
// directions and in one.
func TestKeyUpdate(t *testing.T) {
	t.Parallel()
	openssl := need.OutputHas(t, "-keylogfile", "openssl", "openssl", "s_client", "-help")
	s := httptest.NewTLSServer(http.HandlerFunc(serve))
	defer s.Close()
	p := new(tap)
	addr := p.relay(t, s.Listener.Addr().String())
	log := filepath.Join(t.TempDir(), "keys")
	cmd := exec.Command(openssl, "s_client", "-connect", addr, "-tls1_3", "-keylogfile", log)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, w := io.Pipe()
	cmd.Stdout, cmd.Stderr = w, w
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	timer := time.AfterFunc(time.Minute, func() { _ = cmd.Process.Kill() })
	defer timer.Stop()
	done := make(chan error, 1)
	go func() { err := cmd.Wait(); w.Close(); done <- err }()
	lines := bufio.NewReader(out)
	await := func(text string) {
		t.Helper()
		var seen bytes.Buffer
		for {
			b, err := lines.ReadByte()
			if err != nil {
				t.Fatalf("waiting for %q: %v\n%s", text, err, seen.Bytes())
			}
			seen.WriteByte(b)
			if bytes.HasSuffix(seen.Bytes(), []byte(text)) {
				return
			}
		}
	}
	say := func(text string) {
		if _, err := io.WriteString(in, text); err != nil {
			t.Fatal(err)
		}
	}
	request := func(n string) {
		say("POST /" + n + " HTTP/1.1\r\nHost: h\r\nContent-Length: " + "7" + "\r\n\r\nbody|" + n + n)
		await("<" + n + n + ">")
	}
	await("Verify return code")
	request("1")
	say("K\n") // asks for the server's update too
	await("KEYUPDATE")
	request("2")
	say("k\n")
	await("KEYUPDATE")
	request("3")
	in.Close()
	go func() { _, _ = io.Copy(io.Discard, out) }()
	<-done

	keys, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	got := importFile(t, pcapng(t, linkEthernet, p.packets(t, linkEthernet), keys), nil)
	if len(got.exchanges) != 3 {
		t.Fatalf("%d exchanges; %+v", len(got.exchanges), got.conns)
	}
	for i, ex := range got.exchanges {
		n := strings.Repeat(string(rune('1'+i)), 2)
		if ex.Outcome != captures.Complete || string(bodyOf(t, got.store, ex.ID, captures.Down)) != "<body><"+n+">" {
			t.Errorf("exchange %d: %+v", i, ex)
		}
	}
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
