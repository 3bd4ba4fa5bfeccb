package decode

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"

	"unwire/captures"
	"unwire/decode/envelope"
)

// framesOf writes frames as lines, those of a direction together.
func framesOf(list []Frame) string {
	var lines []string
	for i := range list {
		f := &list[i]
		line := fmt.Sprintf("%s %06d at %v: %x %q %v partial %v: %v", f.Dir, f.Seq, f.T, f.Data, f.Encoding, f.End, f.Partial, f.Err)
		if f.Tree != nil {
			line += fmt.Sprintf(" tree of %d, %x", len(f.Tree.Nodes), f.Tree.Append(nil))
		}
		lines = append(lines, line)
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// sameFrames compares what EachFrame gives with what Decode does.
func sameFrames(t *testing.T, src captures.Source, o Options) {
	t.Helper()
	var list []Frame
	got, gerr := EachFrame(t.Context(), src, 7, o, func(_ *Exchange, f *Frame) error {
		c := *f
		c.Data = bytes.Clone(f.Data)
		if f.Tree != nil {
			tree := *f.Tree
			tree.Nodes = slices.Clone(tree.Nodes)
			c.Tree = &tree
		}
		list = append(list, c)
		return nil
	})
	want, err := Decode(t.Context(), src, 7, o)
	if fmt.Sprint(gerr) != fmt.Sprint(err) || got.Code != want.Code || got.Message != want.Message || fmt.Sprint(got.Err) != fmt.Sprint(want.Err) || got.Call != want.Call {
		t.Errorf("%+v, %v\nwant %+v, %v", got, gerr, want, err)
	}
	if err != nil {
		for i := range want.Frames { // how long an unframed body was to be is not known then
			want.Frames[i].Partial = want.Frames[i].Partial || !want.Frames[i].Framed
		}
	}
	if a, b := framesOf(list), framesOf(want.Frames); a != b {
		t.Errorf("%s\nwant\n%s", a, b)
	}
}

// TestEachFrameIsDecode: a stream of compressed and of damaged frames, a body without
// frames, and one that is cut off.
func TestEachFrameIsDecode(t *testing.T) {
	stream := append(h("content-type", "application/connect+proto"), h("connect-content-encoding", "gzip")...)
	var body []byte
	for i := range 300 {
		m := bytes.Repeat([]byte{0x08, byte(i & 0x7f), 0x12, 3, 'a', 'b', 'c'}, 1+i%40)
		if i == 100 {
			m = []byte{0xff}
		}
		z, err := envelope.Compress([]string{"gzip", "zstd"}[i%2], m)
		if err != nil {
			t.Fatal(err)
		}
		flags := envelope.Compressed
		if i%5 == 0 || i%2 == 1 { // the header says gzip
			z, flags = m, 0
		}
		if i == 7 {
			z, flags = []byte("\x1f\x8bno gzip"), envelope.Compressed
		}
		body = envelope.Append(body, flags, z)
	}
	body = envelope.Append(body, envelope.EndStream, []byte("{}"))
	for _, size := range []int{7, 1000, len(body)} {
		src := call("POST", run, stream, stream, 200)
		for p, seq := body, int64(0); len(p) > 0; seq++ {
			k := min(size, len(p))
			src.chunks = append(src.chunks, captures.Chunk{Dir: captures.Down, Seq: seq, Data: p[:k:k]})
			p = p[k:]
		}
		sameFrames(t, src, Options{NoInner: true})
		src.fail = captures.ErrDamaged
		src.chunks = src.chunks[:len(src.chunks)*2/3]
		sameFrames(t, src, Options{NoInner: true})
	}
	unary := h("content-type", "application/proto")
	sameFrames(t, call("POST", run, unary, unary, 200, ">08 01", "<08", "<02"), Options{NoInner: true})
}

// TestEachFrameHoldsNothing: so an exchange may have more fields than one that is held.
func TestEachFrameHoldsNothing(t *testing.T) {
	c := h("content-type", "application/connect+proto")
	src := call("POST", run, c, c, 200)
	for i := range int64(500) {
		src.chunks = append(src.chunks, captures.Chunk{Dir: captures.Down, Seq: i, Data: envelope.Append(nil, 0, []byte{8, 1})})
	}
	o := Options{NoInner: true, MaxNodes: 100}
	if ex, err := Decode(t.Context(), src, 7, o); err != nil || ex.Frames[400].Tree != nil {
		t.Errorf("held: %v", err)
	}
	trees := 0
	ex, err := EachFrame(t.Context(), src, 7, o, func(_ *Exchange, f *Frame) error {
		if f.Tree != nil && f.Err == nil {
			trees++
		}
		return nil
	})
	if err != nil || ex.Err != nil || trees != 500 {
		t.Errorf("%d trees, %v, %v", trees, err, ex.Err)
	}
}

// TestEachFrameEnds: by an error of who is given the frames, and with the context.
func TestEachFrameEnds(t *testing.T) {
	c := h("content-type", "application/connect+proto")
	src := call("POST", run, c, c, 200)
	for i := range int64(5000) {
		src.chunks = append(src.chunks, captures.Chunk{Dir: captures.Down, Seq: i, Data: envelope.Append(nil, 0, []byte{8, 1})})
	}
	enough := errors.New("enough")
	n := 0
	ex, err := EachFrame(t.Context(), src, 7, Options{NoInner: true}, func(*Exchange, *Frame) error {
		if n++; n == 10 {
			return enough
		}
		return nil
	})
	if !errors.Is(err, enough) || n != 10 || ex == nil {
		t.Errorf("%d frames, %v, %v", n, ex, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	n = 0
	ex, err = EachFrame(ctx, src, 7, Options{NoInner: true}, func(*Exchange, *Frame) error {
		if n++; n == 10 {
			cancel()
		}
		return nil
	})
	if !errors.Is(err, context.Canceled) || n < 10 || ex == nil {
		t.Errorf("%d frames, %v, %v", n, ex, err)
	}
	if _, err := EachFrame(t.Context(), &one{}, 7, Options{}, nil); err == nil || !strings.Contains(err.Error(), "decode: exchange 7") {
		t.Error(err)
	}
}

// A chunk of empty frames does not become more of them than an exchange may have,
// not even for a moment.
func TestChunkOfEmptyFramesInBoundedMemory(t *testing.T) {
	h := captures.Headers{{Name: "content-type", Value: "application/connect+proto"}}
	s := NewStream(&captures.Exchange{Method: "POST", URL: "https://h/p.S/M", Status: 200, RequestHeaders: h, ResponseHeaders: h}, Options{NoTrees: true, MaxFrames: 1000})
	var before, after runtime.MemStats
	data := make([]byte, 64<<20)
	runtime.ReadMemStats(&before)
	frames := s.Feed(captures.Chunk{Dir: captures.Down, Data: data})
	runtime.ReadMemStats(&after)
	const most = 256 << 20
	if used := after.TotalAlloc - before.TotalAlloc; len(frames) != 1000 || used > most {
		t.Errorf("%d frames took %d MiB", len(frames), used>>20)
	}
	if s.err() == nil || !strings.Contains(s.err().Error(), "more than 1000 frames") {
		t.Error(s.err())
	}
}
