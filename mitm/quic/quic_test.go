package quic

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"net"
	"testing"
	"time"

	"github.com/quic-go/quic-go"
)

// TestRefusal has a real client give up by the answer.
func TestRefusal(t *testing.T) {
	t.Parallel()
	for _, version := range []quic.Version{quic.Version1, quic.Version2} {
		server, err := net.ListenPacket("udp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer server.Close()
		go func() {
			buf := make([]byte, 2000)
			for {
				n, from, err := server.ReadFrom(buf)
				if err != nil {
					return
				}
				p, ok := ParseInitial(buf[:n])
				if !ok || p.Version != uint32(version) || len(p.Destination) < 8 {
					t.Errorf("not recognised: %+v %x", p, buf[:20])
				}
				_, _ = server.WriteTo(p.Refusal(), from)
			}
		}()
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		_, err = quic.DialAddr(ctx, server.LocalAddr().String(), &tls.Config{NextProtos: []string{"h3"}, ServerName: "a"}, &quic.Config{Versions: []quic.Version{version}})
		var refused *quic.VersionNegotiationError
		if !errors.As(err, &refused) {
			t.Errorf("version %v: %v", version, err)
		}
	}
}

func TestParseInitial(t *testing.T) {
	t.Parallel()
	good := append([]byte{0xc3, 0, 0, 0, 1, 8, 1, 2, 3, 4, 5, 6, 7, 8, 2, 9, 10}, make([]byte, 1200)...)
	p, ok := ParseInitial(good)
	if !ok || !bytes.Equal(p.Destination, []byte{1, 2, 3, 4, 5, 6, 7, 8}) || !bytes.Equal(p.Source, []byte{9, 10}) {
		t.Errorf("%v %+v", ok, p)
	}
	if got, want := p.Refusal(), []byte{0xc0, 0, 0, 0, 0, 2, 9, 10, 8, 1, 2, 3, 4, 5, 6, 7, 8, 0x1a, 0x2a, 0x3a, 0x4a}; !bytes.Equal(got, want) {
		t.Errorf("% x", got)
	}
	for name, change := range map[string]func(p []byte) []byte{
		"short":            func(p []byte) []byte { return p[:1199] },
		"empty":            func([]byte) []byte { return nil },
		"short header":     func(p []byte) []byte { p[0] = 0x40; return p },
		"no fixed bit":     func(p []byte) []byte { p[0] = 0x80; return p },
		"unknown version":  func(p []byte) []byte { p[1] = 0x12; return p },
		"negotiation":      func(p []byte) []byte { p[4] = 0; return p },
		"long destination": func(p []byte) []byte { p[5] = 21; return p },
		"long source":      func(p []byte) []byte { p[14] = 255; return p },
	} {
		if _, ok := ParseInitial(change(bytes.Clone(good))); ok {
			t.Errorf("%s is recognised", name)
		}
	}
}

func FuzzParseInitial(f *testing.F) {
	f.Add(append([]byte{0xc3, 0, 0, 0, 1, 8, 1, 2, 3, 4, 5, 6, 7, 8, 2, 9, 10}, make([]byte, 1200)...))
	f.Fuzz(func(t *testing.T, p []byte) {
		if i, ok := ParseInitial(p); ok && len(i.Refusal()) > len(p) {
			t.Errorf("the answer to %d bytes has %d", len(p), len(i.Refusal()))
		}
	})
}
