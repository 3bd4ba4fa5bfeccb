package chain

import (
	"bytes"
	"io"
	"testing"
	"testing/iotest"
)

// FuzzAnswer: what another program sends over the socket is read up to its limit, and alike in pieces of a byte.
func FuzzAnswer(f *testing.F) {
	f.Add([]byte(`{"server":"api.example.com:443"}`))
	f.Add([]byte(`{"server":["a"]}`))
	f.Add(append([]byte(`{"server":"`), bytes.Repeat([]byte("x"), 2*maxAnswer)...))
	f.Fuzz(func(t *testing.T, data []byte) {
		r := bytes.NewReader(data)
		server := readAnswer(r)
		if read := len(data) - r.Len(); read > maxAnswer || len(server) > 3*maxAnswer {
			t.Errorf("read %d bytes, and a server of %d", read, len(server))
		}
		if again := readAnswer(iotest.OneByteReader(io.LimitReader(bytes.NewReader(data), maxAnswer))); again != server {
			t.Errorf("%q, and in pieces of a byte %q", server, again)
		}
	})
}
