package search

import (
	"context"
	"errors"
	"iter"
	"slices"
	"testing"

	"unwire/captures"
	"unwire/captures/profile"
	"unwire/decode"
)

// A callSource is one unary call, whose body ends in an error if that is set.
type callSource struct {
	rec   captures.Exchange
	up    []byte
	down  []byte
	error error
}

func (s *callSource) Exchange(context.Context, int64) (*captures.Exchange, error) { return &s.rec, nil }

func (s *callSource) Profile() *profile.Profile { return nil }

func (s *callSource) Chunks(context.Context, int64, int64) iter.Seq2[captures.Chunk, error] {
	return func(yield func(captures.Chunk, error) bool) {
		if !yield(captures.Chunk{Dir: captures.Up, Data: s.up}, nil) || !yield(captures.Chunk{Dir: captures.Down, Seq: 1, Data: s.down}, nil) {
			return
		}
		if s.error != nil {
			yield(captures.Chunk{}, s.error)
		}
	}
}

// TestExchange: the scope says what is searched, and an error comes after what was
// read before it.
func TestExchange(t *testing.T) {
	damage := errors.New("damage")
	headers := captures.Headers{{Name: "content-type", Value: "application/proto"}, {Name: "x-note", Value: "needle"}}
	src := &callSource{
		rec: captures.Exchange{ID: 1, Method: "POST", URL: "https://api.test/demo.v1.Service/Run", Status: 200, RequestHeaders: headers, ResponseHeaders: headers[:1]},
		up:  []byte("\x0a\x06needle"), down: []byte("\x12\x06needle"), error: damage,
	}
	text, err := NewText("needle", true, false)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name  string
		scope Scope
		want  []string
	}{
		{"all frames", Scope{}, []string{"up 1", "down 2"}},
		{"headers", Scope{Headers: true}, []string{"up x-note", "up 1", "down 2"}},
		{"chosen frames", Scope{Frames: func(f *decode.Frame) bool { return !f.Up() }}, []string{"down 2"}},
	} {
		var got []string
		err := Exchange(t.Context(), src, &src.rec, Query{Text: text}, c.scope, func(m Match) bool {
			got = append(got, m.Dir.String()+" "+m.Path)
			return true
		})
		if !errors.Is(err, damage) || !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, %v", c.name, got, err)
		}
	}
	n := 0
	_ = Exchange(t.Context(), src, &src.rec, Query{Text: text}, Scope{}, func(Match) bool { n++; return false })
	if n != 1 {
		t.Errorf("%d matches after the first was enough", n)
	}
}
