package store

import (
	"context"
	"path/filepath"
	"reflect"
	"testing"

	"unwire/captures"
)

// TestOpenForwarded: a capture is read as it was received, as it was forwarded, or as one side saw it.
func TestOpenForwarded(t *testing.T) {
	ctx := context.Background()
	path := filepath.Join(t.TempDir(), "a.uwc")
	s, err := Create(path, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	rec, err := s.Begin(captures.Exchange{Method: "POST", URL: "https://a.example/x", RequestHeaders: captures.Headers{{Name: "Content-Length", Value: "8"}}})
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{"one ", "two", "!"} {
		rec.Chunk(captures.Up, []byte(part))
	}
	rec.Edit(captures.Up, 0, 4, "up", nil)
	rec.Edit(captures.Up, 6, 7, "up", []byte("elve"))
	rec.Edit(captures.Up, 8, 8, "up", []byte(" and more"))
	rec.Response(200, captures.Headers{{Name: "content-length", Value: "7"}})
	rec.Chunk(captures.Down, []byte("answer"))
	rec.Edit(captures.Down, 0, 6, "down", []byte("other"))
	rec.ForwardHead(captures.Down, "down", captures.ForwardedHead{Status: 201})
	rec.End(captures.Complete, "")
	other, err := s.Begin(captures.Exchange{Method: "GET", URL: "https://a.example/y"})
	if err != nil {
		t.Fatal(err)
	}
	other.End(captures.Complete, "")
	if err := s.Flush(ctx); err != nil {
		t.Fatal(err)
	}

	type seen struct {
		up, down           []string
		status             int
		bytesUp, bytesDown int64
		declared           string
		shown              captures.Shown
	}
	up, upForwarded := []string{"one ", "two", "!"}, []string{"twelve", "!", " and more"}
	for forwarded, want := range map[[2]bool]seen{
		{}:            {up, []string{"answer"}, 200, 8, 6, "8", captures.ShownReceived},
		{true, true}:  {upForwarded, []string{"other"}, 201, 16, 5, "16", captures.ShownForwarded},
		{true, false}: {upForwarded, []string{"answer"}, 200, 16, 6, "16", captures.ShownToServer},
		{false, true}: {up, []string{"other"}, 201, 8, 5, "8", captures.ShownToClient},
	} {
		r, err := Open(path, ReadOptions{Forwarded: forwarded})
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		var heads []*captures.Exchange
		for ex, err := range r.Exchanges(ctx) {
			if err != nil {
				t.Fatal(err)
			}
			heads = append(heads, ex)
		}
		ex, err := r.Exchange(ctx, 1)
		if err != nil || len(heads) != 2 || !reflect.DeepEqual(ex, heads[0]) {
			t.Fatalf("%+v, %+v, %v", ex, heads, err)
		}
		rewritten, err := r.Rewritten(ctx, 1)
		if err != nil || rewritten == nil || !reflect.DeepEqual(rewritten.Rules, []string{"down", "up"}) {
			t.Fatalf("%+v, %v", rewritten, err)
		}
		got := seen{status: ex.Status, bytesUp: ex.BytesUp, bytesDown: ex.BytesDown, declared: ex.RequestHeaders.Get("content-length"), shown: rewritten.Shown}
		var all []captures.Chunk
		for c, err := range r.Chunks(ctx, 1, 0) {
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, c)
			body := &got.up
			if c.Dir == captures.Down {
				body = &got.down
			}
			*body = append(*body, string(c.Data))
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("forwarded %v:\n got %+v\nwant %+v", forwarded, got, want)
		}

		// Reading may begin at any chunk.
		for i, first := range all {
			var rest []captures.Chunk
			for c, err := range r.Chunks(ctx, 1, first.Seq) {
				if err != nil {
					t.Fatal(err)
				}
				rest = append(rest, c)
			}
			if !reflect.DeepEqual(rest, all[i:]) {
				t.Errorf("forwarded %v, from %d: %+v", forwarded, first.Seq, rest)
			}
		}
		if untouched, err := r.Rewritten(ctx, 2); untouched != nil || err != nil {
			t.Errorf("%+v, %v", untouched, err)
		}
	}
}
