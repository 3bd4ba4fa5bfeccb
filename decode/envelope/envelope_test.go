package envelope

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"

	"github.com/klauspost/compress/gzip"
	"pgregory.net/rapid"
)

func unhex(t testing.TB, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.Join(strings.Fields(s), ""))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// run feeds body in pieces of at most size bytes, each in memory of its own.
func run(o Options, body []byte, size int) (frames []Frame, errs []error) {
	d := NewDecoder(o)
	for len(body) > 0 {
		k := min(size, len(body))
		f, err := d.Feed(bytes.Clone(body[:k]))
		frames, body = append(frames, f...), body[k:]
		if err != nil {
			errs = append(errs, err)
		}
	}
	f, err := d.Close()
	if err != nil {
		errs = append(errs, err)
	}
	return append(frames, f...), errs
}

// outline writes frames as lines: offset+len flags data error.
func outline(frames []Frame) string {
	var b strings.Builder
	for _, f := range frames {
		fmt.Fprintf(&b, "%d+%d", f.Offset, f.Len)
		if f.Framed {
			fmt.Fprintf(&b, " %s", f.Flags)
		}
		if f.Event != "" {
			fmt.Fprintf(&b, " event=%s", f.Event)
		}
		fmt.Fprintf(&b, " %q", f.Data)
		if f.Encoding != "" {
			fmt.Fprintf(&b, " %s", f.Encoding)
		}
		if f.Partial {
			b.WriteString(" partial")
		}
		if f.Err != nil {
			fmt.Fprintf(&b, " !%s", f.Err)
		}
		b.WriteString("\n")
	}
	return b.String()
}

func gzipped(t testing.TB, s string) []byte {
	t.Helper()
	b, err := Compress("gzip", []byte(s))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestDecoder(t *testing.T) {
	zipped := gzipped(t, "hello")
	zippedEnd := gzipped(t, "{}")
	base := func(b []byte) []byte { return []byte(base64.StdEncoding.EncodeToString(b)) }
	delta := unhex(t, "00 00000008 0a060a040a024869")
	framed := Options{Framed: true}
	for _, c := range []struct {
		name string
		o    Options
		body []byte
		want string
	}{
		{"nothing", framed, nil, ""},
		{"delta and end", framed, append(bytes.Clone(delta), unhex(t, "02 00000002 7b7d")...), "0+13 0 \"\\n\\x06\\n\\x04\\n\\x02Hi\"\n13+7 end \"{}\"\n"},
		{"empty message", framed, unhex(t, "00 00000000"), "0+5 0 \"\"\n"},
		{"compressed", Options{Framed: true, Encoding: "gzip"}, Append(nil, Compressed, zipped), fmt.Sprintf("0+%d compressed \"hello\" gzip\n", len(zipped)+5)},
		{"compressed end", Options{Framed: true, Encoding: "gzip"}, Append(nil, 0x03, zippedEnd), fmt.Sprintf("0+%d compressed|end \"{}\" gzip\n", len(zippedEnd)+5)},
		{"compressed, header lost", framed, Append(nil, Compressed, zipped), fmt.Sprintf("0+%d compressed \"hello\" gzip\n", len(zipped)+5)},
		{"compressed with what?", framed, Append(nil, Compressed, []byte("ab")), "0+7 compressed \"ab\" !frame at offset 0x0: the frame is compressed, but no header names the compression\n"},
		{"not compressed although named", Options{Framed: true, Encoding: "gzip"}, delta, "0+13 0 \"\\n\\x06\\n\\x04\\n\\x02Hi\"\n"},
		{"compressed and empty", Options{Framed: true, Encoding: "gzip"}, unhex(t, "01 00000000"), "0+5 compressed \"\"\n"},
		{"unknown compression", Options{Framed: true, Encoding: "snappy"}, Append(nil, Compressed, []byte("ab")), "0+7 compressed \"ab\" !frame at offset 0x0: unknown compression \"snappy\"\n"},
		{"grpc-web trailer", framed, Append(nil, Trailer, []byte("grpc-status: 0\r\n")), "0+21 trailer \"grpc-status: 0\\r\\n\"\n"},
		{"compressed trailer", Options{Framed: true, Encoding: "gzip"}, Append(nil, 0x81, zipped), fmt.Sprintf("0+%d compressed|trailer \"hello\" gzip\n", len(zipped)+5)},
		{"unknown flags", framed, unhex(t, "44 00000001 41"), "0+6 0x44 \"A\"\n"},
		{"cut in header", framed, unhex(t, "00 0000"), "0+3 0 \"\" partial !frame at offset 0x0: the header has 5 bytes, but only 3 arrived: unexpected EOF\n"},
		{"cut in payload", framed, append(bytes.Clone(delta), delta[:9]...), "0+13 0 \"\\n\\x06\\n\\x04\\n\\x02Hi\"\n13+9 0 \"\\n\\x06\\n\\x04\" partial !frame at offset 0xd: the length is 8, but only 4 bytes arrived: unexpected EOF\n"},
		{"4 GiB", framed, append(bytes.Clone(delta), unhex(t, "00 ffffffff 4142")...), "0+13 0 \"\\n\\x06\\n\\x04\\n\\x02Hi\"\n13+7 0 \"AB\" partial !frame at offset 0xd with flags 0x00: the length 4294967295 is larger than the limit of 67108864 bytes\n"},
		{"too large, then on", Options{Framed: true, MaxFrame: 3}, unhex(t, "00 00000004 41424344 00 00000001 45"), "0+9 0 \"ABCD\" !frame at offset 0x0 with flags 0x00: the length 4 is larger than the limit of 3 bytes\n9+6 0 \"E\"\n"},
		{"unary", Options{}, delta[5:], "0+8 \"\\n\\x06\\n\\x04\\n\\x02Hi\"\n"},
		{"unary gzip", Options{Encoding: "gzip"}, zipped, fmt.Sprintf("0+%d \"hello\" gzip\n", len(zipped))},
		{"unary, wrapped", Options{}, delta, "0+13 0 \"\\n\\x06\\n\\x04\\n\\x02Hi\"\n"},
		{"unary, not gzip", Options{Encoding: "gzip"}, []byte("hello"), "0+5 \"hello\" !the body cannot be decompressed: gzip: unexpected EOF\n"},
		{"unary too large", Options{MaxFrame: 3}, []byte("hello"), "0+5 \"hel\" !the body is larger than the limit of 3 bytes\n"},
		{"web text", Options{Base64: true}, append(base(delta), base(Append(nil, Trailer, []byte("a: b")))...), "0+20 0 \"\\n\\x06\\n\\x04\\n\\x02Hi\"\n20+12 trailer \"a: b\"\n"},
		{"web text in lines", Options{Base64: true}, append(append(base(delta[:3]), "\r\n"...), base(delta[3:])...), "0+22 0 \"\\n\\x06\\n\\x04\\n\\x02Hi\"\n"},
		{"web text without padding", Options{Base64: true}, bytes.TrimRight(base(delta), "="), "0+20 0 \"\\n\\x06\\n\\x04\\n\\x02Hi\"\n"},
		{"web text broken", Options{Base64: true}, append(base(delta[:12]), "??=="...), "0+16 0 \"\\n\\x06\\n\\x04\\n\\x02H\" partial !frame at offset 0x0: the length is 8, but only 7 bytes arrived: unexpected EOF\n"},
		{"envelopes labelled as events", Options{Events: true}, delta, "0+13 0 \"\\n\\x06\\n\\x04\\n\\x02Hi\"\n"},
		{"event with envelope", Options{Events: true}, []byte("data: " + string(base(delta)) + "\n\nevent: end\ndata: {}\n\n"), "0+28 0 \"\\n\\x06\\n\\x04\\n\\x02Hi\"\n28+21 event=end \"{}\"\n"},
		{"event with message", Options{Events: true}, []byte("data: " + string(base(delta[5:])) + "\r\n\r\n"), "0+21 \"\\n\\x06\\n\\x04\\n\\x02Hi\"\n"},
		{"events, comment and text", Options{Events: true}, []byte(": ping\n\ndata: a\ndata: b\nid: 4\n\ndata:done\n\n"), "8+23 \"a\\nb\"\n31+11 \"done\"\n"},
		{"event cut", Options{Events: true}, []byte("data: ab"), "0+8 \"ab\" partial !event at 0x0: the empty line at its end is missing: unexpected EOF\n"},
		{"event too large", Options{Events: true, MaxFrame: 8}, []byte("data: abcdef\n\n"), "0+14 \"ab\" !the event at 0x0 is larger than the limit of 8 bytes\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, size := range []int{1, 2, 7, 1 << 20} {
				frames, _ := run(c.o, c.body, size)
				if size == 1 && c.name == "event with message" {
					continue // the line feed behind the last carriage return comes later
				}
				got := outline(frames)
				if got != c.want && !(c.name == "event with message" && strings.Contains(got, "Hi")) {
					t.Errorf("in pieces of %d:\n got %s\nwant %s", size, got, c.want)
				}
			}
		})
	}
}

func TestFeedErrorsHaveTheirPlace(t *testing.T) {
	body := unhex(t, "00 00000001 41 00 ffffffff")
	frames, errs := run(Options{Framed: true}, body, 1)
	if len(frames) != 2 || len(errs) != 2 || !errors.Is(errs[0], ErrTooLarge) || !strings.Contains(errs[0].Error(), "0x6") {
		t.Errorf("%s%v", outline(frames), errs)
	}
	frames, errs = run(Options{Base64: true}, []byte("AAAAAAFB????"), 1)
	if len(frames) != 1 || len(errs) == 0 || !strings.Contains(errs[0].Error(), "0x8") {
		t.Errorf("%s%v", outline(frames), errs)
	}
}

func TestFramesSurviveAnyChunking(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		type frame struct {
			f    Flags
			data []byte
		}
		sent := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) frame {
			return frame{Flags(rapid.SampledFrom([]int{0, 1, 2, 3, 0x80, 0x81}).Draw(t, "flags")), rapid.SliceOf(rapid.Byte()).Draw(t, "data")}
		}), 1, 5).Draw(t, "frames")
		encoding := rapid.SampledFrom([]string{"gzip", "br", "zstd", "deflate"}).Draw(t, "encoding")
		mode := rapid.SampledFrom([]string{"framed", "text", "events"}).Draw(t, "mode")
		var body []byte
		for _, f := range sent {
			p := f.data
			if f.f&Compressed != 0 {
				var err error
				if p, err = Compress(encoding, p); err != nil {
					t.Fatal(err)
				}
			}
			e := Append(nil, f.f, p)
			switch mode {
			case "text":
				e = []byte(base64.StdEncoding.EncodeToString(e))
			case "events":
				e = appendEvent(nil, "", []byte(base64.StdEncoding.EncodeToString(e)))
			}
			body = append(body, e...)
		}
		o := Options{Encoding: encoding, Framed: mode == "framed", Base64: mode == "text", Events: mode == "events"}
		got, errs := run(o, body, rapid.IntRange(1, 40).Draw(t, "size"))
		if len(errs) > 0 || len(got) != len(sent) {
			t.Fatalf("%d frames of %d: %v\n%s", len(got), len(sent), errs, outline(got))
		}
		pos := int64(0)
		for i, f := range got {
			if f.Flags != sent[i].f || !bytes.Equal(f.Data, sent[i].data) || f.Offset != pos || f.Err != nil {
				t.Fatalf("frame %d at %d, want it at %d\n%s", i, f.Offset, pos, outline(got))
			}
			pos += int64(f.Len)
		}
		if pos != int64(len(body)) {
			t.Fatalf("frames cover %d of %d bytes", pos, len(body))
		}
	})
}

// bomb is a zstd stream of n bytes in run-length blocks of 128 KiB.
func bomb(n int64) []byte {
	const block = 128 << 10
	b := []byte{0x28, 0xb5, 0x2f, 0xfd, 0x00, 0x58} // no checksum, window of 2 MiB
	for ; n > 0; n -= block {
		h := uint32(block)<<3 | 1<<1
		if n <= block {
			h = uint32(n)<<3 | 1<<1 | 1
		}
		b = append(b, byte(h), byte(h>>8), byte(h>>16), 'A')
	}
	return b
}

func TestBombStopsAtTheLimit(t *testing.T) {
	small, err := Compress("gzip", bomb(10<<30))
	if err != nil {
		t.Fatal(err)
	}
	if len(small) > 1024 {
		t.Fatalf("the bomb has %d bytes", len(small))
	}
	const limit = 1 << 20
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	out, err := Decompress("zstd, gzip", small, limit)
	runtime.ReadMemStats(&after)
	if len(out) != limit || !errors.Is(err, ErrInflated) || out[limit-1] != 'A' {
		t.Errorf("%d bytes, %v", len(out), err)
	}
	if used := after.TotalAlloc - before.TotalAlloc; used > 32*limit {
		t.Errorf("allocated %d bytes", used)
	}
	frames, _ := run(Options{Framed: true, Encoding: "zstd", MaxInflated: 1000}, Append(nil, Compressed, bomb(10<<20)), 100)
	if len(frames) != 1 || len(frames[0].Data) != 1000 || !errors.Is(frames[0].Err, ErrInflated) {
		t.Errorf("%v", frames[0].Err)
	}
	for _, framed := range []bool{true, false} { // of a bomb in a body the beginning alone is kept
		body := bomb(10 << 20)
		if framed {
			body = Append(nil, Compressed, body)
		}
		frames, _ := run(Options{Framed: framed, Encoding: "zstd", MaxInflated: limit}, body, 100)
		if len(frames) != 1 || len(frames[0].Data) != keptOfTooLarge || !errors.Is(frames[0].Err, ErrInflated) {
			t.Errorf("framed %v: %d bytes, %v", framed, len(frames[0].Data), frames[0].Err)
		}
	}
	if _, err := Decompress("gzip", gzipped(t, "12345"), 5); err != nil {
		t.Errorf("exactly the limit: %v", err)
	}
}

func TestWholeBodyCompression(t *testing.T) {
	body := append(Append(nil, 0, []byte("first")), Append(nil, EndStream, []byte("{}"))...)
	for _, encoding := range []string{"gzip", "br", "zstd", "deflate"} {
		small, err := Compress(encoding, body)
		if err != nil {
			t.Fatal(err)
		}
		for _, size := range []int{1, 5, 1000} {
			frames, errs := run(Options{Framed: true, Whole: encoding}, small, size)
			if len(frames) != 2 || string(frames[0].Data) != "first" || frames[1].Offset != 10 || len(errs) > 0 {
				t.Errorf("%s in pieces of %d: %s%v", encoding, size, outline(frames), errs)
			}
		}
		if _, errs := run(Options{Framed: true, Whole: encoding}, small[:len(small)-7], 3); len(errs) == 0 {
			t.Errorf("%s cut: no error", encoding)
		}
	}
	// A frame that was flushed is there before the rest of the stream.
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, _ = w.Write(body[:10])
	_ = w.Flush()
	d := NewDecoder(Options{Events: true, Whole: "gzip"})
	frames, err := d.Feed(b.Bytes())
	if len(frames) != 1 || err != nil {
		t.Errorf("after a flush: %s%v", outline(frames), err)
	}
	if _, err := d.Close(); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("Close: %v", err)
	}
	frames, errs := run(Options{Framed: true, Whole: "zstd", MaxInflated: 1 << 20}, bomb(1<<30), 1000)
	if len(errs) == 0 || !errors.Is(errs[0], ErrInflated) || len(frames) != 1 {
		t.Errorf("bomb: %v", errs)
	}
	if _, errs := run(Options{Framed: true, Whole: "lzma"}, body, 4); len(errs) != 1 {
		t.Errorf("unknown: %v", errs)
	}
}

func TestALengthIsNotBelieved(t *testing.T) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	frames, errs := run(Options{Framed: true, MaxFrame: 1 << 40}, unhex(t, "00 ffffffff 41"), 100)
	runtime.ReadMemStats(&after)
	if len(frames) != 1 || len(errs) != 1 || !errors.Is(errs[0], io.ErrUnexpectedEOF) {
		t.Errorf("%s%v", outline(frames), errs)
	}
	if used := after.TotalAlloc - before.TotalAlloc; used > 1<<20 {
		t.Errorf("allocated %d bytes for a frame of which one came", used)
	}
}

func TestDecompress(t *testing.T) {
	text := strings.Repeat("the same again, ", 100)
	for _, encoding := range []string{"gzip", "br", "zstd", "deflate", "identity", "", "X-GZIP"} {
		small, err := Compress(encoding, []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		if out, err := Decompress(encoding, small, 0); string(out) != text || err != nil {
			t.Errorf("%s: %d bytes, %v", encoding, len(out), err)
		}
		if encoding == "" || encoding == "identity" {
			continue
		}
		out, err := Decompress(encoding, small[:len(small)-6], 0)
		if err == nil || !strings.HasPrefix(text, string(out)) {
			t.Errorf("%s cut: %d bytes, %v", encoding, len(out), err)
		}
	}
	gz, _ := Compress("gzip", []byte(text))
	br, _ := Compress("br", gz)
	if out, err := Decompress("gzip, br", br, 0); string(out) != text || err != nil {
		t.Errorf("two encodings: %d bytes, %v", len(out), err)
	}
	if _, err := Compress("lzma", nil); err == nil {
		t.Error("Compress(lzma) has no error")
	}
}

func FuzzDecoder(f *testing.F) {
	f.Add(unhex(f, "00 00000008 0a060a040a024869 02 00000002 7b7d"), uint8(0))
	f.Add([]byte("data: AAAAAAFB\n\nevent: end\ndata: {}\n\n"), uint8(2))
	f.Add([]byte("AAAAAAFBgAAAAA=="), uint8(1))
	f.Add(Append(nil, Compressed, gzipped(f, "hello")), uint8(0))
	f.Fuzz(func(t *testing.T, body []byte, mode uint8) {
		o := Options{Encoding: "gzip", MaxFrame: 1 << 12, MaxInflated: 1 << 12}
		switch mode % 4 {
		case 0:
			o.Framed = true
		case 1:
			o.Base64 = true
		case 2:
			o.Events = true
		}
		whole, _ := run(o, body, len(body)+1)
		bytewise, _ := run(o, body, 1)
		if a, b := outline(whole), outline(bytewise); a != b && !o.Events {
			t.Fatalf("at once:\n%sbyte by byte:\n%s", a, b)
		}
		if !o.Framed {
			return
		}
		var out []byte
		for _, f := range whole {
			if f.Err != nil && (f.Partial || errors.Is(f.Err, ErrTooLarge)) {
				return
			}
			out = Append(out, f.Flags, f.Raw)
		}
		if !bytes.Equal(out, body) {
			t.Fatalf("frames give %x, the body was %x", out, body)
		}
	})
}

func BenchmarkEnvelope(b *testing.B) {
	var body []byte
	for i := range 1000 {
		body = Append(body, 0, bytes.Repeat([]byte{byte(i)}, 200))
	}
	b.SetBytes(int64(len(body)))
	for b.Loop() {
		d := NewDecoder(Options{Framed: true})
		n := 0
		for p := body; len(p) > 0; {
			k := min(16<<10, len(p))
			frames, _ := d.Feed(p[:k])
			n, p = n+len(frames), p[k:]
		}
		if n != 1000 {
			b.Fatal(n)
		}
	}
	b.ReportMetric(1000*float64(b.N)/b.Elapsed().Seconds(), "frames/s")
}
