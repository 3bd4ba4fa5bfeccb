package source

import (
	"context"
	"iter"
	"testing"
	"testing/fstest"
	"time"

	"unwire/captures"
	"unwire/captures/profile"
	"unwire/decode"
	"unwire/schema"
	"unwire/schema/update"
)

// callCapture is a capture of unary calls of a method, one for each request.
type callCapture struct {
	method   string
	requests [][]byte
}

func (c callCapture) Exchange(_ context.Context, id int64) (*captures.Exchange, error) {
	headers := captures.Headers{{Name: "content-type", Value: "application/proto"}}
	return &captures.Exchange{
		ID: id, Method: "POST", URL: "https://api.test" + c.method, HTTP: "2", Status: 200, Started: time.Unix(1, id),
		RequestHeaders: headers, ResponseHeaders: headers, Outcome: captures.Complete,
	}, nil
}

func (c callCapture) Profile() *profile.Profile { return nil }

func (c callCapture) Chunks(_ context.Context, id, _ int64) iter.Seq2[captures.Chunk, error] {
	return func(yield func(captures.Chunk, error) bool) {
		yield(captures.Chunk{Exchange: id, Dir: captures.Up, Data: c.requests[id-1]}, nil)
	}
}

func (c callCapture) Exchanges(ctx context.Context) iter.Seq2[*captures.Exchange, error] {
	return func(yield func(*captures.Exchange, error) bool) {
		for i := range c.requests {
			ex, err := c.Exchange(ctx, int64(i)+1)
			if !yield(ex, err) {
				return
			}
		}
	}
}

const runProto = `syntax = "proto3";
package a;
message Request { string text = 1; int32 number = 2; }
message Answer {}
service Service { rpc Run(Request) returns (Answer); }
`

// TestTraffic: what definitions lack is in the source, and what contradicts them is a
// conflict of it.
func TestTraffic(t *testing.T) {
	have, err := schema.Load(t.Context(), fstest.MapFS{"a.proto": {Data: []byte(runProto)}})
	if err != nil {
		t.Fatal(err)
	}
	traffic := newTraffic(have, nil)
	seen := 0
	traffic.onExchange = func(*decode.Exchange) { seen++ }
	for _, c := range []callCapture{
		{"/a.Service/Run", [][]byte{[]byte("\x0a\x01x\x18\x07"), []byte("\x15\x00\x00\x00\x00")}},
		{"/a.Service/Other", [][]byte{[]byte("\x0a\x01x")}},
	} {
		if err := traffic.addCapture(t.Context(), c, 0, false); err != nil {
			t.Fatal(err)
		}
	}
	src, err := traffic.source()
	if err != nil {
		t.Fatal(err)
	}
	if seen != 3 || !src.Guessed || len(src.Conflicts) != 1 || src.Conflicts[0].Element != "a.Request.number" {
		t.Errorf("%d exchanges, %+v", seen, src)
	}
	r, err := update.Run(map[string]string{"a.proto": runProto}, "", []update.Source{*src}, update.Options{})
	if err != nil {
		t.Fatal(err)
	}
	added := map[string]bool{}
	for _, change := range r.Changes {
		added[change.Element] = true
	}
	if !added["a.Request.field_3"] || !added["a.Service.Other"] {
		t.Errorf("%+v", r.Changes)
	}
}
