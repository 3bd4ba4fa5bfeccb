package socks_test

import (
	"bytes"
	"io"
	"net"
	"strings"
	"testing"

	"unwire/mitm/socks"
)

func FuzzGreet(f *testing.F) {
	f.Add([]byte("\x05\x01\x00\x05\x01\x00\x01\x7f\x00\x00\x01\x00\x50"))
	f.Add([]byte("\x05\x02\x02\x00\x05\x01\x00\x03\x09localhost\x00\x50"))
	f.Add([]byte("\x05\x01\x00\x05\x01\x00\x04\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01\x00\x50"))
	f.Add([]byte("\x05\x02\x00\xf1\x02ab\x05\x01\x00\x01\x7f\x00\x00\x01\x00\x50"))
	f.Fuzz(func(t *testing.T, data []byte) {
		var answers bytes.Buffer
		addr, _, err := socks.Greet(struct {
			io.Reader
			io.Writer
		}{bytes.NewReader(data), &answers})
		if err != nil {
			return
		}
		if host, _, err := net.SplitHostPort(addr); err != nil || host == "" || strings.ContainsAny(addr, "\r\n /@") {
			t.Errorf("%q is no address: %v", addr, err)
		}
		if got := answers.String(); got != "\x05\x00" && got != "\x05\xf1" {
			t.Errorf("answered %x", answers.Bytes())
		}
	})
}
