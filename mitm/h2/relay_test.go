package h2

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"unwire/captures"
)

// block encodes fields, given in pairs.
func block(enc *hpack.Encoder, to *bytes.Buffer, fields ...string) []byte {
	to.Reset()
	for i := 0; i < len(fields); i += 2 {
		_ = enc.WriteField(hpack.HeaderField{Name: fields[i], Value: fields[i+1]})
	}
	return bytes.Clone(to.Bytes())
}

func newBlocks() func(fields ...string) []byte {
	var buf bytes.Buffer
	enc := hpack.NewEncoder(&buf)
	return func(fields ...string) []byte { return block(enc, &buf, fields...) }
}

// TestFramesPassAsTheyAre: every byte that one side says is what the other
// hears, of frames that nobody knows too, and the record has what they carry,
// in the order of the wire.
func TestFramesPassAsTheyAre(t *testing.T) {
	t.Parallel()
	k := newRelayed(t)
	up, down := newBlocks(), newBlocks()
	request := up(":method", "POST", ":path", "/a?b", ":scheme", "https", ":authority", "example.com",
		"zebra", "1", "ant", "2", "zebra", "3", "cookie", "a=1", "cookie", "b=2", "x-long", strings.Repeat("v", 40_000))
	// HEADERS with padding and a priority, and the rest in CONTINUATIONs.
	frames := appendFrame(nil, frameHeaders, flagPadded|flagPriority, 1, append(append([]byte{3, 0x80, 0, 0, 0, 200}, request[:100]...), 0, 0, 0))
	frames = appendFrame(frames, frameContinuation, 0, 1, request[100:200])
	frames = appendFrame(frames, frameContinuation, flagEndHeaders, 1, request[200:])
	frames = appendFrame(frames, 0x02, 0, 1, []byte{0, 0, 0, 0, 7})     // PRIORITY
	frames = appendFrame(frames, 0xbe, 0x55, 1, []byte("an extension")) // of no known type
	frames = appendFrame(frames, 0x06, 0, 0, []byte("pingping"))
	frames = appendFrame(frames, frameWindowUpdate, 0, 0, []byte{0, 1, 0, 0})
	frames = appendFrame(frames, frameData, flagPadded, 1, []byte("\x02hello\x00\x00"))
	frames = appendFrame(frames, frameData, 0, 1, []byte(", "))
	frames = appendFrame(frames, frameData, 0, 1, bytes.Repeat([]byte("long"), 30_000)) // longer than any buffer
	frames = appendFrame(frames, frameHeaders, flagEndHeaders|flagEndStream, 1, up("x-unannounced", "trailer"))
	k.send(k.client, frames)

	answer := appendFrame(nil, frameHeaders, flagEndHeaders, 1, down(":status", "103", "link", "</a>"))
	answer = appendFrame(answer, frameHeaders, flagEndHeaders, 1, down(":status", "200", "b", "1", "a", "2"))
	answer = appendFrame(answer, framePushPromise, flagEndHeaders, 1, append([]byte{0, 0, 0, 2}, down(":method", "GET", ":path", "/pushed", ":scheme", "https", ":authority", "example.com")...))
	answer = appendFrame(answer, frameHeaders, flagEndHeaders|flagEndStream, 2, down(":status", "204"))
	answer = appendFrame(answer, frameData, 0, 1, []byte("answer"))
	answer = appendFrame(answer, frameHeaders, flagEndHeaders|flagEndStream, 1, down("grpc-status", "0", "b", "trailer"))
	k.send(k.server, answer)

	got := k.capture.ended(2)
	ex := got[0]
	names := func(h captures.Headers) (s string) {
		for _, f := range h {
			s += fmt.Sprintf("%s=%.5s ", f.Name, f.Value)
		}
		return s
	}
	if s := names(ex.RequestHeaders); !strings.HasPrefix(s, "zebra=1 ant=2 zebra=3 cookie=") || strings.Count(s, "cookie=") != 2 || !strings.HasSuffix(s, "x-long=vvvvv ") {
		t.Errorf("request fields %s", s)
	}
	if s := names(ex.ResponseHeaders); s != "b=1 a=2 " {
		t.Errorf("response fields %s", s)
	}
	if s := names(ex.RequestTrailers) + names(ex.ResponseTrailers); s != "x-unannounced=trail grpc-status=0 b=trail " {
		t.Errorf("trailers %s", s)
	}
	if ex.URL != "https://example.com/a?b" || ex.Status != 200 || ex.HTTP != "2" || ex.Outcome != captures.Complete {
		t.Errorf("recorded %+v", ex)
	}
	if up := k.capture.body(ex.ID, captures.Up); string(up) != "hello, "+strings.Repeat("long", 30_000) {
		t.Errorf("recorded %d bytes up: %.40q", len(up), up)
	}
	if down := k.capture.body(ex.ID, captures.Down); string(down) != "answer" {
		t.Errorf("recorded %q down", down)
	}
	if p := got[1]; p.URL != "https://example.com/pushed" || p.Status != 204 || p.Outcome != captures.Complete {
		t.Errorf("pushed: %+v", p)
	}
}

// TestEndings: what ends a stream or the connection reaches the other side as
// it was said, and the record tells who ended it and how.
func TestEndings(t *testing.T) {
	t.Parallel()
	code := func(c byte) []byte { return []byte{0, 0, 0, c} }
	for name, c := range map[string]struct {
		end     func(k *relayed)
		outcome captures.Outcome
		text    string
	}{
		"client resets": {func(k *relayed) { k.send(k.client, appendFrame(nil, frameRSTStream, 0, 1, code(8))) }, captures.Canceled, "the client reset the stream: CANCEL"},
		"server resets": {func(k *relayed) { k.send(k.server, appendFrame(nil, frameRSTStream, 0, 1, code(11))) }, captures.Reset, "the server reset the stream: ENHANCE_YOUR_CALM"},
		"unknown code":  {func(k *relayed) { k.send(k.server, appendFrame(nil, frameRSTStream, 0, 1, code(200))) }, captures.Reset, "the server reset the stream: code 0xc8"},
		"client leaves": {func(k *relayed) { k.client.Close() }, captures.Canceled, "the client closed the connection"},
		"server leaves": {func(k *relayed) { k.server.Close() }, captures.Reset, "the server closed the connection"},
		"server says why": {func(k *relayed) {
			k.send(k.server, appendFrame(nil, frameGoAway, 0, 0, append([]byte{0, 0, 0, 0, 0, 0, 0, 2}, "because"...)))
			k.server.Close()
		}, captures.Reset, "the server closed the connection: INTERNAL_ERROR"},
		"answered, then reset": {func(k *relayed) {
			k.send(k.server, appendFrame(nil, frameHeaders, flagEndHeaders|flagEndStream, 1, newBlocks()(":status", "403")))
			k.send(k.server, appendFrame(nil, frameRSTStream, 0, 1, code(0)))
			k.send(k.client, appendFrame(nil, frameData, 0, 1, []byte("late")))
			if ex := k.capture.one(); string(k.capture.body(ex.ID, captures.Up)) != "late" {
				k.t.Errorf("what was on its way is not recorded: %+v", ex)
			}
		}, captures.Complete, ""},
		"shorter than declared": {func(k *relayed) {
			k.send(k.client, appendFrame(nil, frameData, flagEndStream, 1, nil))
			k.send(k.server, appendFrame(nil, frameHeaders, flagEndHeaders, 1, newBlocks()(":status", "200", "content-length", "9")))
			k.send(k.server, appendFrame(nil, frameData, flagEndStream, 1, []byte("short")))
		}, captures.Reset, "the body ended after 5 of 9 bytes"},
		"cut within a frame": {func(k *relayed) {
			cut := appendFrame(nil, frameHeaders, flagEndHeaders, 1, newBlocks()(":status", "200"))
			cut = append(cut, 0, 0, 100, 0, 0, 0, 0, 0, 1, 'c', 'u', 't')
			k.send(k.server, cut[:len(cut)-12])
			_, _ = k.server.Write(cut[len(cut)-12:])
			k.server.Close()
			k.expect(k.client, cut[len(cut)-12:])
		}, captures.Reset, "the server closed the connection"},
		"no HPACK": {func(k *relayed) {
			_, _ = k.server.Write(appendFrame(nil, frameHeaders, flagEndHeaders, 1, []byte{0xff, 0xff, 0xff, 0xff, 0x7f}))
			rest, _ := io.ReadAll(k.client)
			if len(rest) != 0 {
				k.t.Errorf("the client heard %q", rest)
			}
		}, captures.Reset, "HTTP/2: stream 1: "},
		"client breaks the rules": {func(k *relayed) {
			_, _ = k.client.Write(appendFrame(nil, frameContinuation, flagEndHeaders, 1, nil))
			rest, _ := io.ReadAll(k.client)
			if len(rest) < frameHeaderSize || frameType(rest[3]) != frameGoAway || !strings.HasSuffix(string(rest), "a CONTINUATION frame does not follow a HEADERS frame") {
				k.t.Errorf("the client heard %q", rest)
			}
		}, captures.Canceled, "HTTP/2: a CONTINUATION frame does not follow a HEADERS frame"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := newRelayed(t)
			k.send(k.client, appendFrame(nil, frameHeaders, flagEndHeaders, 1, newBlocks()(":method", "GET", ":path", "/", ":scheme", "https", ":authority", "x")))
			c.end(k)
			ex := k.capture.one()
			if ex.Outcome != c.outcome || !strings.HasPrefix(ex.Error, c.text) || c.text == "" && ex.Error != "" {
				t.Errorf("recorded %q, %q; want %q, %q", ex.Outcome, ex.Error, c.outcome, c.text)
			}
		})
	}
}

// TestStopping: what has begun goes on to its end, what begins then is
// refused, and the server never hears of it.
func TestStopping(t *testing.T) {
	t.Parallel()
	k := newRelayed(t)
	up := newBlocks()
	request := func(id uint32, path string) []byte {
		return appendFrame(nil, frameHeaders, flagEndHeaders, id, up(":method", "POST", ":path", path, ":scheme", "https", ":authority", "x", "x-indexed", path))
	}
	k.send(k.client, request(1, "/begun"))
	k.stop()
	k.expect(k.client, goAwayFrame(maxStreamID, 0, ""))
	_, _ = k.client.Write(request(3, "/refused"))
	_, _ = k.client.Write(appendFrame(nil, frameData, flagEndStream, 3, []byte("lost")))
	k.expect(k.client, appendFrame(nil, frameRSTStream, 0, 3, binary.BigEndian.AppendUint32(nil, uint32(codeRefusedStream))))
	k.expect(k.client, appendFrame(nil, frameWindowUpdate, 0, 0, []byte{0, 0, 0, 4}))

	// The trailers refer to what the refused block put into HPACK's table.
	_, _ = k.client.Write(appendFrame(nil, frameHeaders, flagEndHeaders|flagEndStream, 1, up("x-indexed", "/refused")))
	fr := http2.NewFramer(nil, k.server)
	fr.ReadMetaHeaders = hpack.NewDecoder(defaultHeaderTable, nil)
	_ = k.server.SetReadDeadline(time.Now().Add(testTimeout))
	f, err := fr.ReadFrame()
	if err != nil {
		t.Fatal(err)
	}
	if h, ok := f.(*http2.MetaHeadersFrame); !ok || !h.StreamEnded() || h.StreamID != 1 || h.RegularFields()[0].Value != "/refused" {
		t.Errorf("the server heard %v", f)
	}
	k.send(k.server, appendFrame(nil, frameHeaders, flagEndHeaders|flagEndStream, 1, newBlocks()(":status", "200")))
	k.client.Close()
	k.wait()
	if ex := k.capture.one(); ex.Outcome != captures.Complete || ex.RequestTrailers.Get("x-indexed") != "/refused" {
		t.Errorf("recorded %+v", ex)
	}
}

// TestStoppingEarly: what the proxy says comes behind the server's SETTINGS,
// which a client must hear first.
func TestStoppingEarly(t *testing.T) {
	t.Parallel()
	k := newSilentServer(t)
	k.send(k.client, appendFrame(nil, frameHeaders, flagEndHeaders|flagEndStream, 1, newBlocks()(":method", "GET", ":path", "/", ":scheme", "https", ":authority", "x")))
	k.stop()
	k.send(k.server, appendFrame(nil, frameSettings, 0, 0, nil))
	k.expect(k.client, goAwayFrame(maxStreamID, 0, ""))
	k.send(k.server, appendFrame(nil, frameHeaders, flagEndHeaders|flagEndStream, 1, newBlocks()(":status", "200")))
	k.client.Close()
	k.wait()
	k.capture.one()
}
