package websocket

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/gobwas/ws"
	"github.com/klauspost/compress/flate"
	"pgregory.net/rapid"

	"unwire/captures"
)

// frame returns a frame of a server, whose reserved bits are those of rsv.
func frame(op ws.OpCode, fin bool, rsv byte, payload string) string {
	var b bytes.Buffer
	_ = ws.WriteFrame(&b, ws.Frame{Header: ws.Header{Fin: fin, Rsv: rsv, OpCode: op, Length: int64(len(payload))}, Payload: []byte(payload)})
	return b.String()
}

// compressed returns a message's payload; final ends it with a last block.
func compressed(t testing.TB, text string, final bool) string {
	t.Helper()
	var b bytes.Buffer
	w, err := flate.NewWriter(&b, flate.BestCompression)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = w.Write([]byte(text))
	if final {
		_ = w.Close()
		return b.String() + "\x00"
	}
	_ = w.Flush()
	return strings.TrimSuffix(b.String(), string(messageTail))
}

const rsv1 = 4

// down records bytes from a server, and returns what the messages are and what else.
func down(t testing.TB, m *memory, extensions string, pieces ...string) (messages []string, rest string, errText string) {
	t.Helper()
	rec := handshake(t, m, extensions)
	for _, p := range pieces {
		rec.Chunk(captures.Down, []byte(p))
	}
	rec.End(captures.Complete, "")
	if len(m.all) == 3 {
		r := m.all[2]
		if r.Transport != captures.RawTLS || r.URL != "tls://chat.example:443" || r.related != 1 || r.Outcome != captures.Complete {
			t.Errorf("the rest: %+v", r.Exchange)
		}
		rest = string(r.body(captures.Down))
	}
	return m.all[1].messages(captures.Down), rest, m.all[1].Error
}

// TestFrames: frames that belong together and those that come between them.
func TestFrames(t *testing.T) {
	const deflate = "permessage-deflate"
	text := strings.Repeat("hello ", 20)
	for name, c := range map[string]struct {
		extensions, wire string
		want             []string
	}{
		"an empty message":     {"", frame(ws.OpText, true, 0, ""), []string{"1 "}},
		"an empty first frame": {"", frame(ws.OpBinary, false, 0, "") + frame(ws.OpContinuation, true, 0, "ab"), []string{"2 ab"}},
		"an empty last frame":  {"", frame(ws.OpText, false, 0, "ab") + frame(ws.OpContinuation, true, 0, ""), []string{"1 ab"}},
		"a ping within":        {"", frame(ws.OpText, false, 0, "a") + frame(ws.OpPing, true, 0, "p") + frame(ws.OpContinuation, true, 0, "b"), []string{"9 p", "1 ab"}},
		"a ping within a compressed one": {
			deflate,
			frame(ws.OpText, false, rsv1, compressed(t, text, false)[:5]) + frame(ws.OpPong, true, 0, "") + frame(ws.OpContinuation, true, 0, compressed(t, text, false)[5:]),
			[]string{"10 ", "65 " + text},
		},
		"a last block": {
			deflate,
			frame(ws.OpText, true, rsv1, compressed(t, text, true)) + frame(ws.OpText, true, rsv1, compressed(t, "x", false)) + frame(ws.OpText, true, rsv1, compressed(t, text, true)),
			[]string{"65 " + text, "65 x", "65 " + text},
		},
		"no takeover": {
			deflate + "; server_no_context_takeover; server_max_window_bits=9",
			frame(ws.OpText, true, rsv1, compressed(t, text, false)) + frame(ws.OpBinary, true, rsv1, compressed(t, text, false)),
			[]string{"65 " + text, "66 " + text},
		},
		"one that is not compressed": {deflate, frame(ws.OpText, true, 0, "plain") + frame(ws.OpText, true, rsv1, "\x00"), []string{"1 plain", "65 "}},
		"close":                      {"", frame(ws.OpClose, true, 0, "\x03\xe8bye"), []string{"8 \x03\xe8bye"}},
	} {
		for _, size := range []int{1, 3, 1 << 20} {
			var pieces []string
			for p := c.wire; p != ""; p = p[min(size, len(p)):] {
				pieces = append(pieces, p[:min(size, len(p))])
			}
			got, rest, errText := down(t, new(memory), c.extensions, pieces...)
			if fmt.Sprintf("%q", got) != fmt.Sprintf("%q", c.want) || rest != "" || errText != "" {
				t.Errorf("%s, in pieces of %d: %q, rest %q, error %q", name, size, got, rest, errText)
			}
		}
	}
}

// TestMalformed: where frames make no sense, the bytes are kept as they are.
func TestMalformed(t *testing.T) {
	ok := frame(ws.OpText, true, 0, "ok")
	const tail = "and what follows"
	for name, c := range map[string]struct{ extensions, bad, want string }{
		"a reserved opcode":             {"", frame(3, true, 0, "x"), "reserved op code"},
		"reserved bits":                 {"", frame(ws.OpText, true, rsv1, "x"), "reserved bits"},
		"another extension's bits":      {"permessage-deflate", frame(ws.OpText, true, 2, "x"), "reserved bits"},
		"compressed continuation":       {"permessage-deflate", frame(ws.OpText, false, 0, "") + frame(ws.OpContinuation, true, rsv1, "x"), "reserved bits"},
		"a long control frame":          {"", frame(ws.OpPing, true, 0, strings.Repeat("x", 126)), "control frame payload"},
		"a control frame in two":        {"", frame(ws.OpPing, false, 0, "x"), "not final"},
		"a continuation of nothing":     {"", frame(ws.OpContinuation, true, 0, "x"), "continuation"},
		"a message within another":      {"", frame(ws.OpText, false, 0, "") + frame(ws.OpText, true, 0, "x"), "non-continuation"},
		"a length of more than 63 bits": {"", "\x82\x7f\xff\xff\xff\xff\xff\xff\xff\xff", "header error"},
		"broken DEFLATE":                {"permessage-deflate", frame(ws.OpText, false, rsv1, "\x07\xff") + frame(ws.OpContinuation, true, 0, "\xff\xff"), "flate"},
		"another takeover":              {"permessage-deflate; server_no_context_takeover", frame(ws.OpText, true, rsv1, farBack(t)), "flate"},
	} {
		for _, size := range []int{1, 1 << 20} {
			var pieces []string
			for p := ok + c.bad + tail; p != ""; p = p[min(size, len(p)):] {
				pieces = append(pieces, p[:min(size, len(p))])
			}
			got, rest, errText := down(t, new(memory), c.extensions, pieces...)
			if len(got) == 0 || got[0] != "1 ok" || !strings.Contains(errText, c.want) {
				t.Errorf("%s: %q, error %q", name, got, errText)
			}
			// A frame without content before the bad one is understood.
			if !strings.HasSuffix(c.bad+tail, rest) || len(rest) < len(c.bad+tail)-ws.MinHeaderSize {
				t.Errorf("%s, in pieces of %d: the rest is %q, want %q", name, size, rest, c.bad+tail)
			}
		}
	}
}

// farBack returns a message that refers to one before it.
func farBack(t *testing.T) string {
	var b bytes.Buffer
	dict := []byte("a dictionary that is not known to the reader")
	w, err := flate.NewWriterDict(&b, flate.BestCompression, dict)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = w.Write(dict)
	_ = w.Flush()
	return b.String()
}

// TestOtherDirectionGoesOn: what one side does wrong does not end the other.
func TestOtherDirectionGoesOn(t *testing.T) {
	m := new(memory)
	rec := handshake(t, m, "")
	rec.Chunk(captures.Up, []byte("\xff"))
	rec.Chunk(captures.Up, []byte("garbage"))
	rec.Chunk(captures.Down, []byte(frame(ws.OpText, true, 0, "still here")))
	rec.End(captures.Reset, "the server went away")
	w := m.all[1]
	if got := w.messages(captures.Down); len(got) != 1 || got[0] != "1 still here" {
		t.Errorf("down: %q", got)
	}
	if w.Outcome != captures.Reset || !strings.HasPrefix(w.Error, "the server went away; unwire could not parse the rest of the WebSocket data in the direction up: ") {
		t.Errorf("%+v", w.Exchange)
	}
	if string(m.all[2].body(captures.Up)) != "\xffgarbage" {
		t.Errorf("the rest: %q", m.all[2].body(captures.Up))
	}
}

// TestBombs: neither a message nor all of them inflate without bounds, and no more than a
// part of one is in memory.
func TestBombs(t *testing.T) {
	zeros := compressed(t, strings.Repeat("\x00", 8<<20), false)
	for name, c := range map[string]struct {
		frames func(i int) string
		want   string
	}{
		"a message": {func(i int) string {
			return frame(map[bool]ws.OpCode{true: ws.OpBinary, false: ws.OpContinuation}[i == 0], false, map[bool]byte{true: rsv1}[i == 0], zeros+string(messageTail))
		}, "more than 64 MiB"},
		"all messages": {func(int) string { return frame(ws.OpBinary, true, rsv1, zeros) }, "times their size"},
	} {
		t.Run(name, func(t *testing.T) {
			rec := &counting{}
			tp := newFrameRecorder(rec, captures.Headers{{Name: "Sec-WebSocket-Extensions", Value: "permessage-deflate"}}, func() captures.Recording { return rec })
			for i := range 20 {
				tp.write(captures.Down, timestamp{}, []byte(c.frames(i)))
			}
			tp.end(timestamp{}, captures.Complete, "")
			if rec.total > 72<<20 || rec.total < 56<<20 || rec.largest > 2*maxPart || !strings.Contains(rec.errText, c.want) {
				t.Errorf("recorded %d bytes, at most %d at once, %q", rec.total, rec.largest, rec.errText)
			}
		})
	}
}

// counting is a recording that only counts.
type counting struct {
	kept
	total, largest int
	errText        string
}

func (c *counting) Message(_ captures.Direction, _ captures.Opcode, p []byte) {
	c.total, c.largest = c.total+len(p), max(c.largest, len(p))
}
func (c *counting) Chunk(captures.Direction, []byte) {}
func (c *counting) End(_ captures.Outcome, errText string) {
	if c.errText == "" {
		c.errText = errText
	}
}

// TestAnyFrames: any sequence of frames is recorded as the messages that it was made of,
// in whatever pieces it comes.
func TestAnyFrames(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		var wire bytes.Buffer
		var want []string
		for range rapid.IntRange(1, 8).Draw(rt, "messages") {
			text := rapid.StringN(0, 300, 3000).Draw(rt, "text")
			deflated := rapid.Bool().Draw(rt, "compressed")
			payload, op := text, 1
			if deflated {
				payload, op = compressed(t, text, rapid.Bool().Draw(rt, "final")), 65
			}
			cut := rapid.IntRange(0, len(payload)).Draw(rt, "cut")
			masked := rapid.Bool().Draw(rt, "masked")
			for i, part := range []string{payload[:cut], payload[cut:]} {
				f := ws.Frame{Header: ws.Header{Fin: i == 1, OpCode: []ws.OpCode{ws.OpText, ws.OpContinuation}[i], Length: int64(len(part))}, Payload: []byte(part)}
				if deflated && i == 0 {
					f.Header.Rsv = rsv1
				}
				if masked {
					f = ws.MaskFrame(f)
				}
				_ = ws.WriteFrame(&wire, f)
			}
			want = append(want, fmt.Sprintf("%d %s", op, text))
		}
		m := new(memory)
		rec := handshake(t, m, "permessage-deflate; server_no_context_takeover")
		for p := wire.Bytes(); len(p) > 0; {
			n := rapid.IntRange(1, len(p)).Draw(rt, "piece")
			rec.Chunk(captures.Down, p[:n])
			p = p[n:]
		}
		rec.End(captures.Complete, "")
		if got := m.all[1].messages(captures.Down); fmt.Sprintf("%q", got) != fmt.Sprintf("%q", want) || m.all[1].Error != "" {
			rt.Fatalf("%q, want %q; %s", got, want, m.all[1].Error)
		}
	})
}

// FuzzFrames: whatever comes, nothing is lost of what is no frame, and pieces change
// nothing.
func FuzzFrames(f *testing.F) {
	f.Add([]byte(frame(ws.OpText, true, 0, "a")+frame(ws.OpPing, true, 0, "")), uint8(3))
	f.Add([]byte(frame(ws.OpText, true, rsv1, compressed(f, "hello hello", false))+"\xff\xff"), uint8(1))
	f.Fuzz(func(t *testing.T, wire []byte, piece uint8) {
		whole, one := new(memory), new(memory)
		const deflate = "permessage-deflate"
		messages, rest, errText := down(t, whole, deflate, string(wire))
		var pieces []string
		for p, n := string(wire), int(piece)+1; p != ""; p = p[min(n, len(p)):] {
			pieces = append(pieces, p[:min(n, len(p))])
		}
		m2, rest2, errText2 := down(t, one, deflate, pieces...)
		if rest != rest2 || errText != errText2 || fmt.Sprintf("%q", messages) != fmt.Sprintf("%q", m2) {
			t.Errorf("in one: %q, rest %q, %q\nin pieces: %q, rest %q, %q", messages, rest, errText, m2, rest2, errText2)
		}
		if !bytes.HasSuffix(wire, []byte(rest)) || errText != "" && rest == "" {
			t.Errorf("the rest %q of %q; %s", rest, wire, errText)
		}
	})
}

func BenchmarkMessages(b *testing.B) {
	for _, c := range []struct {
		name, wire string
	}{
		{"plain 128", frame(ws.OpText, true, 0, strings.Repeat("x", 128))},
		{"compressed 1024", frame(ws.OpText, true, rsv1, compressed(b, strings.Repeat(`{"delta":"word"}`, 64), false))},
		{"plain 1MiB", frame(ws.OpBinary, true, 0, strings.Repeat("x", 1<<20))},
	} {
		b.Run(c.name, func(b *testing.B) {
			rec := &counting{}
			t := newFrameRecorder(rec, captures.Headers{{Name: "Sec-WebSocket-Extensions", Value: "permessage-deflate; server_no_context_takeover"}}, nil)
			p := []byte(c.wire)
			b.SetBytes(int64(len(p)))
			b.ReportAllocs()
			for b.Loop() {
				t.write(captures.Down, timestamp{}, p)
			}
		})
	}
}
