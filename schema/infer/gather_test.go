package infer

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"testing"
	"time"

	"unwire/captures"
	"unwire/captures/profile"
)

// A memoryCapture is a capture of unary calls whose requests are given.
type memoryCapture struct {
	codec    string
	requests [][]byte

	// damage is yielded in the place of this exchange, if it is not 0.
	damage int64
}

func (c memoryCapture) exchange(id int64) *captures.Exchange {
	return &captures.Exchange{
		ID: id, Method: "POST", URL: "https://api.test/demo.v1.Service/Run", HTTP: "2", Status: 200, Started: time.Unix(1, id),
		RequestHeaders:  captures.Headers{{Name: "content-type", Value: "application/" + c.codec}},
		ResponseHeaders: captures.Headers{{Name: "content-type", Value: "application/" + c.codec}},
		Outcome:         captures.Complete,
	}
}

func (c memoryCapture) Exchange(_ context.Context, id int64) (*captures.Exchange, error) {
	return c.exchange(id), nil
}

func (c memoryCapture) Profile() *profile.Profile { return nil }

func (c memoryCapture) Chunks(_ context.Context, id, _ int64) iter.Seq2[captures.Chunk, error] {
	return func(yield func(captures.Chunk, error) bool) {
		yield(captures.Chunk{Exchange: id, Dir: captures.Up, Data: c.requests[id-1]}, nil)
	}
}

func (c memoryCapture) Exchanges(ctx context.Context) iter.Seq2[*captures.Exchange, error] {
	return func(yield func(*captures.Exchange, error) bool) {
		for i := range c.requests {
			id := int64(i) + 1
			if id == c.damage {
				yield(nil, captures.ErrDamaged)
				return
			}
			if err := ctx.Err(); err != nil {
				yield(nil, err)
				return
			}
			if !yield(c.exchange(id), nil) {
				return
			}
		}
	}
}

// someRequests are n messages of a text and a number.
func someRequests(n int) [][]byte {
	list := make([][]byte, n)
	for i := range list {
		list[i] = []byte{0x0a, 1, 'x', 0x10, byte(i & 0x7f)}
	}
	return list
}

// TestGather: the evidence does not depend on how many read at the same time, and
// progress arrives at all that there was.
func TestGather(t *testing.T) {
	src := memoryCapture{codec: "proto", requests: someRequests(300)}
	var want string
	for _, workers := range []int{1, 7} {
		last := Progress{}
		all, err := Gather(t.Context(), src, GatherOptions{Workers: workers, OnProgress: func(p Progress) {
			if p.Messages < last.Messages || p.Bytes < last.Bytes {
				last.Messages = -1 << 40
			}
			last = p
		}})
		if err != nil {
			t.Fatal(err)
		}
		if len(all.Remarks) > 0 || all.JSONCalls > 0 {
			t.Errorf("%d workers: %+v", workers, all)
		}
		if workers == 1 && last.Messages < 300 {
			t.Errorf("progress ended at %+v", last)
		}
		if root := all.Evidence.Root("/demo.v1.Service/Run:up"); root == nil || root.Samples != 300 {
			t.Fatalf("%d workers: %+v", workers, root)
		}
		got := written(t, all.Evidence)
		if want == "" {
			want = got
		}
		if got != want {
			t.Errorf("%d workers: other evidence than one", workers)
		}
	}
}

// TestGatherOne: with a number, one exchange is read.
func TestGatherOne(t *testing.T) {
	src := memoryCapture{codec: "proto", requests: someRequests(3)}
	all, err := Gather(t.Context(), src, GatherOptions{Exchange: 2})
	if err != nil {
		t.Fatal(err)
	}
	if root := all.Evidence.Root("/demo.v1.Service/Run:up"); root == nil || root.Samples != 1 {
		t.Errorf("%+v", root)
	}
}

// TestGatherRemarks: messages that are none are left out, and named in the order of
// the capture; calls in JSON are counted.
func TestGatherRemarks(t *testing.T) {
	src := memoryCapture{codec: "proto", requests: someRequests(100)}
	src.requests[20], src.requests[70] = []byte{0x0a}, []byte{0x0b}
	all, err := Gather(t.Context(), src, GatherOptions{Workers: 4})
	if err != nil {
		t.Fatal(err)
	}
	var ids []int64
	for _, r := range all.Remarks {
		if r.Undecoded == nil {
			t.Errorf("%+v", r)
		}
		ids = append(ids, r.Exchange)
	}
	if !slices.Equal(ids, []int64{21, 71}) {
		t.Errorf("remarks on %v", ids)
	}
	if root := all.Evidence.Root("/demo.v1.Service/Run:up"); root.Samples != 98 {
		t.Errorf("%d samples", root.Samples)
	}

	src = memoryCapture{codec: "json", requests: [][]byte{[]byte("{}"), []byte("{}")}}
	if all, err = Gather(t.Context(), src, GatherOptions{}); err != nil || all.JSONCalls != 2 || all.FirstJSONCall != 1 {
		t.Errorf("%+v, %v", all, err)
	}
}

// TestGatherKeeps: what was read until the capture turned out damaged, or until the
// context ended, is kept.
func TestGatherKeeps(t *testing.T) {
	src := memoryCapture{codec: "proto", requests: someRequests(300), damage: 100}
	all, err := Gather(t.Context(), src, GatherOptions{})
	if root := all.Evidence.Root("/demo.v1.Service/Run:up"); !errors.Is(err, captures.ErrDamaged) || root == nil || root.Samples != 99 {
		t.Errorf("%+v, %v", root, err)
	}

	ctx, cancel := context.WithCancel(t.Context())
	src.damage = 0
	all, err = Gather(ctx, src, GatherOptions{Workers: 2, OnProgress: func(p Progress) {
		if p.Messages >= 50 {
			cancel()
		}
	}})
	if root := all.Evidence.Root("/demo.v1.Service/Run:up"); !errors.Is(err, context.Canceled) || root == nil || root.Samples < 20 || root.Samples == 300 {
		t.Errorf("%+v, %v", root, err)
	}
}

// TestGatherMessages: messages are pooled under one root, what is none is left out,
// and evidence is left to the caller.
func TestGatherMessages(t *testing.T) {
	const inputs = 200
	other := NewEvidence()
	if err := other.Add("Root", []byte{0x0a, 1, 'x'}); err != nil {
		t.Fatal(err)
	}
	content := map[string][]byte{}
	var names []string
	for i, data := range someRequests(inputs) {
		name := fmt.Sprint(i)
		names = append(names, name)
		content[name] = data
	}
	content["30"] = []byte{0x0a}
	content["40"] = []byte(written(t, other))
	delete(content, "50")
	absent := errors.New("no such input")
	all, err := GatherMessages(t.Context(), names, MessageOptions{Root: "Root", Read: func(name string) ([]byte, error) {
		if data, ok := content[name]; ok {
			return data, nil
		}
		return nil, absent
	}})
	if err != nil {
		t.Fatal(err)
	}
	if all.Messages != inputs-3 || all.Evidence.Root("Root").Samples != inputs-3 {
		t.Errorf("%d messages", all.Messages)
	}
	for i, in := range all.Inputs {
		if (in.Rejected != nil) != (i == 30) || (in.Evidence != nil) != (i == 40) || (in.Err != nil) != (i == 50) {
			t.Errorf("%d: %+v", i, in)
		}
	}
	if !errors.Is(all.Inputs[50].Err, absent) {
		t.Error(all.Inputs[50].Err)
	}

	// The same inputs again: nothing is counted twice.
	again := NewEvidence()
	again.Merge(all.Evidence)
	if shared := again.MergeIfNew(all.Evidence); shared != 1 || again.Root("Root").Samples != inputs-3 {
		t.Errorf("shared %v, %d samples", shared, again.Root("Root").Samples)
	}
}
