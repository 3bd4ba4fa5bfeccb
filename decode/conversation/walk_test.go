package conversation

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"unwire/captures"
	"unwire/decode"
)

// walkedCapture has a conversation of exchanges 1 (its head) and 2, and 3, which is
// none of it.
func walkedCapture() *pieces {
	p := &pieces{}
	p.head(0, frame(say("A")), endFrame)
	p.append(0, say("a"), time.Millisecond)
	p.add("/demo.v1.Service/Run", "application/proto", "application/proto", say("b"), 2*time.Millisecond, say("B"))
	return p
}

// TestEachCall: a conversation comes before its head; part and a number choose.
func TestEachCall(t *testing.T) {
	p := walkedCapture()
	for _, c := range []struct {
		id   int64
		part bool
		want []string
	}{
		{0, false, []string{"1 Run", "1 RunSSE joined", "2 BidiAppend", "3 Run"}},
		{1, false, []string{"1 Run", "1 RunSSE joined"}},
		{1, true, []string{"1 RunSSE"}},
		{2, false, []string{"2 BidiAppend"}},
	} {
		var got []string
		err := EachCall(t.Context(), p, c.id, c.part, decode.Options{}, func(ex *decode.Exchange, joined bool) error {
			text := fmt.Sprintf("%d %s", ex.ID, ex.RPC)
			if joined {
				text += " joined"
			}
			got = append(got, text)
			return nil
		})
		if err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%d, part %v: %q, %v", c.id, c.part, got, err)
		}
	}
}

// TestEachWhole: a conversation stands in the place of its head, and its other
// pieces do not come.
func TestEachWhole(t *testing.T) {
	p := walkedCapture()
	for parts, want := range map[bool][]string{false: {"1 Run", "3 Run"}, true: {"1 RunSSE", "2 BidiAppend", "3 Run"}} {
		var got []string
		err := EachWhole(t.Context(), p, parts, func(ex *decode.Exchange) error {
			got = append(got, fmt.Sprintf("%d %s", ex.ID, ex.RPC))
			return nil
		})
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("parts %v: %q, %v", parts, got, err)
		}
	}
}

// TestWalkDamaged: what is readable comes, and then the damage; do's error ends it.
func TestWalkDamaged(t *testing.T) {
	p := walkedCapture()
	p.fail = captures.ErrDamaged
	n := 0
	count := func(*decode.Exchange) error { n++; return nil }
	if err := EachWhole(t.Context(), p, false, count); !errors.Is(err, captures.ErrDamaged) || n != 2 {
		t.Errorf("%d, %v", n, err)
	}
	n = 0
	err := EachCall(t.Context(), p, 0, false, decode.Options{}, func(*decode.Exchange, bool) error { n++; return nil })
	if !errors.Is(err, captures.ErrDamaged) || n != 4 {
		t.Errorf("%d, %v", n, err)
	}
	enough := errors.New("enough")
	if err := EachCall(t.Context(), p, 0, false, decode.Options{}, func(*decode.Exchange, bool) error { return enough }); !errors.Is(err, enough) {
		t.Error(err)
	}
}

// TestResolve: a head stands for its conversation, a piece for itself.
func TestResolve(t *testing.T) {
	p := walkedCapture()
	r, err := Resolve(t.Context(), p, 1, false, decode.Options{})
	if err != nil || r.Joined == nil || r.RPC != "Run" || r.Head != 1 {
		t.Fatalf("%+v, %v", r, err)
	}
	f := &r.Frames[0]
	if o := r.Joined.OriginOf(f); o.Exchange == 0 {
		t.Errorf("%+v", o)
	}
	if r, err = Resolve(t.Context(), p, 1, true, decode.Options{}); err != nil || r.Joined != nil || r.RPC != "RunSSE" {
		t.Errorf("%+v, %v", r, err)
	}
	if r, err = Resolve(t.Context(), p, 2, false, decode.Options{}); err != nil || r.Joined != nil || r.Head != 1 {
		t.Errorf("%+v, %v", r, err)
	}
	if r, err = Resolve(t.Context(), p, 3, false, decode.Options{}); err != nil || r.Head != 0 {
		t.Errorf("%+v, %v", r, err)
	}
	if _, err = Resolve(t.Context(), p, 9, false, decode.Options{}); err == nil {
		t.Error("an exchange that is not there")
	}
}
