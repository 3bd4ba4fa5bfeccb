package h2

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"unwire/captures"
	"unwire/mitm/rewrite"
)

// scripted is an exchange whose verdicts the test sets.
type scripted struct {
	slowly
	framing rewrite.Framing
	// request is the verdict about the request's head.
	request rewrite.Verdict
	// matched is what a frame contains that does not pass; "" matches none.
	matched string
	// verdict is the verdict about a frame that does not pass.
	verdict rewrite.Verdict
	// heads, if not nil, receives the status of each response.
	heads chan int
}

func (s scripted) Request() rewrite.Verdict                   { return s.request }
func (s scripted) Framing(captures.Direction) rewrite.Framing { return s.framing }
func (s scripted) Passes(f *rewrite.Frame) bool {
	return s.matched == "" || !strings.Contains(string(f.Data), s.matched)
}

func (s scripted) Response(status int, _ captures.Headers) {
	if s.heads != nil {
		s.heads <- status
	}
}

func (s scripted) Frame(_ context.Context, f *rewrite.Frame) (v rewrite.Verdict) {
	if s.Passes(f) {
		return v
	}
	return s.verdict
}

// newScripted returns a relay whose exchanges are those of scripts, by path.
func newScripted(t *testing.T, scripts map[string]scripted) *relayed {
	t.Helper()
	k := newSilentServer(t, func(c *Config) {
		c.rewriteWith(func(path string) rewrite.Exchange {
			if s, ok := scripts[path]; ok {
				return s
			}
			return nil
		})
	})
	k.send(k.server, appendFrame(nil, frameSettings, 0, 0, nil))
	return k
}

// write writes frames on one side.
func (k *relayed) write(to net.Conn, frames ...[]byte) {
	k.t.Helper()
	if _, err := to.Write(bytes.Join(frames, nil)); err != nil {
		k.t.Fatal(err)
	}
}

// nextFrames returns a function that reads the next frame of one side. It describes window updates of the connection
// and of streams, and the fields of header blocks.
func (k *relayed) nextFrames(at net.Conn) func() string {
	framer := http2.NewFramer(nil, at)
	framer.ReadMetaHeaders = hpack.NewDecoder(defaultHeaderTable, nil)
	return func() string {
		k.t.Helper()
		_ = at.SetReadDeadline(time.Now().Add(testTimeout))
		f, err := framer.ReadFrame()
		if err != nil {
			k.t.Fatal(err)
		}
		id := f.Header().StreamID
		switch f := f.(type) {
		case *http2.MetaHeadersFrame:
			var fields []string
			for _, field := range f.Fields {
				fields = append(fields, field.Name+"="+field.Value)
			}
			return fmt.Sprintf("%d HEADERS %s, end %v", id, strings.Join(fields, " "), f.StreamEnded())
		case *http2.DataFrame:
			return fmt.Sprintf("%d DATA %q, end %v", id, f.Data(), f.StreamEnded())
		case *http2.WindowUpdateFrame:
			return fmt.Sprintf("%d WINDOW %d", id, f.Increment)
		}
		return fmt.Sprintf("%d %s", id, f.Header().Type)
	}
}

// await reads frames until one contains want, and returns those before it.
func await(next func() string, want string) (before []string) {
	for {
		f := next()
		if strings.Contains(f, want) {
			return before
		}
		before = append(before, f)
	}
}

// get returns the HEADERS frame of a request without a body.
func get(up func(...string) []byte, stream uint32, path string) []byte {
	return appendFrame(nil, frameHeaders, flagEndHeaders|flagEndStream, stream,
		up(":method", "GET", ":path", path, ":scheme", "https", ":authority", "a.example"))
}

// post returns the HEADERS frame of a request with a body of unknown length.
func post(up func(...string) []byte, stream uint32, path string) []byte {
	return appendFrame(nil, frameHeaders, flagEndHeaders, stream,
		up(":method", "POST", ":path", path, ":scheme", "https", ":authority", "a.example"))
}

// head returns the HEADERS frame of a response.
func head(down func(...string) []byte, stream uint32, fields ...string) []byte {
	return appendFrame(nil, frameHeaders, flagEndHeaders, stream, down(append([]string{":status", "200"}, fields...)...))
}

// enveloped returns an envelope of a message.
func enveloped(message string) []byte {
	return append(binary.BigEndian.AppendUint32([]byte{0}, uint32(len(message))), message...)
}

// windowFrame returns a WINDOW_UPDATE frame.
func windowFrame(stream uint32, n int) []byte {
	return appendFrame(nil, frameWindowUpdate, 0, stream, binary.BigEndian.AppendUint32(nil, uint32(n)))
}

// envelopes are bodies of envelopes whose length is not declared.
var envelopes = rewrite.Framing{Kind: rewrite.Envelopes}

// answerWith returns a verdict that ends an exchange with a body.
func answerWith(body string) rewrite.Verdict {
	return rewrite.Verdict{Action: rewrite.Answer, Rule: "answers", Answer: &rewrite.Response{Status: 203, Body: []byte(body), Tail: []byte(body)}}
}

// TestLocalAnswerKeepsHeaderTable: a response that a rule supplies does not disturb the HPACK table to which the
// server's other responses refer.
func TestLocalAnswerKeepsHeaderTable(t *testing.T) {
	t.Parallel()
	k := newScripted(t, map[string]scripted{"/answered": {request: answerWith("local")}})
	up, down := newBlocks(), newBlocks()
	next := k.nextFrames(k.client)
	k.write(k.client, get(up, 1, "/other"))
	k.write(k.server, head(down, 1, "x-same", "value"), appendFrame(nil, frameData, flagEndStream, 1, []byte("first")))
	await(next, `1 DATA "first"`)
	k.write(k.client, get(up, 3, "/answered"))
	await(next, `3 DATA "local"`)
	k.write(k.client, get(up, 5, "/other"))
	k.write(k.server, head(down, 5, "x-same", "value"), appendFrame(nil, frameData, flagEndStream, 5, []byte("last")))
	if before := await(next, `5 DATA "last"`); !slices.Contains(before, "5 HEADERS :status=200 x-same=value, end false") {
		t.Errorf("got %q", before)
	}
}

// TestLongLocalAnswer: a response that a rule supplies uses the windows that the client grants, and ends if the client
// resets the stream.
func TestLongLocalAnswer(t *testing.T) {
	t.Parallel()
	const size = defaultWindow + 20_000
	long := strings.Repeat("x", size)
	k := newScripted(t, map[string]scripted{"/answered": {request: answerWith(long)}})
	up := newBlocks()
	framer := http2.NewFramer(nil, k.client)
	read := func(n int) {
		t.Helper()
		_ = k.client.SetReadDeadline(time.Now().Add(testTimeout))
		for n > 0 {
			f, err := framer.ReadFrame()
			if err != nil {
				t.Fatalf("%d bytes are missing: %v", n, err)
			}
			if d, ok := f.(*http2.DataFrame); ok {
				n -= len(d.Data())
			}
		}
	}
	k.write(k.client, get(up, 1, "/answered"))
	read(defaultWindow)
	k.write(k.client, windowFrame(0, size), windowFrame(1, size))
	read(20_000)
	k.write(k.client, get(up, 3, "/answered"))
	read(defaultWindow)
	k.write(k.client, resetFrame(3, codeCancel))
	if all := k.capture.ended(2); all[0].Outcome != captures.Complete || all[1].Outcome != captures.Canceled {
		t.Errorf("%s, %s", all[0].Outcome, all[1].Outcome)
	}
}

// TestStopBehindWatchedFrames: if a rule ends a response of which frames were forwarded before, the offsets of the
// recorded edits count the whole body.
func TestStopBehindWatchedFrames(t *testing.T) {
	t.Parallel()
	k := newScripted(t, map[string]scripted{"/": {framing: envelopes, matched: "stop", verdict: answerWith("tail")}})
	up, down := newBlocks(), newBlocks()
	atClient, atServer := k.nextFrames(k.client), k.nextFrames(k.server)
	k.write(k.client, get(up, 1, "/"))
	await(atServer, "1 HEADERS")
	passing := enveloped(strings.Repeat("p", 100))
	k.write(k.server, head(down, 1), appendFrame(nil, frameData, 0, 1, passing))
	await(atClient, "1 DATA")
	k.write(k.server, appendFrame(nil, frameData, 0, 1, slices.Concat(enveloped("stop"), enveloped("behind"))))
	await(atClient, `1 DATA "tail"`)
	x := k.capture.one()
	edits, err := k.capture.store.Edits(t.Context(), x.ID)
	if err != nil {
		t.Fatal(err)
	}
	received := int64(len(k.capture.body(x.ID, captures.Down)))
	at, tail := int64(len(passing)), ""
	for _, e := range edits {
		if e.Start != at || e.End < e.Start || e.End > received {
			t.Errorf("an edit from %d to %d of %d bytes; want it from %d", e.Start, e.End, received, at)
		}
		at, tail = e.End, tail+string(e.Data)
	}
	if at != received || tail != "tail" {
		t.Errorf("%d of %d bytes are covered, replaced by %q", at, received, tail)
	}
}

// TestWatchedBytesAreRepaid: the window updates for the bytes that were forwarded before a rule matched still reach the
// sender.
func TestWatchedBytesAreRepaid(t *testing.T) {
	t.Parallel()
	k := newScripted(t, map[string]scripted{"/": {framing: envelopes, matched: "match"}})
	up, down := newBlocks(), newBlocks()
	atClient, atServer := k.nextFrames(k.client), k.nextFrames(k.server)
	k.write(k.client, get(up, 1, "/"))
	await(atServer, "1 HEADERS")
	passing := enveloped(strings.Repeat("p", 10_000))
	k.write(k.server, head(down, 1))
	for range 5 {
		k.write(k.server, appendFrame(nil, frameData, 0, 1, passing))
		await(atClient, "1 DATA")
	}
	match := enveloped("match")
	k.write(k.server, appendFrame(nil, frameData, 0, 1, match))
	await(atClient, "match")
	k.write(k.client, windowFrame(1, 5*len(passing)+len(match)), appendFrame(nil, 0xbe, 0, 0, nil))
	granted := 0
	for _, f := range await(atServer, "UNKNOWN_FRAME_TYPE_190") {
		var n int
		if _, err := fmt.Sscanf(f, "1 WINDOW %d", &n); err == nil {
			granted += n
		}
	}
	if want := 5*len(passing) + len(match); granted != want {
		t.Errorf("%d of %d bytes were granted to the server", granted, want)
	}
}

// TestShrinkingWindow: if the receiver reduces the windows of streams, withheld bytes do not block the sender.
func TestShrinkingWindow(t *testing.T) {
	t.Parallel()
	k := newScripted(t, map[string]scripted{"/": {framing: rewrite.Framing{Kind: rewrite.Whole}}})
	up := newBlocks()
	next := k.nextFrames(k.client)
	k.write(k.client, request(up, 1, "10000", 0), appendFrame(nil, frameData, 0, 1, make([]byte, 5000)))
	k.awaitHeld(captures.Up, 5000)
	k.write(k.server, appendFrame(nil, frameSettings, 0, 0, []byte{0, settingInitialWindow, 0, 0, 0, 0}))
	for window := -5000; window < 5000; {
		var n int
		if _, err := fmt.Sscanf(next(), "1 WINDOW %d", &n); err == nil {
			window += n
		}
	}
}

// awaitHeld waits until n body bytes of a direction are withheld.
func (k *relayed) awaitHeld(d captures.Direction, n int) {
	k.t.Helper()
	p := k.relay.pumps[d]
	for deadline := time.Now().Add(testTimeout); ; time.Sleep(time.Millisecond) {
		p.busy.Lock()
		held := p.heldBytes
		p.busy.Unlock()
		if held == n {
			return
		}
		if time.Now().After(deadline) {
			k.t.Fatalf("%d bytes are withheld, want %d", held, n)
		}
	}
}

// TestEndedWhileWaiting: a rule may end an exchange whose request waits to be opened, and meanwhile the waiting
// requests are forced.
func TestEndedWhileWaiting(t *testing.T) {
	t.Parallel()
	k := newScripted(t, map[string]scripted{"/": {framing: rewrite.Framing{Kind: rewrite.Whole}}})
	up := newBlocks()
	k.write(k.client, request(up, 1, "10", 0), appendFrame(nil, frameData, 0, 1, []byte("hello")))
	k.awaitHeld(captures.Up, 5)
	p, c := k.relay.pumps[captures.Up], k.relay.changeOf(1)
	if received := p.endWatch(c); received != 5 {
		t.Errorf("%d bytes were received", received)
	}
	p.busy.Lock()
	p.forceOpenings(maxStreamID)
	p.busy.Unlock()
	k.awaitHeld(captures.Up, 0)
}

// TestLongPaddedFrame: a DATA frame that exceeds the buffer passes with its padding.
func TestLongPaddedFrame(t *testing.T) {
	t.Parallel()
	k := newScripted(t, map[string]scripted{"/": {framing: rewrite.Framing{Kind: rewrite.Opaque}}})
	up := newBlocks()
	k.write(k.client, post(up, 1, "/"))
	await(k.nextFrames(k.server), "1 HEADERS")
	payload := slices.Concat([]byte{200}, bytes.Repeat([]byte("x"), pumpSize), make([]byte, 200))
	frame := appendFrame(nil, frameData, flagPadded|flagEndStream, 1, payload)
	k.write(k.client, frame)
	k.expect(k.server, frame)
	k.expectWindow(k.relay.server.sender, defaultWindow-len(payload))
}

// TestWithheldAtEnd: what was withheld of a response is forwarded when the server's connection ends.
func TestWithheldAtEnd(t *testing.T) {
	t.Parallel()
	k := newScripted(t, map[string]scripted{"/": {framing: rewrite.Framing{Kind: rewrite.Whole}}, "/stream": {framing: envelopes, matched: "match"}})
	up, down := newBlocks(), newBlocks()
	next, atServer := k.nextFrames(k.client), k.nextFrames(k.server)
	k.write(k.client, get(up, 1, "/"), get(up, 3, "/stream"), get(up, 5, "/"))
	await(atServer, "5 HEADERS")
	k.write(k.server, head(down, 1, "content-length", "10"), appendFrame(nil, frameData, 0, 1, []byte("hello")),
		head(down, 5, "content-length", "1"), appendFrame(nil, frameData, 0, 5, []byte("more")),
		head(down, 3), appendFrame(nil, frameData, 0, 3, enveloped("cut off")[:7]))
	k.awaitHeld(captures.Down, 16)
	k.server.Close()
	if before := await(next, `3 DATA "\x00\x00\x00\x00\acu"`); !slices.Contains(before, `1 DATA "hello", end false`) || !slices.Contains(before, `5 DATA "more", end false`) ||
		!slices.Contains(before, "1 HEADERS :status=200 content-length=10, end false") {
		t.Errorf("got %q", before)
	}
}

// TestBodyLongerThanDeclared: a response with more bytes than its content-length declares is malformed. It is forwarded
// as it came, even if a rule matches it, and the recording says why it failed.
func TestBodyLongerThanDeclared(t *testing.T) {
	t.Parallel()
	replace := rewrite.Verdict{Action: rewrite.Replace, Rule: "r", Messages: [][]byte{[]byte("HELLO")}}
	k := newScripted(t, map[string]scripted{"/": {framing: rewrite.Framing{Kind: rewrite.Whole}, matched: "hello", verdict: replace}})
	up, down := newBlocks(), newBlocks()
	next, atServer := k.nextFrames(k.client), k.nextFrames(k.server)
	k.write(k.client, get(up, 1, "/"))
	await(atServer, "1 HEADERS")
	k.write(k.server, head(down, 1, "content-length", "5"), appendFrame(nil, frameData, 0, 1, []byte("hello")),
		appendFrame(nil, frameData, flagEndStream, 1, []byte("tail")))
	await(next, "1 HEADERS :status=200 content-length=5, end false")
	await(next, `1 DATA "hellotail", end false`)
	await(next, `1 DATA "", end true`)
	if ex := k.capture.one(); ex.Outcome != captures.Reset || ex.Error != "the body has 9 bytes, but its content-length is 5" {
		t.Errorf("recorded %q, %q", ex.Outcome, ex.Error)
	}
}

// TestCutBeforeHead: a response that was withheld completely is not forwarded once a rule has ended the exchange.
func TestCutBeforeHead(t *testing.T) {
	t.Parallel()
	k := newScripted(t, map[string]scripted{"/": {framing: rewrite.Framing{Kind: rewrite.Whole}}})
	up, down := newBlocks(), newBlocks()
	atClient, atServer := k.nextFrames(k.client), k.nextFrames(k.server)
	k.write(k.client, get(up, 1, "/"))
	await(atServer, "1 HEADERS")
	k.write(k.server, head(down, 1, "content-length", "10"), appendFrame(nil, frameData, 0, 1, []byte("hello")))
	k.awaitHeld(captures.Down, 5)
	c := k.relay.changeOf(1)
	c.mu.Lock()
	c.cut = true
	c.mu.Unlock()
	k.write(k.server, appendFrame(nil, frameData, flagEndStream, 1, []byte("world")), appendFrame(nil, 0xbe, 0, 0, nil))
	if before := await(atClient, "UNKNOWN_FRAME_TYPE_190"); len(before) > 0 {
		t.Errorf("got %q", before)
	}
	granted := 0
	for granted < 10 {
		var n int
		if _, err := fmt.Sscanf(atServer(), "0 WINDOW %d", &n); err == nil {
			granted += n
		}
	}
	k.expectWindow(k.relay.client.sender, defaultWindow)
}

// TestBlockWithinWithheldFrame: a header block that does not end the stream comes within a frame of which a part is
// withheld. The windows of the receiver count what is forwarded, and no more.
func TestBlockWithinWithheldFrame(t *testing.T) {
	t.Parallel()
	k := newScripted(t, map[string]scripted{"/": {framing: envelopes, matched: "match"}})
	up, down := newBlocks(), newBlocks()
	atClient, atServer := k.nextFrames(k.client), k.nextFrames(k.server)
	k.write(k.client, get(up, 1, "/"))
	await(atServer, "1 HEADERS")
	frame := enveloped("a frame")
	k.write(k.server, head(down, 1), appendFrame(nil, frameData, 0, 1, frame[:8]))
	k.awaitHeld(captures.Down, 8)
	k.write(k.server, head(down, 1, "x-malformed", "yes"), appendFrame(nil, frameData, flagEndStream, 1, frame[8:]))
	var body string
	for len(body) < len(frame) {
		var part string
		f := atClient()
		if _, err := fmt.Sscanf(f, "1 DATA %q", &part); err == nil {
			body += part
		}
	}
	if body != string(frame) {
		t.Errorf("got %q", body)
	}
	k.capture.one()
	k.expectWindow(k.relay.client.sender, defaultWindow-len(frame))
}

// expectWindow compares the window of a connection.
func (k *relayed) expectWindow(w *sender, want int) {
	k.t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.window != int64(want) {
		k.t.Errorf("the window has %d bytes, want %d", w.window, want)
	}
}

// TestWithheldHeadIsWrittenWithTheRest: the head of a request that waits for its body is written together with the body
// and with the frames before it, in one TLS record.
func TestWithheldHeadIsWrittenWithTheRest(t *testing.T) {
	t.Parallel()
	k := newScripted(t, map[string]scripted{"/p": {framing: rewrite.Framing{Kind: rewrite.Whole}}})
	up := newBlocks()
	for stream := uint32(1); stream < 7; stream += 2 {
		all := bytes.Join([][]byte{
			windowFrame(0, 7),
			appendFrame(nil, frameHeaders, flagEndHeaders, stream, up(":method", "POST", ":path", "/p", ":scheme", "https", ":authority", "a.example", "content-length", "5")),
			appendFrame(nil, frameData, flagEndStream, stream, []byte("hello")),
		}, nil)
		k.write(k.client, all)
		got := make([]byte, 1<<10)
		_ = k.server.SetReadDeadline(time.Now().Add(testTimeout))
		if n, err := k.server.Read(got); err != nil || !bytes.Equal(got[:n], all) {
			t.Fatalf("%q, %v, want %q", got[:n], err, all)
		}
	}
}
