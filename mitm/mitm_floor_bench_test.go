package mitm

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"unwire/mitm/ca"
)

// newTLSRelay is the least that a proxy can be which sees what passes: it ends
// TLS on both sides and copies bytes, understanding and recording nothing. It
// returns the address at which it takes CONNECT. Its ALPN has one protocol.
//
// If keep is set, all bytes that pass are written to it, as they come: to a file, that is
// the least that a proxy can be which keeps what passes.
func newTLSRelay(b *testing.B, origin *httptest.Server, authority *ca.Authority, proto string, keep io.Writer) string {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { ln.Close() })
	leaf, err := authority.Leaf("127.0.0.1")
	if err != nil {
		b.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(origin.Certificate())
	serve := func(raw net.Conn) {
		defer raw.Close()
		r := bufio.NewReader(raw)
		if _, err := http.ReadRequest(r); err != nil {
			return
		}
		_, _ = io.WriteString(raw, "HTTP/1.1 200 OK\r\n\r\n")
		client := tls.Server(raw, &tls.Config{Certificates: []tls.Certificate{*leaf}, NextProtos: []string{proto}, DynamicRecordSizingDisabled: true})
		server, err := tls.Dial("tcp", origin.Listener.Addr().String(), &tls.Config{RootCAs: roots, NextProtos: []string{proto}, DynamicRecordSizingDisabled: true})
		if err != nil {
			return
		}
		defer server.Close()
		up, down := io.Reader(onlyReader{client}), io.Reader(onlyReader{server})
		if keep != nil {
			up, down = io.TeeReader(up, keep), io.TeeReader(down, keep)
		}
		go func() {
			_, _ = io.CopyBuffer(onlyWriter{server}, up, make([]byte, chunkSize))
			server.Close()
		}()
		_, _ = io.CopyBuffer(onlyWriter{client}, down, make([]byte, chunkSize))
	}
	go func() {
		for {
			raw, err := ln.Accept()
			if err != nil {
				return
			}
			go serve(raw)
		}
	}()
	return ln.Addr().String()
}

// newKeptFile returns a new file to which a relay writes what passes.
func newKeptFile(b *testing.B) *os.File {
	f, err := os.Create(filepath.Join(b.TempDir(), "kept"))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { f.Close() })
	return f
}

type (
	onlyReader struct{ io.Reader }
	onlyWriter struct{ io.Writer }
)
