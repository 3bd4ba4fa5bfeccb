package segment

import (
	"bytes"
	"encoding/hex"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"unwire/captures"
)

func unhex(s string) []byte {
	b, err := hex.DecodeString(strings.ReplaceAll(s, " ", ""))
	if err != nil {
		panic(err)
	}
	return b
}

// numbered is a chunk with its number.
type numbered struct {
	n int64
	captures.Chunk
}

func build(chunks []numbered, hasOpcode bool) *Builder {
	b := new(Builder)
	for _, c := range chunks {
		b.Add(c.n, &c.Chunk, hasOpcode)
	}
	return b
}

func read(t *testing.T, r *Row, data []byte, webSocket bool) (chunks []numbered) {
	t.Helper()
	if err := r.Each(data, webSocket, func(n int64, c captures.Chunk) bool {
		chunks = append(chunks, numbered{n, c})
		return true
	}); err != nil {
		t.Fatal(err)
	}
	return chunks
}

// TestVectors are the segments of FORMAT.md.
func TestVectors(t *testing.T) {
	http := []numbered{
		{7, captures.Chunk{Seq: 3, T: 1_000_000, Data: make([]byte, 5)}},
		{8, captures.Chunk{Seq: 4, Dir: captures.Down, T: 1_250_000, Data: make([]byte, 300)}},
		{11, captures.Chunk{Seq: 5, Dir: captures.Down, T: 1_250_000, Data: []byte{}}},
		{12, captures.Chunk{Seq: 6, T: 1_100_000, Data: make([]byte, 2)}},
	}
	webSocket := []numbered{
		{40, captures.Chunk{Opcode: captures.OpText | captures.OpFinal, Data: []byte("hello")}},
		{41, captures.Chunk{Seq: 1, Dir: captures.Down, T: 2_000_000, Opcode: captures.OpBinary | captures.OpCompressed, Data: []byte("abc")}},
		{43, captures.Chunk{Seq: 2, Dir: captures.Down, T: 2_000_500, Opcode: captures.OpFinal, Data: []byte("d")}},
	}
	for _, c := range []struct {
		chunks    []numbered
		entries   string
		webSocket bool
	}{
		{http, "00 00 14 00 a0 c2 1e b1 09 02 00 01 00 df a7 12 08", false},
		{webSocket, "00 00 16 81 00 80 92 f4 01 0f 42 01 e8 07 07 80", true},
	} {
		b := build(c.chunks, c.webSocket)
		if !bytes.Equal(b.Entries, unhex(c.entries)) {
			t.Errorf("entries % x, not %s", b.Entries, c.entries)
		}
		got := read(t, &b.Row, b.Data, c.webSocket)
		if !slices.EqualFunc(got, c.chunks, equal) {
			t.Errorf("%+v", got)
		}
	}
}

func equal(a, b numbered) bool {
	return a.n == b.n && a.Seq == b.Seq && a.Dir == b.Dir && a.T == b.T && a.Opcode == b.Opcode && bytes.Equal(a.Data, b.Data)
}

// TestRefused: what FORMAT.md lists, and more.
func TestRefused(t *testing.T) {
	row := func(entries string, last int64) Row {
		return Row{First: 7, Last: last, Exchange: 1, Chunks: 1, SizeUp: 5, Entries: unhex(entries)}
	}
	cases := []Row{
		row("00 00 94 00", 7), row("00 00 14 00", 7), row("00 00", 7), row("01 00 14", 8),
		row("00 02 14", 7), row("00 00 14", 8), row("00 00 16 21", 7), row("00 00 16", 7), row("", 7), row("00 00 15", 7),
	}
	several := row("00 00 14", 7)
	several.Chunks = 2
	none := several
	none.Chunks = 0
	many := several
	many.Chunks = MaxChunks + 1
	wide := row("00 00 14", 7+MaxSpan)
	for i, r := range append(cases, several, none, many, wide) {
		err := r.Each(make([]byte, 5), true, func(int64, captures.Chunk) bool {
			t.Errorf("%d: a chunk", i)
			return true
		})
		if !errors.Is(err, captures.ErrDamaged) {
			t.Errorf("%d: %v", i, err)
		}
	}
	good := row("00 00 16 81", 7)
	if err := good.Each(make([]byte, 5), true, func(int64, captures.Chunk) bool { return true }); err != nil {
		t.Error(err)
	}
	for i, data := range [][]byte{make([]byte, 4), make([]byte, 5)} {
		if err := good.Each(data, i == 0, nil); !errors.Is(err, captures.ErrDamaged) {
			t.Error("an opcode without a WebSocket, or wrong data:", err)
		}
	}
}

// TestRoundTrip: what a Builder takes comes back, as long as it fits.
func TestRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		webSocket := rapid.Bool().Draw(t, "webSocket")
		b := new(Builder)
		n := rapid.Int64Range(1, 1<<61).Draw(t, "first")
		var want []numbered
		for i := range rapid.IntRange(1, 2*MaxChunks).Draw(t, "chunks") {
			c := captures.Chunk{
				Exchange: 3, Seq: int64(i) + 9, Dir: captures.Direction(rapid.IntRange(0, 1).Draw(t, "dir")),
				T:    time.Duration(rapid.Int64Range(0, 1<<50).Draw(t, "t")),
				Data: rapid.SliceOfN(rapid.Byte(), 0, 30).Draw(t, "data"),
			}
			if webSocket {
				c.Opcode = captures.Opcode(rapid.Byte().Draw(t, "opcode")) &^ 0x30
			}
			if b.Chunks > 0 && !b.Fits(n, &c, 4000) {
				break
			}
			b.Add(n, &c, webSocket)
			want = append(want, numbered{n, c})
			n += rapid.Int64Range(1, 40).Draw(t, "gap")
		}
		var got []numbered
		if err := b.Each(b.Data, webSocket, func(n int64, c captures.Chunk) bool {
			got = append(got, numbered{n, c})
			return true
		}); err != nil {
			t.Fatal(err)
		}
		if !slices.EqualFunc(got, want, equal) {
			t.Fatalf("got %d of %d", len(got), len(want))
		}
	})
}

// FuzzRow: any row is refused, or is what a Builder makes of its chunks.
func FuzzRow(f *testing.F) {
	f.Add(int64(7), int64(12), int64(4), int64(1000000), int64(7), int64(300), unhex("00 00 14 00 a0 c2 1e b1 09 02 00 01 00 df a7 12 08"), true)
	f.Fuzz(func(t *testing.T, first, last, chunks, at, up, down int64, entries []byte, webSocket bool) {
		if up < 0 || down < 0 || up > 1<<16 || down > 1<<16 || at < 0 || first < 0 || first > 1<<61 {
			return
		}
		r := Row{First: first, Last: last, Chunks: chunks, T: time.Duration(at), SizeUp: up, SizeDown: down, Entries: entries}
		b := new(Builder)
		opcodes := 0
		err := r.Each(make([]byte, up+down), webSocket, func(n int64, c captures.Chunk) bool {
			if c.T < 0 {
				t.Fatal("a negative time")
			}
			if c.Opcode != 0 {
				opcodes++
			}
			b.Add(n, &c, webSocket)
			return true
		})
		if err != nil {
			return
		}
		if b.First != first || b.Last != last || b.Chunks != chunks || b.SizeUp != up || b.SizeDown != down {
			t.Fatalf("%+v of %+v", b.Row, r)
		}
		if opcodes == 0 && !webSocket && !bytes.Equal(b.Entries, entries) {
			t.Fatalf("% x of % x", b.Entries, entries)
		}
	})
}
