package decode

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"testing"

	"unwire/captures"
)

// A growing is an exchange of which only some chunks were recorded so far. It counts what is read.
type growing struct {
	*one
	all  []captures.Chunk
	read int
}

func (g *growing) Chunks(ctx context.Context, id, from int64) iter.Seq2[captures.Chunk, error] {
	return func(yield func(captures.Chunk, error) bool) {
		for c, err := range g.one.Chunks(ctx, id, from) {
			g.read++
			if !yield(c, err) {
				return
			}
		}
	}
}

func completeFrames(ex *Exchange) (out []string) {
	for i := range ex.Frames {
		f := &ex.Frames[i]
		if !f.Partial {
			out = append(out, fmt.Sprintf("%s/%d %v %x %v %v", f.Dir, f.Seq, f.T, f.Data, f.End != nil, f.Tree != nil))
		}
	}
	return out
}

// A Follower has the frames that Decode has, at any time, and reads each chunk once until the exchange ends.
func TestFollower(t *testing.T) {
	c := h("content-type", "application/connect+proto")
	o := call("POST", run, c, nil, 0, ">00 00000002 3a00", "<00 00000008 0a060a", "<040a024869", "<00 00000002 0801 00 00", "<000002 0802", "<02 00000002 7b7d")
	g := &growing{one: o, all: o.chunks}
	o.chunks, o.ex.Outcome = nil, ""
	f, err := Follow(t.Context(), g, 7, Options{})
	if err != nil || len(f.Exchange().Frames) != 0 {
		t.Fatalf("%v, %v", f, err)
	}
	compare := func() {
		t.Helper()
		if err := f.Update(t.Context()); err != nil {
			t.Fatal(err)
		}
		want, err := Decode(t.Context(), o, 7, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if got := f.Exchange(); !slices.Equal(completeFrames(got), completeFrames(want)) || got.Code != want.Code || got.Status != want.Status || got.Protocol != want.Protocol {
			t.Errorf("%q %s, want %q %s", completeFrames(got), got.Code, completeFrames(want), want.Code)
		}
	}
	for i, chunk := range g.all {
		if i == 1 {
			o.ex.Status, o.ex.ResponseHeaders = 200, c
			compare()
		}
		o.chunks = append(o.chunks, chunk)
		compare()
	}
	if g.read != len(g.all) {
		t.Errorf("%d chunks were read, not %d", g.read, len(g.all))
	}
	o.ex.Outcome = captures.Complete
	compare()
	compare()
	if g.read != 2*len(g.all) || !f.Exchange().Ended() {
		t.Errorf("%d chunks were read", g.read)
	}

	// An error leaves the frames before it.
	o.ex.Outcome, o.fail = "", errors.New("damaged")
	if f, err = Follow(t.Context(), o, 7, Options{}); err == nil || len(f.Exchange().Frames) != 5 || f.Exchange().Err == nil {
		t.Errorf("%v, %v", f.Exchange().Frames, err)
	}
}
