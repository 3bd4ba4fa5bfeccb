package pcap

import (
	"bytes"
	"encoding/binary"
	"strings"
	"testing"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"unwire/captures"
)

// h2Side writes the frames of one side.
type h2Side struct {
	out  bytes.Buffer
	f    *http2.Framer
	head bytes.Buffer
	enc  *hpack.Encoder
}

func newH2Side() *h2Side {
	s := new(h2Side)
	s.f, s.enc = http2.NewFramer(&s.out, nil), hpack.NewEncoder(&s.head)
	return s
}

// section encodes name, value, name, value…
func (s *h2Side) section(fields ...string) []byte {
	s.head.Reset()
	for i := 0; i < len(fields); i += 2 {
		_ = s.enc.WriteField(hpack.HeaderField{Name: fields[i], Value: fields[i+1]})
	}
	return bytes.Clone(s.head.Bytes())
}

func (s *h2Side) take() string {
	defer s.out.Reset()
	return s.out.String()
}

// TestHTTP2Frames interleaves streams, and uses padding, CONTINUATION,
// PUSH_PROMISE, 1xx, trailers, RST_STREAM and GOAWAY.
func TestHTTP2Frames(t *testing.T) {
	c, s := newH2Side(), newH2Side()
	up := func(id uint32, path string, end bool) {
		b := c.section(":method", "POST", ":scheme", "https", ":authority", "h", ":path", path, "x-long", strings.Repeat(path, 50))
		_ = c.f.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: b[:5], EndStream: end, PadLength: 7})
		_ = c.f.WriteContinuation(id, false, b[5:9])
		_ = c.f.WriteContinuation(id, true, b[9:])
	}
	c.out.Write(h2Preface)
	_ = c.f.WriteSettings()
	for i, path := range []string{"/one", "/two", "/three", "/four", "/five"} {
		up(uint32(1+2*i), path, i == 0)
	}
	_ = c.f.WriteDataPadded(3, false, []byte("two "), make([]byte, 9))
	_ = c.f.WriteData(5, false, []byte("three"))
	_ = c.f.WriteDataPadded(3, true, []byte("too"), make([]byte, 3))
	first := c.take()

	_ = s.f.WriteSettings()
	head := func(id uint32, end bool, fields ...string) {
		_ = s.f.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: s.section(fields...), EndHeaders: true, EndStream: end})
	}
	head(3, false, ":status", "103", "link", "x")
	head(3, false, ":status", "200", "a", "b")
	head(1, false, ":status", "200")
	_ = s.f.WritePushPromise(http2.PushPromiseParam{
		StreamID: 1, PromiseID: 2, EndHeaders: true, PadLength: 4,
		BlockFragment: s.section(":method", "GET", ":scheme", "https", ":authority", "h", ":path", "/pushed"),
	})
	_ = s.f.WriteData(3, false, []byte("answer "))
	_ = s.f.WriteDataPadded(1, true, []byte("one"), make([]byte, 200))
	_ = s.f.WriteData(3, false, []byte("two"))
	head(3, true, "grpc-status", "0")
	_ = s.f.WriteRSTStream(5, http2.ErrCodeInternal)
	head(2, false, ":status", "200")
	_ = s.f.WriteData(2, true, []byte("pushed"))
	_ = s.f.WriteGoAway(7, http2.ErrCodeNo, nil)
	second := s.take()

	_ = c.f.WriteRSTStream(7, http2.ErrCodeCancel)
	third := c.take()

	list := conversation(t, line{captures.Up, first}, line{captures.Down, second}, line{captures.Up, third})
	for name, order := range map[string][]rawPacket{"in order": list, "reversed": reversed(list)} {
		got := importFile(t, pcapng(t, linkEthernet, order, nil), nil)
		by := map[string]*captures.Exchange{}
		for _, ex := range got.exchanges {
			by[strings.TrimPrefix(ex.URL, "https://h")] = ex
		}
		for path, want := range map[string]struct {
			up, down string
			outcome  captures.Outcome
			err      string
		}{
			"/one":    {"", "one", captures.Complete, ""},
			"/two":    {"two too", "answer two", captures.Complete, ""},
			"/three":  {"three", "", captures.Reset, "the server reset the stream: INTERNAL_ERROR"},
			"/four":   {"", "", captures.Canceled, "the client reset the stream: CANCEL"},
			"/five":   {"", "", captures.Reset, "the server is going away (NO_ERROR) and did not process the request"},
			"/pushed": {"", "pushed", captures.Complete, ""},
		} {
			ex := by[path]
			if ex == nil {
				t.Fatalf("%s: %s is missing; %+v", name, path, got.conns)
			}
			up, down := string(bodyOf(t, got.store, ex.ID, captures.Up)), string(bodyOf(t, got.store, ex.ID, captures.Down))
			if up != want.up || down != want.down || ex.Outcome != want.outcome || ex.Error != want.err {
				t.Errorf("%s: %s: %q %q %+v", name, path, up, down, ex)
			}
			if path != "/pushed" && ex.RequestHeaders.Get("x-long") != strings.Repeat(path, 50) {
				t.Errorf("%s: %s: headers %v", name, path, ex.RequestHeaders)
			}
		}
		if two := by["/two"]; two.Status != 200 || two.ResponseHeaders.Get("a") != "b" || two.ResponseTrailers.Get("grpc-status") != "0" {
			t.Errorf("%s: %+v", name, two)
		}
	}
}

// TestHTTP2WholeBeforeItsEnd: a client that resets the stream, or closes the
// connection, when it has read all of an answer has a complete one.
func TestHTTP2WholeBeforeItsEnd(t *testing.T) {
	for name, c := range map[string]struct {
		fields  []string
		reset   bool // else the connection ends
		code    http2.ErrCode
		server  bool // it resets
		outcome captures.Outcome
	}{
		"reset":               {[]string{"content-length", "5"}, true, http2.ErrCodeCancel, false, captures.Complete},
		"close":               {[]string{"content-length", "5"}, false, 0, false, captures.Complete},
		"server's NO_ERROR":   {[]string{"content-length", "5"}, true, http2.ErrCodeNo, true, captures.Complete},
		"server's error":      {[]string{"content-length", "5"}, true, http2.ErrCodeInternal, true, captures.Reset},
		"a byte is missing":   {[]string{"content-length", "6"}, true, http2.ErrCodeCancel, false, captures.Canceled},
		"missing, and closed": {[]string{"content-length", "6"}, false, 0, false, captures.Reset},
		"gRPC":                {[]string{"content-length", "5", "content-type", "application/grpc"}, true, http2.ErrCodeCancel, false, captures.Canceled},
	} {
		client, server := newH2Side(), newH2Side()
		client.out.Write(h2Preface)
		_ = client.f.WriteSettings()
		_ = client.f.WriteHeaders(http2.HeadersFrameParam{
			StreamID: 1, EndHeaders: true, EndStream: true,
			BlockFragment: client.section(":method", "GET", ":scheme", "https", ":authority", "h", ":path", "/a"),
		})
		first := client.take()
		_ = server.f.WriteSettings()
		_ = server.f.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, EndHeaders: true, BlockFragment: server.section(append([]string{":status", "200"}, c.fields...)...)})
		_ = server.f.WriteData(1, false, []byte("hello"))
		if c.reset && c.server {
			_ = server.f.WriteRSTStream(1, c.code)
		}
		lines := []line{{captures.Up, first}, {captures.Down, server.take()}}
		if c.reset && !c.server {
			_ = client.f.WriteRSTStream(1, c.code)
			lines = append(lines, line{captures.Up, client.take()})
		}
		got := importFile(t, pcapng(t, linkEthernet, conversation(t, lines...), nil), nil)
		if len(got.exchanges) != 1 || got.exchanges[0].Outcome != c.outcome {
			t.Errorf("%s: %+v, want %s", name, got.exchanges, c.outcome)
		}
	}
}

func reversed(list []rawPacket) []rawPacket {
	out := make([]rawPacket, len(list))
	for i, p := range list {
		out[len(list)-1-i] = p
	}
	return out
}

// bigEndian turns the headers of a little-endian pcap file around.
func bigEndian(file []byte) []byte {
	out := bytes.Clone(file)
	swap := func(at, size, n int) {
		for i := range n {
			b := out[at+i*size : at+(i+1)*size]
			for j := range size / 2 {
				b[j], b[size-1-j] = b[size-1-j], b[j]
			}
		}
	}
	swap(0, 4, 1)
	swap(4, 2, 2)
	swap(8, 4, 4)
	for at := 24; at < len(out); {
		n := int(binary.LittleEndian.Uint32(out[at+8:]))
		swap(at, 4, 4)
		at += 16 + n
	}
	return out
}
