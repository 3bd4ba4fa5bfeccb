package h2

import (
	"bytes"
	"context"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http2"

	"unwire/captures"
	"unwire/decode/envelope"
	"unwire/mitm/rewrite"
)

// slowly changes nothing, and takes a moment for each frame.
type slowly struct{}

func (slowly) Changes(captures.Direction) bool { return true }
func (slowly) Diverts(captures.Direction) bool { return true }
func (slowly) Request() rewrite.Verdict        { return rewrite.Verdict{} }
func (slowly) Response(int, captures.Headers)  {}
func (slowly) Framing(captures.Direction) rewrite.Framing {
	return rewrite.Framing{Kind: rewrite.Whole}
}
func (slowly) Pace(context.Context, captures.Direction, int)                   {}
func (slowly) Passes(*rewrite.Frame) bool                                      { return false }
func (slowly) ClientLeft()                                                     {}
func (slowly) PassesEnvelopes(captures.Direction, []byte) (passed, frames int) { return 0, 0 }
func (slowly) PassesMessage(captures.Direction, envelope.Flags, []byte) bool {
	return false
}
func (slowly) Paces() bool                       { return false }
func (slowly) Recorded(int64)                    {}
func (slowly) Passed(captures.Direction, string) {}
func (slowly) End()                              {}
func (slowly) Frame(context.Context, *rewrite.Frame) (v rewrite.Verdict) {
	time.Sleep(20 * time.Millisecond)
	return v
}

// TestServerResetsTwice: a server that has answered without reading the request resets the stream, and once more when
// the rest of the request arrives. The client still gets the answer.
func TestServerResetsTwice(t *testing.T) {
	t.Parallel()
	for range 20 {
		k := newSilentServer(t, func(c *Config) {
			c.rewriteWith(func(string) rewrite.Exchange { return slowly{} })
		})
		k.send(k.server, appendFrame(nil, frameSettings, 0, 0, nil))
		up, down := newBlocks(), newBlocks()
		request := appendFrame(nil, frameHeaders, flagEndHeaders, 1, up(":method", "POST", ":path", "/", ":scheme", "https", ":authority", "a.example"))
		if _, err := k.client.Write(request); err != nil {
			t.Fatal(err)
		}
		atServer := http2.NewFramer(nil, k.server)
		_ = k.server.SetReadDeadline(time.Now().Add(testTimeout))
		if f, err := atServer.ReadFrame(); err != nil || f.Header().Type != http2.FrameHeaders {
			t.Fatalf("%v, %v", f, err)
		}

		answer := appendFrame(nil, frameHeaders, flagEndHeaders, 1, down(":status", "404", "content-length", "5"))
		answer = appendFrame(answer, frameData, flagEndStream, 1, []byte("hello"))
		answer = append(append(answer, resetFrame(1, 0)...), resetFrame(1, 5)...)
		if _, err := k.server.Write(answer); err != nil {
			t.Fatal(err)
		}
		var body bytes.Buffer
		atClient := http2.NewFramer(nil, k.client)
		_ = k.client.SetReadDeadline(time.Now().Add(testTimeout))
		for ended := false; !ended; {
			f, err := atClient.ReadFrame()
			if err != nil {
				t.Fatal(err)
			}
			switch f := f.(type) {
			case *http2.DataFrame:
				body.Write(f.Data())
				ended = f.StreamEnded()
			case *http2.RSTStreamFrame:
				t.Fatalf("%v came after %q", f, body.String())
			}
		}
		if x := k.capture.one(); body.String() != "hello" || x.Outcome != captures.Complete || x.Status != 404 {
			t.Fatalf("%q, %s %s", body.String(), x.Outcome, x.Error)
		}
		k.client.Close()
		k.server.Close()
		k.wait()
	}
}

// oneWay is slowly for one direction. heads counts the responses that it was told of.
type oneWay struct {
	slowly
	dir   captures.Direction
	heads chan int
}

func (o oneWay) Changes(d captures.Direction) bool       { return d == o.dir }
func (o oneWay) Diverts(d captures.Direction) bool       { return d == o.dir }
func (o oneWay) Response(status int, _ captures.Headers) { o.heads <- status }

// TestOneDirection: if rules can only match one direction, the other passes byte for byte.
func TestOneDirection(t *testing.T) {
	t.Parallel()
	for _, dir := range []captures.Direction{captures.Up, captures.Down} {
		t.Run(dir.String(), func(t *testing.T) {
			t.Parallel()
			heads := make(chan int, 10)
			k := newSilentServer(t, func(c *Config) {
				c.rewriteWith(func(string) rewrite.Exchange { return oneWay{dir: dir, heads: heads} })
			})
			k.send(k.server, appendFrame(nil, frameSettings, 0, 0, nil))
			up, down := newBlocks(), newBlocks()
			request := appendFrame(nil, frameHeaders, flagEndHeaders, 1, up(":method", "POST", ":path", "/", ":scheme", "https", ":authority", "a.example", "x-twice", "v"))
			request = appendFrame(request, frameData, flagPadded, 1, []byte("\x02hello\x00\x00"))
			request = appendFrame(request, frameData, flagEndStream, 1, nil)
			answer := appendFrame(nil, frameHeaders, flagEndHeaders, 1, down(":status", "103", "link", "</a>"))
			answer = appendFrame(answer, frameHeaders, flagEndHeaders, 1, down(":status", "201", "x-twice", "v"))
			answer = appendFrame(answer, frameData, flagPadded, 1, []byte("\x02world\x00\x00"))
			answer = appendFrame(answer, frameHeaders, flagEndHeaders|flagEndStream, 1, down("x-tail", "t"))
			if dir == captures.Down {
				k.send(k.client, request)
				if _, err := k.server.Write(answer); err != nil {
					t.Fatal(err)
				}
				k.read(k.client, "world")
			} else {
				if _, err := k.client.Write(request); err != nil {
					t.Fatal(err)
				}
				k.read(k.server, "hello")
				if _, err := k.server.Write(answer); err != nil {
					t.Fatal(err)
				}
				if got := k.readWithoutWindows(k.client, len(answer)); !bytes.Equal(got, answer) {
					t.Errorf("got %q, want %q", got, answer)
				}
			}
			if status := <-heads; status != 201 || len(heads) > 0 {
				t.Errorf("told of status %d, and %d more", status, len(heads))
			}
			if x := k.capture.one(); x.Status != 201 || x.Outcome != captures.Complete || string(k.capture.body(x.ID, captures.Up)) != "hello" ||
				string(k.capture.body(x.ID, captures.Down)) != "world" || x.ResponseTrailers.Get("x-tail") != "t" {
				t.Errorf("%+v", x)
			}
		})
	}
}

// read reads frames until END_STREAM, and expects a body.
func (k *relayed) read(at net.Conn, want string) {
	k.t.Helper()
	_ = at.SetReadDeadline(time.Now().Add(testTimeout))
	framer := http2.NewFramer(nil, at)
	var body bytes.Buffer
	for {
		f, err := framer.ReadFrame()
		if err != nil {
			k.t.Fatal(err)
		}
		if f, ok := f.(*http2.DataFrame); ok {
			body.Write(f.Data())
		}
		if (f.Header().Type == http2.FrameData || f.Header().Type == http2.FrameHeaders) && f.Header().Flags.Has(http2.FlagDataEndStream) {
			break
		}
	}
	if body.String() != want {
		k.t.Errorf("%q, want %q", body.String(), want)
	}
}

// readWithoutWindows reads n bytes of frames, apart from window updates: the relay grants some itself.
func (k *relayed) readWithoutWindows(at net.Conn, n int) (out []byte) {
	k.t.Helper()
	_ = at.SetReadDeadline(time.Now().Add(testTimeout))
	for len(out) < n {
		head := make([]byte, frameHeaderSize)
		if _, err := io.ReadFull(at, head); err != nil {
			k.t.Fatal(err)
		}
		h := parseFrameHeader(head)
		payload := make([]byte, h.length)
		if _, err := io.ReadFull(at, payload); err != nil {
			k.t.Fatal(err)
		}
		if h.kind != frameWindowUpdate {
			out = append(append(out, head...), payload...)
		}
	}
	return out
}

// dataFrames returns DATA frames of a body that end a stream.
func dataFrames(stream uint32, body []byte) (frames []byte) {
	for len(body) > defaultFrameSize {
		frames = appendFrame(frames, frameData, 0, stream, body[:defaultFrameSize])
		body = body[defaultFrameSize:]
	}
	return appendFrame(frames, frameData, flagEndStream, stream, body)
}

// TestRuleEndsAfterResponse: if a rule ends an exchange at a frame of the request, and the client has already received
// the server's whole response, then nothing but a reset follows that response, and the exchange ends.
func TestRuleEndsAfterResponse(t *testing.T) {
	t.Parallel()
	// A long frame is not examined before it is complete, and goes through an inbox.
	long := strings.Repeat("long", 5000)
	for _, c := range []struct {
		early   string
		verdict rewrite.Verdict
	}{
		{"early", answerWith("tail")},
		{long, answerWith("tail")},
		{"early", rewrite.Verdict{Action: rewrite.Reset, Rule: "resets"}},
		{long, rewrite.Verdict{Action: rewrite.Reset, Rule: "resets"}},
	} {
		k := newScripted(t, map[string]scripted{"/": {framing: envelopes, matched: "stop", verdict: c.verdict}})
		up, down := newBlocks(), newBlocks()
		atClient, atServer := k.nextFrames(k.client), k.nextFrames(k.server)
		k.write(k.client, post(up, 1, "/"))
		await(atServer, "1 HEADERS")
		k.write(k.server, head(down, 1), dataFrames(1, enveloped(c.early)))
		await(atClient, ", end true")
		k.write(k.client, appendFrame(nil, frameData, 0, 1, enveloped("stop")))
		await(atServer, "1 RST_STREAM")
		want := captures.Complete
		if c.verdict.Action == rewrite.Reset {
			want = captures.Reset
		}
		if x := k.capture.one(); x.Outcome != want {
			t.Errorf("%s %s; want %s", x.Outcome, x.Error, want)
		}
		k.write(k.client, post(up, 3, "/other"))
		await(atServer, "3 HEADERS")
		k.write(k.server, head(down, 3))
		for _, f := range await(atClient, "3 HEADERS") {
			if strings.HasPrefix(f, "1 HEADERS") || strings.HasPrefix(f, "1 DATA") {
				t.Errorf("%s follows a complete response", f)
			}
		}
	}
}

// TestCutStreamsAreBounded: a connection on which a rule ends many streams remembers the last ones only.
func TestCutStreamsAreBounded(t *testing.T) {
	t.Parallel()
	r := &Relay{config: Config{Rewrites: true}, cut: make(map[uint32]struct{})}
	const streams = 3*maxCut + 7
	for i := range uint32(streams) {
		r.cutStream(2*i + 1)
	}
	if len(r.cut) != maxCut || len(r.cutOrder) != maxCut {
		t.Errorf("%d streams are remembered, in a list of %d", len(r.cut), len(r.cutOrder))
	}
	if last := uint32(2*streams - 1); !r.isCut(last) || !r.isCut(last-2*(maxCut-1)) || r.isCut(last-2*maxCut) {
		t.Error("these are not the last ones")
	}
}
