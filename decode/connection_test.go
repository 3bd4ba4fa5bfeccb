package decode

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
	"pgregory.net/rapid"

	"unwire/captures"
	"unwire/decode/envelope"
)

// connection makes a complete exchange without HTTP.
func connection(transport captures.Transport, url string, chunks ...captures.Chunk) *one {
	o := &one{ex: captures.Exchange{ID: 7, Transport: transport, URL: url, Outcome: captures.Complete, Duration: time.Second}}
	for i, c := range chunks {
		c.Exchange, c.Seq, c.T = 7, int64(i), time.Duration(i+1)*time.Millisecond
		o.chunks = append(o.chunks, c)
	}
	return o
}

func sent(dir captures.Direction, op captures.Opcode, data string) captures.Chunk {
	return captures.Chunk{Dir: dir, Opcode: op, Data: []byte(data)}
}

// describe is a line about each frame.
func describe(ex *Exchange) string {
	var b strings.Builder
	for i := range ex.Frames {
		f := &ex.Frames[i]
		fmt.Fprintf(&b, "%s/%d @%d %s %q", f.Dir, f.Seq, f.Offset, OpcodeName(f.Opcode), f.Data)
		if f.Framed {
			fmt.Fprintf(&b, " flags %s", f.Flags)
		}
		if f.Encoding != "" {
			fmt.Fprintf(&b, " in %s", f.Encoding)
		}
		if f.Compressed() && f.Encoding == "" {
			b.WriteString(" compressed")
		}
		if f.Tree != nil {
			b.WriteString(" tree")
		}
		if f.Close != nil {
			fmt.Fprintf(&b, " %s", f.Close)
		}
		if f.Partial {
			b.WriteString(" partial")
		}
		if f.Err != nil {
			fmt.Fprintf(&b, " error")
		}
		if ex.IsControl(f) {
			b.WriteString(" control")
		}
		b.WriteByte('\n')
	}
	return b.String()
}

const final = captures.OpFinal

func TestWebSocketFrames(t *testing.T) {
	t.Parallel()
	message := string(protowire.AppendString([]byte{0x0a}, "a greeting of some length"))
	packed, err := envelope.Compress("gzip", []byte(message))
	if err != nil {
		t.Fatal(err)
	}
	up, down := captures.Up, captures.Down
	src := connection(captures.WebSocket, "wss://h/chat",
		sent(up, captures.OpText|final, `{"type":"hello"}`),
		sent(down, captures.OpText, `{"type":`),
		sent(down, captures.OpPing|final, "are you there"),
		sent(down, captures.OpContinuation|final, `"welcome"}`),
		sent(up, captures.OpPong|final, "are you there"),
		sent(up, captures.OpBinary|captures.OpCompressed|final, message),
		sent(up, captures.OpText|final, ""),
		sent(down, captures.OpBinary|final, string(packed)),
		sent(down, captures.OpText|final, base64.StdEncoding.EncodeToString([]byte(message))),
		sent(down, captures.OpBinary|final, string(envelope.Append(nil, 0, []byte(message)))),
		sent(up, captures.OpBinary|final, "\x00"+string(envelope.Append(nil, envelope.Compressed, packed))),
		sent(up, captures.OpText|final, base64.StdEncoding.EncodeToString(envelope.Append(nil, 0, []byte(message)))),
		sent(down, captures.OpClose|final, "\x03\xe8done"),
		sent(up, captures.OpClose|final, ""),
		sent(up, captures.OpBinary, "cut"),
	)
	ex, err := Decode(t.Context(), src, 7, Options{})
	if err != nil {
		t.Fatal(err)
	}
	q := fmt.Sprintf("%q", message)
	want := `up/0 @0 text "{\"type\":\"hello\"}"
down/0 @8 ping "are you there" control
down/1 @0 text "{\"type\":\"welcome\"}"
up/1 @16 pong "are you there" control
up/2 @16 binary ` + q + ` compressed tree
up/3 @43 text ""
down/2 @18 binary ` + q + ` in gzip tree
down/3 @` + fmt.Sprint(18+len(packed)) + ` text ` + q + ` in base64 tree
`
	got := describe(ex)
	if !strings.HasPrefix(got, want) {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	for _, line := range []string{
		"binary " + q + " flags 0 tree\n",
		"binary " + q + " flags compressed in gzip tree\n",
		"text " + q + " flags 0 in base64 tree\n",
		`close "\x03\xe8done" close 1000: done control` + "\n",
		`close "" close 1005 control` + "\n",
		`binary "cut" partial error` + "\n",
	} {
		if !strings.Contains(got, line) {
			t.Errorf("no %q in\n%s", line, got)
		}
	}
	if ex.Protocol != Protocol(captures.WebSocket) || ex.Codec != "mixed" || ex.Code != "ok" || ex.Err == nil {
		t.Errorf("%s %s %s: %v", ex.Protocol, ex.Codec, ex.Code, ex.Err)
	}

	line, err := json.Marshal(View{}.Line(ex.Frame(down, 5)))
	if err != nil || !strings.Contains(string(line), `"opcode":"close","close":{"code":1000,"reason":"done"}`) {
		t.Errorf("%s %v", line, err)
	}
}

// A message of several envelopes is a frame for each; what only looks like one stays whole.
func TestSeveralEnvelopes(t *testing.T) {
	t.Parallel()
	message := protowire.AppendString([]byte{0x0a}, "a greeting of some length")
	packed, err := envelope.Compress("gzip", message)
	if err != nil {
		t.Fatal(err)
	}
	run := envelope.Append(envelope.Append(nil, 0, message), envelope.Compressed, packed)
	q := fmt.Sprintf("%q", message)
	for name, c := range map[string]struct{ data, want string }{
		"two": {string(run), "down/0 @0 binary " + q + " flags 0 tree\n" + "down/1 @" + fmt.Sprint(5+len(message)) + " binary " + q + " flags compressed in gzip tree\n"},
		"with a 0 and an end": {
			"\x00" + string(envelope.Append(run, envelope.Trailer, []byte("grpc-status: 0\r\n"))),
			"down/0 @1 binary " + q + " flags 0 tree\n" + "down/1 @" + fmt.Sprint(6+len(message)) + " binary " + q + " flags compressed in gzip tree\n" +
				"down/2 @" + fmt.Sprint(1+len(run)) + ` binary "grpc-status: 0\r\n" flags trailer control` + "\n",
		},
		"zeros":  {strings.Repeat("\x00", 20), ""},
		"no run": {string(run) + "x", ""},
		"others": {string(envelope.Append(envelope.Append(nil, 0, message), 0, []byte("\xff\xff"))), ""},
	} {
		src := connection(captures.WebSocket, "wss://h/chat", sent(captures.Down, captures.OpBinary|final, c.data), sent(captures.Down, captures.OpBinary|final, "\x08\x01"))
		ex, err := Decode(t.Context(), src, 7, Options{})
		if err != nil || ex.Err != nil {
			t.Fatal(err, ex.Err)
		}
		want := c.want
		if want == "" {
			want = fmt.Sprintf("down/0 @0 binary %q", c.data)
		} else {
			want += fmt.Sprintf("down/%d @%d binary \"\\b\\x01\" tree\n", strings.Count(want, "\n"), len(c.data))
		}
		if got := describe(ex); !strings.HasPrefix(got, want) {
			t.Errorf("%s: got\n%s\nwant\n%s", name, got, want)
		}
	}
}

// A WebSocket is a failure if it was closed as one.
func TestWebSocketStatus(t *testing.T) {
	t.Parallel()
	for data, want := range map[string]string{
		"\x03\xe8": "ok", "\x03\xe9bye": "ok", "": "ok",
		"\x03\xf3boom": "unknown the server ended the WebSocket: close 1011: boom",
	} {
		src := connection(captures.WebSocket, "wss://h/", sent(captures.Down, captures.OpClose|final, data), sent(captures.Up, captures.OpClose|final, "\x03\xe8"))
		ex, err := Decode(t.Context(), src, 7, Options{})
		if got := strings.TrimSpace(ex.Code + " " + ex.Message); err != nil || got != want {
			t.Errorf("%q: %q, %v", data, got, err)
		}
	}
}

// Fragments in any order of the directions are one frame a message, with all its bytes.
func TestWebSocketMessagesAreWhole(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var want [2][]string
		var queues [2][]captures.Chunk
		for dir := range queues {
			for range rapid.IntRange(0, 5).Draw(t, "messages") {
				whole := ""
				parts := rapid.IntRange(1, 4).Draw(t, "parts")
				op := captures.OpText
				for i := range parts {
					// Control characters: no message is base64 or JSON by chance.
					data := rapid.StringMatching(`[!-%]{0,6}`).Draw(t, "data")
					whole += data
					if i == parts-1 {
						op |= final
					}
					queues[dir] = append(queues[dir], sent(captures.Direction(dir), op, data))
					op = captures.OpContinuation
				}
				want[dir] = append(want[dir], whole)
			}
		}
		var chunks []captures.Chunk
		for len(queues[0])+len(queues[1]) > 0 {
			dir := rapid.IntRange(0, 1).Draw(t, "next")
			if len(queues[dir]) == 0 {
				dir = 1 - dir
			}
			chunks, queues[dir] = append(chunks, queues[dir][0]), queues[dir][1:]
		}
		ex, err := Decode(t.Context(), connection(captures.WebSocket, "ws://h/", chunks...), 7, Options{})
		if err != nil || ex.Err != nil {
			t.Fatal(err, ex.Err)
		}
		var got [2][]string
		for i := range ex.Frames {
			got[ex.Frames[i].Dir] = append(got[ex.Frames[i].Dir], string(ex.Frames[i].Data))
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Fatalf("%q, want %q", got, want)
		}
	})
}

func TestRawChunksAreFrames(t *testing.T) {
	t.Parallel()
	src := connection(captures.RawTLS, "tls://mail:465",
		captures.Chunk{Dir: captures.Down, Data: []byte("220 hello\r\n")},
		captures.Chunk{Dir: captures.Up, Data: []byte("EHLO me\r\n")},
		captures.Chunk{Dir: captures.Down, Data: []byte("250 ok\r\n")},
	)
	ex, err := Decode(t.Context(), src, 7, Options{})
	want := "down/0 @0 continuation \"220 hello\\r\\n\"\nup/0 @0 continuation \"EHLO me\\r\\n\"\ndown/1 @11 continuation \"250 ok\\r\\n\"\n"
	if got := describe(ex); err != nil || ex.Err != nil || got != want || ex.Protocol != Protocol(captures.RawTLS) || ex.Code != "ok" {
		t.Errorf("%s%v %v %s %s", got, err, ex.Err, ex.Protocol, ex.Code)
	}
}

// Each way of delimiting splits the same messages out of any chunks.
func TestSplit(t *testing.T) {
	t.Parallel()
	prefix := map[Splitting]func([]byte, int) []byte{
		splitVarint:       func(b []byte, n int) []byte { return protowire.AppendVarint(b, uint64(n)) },
		SplitBigEndian:    func(b []byte, n int) []byte { return append(b, byte(n>>24), byte(n>>16), byte(n>>8), byte(n)) },
		SplitLittleEndian: func(b []byte, n int) []byte { return append(b, byte(n), byte(n>>8), byte(n>>16), byte(n>>24)) },
		splitEnvelopes: func(b []byte, n int) []byte {
			return append(b, 0, byte(n>>24), byte(n>>16), byte(n>>8), byte(n))
		},
	}
	for by, add := range prefix {
		rapid.Check(t, func(t *rapid.T) {
			var want, stream []byte
			n := rapid.IntRange(0, 6).Draw(t, "messages")
			for range n {
				data := protowire.AppendString([]byte{0x12}, rapid.StringN(0, 300, -1).Draw(t, "text"))
				stream = append(add(stream, len(data)), data...)
				want = append(want, data...)
			}
			var chunks []captures.Chunk
			for rest := stream; len(rest) > 0; {
				k := rapid.IntRange(1, len(rest)).Draw(t, "chunk")
				chunks = append(chunks, captures.Chunk{Dir: captures.Down, Data: rest[:k:k]})
				rest = rest[k:]
			}
			ex, err := Decode(t.Context(), connection(captures.RawTCP, "tcp://h:1", chunks...), 7, Options{Split: by})
			if err != nil || ex.Err != nil || len(ex.Frames) != n {
				t.Fatalf("%s: %d frames of %d: %v %v", by, len(ex.Frames), n, err, ex.Err)
			}
			var got []byte
			end := int64(0)
			for i := range ex.Frames {
				f := &ex.Frames[i]
				if f.Tree == nil || f.Offset != end {
					t.Fatalf("%s: frame %d at %d, want %d; tree %v", by, i, f.Offset, end, f.Tree)
				}
				end += int64(f.Len)
				got = append(got, f.Data...)
			}
			if !bytes.Equal(got, want) || end != int64(len(stream)) {
				t.Fatalf("%s: %x, want %x", by, got, want)
			}
		})
	}
}

// What does not split is there, with the place where it begins.
func TestSplitLosesNothing(t *testing.T) {
	t.Parallel()
	src := connection(captures.RawTCP, "tcp://h:1",
		captures.Chunk{Dir: captures.Up, Data: []byte("\x00\x00\x00\x02\x08\x01HTTP and")},
		captures.Chunk{Dir: captures.Up, Data: []byte(" more")},
		captures.Chunk{Dir: captures.Down, Data: []byte("\x00\x00\x00\x09\x08\x01")},
	)
	ex, err := Decode(t.Context(), src, 7, Options{Split: SplitBigEndian})
	want := `up/0 @0 continuation "\b\x01" tree
up/1 @6 continuation "HTTP and" error
up/2 @14 continuation " more" error
down/0 @0 continuation "\b\x01" tree partial error
`
	if got := describe(ex); err != nil || got != want || !strings.Contains(fmt.Sprint(ex.Err), "at 0x6:") {
		t.Errorf("%s%v %v", got, err, ex.Err)
	}
}

func BenchmarkWebSocketFrames(b *testing.B) {
	var chunks []captures.Chunk
	for range 1000 {
		chunks = append(chunks, sent(captures.Down, captures.OpText|final, `{"type":"delta","text":"some words of an answer"}`))
	}
	src := connection(captures.WebSocket, "wss://h/chat", chunks...)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Decode(b.Context(), src, 7, Options{}); err != nil {
			b.Fatal(err)
		}
	}
}

// On a connection with protobuf, a binary message that is text by chance is protobuf too: the tag and the length of
// its only field are printable.
func TestProtobufLikeText(t *testing.T) {
	t.Parallel()
	up, op := captures.Up, captures.OpBinary|final
	likeText := string(protowire.AppendString([]byte{0x52}, strings.Repeat("id", 21)))
	ex, err := Decode(t.Context(), connection(captures.WebSocket, "wss://h/chat",
		sent(up, op, likeText),
		sent(up, op, string(protowire.AppendString([]byte{0x12}, "begins"))),
		sent(up, op, likeText),
		sent(up, op, "It is a plain text, whatever came before."),
		sent(up, captures.OpText|final, likeText),
	), 7, Options{})
	if err != nil {
		t.Fatal(err)
	}
	want := []bool{false, true, true, false, false}
	for i, f := range ex.Frames {
		if (f.Tree != nil) != want[i] {
			t.Errorf("message %d, %q, is protobuf: %v, want %v", i, f.Data, f.Tree != nil, want[i])
		}
	}
}
