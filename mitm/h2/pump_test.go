package h2

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"testing"
	"time"

	"unwire/captures"
)

// A scriptedConn says what it was given, at most n bytes at once, and keeps what is
// written to it.
type scriptedConn struct {
	net.Conn
	in  io.Reader
	n   int
	out bytes.Buffer
}

func (c *scriptedConn) Read(p []byte) (int, error) {
	if c.n > 0 {
		p = p[:min(len(p), c.n)]
	}
	return c.in.Read(p)
}
func (c *scriptedConn) Write(p []byte) (int, error)     { return c.out.Write(p) }
func (c *scriptedConn) Close() error                    { return nil }
func (c *scriptedConn) SetReadDeadline(time.Time) error { return nil }

// pumped returns what a pump wrote, and with what it ended.
func pumped(rec *testCapture, d captures.Direction, in []byte, atOnce int, refusing bool) (out, back []byte, err error) {
	src, dst := &scriptedConn{in: bytes.NewReader(in), n: atOnce}, new(scriptedConn)
	client, server := src, dst
	if d == captures.Down {
		client, server = dst, src
	}
	r := New(rec.config(&Conn{Conn: client}, &Conn{Conn: server}))
	r.client.midFrame = false
	if d == captures.Down {
		r.config.Admit()
		_ = r.openStream(1, nil, false)
	}
	from, to := r.client, r.server
	if d == captures.Down {
		from, to = to, from
	}
	pump := newPump(r, d, from, to)
	if refusing {
		pump.startReencoding()
	}
	_, err = pump.run()
	r.endAll(captures.Incomplete, errors.New("stopped"))
	return dst.out.Bytes(), src.out.Bytes(), err
}

// TestResetIsWrittenByItself: curl and others drop an answer whose END_STREAM comes in
// one TLS record with the RST_STREAM behind it. A reset therefore begins a record of
// its own, even if the sender has put both into one, and keeps its place and its code.
func TestResetIsWrittenByItself(t *testing.T) {
	t.Parallel()
	for name, code := range map[string]byte{"NO_ERROR": 0, "INTERNAL_ERROR": 2, "CANCEL": 8} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, d := range []captures.Direction{captures.Up, captures.Down} {
				k := newRelayed(t)
				k.answer("POST", "200", []string{"content-length", "5"}, nil)
				from, to := k.server, k.client
				if d == captures.Up {
					from, to = to, from
				}
				end := appendFrame(nil, frameData, flagEndStream, 1, []byte("hello"))
				reset := appendFrame(nil, frameRSTStream, 0, 1, []byte{0, 0, 0, code})
				ping := appendFrame(nil, 0x06, 0, 0, []byte("pingping"))
				if _, err := from.Write(slices.Concat(end, reset, ping)); err != nil {
					t.Fatal(err)
				}

				_ = to.SetReadDeadline(time.Now().Add(testTimeout))
				record := make([]byte, 1<<10)
				n, err := to.Read(record) // of TLS: one record at most
				if err != nil || !bytes.Equal(record[:n], end) {
					t.Fatalf("%s: the first record has %q, %v; want %q", d, record[:n], err, end)
				}
				k.expect(to, append(reset, ping...))
			}
		})
	}
}

// FuzzPump: whatever comes, nothing panics; without an error all of it is
// passed on, with one a part, byte for byte, however it came in.
func FuzzPump(f *testing.F) {
	blocks := newBlocks()
	request := appendFrame(nil, frameHeaders, flagEndHeaders|flagPriority, 1, append([]byte{0, 0, 0, 0, 1}, blocks(":method", "GET", ":path", "/", "a", "b")...))
	f.Add(request, false)
	f.Add(appendFrame(appendFrame(request, frameData, flagPadded, 1, []byte("\x01x\x00")), frameRSTStream, 0, 1, []byte{0, 0, 0, 8}), false)
	f.Add(appendFrame(nil, frameSettings, 0, 0, []byte{0, 1, 0xff, 0xff, 0xff, 0xff}), true)
	f.Add(appendFrame(nil, framePushPromise, flagEndHeaders, 1, append([]byte{0, 0, 0, 2}, blocks(":method", "GET")...)), true)
	f.Add(appendFrame(nil, frameGoAway, 0, 0, make([]byte, 8)), true)
	f.Add([]byte{0xff, 0xff, 0xff, 0, 9, 0, 0, 0, 1, 3, 'd', 'a', 't', 'a'}, true)
	f.Add(appendFrame(appendFrame(nil, frameHeaders, 0, 1, []byte{0x82}), frameContinuation, flagEndHeaders, 1, []byte{0x84}), false)
	rec := newTestCapture(f)
	f.Fuzz(func(t *testing.T, in []byte, down bool) {
		d := captures.Up
		if down {
			d = captures.Down
		}
		sent := bytes.Clone(in)
		out, back, err := pumped(rec, d, sent, 0, false)
		if !bytes.HasPrefix(maskTables(in), maskTables(out)) || errors.Is(err, io.EOF) && len(out) != len(in) {
			t.Errorf("%v: passed on\n%x of\n%x", err, out, in)
		}
		if len(back) > 0 {
			t.Errorf("said back %x", back)
		}
		slow, _, slowErr := pumped(rec, d, bytes.Clone(in), 1, false)
		if !bytes.Equal(slow, out) || fmt.Sprint(slowErr) != fmt.Sprint(err) {
			t.Errorf("a byte at a time: %x, %v; at once: %x, %v", slow, slowErr, out, err)
		}
		_, _, _ = pumped(rec, d, bytes.Clone(in), 0, true)
	})
}

// maskTables returns frames without the one thing in them that the proxy bounds.
func maskTables(p []byte) []byte {
	p = bytes.Clone(p)
	for rest := p; len(rest) >= frameHeaderSize; {
		h := parseFrameHeader(rest)
		n := min(len(rest), frameHeaderSize+h.length)
		if s := rest[frameHeaderSize:n]; h.kind == frameSettings && !h.has(flagAck) {
			for ; len(s) >= 6; s = s[6:] {
				if binary.BigEndian.Uint16(s) == settingHeaderTableSize {
					clear(s[2:6])
				}
			}
		}
		rest = rest[n:]
	}
	return p
}
